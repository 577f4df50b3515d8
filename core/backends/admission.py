"""The queue for models: runs take alternating turns, and waiting for others does not count as a route's time.

A route's clock and deadline stop while it waits for a model that others use. Waiting for its own calls
counts, as it would wait for those alone, too.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count, zip_longest
from typing import Any, Protocol

from core.domain.errors import Cancelled
from core.domain.once import Recent
from core.domain.outputs import Waited
from core.domain.people import Person, current
from core.domain.types import SpanKind

WAIT = "wait for the model"  # the span's name
LOOK_S = 0.02  # how often one who waits looks whether it was stopped, and what place it has
SERVICE = "the service"  # what is waited for while it asks not to be asked
RECENT = 20  # calls by which the next ones' time is told
ENDPOINTS = 64  # that are remembered, the one asked longest ago goes first
_numbers = count(1)


class OpenWait(Protocol):
    """The span of a wait under way."""

    output: Any  # an Output, or None


class RouteClock(Protocol):
    """The parts of a route's trace that admission uses (`core.steps.trace.Trace`): its clock, and spans for
    waits.
    """

    def now(self) -> float:
        """Milliseconds on the route's own clock."""

    def stand_at(self, ms: float) -> None:
        """Set the route's own clock to `ms`."""

    def aside(self) -> AbstractContextManager[None]:
        """Stop the route's clock inside the block."""

    def span(self, name: str, kind: SpanKind) -> AbstractContextManager[OpenWait]:
        """Open a step."""


class Asker:
    """On whose behalf models are used: a route of a run, or other work.

    `run` is equal for all that share a turn. `trace` is the route's, whose clock leaves out waits; setting
    `cancel` ends a wait. `person`: whose tokens its calls are, who acts where it is made.
    """

    def __init__(
        self,
        run: str = "",
        trace: RouteClock | None = None,
        cancel: threading.Event | None = None,
        person: Person | None = None,
    ) -> None:
        self.run = run or f"alone-{next(_numbers)}"
        self.person = person or current()
        self.trace, self.cancel = trace, cancel
        self.free: dict[int, list[float]] = {}  # by turns: since when each slot is free on the route's clock
        self._lock = threading.Lock()
        self._reasons, self._since, self._total = 0, 0.0, 0.0
        self._behind: list[tuple[Asker, float]] = []  # who does its work, and what they had waited then

    def waited(self) -> float:
        """Seconds that it has waited for others so far: no deadline of it counts them."""
        return self._waited(())

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the block as waiting for others; concurrent waits of several branches count once."""
        self.held_up(True)
        try:
            yield
        finally:
            self.held_up(False)

    def held_up(self, begins: bool) -> None:
        """Record that a reason to wait begins or ends."""
        with self._lock:
            if begins and not self._reasons:
                self._since = time.perf_counter()
            self._reasons += 1 if begins else -1
            if not self._reasons:
                self._total += time.perf_counter() - self._since

    @contextmanager
    def behind(self, other: Asker) -> Iterator[None]:
        """Inside, what `other` waits for is waited for here too: it does work that both need."""
        entry = (other, other.waited())
        with self._lock:
            self._behind.append(entry)
        try:
            yield
        finally:
            waited = other.waited() - entry[1]
            with self._lock:
                self._behind.remove(entry)
                self._total += waited

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Models that are used inside, in this thread, are used on its behalf."""
        token = _asking.set(self)
        try:
            yield
        finally:
            _asking.reset(token)

    def _waited(self, seen: tuple[Asker, ...]) -> float:
        with self._lock:
            own = self._total + (time.perf_counter() - self._since if self._reasons else 0.0)
            behind = list(self._behind)
        known = (*seen, self)
        return own + sum(one._waited(known) - before for one, before in behind if one not in known)


_asking: ContextVar[Asker] = ContextVar("asking")


def asker() -> Asker:
    """Return the asker this thread uses models for; a new one by default."""
    return _asking.get(None) or Asker()


@contextmanager
def aside(what: str = "") -> Iterator[None]:
    """Exclude the block, which is done once for all, from the route's time. `what`, the condition waited for,
    makes it a span.
    """
    who = asker()
    with ExitStack() as stack:
        stack.enter_context(who.waiting())
        if who.trace is not None:
            if what:
                stack.enter_context(_shown(who.trace, Waited(until=what)))
            stack.enter_context(who.trace.aside())
        yield


@contextmanager
def service_wait(seconds: float) -> Iterator[None]:
    """Show that a route waits `seconds` because its service asks for that; the time counts."""
    trace = asker().trace
    if trace is None:
        yield
        return
    with _shown(trace, Waited(about=seconds, until=SERVICE)) as wait:
        began = time.perf_counter()
        try:
            yield
        finally:
            wait.own_ms = (time.perf_counter() - began) * 1000


class _ShownWait:
    """A wait under way: its span, and the milliseconds of it that count for the route."""

    def __init__(self, span: OpenWait) -> None:
        self.span, self.own_ms = span, 0.0


@contextmanager
def _shown(trace: RouteClock, wait: Waited) -> Iterator[_ShownWait]:
    """Show a wait as a span, at its end with the milliseconds that count and those that do not."""
    began = time.perf_counter()
    with trace.span(WAIT, "CHAIN") as span:
        span.output, shown = wait, _ShownWait(span)
        try:
            yield shown
        finally:
            others = max(0.0, (time.perf_counter() - began) * 1000 - shown.own_ms)
            others, own = round(others, 3), round(shown.own_ms, 3)
            span.output = replace(span.output, over=True, others_ms=others, own_ms=own)


