"""The prompt of the relevance judge, with the annotators' guidelines word for word."""

from __future__ import annotations

from core.backends.prompting.prompts import Prompt
from core.backends.prompting.untrusted import GROUNDED

# The best prompt flips with the labelling policy, so the policy is part of it. What is common to all passages
# of a set comes first, so that an endpoint can keep it.
JUDGE = Prompt(
    "judge/1",
    GROUNDED
    + " You decide whether a passage is relevant to a question, strictly by the labelling guidelines.",
    "Labelling guidelines:\n{policy}\n\nA passage is relevant from grade {relevant_from} on.\n\n{passage}\n\n"
    "Question: {question}\n\nBy the guidelines, is the passage relevant to the question? Yes or No:",
)
