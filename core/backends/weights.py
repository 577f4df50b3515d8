"""Loads a sentence-transformers model of a stated kind, and refuses one whose weights are not of that kind.

The library makes a model of any kind out of any weights: what is missing is drawn at random, with a line in
the log. Such a model scores like dice, so it must not run under the name it was asked for.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from core.domain import full_set
from core.domain.errors import Unavailable, describe

log = logging.getLogger(__name__)
HUB_S = 5.0  # to wait for the hub's first word
Kind = Literal["CrossEncoder", "MultiVectorEncoder", "SparseEncoder"]


@dataclass(frozen=True, slots=True)
class _Marks:
    """The marks of a kind of model: the type the library saved, or the architecture's name."""

    what: str
    example: str
    types: tuple[str, ...]
    architectures: tuple[str, ...]  # endings


_KINDS: dict[Kind, _Marks] = {
    "CrossEncoder": _Marks(
        "cross-encoder",
        "cross-encoder/ms-marco-MiniLM-L6-v2",
        ("CrossEncoder",),
        ("ForSequenceClassification",),
    ),
    "MultiVectorEncoder": _Marks(
        "ColBERT model",
        "colbert-ir/colbertv2.0",
        ("MultiVectorEncoder", "ColBERT"),
        ("HF_ColBERT", "ForRetrieval"),
    ),
    "SparseEncoder": _Marks(
        "learned sparse model",
        "naver/splade-v3",
        ("SparseEncoder",),
        ("ForMaskedLM",),
    ),
}


def load(kind: Kind, name: str) -> Any:
    """Load the model `name` (of the hub, or a folder) on the processor. Raises Unavailable in one line."""
    marks = _KINDS[kind]
    folder = Path(name).expanduser()
    place = str(folder) if folder.is_dir() else name
    full_set.require()
    get = f"use a model of the hub such as {marks.example}, or its folder"
    try:
        import sentence_transformers

        load_as = getattr(sentence_transformers, kind)
        try:
            model: Any = load_as(place, device="cpu", local_files_only=True)
        except (OSError, ValueError):  # what transformers raises for a file that is not on this machine
            if folder.is_dir():
                raise
            ask_hub(name)
            model = load_as(place, device="cpu")
        saved, architectures = _declared(place)
    except Exception as error:  # the library and the hub's client raise whatever they like
        raise Unavailable(
            f"{marks.what} {name!r} cannot be loaded; {get} ({describe(error)[:300]})"
        ) from error
    if saved not in marks.types and not any(a.endswith(marks.architectures) for a in architectures):
        found = saved or ", ".join(architectures) or "no stated kind"
        raise Unavailable(f"{name!r} holds {found}, not a trained {marks.what}; {get}")
    model.eval()
    return model


def ask_hub(name: str) -> None:
    """Raise the hub's error within seconds; loading would retry for a minute."""
    from huggingface_hub import HfApi

    log.info("%s is not on this machine: asking the model hub", name)
    HfApi().model_info(name, timeout=HUB_S)


def _declared(place: str) -> tuple[str | None, list[str]]:
    """Return the type the library recorded, and the architectures of the weights."""
    from sentence_transformers.util import load_file_path

    def read(file: str) -> dict[str, Any]:
        path = load_file_path(place, file, local_files_only=True)  # they came with the weights
        found = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
        return found if isinstance(found, dict) else {}

    return read("config_sentence_transformers.json").get("model_type"), read("config.json").get(
        "architectures"
    ) or []


def clean(text: str) -> str:
    """`text` without halves of surrogate pairs, which tokenizers and JSON readers refuse."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