@dataclass(slots=True, eq=False)
class _Ticket:
    asker: Asker
    asked_ms: float = 0.0  # on the route's clock
    began: float | None = None  # in time.perf_counter(), when its turn came
    used: bool = False  # whether whoever asked still wanted it then
    served: threading.Event = field(default_factory=threading.Event)


class ModelQueue:
    """The slots of one model, and the calls that wait for one: in their order inside a run, and round the
    runs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots = math.inf
        self._serving: list[_Ticket] = []
        self._lines: OrderedDict[str, deque[_Ticket]] = OrderedDict()  # by run, the next one's first
        self._held_up: set[Asker] = set()
        self._took: deque[float] = deque(maxlen=RECENT)

    @contextmanager
    def slot(
        self, slots: float = 1, cancel: threading.Event | None = None, *, told: bool = False
    ) -> Iterator[None]:
        """Hold one of `slots` (math.inf: as many as are asked for). Raises Cancelled where it was stopped in
        the queue. `in_words`: a wait is a span of the route.
        """
        who = asker()
        ticket = _Ticket(who, who.trace.now() if who.trace is not None else 0.0)
        with self._lock:
            self._slots = slots
            self._lines.setdefault(who.run, deque()).append(ticket)
            self._admit()
            self._weigh(who)
        try:
            if who.trace is not None and told and not ticket.served.is_set():
                with _shown(who.trace, Waited()) as wait:

                    def tell() -> None:
                        wait.span.output = self._place(ticket) or wait.span.output

                    self._stand(ticket, cancel, tell)
                    wait.own_ms = self._begin(ticket)
            else:
                self._stand(ticket, cancel)
                self._begin(ticket)
            yield
        finally:
            self._leave(ticket)

    def waiting(self) -> int:
        """Return the number of waiting calls."""
        with self._lock:
            return sum(map(len, self._lines.values()))

    def _stand(
        self, ticket: _Ticket, cancel: threading.Event | None, look: Callable[[], None] = lambda: None
    ) -> None:
        """Until it is served."""
        cancel = cancel or ticket.asker.cancel
        look()
        while not ticket.served.wait(LOOK_S):
            if cancel is not None and cancel.is_set():
                raise Cancelled("stopped by the user while it waited for the model")
            look()

    def _begin(self, ticket: _Ticket) -> float:
        """Set the route's clock to where the call would begin if the route were alone: at once, or when one
        of its own calls has left a slot. Gives the milliseconds of that.
        """
        ticket.used, who = True, ticket.asker
        if who.trace is None or math.isinf(self._slots):
            return 0.0
        with self._lock:
            free = who.free.setdefault(id(self), [0.0] * int(self._slots))
            begins = max(ticket.asked_ms, heapq.heappop(free) if free else 0.0)
        who.trace.stand_at(begins)
        return begins - ticket.asked_ms

    def _leave(self, ticket: _Ticket) -> None:
        who = ticket.asker
        with self._lock:
            if ticket.began is not None:
                self._serving.remove(ticket)
                if ticket.used:
                    self._took.append(time.perf_counter() - ticket.began)
                    if who.trace is not None and id(self) in who.free:
                        heapq.heappush(who.free[id(self)], who.trace.now())
            else:
                line = self._lines[who.run]
                line.remove(ticket)
                if not line:
                    del self._lines[who.run]
            self._admit()
            self._weigh(who)

    def _admit(self) -> None:
        """Serve those whose turn it is while there are slots; a run that was served goes to the end."""
        while self._lines and len(self._serving) < self._slots:
            run, line = next(iter(self._lines.items()))
            ticket = line.popleft()
            if line:
                self._lines.move_to_end(run)
            else:
                del self._lines[run]
            ticket.began = time.perf_counter()
            self._serving.append(ticket)
            self._weigh(ticket.asker)
            ticket.served.set()

    def _weigh(self, who: Asker) -> None:
        """Note whether `who` waits for others: a call of it is queued, and it has not all slots itself."""
        queued = any(one.asker is who for one in self._lines.get(who.run, ()))
        holds = queued and sum(one.asker is who for one in self._serving) < self._slots
        if holds != (who in self._held_up):
            who.held_up(holds)
            (self._held_up.add if holds else self._held_up.discard)(who)

    def _place(self, ticket: _Ticket) -> Waited | None:
        """Return a ticket's place in the queue, if nobody else comes, and the seconds until its turn by the
        duration of recent calls (None if none was measured); None once it is served.
        """
        with self._lock:
            order = [one for nth in zip_longest(*self._lines.values()) for one in nth if one is not None]
            if ticket not in order:
                return None
            ahead, now = order.index(ticket), time.perf_counter()
            if not self._took:
                return Waited(ahead + 1, None)
            mean = sum(self._took) / len(self._took)
            ends = [max(0.0, (one.began or now) + mean - now) for one in self._serving]
        heapq.heapify(ends)
        for _ in range(ahead):
            heapq.heapreplace(ends, ends[0] + mean)
        return Waited(ahead + 1, ends[0])


_endpoints: Recent[str, ModelQueue] = Recent(ENDPOINTS)
_lock = threading.Lock()


def turns(endpoint: str) -> ModelQueue:
    """Those of an endpoint, the same for all of this process that ask it."""
    with _lock:
        _endpoints[endpoint] = found = _endpoints.get(endpoint) or ModelQueue()
        return found
