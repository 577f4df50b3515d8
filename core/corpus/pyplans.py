"""Which modules and classes of which packages the docstring corpus holds; it embeds in minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """What of a package is documented: names in `modules`, methods of `classes` (None: of every class)."""

    modules: tuple[str, ...]
    classes: tuple[str, ...] | None = ()
    leave_out: str = ""  # a pattern for names: generated families, and what works only while an app runs


def _under(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in names.split())


_SCIPY = """
optimize stats spatial spatial.distance sparse linalg interpolate integrate cluster.hierarchy cluster.vq
"""
_SKLEARN = """
metrics linear_model ensemble cluster model_selection preprocessing decomposition neighbors pipeline
feature_extraction.text feature_selection impute inspection manifold naive_bayes svm tree compose
"""
_PANDAS_CLASSES = """
DataFrame Series Series.str Series.dt Timestamp api.typing.DataFrameGroupBy api.typing.Rolling
"""
_OPENAI_RESOURCES = """
chat.completions.Completions responses.Responses embeddings.Embeddings files.Files images.Images models.Models
moderations.Moderations batches.Batches fine_tuning.jobs.Jobs vector_stores.VectorStores uploads.Uploads
audio.Transcriptions audio.Speech conversations.Conversations
"""
_STANDARD = """
abc argparse array ast asyncio base64 bisect builtins calendar cmath codecs collections colorsys
concurrent.futures configparser contextlib contextvars copy csv dataclasses datetime decimal difflib email
email.message enum filecmp fileinput fnmatch fractions functools getpass glob gzip hashlib heapq hmac html
http http.client importlib importlib.metadata importlib.resources inspect io ipaddress itertools json
linecache locale logging logging.handlers lzma math mimetypes multiprocessing.pool operator os os.path
pathlib pickle platform pprint queue random re reprlib sched secrets select selectors shelve shlex shutil
signal socket sqlite3 ssl stat statistics string struct subprocess sys sysconfig tarfile tempfile textwrap
threading time timeit tokenize tomllib traceback tracemalloc types typing unicodedata unittest unittest.mock
urllib.error urllib.parse urllib.request uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo
"""

_PLOTLY_GENERATED = (
    r"Figure\.(add_(?!trace|annotation|[hv]line|[hv]rect|shape|layout_image|bar$|scatter$|heatmap$)"
    r"|for_each_(?!trace)|select_(?!trace)|update_(?!layout|traces|xaxes|yaxes|annotations))"
)
_FAISS_INNER = (
    r"FastScan|RaBitQ|Panorama|Additive|ProductLocal|ProductResidual|SuperK|ZnSphere|Factors|compute_"
    r"|bucket|beam_|Context|partition|SQTurbo|RowwiseMinMax|FFN|scanner|Scanner|Repeats|simd|SIMD|_c$|_bit_|_list$"
)

PLANS: Mapping[str, Plan] = {
    "numpy": Plan(
        ("numpy", *_under("numpy", "linalg fft random lib.stride_tricks")),
        ("numpy.ndarray", "numpy.random.Generator"),
    ),
    "pandas": Plan(("pandas", "pandas.api.types"), _under("pandas", _PANDAS_CLASSES)),
    "scipy": Plan(_under("scipy", _SCIPY)),
    "sklearn": Plan(("sklearn", *_under("sklearn", _SKLEARN))),
    "streamlit": Plan(
        ("streamlit", "streamlit.column_config"),
        leave_out=r"streamlit\.(context|query_params|secrets|session_state|user)$",
    ),
    "plotly": Plan(
        ("plotly.express", "plotly.subplots", "plotly.io"),
        ("plotly.graph_objects.Figure",),
        _PLOTLY_GENERATED,
    ),
    "faiss": Plan(("faiss",), ("faiss.Index", "faiss.IndexIVF"), _FAISS_INNER),
    "sqlite_utils": Plan(
        ("sqlite_utils", "sqlite_utils.utils"), ("sqlite_utils.Database", "sqlite_utils.db.Table")
    ),
    "openai": Plan(("openai",), _under("openai.resources", _OPENAI_RESOURCES)),
}
STANDARD_LIBRARY = tuple(_STANDARD.split())
