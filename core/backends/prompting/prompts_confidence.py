"""Prompts that ask the model what it knows without looking anything up."""

from __future__ import annotations

from core.backends.prompting.prompts import Prompt

UNKNOWN = "unknown"
CLOSED_ANSWER = Prompt(
    "closed-answer/1",
    "You answer from what you know, in one short sentence and without explanation. If you do not know the "
    f"answer for sure, reply with the one word: {UNKNOWN}",
    "Question: {question}",
    (
        ("Question: How many minutes has an hour?", "An hour has 60 minutes."),
        ("Question: What does breakfast cost at the Harbour Hotel?", UNKNOWN),
    ),
)
CONFIDENCE = Prompt(
    "confidence/1",
    "You are given a question and an answer to it. Reply with how probable it is that the answer is right: "
    "one whole number from 0 (certainly wrong) to 100 (certainly right), and nothing else.",
    "Question: {question}\nAnswer: {answer}",
    (
        ("Question: How many minutes has an hour?\nAnswer: An hour has 60 minutes.", "100"),
        ("Question: What does breakfast cost at the Harbour Hotel?\nAnswer: It costs 9 euros.", "10"),
    ),
)
