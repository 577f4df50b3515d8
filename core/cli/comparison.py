"""A run as text for people: what each route did, which rank it gave each passage, what the passages say."""

from __future__ import annotations

import re
import shutil
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING

from core.analysis.rank_overlap import halves
from core.analysis.remarks import remarks
from core.cli.text import WIDTH, columns, cut, one_line, table
from core.domain.program import COMMAND
from core.engine.request import FILTERS

if TYPE_CHECKING:
    from core.domain.types import Hit, Passage, RouteResult, Run

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
            (n, one.route, f"{one.ms:.0f}", sum(span.calls for span in one.spans), _best(one, named))
            for n, one in enumerate(done, 1)
        ]
        parts += ["", table(("#", "route", "ms", "model calls", "best hit"), rows, right=(0, 2, 3))]
    for one in done:
        parts += [f"{one.route}: {remark}" for remark in remarks(one, run.corpus)]
        parts += [f"{one.route}: {shares.line()}"] if (shares := halves(one)) is not None else []
    parts += _not_done([result for result in run.results if result.status != "ok"])
    found = [result for result in run.results if result.hits]
    if found:
        ranked = _ranked(found)
        parts += ["", *_ranks(run, found, ranked[:shown], named)]
        if len(ranked) > shown:
            more = len(ranked) - shown
            of_them = "1 more passage" if more == 1 else f"{more} more passages"
            parts.append(f"{of_them} among the first {TOP} of some route: --hits {len(ranked)}")
        if whole:
            parts += [line for hit, _ in ranked[:shown] for line in _text(hit, named)]
    for result in run.results:
        parts += _wrote(result)
    return "\n".join([*parts, "", reopen(run.id)])


def reopen(run_id: str) -> str:
    """Return where to open the run: its URL if a dashboard answers, else how to start one."""
    if answers(ADDRESS):
        return f"Reopen: {ADDRESS}/?run={run_id}"
    return f"Stored as run {run_id}. To open it: {START}, then /?run={run_id} behind the address it tells."


def answers(address: str) -> bool:
    """Return True if a dashboard of this program answers at an address, identified by its headers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{address}/_stcore/health", timeout=0.5) as reply:
            return reply.status == 200 and "frame-ancestors" in reply.headers.get(
                "Content-Security-Policy", ""
            )
    except (OSError, HTTPException, ValueError):
        return False


def _best(result: RouteResult, named: Naming) -> str:
    return named(result.hits[0].passage) if result.hits else "nothing found"


def _not_done(results: Sequence[RouteResult]) -> list[str]:
    """List the routes without a result by reason, in full on one line, as it may contain a command to
    copy.
    """
    reasons: dict[tuple[str, str], list[str]] = {}
    for result in results:
        reasons.setdefault((result.status, one_line(result.error or "")), []).append(result.route)
    lines = [""] if reasons else []
    for (status, why), names in reasons.items():
        lines.append(f"{', '.join(names)}: {status}" + (f", {why}" if why else ""))
    return lines


def _ranked(results: Sequence[RouteResult]) -> list[tuple[Hit, dict[str, int]]]:
    """Return the passages among the first hits of any route with their ranks, the best first."""
    ranks: dict[str, dict[str, int]] = {}
    hits: dict[str, Hit] = {}
    for result in results:
        for rank, hit in enumerate(result.hits[:TOP], 1):
            ranks.setdefault(hit.passage.id, {})[result.route] = rank
            hits.setdefault(hit.passage.id, hit)

    def best(id: str) -> tuple[int, int, str]:
        mine = ranks[id].values()
        return min(mine), sum(mine) - (TOP + 1) * len(mine), id

    return [(hits[id], ranks[id]) for id in sorted(ranks, key=best)]


def _ranks(
    run: Run,
    results: Sequence[RouteResult],
    ranked: Sequence[tuple[Hit, dict[str, int]]],
    named: Naming,
) -> list[str]:
    """Format a line for each passage: its rank in each route, its name and what it says."""
    done = [result.route for result in run.results if result.status == "ok"]
    names = [result.route for result in results]
    titles = [cut(named(hit.passage), NAMES) for hit, _ in ranked]
    width = sum(max(2, len(name)) + 2 for name in names) + max(map(columns, titles)) + 2
    short = width + MIN_TEXT_COLUMNS > _room() and all(name in done for name in names)
    heads = [str(done.index(name) + 1) for name in names] if short else names
    rows = [
        (*(ranks.get(name, "-") for name in names), title, _snippet(hit, run.query.text))
        for title, (hit, ranks) in zip(titles, ranked, strict=True)
    ]
    what = "Rank of each passage by route" + (" (# as above)" if short else "")
    return [what, table((*heads, "passage", "what it says"), rows, right=range(len(names)))]


def _snippet(hit: Hit, question: str) -> str:
    """Return a passage's text from shortly before the first word of the question."""
    text = one_line(hit.passage.text)
    words = {word for word in _WORD.findall(question.lower()) if len(word) > 3}
    first = next((one.start() for one in _WORD.finditer(text) if one[0].lower() in words), 0)
    start = 0 if first <= AROUND else text.rfind(" ", 0, first - AROUND // 2) + 1
    return ("…" if start else "") + text[start:]


def _text(hit: Hit, named: Naming) -> list[str]:
    """Return a passage in full, line by line."""
    head = f"{one_line(hit.passage.doc_id)}  {one_line(named(hit.passage))}"
    return ["", head, *(f"  {one_line(line)}".rstrip() for line in hit.passage.text.strip().split("\n"))]


def _wrote(result: RouteResult) -> list[str]:
    """Texts that steps made of the question, and the answer."""
    from core.analysis.run_view import texts, top

    told = [
        f"  {span.name}: {one_line(text)}"
        for span in top(result)
        if span.kind == "LLM"
        for text in texts(span.output)
    ]
    if result.answer is not None:
        cited = f"  [{', '.join(map(one_line, result.citations))}]" if result.citations else ""
        told.append(f"  answer: {one_line(result.answer)}{cited}")
    if result.answer_error is not None:
        told.append(f"  no answer: {one_line(result.answer_error)}")
    return ["", f"{result.route}", *told] if told else []


def _room() -> int:
    return shutil.get_terminal_size((WIDTH, 24)).columns
