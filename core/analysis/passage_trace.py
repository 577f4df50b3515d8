"""A passage's path through a route: its rank after every step, and the step that lost it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
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
from core.analysis.run_view import recorded, top
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
        self.result, self.quotes, self.unmet, self.before = result, quotes or {}, unmet, before or {}
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
        return _Fate(self, id, depth).read()

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

    @cached_property
    def searches(self) -> list[Span]:
        """Return the route's searches in order; searches inside a single step only if there are no others."""
        found = [span for span in self.flow.lists if is_search(span)]
        return [span for span in found if span.parent is None] or found

    def called(self, span: Span) -> str:
        """Return a step's name for a sentence, with its text if several steps have that name."""
        alike = sum(other.name == span.name for other in self.flow.lists) > 1
        text = self.asked(span)
        return f"“{span.name}”" + (f" for {text}" if alike and text else "")

    def asked(self, span: Span) -> str | None:
        """Describe the text a search used."""
        return self._asked.get(span.id)


class _Fate:
    """One passage in one route, where the first `depth` of the ranking count. `rank`: its final rank."""

    def __init__(self, trace: PassageTrace, id: str, depth: int) -> None:
        self.trace, self.flow, self.result = trace, trace.flow, trace.result
        self.id, self.depth, self.rank = id, depth, trace.flow.final.get(id)

    @cached_property
    def stages(self) -> list[Stage]:
        """Return the lists with the passage, best rank first."""
        return sorted((one for one in self.trace.stages(self.id) if one.rank), key=lambda one: one.rank or 0)

    @cached_property
    def best(self) -> Stage | None:
        """Return the list in which it ranks best, or None if no list has it."""
        return next(iter(self.stages), None)

    def read(self) -> LossEvidence:
        """Return where the passage was lost, with the evidence."""
        kind, words = self.trace.before.get(self.id, ("split", ""))
        if kind != "split":
            return LossEvidence(kind, None, words)
        if self.result.status != "ok":
            failed = next((span for span in top(self.result) if span.error), None)
            return LossEvidence("no ranking", None, self._trouble(), failed)
        return self._in_top() if self.rank is not None and self.rank <= self.depth else self._lost()

    def _is(self, kind: Kind, words: str, step: Span | None = None, was: int | None = None) -> LossEvidence:
        return LossEvidence(kind, self.rank, words, step, was)

    # In the top.

    def _in_top(self) -> LossEvidence:
        at, id = f"At rank {self.rank}", self.id
        if self.trace.shown is None:
            return self._unread()
        shown, writer = self.trace.shown
        if id in self.result.citations:
            return self._is("found", f"{at}, in the prompt, and cited.")
        if id in shown:
            why = "says that the corpus has no answer" if self.result.abstained else "does not cite it"
            part = read_in_part(self.result, id, self.trace.quotes)
            words = f"{at} and in the prompt, but the answer {why}{f'; {part[1]}' if part else ''}."
            return self._is("not used", words, writer, self.rank)
        if evidence := compressed(self.result, id):
            words = f"{at}, but not in the prompt: {evidence[1]}."
            return self._is("compressed out", words, evidence[0], self.rank)
        held = f"{len(shown)} passage{'s' * (len(shown) != 1)}"
        return self._is("found", f"{at}, but not in the prompt, which held {held}.")

    def _unread(self) -> LossEvidence:
        """In the top of a route that wrote no answer from it."""
        at = f"At rank {self.rank} of the top {self.depth}"
        if self.id in self.result.citations:
            return self._is("found", f"{at}, and cited.")
        if gave_up := abstained(self.result):
            return self._is("not used", f"{at}, but {gave_up[1]}.", gave_up[0], self.rank)
        if part := read_in_part(self.result, self.id, self.trace.quotes):
            kind: Kind = "labelled words left out" if part[2] else "read in part"
            return self._is(kind, f"{at}, but {part[1]}.", part[0], self.rank)
        if brought := by_summary(self.flow, self.id):
            span, own = brought
            alone = f"at rank {own} by" if own is not None else "not among the first by"
            alone += " its own vector" if own is not None else " its own"
            words = f"{at}, brought by a summary of its group: {alone}."
            return self._is("brought by a summary", words, span, self.rank)
        return self._is("found", f"{at}.")

    # Not in the top.

    def _lost(self) -> LossEvidence:
        id, rank, best, depth = self.id, self.rank, self.best, self.depth
        loss = self.flow.loss(id, depth)
        if best is not None and (unopened := self._unopened(best)):
            return unopened
        unknown = loss is not None and loss.before is None
        if not self.flow.lists and not unknown:
            return self._is("not searched", "The route made no list of passages: it did not search.")
        if best is None and rank is None and self.flow.lists:
            if filtered := self._filtered():
                return filtered
            if id in self.trace.before:
                return self._is("split", self.trace.before[id][1])
            one = self.trace.searches[0] if len(self.trace.searches) == 1 else None
            return self._behind() or self._is("never retrieved", self._never(), one)
        if best is None or unknown:
            return self._not_recorded(loss)
        if rank is None and self.trace.shown is not None and id in self.trace.shown[0]:
            words = "It was in the prompt, and the answer does not cite it."
            return self._is("not used", words, self.trace.shown[1], best.rank)
        if rank is None and loss is None and (graded := discarded(self.flow, id)):
            words = f"{_upper(graded[1])}; it was {self._at(best)}."
            return self._is("dropped by grade", words, graded[0], best.rank)
        if loss is None or loss.before is None or (loss.was > depth and _just_cut(loss)):
            return self._unused() or self._behind() or self._below()
        if evidence := compressed(self.result, id):
            now = f"at rank {rank}" if rank is not None else "not in the final ranking"
            words = f"At rank {loss.was} in {self.trace.called(loss.before)}; {evidence[1]}; now {now}."
            if isinstance(evidence[0].output, Selection):
                return self._is("dropped by grade", words, evidence[0], loss.was)
            if loss.step is None or loss.step.kind == "CHAIN":
                return self._is("compressed out", words, evidence[0], loss.was)
        return self._explained(loss, loss.before)

    def _unopened(self, best: Stage) -> LossEvidence | None:
        """Explain that the agent that found the passage did not open it, and what ended its reading."""
        opened = [one.span for one in recorded(self.flow.lists, Search) if one.output.model == "read"]
        ends = [one for one in recorded(top(self.result), Decision) if not one.span.hits]
        if not opened or not ends or any(self.id in self.flow.places(span) for span in opened):
            return None
        last, output = ends[-1].span, ends[-1].output
        read = sum(len(span.hits or ()) for span in opened)
        words = f"{_upper(self._at(best))}, but it is not among the {read} passages that were opened; "
        words += f"{self.trace.called(last)} ended that: {output.decision}, {output.why}."
        return self._is("found, not opened", words, last, best.rank)

    def _filtered(self) -> LossEvidence | None:
        """Every search of the route looked only where the passage is not."""
        wheres = [one.output.where for one in recorded(self.trace.searches, Search)]
        failed = [self.trace.unmet(where, self.id) for where in wheres]
        if not failed or not all(failed):
            return None
        clauses = list(dict.fromkeys(clause for some in failed for clause in some))
        used = {one for where in wheres for one in where}
        readers = recorded(self.result.spans, FiltersRead)
        read = next((one.span for one in readers if used.intersection(one.output.kept)), None)
        by = f", read by “{read.name}”" if read is not None else ""
        many = "s" * (len(clauses) > 1)
        words = f"It does not meet the filter{many} {' and '.join(clauses)}{by}: no search could find it."
        return self._is("removed by a filter", words, read)

    def _not_recorded(self, loss: LossPoint | None) -> LossEvidence:
        """Explain that the passage was, or may have been, in a list that the route did not record."""
        step, best = loss.step if loss is not None else None, self.best
        made = f"the list for {self.trace.called(step)}" if step is not None else "its final list"
        before = f"{_upper(self._at(best))}. " if best is not None else ""
        words = f"{before}The route's own code made {made}, {UNKNOWN}{self._ended()}."
        return self._is("not recorded", words, step, best.rank if best is not None else None)

    def _explained(self, loss: LossPoint, before: Span) -> LossEvidence:
        step, was, now = loss.step, loss.was, loss.now
        found, made = f"At rank {was} in {self.trace.called(before)}", partial(self._is, step=step, was=was)
        if loss.cut is not None:
            part, span = loss.cut.part, loss.cut.span
            of = f" of {len(span.hits or ())}" if span is not None else ""
            only = f"returned only {part}{of}" if step is None else self._passed(loss.cut, step)
            return made("cut by the route", f"{found}, but the route {only}.")
        if step is None:
            raise LookupError(f"the end of {self.result.route} moved passage {self.id!r}")
        name, output, after = self.trace.called(step), step.output, self._end(now)
        put = f"put it at rank {now}"
        if isinstance(output, Selection) and (twin := output.dropped.get(self.id)):
            like = f"too like {twin.kept} (similarity {twin.similarity:.2f})"
            return made("near-duplicate", f"{found}; {name} dropped it as {like}.")
        if now is None and (grade := low_grade(self.result, self.id)):
            return made("dropped by grade", f"{found}; {grade[1]}, and {name} dropped it.")
        if isinstance(output, Fusion) and output.in_turn and now is not None:
            return made("put behind", f"{found}; {name} put other passages before it: {self._ends()}.")
        if isinstance(output, Fusion):
            put = f"returned {len(step.hits or ())} passages without it" if now is None else put
            words = f"{self._in_each(self.flow.sources(step))}; {name} {put}"
            if left := self._not_looked_at():
                words = f"{words}; {left.words}"
            return made("fused away", f"{words}{after}.")
        if isinstance(output, ScoreCut) and now is None:
            drop = f"the largest drop of scores, {output.size:.3g}, comes after rank {output.drop}"
            words = f"{found}; {name} ended the list after rank {output.kept}, as {drop}."
            return made("cut at the score drop", words)
        if isinstance(output, Inserted) and now is not None:
            places = self.flow.places(step)
            if first := sum(id in places and places[id] < now for id in output.ids):
                put = f"put {first} of {len(output.ids)} unrelated passages before it"
                return made("displaced", f"{found}; {name} {put}: {self._ends()}.")
        if isinstance(output, Search):
            put = "left it out" if now is None else put
            more = "the walk is more often at the passages before it"
            return made("walked past", f"{found}; {name} {put}{after}: {more}.")
        if now is None and (outside := _outside(step, was)):
            return made("reranked away", f"{found}; {name} {outside}.")
        if now is None:
            return made("dropped", f"{found}; {name} dropped it.")
        return made("reranked away", f"{found}; {name} {put}{after}.")

    def _behind(self) -> LossEvidence | None:
        """Explain that summaries displaced the passage from the top of a search."""
        behind = behind_summaries(self.flow, self.id, self.depth)
        if behind is None:
            return None
        was = self.flow.places(behind[0]).get(self.id)
        return self._is("behind summaries", f"{_upper(behind[1])}{self._end(was)}.", behind[0], was)

    def _below(self) -> LossEvidence:
        """Explain that no list that counts had the passage in its top."""
        found = [stage for stage in self.stages if is_search(stage.span)]
        # A later step that put it higher is not to blame: the search that had it best is.
        best = next(iter([stage for stage in found if stage.used] or found), self.best)
        if best is None:
            raise LookupError(f"no list of {self.result.route} has passage {self.id!r}")
        if left := self._not_looked_at():
            words = (
                f"At rank {left.was} in {self.trace.called(left.before)}, and {left.words}: {self._ends()}."
            )
            return self._is(left.kind, words, left.step, left.was)
        wrote = f" for {self.trace.asked(best.span)}" if self._rewritten(best.span) else ""
        end = "" if best.rank == self.rank else f"; {self._ends()}"
        words = f"Found too low: {self._at(best)}{wrote}, its best search rank{end}."
        return self._is("found too low", words, best.span, best.rank)

    def _not_looked_at(self) -> _TooLate | None:
        """Return the step of at least `depth` candidates to which a passage came too late: the route gave it
        a part without the passage, or it looked at the first of them only.
        """
        for step in self.flow.line:
            if self.id in self.flow.places(step):
                continue
            for source in self.flow.sources(step):
                if source.span is None or source.size < self.depth:
                    continue
                was = self.flow.places(source.span).get(self.id)
                if was is not None and was > source.start + source.size:
                    words = f"the route {self._passed(source, step)}"
                    return _TooLate("cut by the route", step, source.span, was, words)
                if was is not None and (outside := _outside(step, was)):
                    words = f"{self.trace.called(step)} {outside}"
                    return _TooLate("reranked away", step, source.span, was, words)
        return None

    def _unused(self) -> LossEvidence | None:
        """Return a list that the ranking was not made from had it: in its top, or it alone."""
        lists = (stage for stage in self.stages if stage.used is False and not stage.span.parent)
        best = next(lists, None)
        if best is None or (self.rank is not None and (best.rank or 0) > self.depth):
            return None
        at = _upper(self._at(best))
        if drift := drifted(self.flow, best.span):
            step, search, did = drift
            now = self.flow.places(search).get(self.id)
            put = f"put it at rank {now}" if now is not None else "left it out"
            words = f"{at}; {self.trace.called(step)} {did}, and the search after it {put}{self._end(now)}."
            return self._is("query drift", words, step, best.rank)
        if (codes := first_pass(self.flow, self.id)) and is_search(best.span):
            among = f"not among the {len(codes.hits or ())} passages of {self.trace.called(codes)}"
            words = f"{at}, but {among}, and only these are scored by whole vectors."
            return self._is("lost in the first pass", words, codes, best.rank)
        words = f"{at}, but the final ranking does not use that list{self._ended()}."
        return self._is("list not used", words, best.span, best.rank)

    # Clauses.

    def _never(self) -> str:
        id, trace, searches = self.id, self.trace, self.trace.searches
        needed = next((search for start, search in NEEDS_OTHER_SEARCH.items() if id.startswith(start)), None)
        only = f" Only {needed} can find it." if needed else ""
        named = ((f"“{one.name}”", trace.asked(one), len(one.hits or ())) for one in searches)
        made = [f"{name}{f' for {text}' if text else ''} ({n} passages)" for name, text, n in named]
        made = list(dict.fromkeys(made))
        more = f", and {len(made) - SEVERAL} more searches" if len(made) > SEVERAL else ""
        codes = first_pass(self.flow, id)
        whole = f" Only what {trace.called(codes)} finds is scored by whole vectors." if codes else ""
        pipelines = recorded(self.result.spans, External)
        silent = any(not call.output.stages for call in pipelines)
        deep = " The pipeline reported no stages, so what happened inside is not known." if silent else ""
        return f"Not found by {', '.join(made[:SEVERAL]) or 'any list'}{more}.{only}{whole}{deep}"

    def _rewritten(self, search: Span) -> bool:
        """Return whether a search used rewritten text instead of the question, which its name does not
        show.
        """
        texts = search.output.texts if isinstance(search.output, Search) else ()
        wrote = [one.output for one in recorded(self.result.spans, Rewrite) if one.output.changed]
        written = any(text in one.texts for one in wrote for text in texts)
        return written and self.trace.called(search) == f"“{search.name}”"

    def _at(self, stage: Stage) -> str:
        return f"at rank {stage.rank} in {self.trace.called(stage.span)}"

    def _passed(self, source: PassedList, step: Span) -> str:
        return f"passed only {source.part} to {self.trace.called(step)}"

    def _in_each(self, lists: Sequence[PassedList]) -> str:
        """Its rank in each list that was fused."""
        ranks = [(self.flow.passed(one).get(self.id), one.span) for one in lists if one.span is not None]
        known = [(rank, self.trace.called(span)) for rank, span in ranks if rank]
        found = [f"{rank} in {name}" for rank, name in sorted(known, key=lambda one: one[0])]
        unrecorded = sum(one.unknown for one in lists)
        missing = len(lists) - unrecorded - len(found)
        more = f" and {len(found) - SEVERAL} more" if len(found) > SEVERAL else ""
        none = f", not in {missing} of {len(lists)} lists" if missing else ""
        unknown = f"; {unrecorded} of {len(lists)} lists made by the route's own code" if unrecorded else ""
        return f"At rank {', '.join(found[:SEVERAL])}{more}{none}{unknown}"

    def _end(self, now: int | None) -> str:
        """Return the clause on the final rank, or "" if the last step already left the passage there."""
        return "" if self.rank == now else f", and {self._ends()}"

    def _ends(self) -> str:
        return f"it ends at rank {self.rank}" if self.rank is not None else "it is not in the final ranking"

    def _ended(self) -> str:
        return f"; it ends at rank {self.rank}" if self.rank is not None else ""

    def _trouble(self) -> str:
        state = {"failed": "failed", "timeout": "ran out of time", "cancelled": "was stopped"}
        reason = self.result.error or "no reason recorded"
        sentence = f"The route {state.get(self.result.status, 'could not run')}: {reason}"
        until = f" Until then, the passage was {self._at(self.best)}." if self.best else ""
        return f"{sentence.rstrip('.')}.{until}"


def _just_cut(loss: LossPoint) -> bool:
    """Return whether only the length of a list left the passage out."""
    by_length = Fusion | Search | ScoreCut
    return loss.step is None or (loss.cut is None and isinstance(loss.step.output, by_length))


def _outside(step: Span, was: int) -> str | None:
    """Explain that a reranker did not score a rank."""
    pool = step.args.get("candidates") if isinstance(step.output, Rerank) else None
    return f"scored only the first {pool}" if isinstance(pool, int) and pool < was else None


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
