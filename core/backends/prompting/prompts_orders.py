"""Prompts that have the model put several passages in order, and the reading of its replies. Pure."""

from __future__ import annotations

import re

from core.backends.prompting.prompts import Prompt
from core.backends.prompting.untrusted import GROUNDED

LABELS = "ABCDEFGHIJKLMNOPQRST"  # one token each in the vocabularies at hand
ORDER_PASSAGES = Prompt(
    "order-passages/1",
    GROUNDED + " You rank passages by how well they answer a question.",
    "{passages}\n\nQuestion: {question}\n\nRank the {n} passages above by how well they answer the question, "
    "the best first. Use each number once, in the form [2] > [1] > [3]. Reply with the ranking only.",
)
BEST_PASSAGE = Prompt(
    "best-passage/1",
    GROUNDED,
    "{passages}\n\nQuestion: {question}\n\nWhich passage answers the question best? Reply with its letter "
    "only:",
)
_NUMBER = re.compile(r"\d+")


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
