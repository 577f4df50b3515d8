"""The prompts that write questions about passages, one for each kind of question. Each begins with the
passages, so that what else is asked about them reads them only once.
"""

from __future__ import annotations

from core.backends.prompting.prompts import Prompt
from core.backends.prompting.untrusted import GROUNDED

_ASKS = (
    GROUNDED + " You write the question that somebody would type who needs this information and has not seen "
    "the passage. Name what it is about; never write of a passage, text or document. One short question, in "
    "the language of the passage. "
)
_PETS = (
    "<passage 1>\nPets\nPets up to 10 kg may stay in standard rooms. The fee is EUR 15 a night.\n</passage 1>"
)
_BUS = (
    "<passage 1>\nGetting here\nBus 12 stops at the Harbour Hotel every ten minutes until midnight.\n"
    "</passage 1>"
)
_END = "\n\nQuestion:"
PLAIN = Prompt(
    "question-plain/1",
    _ASKS,
    "{passages}" + _END,
    (
        (_PETS + _END, "What does it cost to bring a pet to the hotel?"),
        (_BUS + _END, "Until when does bus 12 stop at the Harbour Hotel?"),
    ),
)
VOCABULARY = Prompt(
    "question-vocabulary/1",
    _ASKS + "Use everyday words that the passage does not use.",
    "{passages}" + _END,
    (
        (_PETS + _END, "Can I bring my dog, and will they charge me?"),
        (_BUS + _END, "How do I get to you late in the evening without a car?"),
    ),
)
IDENTIFIER = Prompt(
    "question-identifier/1",
    _ASKS + "Write {identifier} in the question exactly as it stands there.",
    "{passages}\n\nTo be named: {identifier}" + _END,
    ((_BUS + "\n\nTo be named: 12" + _END, "How often does bus 12 stop at the Harbour Hotel?"),),
)
COMPARISON = Prompt(
    "question-comparison/1",
    _ASKS + "It asks how what the two passages are about differs, so that both are needed to answer it.",
    "{passages}" + _END,
    (
        (
            _PETS.replace(
                "</passage 1>",
                "</passage 1>\n<passage 2>\nSuites\nPets of any size may stay in "
                "suites, for EUR 40 a night.\n</passage 2>",
            )
            + _END,
            "What is the difference in price between a pet in a standard room and one in a suite?",
        ),
    ),
)
UNANSWERABLE = Prompt(
    "question-unanswerable/1",
    _ASKS + "It is about the same subject, but asks for something that the passage does not say.",
    "{passages}" + _END,
    (
        (_PETS + _END, "May dogs be taken into the restaurant of the hotel?"),
        (_BUS + _END, "What does a ticket for bus 12 to the Harbour Hotel cost?"),
    ),
)
