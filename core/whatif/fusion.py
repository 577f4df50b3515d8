"""Fusion with other values: from the lists that a run keeps, by the functions that routes fuse with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeGuard

import numpy as np

from core.backends.fitted import FEATURES
from core.errors import BadInput
from core.steps.fitted import ordered, parts
from core.steps.fuse import Norm, linear, rrf
from core.steps.select import mmr, places, unpack
from core.types import Hit, Passage, Ranking, RouteResult, Scored, Span

Method = Literal["rrf", "linear", "fitted", "marginal"]
Changes = Mapping[str, Any]  # by what a knob tunes: "k", "weights.0", "alpha", "norm", "lam", "pool"
Shares = Mapping[str, tuple[float, ...]]  # by passage: what each list gives to its score, 0 if it has it not
EARLIER = "made by an earlier version, which did not keep what it chose by; run the question again"
PARTS = ("relevance", "likeness to one before")  # of an MMR score


@dataclass(frozen=True, slots=True)
class Fusion:
    """A step that fused lists or reordered one, with all it takes to do it again.

    `values` are its settings by what a knob tunes; `sources` the steps that made the lists, None for an empty
    one; `lack` why it cannot be done again, "" if it can. `pairs` is the likeness of the first passages of
    MMR's list, and `near` their cosines with the question.
    """

    span: Span
    method: Method
    values: Mapping[str, Any]
    lists: tuple[Ranking, ...] = ()
    sources: tuple[Span | None, ...] = ()
    near: tuple[float, ...] = ()
    pairs: tuple[int, ...] = ()
    lack: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a changed fusion makes of a route: its ranking, or None where later steps made that from the fused
    list; `stale` are the steps after it, which were not done again.
    """

    hits: Scored | None
    stale: tuple[Span, ...]


def fusions(result: RouteResult, others: Sequence[RouteResult] = ()) -> list[Fusion]:
    """The route's fusion steps in order. `others` are the run's results: early versions named the lists of a
    step that another route did by that route's steps alone.
    """
    found = [_read(span, result, others) for span in result.spans]
    return [_checked(fusion) for fusion in found if fusion is not None]


def recompute(fusion: Fusion, changes: Changes) -> Scored:
    """The fused ranking with `changes` over the step's settings; "pool" cuts each list before it is fused.

    BadInput for a setting that this step does not have, or a value that it does not take.
    """
    values = settings(fusion, changes)
    if fusion.method == "marginal":
        return _reordered(fusion, values)
    return tuple((hit.passage.id, hit.score) for hit in _fused(fusion, _cut(fusion, values), values))


def shares(fusion: Fusion, changes: Changes) -> Shares:
    """What each list gives to each passage's score, in the order of the lists: the sum, from the first on, is
    the score. Of MMR the two parts (see PARTS) of each chosen passage's score at the time it was chosen.
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
        {hit.passage.id: hit.score for hit in _one(fusion, ranking, weight, values)}
        for ranking, weight in zip(lists, weights, strict=True)
    ]
    ids = {id for part in parts for id in part}
    return {id: tuple(part.get(id, 0.0) for part in parts) for id in ids}


def outcome(result: RouteResult, fusion: Fusion, fused: Scored) -> Outcome:
    """What `fused` in place of the step's list makes of the route."""
    at = next((n for n, span in enumerate(result.spans) if span.id == fusion.span.id), len(result.spans))
    stale = tuple(span for span in result.spans[at + 1 :] if span.parent is None)
    final = tuple((hit.passage.id, hit.score) for hit in result.hits)
    made = fusion.span.hits or ()
    last = bool(final) and final == made[: len(final)] and all(span.hits is None for span in stale)
    return Outcome(fused[: len(final)] if last else None, stale)


def counterpart(result: RouteResult, fusion: Fusion, *, ranks: bool) -> Fusion | None:
    """The step of another run of the route that stands where `fusion` does: the same method over as many
    lists, and with `ranks` the one that makes the route's ranking; None where that run went another way.
    """
    like = [one for one in fusions(result) if one.method == fusion.method]
    like = [one for one in like if len(one.lists) == len(fusion.lists) and not one.lack]
    if ranks:
        like = [one for one in like if outcome(result, one, one.span.hits or ()).hits is not None]
    return like[0] if like else None


