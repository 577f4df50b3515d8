"""Fusion with other values: from the lists that a run keeps, by the functions that routes fuse with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from core.analysis.lineage import Lineage, PassedList
from core.analysis.searches import SearchInput, asked
from core.domain.errors import BadInput
from core.domain.fusion import Norm, linear, rrf
from core.domain.outputs import Fusion as Fused
from core.domain.outputs import Selection
from core.domain.types import Hit, Passage, Ranking, RouteResult, Scored, Span
from core.steps.fitted_fusion import ordered, parts
from core.steps.select import mmr, places, unpack

Method = Literal["rrf", "linear", "fitted", "marginal"]
SETTINGS: Mapping[Method, tuple[str, ...]] = {  # besides the weights of the lists
    "rrf": ("k",),
    "linear": ("norm",),
    "fitted": (),
    "marginal": ("lam", "k", "pool"),
}
Changes = Mapping[str, Any]  # by setting: "k", "weights.0", "norm", "lam", "pool"
Shares = Mapping[str, tuple[float, ...]]  # by passage: what each list gives to its score, 0 if it has it not
BY_HAND = "{} was made by the route's own code, not by a step, so the run does not store it"
DEEP = "its selection scores are not stored: the list was very long"
OTHER = "its stored lists do not reproduce its ranking"
OWN = "a list made by the route's own code"
PARTS = ("relevance", "similarity to selected passages")  # of an MMR score


@dataclass(frozen=True, slots=True)
class ReplayedFusion:
    """A step that fused lists or reordered one, with all it takes to do it again.

    `values` are its settings by name ("k", "weights.1"); `sources` say where the lists are from; `lack` why
    it cannot be done again, "" if it can. `pairs` is the likeness of the first passages of MMR's list, and
    `near` their cosines with the question.
    """

    span: Span
    method: Method
    values: Mapping[str, Any]
    lists: tuple[Ranking, ...] = ()
    sources: tuple[PassedList, ...] = ()
    near: tuple[float, ...] = ()
    pairs: tuple[int, ...] = ()
    lack: str = ""


@dataclass(frozen=True, slots=True)
class FusionOutcome:
    """The effect of a changed fusion on a route: its ranking, or None if later steps derived the ranking from
    the fused list. `stale` are the later steps, which were not repeated.
    """

    hits: Scored | None
    stale: tuple[Span, ...]


def fusions(result: RouteResult) -> list[ReplayedFusion]:
    """Return the route's steps that fused lists by rank, score or fitted weights, or chose by MMR, in
    order.
    """
    flow = Lineage(result)
    found = [_read(span, flow) for span in flow.lists]
    return [fusion for fusion in found if fusion is not None]


def recompute(fusion: ReplayedFusion, changes: Changes) -> Scored:
    """Return the fused ranking with `changes` over the step's settings; "pool" cuts each list before it is
    fused.

    BadInput for a setting that this step does not have, or a value that it does not take.
    """
    values = settings(fusion, changes)
    if fusion.method == "marginal":
        ids = [hit.passage.id for hit in fusion.lists[0]]
        chosen = [ids[pick.row] for pick in _picks(fusion, values)]
        return tuple((id, 1 / rank) for rank, id in enumerate(dict.fromkeys((*chosen, *ids)), 1))
    return tuple((hit.passage.id, hit.score) for hit in _fused(fusion, _cut(fusion, values), values))


def shares(fusion: ReplayedFusion, changes: Changes) -> Shares:
    """Return the share of each list in each passage's score, in the order of the lists: the sum, from the
    first on, is the score. Of MMR the two parts (see PARTS) of each chosen passage's score at the time it was
    chosen.
    """
    values = settings(fusion, changes)
    if fusion.method == "marginal":
        lam = values["lam"]
        return {
            fusion.lists[0][pick.row].passage.id: (lam * pick.relevance, -(1 - lam) * pick.similarity)
            for pick in _picks(fusion, values)
        }
    lists = _cut(fusion, values)
    if fusion.method == "fitted":
        return _fitted(fusion, lists, values)
    weights = _weights(values, len(lists)) or (1.0,) * len(lists)
    parts = [
        {hit.passage.id: hit.score for hit in _fused(fusion, (ranking,), {**values, "weights.0": weight})}
        for ranking, weight in zip(lists, weights, strict=True)
    ]
    ids = {id for part in parts for id in part}
    return {id: tuple(part.get(id, 0.0) for part in parts) for id in ids}


def outcome(result: RouteResult, fusion: ReplayedFusion, fused: Scored) -> FusionOutcome:
    """Return the outcome of the route with `fused` instead of the step's list."""
    at = next((n for n, span in enumerate(result.spans) if span.id == fusion.span.id), len(result.spans))
    stale = tuple(span for span in result.spans[at + 1 :] if span.parent is None)
    origin = result.origin
    if origin is None or origin.span != fusion.span.id:
        return FusionOutcome(None, stale)
    return FusionOutcome(fused[origin.start : origin.start + origin.size], stale)


def counterpart(result: RouteResult, fusion: ReplayedFusion, *, ranks: bool) -> ReplayedFusion | None:
    """Return the step of another run of the route that corresponds to `fusion`: the first of its name over as
    many lists, and with `ranks` the one that makes the route's ranking; None if that run has no such step.
    """
    like = [one for one in fusions(result) if one.span.name == fusion.span.name and not one.lack]
    like = [one for one in like if len(one.lists) == len(fusion.lists)]
    if ranks:
        like = [one for one in like if outcome(result, one, one.span.hits or ()).hits is not None]
    return like[0] if like else None


