"""Properties of a model's text that need no context. Pure."""

from __future__ import annotations

import re

_UNABLE = (
    r"(?:can(?:no|['’]?)t|can not|could not|couldn['’]t|won['’]t"
    r"|(?:am|['’]m) (?:not able|unable|not allowed|not programmed|not designed)(?: to)?)"
)
_SERVICE = (
    r"(?:assist|help|provide|fulfil|comply|answer|generate|create|write|give|offer|discuss|engage|share"
    r"|access|browse|predict|complete|respond|support|do (?:that|this))"
)
_BOT = r"(?:ai\b|artificial intelligence|(?:large )?language model|virtual assistant|chatbot)"
_REFUSALS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bas an? {_BOT}",
        rf"\bI(?:['’]m| am) (?:just |only )?an? {_BOT}",
        rf"^(?:unfortunately|however)?[, ]*I ?{_UNABLE} {_SERVICE}",
        rf"^(?:I(?:['’]m| am) )?(?:very )?(?:sorry|(?:my |I )?apolog\w+)\b[^.!?\n]{{0,60}}\bI ?{_UNABLE}\b",
        r"^I (?:do not|don['’]t) have (?:the ability|(?:direct |real[- ]time )?access|personal)",
    )
)


def looks_refused(text: str) -> bool:
    """Return True if a text is a model declining its task.

    Used for asking once more, firmly. A sentence about what a customer cannot do is not a refusal.
    """
    start = text.strip().lstrip("\"'“*_ ")
    return any(pattern.search(start) for pattern in _REFUSALS)
