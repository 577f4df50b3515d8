"""Errors named for the situation; each message is one line that says what is wrong and what is allowed."""


class RouteScopeError(Exception):
    """Base of every error this project raises on purpose; its text may be shown to a user."""


class BadInput(RouteScopeError):
    """What was asked cannot be done as written: names the offending value and the allowed ones."""


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


class Stopped(RouteScopeError):
    """Base of the reasons a route ends early by decision, not by failure."""


class Cancelled(Stopped):
    """The user pressed Stop."""


class DeadlinePassed(Stopped):
    """The route used up its time."""


class BudgetSpent(Stopped):
    """The route used up its model calls or tokens."""
