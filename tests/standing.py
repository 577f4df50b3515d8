"""The whole of `core.api` over a corpus in memory: for tests of what calls it from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.api import arguments
from core.corpus import catalogue
from core.corpus.chunk import Chunking
from core.corpus.source import Source
from core.domain import settings as settings_module
from core.domain.errors import BadInput
from core.domain.settings import Settings
from core.engine import engine as engine_module
from core.store import Store
from tests.fakes import TEXTS, FakeEngine, MemoryCorpus

ASKED = {
    "q1": "box arrived crushed",
    "q2": "how long are keys stored",
    "q3": "fragile items double boxed",
}
RELEVANT = {"q1": "crushed:0-80", "q2": "keys:0-80", "q3": "fragile:0-80"}


class Shelf(MemoryCorpus):
    """A corpus in memory that says which documents it lacks."""

    def document(self, id: str) -> Any:
        raise BadInput(f"corpus {self.name} has no document {id!r}")


def stand_in(home: Path, patch: pytest.MonkeyPatch) -> FakeEngine:
    """The engine of the process: the real one over `tiny`, which is known, counts as indexed and has labelled
    questions, with a real store in `home`.
    """
    made = FakeEngine(home, store=Store(home / "routescope.sqlite"))
    made.fakes["tiny"] = Shelf(TEXTS)
    patch.setattr(engine_module, "shared_engine", lambda: made)
    patch.setattr(settings_module, "current", lambda: Settings(home=home))
    known = catalogue.source

    def source(what: Any, **more: Any) -> Source:
        return Source("tiny", "indexed", _beir(home), Chunking()) if what == "tiny" else known(what, **more)

    patch.setattr(catalogue, "source", source)
    patch.setattr(arguments, "ensure", lambda *_: None)
    return made


def _beir(home: Path) -> Path:
    """The folder of `tiny`, with its questions as BEIR has them."""
    folder = home / "tiny"
    if not folder.is_dir():
        (folder / "qrels").mkdir(parents=True)
        _write(folder / "corpus.jsonl", TEXTS)
        _write(folder / "queries.jsonl", ASKED)
        rows = [f"{question}\t{passage}\t1" for question, passage in RELEVANT.items()]
        (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    return folder


def _write(file: Path, texts: dict[str, str]) -> None:
    file.write_text(
        "\n".join(json.dumps({"_id": id, "text": text}) for id, text in texts.items()), encoding="utf-8"
    )
