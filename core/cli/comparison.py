"""A run as text for people (what each route did, the ranks of passages and what they say), and as JSON."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from core.analysis.rank_overlap import RankRow, halves, rank_rows
from core.analysis.remarks import remarks
from core.analysis.run_view import texts, top
from core.cli.common import WIDTH, attributes, columns, cut, table
from core.domain.outputs import Reply, document
from core.domain.program import COMMAND
from core.domain.text import one_line
from core.domain.types import Passage, RouteResult, Run, Span
from core.engine.request import FILTERS

ADDRESS = "http://localhost:8501"
START = f"{COMMAND} serve"
TOP = 10  # hits of each route that are looked at
DEFAULT_SHOWN_PASSAGES = 10  # passages
NAMES = 36  # columns for the name of a passage
MIN_TEXT_COLUMNS = 36  # columns for its words: with less the routes go by number
AROUND = 40  # characters before the words of the question that a snippet begins with
_WORD = re.compile(r"\w+")


Naming = Callable[["Passage"], str]


def titled(passage: Passage) -> str:
    """Return a passage's title, or its document if it has none."""
    return passage.title or passage.doc_id


def comparison(
    run: Run, *, shown: int = DEFAULT_SHOWN_PASSAGES, whole: bool = False, named: Naming = titled
) -> str:
    """Format a run with `shown` passages, their full text included if `whole`; `named` names a passage."""
    done = [result for result in run.results if result.status == "ok"]
    parts = [
        f"Question  {one_line(run.query.text)}",
        f"Corpus    {run.corpus}    wall time {run.wall_ms:.0f} ms",
        *[f"Filter    {one}" for one in run.settings.get(FILTERS, [])],
    ]
    if done:
        rows = [
            (n, one.route, f"{one.ms:.0f}", sum(span.calls for span in one.spans), best)
            for n, one in enumerate(done, 1)
            for best in [named(one.hits[0].passage) if one.hits else "nothing found"]
        ]
        parts += ["", table(("#", "route", "ms", "model calls", "best hit"), rows)]
    for one in done:
        parts += [f"{one.route}: {remark}" for remark in remarks(one, run.corpus)]
    if shared := [(one.route, by) for one in done if (by := halves(one)) is not None]:
        counts = ", ".join(f"{route} {by.vectors}/{by.words}/{by.both}" for route, by in shared)
        parts.append(f"Of the first {TOP} hits, found by vectors alone/words alone/both: {counts}")
    reasons: dict[tuple[str, str], list[str]] = {}  # in full, as one may contain a command to copy
    for result in run.results:
        if result.status != "ok":
            reasons.setdefault((result.status, one_line(result.error or "")), []).append(result.route)
    parts += [""] if reasons else []
    for (status, why), names in reasons.items():
        parts.append(f"{', '.join(names)}: {status}" + (f", {why}" if why else ""))
    if ranked := rank_rows(run, depth=TOP, limit=len(run.passages)):
        parts += ["", *_ranks(run, [one.route for one in done], ranked[:shown], named)]
        if more := max(0, len(ranked) - shown):
            parts.append(f"{more} more passages among the first {TOP} of some route: --hits {len(ranked)}")
        for passage in [run.passages[row.id] for row in ranked[:shown]] if whole else ():
            parts += ["", f"{one_line(passage.doc_id)}  {one_line(named(passage))}"]
            parts += [f"  {one_line(line)}".rstrip() for line in passage.text.strip().split("\n")]
    for result in run.results:
        parts += _wrote(result)
    open_it = f"Open it: {ADDRESS}/?run={run.id} (started by: {START})"
    return "\n".join([*parts, "", open_it])


