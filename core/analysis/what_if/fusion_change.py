"""A fusion before and after a change, as it is shown: what its lists are called, who moved, who gave what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.analysis.lineage import Lineage, PassedList
from core.analysis.searches import SearchInput, asked
from core.analysis.what_if.fusion import PARTS, ReplayedFusion, Shares
from core.domain.types import RouteResult, Scored

OWN = "a list made by the route's own code"


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One passage: its rank from 1 before and after, in each list, what each gives to its score, and that.

    None where it is not ranked; `shares` are empty where the score is not made of parts.
    """

    id: str
    before: int | None
    after: int | None
    places: tuple[int | None, ...]
    shares: tuple[float, ...]
    grade: int = 0

    @property
    def score(self) -> float:
        """Return the sum of the shares, in the order of the lists."""
        return sum(self.shares, 0.0)


def list_names(result: RouteResult, fusion: ReplayedFusion, question: str) -> tuple[str, ...]:
    """Return the names of the lists: by the step that made them, what it searched with if that is not the
    question, and the part that was taken; equal names are numbered.
    """
    if fusion.method == "marginal":
        return PARTS
    flow, texts = Lineage(result), asked(result)
    names = [_name(source, texts, question) or OWN for source in flow.sources(fusion.span)]
    return tuple(
        f"{name} ({names[: n + 1].count(name)})" if names.count(name) > 1 else name
        for n, name in enumerate(names)
    )


def _name(source: PassedList, texts: Mapping[int, SearchInput], question: str) -> str:
    """ "" for a list of unknown origin."""
    if source.span is None:
        return "" if source.size else "an empty list"
    one = texts.get(source.span.id)
    query = f": {one.words}" if one is not None and one.text != question else ""
    return f"{source.span.name}{query}{'' if source.whole else f', {source.part}'}"


def rows(
    fusion: ReplayedFusion,
    before: Scored,
    after: Scored,
    shares: Shares,
    gold: Mapping[str, int],
    *,
    limit: int,
    also: Sequence[str] = (),
) -> list[ShareRow]:
    """Return the first `limit` passages after the change, then those of `also` that are ranked before or
    after.
    """
    was, now = places(before), places(after)
    lists = [places(tuple((hit.passage.id, hit.score) for hit in ranking)) for ranking in fusion.lists]
    ids = [id for id, _ in after[:limit]]
    ids += [id for id in dict.fromkeys(also) if id not in ids and (id in was or id in now)]
    return [
        ShareRow(
            id,
            was.get(id),
            now.get(id),
            tuple(one.get(id) for one in lists),
            shares.get(id, ()),
            max(0, gold.get(id, 0)),
        )
        for id in ids
    ]


def places(ranking: Scored) -> dict[str, int]:
    """Return each passage's rank from 1. Of repeats only the first counts, and later passages move up as in a
    fusion.
    """
    return {id: rank for rank, id in enumerate(dict.fromkeys(id for id, _ in ranking), 1)}


def given(rows: Sequence[ShareRow], names: Sequence[str]) -> list[tuple[str, float]]:
    """Return the share of each list in the scores of `rows`, 0 to 1; nothing if there is no score."""
    totals = [sum(row.shares[n] for row in rows if row.shares) for n in range(len(names))]
    whole = sum(totals)
    return [(name, part / whole) for name, part in zip(names, totals, strict=True)] if whole > 0 else []


def moved(before: Scored, after: Scored, gold: Mapping[str, int]) -> list[tuple[str, int | None, int | None]]:
    """Return the gold passages, best grade first: (id, rank before, rank after)."""
    was, now = places(before), places(after)
    ids = sorted((id for id, grade in gold.items() if grade > 0), key=lambda id: (-gold[id], id))
    return [(id, was.get(id), now.get(id)) for id in ids]


def arrow(before: int | None, after: int | None) -> str:
    """Return a rank before and after in words: "7 → 3", "3, as before", "not ranked"."""
    if before == after:
        return "not ranked" if before is None else f"{before}, as before"
    return f"{before or 'not ranked'} → {after or 'gone'}"
