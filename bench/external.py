"""Measure the pipeline figures of bench/notebook/2026-11.md: `python -m bench.external`, printed as JSON.

The doors: what a call takes besides the pipeline's own code, 50 hits of 600 characters. The matching: 50 hits
against 100,000 passages made of words drawn by Zipf's law, by each rule, none of them matched before.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.results import machine, spread
from core.backends.external.doors import Live, PipelineRequest
from core.corpus.chunk import WHOLE
from core.corpus.passage_matching import Matcher
from core.corpus.passages import PassageStore, write
from core.corpus.types import Cut, Document
from core.domain.external import ForeignHit
from core.domain.pipelines import Pipeline
from core.domain.types import Passage

log = logging.getLogger("bench")
HITS, CALLS, PASSAGES, ROUNDS = 50, 300, 100_000, 40
TEXT = "A parcel that came back is counted, photographed and put on the shelf of returns until noon. " * 6
FUNCTION = f"""
def search(query, k):
    return [{{"doc_id": f"doc{{n}}", "text": f"{{n}} " + {TEXT!r}, "score": 1.0 / (n + 1)}} for n in range(k)]
"""


def doors() -> dict[str, Any]:
    """Milliseconds of a call besides the pipeline's own code (a function), and in all (an endpoint)."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rag.py"
        file.write_text(FUNCTION)
        function = Live(Pipeline("bench", "function", f"{file}:search", sys.executable))
        called = [_ask(function) for _ in range(CALLS)][10:]
        started = function.state.start_ms
        function.stop()
    overhead = [one.ms - (one.inside_ms or 0.0) for one in called]
    with _served() as url:
        endpoint = Live(Pipeline("bench_http", "http", url))
        http = [_ask(endpoint).ms for _ in range(CALLS)][10:]
    return {
        "function_overhead_ms": _spread(overhead),
        "function_start_ms": started,
        "endpoint_round_trip_ms": _spread(http),
    }


def _ask(live: Live) -> Any:
    return live.ask(PipelineRequest("How do I start a return?", HITS), timeout=30, cancel=threading.Event())


class _served:  # noqa: N801 - used as a function
    """An endpoint of the standard library that replies at once; gives its address."""

    def __enter__(self) -> str:
        hits = [{"doc_id": f"doc{n}", "text": f"{n} {TEXT}", "score": 1 / (n + 1)} for n in range(HITS)]
        body = json.dumps({"hits": hits}).encode()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}/search"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()


def matching() -> dict[str, Any]:
    """Milliseconds to match 50 hits, by rule; `first` is the reading of all words, once a process."""
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "passages.sqlite"
        write(_documents(rng), WHOLE, file)
        store = _Passages(file)
        matcher = Matcher(store)
        drawn = iter(rng.sample(range(PASSAGES), ROUNDS * HITS * 4))

        def some() -> list[Passage]:
            return store.passages([next(drawn) for _ in range(HITS)])

        began = time.perf_counter()
        matcher.match([ForeignHit("elsewhere", "some words that have to be looked up")])
        first = (time.perf_counter() - began) * 1000
        return {
            "passages": PASSAGES,
            "first_by_text_ms": first,
            "by_id_ms": _timed(matcher, some, lambda p: ForeignHit(p.doc_id, p.text, p.id)),
            "by_offsets_ms": _timed(
                matcher, some, lambda p: ForeignHit(p.doc_id, p.text, None, p.start, p.end)
            ),
            "by_equal_text_ms": _timed(matcher, some, lambda p: ForeignHit("other", p.text)),
            "by_part_of_text_ms": _timed(matcher, some, lambda p: ForeignHit("other", p.text[100:400])),
        }


class _Passages(PassageStore):
    """The passages of a corpus without its index of vectors and words."""

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        """The passages of `rows`, in that order."""
        found = self.at(rows)
        return [found[row] for row in rows]


def _timed(
    matcher: Matcher, some: Callable[[], list[Passage]], made: Callable[[Passage], ForeignHit]
) -> dict[str, float]:
    took = []
    for _ in range(ROUNDS):
        hits = [made(passage) for passage in some()]
        began = time.perf_counter()
        found = matcher.match(hits)
        took.append((time.perf_counter() - began) * 1000)
        if found.share != 1.0:
            raise RuntimeError(f"only {found.share} of the hits were matched")
    return _spread(took)


def _documents(rng: random.Random) -> Iterator[Cut]:
    """Each of one passage of 90 words; the nth word is drawn as often as 1/n."""
    words = [f"w{n}" for n in range(50_000)]
    weights = list(itertools.accumulate(1 / (n + 1) for n in range(len(words))))
    for number in range(PASSAGES):
        text = " ".join(rng.choices(words, cum_weights=weights, k=90))
        yield Cut(Document(f"doc{number}", "", text), [(0, len(text))])


def _spread(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {**spread(list(values)), "p95": ordered[int(0.95 * len(ordered))], "mean": statistics.mean(values)}


def main() -> None:
    """Print all of it."""
    logging.basicConfig(level=logging.WARNING)
    found = {"machine": machine(), "doors": doors(), "matching": matching()}
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
