"""The prompts of routes that judge and correct themselves. All about the same passages begin with these, as
the prompt of the answer does, so that an endpoint reads the passages once.
"""

from __future__ import annotations

from core.backends.prompting.prompts import Prompt
from core.backends.prompting.untrusted import GROUNDED

_ASKED = "{passages}\n\nQuestion: {question}\n\n"

SCALE = Prompt(
    "scale/1",
    GROUNDED,
    _ASKED + "How much of the answer does the passage state? 5: all of it. 4: most of it. 3: a part. 2: only "
    "the topic fits. 1: nothing. Reply with one digit:",
)
REFORMULATE = Prompt(
    "reformulate/1",
    GROUNDED,
    "{passages}\n\nQuestion: {question}\n\nA search for the question found these passages, and they hardly "
    "help: {grades}.\nAlready searched for:\n{tried}\n\nWrite one other search question for the same "
    "information, with other words than those searched for: the terms that a document with the answer would "
    "use. Reply with the question only:",
)
CHECK = Prompt(
    "check-answer/1",
    GROUNDED,
    _ASKED + "Answer, by sentences:\n{sentences}\n\nSay as JSON: supported, for each sentence in order true "
    "if the passages state what it says, else false; relevant, true if the answer answers the question. "
    "JSON:",
)
CRITIQUE = Prompt(
    "critique/1",
    GROUNDED,
    _ASKED + "Draft answer: {draft}\n\nCheck the draft against the passages. Split it into claims, each one "
    "short statement. For each give the number of the passage that states it, or null, and whether it is "
    "supported. Then say in one sentence what to change (feedback), empty if nothing, and whether the draft "
    "is good as it is. Reply as JSON, like this one about another draft:\n{form}\n\nJSON:",
)
REFINE = Prompt(
    "refine/1",
    GROUNDED,
    _ASKED + "Draft answer: {draft}\n\nWhat a reviewer found: {feedback}\n\nWrite the answer to the question "
    "again and mend what the reviewer found: one to three sentences, with what the passages say. After each "
    "sentence put the number of its passage, like [1].",
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
    "relevant/1",
    GROUNDED,
    _ASKED + "Does the passage hold something that helps to answer the question? Yes or No:",
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
USEFUL = Prompt(
    "useful/1",
    GROUNDED,
    _ASKED + "Answer: {segment}\n\nHow useful is this answer to the one who asked? 5: it answers the whole "
    "question. 4: most of it. 3: a part. 2: it only touches it. 1: not at all. Reply with one digit:",
)
