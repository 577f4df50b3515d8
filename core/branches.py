"""The tree of segments that a model wrote and judged: scores, the beam, and ranking it anew. Pure.

A tree is plain JSON as a span keeps it: {"branches": [{"passage": id, "text", "relevance": p or None,
"support": {"fully", "partially", "no"} or None, "utility": e or None, "likelihood": p, "score": s,
"chosen": bool, "parent": index or None, "depth": n from 1, "ended": str}], "weights": {"relevance",
"support", "utility"}, "beam": n, "segments": n}. A parent stands before its children.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.types import RouteResult, Run, Span

WEIGHTS = {"relevance": 1.0, "support": 1.0, "utility": 0.5}  # arXiv:2310.11511, section 4.3
GOES_ON: Final = "retrieve"  # `ended` of a segment after which the model asked for more passages


def support_of(given: Mapping[str, float] | None) -> float | None:
    """P(fully) + P(partially) / 2, from 0 to 1; None where it was not judged.

    Source: Asai et al. 2023, arXiv:2310.11511, section 3.3 (critique scores) and appendix A.3.
    """
    return None if given is None else given["fully"] + 0.5 * given["partially"]


def score_of(branch: Mapping[str, Any], weights: Mapping[str, float]) -> float:
    """A segment's likelihood plus its weighted critique scores; one that was not given adds nothing.

    Source: Asai et al. 2023, section 3.3, equations 3 and 4; the likelihood is normalised by length, as in
    the released decoder.
    """
    judged = {
        "relevance": branch.get("relevance"),
        "support": support_of(branch.get("support")),
        "utility": branch.get("utility"),
    }
    adds = sum(weights.get(name, 0.0) * (value or 0.0) for name, value in judged.items())
    return float(branch.get("likelihood") or 0.0) + adds


def path_to(branches: Sequence[Mapping[str, Any]], at: int | None) -> list[int]:
    """The indexes from the first segment to `at`; none for None."""
    path: list[int] = []
    while at is not None:
        path.append(at)
        at = branches[at].get("parent")
    return path[::-1]


@dataclass(frozen=True, slots=True)
class Ranked:
    """What a beam makes of a tree."""

    paths: tuple[float, ...]  # by each segment the mean score of the path that ends with it
    kept: tuple[int, ...]  # the last segments of the paths kept, best path first
    open: tuple[int, ...]  # those of them after which the model asked for more, and nothing was written yet


def ranked(
    branches: Sequence[Mapping[str, Any]], scores: Sequence[float], beam: int, segments: int
) -> Ranked:
    """Keep the `beam` best paths at each depth, ended ones among them, down to `segments`; ties go to the
    segment that was written first.

    A path scores the mean of its segments, so that paths of different length compare. The released decoder
    multiplies, by which two bad segments (scores below 0) make a good path.
    """
    paths: list[float] = []
    children: dict[int | None, list[int]] = {}
    for at, branch in enumerate(branches):
        path = path_to(branches, at)
        paths.append(sum(scores[step] for step in path) / len(path))
        children.setdefault(branch.get("parent"), []).append(at)
    kept: list[int] = []
    grown = children.get(None, [])
    while grown:
        kept = sorted([*kept, *grown], key=lambda at: (-paths[at], at))[:beam]
        going = [at for at in kept if at in children and branches[at]["depth"] < segments]
        grown = [child for at in going for child in children[at]]
        kept = [at for at in kept if at not in going]
    stopped = [at for at in kept if branches[at].get("ended") == GOES_ON and branches[at]["depth"] < segments]
    return Ranked(tuple(paths), tuple(kept), tuple(stopped))


def rescore(tree: Mapping[str, Any], weights: Mapping[str, float]) -> dict[str, Any]:
    """`tree` as `weights` rank it: scores, what is chosen, and "open".

    Only what was explored is ranked: where these weights would have kept a segment that the run dropped and
    that asked for more passages, its path ends there, and its index is in "open". With none in "open" a new
    run with these weights chooses the same, if the model writes the same.
    """
    branches = tree["branches"]
    scores = [score_of(branch, weights) for branch in branches]
    deepest = max((branch["depth"] for branch in branches), default=1)
    result = ranked(branches, scores, tree.get("beam") or len(branches), tree.get("segments") or deepest)
    chosen = set(path_to(branches, result.kept[0])) if result.kept else set()
    anew = [
        {**branch, "score": score, "path": path, "chosen": at in chosen}
        for at, (branch, score, path) in enumerate(zip(branches, scores, result.paths, strict=True))
    ]
    return {**tree, "branches": anew, "weights": dict(weights), "open": list(result.open)}


def trees(run: Run) -> list[tuple[RouteResult, Span]]:
    """The steps that kept a tree that can be read, with their routes."""
    return [
        (result, span)
        for result in run.results
        for span in result.spans
        if isinstance(span.output, Mapping) and _readable(span.output.get("branches"))
    ]


def in_order(given: list[Mapping[str, Any]]) -> list[tuple[int, Mapping[str, Any]]]:
    """Each segment before those that go on from it, the best score first among siblings."""
    children: dict[int | None, list[int]] = {}
    for at, branch in enumerate(given):
        children.setdefault(branch.get("parent"), []).append(at)
    order: list[tuple[int, Mapping[str, Any]]] = []
    waiting: list[int | None] = [None]
    while waiting:
        here = waiting.pop()
        if here is not None:
            order.append((here, given[here]))
        below = sorted(children.get(here, ()), key=lambda one: (_number(given[one].get("score")), -one))
        waiting += below
    return order


def scorable(tree: Mapping[str, Any]) -> bool:
    """Whether all that scores are made of is there in its form; a stored run may come from anywhere."""
    limits = (tree.get("beam"), tree.get("segments"))
    return all(limit is None or (isinstance(limit, int) and limit > 0) for limit in limits) and all(
        all(branch.get(name) is None or is_number(branch[name]) for name in ("relevance", "utility"))
        and is_number(branch.get("likelihood"))
        and (branch.get("support") is None or support_told(branch["support"]) is not None)
        for branch in tree["branches"]
    )


def support_told(given: Any) -> float | None:
    """As `support_of`, from a stored run; None for what has not its form."""
    if not isinstance(given, Mapping) or not all(is_number(given.get(k)) for k in ("fully", "partially")):
        return None
    return support_of(given)


def _readable(given: Any) -> bool:
    """Whether these are branches whose places make a tree: a parent stands before its children."""
    return (
        isinstance(given, list)
        and bool(given)
        and all(
            isinstance(branch, Mapping)
            and isinstance(branch.get("depth"), int)
            and (branch.get("parent") is None or branch["parent"] in range(at))
            for at, branch in enumerate(given)
        )
    )


def _number(value: Any) -> float:
    return float(value) if is_number(value) else float("-inf")


def is_number(value: Any) -> bool:
    """Whether a JSON value is one."""
    return isinstance(value, int | float) and not isinstance(value, bool)
