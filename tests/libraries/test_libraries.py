"""The examples of docs/your-pipeline.md with the real libraries, each in an environment of its own.

An environment is made once and kept (in the user's cache); where the packages cannot be had, its tests skip
with the reason.
"""

from __future__ import annotations

import hashlib
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock
from platformdirs import user_cache_path

from core.analysis import external
from core.backends.external import doors
from core.corpus.chunk import Chunking, passages
from core.domain.outputs import External, Fusion, Search
from core.domain.pipelines import Pipeline, from_command
from core.domain.settings import PROJECT
from core.domain.types import Query, RouteResult
from core.engine.request import Request
from core.routes import registry
from core.store import Store
from tests.fakes import FakeEngine, MemoryCorpus
from tests.loaded import documents

pytestmark = [pytest.mark.libraries, pytest.mark.timeout(600)]
HERE = Path(__file__).parent
DOCUMENTS = PROJECT / "data" / "support" / "documents"
PAGE = PROJECT / "docs" / "your-pipeline.md"
QUESTION = "How do I start a return?"
INSTALL_S = 420


@cache
def environment(name: str) -> Path:
    """The interpreter of an environment with the packages of NAME.txt; skips where they cannot be had."""
    wanted = HERE / f"{name}.txt"
    digest = hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = user_cache_path("routescope") / "test-environments" / f"{name}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    python, done = folder / "bin" / "python", folder / ".complete"
    with FileLock(f"{folder}.lock"):
        if not done.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", wanted]
            try:
                made = subprocess.run(pip, capture_output=True, text=True, timeout=INSTALL_S, check=False)
            except subprocess.TimeoutExpired:
                pytest.skip(f"{name}: its packages were not installed within {INSTALL_S} s")
            if made.returncode:
                pytest.skip(f"{name}: its packages cannot be installed: {made.stderr.strip()[-300:]}")
            done.touch()
    return python


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples as the page has them, beside the documents."""
    made = tmp_path_factory.mktemp("theirs")
    (made / "documents").symlink_to(DOCUMENTS)
    for text, name in re.findall(r"```python\n(# (my_\w+\.py).*?)```", PAGE.read_text(), re.DOTALL):
        (made / name).write_text(text)
    return made


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[FakeEngine]:
    """The documents' passages, cut as ours are."""
    made = FakeEngine(tmp_path, store=Store(tmp_path / "runs.sqlite"))
    made.fakes["tiny"] = _support()
    yield made
    registry.forget_given()
    doors.stop_all()
    assert made.store is not None
    made.store.close()


@cache
def _support() -> MemoryCorpus:
    cut = [one for document in documents(DOCUMENTS) for one in passages(document, Chunking())]
    made = MemoryCorpus({one.id: one.text for one in cut})
    made.all = sorted(cut, key=lambda one: one.id)
    return made


Asked = Callable[[Pipeline], RouteResult]


@pytest.fixture
def ask(engine: FakeEngine) -> Asked:
    """One question by such a route beside ours."""

    def asked(pipeline: Pipeline) -> RouteResult:
        registry.add(pipeline)
        run = engine.ask(Request(Query(QUESTION), "tiny", ("bm25", pipeline.name)))
        assert [(one.status, one.error) for one in run.results] == [("ok", None)] * 2
        return run.results[1]

    return asked


def call(result: RouteResult) -> External:
    made = external.call(result)
    assert made is not None
    return made.output


def theirs(name: str, function: str, library: str) -> Pipeline:
    """A pipeline of FILE:FUNCTION in the environment of a library."""
    return from_command(f"{name}={function}", str(environment(library)))


COMPONENT = "retriever = InMemoryBM25Retriever(store, top_k=7)\n"


@pytest.mark.parametrize(
    ("library", "function", "more", "scored", "stages"),
    [
        ("langchain", "search", "", False, ()),  # LangChain's retrievers give no scores
        ("llamaindex", "search", "", True, ()),
        ("haystack", "search", "", True, ("bm25",)),
        ("haystack", "retriever", COMPONENT, True, ()),
    ],
)
def test_a_retriever_finds_as_many_as_are_asked_for_and_most_are_ours(
    ask: Asked, folder: Path, library: str, function: str, more: str, scored: bool, stages: tuple[str, ...]
) -> None:
    """Chunks of another size, tied to ours by document and offsets."""
    file = folder / f"my_{library}{'_more' if more else ''}.py"
    file.write_text((folder / f"my_{library}.py").read_text() + more)
    told = call(ask(theirs(library, f"{file}:{function}", library)))
    assert told.hits == 50
    assert told.matched >= 45
    assert (told.scored, told.stages) == (scored, stages)


def test_langchain_ensemble_tells_its_retrievers(ask: Asked, folder: Path) -> None:
    """Its stages come by LangChain's own callbacks, and Why follows a passage through them."""
    (folder / "my_ensemble.py").write_text(
        (folder / "my_langchain.py").read_text()
        + "from langchain_classic.retrievers import EnsembleRetriever\n"
        "few = BM25Retriever.from_documents(splitter.split_documents(texts[:60]), k=5)\n"
        "both = EnsembleRetriever(retrievers=[search, few], weights=[0.5, 0.5])\n"
    )
    result = ask(theirs("ensemble", f"{folder}/my_ensemble.py:both", "langchain"))
    below = [span for span in result.spans if span.parent == 1]
    assert sorted(len(span.hits or ()) > 5 for span in below) == [False, True]
    assert all(isinstance(span.output, Search) and span.ms > 0 for span in below)
    assert external.depth(result) is not None
    assert len(result.spans[-1].links) >= 2


def test_haystack_graph_wires_the_stages(ask: Asked, folder: Path) -> None:
    """Two retrievers and a joiner: the fusion is linked to both, the result to the fusion."""
    (folder / "my_joined.py").write_text(
        (folder / "my_haystack.py").read_text() + "from haystack.components.joiners import DocumentJoiner\n"
        "search.add_component('few', InMemoryBM25Retriever(store, top_k=5))\n"
        "search.add_component('joiner', DocumentJoiner(join_mode='reciprocal_rank_fusion'))\n"
        "search.connect('bm25', 'joiner')\nsearch.connect('few', 'joiner')\n"
    )
    result = ask(theirs("joined", f"{folder}/my_joined.py:search", "haystack"))
    spans = {span.name: span for span in result.spans}
    assert call(result).stages[-1] == "joiner"
    assert isinstance(spans["joiner"].output, Fusion)
    assert {link.span for link in spans["joiner"].links} == {spans["bm25"].id, spans["few"].id}
    assert [link.span for link in spans["result of joined"].links] == [spans["joiner"].id]


def test_fastapi_endpoint(ask: Asked, folder: Path) -> None:
    python = environment("fastapi")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [python, "-m", "uvicorn", "my_service:app", "--port", str(port), "--log-level", "warning"],
        cwd=folder,
    )
    try:
        _wait_for(port, server)
        result = ask(from_command(f"service=http://127.0.0.1:{port}/search"))
    finally:
        server.terminate()
        server.wait(20)
    told = call(result)
    assert told.hits == 50
    assert told.matched >= 45


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while server.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the endpoint did not start")
