"""A passage's path through a route: its rank after every step, and the step that lost it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from core.analysis.lineage import Lineage, LossPoint, PassedList, is_search
from core.analysis.loss_evidence import (
    Unmet,
    abstained,
    behind_summaries,
    by_summary,
    compressed,
    discarded,
    drifted,
    first_pass,
    low_grade,
    not_known,
    read_in_part,
)
from core.analysis.run_view import top
from core.analysis.searches import asked
from core.domain.outputs import (
    Decision,
    DraftChoice,
    External,
    FiltersRead,
    Fusion,
    Inserted,
    Rerank,
    Rewrite,
    ScoreCut,
    Search,
    Selection,
    Written,
)
from core.domain.types import RouteResult, Span

Kind = Literal[
    "found",
    "not used",
    "found too low",
    "never retrieved",
    "removed by a filter",
    "list not used",
    "fused away",
    "reranked away",
    "walked past",
    "dropped by grade",
    "near-duplicate",
    "compressed out",
    "put behind",
    "cut by the route",
    "dropped",
    "found, not opened",
    "not searched",
    "not recorded",
    "no ranking",
    "brought by a summary",
    "behind summaries",
    "read in part",
    "labelled words left out",
    "query drift",
    "lost in the first pass",
    "displaced",
    "cut at the score drop",
    "not read",
    "damaged in reading",
    "split",
]
NEEDS_OTHER_SEARCH = {
    "web/": "a web search",
    "memory/": "a search of the conversation",
    "sql/": "a database query",
}
SEVERAL = 4  # lists that a sentence names
UNKNOWN = "so its trace cannot show where the passage was lost"


@dataclass(frozen=True, slots=True)
class Stage:
    """A passage's rank in the list of one step."""

    span: Span
    rank: int | None  # None if it is not in the list
    size: int
    score: float | None
    # whether the final ranking was made from this list; None if the trace does not record it
    used: bool | None


@dataclass(frozen=True, slots=True)
class LossEvidence:
    """A passage's outcome: `rank` in the final ranking, the `step` that lost it (None if no step did), `was`,
    its rank before that step, and a sentence.
    """

    kind: Kind
    rank: int | None
    words: str
    step: Span | None = None
    was: int | None = None


@dataclass(frozen=True, slots=True)
class _TooLate:
    """A passage at rank `was` in `before`, below the part of the list that `step` read."""

    kind: Kind
    step: Span
    before: Span
    was: int
    words: str


