"""Recorded evidence of why a passage was left out: grades, cosines, sentences, feedback, summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from core.analysis.lineage import Lineage
from core.analysis.run_view import top
from core.domain.errors import BadInput, shortened
from core.domain.filters import Filter
from core.domain.outputs import (
    Decision,
    Embedding,
    Excerpts,
    Grading,
    Merging,
    Rewrite,
    Search,
    Selection,
    SentenceFilter,
)
from core.domain.types import RouteResult, Span

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus


Clause = tuple[Span, str]  # a step and what it did, without a full stop
NAMED = 4  # added terms that a sentence names


def low_grade(result: RouteResult, id: str) -> Clause | None:
    """Return the last grading that gave a passage less than its lower threshold."""
    for span, grading in reversed(_gradings(result)):
        grade = next((one.grade for one in grading.grades if one.id == id), None)
        if grade is not None and grade < grading.low:
            return span, f"graded {grade:.2f} by “{span.name}”, below {grading.low:.2f}"
    return None


def discarded(flow: Lineage, id: str) -> Clause | None:
    """Return the grading that discarded everything found, or this passage."""
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
    """Return the step that removed every sentence of a passage, or None if the prompt had it all the same."""
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


def drifted(flow: Lineage, believed: Span) -> tuple[Span, Span, str] | None:
    """Return the step that drew the question to the first passages of `believed`, the search that then was
    made, and what the step did, in words, or None if none did so on the way to the final ranking.
    """
    for step in flow.result.spans:
        if (did := _fed_back(step)) and any(link.span == believed.id for link in step.links):
            for search in flow.line:
                if isinstance(search.output, Search) and any(link.span == step.id for link in search.links):
                    return step, search, did
    return None


def _fed_back(step: Span) -> str:
    """Describe the effect of relevance feedback, or "" for other steps and if nothing was believed."""
    output = step.output
    if isinstance(output, Rewrite) and output.passages and output.added:
        more = len(output.added) - NAMED
        others = f" and {more} more" if more > 0 else ""
        terms = f"“{', '.join(output.added[:NAMED])}”{others}"
        return f"added {terms} from {_first(len(output.passages))}"
    if isinstance(output, Embedding) and output.feedback:
        return f"took {_first(len(output.feedback))} for relevant"
    return ""


def _first(count: int) -> str:
    return f"the first {count} passages" if count > 1 else "the first passage"


def first_pass(flow: Lineage, id: str) -> Span | None:
    """Return the search of codes on the way to the final ranking that did not find a passage."""
    searches = (span for span in flow.line if isinstance(span.output, Search) and span.output.codes)
    return next((span for span in searches if id not in flow.places(span)), None)


def by_summary(flow: Lineage, id: str) -> tuple[Span, int | None] | None:
    """Return the search that had a summary bring a passage, and its rank by its own vector if that is
    recorded.
    """
    for span in flow.line:
        if isinstance(span.output, Search) and span.output.alone and id in span.output.keys:
            return span, _alone(span.output, id)
    return None


def behind_summaries(flow: Lineage, id: str, depth: int) -> tuple[Span, str] | None:
    """Return the search in whose top `depth` a passage was by its own vector, but not with summaries, and
    what they did, in words.
    """
    for span in flow.line:
        output = span.output
        own = _alone(output, id) if isinstance(output, Search) else None
        now = flow.places(span).get(id)
        if not isinstance(output, Search) or own is None or own > depth or (now is not None and now <= depth):
            continue
        before = [hit[0] for hit in (span.hits or ())[: now - 1 if now is not None else None]]
        looked = before[: len(output.alone)]  # of more it is not recorded what brought them
        brought = sum(one in output.keys for one in looked)
        of = f"the {len(before)}" if len(before) == len(looked) else f"the first {len(looked)}"
        put = f"“{span.name}” has it at rank {now}" if now is not None else f"“{span.name}” left it out"
        return span, f"at rank {own} by its own vector; {put}: summaries brought {brought} of {of} before it"
    return None


def _alone(output: Search, id: str) -> int | None:
    return output.alone.index(id) + 1 if id in output.alone else None


def read_in_part(
    result: RouteResult, id: str, quotes: Mapping[str, Sequence[str]]
) -> tuple[Span | None, str, bool] | None:
    """Return what is read instead of a passage if that is not all of it, by the step that chose it, and
    whether it lacks labelled words that the passage has; `quotes` are those by document.
    """
    excerpt = result.basis.excerpts.get(id) if result.basis else None
    passage = next((hit.passage for hit in result.hits if hit.passage.id == id), None)
    if excerpt is None or passage is None or _plain(passage.text) in _plain(excerpt):
        return None
    own, read = _plain(passage.text), _plain(excerpt)
    known = [quote for quote in map(_plain, quotes.get(passage.doc_id, ())) if quote in own]
    lost = [quote for quote in known if quote not in read]
    words = f"what is read of it is an excerpt of {len(excerpt):,} characters in place of its"
    words = f"{words} {len(passage.text):,}"
    step, pieces = _read_by(result, id)
    left_out = f"; it leaves out “{lost[0]}”, which is labelled" if lost else ""
    return step, f"{words}{pieces}{left_out}", bool(lost)


def _read_by(result: RouteResult, id: str) -> tuple[Span | None, str]:
    """Return the step that chose what is read of a passage, and how many of its pieces were found, in
    words.
    """
    for span in reversed(result.spans):
        if isinstance(span.output, Merging):
            merged = next((one for one in span.output.passages if one.id == id and one.text), None)
            if merged is not None:
                were = "were" if merged.found > 1 else "was"
                return span, f", as {merged.found} of its {merged.pieces} pieces {were} found"
        if isinstance(span.output, Excerpts) and id in span.output.excerpts:
            return span, ""
    return None, ""


def _plain(text: str) -> str:
    return " ".join(text.split())


def abstained(result: RouteResult) -> Clause | None:
    """Return the decision of the route itself by which it gave no answer."""
    for span in reversed(top(result)):
        if result.abstained and isinstance(span.output, Decision) and span.output.decision == "abstain":
            return span, f"“{span.name}” decided to abstain: {span.output.why}"
    return None


def _gradings(result: RouteResult) -> list[tuple[Span, Grading]]:
    return [(span, span.output) for span in top(result) if isinstance(span.output, Grading)]


MAX_VALUE_CHARS = 60  # characters of a value that a sentence quotes
# For conditions and a passage's id those that it does not meet, each as a clause.
Unmet = Callable[[Sequence[Filter], str], list[str]]


def not_known(_where: Sequence[Filter], _id: str) -> list[str]:
    """Return [], as nothing is known without a corpus."""
    return []


def unmet_in(corpus: Corpus | None) -> Unmet:
    """Return the reader of the passages of `corpus`; nothing if it is not at hand, or no longer has a
    field.
    """
    if corpus is None:
        return not_known

    def unmet(where: Sequence[Filter], id: str) -> list[str]:
        try:
            row = corpus.row(id)
            failed = [one for one in where if (met := corpus.allowed([one])) is not None and not met[row]]
        except BadInput:
            return []
        clauses = []
        for one in failed:
            value = corpus.value(id, one.field)
            has = f"its document has no {one.field}"
            if value is not None:
                has = f"its {one.field} is “{shortened(value, MAX_VALUE_CHARS)}”"
            clauses.append(f"{one} ({has})")
        return clauses

    return unmet
