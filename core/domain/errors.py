"""Errors named for the situation; each message is one line that says what is wrong and what is allowed."""

from __future__ import annotations

MAX_MESSAGE_CHARS = 1_000  # characters of a message: the rest is nobody's to read, and may be a whole file


def shortened(text: str, most: int = MAX_MESSAGE_CHARS) -> str:
    """`text`, or its beginning and its end where it is longer: what to do often stands at the end."""
    if len(text) <= most:
        return text
    tail = most // 4
    return f"{text[: most - tail - 3]} … {text[len(text) - tail :]}"


def describe(error: BaseException) -> str:
    """One line for a page or a log: our own errors speak for themselves, others are named by type."""
    text = " ".join(str(error).split()) or type(error).__name__
    return shortened(text if type(error).__module__ == __name__ else f"{type(error).__name__}: {text}")


class RouteScopeError(Exception):
    """Base of every error this project raises on purpose; its text may be shown to a user, and is cut."""

    def __init__(self, message: object = "") -> None:
        super().__init__(shortened(str(message)))


class BadInput(RouteScopeError):
    """A request that cannot be met as written. The message names the offending value and the allowed ones."""


class NotConfirmed(BadInput):
    """A request that costs more than a limit and was not confirmed."""


class Unavailable(RouteScopeError):
    """Something a route needs is not here; the message says how to get it."""


class IndexDamaged(RouteScopeError):
    """An index file does not match its recorded sha256; it is refused and must be rebuilt."""


class ModelFailed(RouteScopeError):
    """A model endpoint gave no usable answer (unreachable, HTML, empty choices, refused twice)."""


class ModelTimedOut(ModelFailed):
    """A model call passed its total deadline."""


class WebFailed(RouteScopeError):
    """A web search gave no usable answer (unreachable, refused, not JSON)."""


class WebTimedOut(WebFailed):
    """A web search passed its total deadline."""


class PipelineFailed(RouteScopeError):
    """A pipeline of the user's own gave no usable reply (an error, rubbish, nothing)."""


class PipelineTimedOut(PipelineFailed):
    """A call of such a pipeline passed its deadline."""


class Stopped(RouteScopeError):
    """Base of the reasons a route ends early by decision, not by failure."""


class Cancelled(Stopped):
    """The user pressed Stop."""


class DeadlinePassed(Stopped):
    """The route used up its time."""


class NotAllowed(RouteScopeError):
    """A request that needs another role, which the message names."""


class BudgetSpent(Stopped):
    """The route used up its model calls or tokens."""
