"""Work that is killed: `python -m tests.kills.work` reads orders, one JSON line each, and forks to do each.

An order is [work, folder, event, seconds]. With an event the child kills itself some seconds after the file
operation of that number below the folder. The answer is its exit status, as `os.waitpid` gives it; the result
of the work, and how many operations that took, is in `result.json` of the folder.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_WORDS = "parcel box return key customs express late crushed stored glass invoice pallet"
WORDS = tuple(_WORDS.split())
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
    from core.corpus import catalogue
    from core.corpus.index import build, build_each
    from core.corpus.source import variant_of

    settings = _settings(folder)
    build("docs", folder / "docs", settings=settings)
    source = catalogue.source("docs", settings=settings)
    each = [variant_of(source, key) for key in ("64", "128")]
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
    rankings = {
        route: {id: [list(hit) for hit in got.hits] for id, got in by.items()}
        for route, by in outcomes.items()
    }
    return [figures["queries"], rankings]


WORK: dict[str, Callable[[Path], Any]] = {
    made.__name__: made for made in (index, chunkings, enrichment, evaluation)
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


def child(name: str, folder: Path, last: int | None, seconds: float) -> None:
    """Do the work in a process of its own, and end it."""
    try:
        documents(folder)
        operations = counted(folder, last, seconds)
        found = WORK[name](folder)
        (folder / "result.json").write_text(json.dumps([operations[0], found]))
    except Exception:  # noqa: BLE001 - the caller sees the exit code, and this on stderr
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def serve() -> None:
    """Load everything once, and fork for each order."""
    with_hashes()
    for module in ("bm25s", "faiss", "core.corpus.enrichments.store", "tests.audited"):
        importlib.import_module(module)
    for line in sys.stdin:
        name, folder, last, seconds = json.loads(line)
        pid = os.fork()
        if not pid:
            child(name, Path(folder), last, seconds)
        sys.stdout.write(f"{os.waitpid(pid, 0)[1]}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
