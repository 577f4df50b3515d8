"""The prompts of routes that judge and correct themselves. All about the same passages begin with these, as
the prompt of the answer does, so that an endpoint reads the passages once.
"""

from __future__ import annotations

from core.backends.prompting.prompts import Prompt
from core.backends.prompting.untrusted import GROUNDED

_ASKED = "{passages}\n\nQuestion: {question}\n\n"

REFORMULATE = Prompt(
    "reformulate/2",
    GROUNDED,
    "{passages}\n\nQuestion: {question}\n\nA search found these passages, and the answer is not in them.\n"
    "Already searched for:\n{tried}\n\nWrite one other short search query for the same information, in the "
    "terms that a document with the answer would use. Query:",
)
MEND = Prompt(
    "mend/1",
    GROUNDED,
    _ASKED
    + "This sentence of an answer is not what the passages say:\n{claim}\n\nWrite the one sentence that "
    "the passages do say about it and that answers the question, with the number of its passage, like [1]. "
    "If they say nothing about it, reply: none\nSentence:",
)
LOOK_UP = Prompt(
    "look-up/1",
    "You decide whether a question has to be looked up in documents before it is answered. A question about "
    "particular rules, products, people, places, numbers or events has to be. A greeting, plain arithmetic, "
    "or what everybody knows does not. Reply Yes or No.",
    "Question: {question}\n\nDoes it have to be looked up? Yes or No:",
)
UNAIDED = Prompt(
    "unaided/1",
    "You answer briefly, in at most two sentences.",
    "{question}",
)
RELEVANT = Prompt(
    "relevant/2",
    GROUNDED,
    _ASKED + "Is the answer to the question stated in the passage? Yes or No:",
)
SEGMENT = Prompt(
    "segment/1",
    GROUNDED,
    _ASKED + "Write a short answer to the question, in one sentence, with what the passage says.",
)
SUPPORTED = Prompt(
    "supported/1",
    GROUNDED,
    _ASKED + "Answer: {segment}\n\nHow much of this answer is stated in the passage? Reply with one word, "
    "fully, partially or no:",
)
CLAIM = Prompt(
    "claim/1",
    GROUNDED,
    "{passages}\n\nQuestion: {question}\nAnswer: {claim}\n\nDoes the passage state this answer, with the "
    "same numbers and names? Yes or No:",
)
USEFUL = Prompt(
    "useful/1",
    GROUNDED,
    _ASKED + "Answer: {segment}\n\nHow useful is this answer to the one who asked? 5: it answers the whole "
    "question. 4: most of it. 3: a part. 2: it only touches it. 1: not at all. Reply with one digit:",
)