class PassageTrace:
    """One route's stages and fates; what does not depend on the passage is read once. `quotes` are the
    labelled words of the question by document, where they are known.
    """

    def __init__(
        self,
        result: RouteResult,
        quotes: Mapping[str, Sequence[str]] | None = None,
        unmet: Unmet = not_known,
        before: Mapping[str, tuple[Kind, str]] | None = None,
    ) -> None:
        """Follow passages through `result`. `unmet` returns the conditions of a search that a passage does
        not meet. `before` maps ids of labels lost before indexing to the kind of loss and its explanation.
        """
        self._before = before or {}
        self.result, self._quotes, self._unmet = result, quotes or {}, unmet
        self.flow = Lineage(result)
        self._asked = {id: one.words for id, one in asked(result).items()}

    def stages(self, id: str) -> list[Stage]:
        """Return the passage's rank and score in every step with a list, in order."""
        found = []
        for span in self.flow.lists:
            rank = self.flow.places(span).get(id)
            hits = span.hits or ()
            score = hits[rank - 1][1] if rank is not None and rank <= len(hits) else None
            found.append(Stage(span, rank, len(hits), score, self.flow.used(span)))
        return found

    def fate(self, id: str, depth: int) -> LossEvidence:
        """Return the fate of passage `id` where the first `depth` of the ranking count."""
        result, rank = self.result, self.flow.final.get(id)
        if id in self._before and self._before[id][0] != "split":
            kind, words = self._before[id]
            return LossEvidence(kind, None, words)
        if result.status != "ok":
            return LossEvidence("no ranking", None, self._trouble(id), _failed(result))
        if rank is not None and rank <= depth:
            return self._in_top(id, rank, depth)
        return self._lost(id, rank, depth)

    @cached_property
    def shown(self) -> tuple[tuple[str, ...], Span] | None:
        """Return the passages in the prompt of the answer, and the step that wrote it."""
        spans = {span.id: span for span in self.result.spans}
        wrote = spans.get(self.result.answer_span or 0)
        if wrote is not None and isinstance(wrote.output, DraftChoice):
            draft = f"drafts[{wrote.output.kept - 1}]"
            wrote = next((spans.get(link.span or 0) for link in wrote.links if link.arg == draft), None)
        if wrote is None or not isinstance(wrote.output, Written) or not wrote.output.shown:
            return None
        return wrote.output.shown, wrote

    def called(self, span: Span) -> str:
        """Return a step's name for a sentence, with its text if several steps have that name."""
        alike = sum(other.name == span.name for other in self.flow.lists) > 1
        text = self.asked(span)
        return f"“{span.name}”" + (f" for {text}" if alike and text else "")

    def asked(self, span: Span) -> str | None:
        """Describe the text a search used."""
        return self._asked.get(span.id)

    # In the top.

    def _in_top(self, id: str, rank: int, depth: int) -> LossEvidence:
        at = f"At rank {rank}"
        if self.shown is None:
            return self._unread(id, rank, depth)
        shown, writer = self.shown
        if id in self.result.citations:
            return LossEvidence("found", rank, f"{at}, in the prompt, and cited.")
        if id in shown:
            why = "says that the corpus has no answer" if self.result.abstained else "does not cite it"
            part = read_in_part(self.result, id, self._quotes)
            read = f"; {part[1]}" if part else ""
            return LossEvidence(
                "not used", rank, f"{at} and in the prompt, but the answer {why}{read}.", writer, rank
            )
        if evidence := compressed(self.result, id):
            step, clause = evidence
            return LossEvidence("compressed out", rank, f"{at}, but not in the prompt: {clause}.", step, rank)
        return LossEvidence(
            "found",
            rank,
            f"{at}, but not in the prompt, which held {len(shown)} passage{'s' * (len(shown) != 1)}.",
        )

    def _unread(self, id: str, rank: int, depth: int) -> LossEvidence:
        """In the top of a route that wrote no answer from it."""
        at = f"At rank {rank} of the top {depth}"
        if id in self.result.citations:
            return LossEvidence("found", rank, f"{at}, and cited.")
        if gave_up := abstained(self.result):
            return LossEvidence("not used", rank, f"{at}, but {gave_up[1]}.", gave_up[0], rank)
        if part := read_in_part(self.result, id, self._quotes):
            kind: Kind = "labelled words left out" if part[2] else "read in part"
            return LossEvidence(kind, rank, f"{at}, but {part[1]}.", part[0], rank)
        if brought := by_summary(self.flow, id):
            span, own = brought
            alone = (
                f"at rank {own} by its own vector" if own is not None else "not among the first by its own"
            )
            words = f"{at}, brought by a summary of its group: {alone}."
            return LossEvidence("brought by a summary", rank, words, span, rank)
        return LossEvidence("found", rank, f"{at}.")

    # Not in the top.

    def _lost(self, id: str, rank: int | None, depth: int) -> LossEvidence:
        loss, best = self.flow.loss(id, depth), self._best(id)
        if best is not None and (unopened := self._unopened(id, best)):
            return LossEvidence("found, not opened", rank, unopened[1], unopened[0], best.rank)
        unknown = loss is not None and loss.before is None
        if not self.flow.lists and not unknown:
            return LossEvidence(
                "not searched", rank, "The route made no list of passages: it did not search."
            )
        if best is None and rank is None and self.flow.lists:
            if filtered := self._filtered(id):
                return filtered
            if id in self._before:
                return LossEvidence("split", None, self._before[id][1])
            one = self.searches[0] if len(self.searches) == 1 else None
            never = LossEvidence("never retrieved", None, self._never(id), one)
            return self._behind(id, rank, depth) or never
        if best is None or (loss is not None and unknown):
            return self._not_recorded(loss, best, rank)
        if rank is None and self.shown is not None and id in self.shown[0]:
            words = "It was in the prompt, and the answer does not cite it."
            return LossEvidence("not used", None, words, self.shown[1], best.rank)
        if rank is None and loss is None and (graded := discarded(self.flow, id)):
            words = f"{_upper(graded[1])}; it was {self._at(best)}."
            return LossEvidence("dropped by grade", rank, words, graded[0], best.rank)
        if loss is None or loss.before is None or (loss.was > depth and self._just_cut(loss)):
            unused = self._unused(id, rank, depth) or self._behind(id, rank, depth)
            return unused or self._below(id, rank, depth)
        if evidence := compressed(self.result, id):
            now = f"at rank {rank}" if rank is not None else "not in the final ranking"
            words = f"At rank {loss.was} in {self.called(loss.before)}; {evidence[1]}; now {now}."
            if isinstance(evidence[0].output, Selection):
                return LossEvidence("dropped by grade", rank, words, evidence[0], loss.was)
            if loss.step is None or loss.step.kind == "CHAIN":
                return LossEvidence("compressed out", rank, words, evidence[0], loss.was)
        return self._explained(id, loss, loss.before, rank, depth)

    def _unopened(self, id: str, best: Stage) -> tuple[Span, str] | None:
        """Return the step that ended an agent's reading, if the agent found a passage and did not open it."""
        opened = [span for span in self.flow.lists if _kind_of_search(span) == "read"]
        ends = [span for span in top(self.result) if isinstance(span.output, Decision) and not span.hits]
        if not opened or not ends or any(id in self.flow.places(span) for span in opened):
            return None
        last = ends[-1]
        output = last.output
        why = f": {output.decision}, {output.why}" if isinstance(output, Decision) else ""
        read = sum(len(span.hits or ()) for span in opened)
        words = f"{_upper(self._at(best))}, but it is not among the {read} passages that were opened; "
        return last, f"{words}{self.called(last)} ended that{why}."

    def _filtered(self, id: str) -> LossEvidence | None:
        """Every search of the route looked only where the passage is not."""
        wheres = [span.output.where for span in self.searches if isinstance(span.output, Search)]
        failed = [self._unmet(where, id) for where in wheres]
        if not failed or not all(failed):
            return None
        clauses = list(dict.fromkeys(clause for some in failed for clause in some))
        used = {one for where in wheres for one in where}
        readers = (
            span
            for span in self.result.spans
            if isinstance(span.output, FiltersRead) and used.intersection(span.output.kept)
        )
        read = next(readers, None)
        by = f", read by “{read.name}”" if read is not None else ""
        many = "s" * (len(clauses) > 1)
        words = f"It does not meet the filter{many} {' and '.join(clauses)}{by}: no search could find it."
        return LossEvidence("removed by a filter", None, words, read)

    def _not_recorded(self, loss: LossPoint | None, best: Stage | None, rank: int | None) -> LossEvidence:
        """Explain that the passage was, or may have been, in a list that the route did not record."""
        step = loss.step if loss is not None else None
        words = "The route's own code made its final list"
        if step is not None:
            words = f"The route's own code made the list for {self.called(step)}"
        before = f"{_upper(self._at(best))}. " if best is not None else ""
        end = f"; it ends at rank {rank}" if rank is not None else ""
        words = f"{before}{words}, {UNKNOWN}{end}."
        return LossEvidence("not recorded", rank, words, step, best.rank if best is not None else None)

    def _explained(
        self, id: str, loss: LossPoint, before: Span, rank: int | None, depth: int
    ) -> LossEvidence:
        step, was = loss.step, loss.was
        found = f"At rank {was} in {self.called(before)}"
        if loss.cut is not None:
            return LossEvidence("cut by the route", rank, f"{found}, {self._cut(step, loss.cut)}.", step, was)
        if step is None:
            raise LookupError(f"the end of {self.result.route} moved passage {id!r}")
        name, output = self.called(step), step.output
        if isinstance(output, Selection) and (twin := output.dropped.get(id)):
            like = f"too like {twin.kept} (similarity {twin.similarity:.2f})"
            return LossEvidence("near-duplicate", rank, f"{found}; {name} dropped it as {like}.", step, was)
        if loss.now is None and (grade := low_grade(self.result, id)):
            words = f"{found}; {grade[1]}, and {name} dropped it."
            return LossEvidence("dropped by grade", rank, words, step, was)
        if isinstance(output, Fusion) and output.in_turn and loss.now is not None:
            words = f"{found}; {name} put other passages before it: {_ends(rank)}."
            return LossEvidence("put behind", rank, words, step, was)
        if isinstance(output, Fusion):
            without = f"returned {len(step.hits or ())} passages without it"
            put = without if loss.now is None else f"put it at rank {loss.now}"
            words = f"{self._in_each(self.flow.sources(step), id)}; {name} {put}"
            if left := self._not_looked_at(id, depth):
                words = f"{words}; {left.words}"
            return LossEvidence("fused away", rank, f"{words}{self._after(loss, rank)}.", step, was)
        if isinstance(output, ScoreCut) and loss.now is None:
            drop = f"the largest drop of scores, {output.size:.3g}, comes after rank {output.drop}"
            words = f"{found}; {name} ended the list after rank {output.kept}, as {drop}."
            return LossEvidence("cut at the score drop", rank, words, step, was)
        if isinstance(output, Inserted) and (before_it := self._inserted(step, output, loss.now)):
            put = f"put {before_it} of {len(output.ids)} unrelated passages before it"
            return LossEvidence("displaced", rank, f"{found}; {name} {put}: {_ends(rank)}.", step, was)
        if isinstance(output, Search):
            put = "left it out" if loss.now is None else f"put it at rank {loss.now}"
            more = "the walk is more often at the passages before it"
            words = f"{found}; {name} {put}{self._after(loss, rank)}: {more}."
            return LossEvidence("walked past", rank, words, step, was)
        if loss.now is None and (outside := self._outside(step, was)):
            return LossEvidence("reranked away", rank, f"{found}; {name} {outside}.", step, was)
        if loss.now is None:
            return LossEvidence("dropped", rank, f"{found}; {name} dropped it.", step, was)
        words = f"{found}; {name} put it at rank {loss.now}{self._after(loss, rank)}."
        return LossEvidence("reranked away", rank, words, step, was)

    def _inserted(self, step: Span, output: Inserted, now: int | None) -> int:
        """Return how many of the passages that a step inserted rank above `now`."""
        places = self.flow.places(step)
        return sum(now is not None and id in places and places[id] < now for id in output.ids)

    def _cut(self, step: Span | None, source: PassedList) -> str:
        """Explain that the route passed on a part of a list."""
        if step is None:
            of = f" of {len(source.span.hits or ())}" if source.span is not None else ""
            return f"but the route returned only {source.part}{of}"
        return f"but the route passed only {source.part} to {self.called(step)}"

    def _behind(self, id: str, rank: int | None, depth: int) -> LossEvidence | None:
        """Explain that summaries displaced the passage from the top of a search."""
        behind = behind_summaries(self.flow, id, depth)
        if behind is None:
            return None
        span, words = behind
        was = self.flow.places(span).get(id)
        return LossEvidence("behind summaries", rank, f"{_upper(words)}{self._end(was, rank)}.", span, was)

    def _below(self, id: str, rank: int | None, depth: int) -> LossEvidence:
        """Explain that no list that counts had the passage in its top."""
        found = [stage for stage in self.stages(id) if stage.rank and is_search(stage.span)]
        counting = [stage for stage in found if stage.used] or found
        # A later step that put it higher is not to blame: the search that had it best is.
        best = min(counting, key=lambda stage: stage.rank or 0, default=None) or self._best(id)
        if best is None:
            raise LookupError(f"no list of {self.result.route} has passage {id!r}")
        if left := self._not_looked_at(id, depth):
            words = f"At rank {left.was} in {self.called(left.before)}, and {left.words}: {_ends(rank)}."
            return LossEvidence(left.kind, rank, words, left.step, left.was)
        wrote = f" for {self.asked(best.span)}" if self._rewritten(best.span) else ""
        end = "" if best.rank == rank else f"; {_ends(rank)}"
        words = f"Found too low: {self._at(best)}{wrote}, its best search rank{end}."
        return LossEvidence("found too low", rank, words, best.span, best.rank)

    def _not_looked_at(self, id: str, depth: int) -> _TooLate | None:
        """Return the step of at least `depth` candidates to which a passage came too late: the route gave it
        a part without the passage, or it looked at the first of them only.
        """
        for step in self.flow.line:
            if id in self.flow.places(step):
                continue
            for source in self.flow.sources(step):
                if source.span is None or source.size < depth:
                    continue
                was = self.flow.places(source.span).get(id)
                if was is not None and was > source.start + source.size:
                    words = f"the route passed only {source.part} to {self.called(step)}"
                    return _TooLate("cut by the route", step, source.span, was, words)
                if was is not None and (outside := self._outside(step, was)):
                    words = f"{self.called(step)} {outside}"
                    return _TooLate("reranked away", step, source.span, was, words)
        return None

    def _unused(self, id: str, rank: int | None, depth: int) -> LossEvidence | None:
        """Return a list that the ranking was not made from had it: in its top, or it alone."""
        lists = [
            stage for stage in self.stages(id) if stage.used is False and stage.rank and not stage.span.parent
        ]
        best = min(lists, key=lambda stage: stage.rank or 0, default=None)
        if best is None or (rank is not None and (best.rank or 0) > depth):
            return None
        end = f"; it ends at rank {rank}" if rank is not None else ""
        if drift := drifted(self.flow, best.span):
            step, search, did = drift
            now = self.flow.places(search).get(id)
            put = f"put it at rank {now}" if now is not None else "left it out"
            words = f"{_upper(self._at(best))}; {self.called(step)} {did}, and the search after it {put}"
            return LossEvidence("query drift", rank, f"{words}{self._end(now, rank)}.", step, best.rank)
        if (codes := first_pass(self.flow, id)) and is_search(best.span):
            among = f"not among the {len(codes.hits or ())} passages of {self.called(codes)}"
            words = f"{_upper(self._at(best))}, but {among}, and only these are scored by whole vectors."
            return LossEvidence("lost in the first pass", rank, words, codes, best.rank)
        words = f"{_upper(self._at(best))}, but the final ranking does not use that list{end}."
        return LossEvidence("list not used", rank, words, best.span, best.rank)

    def _just_cut(self, loss: LossPoint) -> bool:
        """Return whether only the length of a list left the passage out."""
        by_length = Fusion | Search | ScoreCut
        return loss.step is None or (loss.cut is None and isinstance(loss.step.output, by_length))

    # What the spans record.

    @cached_property
    def searches(self) -> list[Span]:
        """Return the route's searches in order; searches inside a single step only if there are no others."""
        found = [span for span in self.flow.lists if is_search(span)]
        return [span for span in found if span.parent is None] or found

    def _never(self, id: str) -> str:
        needed = next((search for start, search in NEEDS_OTHER_SEARCH.items() if id.startswith(start)), None)
        only = f" Only {needed} can find it." if needed else ""
        made = list(
            dict.fromkeys(
                f"“{span.name}”"
                + (f" for {text}" if (text := self.asked(span)) else "")
                + f" ({len(span.hits or ())} passages)"
                for span in self.searches
            )
        )
        more = f", and {len(made) - SEVERAL} more searches" if len(made) > SEVERAL else ""
        codes = first_pass(self.flow, id)
        whole = f" Only what {self.called(codes)} finds is scored by whole vectors." if codes else ""
        matched = all(_matched_all(span) for span in self.searches) and self.searches
        none = " It matches none of the patterns." if matched else ""
        return (
            f"Not found by {', '.join(made[:SEVERAL]) or 'any list'}{more}.{only}{none}{whole}{self._depth}"
        )

    def _rewritten(self, search: Span) -> bool:
        """Return whether a search used rewritten text instead of the question, which its name does not
        show.
        """
        output = search.output
        texts = output.texts if isinstance(output, Search) else ()
        wrote = [span.output for span in self.result.spans if isinstance(span.output, Rewrite)]
        written = any(one.changed and text in one.texts for one in wrote for text in texts)
        return written and self.called(search) == f"“{search.name}”"

    @cached_property
    def _depth(self) -> str:
        """Explain that an external pipeline reported no stages, so losses inside it are unknown; else ""."""
        calls = [span.output for span in self.result.spans if isinstance(span.output, External)]
        if any(not call.stages for call in calls):
            return " The pipeline reported no stages, so what happened inside is not known."
        return ""

    def _best(self, id: str) -> Stage | None:
        having = [stage for stage in self.stages(id) if stage.rank]
        return min(having, key=lambda stage: stage.rank or 0, default=None)

    def _at(self, stage: Stage) -> str:
        return f"at rank {stage.rank} in {self.called(stage.span)}"

    def _in_each(self, lists: Sequence[PassedList], id: str) -> str:
        """Its rank in each list that was fused."""
        ranks = [
            (self.called(one.span), self.flow.passed(one).get(id)) for one in lists if one.span is not None
        ]
        found = [f"{rank} in {name}" for name, rank in sorted(ranks, key=lambda one: one[1] or 10**9) if rank]
        unrecorded = sum(one.unknown for one in lists)
        missing = len(lists) - unrecorded - len(found)
        more = f" and {len(found) - SEVERAL} more" if len(found) > SEVERAL else ""
        none = f", not in {missing} of {len(lists)} lists" if missing else ""
        unknown = f"; {unrecorded} of {len(lists)} lists made by the route's own code" if unrecorded else ""
        return f"At rank {', '.join(found[:SEVERAL])}{more}{none}{unknown}"

    def _outside(self, step: Span, was: int) -> str | None:
        """Explain that a reranker did not score a rank."""
        pool = step.args.get("candidates") if isinstance(step.output, Rerank) else None
        return f"scored only the first {pool}" if isinstance(pool, int) and pool < was else None

    def _after(self, loss: LossPoint, rank: int | None) -> str:
        return self._end(loss.now, rank)

    def _end(self, now: int | None, rank: int | None) -> str:
        """Return the clause on the final rank, or "" if the last step already left the passage there."""
        if rank == now:
            return ""
        return f", and it ends at rank {rank}" if rank is not None else ", and it is not in the final ranking"

    def _trouble(self, id: str) -> str:
        result, best = self.result, self._best(id)
        state = {"failed": "failed", "timeout": "ran out of time", "cancelled": "was stopped"}
        reason = result.error or "no reason recorded"
        sentence = f"The route {state.get(result.status, 'could not run')}: {reason}"
        until = f" Until then, the passage was {self._at(best)}." if best else ""
        return f"{sentence.rstrip('.')}.{until}"


def _kind_of_search(span: Span) -> str:
    return span.output.model if isinstance(span.output, Search) else ""


def _matched_all(span: Span) -> bool:
    """Return whether a search of the text has every passage that matches one of its patterns."""
    output, most = span.output, span.args.get("k")
    complete = isinstance(most, int) and len(span.hits or ()) < most
    return _kind_of_search(span) == "grep" and complete and isinstance(output, Search) and not output.where


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ends(rank: int | None) -> str:
    return f"it ends at rank {rank}" if rank is not None else "it is not in the final ranking"


def _failed(result: RouteResult) -> Span | None:
    return next((span for span in top(result) if span.error), None)