def _ranks(run: Run, routes: Sequence[str], ranked: Sequence[RankRow], named: Naming) -> list[str]:
    """Format a line for each passage: its rank in each route, its name and what it says."""
    passages = [run.passages[row.id] for row in ranked]
    titles = [cut(named(passage), NAMES) for passage in passages]
    width = sum(max(2, len(name)) + 2 for name in routes) + max(map(columns, titles)) + 2
    wide = width + MIN_TEXT_COLUMNS > shutil.get_terminal_size((WIDTH, 24)).columns
    heads = [str(n) for n in range(1, len(routes) + 1)] if wide else routes
    rows = [
        (*("-" if rank is None else rank for rank in row.ranks), title, _snippet(passage, run.query.text))
        for row, title, passage in zip(ranked, titles, passages, strict=True)
    ]
    what = "Rank of each passage by route" + (" (# as above)" if wide else "")
    return [what, table((*heads, "passage", "what it says"), rows)]


def _snippet(passage: Passage, question: str) -> str:
    """Return a passage's text from shortly before the first word of the question."""
    text = one_line(passage.text)
    words = {word for word in _WORD.findall(question.lower()) if len(word) > 3}
    first = next((one.start() for one in _WORD.finditer(text) if one[0].lower() in words), 0)
    start = 0 if first <= AROUND else text.rfind(" ", 0, first - AROUND // 2) + 1
    return ("…" if start else "") + text[start:]


def _wrote(result: RouteResult) -> list[str]:
    """Texts that steps made of the question, and the answer."""
    asked = [span for span in top(result) if span.kind == "LLM"]
    told = [f"  {span.name}: {one_line(text)}" for span in asked for text in texts(span.output)]
    if result.answer is not None:
        cited = f"  [{', '.join(map(one_line, result.citations))}]" if result.citations else ""
        told.append(f"  answer: {one_line(result.answer)}{cited}")
    if result.answer_error is not None:
        told.append(f"  no answer: {one_line(result.answer_error)}")
    return ["", f"{result.route}", *told] if told else []


def run_document(run: Run) -> dict[str, Any]:
    """Convert the whole run to plain JSON values, a shape that scripts rely on; times in milliseconds, hits
    best first.
    """
    return {
        "run_id": run.id,
        **attributes(run, "created status corpus fingerprint wall_ms"),
        "query": run.query.text,
        "history": [asdict(turn) for turn in run.query.history],
        "settings": dict(run.settings),
        "results": [_result(result, run) for result in run.results],
    }


_OF_RESULT = (
    "route title status ms start_ms wall_ms answer citations abstained answer_status answer_error "
    "answer_span error"
)


def _result(result: RouteResult, run: Run) -> dict[str, Any]:
    models: dict[int, str] = {}  # by span: the model asked last in it or in a step within it
    thought: dict[int, int] = {}  # by span: the tokens that models reasoned with in it
    for span in reversed(result.spans):  # steps stand before what was done in them
        if isinstance(span.output, Reply) and span.output.model:
            models[span.id] = span.output.model
        own = span.tokens.reasoning if span.tokens else thought.get(span.id, 0)
        thought[span.id] = own
        if span.parent is not None:
            thought[span.parent] = thought.get(span.parent, 0) + own
            if span.id in models:
                models.setdefault(span.parent, models[span.id])
    shares = halves(result)
    return {
        **attributes(result, _OF_RESULT),
        "hits": [
            {"score": hit.score, **attributes(hit.passage, "id title doc_id text")} for hit in result.hits
        ],
        "found_by": None if shares is None else asdict(shares),
        "origin": None if result.origin is None else asdict(result.origin),
        "spans": [
            _span(span, run) | {"model": models.get(span.id), "reasoning_tokens": thought.get(span.id, 0)}
            for span in result.spans
        ],
        "parameters": dict(result.parameters),
    }


def _span(span: Span, run: Run) -> dict[str, Any]:
    known = {id: passage.title for id, passage in run.passages.items()}
    hits = span.hits and [{"id": id, "score": score, "title": known.get(id)} for id, score in span.hits]
    return {
        **attributes(span, "id parent name kind start_ms ms shared_with cached error calls cost"),
        "inputs": {**span.args, **span.attributes},
        "args": dict(span.args),
        "attributes": dict(span.attributes),
        "links": [asdict(link) for link in span.links],
        "set_by": dict(span.set_by),
        "output": document(span.output),
        "hits": hits,
        "tokens": asdict(span.tokens) if span.tokens else None,
    }
