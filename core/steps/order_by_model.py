"""Steps that have the language model compare passages: by windows, or set by set."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from core.backends.prompting.prompts import BEST_PASSAGE, ORDER_PASSAGES
from core.backends.prompting.replies import odds
from core.backends.prompting.untrusted import between, without_marks
from core.domain.errors import BudgetSpent, ModelFailed
from core.domain.types import Passage, Ranking
from core.steps.rerank import RerankSteps
from core.steps.step import step

LABELS = "ABCDEFGHIJKLMNOPQRST"  # one token each in the vocabularies at hand
_NUMBER = re.compile(r"\d+")
Order = list[int]  # positions in the ranking that was given


class OrderByModel(RerankSteps):
    """Listwise and setwise reranking. What the order given does to the order returned is on the span."""

    @step("RERANKER", "rerank listwise by the model", returns=Ranking)
    def listwise(self, text: str, hits: Ranking, window: int, stride: int, reverse: bool) -> Ranking:
        """Reorder the hits with a model; a window of `window` passages slides from the end to the start by
        `stride`. With `reverse`, repeat from the reversed order, which measures the effect of the given
        order.

        Source: Sun et al. 2023, arXiv:2304.09542, section 3.2. A window that fails keeps its order.
        """
        return self._compared(
            hits, reverse, lambda order, notes: self._slide(text, hits, order, window, stride, notes)
        )

    @step("RERANKER", "rerank setwise by the model", returns=Ranking)
    def setwise(self, text: str, hits: Ranking, size: int, top: int, reverse: bool) -> Ranking:
        """Return the `top` best hits by heap sort over sets of `size`, followed by the rest in their order.

        Each comparison is one call: the label probabilities at the first token give the best of the set.
        Source: Zhuang et al. 2024, arXiv:2310.09497, section 3. `reverse` as in `listwise`.
        """
        return self._compared(
            hits, reverse, lambda order, notes: self._heap(text, hits, order, size, top, notes)
        )

    def _compared(
        self, hits: Ranking, reverse: bool, sort: Callable[[Order, list[str]], tuple[Order, int]]
    ) -> Ranking:
        if not hits:
            return self._nothing()
        notes: list[str] = []
        order, answered = sort(list(range(len(hits))), notes)
        if notes and not answered:
            raise ModelFailed(f"no comparison of {len(hits)} passages succeeded: {notes[0]}")
        if notes:
            self.span.attributes["not compared"] = f"{len(notes)} sets keep their order: {notes[0]}"
        if reverse and len(hits) > 1 and not notes:
            again: list[str] = []
            other, _ = sort(list(range(len(hits)))[::-1], again)
            if again:
                self.span.attributes["order sensitivity"] = f"not measured: {again[0]}"
            else:
                self.span.attributes["order sensitivity"] = (
                    f"Kendall's tau {tau(order, other):+.2f} between the orders returned for the order given "
                    f"and for its reverse (1: the order given does not matter); the first passage "
                    f"{'is the same' if order[0] == other[0] else 'is another one'}"
                )
        ranks = {at: rank for rank, at in enumerate(order, 1)}
        return self._ordered(
            hits,
            [1 / ranks[at] for at in range(len(hits))],
            self.context.llm.model,
            [{"why": "1 / rank: the model gives an order, no scores"}] * len(hits),
        )

    def _slide(
        self, text: str, hits: Ranking, order: Order, window: int, stride: int, notes: list[str]
    ) -> tuple[Order, int]:
        order, end, answered = list(order), len(order), 0
        while True:
            start = max(0, end - window)
            inside = order[start:end]
            try:
                found = self._window(text, [hits[at].passage for at in inside])
                order[start:end] = [inside[at] for at in found]
                answered += 1
            except (BudgetSpent, ModelFailed) as error:
                notes.append(str(error))
            if start == 0:
                return order, answered
            end -= stride

    def _window(self, text: str, passages: Sequence[Passage]) -> tuple[int, ...]:
        n = len(passages)
        if n == 1:
            return (0,)
        reply = self._ask(
            ORDER_PASSAGES,
            max_tokens=6 * n + 8,
            grammar=order_grammar(n),
            unusable=lambda text: None if any(mark.isdigit() for mark in text) else "no number",
            passages="\n\n".join(between(at, one.title, one.text) for at, one in enumerate(passages, 1)),
            question=text,
            n=str(n),
        )
        return permutation(reply.text, n)

    def _heap(
        self, text: str, hits: Ranking, order: Order, size: int, top: int, notes: list[str]
    ) -> tuple[Order, int]:
        answered = 0

        def best(of: Sequence[int]) -> int:
            nonlocal answered
            try:
                at = self._best(text, [hits[one].passage for one in of])
            except (BudgetSpent, ModelFailed) as error:
                notes.append(str(error))
                return 0
            answered += 1
            return at

        return heap_top(order, size, top, best), answered

    def _best(self, text: str, passages: Sequence[Passage]) -> int:
        """Return the position of the passage whose label is likeliest."""
        shown = [
            between(1, one.title, one.text)
            .replace("<passage 1>", f"<passage {label}>", 1)
            .removesuffix("</passage 1>")
            + f"</passage {label}>"
            for label, one in zip(LABELS, passages, strict=False)
        ]
        answer = self._ask(
            BEST_PASSAGE,
            max_tokens=1,
            top_logprobs=20,
            passages="\n\n".join(shown),
            question=without_marks(text),
        )
        found = odds(answer, [label.lower() for label in LABELS[: len(passages)]])
        if found is None:
            raise ModelFailed(f"no label among the answers: {answer.text!r}")
        if found.by == "sampled word":
            self.span.attributes["compared by"] = "the letter it wrote: the endpoint gives no probabilities"
        shares = list(found.of.values())
        return shares.index(max(shares))


def heap_top(order: Sequence[int], size: int, top: int, best: Callable[[Sequence[int]], int]) -> list[int]:
    """Return the `top` best of `order` by heap sort with `size` - 1 children per node, then the others in
    their order. `best` returns the position of the best of a set of 2 to `size`.
    """
    heap, arity = list(order), size - 1

    def sift(at: int) -> None:
        while children := list(range(arity * at + 1, min(arity * at + arity + 1, len(heap)))):
            among = [at, *children]
            winner = among[best([heap[one] for one in among])]
            if winner == at:
                return
            heap[at], heap[winner] = heap[winner], heap[at]
            at = winner

    for at in reversed(range((len(heap) + arity - 2) // arity)):
        sift(at)
    chosen: list[int] = []
    while heap and len(chosen) < top:
        chosen.append(heap[0])
        last = heap.pop()
        if heap:
            heap[0] = last
            if len(chosen) < top:
                sift(0)
    return chosen + [one for one in order if one not in set(chosen)]


def tau(first: Sequence[int], second: Sequence[int]) -> float:
    """Kendall's tau of two orders of the same things, at least two. Source: Kendall 1938, Biometrika 30."""
    place = {one: at for at, one in enumerate(second)}
    pairs = [(a, b) for at, a in enumerate(first) for b in first[at + 1 :]]
    return sum(1 if place[a] < place[b] else -1 for a, b in pairs) / len(pairs)


def permutation(reply: str, n: int) -> tuple[int, ...]:
    """Return the positions 0 to n - 1 in the order in which `reply` names them by number, from 1.

    Numbers that repeat or name no passage are ignored; unnamed passages follow in their order. Source: Sun et
    al. 2023, "Is ChatGPT Good at Search?", arXiv:2304.09542, section 3 and its code.
    """
    named = dict.fromkeys(int(found) - 1 for found in _NUMBER.findall(reply) if len(found) < 4)
    valid = [at for at in named if 0 <= at < n]
    return (*valid, *(at for at in range(n) if at not in set(valid)))


def order_grammar(n: int) -> str:
    """Return a grammar of `n` numbers between 1 and `n` in brackets, separated by ">"."""
    numbers = " | ".join(f'"[{number}]"' for number in range(1, n + 1))
    return "root ::= one" + ' " > " one' * (n - 1) + f"\none ::= {numbers}"
