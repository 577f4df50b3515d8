"""The classes of questions that routes are for: rules that can be read, and written examples. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from core.backends.base import Matrix, Vector
from core.steps.gate import exact_terms
from core.steps.transform import wording

QuestionClass = Literal[
    "no_retrieval", "exact", "plain", "conceptual", "complex", "conversational", "structured"
]
NO_SEARCH = "no search"
CANDIDATES: Mapping[QuestionClass, tuple[str, ...]] = {  # the first that can run is taken
    "no_retrieval": (NO_SEARCH,),
    "exact": ("bm25",),
    "plain": ("rerank",),
    "conceptual": ("multistage", "rerank"),
    "complex": ("iterative", "decompose", "rerank"),
    "conversational": ("memory",),
    "structured": ("text_to_sql", "rerank"),
}
CLASSES: tuple[QuestionClass, ...] = get_args(QuestionClass)
LONG = 19  # words from which a question is taken to need several facts
SHORT = 12  # words up to which a question with an identifier is about the identifier

_GREETS = {"hi", "hello", "hey", "morning", "afternoon", "evening", "thanks", "thank", "cheers", "lol", "ok",
           "okay", "bye", "goodbye"}  # fmt: skip
_POLITE = re.compile(
    r"(?:good|day|night|how|are|you|doing|today|many|that|was|is|it|everything|all|i|needed|need"
    r"|great|perfect|"
    r"nice|cool|got|for|your|help|helped|much|very|so|a|lot|the|and|have|welcome|please|yes|no|sure"
    r"|fine|well|this)"
)
_ARITHMETIC = re.compile(
    r"(?<![\w.-])\d+\s*(?:[+*/x×÷^]|\s-\s|plus|minus|times|divided by)\s*\d+(?![\w-])|\bpercent of \d"
    r"|%\s*of\s*\d"
    r"|\bhow many (?:seconds|minutes|hours|days|weeks) (?:are |is )?(?:there )?in\b",
    re.IGNORECASE,
)
_ABOUT_CHAT = re.compile(
    r"\bwho are you\b|\bwhat can you do\b|\bare you (?:a bot|human|real)\b|\b(?:last"
    r"|previous) (?:thing|answer|"
    r"message|reply)\b|\b(?:answer|reply|speak|talk|write)(?: to)? (?:me )?in (?:[A-Z]\w+)|\bsay that again\b"
)
_RECORD = re.compile(
    r"\b(?:orders?|return|refund|claim|tracking|shipment|parcel|invoice|article|customer)\b[^.?!]{0,14}?"
    r"#?(?:[A-Z]{2,5}-?)*\d{4,}|\b(?:RMA|DMG)-?\d{4,}",
    re.IGNORECASE,
)
_THINGS = (
    r"(?:orders|shipments|parcels|returns|refunds|customers|payments|claims|articles|products|deliveries)"
)
_COUNTS = re.compile(
    rf"\bhow many (?:\w+ )?{_THINGS}\b|\bon average\b|\bin total\b|^rank\b|^list\b|\bbest-selling\b"
    rf"|\b(?:which|what) (?:\w+ ){{1,3}}(?:has|had|have|was|were|is) the (?:most|least|fewest|highest"
    rf"|lowest)\b"
    rf"|\b(?:which|what) {_THINGS} (?:are|were|have)\b|\bdid we (?:pay|sell|ship|refund|earn)\b"
    r"|\bthe share of\b",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\bcompar(?:e|ed|ing)\b|\bversus\b|\bvs\b|\bdiffer(?:s|ent|ence|ences)?\b|\b(?:cheaper|faster"
    r"|better|more|"
    r"less|longer) .*(?:\bor\b|,)|\bwhich (?:\w+ ){0,2}(?:pays|costs|takes|lasts) (?:more|less|longer)\b",
    re.IGNORECASE,
)
_CHAINED = re.compile(
    r"^(?:the|a|an) [^,.?]+ (?:that|who|which|whose|behind|of) .*[:,?]|, and (?:what|how|when|who"
    r"|where) (?:is|are|"
    r"long|many|much|do|does)? ?(?:its|their|his|her|it|they)\b|\bthe (?:\w+ ){1,3}(?:that|who|which) \w+ed\b"
    r"|\bof the \w+est\b|^if .*,",
    re.IGNORECASE,
)
_PRINCIPLE = re.compile(
    r"\b(?:strategy|philosophy|attitude|principles?|approach|trade-?offs?|overall|lessons?|learn(?:ed"
    r"|t)?|culture"
    r"|fairness|ensure[ds]?|avoid|protected|in general|dependent)\b|^why (?:do|does|did|is|are)\b"
    r"|^how (?:do|does|should) (?:we|you|the company|\w+) (?:handle|deal|cope|treat|divide|make sure|keep)\b"
    r"|^what (?:makes|drove|changes)\b|^where have\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:what|which|when|where|who|whom|whose|why|how|is|are|was|were|do|does|did|can|could|may|might"
    r"|must|will|"
    r"would|shall|should|has|have|had|compare|list|name|give|tell|show|explain|after|until|in|at|on|for|from)"
)
_EVERYDAY = re.compile(
    r"\b(?:stuff|cash|grab|stuck|hurry|gone|somebody|someone|nobody|anyone|won't|can't|swears|guy|broke)\b"
    r"|\bi have nothing\b|\bfirst move\b|\bmy (?:two|new|old|first) \w+\b",
    re.IGNORECASE,
)
_NO_NAMES = ("price", "date")  # exact terms that are conditions of a question, not what it is about


def by_rules(text: str, history: bool) -> tuple[QuestionClass, str, dict[QuestionClass, float]]:
    """The class of a question, the reason in words, and 1.0 for each class of which some rule holds.

    The first class decides in this order: no_retrieval, conversational, structured, complex (comparing),
    exact, complex (several facts), conceptual; else plain.
    """
    words = wording(text).split()
    named = [term.text for term in exact_terms(text) if term.kind not in _NO_NAMES]
    rules: list[tuple[QuestionClass, str | None]] = [
        ("no_retrieval", _chat(text, words)),
        ("conversational", "there is a conversation before it" if history else None),
        (
            "structured",
            _found(_RECORD, text, "names a record") or _found(_COUNTS, text, "asks about all records"),
        ),
        ("complex", _found(_COMPARES, text, "compares")),
        ("exact", f"names {named[0]!r} in {len(words)} words" if named and len(words) <= SHORT else None),
        ("complex", _found(_CHAINED, text, "needs one fact for another")),
        ("complex", f"has {len(words)} words, at least {LONG}" if len(words) >= LONG else None),
        ("conceptual", _found(_PRINCIPLE, text, "asks for a principle")),
        ("conceptual", _found(_EVERYDAY, text, "tells it in everyday words")),
        (
            "conceptual",
            "tells something instead of asking" if words and not _ASKS.fullmatch(words[0]) else None,
        ),
        ("plain", "no rule of another class holds"),
    ]
    held = [(name, why) for name, why in rules if why]
    scores = {name: float(any(name == one for one, _ in held)) for name in CLASSES}
    scores["plain"] = float(len(held) == 1)
    return held[0][0], held[0][1], scores


def _chat(text: str, words: Sequence[str]) -> str | None:
    greets = _GREETS.intersection(words)
    if greets and all(word in greets or _POLITE.fullmatch(word) for word in words):
        return "says only what people say to be polite"
    return _found(_ARITHMETIC, text, "is arithmetic") or _found(_ABOUT_CHAT, text, "is about the chat itself")


def _found(pattern: re.Pattern[str], text: str, why: str) -> str | None:
    match = pattern.search(text)
    return f"{why}: {match[0].strip()[:60]!r}" if match else None


EXAMPLES: Mapping[QuestionClass, tuple[str, ...]] = {
    "no_retrieval": (
        "Hello there!",
        "Good evening, how is it going?",
        "Thanks a lot, bye.",
        "ok great",
        "What is 7 times 8?",
        "How much is 20 percent of 50?",
        "How many seconds are in an hour?",
        "What is your name?",
        "Can you reply in French, please?",
        "Please repeat your last message in simpler words.",
    ),
    "exact": (
        "What does error E-4711 mean?",
        "E-4711",
        "code KX-220 meaning",
        "KX-221 on payment",
        "INC-2031-0007",
        "form B-7",
        "user_sessions table",
        "X-Request-Signature header",
        "CONFIG_MISSING",
        "RateLimitHit alert",
        "MX500 printer shows error",
        "RFC-12 class B",
    ),
    "plain": (
        "How long is a voucher valid?",
        "When does the night shift start?",
        "What is the maximum weight of a bag?",
        "How many points does it take for silver status?",
        "What does the training cover?",
        "Can a bicycle be sent by mail?",
        "How much does a replacement card cost?",
        "Who approves a refund?",
        "What is the last day to order for Easter delivery?",
        "How long do I have to send an item back?",
        "Do I pay for return shipping?",
        "How often is a backup made?",
        "What is the deadline for cancellations?",
    ),
    "conceptual": (
        "What is our approach to security?",
        "How do we make sure that mistakes do not happen again?",
        "Why do we prefer small teams?",
        "What did we learn from past failures?",
        "How is trust kept between partners?",
        "What is the general idea behind the new rules?",
        "my thing arrived all smashed up",
        "The guy never showed up and now I have nothing",
        "It says no every time I try to get in",
        "Somebody saw our password, what first?",
        "Can you put both things in one box?",
        "We live somewhere else now and you sent it to the wrong door",
        "How do we treat customers fairly when a delivery goes wrong?",
        "My order never got here, what now?",
        "How do we keep payments safe when a partner fails?",
        "The food I got had gone bad",
        "How do we cope when there are more orders than people?",
    ),
    "complex": (
        "Compare the gold and the silver plan.",
        "How does the old policy differ from the new one?",
        "Is the train or the bus cheaper for students?",
        "Plan A versus plan B: which one is safer and why?",
        "Which supplier makes our best tent, and what is its warranty?",
        "The office that opened after the merger: who leads it and how many people work there?",
        "If I ordered in May and live abroad, until when can I return it and what will it cost me?",
        "Who leads the team that wrote the document which replaced the old guide?",
        "Which carrier is used for the most expensive class, and how much do we pay it in peak season?",
        "My parcel was opened by customs and the vase in it is broken: who pays, and until when?",
        "What changed in the return rules for customers between last year and this year?",
        "Does a lost parcel to France bring us more from one carrier than from the other?",
    ),
    "structured": (
        "What is the status of order 10023?",
        "How many tickets were closed in May 2024?",
        "Which customer has the most bookings?",
        "List all invoices that are overdue.",
        "What did we earn in the last quarter?",
        "How many days does a delivery take on average?",
        "Has booking BK-20933 been paid?",
        "When was the parcel with tracking AB123456789 delivered?",
        "Rank our suppliers by the number of complaints.",
        "Which orders are waiting right now?",
    ),
}


def by_examples(
    vector: Vector, vectors: Matrix, classes: Sequence[QuestionClass], k: int
) -> dict[QuestionClass, float]:
    """For each class the mean cosine of `vector`, shape (dim,), with the `k` nearest of its examples.

    `vectors`, shape (n, dim), are those of the examples and `classes` what each stands for. With k = 1 it is
    the nearest example's class that is best, with k from the largest class on, by means of all.
    """
    cosines = vectors @ vector
    return {
        name: float(np.sort(cosines[[at for at, one in enumerate(classes) if one == name]])[::-1][:k].mean())
        for name in dict.fromkeys(classes)
    }
