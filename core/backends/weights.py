"""Loads a sentence-transformers model of a stated kind, and refuses one whose weights are not of that kind.

The library makes a model of any kind out of any weights: what is missing is drawn at random, with a line in
the log. Such a model scores like dice, so it must not run under the name it was asked for.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from core.domain import full_set
from core.domain.errors import Cancelled, ModelTimedOut, Unavailable, describe

log = logging.getLogger(__name__)
T = TypeVar("T")
HUB_S = 5.0  # to wait for the hub's first word
CODE = "trust_remote_code"  # in transformers' message on weights that come with code: nobody is asked here
Kind = Literal["CrossEncoder", "MultiVectorEncoder", "SparseEncoder"]


# By kind: what it is called, an example, the types that the library saves, and endings of architectures.
_KINDS: dict[Kind, tuple[str, str, str, str]] = {
    "CrossEncoder": (
        *("cross-encoder", "cross-encoder/ms-marco-MiniLM-L6-v2"),
        *("CrossEncoder", "ForSequenceClassification"),
    ),
    "MultiVectorEncoder": (
        *("ColBERT model", "colbert-ir/colbertv2.0"),
        *("MultiVectorEncoder ColBERT", "HF_ColBERT ForRetrieval"),
    ),
    "SparseEncoder": ("learned sparse model", "naver/splade-v3", "SparseEncoder", "ForMaskedLM"),
}


def load(kind: Kind, name: str) -> Any:
    """Load the model `name` (of the hub, or a folder) on the processor. Raises Unavailable in one line."""
    what, example, types, endings = _KINDS[kind]
    advice = f"use a model of the hub such as {example}, or its folder"

    def opened(place: str, **local: Any) -> tuple[Any, str | None, list[str]]:
        import sentence_transformers

        model = getattr(sentence_transformers, kind)(place, device="cpu", **local)
        saved = _declared(place, "config_sentence_transformers.json").get("model_type")
        return model, saved, _declared(place, "config.json").get("architectures") or []

    model, saved, architectures = from_here_or_hub(name, opened, what, advice)
    if saved not in types.split() and not any(one.endswith(tuple(endings.split())) for one in architectures):
        found = saved or ", ".join(architectures) or "no stated kind"
        raise Unavailable(f"{name!r} holds {found}, not a trained {what}; {advice}")
    model.eval()
    return model


def from_here_or_hub(name: str, opened: Callable[..., T], what: str, advice: str) -> T:
    """Return what `opened` makes of a model by folder or name, with `local_files_only=True` if it is
    on this machine: then nobody is asked. Raises Unavailable in one line.
    """
    full_set.require()
    folder = Path(name).expanduser()
    try:
        try:
            return opened(str(folder) if folder.is_dir() else name, local_files_only=True)
        except (OSError, ValueError):  # what transformers raises for a file that is not on this machine
            if folder.is_dir():
                raise
            from huggingface_hub import HfApi

            log.info("%s is not on this machine: asking the model hub", name)
            HfApi().model_info(name, timeout=HUB_S)  # fails within seconds; loading would retry for a minute
            return opened(name)
    except Unavailable:
        raise
    except Exception as error:  # the library and the hub's client raise whatever they like
        why = "it comes with code, which is not run here" if CODE in str(error) else describe(error)[:300]
        raise Unavailable(f"{what} {name!r} cannot be loaded; {advice} ({why})") from error


def _declared(place: str, file: str) -> dict[str, Any]:
    from sentence_transformers.util import load_file_path

    path = load_file_path(place, file, local_files_only=True)  # it came with the weights
    found = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    return found if isinstance(found, dict) else {}


def in_batches(
    order: Sequence[int], size: int, name: str, timeout: float, cancel: threading.Event | None
) -> Iterator[Sequence[int]]:
    """Yield `size` of the positions `order` at a time. Raises Cancelled, and ModelTimedOut after `timeout`
    seconds.
    """
    deadline = time.monotonic() + timeout
    for start in range(0, len(order), size):
        if cancel is not None and cancel.is_set():
            raise Cancelled(f"stopped while {name} was reading passages")
        if time.monotonic() > deadline:
            done = f"{start} of {len(order)} passages in {timeout:.3g} s"
            raise ModelTimedOut(f"{name} read {done}; give fewer")
        yield order[start : start + size]


def clean(text: str) -> str:
    """`text` without halves of surrogate pairs, which tokenizers and JSON readers refuse."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
