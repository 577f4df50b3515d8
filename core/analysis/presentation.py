"""A run in presentation mode: routes ordered by what they found, and a one-sentence summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.analysis.run_view import worked
from core.corpus.samples import samples
from core.domain.errors import shortened
from core.domain.rank_changes import ranks
from core.domain.relevance import relevant
from core.domain.types import RouteResult, Run
from core.store.playlists import PlaylistEntry

LONG = 120  # characters of the routes that a sentence names


@dataclass(frozen=True, slots=True)
class RouteFinds:
    """A route's labelled passages: the number in its top, and the best rank of any."""

    result: RouteResult
    in_top: int
    best: int | None


def found(run: Run, gold: Mapping[str, int], depth: int) -> list[RouteFinds]:
    """Return the routes with a ranking: most relevant passages in the top `depth` first, then by the best
    rank.
    """
    wanted = set(relevant(gold))
    rows = []
    for result in worked(run):
        at = sorted(rank for id, rank in ranks(result.hits).items() if id in wanted)
        rows.append(RouteFinds(result, sum(rank <= depth for rank in at), at[0] if at else None))
    return sorted(rows, key=lambda one: (-one.in_top, one.best or 10**9))


def headline(run: Run, gold: Mapping[str, int], depth: int) -> str:
    """Return a sentence on which route found most and which least; without labels, on how far the routes
    agree on the first passage.
    """
    if not relevant(gold):
        firsts = [result.hits[0].passage.id for result in worked(run) if result.hits]
        if not firsts:
            return "No route found a passage."
        return f"{len(firsts)} routes rank {len(set(firsts))} different passages first."
    rows = found(run, gold, depth)
    if not rows:
        return "No route has a ranking."
    of, best, worst = len(relevant(gold)), rows[0], rows[-1]
    if best.in_top == worst.in_top:
        return f"Every route has {best.in_top} of {of} relevant passages in its top {depth}."
    ahead, behind = (
        shortened(", ".join(row.result.title for row in rows if row.in_top == one.in_top), LONG)
        for one in (best, worst)
    )
    counts = f"{best.in_top} in {ahead}; {worst.in_top} in {behind}"
    return f"Relevant passages in the top {depth}, of {of}: {counts}."


def arranged(run: Run, gold: Mapping[str, int], depth: int) -> Run:
    """Return the run with its results in the order of `found`, if there are labels; those without a ranking
    last.
    """
    if not relevant(gold):
        return run
    order = {one.result.route: at for at, one in enumerate(found(run, gold, depth))}
    return replace(
        run, results=tuple(sorted(run.results, key=lambda result: order.get(result.route, len(order))))
    )


def sample_entries(corpus: str) -> tuple[PlaylistEntry, ...]:
    """Return the sample questions of a corpus as a playlist: the model texts of most are recorded."""
    return tuple(
        PlaylistEntry(one.query.text, corpus, history=one.query.history, note=one.shows)
        for one in samples(corpus)
    )
