"""Work that is killed: `python -m tests.kills.work WORK FOLDER [EVENT SECONDS]`.

With EVENT the process kills itself SECONDS after the file operation of that number below FOLDER; without, it
ends and prints how many there were.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WORDS = (
    "parcel",
    "box",
    "return",
    "key",
    "customs",
    "express",
    "late",
    "crushed",
    "stored",
    "glass",
    "invoice",
    "pallet",
)
FILES = 12


def documents(folder: Path) -> Path:
    """Write the files that are indexed."""
    source = folder / "docs"
    source.mkdir(parents=True, exist_ok=True)
    for at in range(FILES):
        lines = [
            f"Person {chr(65 + (at + n) % 26)}bel Stone sends {WORDS[(at * n) % 12]} {WORDS[n % 12]} {at}."
            for n in range(30)
        ]
        (source / f"{at}.md").write_text(f"# About {WORDS[at]}\n\n" + "\n\n".join(lines))
    return source


def index(folder: Path) -> Any:
    """Build an index, and give what is in it."""
    from core.corpus.index import build

    return _content(build("docs", folder / "docs", settings=_settings(folder)))


def chunkings(folder: Path) -> Any:
    """Build two chunkings of an index."""
    from core.corpus import catalogue, variants
    from core.corpus.index import build, build_each

    settings = _settings(folder)
    build("docs", folder / "docs", settings=settings)
    source = catalogue.source("docs", settings=settings)
    each = [variants.of_source(source, key) for key in ("64", "128")]
    return [_content(corpus) for corpus in build_each(each, settings=settings)]


def enrichment(folder: Path) -> Any:
    """Build an index and a graph, summaries and pieces for it."""
    from core.corpus.enrichments import store
    from core.corpus.index import build

    settings = _settings(folder)
    corpus = build("docs", folder / "docs", settings=settings)
    found = []
    for name in ("graph", "extracts", "children"):
        made = store.build(name, corpus, settings=settings)
        home = settings.home / "enrichments" / "docs" / name
        texts = {file.name: file.read_bytes().hex() for file in sorted(home.glob("*.npy"))}
        found.append([made.entries, made.fingerprint, texts])
    return found


def evaluation(folder: Path) -> Any:
    """Ask eight questions by two routes, and give the figures without times."""
    from core.evaluation import experiment
    from core.evaluation.spec import Spec
    from tests.audited import engine, known_to, labelled_set

    with pytest.MonkeyPatch.context() as patch:
        known_to(patch)
        made = engine(folder / "home")
        ready = experiment.prepare(made, Spec("tiny", ("wary", "bm25"), split="test"), labelled_set())
        figures, _, outcomes = experiment.perform(made, ready, out=folder / "out")
    rankings = {route: {id: got.hits for id, got in by.items()} for route, by in outcomes.items()}
    return [figures["queries"], rankings]


WORK: dict[str, Callable[[Path], Any]] = {
    "index": index,
    "chunkings": chunkings,
    "enrichment": enrichment,
    "evaluation": evaluation,
}


def _settings(folder: Path) -> Any:
    from core.domain.settings import Settings

    return Settings(home=folder / "home")


def _content(corpus: Any) -> Any:
    rows = [(passage.id, passage.text) for _, passage, _ in corpus.everything()]
    found = [corpus.fingerprint, rows, corpus.vectors(range(corpus.size)).tobytes().hex()]
    found.append([[hit.passage.id for hit in corpus.search_sparse(word, 5)] for word in WORDS])
    corpus.close()
    return found


def with_hashes() -> None:
    """Let hashes of words stand for the embedding model in this process."""
    from core.backends import embedder
    from core.corpus import catalogue
    from core.corpus import index as indexes
    from tests.fakes import HashEmbedder

    for module in (embedder, indexes):
        module.load_embedder = lambda *_, **__: HashEmbedder()
    for module in (embedder, indexes, catalogue):
        module.embedder_identity = lambda name, _settings: name


def counted(folder: Path, last: int | None, seconds: float) -> list[int]:
    """Count file operations below `folder`; at the `last` one this process is killed a moment later."""
    count = [0]
    below = str(folder)

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if event.partition(".")[0] in ("open", "os", "shutil", "sqlite3") and args and below in str(args[0]):
            count[0] += 1
            if count[0] == last:
                if seconds:
                    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
                else:
                    os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hear)
    return count


if __name__ == "__main__":
    name, where = sys.argv[1], Path(sys.argv[2])
    with_hashes()
    documents(where)
    counting = counted(where, *((int(sys.argv[3]), float(sys.argv[4])) if sys.argv[3:] else (None, 0.0)))
    outcome = WORK[name](where)
    sys.stdout.write(json.dumps([counting[0], outcome]))