def settings(fusion: Fusion, changes: Changes) -> dict[str, Any]:
    """The step's settings with `changes` over them; BadInput for one that it does not have."""
    if fusion.lack:
        raise BadInput(f"“{fusion.span.name}” cannot be done again: {fusion.lack}")
    values = dict(fusion.values)
    for name, value in changes.items():
        if name == "alpha" and fusion.method == "linear" and len(fusion.lists) == 2:
            values |= {"weights.0": 1 - value, "weights.1": value}
        elif name in values or (name == "pool" and fusion.method != "marginal"):
            values[name] = value
        else:
            raise BadInput(f"“{fusion.span.name}” has no {name!r}; it has: {', '.join(values)}, pool")
    return values


def number(value: Any) -> TypeGuard[float]:
    """Whether a stored value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _read(span: Span, result: RouteResult, others: Sequence[RouteResult]) -> Fusion | None:
    """The step as a fusion by its shape, or None if it is none."""
    given = span.inputs
    if span.hits is None:
        return None
    if number(given.get("lam")) and _whole(given.get("k")) and _whole(given.get("pool")):
        return _mmr(span, result)
    named, weights = given.get("lists"), given.get("weights")
    rows = given.get("fitted")
    if isinstance(named, list) and named and _rows(rows, len(named)) and _whole(given.get("candidates")):
        times = {f"weights.{n}": 1.0 for n in range(len(named))}
        return _listed(span, "fitted", times, _sources(span, result, others))
    if not isinstance(named, list) or not named or "weights" not in given:
        return None
    values: dict[str, Any]
    if number(given.get("k")):
        method, values = "rrf", {"k": given["k"]}
    elif given.get("norm") in ("min_max", "dbsf"):
        method, values = "linear", {"norm": given["norm"]}
    else:
        return None
    if weights is not None and not (
        isinstance(weights, list) and len(weights) == len(named) and all(map(number, weights))
    ):
        return None
    values |= {f"weights.{n}": one for n, one in enumerate(weights or (1.0,) * len(named))}
    kind: Method = "rrf" if method == "rrf" else "linear"
    return _listed(span, kind, values, _sources(span, result, others))


def _listed(
    span: Span, method: Method, values: Mapping[str, Any], sources: tuple[Span | None, ...] | None
) -> Fusion:
    if sources is None:
        lack = "which lists it fused is not kept; run the question again"
        count = len(span.inputs["lists"])
        return Fusion(span, method, values, ((),) * count, (None,) * count, lack=lack)
    return Fusion(span, method, values, tuple(map(_ranking, sources)), sources)


def _mmr(span: Span, result: RouteResult) -> Fusion:
    given = span.inputs
    values = {name: given[name] for name in ("lam", "k", "pool")}
    named, near, pairs = given.get("lists"), given.get("near"), given.get("alike")
    sources = _by_id(named, result) if isinstance(named, list) and len(named) == 1 else None
    if sources is None or not _numbers(near) or not _numbers(pairs):
        return Fusion(span, "marginal", values, ((),), (None,), lack=EARLIER)
    around = tuple(int(pair) for pair in pairs)
    fusion = Fusion(span, "marginal", values, (_ranking(sources[0]),), sources, tuple(near), around)
    fits = len(near) <= len(fusion.lists[0]) and len(around) == len(near) * (len(near) - 1) // 2
    return fusion if fits else replace(fusion, lack="what it kept of its passages does not fit its list")


def _checked(fusion: Fusion) -> Fusion:
    """Only what gives the stored ranking again is trusted with other values."""
    if fusion.lack:
        return fusion
    try:
        same = recompute(fusion, {}) == fusion.span.hits
    except (BadInput, ArithmeticError):
        same = False
    return fusion if same else replace(fusion, lack="what is stored of its lists does not give its ranking")


def _sources(
    span: Span, result: RouteResult, others: Sequence[RouteResult]
) -> tuple[Span | None, ...] | None:
    """The steps that made the lists; None where that cannot be told."""
    found = _by_id(span.inputs["lists"], result)
    if found is not None or not span.shared_with:
        return found
    owner, _, number_ = span.shared_with.partition("#")
    theirs = next((other for other in others if other.route == owner), None)
    step = next((s for s in theirs.spans if str(s.id) == number_), None) if theirs else None
    named = step.inputs.get("lists") if step is not None else None
    if theirs is None or not isinstance(named, list) or len(named) != len(span.inputs["lists"]):
        return None
    lists = _by_id(named, theirs)
    if lists is None:
        return None
    # The same rankings stand under this route's own steps, which took them over in their turn.
    own = [s for s in result.spans if s.hits and s.id != span.id]
    return tuple(one and next((s for s in own if s.hits == one.hits), one) for one in lists)


def _by_id(named: Sequence[Any], result: RouteResult) -> tuple[Span | None, ...] | None:
    """The steps with these ids; an empty list has none. None where one is missing or is no id."""
    spans = {span.id: span for span in result.spans if span.hits is not None}
    if not all(one is None or (isinstance(one, int) and one in spans) for one in named):
        return None
    return tuple(None if one is None else spans[one] for one in named)


def _ranking(source: Span | None) -> Ranking:
    """A step's list as fusion takes it; only ids and scores matter to it."""
    hits = source.hits or () if source is not None else ()
    return tuple(Hit(Passage(id, "", "", ""), score) for id, score in hits)


