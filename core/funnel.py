"""What became of a passage in a route: its rank after every step, and the step that lost it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from core.fates import as_list, as_mapping, compressed, discarded, low_grade, searched_with
from core.flow import SEARCHES, Flow, Loss
from core.reading import top
from core.types import RouteResult, Span

Kind = Literal[
    "found", "not used", "found too low", "never retrieved", "list not used", "fused away", "reranked away",
    "dropped by grade", "near-duplicate", "compressed out", "put behind", "cut off", "dropped",
    "not searched", "no ranking",
]  # fmt: skip
NEEDS_OTHER_SEARCH = {"web/": "a web search", "memory/": "a search of the conversation", "sql/": "a query"}
SEVERAL = 4  # lists that a sentence names


@dataclass(frozen=True, slots=True)
class Stage:
    """A passage's rank in the list of one step, None where it is not in it; `used`: the final ranking was
    made from this list.
    """

    span: Span
    rank: int | None
    size: int
    score: float | None
    used: bool


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a passage: `rank` in the final ranking, `step` that lost it (None where none did),
    `was` its rank before that, and a sentence.
    """

    kind: Kind
    rank: int | None
    words: str
    step: Span | None = None
    was: int | None = None


class Funnel:
    """One route's stages and fates; what does not depend on the passage is read once."""

    def __init__(self, result: RouteResult) -> None:
        self.result = result
        self.flow = Flow(result)
        self._line = {span.id for span in self.flow.line()}
        self._texts = searched_with(result)

    def stages(self, id: str) -> list[Stage]:
        """Every step with a list, in order."""
        found = []
        for span in self.flow.lists:
            rank = self.flow.places(span).get(id)
            hits = span.hits or ()
            score = hits[rank - 1][1] if rank is not None and rank <= len(hits) else None
            found.append(Stage(span, rank, len(hits), score, span.id in self._line))
        return found

    def fate(self, id: str, depth: int) -> Fate:
        """What became of passage `id` where the first `depth` of the ranking count."""
        result, rank = self.result, self.flow.final.get(id)
        if result.status != "ok":
            return Fate("no ranking", None, self._trouble(id), _failed(result))
        if rank is not None and rank <= depth:
            return self._in_top(id, rank, depth)
        return self._lost(id, rank, depth)

    @cached_property
    def _shown(self) -> tuple[list[str], Span] | None:
        """The passages in the prompt of the answer, and the step that wrote it."""
        for span in reversed(top(self.result)):
            if span.inputs.get("shown") and self.result.answer is not None:
                return [str(id) for id in as_list(span.inputs["shown"])], span
        return None

    def called(self, span: Span) -> str:
        """A step as a sentence names it: its name, with its text where there are several of the name."""
        alike = sum(other.name == span.name for other in self.flow.lists) > 1
        text = self._texts.get(span.id)
        return f"“{span.name}”" + (f" for {text}" if alike and text else "")

    def asked(self, span: Span) -> str | None:
        """What a search searched with, in words."""
        return self._texts.get(span.id)

    # In the top.

    def _in_top(self, id: str, rank: int, depth: int) -> Fate:
        at = f"At rank {rank}"
        if self._shown is None:
            cited = ", and cited" if id in self.result.citations else ""
            return Fate("found", rank, f"{at} of the top {depth}{cited}.")
        shown, writer = self._shown
        if id in self.result.citations:
            return Fate("found", rank, f"{at}, in the prompt, and cited.")
        if id in shown:
            why = "says that there is none" if self.result.abstained else "does not cite it"
            return Fate("not used", rank, f"{at} and in the prompt, but the answer {why}.", writer, rank)
        if evidence := compressed(self.result, id):
            step, said = evidence
            return Fate("compressed out", rank, f"{at}, but not in the prompt: {said}.", step, rank)
        return Fate("found", rank, f"{at}; the prompt held {len(shown)} passages, and not this one.")

    # Not in the top.

    def _lost(self, id: str, rank: int | None, depth: int) -> Fate:
        now = f"at rank {rank}" if rank is not None else "not in the final ranking"
        loss = self.flow.loss(id, depth)
        best = self._best(id)
        if not self.flow.lists:
            return Fate("not searched", rank, "The route made no list of passages: it searched for none.")
        if best is None:
            if rank is not None:
                return Fate(
                    "found too low", rank, f"Put {now} by the route itself; no list of its steps has it."
                )
            one = self._searches[0] if len(self._searches) == 1 else None
            return Fate("never retrieved", None, self._never(id), one)
        if rank is None and (loss is None or loss.step is None):
            if graded := discarded(self.result, id):
                words = f"{_upper(graded[1])}; it was {self._at(best)}."
                return Fate("dropped by grade", rank, words, graded[0], best.rank)
            if not self._searches:
                words = "It was in the prompt with all that the route took, and the answer does not cite it."
                return Fate("not used", None, words, best.span, best.rank)
        if loss is None or (loss.was > depth and self._just_cut(loss)):
            return self._unused(id, rank, depth) or self._below(id, rank, depth)
        if evidence := compressed(self.result, id):
            step, said = evidence
            before = f"At {loss.was} in {self.called(loss.before)}"
            if step.kind == "EVALUATOR" and "cosines" in step.inputs:
                return Fate("dropped by grade", rank, f"{before}; {said}; now {now}.", step, loss.was)
            if loss.step is None or loss.step.kind == "CHAIN":
                return Fate("compressed out", rank, f"{before}; {said}; now {now}.", step, loss.was)
        return self._explained(id, loss, rank, depth)

    def _explained(self, id: str, loss: Loss, rank: int | None, depth: int) -> Fate:
        step, was = loss.step, loss.was
        before = f"{was} in {self.called(loss.before)}"
        if step is None:
            size, rest = len(self.flow.places(loss.before)), len(self.flow.final)
            return Fate("cut off", rank, f"At {before}, but the route returned {rest} of {size}.", None, was)
        name = self.called(step)
        if isinstance(twin := as_mapping(step.inputs.get("dropped")).get(id), Mapping):
            like = f"too like {twin.get('kept')} (similarity {_digits(twin.get('similarity'))})"
            words = f"At {before}; {name} dropped it as {like}."
            return Fate("near-duplicate", rank, words, step, was)
        if loss.now is None and (grade := low_grade(self.result, id)):
            words = f"At {before}; {grade[1]}, and {name} left it out."
            return Fate("dropped by grade", rank, words, step, was)
        if len(sources := self.flow.sources(step)) > 1 and step.kind != "RERANKER":
            if any(source.role != "list" for source in sources):
                words = f"At {before}; {name} put others before it: {_ends(rank)}."
                return Fate("put behind", rank, words, step, was)
            kept = f"kept {len(step.hits or ())} without it"
            put = kept if loss.now is None else f"put it at {loss.now}"
            words = f"{self._in_each([source.span for source in sources], id)}; {name} {put}"
            if left := self._not_looked_at(id, depth):
                words = f"{words}; {left[3]}"
            return Fate("fused away", rank, f"{words}{self._after(loss, rank)}.", step, was)
        if loss.now is None and (outside := self._outside(step, was)):
            return Fate("reranked away", rank, f"At {before}; {name} {outside}.", step, was)
        if loss.now is None:
            return Fate("dropped", rank, f"At {before}; {name} left it out.", step, was)
        words = f"At {before}; {name} put it at {loss.now}{self._after(loss, rank)}."
        return Fate("reranked away", rank, words, step, was)

    def _below(self, id: str, rank: int | None, depth: int) -> Fate:
        """It is in lists, but none that counts had it in its top."""
        found = [stage for stage in self.stages(id) if stage.rank and stage.span.kind in SEARCHES]
        counting = [stage for stage in found if stage.used] or found
        # A later step that put it higher is not to blame: the search that had it best is.
        best = min(counting, key=lambda stage: stage.rank or 0, default=None) or self._best(id)
        if best is None:
            raise LookupError(f"no list of {self.result.route} has passage {id!r}")
        if left := self._not_looked_at(id, depth):
            reranker, before, was, said = left
            words = f"At {was} in {self.called(before)}, and {said}: {_ends(rank)}."
            return Fate("reranked away", rank, words, reranker, was)
        if best.rank == rank:
            words = f"Found too low: {self._at(best)}, the best of its searches."
        else:
            words = f"Found too low: {self._at(best)}, the best of its searches; {_ends(rank)}."
        return Fate("found too low", rank, words, best.span, best.rank)

    def _not_looked_at(self, id: str, depth: int) -> tuple[Span, Span, int, str] | None:
        """The reranker of at least `depth` candidates to which a passage came too late, the list before
        it, the rank there, and a clause.
        """
        for reranker in self.flow.lists:
            if reranker.kind != "RERANKER" or reranker.id not in self._line:
                continue
            for source in self.flow.sources(reranker):
                was = self.flow.places(source.span).get(id)
                if was is not None and source.size >= depth and (said := self._outside(reranker, was)):
                    return reranker, source.span, was, f"{self.called(reranker)} {said}"
        return None

    def _unused(self, id: str, rank: int | None, depth: int) -> Fate | None:
        """A list that the ranking was not made from had it: in its top, or it alone."""
        lists = [
            stage for stage in self.stages(id) if not stage.used and stage.rank and not stage.span.parent
        ]
        best = min(lists, key=lambda stage: stage.rank or 0, default=None)
        if best is None or (rank is not None and (best.rank or 0) > depth):
            return None
        end = f"; it ends at rank {rank}" if rank is not None else ""
        words = f"{_upper(self._at(best))}, but the ranking was not made from that list{end}."
        return Fate("list not used", rank, words, best.span, best.rank)

    def _just_cut(self, loss: Loss) -> bool:
        """Whether nothing but the length of a list left it out."""
        return loss.now is not None or loss.step is None or "lists" in loss.step.inputs

    # What the spans tell.

    @cached_property
    def _searches(self) -> list[Span]:
        found = [span for span in self.flow.lists if span.kind in SEARCHES]
        return [span for span in found if span.parent is None] or found

    def _never(self, id: str) -> str:
        needed = next((said for start, said in NEEDS_OTHER_SEARCH.items() if id.startswith(start)), None)
        only = f" Only {needed} can find it." if needed else ""
        made = list(dict.fromkeys(
            f"“{span.name}”" + (f" for {self._texts[span.id]}" if span.id in self._texts else "")
            + f" ({len(span.hits or ())} passages)"
            for span in self._searches
        ))  # fmt: skip
        more = f", and {len(made) - SEVERAL} more searches" if len(made) > SEVERAL else ""
        return f"Not found by {', '.join(made[:SEVERAL]) or 'any list'}{more}.{only}"

    def _best(self, id: str) -> Stage | None:
        having = [stage for stage in self.stages(id) if stage.rank]
        return min(having, key=lambda stage: stage.rank or 0, default=None)

    def _at(self, stage: Stage) -> str:
        return f"at {stage.rank} in {self.called(stage.span)}"

    def _in_each(self, lists: list[Span], id: str) -> str:
        """Its rank in each list that was fused."""
        ranks = [(self.called(span), self.flow.places(span).get(id)) for span in lists]
        told = [f"{rank} in {name}" for name, rank in sorted(ranks, key=lambda one: one[1] or 10**9) if rank]
        missing = sum(rank is None for _, rank in ranks)
        more = f" and {len(told) - SEVERAL} more" if len(told) > SEVERAL else ""
        none = f", not in {missing} of {len(ranks)} lists" if missing else ""
        return f"At {', '.join(told[:SEVERAL])}{more}{none}"

    def _outside(self, step: Span, was: int) -> str | None:
        """That a reranker did not look at a place, in words."""
        if step.kind != "RERANKER":
            return None
        pool = step.inputs.get("candidates")
        sizes = [source.size for source in self.flow.sources(step)]
        looked = pool if isinstance(pool, int) else max(sizes, default=0)
        return f"looked at the first {looked} only" if 0 < looked < was else None

    def _after(self, loss: Loss, rank: int | None) -> str:
        if rank == loss.now:
            return ""
        return f", and it ends at {rank}" if rank is not None else ", and it is not in the final ranking"

    def _trouble(self, id: str) -> str:
        result, best = self.result, self._best(id)
        state = {"failed": "failed", "timeout": "ran out of time", "cancelled": "was stopped"}
        reason = result.error or "no reason was given"
        said = f"The route {state.get(result.status, 'could not run')}: {reason}"
        until = f" Until then it was {self._at(best)}." if best else ""
        return f"{said.rstrip('.')}.{until}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ends(rank: int | None) -> str:
    return f"it ends at rank {rank}" if rank is not None else "it is not in the final ranking"


def _failed(result: RouteResult) -> Span | None:
    return next((span for span in top(result) if span.error), None)


def _digits(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float | int) else "not told"
