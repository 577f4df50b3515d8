"""What spans record about why a passage was left out: grades, cosines, sentences."""

from __future__ import annotations

from core.analysis.lineage import Lineage
from core.analysis.run_view import top
from core.domain.outputs import Excerpts, Grading, Selection, SentenceFilter
from core.domain.types import RouteResult, Span

Clause = tuple[Span, str]  # a step and what it did, without a full stop


def low_grade(result: RouteResult, id: str) -> Clause | None:
    """The last grading that gave a passage less than its lower threshold."""
    for span, grading in reversed(_gradings(result)):
        grade = next((one.grade for one in grading.grades if one.id == id), None)
        if grade is not None and grade < grading.low:
            return span, f"graded {grade:.2f} by “{span.name}”, below {grading.low:.2f}"
    return None


def discarded(flow: Lineage, id: str) -> Clause | None:
    """The grading that discarded everything found, or this passage."""
    low = low_grade(flow.result, id)
    for span, grading in reversed(_gradings(flow.result)):
        best = max((one.grade for one in grading.grades if one.grade is not None), default=None)
        given = [source.span for source in flow.sources(span) if source.span is not None]
        given_up = given and not any(flow.used(one) is not False for one in given)
        if given_up and grading.round is None and (best is None or best < grading.low):
            best_is = "" if best is None else f": its best grade, {best:.2f}, is below {grading.low:.2f}"
            grade_of_it = low[1] if low else f"“{span.name}” did not grade it"
            return span, f"{grade_of_it}, and the route discarded all results{'' if low else best_is}"
    return (low[0], f"{low[1]}, and the route dropped it") if low else None


def compressed(result: RouteResult, id: str) -> Clause | None:
    """The step that removed every sentence of a passage; None where the prompt had it all the same."""
    shortened = [span.output.excerpts for span in result.spans if isinstance(span.output, Excerpts)]
    if any(id in excerpts for excerpts in (*shortened, result.basis.excerpts if result.basis else {})):
        return None
    for span in result.spans:
        found = span.output
        if isinstance(found, Selection) and found.method == "floor" and found.floor is not None:
            cosine = found.cosines.get(id)
            if cosine is not None and cosine < found.floor:
                return span, (f"“{span.name}” dropped it: cosine {cosine:.2f}, below {found.floor:.2f}")
    for span in top(result):
        if isinstance(span.output, SentenceFilter):
            pieces = [piece for piece in span.output.sentences if piece.id == id]
            if pieces and not any(piece.kept for piece in pieces):
                return span, f"“{span.name}” removed all {len(pieces)} of its sentences"
    return None


def _gradings(result: RouteResult) -> list[tuple[Span, Grading]]:
    return [(span, span.output) for span in top(result) if isinstance(span.output, Grading)]