def _cut(fusion: Fusion, values: Mapping[str, Any]) -> tuple[Ranking, ...]:
    pool = values.get("pool")
    return fusion.lists if pool is None else tuple(ranking[:pool] for ranking in fusion.lists)


def _fused(fusion: Fusion, lists: tuple[Ranking, ...], values: Mapping[str, Any]) -> Ranking:
    weights = _weights(values, len(lists))
    if fusion.method == "fitted":
        return ordered(lists, _fitted(fusion, lists, values))
    if fusion.method == "rrf":
        return rrf(lists, k=values["k"], weights=weights)
    norm: Norm = values["norm"]
    return linear(lists, weights=weights, norm=norm)


def _one(fusion: Fusion, ranking: Ranking, weight: float, values: Mapping[str, Any]) -> Ranking:
    """What one list alone gives: the same function over that list."""
    return _fused(fusion, (ranking,), {**values, "weights.0": weight})


def _fitted(fusion: Fusion, lists: tuple[Ranking, ...], values: Mapping[str, Any]) -> Shares:
    """The parts of fitted weights, each list's times what stands in for its weight: 1 as it was fitted."""
    times = _weights(values, len(lists))
    rows = [[one * by for one in row] for row, by in zip(fusion.span.inputs["fitted"], times, strict=True)]
    return parts(lists, rows, fusion.span.inputs["candidates"])


def _rows(value: Any, count: int) -> bool:
    """Whether a stored value has a row of fitted weights for each of so many lists."""
    return (
        isinstance(value, list)
        and len(value) == count
        and all(_numbers(row) and len(row) == len(FEATURES) for row in value)
    )


def _weights(values: Mapping[str, Any], count: int) -> tuple[float, ...]:
    return tuple(values[f"weights.{n}"] for n in range(count))


def _picks(fusion: Fusion, values: Mapping[str, Any]) -> tuple[Any, ...]:
    size = min(values["pool"], len(fusion.lists[0]))
    if size > len(fusion.near):
        raise BadInput(f"a pool of {size}: only what {len(fusion.near)} passages resemble is kept")
    alike = unpack(fusion.pairs, len(fusion.near))[:size, :size]
    by_place = fusion.span.inputs.get("relevance") == "rank"
    wanted = places(size) if by_place else np.asarray(fusion.near[:size], np.float64)
    return mmr(wanted, alike, values["lam"], values["k"])


def _reordered(fusion: Fusion, values: Mapping[str, Any]) -> Scored:
    ids = [hit.passage.id for hit in fusion.lists[0]]
    chosen = [ids[pick.row] for pick in _picks(fusion, values)]
    return tuple((id, 1 / rank) for rank, id in enumerate(dict.fromkeys((*chosen, *ids)), 1))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _numbers(value: Any) -> TypeGuard[list[float]]:
    return isinstance(value, list) and all(map(number, value))
