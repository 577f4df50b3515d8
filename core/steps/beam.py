"""The tree of segments that a model wrote and judged: scores, the beam, and ranking the tree again with other
weights. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from core.domain.outputs import Segment, SegmentTree
from core.domain.types import RouteResult, Run, Span

WEIGHTS = {"relevance": 1.0, "support": 1.0, "utility": 0.5}  # arXiv:2310.11511, section 4.3
GOES_ON: Final = "retrieve"  # `ended` of a segment after which the model asked for more passages


def support_of(given: Mapping[str, float] | None) -> float | None:
    """Return P(fully) + P(partially) / 2, from 0 to 1, or None if support was not judged.

    Source: Asai et al. 2023, arXiv:2310.11511, section 3.3 (critique scores) and appendix A.3.
    """
    return None if given is None else given.get("fully", 0.0) + 0.5 * given.get("partially", 0.0)


def score_of(segment: Segment, weights: Mapping[str, float]) -> float:
    """Add a segment's weighted critique scores to its likelihood; a missing score adds nothing.

    Source: Asai et al. 2023, section 3.3, equations 3 and 4; the likelihood is normalised by length, as in
    the released decoder.
    """
    judged = {
        "relevance": segment.relevance,
        "support": support_of(segment.support),
        "utility": segment.utility,
    }
    adds = sum(weights.get(name, 0.0) * (value or 0.0) for name, value in judged.items())
    return (segment.likelihood or 0.0) + adds


def path_to(segments: Sequence[Segment], at: int | None) -> list[int]:
    """Return the indexes from the first segment to `at`, or [] for None. A parent precedes its children."""
    path: list[int] = []
    while at is not None:
        path.append(at)
        parent = segments[at].parent
        at = parent if parent is None or parent < at else None  # an imported tree may go round in a circle
    return path[::-1]


@dataclass(frozen=True, slots=True)
class RankedTree:
    """The result of ranking a tree with a beam."""

    paths: tuple[float, ...]  # for each segment, the mean score of the path that ends with it
    kept: tuple[int, ...]  # the last segments of the paths kept, best path first
    # the segments in `kept` after which the model asked for more and nothing was written yet
    open: tuple[int, ...]


def ranked(segments: Sequence[Segment], scores: Sequence[float], beam: int, depth: int) -> RankedTree:
    """Keep the `beam` best paths at each depth, ended ones among them, down to `depth`; ties go to the
    segment that was written first.

    A path scores the mean of its segments, so that paths of different length compare. The released decoder
    multiplies, by which two bad segments (scores below 0) make a good path.
    """
    paths: list[float] = []
    children: dict[int | None, list[int]] = {}
    for at, segment in enumerate(segments):
        path = path_to(segments, at)
        paths.append(sum(scores[step] for step in path) / len(path))
        children.setdefault(segment.parent, []).append(at)
    kept: list[int] = []
    grown = children.get(None, [])
    while grown:
        kept = sorted([*kept, *grown], key=lambda at: (-paths[at], at))[:beam]
        going = [at for at in kept if at in children and segments[at].depth < depth]
        grown = [child for at in going for child in children[at]]
        kept = [at for at in kept if at not in going]
    stopped = [at for at in kept if segments[at].ended == GOES_ON and segments[at].depth < depth]
    return RankedTree(tuple(paths), tuple(kept), tuple(stopped))


def judged_tree(
    segments: Sequence[Segment], weights: Mapping[str, float], beam: int, depth: int
) -> tuple[tuple[Segment, ...], RankedTree]:
    """Score the segments and their paths and mark the chosen path. Return the segments and the beam's
    result.
    """
    scores = [score_of(segment, weights) for segment in segments]
    result = ranked(segments, scores, beam, depth)
    chosen = set(path_to(segments, result.kept[0])) if result.kept else set()
    anew = tuple(
        replace(segment, score=score, path=path, chosen=at in chosen)
        for at, (segment, score, path) in enumerate(zip(segments, scores, result.paths, strict=True))
    )
    return anew, result


def rescore(tree: SegmentTree, weights: Mapping[str, float]) -> tuple[SegmentTree, tuple[int, ...]]:
    """`tree` as `weights` rank it, and what is open.

    Only what was explored is ranked: where these weights would have kept a segment that the run dropped and
    that asked for more passages, its path ends there, and its index is among the open ones. With none a new
    run with these weights chooses the same, if the model writes the same.
    """
    anew, result = judged_tree(tree.branches, weights, tree.beam, tree.segments)
    return replace(tree, branches=anew, weights=dict(weights)), result.open


def trees(run: Run) -> list[tuple[RouteResult, Span, SegmentTree]]:
    """Return (route result, span, tree) for each segment tree of a run."""
    return [
        (result, span, span.output)
        for result in run.results
        for span in result.spans
        if isinstance(span.output, SegmentTree) and span.output.branches
    ]


def in_order(segments: Sequence[Segment]) -> list[tuple[int, Segment]]:
    """Each segment before those that go on from it, the best score first among siblings."""
    children: dict[int | None, list[int]] = {}
    for at, segment in enumerate(segments):
        children.setdefault(segment.parent, []).append(at)
    order: list[tuple[int, Segment]] = []
    waiting: list[int | None] = [None]
    while waiting:
        here = waiting.pop()
        if here is not None:
            order.append((here, segments[here]))
        waiting += sorted(children.get(here, ()), key=lambda one: (_score(segments[one]), -one))
    return order


def _score(segment: Segment) -> float:
    return float("-inf") if segment.score is None else segment.score
