"""The label set that the page works on: read once, then only what is new, to answer each key quickly."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from core.domain import people
from core.domain.errors import RouteScopeError
from core.evaluation.labels import desk as desks
from core.evaluation.labels import draw, label_next, settled
from core.evaluation.labels.desk import Desk, caught_up
from core.evaluation.statistics import Interval
from core.store.labels import Pair
from ui.app import address, evaluated, say, state
from ui.components.complaint import ME, WHO, who

SET = "label_set"
ORDER = "label_order"  # the evaluation and the two routes whose order the labels are to settle
EFFORT = "label_effort"  # minutes that the annotator has, 0 for no limit, or SECOND
SECOND = -1  # for second opinions on grades that decide
USUAL_S = 6.0  # seconds a grade until those of the annotator are known


def choose_annotator() -> None:
    """Draw the field for the name; it is asked once in a browser session, and in the address. Nothing where
    there is a login: labels are the account's.
    """
    if people.current().account:
        return
    address.take("annotator", WHO, str)
    st.session_state.setdefault(WHO, ME)
    note = "The name your judgements are saved under. Agreement compares the annotators by this name."
    st.text_input("You label as", key=WHO, width=190, max_chars=64, persist_state="session", help=note)
    address.keep("annotator", who() if who() != ME else None)


@dataclass(slots=True)
class OpenSet:
    """A label set cached between reruns, with each annotator's order of its passages."""

    desk: Desk
    orders: dict[tuple[str, str, int], tuple[Pair, ...]] = field(default_factory=dict)
    # how many passages fit the effort, by annotator and minutes
    fits: dict[tuple[str, int], int] = field(default_factory=dict)
    # at how many times EVERY grades it was asked last what more grades would change, and the result
    checked: tuple[int, bool | Interval | None] = (-1, None)

    def most(self, who: str) -> int | None:
        """Return how many passages fit the annotator's minutes, at their own pace, or need a second opinion;
        None for no limit.
        """
        minutes = int(st.session_state.get(EFFORT) or 0)
        if minutes > 0 and (who, minutes) not in self.fits:
            pace = label_next.seconds_a_grade(self.desk, who) or USUAL_S
            self.fits[who, minutes] = max(1, int(60 * minutes / pace))
        return self.fits.get((who, minutes))

    def outlook(self) -> bool | Interval | None:
        """Return whether more grades would hardly change the best route, or of drawn questions what more of
        them would change (see `draw.ahead`), as of the last EVERY grades.
        """
        at = len(self.desk.current) // settled.EVERY
        if self.checked[0] != at:
            self.checked = at, draw.ahead(self.desk) if self.desk.drawn else settled.settled(self.desk)
        return self.checked[1]

    def order(self, who: str) -> tuple[Pair, ...]:
        """Return `label_next.order`, computed once so that it stays while somebody labels.

        With an order in the address, the most decisive questions come first.
        """
        wanted = str(st.session_state.get(ORDER) or "")
        second = not wanted and st.session_state.get(EFFORT) == SECOND
        most = None if wanted or second else self.most(who)
        key = who, wanted, SECOND if second else most or 0
        if key not in self.orders:
            first: tuple[str, ...] = ()
            with suppress(RouteScopeError):  # the evaluation is gone
                if found := deciding():
                    first = label_next.order(self.desk, evaluated.reopened(found[0]), *found[1:])
            whole = label_next.order_for(self.desk, who, first, most)
            if second:
                asked = settled.second_opinions(self.desk, who)
                self.fits[who, SECOND] = len(asked)
                whole = (*asked, *(pair for pair in whole if pair not in asked))
            self.orders[key] = whole
        return self.orders[key]


def deciding() -> tuple[str, str, str] | None:
    """Return the evaluation and the two routes that the queue should decide between, or None."""
    name, _, routes = str(st.session_state.get(ORDER) or "").partition(label_next.ORDER)
    one, _, other = routes.partition(label_next.ORDER)
    return (name, one, other) if name and one and other else None


def opened() -> OpenSet:
    """Return the chosen set in its current state. Raises BadInput if it was deleted meanwhile."""
    return held(str(st.session_state[SET]))


def held(name: str) -> OpenSet:
    """Return a set in its current state; questions and passages are read again only if they changed."""
    labels = state.store()
    set_, created, judged, *pool = desks.version(labels, name)
    found = _held(str(labels.path), name, (set_, created, *pool))
    if judged > (found.desk.judgements[-1].number if found.desk.judgements else 0):
        found.desk = caught_up(labels, found.desk)
    return found


@st.cache_resource(max_entries=4, show_spinner="Reading the label set")
def _held(path: str, name: str, version: tuple[Any, ...]) -> OpenSet:  # noqa: ARG001 - the cache key
    return OpenSet(desks.load(state.store(), name))


def forget() -> None:
    """Read label sets again: changed nuggets can leave `desks.version` as it was."""
    _held.clear()


def attempt(change: Any) -> bool:
    """Call `change` and return whether it succeeded; its error is drawn."""
    try:
        change()
    except RouteScopeError as error:
        say.error(error)
        return False
    return True
