"""Counts model calls against the tokens a person may use in a day: reserved before, settled afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from core.backends import admission
from core.backends.base import Completion, LLMRequest
from core.domain import people
from core.domain.errors import BudgetSpent, Cancelled, NotAllowed

LOOK_S = 0.1  # between looks whether calls under way left tokens
PER_MESSAGE = 16  # tokens of a chat template around a message, at most
BYTES = 4  # of a token of plain text, about; a token has one at least


@dataclass(slots=True)
class DailyCharge:
    """The known facts of a call under way."""

    sent: bool = False  # its request reached the service
    received: str = ""  # the text so far
    answer: Completion | None = None

    def tokens(self, request: LLMRequest) -> int:
        """Return the tokens to charge: the reported ones, else an estimate for what was sent and received."""
        if self.answer is not None and (told := self.answer.prompt_tokens + self.answer.completion_tokens):
            return told
        size = _size(request) + len((self.answer.text if self.answer else self.received).encode())
        return -(-size // BYTES) if self.sent or self.answer else 0


_charge: ContextVar[DailyCharge | None] = ContextVar("charge", default=None)


def current() -> DailyCharge:
    """Return the charge of the call this thread makes; one that nobody reads outside of a call."""
    return _charge.get() or DailyCharge()


@contextmanager
def charged(request: LLMRequest, daily: int | None, cancel: threading.Event) -> Iterator[DailyCharge]:
    """Charge whoever asks for the call made inside, also if it is stopped or fails.

    Wait as long as other calls of theirs may use the rest of the `daily` tokens. Raises NotAllowed and
    BudgetSpent if they may not call a model, or have used them; Cancelled.
    """
    who = admission.asker().person
    if why := people.why_not("ask a model", who):
        raise NotAllowed(why)
    limited = daily is not None and bool(who.account)
    id = _reserved(request, daily, who, cancel) if limited and daily is not None else ""
    charge = DailyCharge()
    token = _charge.set(charge)
    try:
        yield charge
    finally:
        _charge.reset(token)
        people.settle(id, charge.tokens(request), who)


def _reserved(request: LLMRequest, daily: int, who: people.Person, cancel: threading.Event) -> str:
    most = _size(request) + PER_MESSAGE * len(request.messages) + request.max_tokens
    id, used = people.reserve(most, daily, who)
    if not id and used < daily:
        with admission.aside("other calls leave tokens of today"):
            while not id and used < daily:
                if cancel.wait(LOOK_S):
                    raise Cancelled("stopped while other calls used the tokens of today")
                id, used = people.reserve(most, daily, who)
    if not id:
        spent = f"{used:,} of the {daily:,} model tokens of today"
        raise BudgetSpent(f"{who.account} has used {spent}; more at 00:00 UTC")
    return id


def _size(request: LLMRequest) -> int:
    return sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
