"""Reranking by a language model that sees several passages at once, and how far their order sways it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scipy.stats import kendalltau

from core.backends.prompting.prompts_order import LISTWISE, SETWISE
from core.backends.prompting.token_probabilities import odds
from core.domain.errors import BudgetSpent, ModelFailed
from core.domain.outputs import Rerank as Reordered
from core.domain.outputs import Reranked
from core.domain.types import Hit, Ranking
from core.steps.base import StepBase
from core.steps.step import step

SHOWN = 700  # characters of a passage in the prompt
LETTERS = "ABCDEFGH"
SWAYED = "agreement with the order from the reverse"  # the attribute of a span: Kendall's tau, -1 to 1


class Listwise(StepBase):
    """Ordering passages by comparing them."""

    @step("RERANKER", "order windows of passages")
    def order_windows(
        self, text: str, hits: Ranking, candidates: int, window: int, stride: int, reverse: bool = False
    ) -> Ranking:
        """The first `candidates` of `hits` as the model orders them, `window` at a time from the last to the
        first, each time `stride` further up; then the rest. With `reverse` the model is given them the other
        way round. Numbers that it leaves out follow in the order given; the span counts such windows.

        Source: Sun et al. 2023, "Is ChatGPT Good at Search?" (RankGPT), arXiv:2304.09542, section 3.3.
        """
        head = list(hits[:candidates])[:: -1 if reverse else 1]
        asked = faulty = 0
        note = ""
        for start, stop in windows(len(head), window, stride):
            part = head[start:stop]
            try:
                reply = self._ask(
                    LISTWISE, max_tokens=5 * len(part) + 5, grammar=permutation_grammar(len(part)),
                    passages=numbered(part), question=text, n=str(len(part)),
                ).text  # fmt: skip
            except BudgetSpent as error:
                note = f"{error}: the other windows keep their order"
                break
            order, whole = read_order(reply, len(part))
            asked, faulty = asked + 1, faulty + (not whole)
            head[start:stop] = [part[at] for at in order]
        self.span.attributes |= {"windows": asked, "windows with numbers missing": faulty}
        if note:
            self.span.attributes["note"] = note
        return self._reordered(hits, head)

    @step("RERANKER", "choose the best of sets")
    def best_of_sets(self, text: str, hits: Ranking, candidates: int, size: int, top: int) -> Ranking:
        """The `top` best of the first `candidates` by choices among `size` passages at a time, then the rest.

        A bubble sort from the last to the first: the passage whose letter the model finds likeliest moves to
        the front of its set, `top` times over. Source: Zhuang et al. 2024, "A Setwise Approach ...",
        arXiv:2310.09497, section 3.
        """
        head = list(hits[:candidates])
        asked, note = 0, ""
        try:
            for place in range(min(top, len(head) - 1)):
                for start, stop in list(windows(len(head) - place, size, size - 1)):
                    part = head[place + start : place + stop]
                    best = self._best(text, part)
                    asked += 1
                    head[place + start : place + stop] = [part[best], *part[:best], *part[best + 1 :]]
        except BudgetSpent as error:
            note = f"{error}: passages that were not compared keep their order"
        self.span.attributes["choices"] = asked
        if note:
            self.span.attributes["note"] = note
        return self._reordered(hits, head)

    def _best(self, text: str, part: Sequence[Hit]) -> int:
        reply = self._ask(
            SETWISE, max_tokens=1, top_logprobs=20, logprobs_optional=True,
            passages=lettered(part), question=text,
        )  # fmt: skip
        letters = LETTERS[: len(part)].lower()
        found = odds(reply, letters)
        if found is None:
            raise ModelFailed(f"{self.context.llm.model} gave no letter: {reply.text[:80]!r}")
        return max(range(len(part)), key=lambda at: (found.of[letters[at]], -at))

    @step("CHAIN", "compare with the order from the reverse")
    def sway(self, first: Ranking, second: Ranking, candidates: int) -> float:
        """Kendall's tau of two orders of the same first `candidates`, from -1 to 1: what was given in another
        order and comes back in another order was ordered by its place. 1 for fewer than two passages.
        """
        places = {hit.passage.id: at for at, hit in enumerate(second[:candidates])}
        order = [places[hit.passage.id] for hit in first[:candidates]]
        tau = float(kendalltau(range(len(order)), order).statistic) if len(order) > 1 else 1.0
        self.span.attributes[SWAYED] = round(tau, 3)
        self.span.attributes["note"] = (
            f"given in reverse, {self.context.llm.model} returns an order that agrees with this one by a "
            f"Kendall's tau of {tau:.2f} (1: the same, 0: unrelated)"
        )
        return tau

    def _reordered(self, hits: Ranking, head: Sequence[Hit]) -> Ranking:
        was = {hit.passage.id: at for at, hit in enumerate(hits, 1)}
        self.span.output = Reordered(
            self.context.llm.model,
            tuple(Reranked(hit.passage.id, was[hit.passage.id], hit.score, None) for hit in head),
            scored=len(head),
        )
        ordered = [*head, *hits[len(head) :]]
        return tuple(Hit(hit.passage, 1 / rank) for rank, hit in enumerate(ordered, 1))


def windows(count: int, window: int, stride: int) -> list[tuple[int, int]]:
    """The windows over `count` places, from the last to the first: each begins `stride` before the one
    behind it (at most `window`), and the last one at the first place.
    """
    found, stop, stride = [], count, min(stride, window)
    while stop > 1:
        start = max(0, stop - window)
        found.append((start, stop))
        if start == 0:
            break
        stop = max(stop - stride, min(window, count))
    return found


def read_order(reply: str, count: int) -> tuple[list[int], bool]:
    """The order a reply gives, from 0, and whether it named every number once. Numbers that are no passage's
    or came before do not count; those left out follow in their order.
    """
    named = [int(number) - 1 for number in re.findall(r"\d+", reply)]
    order = list(dict.fromkeys(at for at in named if 0 <= at < count))
    return [*order, *(at for at in range(count) if at not in order)], sorted(named) == list(range(count))


def permutation_grammar(count: int) -> str:
    """A GBNF grammar of `count` numbers from 1 to `count` with " > " between; a number may stand twice."""
    numbers = " | ".join(f'"{number}"' for number in range(1, count + 1))
    rest = ' " > " number' * (count - 1)
    return f"root ::= number{rest}\nnumber ::= {numbers}\n"


def numbered(hits: Sequence[Hit]) -> str:
    """Passages with their numbers from 1."""
    return "\n\n".join(f"[{at}] {_shown(hit)}" for at, hit in enumerate(hits, 1))


def lettered(hits: Sequence[Hit]) -> str:
    """Passages with letters from A."""
    return "\n\n".join(f"[{letter}] {_shown(hit)}" for letter, hit in zip(LETTERS, hits, strict=False))


def _shown(hit: Hit) -> str:
    return " ".join(f"{hit.passage.title}: {hit.passage.text}".split())[:SHOWN]
