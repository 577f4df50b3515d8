"""The current person and the permissions of their role. Every operation checks them itself, whichever page
calls it.

Without a login, anyone who can reach the server acts as the machine's owner, and so does the command line:
their account is "". With a login, a thread acts for nobody until a person is identified, and nobody may do
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Literal, ParamSpec, Protocol, TypeVar, get_args

from core.domain.errors import BadInput, NotAllowed

P = ParamSpec("P")
T = TypeVar("T")
Role = Literal["viewer", "labeller", "editor", "owner"]  # each may do what those before it may
ROLES: tuple[Role, ...] = get_args(Role)
Deed = Literal[
    "look", "ask", "ask a model", "label", "edit", "export", "release", "delete", "settings", "machine"
]
# The least role, and the deed in a sentence.
DEEDS: Mapping[Deed, tuple[Role, str]] = {
    "look": ("viewer", "looking"),  # at all that is shared
    "ask": ("viewer", "asking"),  # routes that call no model
    "ask a model": ("labeller", "asking a language model"),
    "label": ("labeller", "labelling"),
    # label sets, corpora, evaluations, presets, playlists, what is made in the background
    "edit": ("editor", "changing this"),
    "export": ("editor", "exporting"),
    "release": ("editor", "releasing"),
    "delete": ("owner", "deleting what others made"),  # one's own anybody may delete
    "settings": ("owner", "changing settings"),
    "machine": ("owner", "reading files of the server's machine"),  # wherever they are
}


@dataclass(frozen=True, slots=True)
class Person:
    """The person acting."""

    account: str  # a lower-case email address or a proxy's user name; "" on this machine itself
    role: Role | None  # None without a role

    def may(self, deed: Deed) -> bool:
        """Return True if the role allows `deed`."""
        return self.role is not None and ROLES.index(self.role) >= ROLES.index(DEEDS[deed][0])

    def sees(self, maker: str, *, private: bool) -> bool:
        """Return True if an object of `maker` is visible: everything except other people's private
        objects.
        """
        return self.may("look") and (not private or not self.account or maker == self.account)


MACHINE, NOBODY = Person("", "owner"), Person("", None)


class Ledger(Protocol):
    """A log of actions and of tokens used (`core.store.Store`)."""

    def record(self, who: str, deed: str, about: str) -> None:
        """Store that `who` did something. Raises Unavailable if it cannot be stored."""

    def maker(self, deed: str, about: str) -> str:
        """Return the account of who did it first to `about`, "" without an account."""

    def reserve(self, who: str, tokens: int, limit: int) -> tuple[str, int]:
        """Reserve tokens of today for a call; return an id, "" if it may not begin now, and those used."""

    def settle(self, id: str, who: str, tokens: int) -> None:
        """Count what a call used instead of its reservation."""

    def spend(self, who: str, tokens: int) -> None:
        """Add to what `who` used today (UTC)."""

    def spent(self, who: str) -> int:
        """Tokens that `who` used today (UTC)."""


_acting: ContextVar[Person | None] = ContextVar("acting", default=None)
_find: list[Callable[[], Person]] = []  # at most one: how a server knows who is behind a thread
_ledgers: list[Ledger] = []  # at most one: that of this process


def current() -> Person:
    """On whose behalf this thread acts."""
    known = _acting.get()
    if known is not None:
        return known
    return _find[0]() if _find else MACHINE


def find_by(find: Callable[[], Person]) -> None:
    """Let a server say who is behind a thread that acts for nobody in particular."""
    _find[:] = [find]


def keep_in(ledger: Ledger) -> None:
    """Keep what is recorded here from now on."""
    _ledgers[:] = [ledger]


@contextmanager
def acting(person: Person) -> Iterator[None]:
    """Let this thread act as `person` inside the block."""
    token = _acting.set(person)
    try:
        yield
    finally:
        _acting.reset(token)


def by_me(work: Callable[P, T]) -> Callable[P, T]:
    """`work`, done later in another thread, on behalf of who acts now."""
    person = current()

    @wraps(work)
    def call(*args: P.args, **options: P.kwargs) -> T:
        with acting(person):
            return work(*args, **options)

    return call


def why_not(deed: Deed, person: Person | None = None) -> str:
    """Explain why `deed` is not allowed, or return "" if it is."""
    who = person or current()
    if who.may(deed):
        return ""
    if who.role is None:
        return (
            f"{who.account or 'who is not signed in'} has no role here; an owner of this server can give one"
        )
    least, doing = DEEDS[deed]
    above = "" if least == ROLES[-1] else " or a higher one"
    return f"{doing} needs the role {least}{above}; {who.account} is {who.role}"


def require(deed: Deed) -> Person:
    """Return the current person if their role allows `deed`; raises NotAllowed otherwise."""
    who = current()
    if why := why_not(deed, who):
        raise NotAllowed(why)
    return who


def require_own(maker: str) -> Person:
    """Return the current person if they own the object or may delete those of others; raises NotAllowed
    otherwise.
    """
    who = require("look")
    if who.account and maker == who.account:
        return who
    return require("delete")


def record(deed: str, about: str) -> None:
    """Log an action of the current person; do nothing without an account or a ledger."""
    who = current()
    if who.account and _ledgers:
        _ledgers[0].record(who.account, deed, about)


def maker(deed: str, about: str) -> str:
    """Return the account of who did something first, "" if that is not recorded."""
    return _ledgers[0].maker(deed, about) if _ledgers else ""


def reserve(tokens: int, limit: int, who: Person) -> tuple[str, int]:
    """Reserve tokens of the day of somebody with an account; see `core.store.deeds.reserve`."""
    return _ledgers[0].reserve(who.account, tokens, limit) if _ledgers else ("unlimited", 0)


def settle(id: str, tokens: int, who: Person) -> None:
    """Count what a call used instead of the reservation `id`, "" if it had none."""
    if id and _ledgers:
        _ledgers[0].settle(id, who.account, tokens)
    else:
        spend(tokens, who)


def spend(tokens: int, who: Person) -> None:
    """Count tokens that a model used for somebody with an account."""
    if who.account and tokens > 0 and _ledgers:
        _ledgers[0].spend(who.account, tokens)


def spent(who: Person) -> int:
    """Tokens that models used today for somebody with an account."""
    return _ledgers[0].spent(who.account) if who.account and _ledgers else 0


def account(given: object) -> str:
    """Normalise an account: trimmed, lower case. Raises BadInput if it is not a valid account."""
    text = " ".join(str(given or "").split()).lower()
    if not text or len(text) > 64 or not text.isprintable() or text.startswith(("model:", "@")):
        raise BadInput(
            f"account {str(given)[:80]!r}: 1 to 64 printable characters that do not begin with @ or model:"
        )
    return text


def role_of(who: str, roles: Mapping[str, Role]) -> Role | None:
    """Return the role of an account: its own, else that of its domain ("@example.org"), else that of "*",
    else None.
    """
    names = [who, *([f"@{who.rpartition('@')[2]}"] if "@" in who else []), "*"]
    known = {name.strip().lower(): role for name, role in roles.items()}
    return next((known[name] for name in names if name in known), None)