def settings(fusion: ReplayedFusion, changes: Changes) -> dict[str, Any]:
    """Return the step's settings with `changes` over them. Raises BadInput for one that it does not have."""
    if fusion.lack:
        raise BadInput(f"“{fusion.span.name}” cannot be recomputed: {fusion.lack}")
    values = dict(fusion.values)
    for name, value in changes.items():
        if name not in values and (name != "pool" or fusion.method == "marginal"):
            raise BadInput(f"“{fusion.span.name}” has no {name!r}; it has: {', '.join(values)}, pool")
        values[name] = value
    return values


def _read(span: Span, flow: Lineage) -> ReplayedFusion | None:
    """Return the step as a fusion, or None if it is not a fusion that can be repeated with other values."""
    output, args = span.output, span.args
    method: Method = "marginal"
    if isinstance(output, Fused) and output.method in ("rrf", "linear", "fitted"):
        method = cast("Method", output.method)
    elif not (isinstance(output, Selection) and output.method == "mmr"):
        return None
    sources = flow.sources(span)
    lists = tuple(map(_ranking, sources))
    values = {name: args.get(name) for name in SETTINGS[method]}
    if method != "marginal":
        given = args.get("weights") if method != "fitted" else None
        weights = given if isinstance(given, list) else [1.0] * len(lists)
        values |= {f"weights.{n}": weight for n, weight in enumerate(weights)}
    by_hand = next((n for n, source in enumerate(sources, 1) if source.unknown), None)
    called = "its list" if len(sources) == 1 else f"list {by_hand}"
    lack = BY_HAND.format(called) if by_hand else ""
    near, pairs = (output.near, output.alike) if isinstance(output, Selection) else ((), ())
    return _checked(ReplayedFusion(span, method, values, lists, sources, near, pairs, lack))


def _checked(fusion: ReplayedFusion) -> ReplayedFusion:
    """Only what gives the stored ranking again is trusted with other values: a run may come from anywhere."""
    if fusion.lack:
        return fusion
    if fusion.method == "marginal" and fusion.span.hits and not fusion.near:
        return replace(fusion, lack=DEEP)
    try:
        same = recompute(fusion, {}) == fusion.span.hits
    except (BadInput, ArithmeticError, LookupError, TypeError, ValueError):
        same = False
    return fusion if same else replace(fusion, lack=OTHER)


def _ranking(source: PassedList) -> Ranking:
    """Return a list as fusion takes it; only ids and scores matter to it."""
    hits = source.span.hits or () if source.span is not None else ()
    part = hits[source.start : source.start + source.size]
    return tuple(Hit(Passage(id, "", "", ""), score) for id, score in part)


def _cut(fusion: ReplayedFusion, values: Mapping[str, Any]) -> tuple[Ranking, ...]:
    pool = values.get("pool")
    return fusion.lists if pool is None else tuple(ranking[:pool] for ranking in fusion.lists)


def _fused(fusion: ReplayedFusion, lists: tuple[Ranking, ...], values: Mapping[str, Any]) -> Ranking:
    weights = _weights(values, len(lists))
    if fusion.method == "fitted":
        return ordered(lists, _fitted(fusion, lists, values))
    if fusion.method == "rrf":
        return rrf(lists, k=values["k"], weights=weights)
    norm: Norm = values["norm"]
    return linear(lists, weights=weights, norm=norm)


def _fitted(fusion: ReplayedFusion, lists: tuple[Ranking, ...], values: Mapping[str, Any]) -> Shares:
    """Return the parts of fitted weights, each list's times what stands in for its weight: 1 as it was
    fitted.
    """
    times = _weights(values, len(lists))
    rows = [[one * by for one in row] for row, by in zip(fusion.span.args["fitted"], times, strict=True)]
    return parts(lists, rows, fusion.span.args["candidates"])


def _weights(values: Mapping[str, Any], count: int) -> tuple[float, ...]:
    return tuple(values[f"weights.{n}"] for n in range(count))


def _picks(fusion: ReplayedFusion, values: Mapping[str, Any]) -> tuple[Any, ...]:
    size = min(values["pool"], len(fusion.lists[0]))
    if size > len(fusion.near):
        raise BadInput(f"a pool of {size}: the run stores similarities for {len(fusion.near)} passages only")
    alike = unpack(fusion.pairs, len(fusion.near))[:size, :size]
    by_place = fusion.span.args.get("relevance") == "rank"
    wanted = places(size) if by_place else np.asarray(fusion.near[:size], np.float64)
    return mmr(wanted, alike, values["lam"], values["k"])


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
    names = [_called(source, texts, question) for source in flow.sources(fusion.span)]
    return tuple(
        f"{name} ({names[: n + 1].count(name)})" if names.count(name) > 1 else name
        for n, name in enumerate(names)
    )


def _called(source: PassedList, texts: Mapping[int, SearchInput], question: str) -> str:
    if source.span is None:
        return OWN if source.size else "an empty list"
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
    was, now = ranks_in(before), ranks_in(after)
    lists = [ranks_in(tuple((hit.passage.id, hit.score) for hit in ranking)) for ranking in fusion.lists]
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


def ranks_in(ranking: Scored) -> dict[str, int]:
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
    was, now = ranks_in(before), ranks_in(after)
    ids = sorted((id for id, grade in gold.items() if grade > 0), key=lambda id: (-gold[id], id))
    return [(id, was.get(id), now.get(id)) for id in ids]


def arrow(before: int | None, after: int | None) -> str:
    """Return a rank before and after in words: "7 → 3", "3, as before", "not ranked"."""
    if before == after:
        return "not ranked" if before is None else f"{before}, as before"
    return f"{before or 'not ranked'} → {after or 'gone'}"
