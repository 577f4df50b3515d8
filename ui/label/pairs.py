"""Pairs: the results of two routes for a question side by side, without their names, and which is better."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import streamlit as st

from core.analysis.term_contributions import Marker
from core.domain.errors import RouteScopeError
from core.domain.format import between, number
from core.evaluation.labels import desk as desks
from core.evaluation.labels import preferences
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.preferences import TOP, Matchup
from core.evaluation.labels.route_map import rankings
from core.evaluation.templating import sentences
from core.store.labels import Kind
from ui.app import account, say
from ui.app.markup import fragment, show, tag
from ui.app.names import named
from ui.app.routes import title
from ui.components import tables
from ui.components.complaint import who as annotator
from ui.components.hits import excerpt
from ui.components.passage import analyzer_of
from ui.label import keys, sets
from ui.label.desk import opened

AT = "label_pair"  # the question and routes of the comparison that is shown; None: the next one
SHOWN = 240  # characters of a passage before it is opened
KEYS: tuple[tuple[Kind, str, str], ...] = (
    ("left", "Left is better", "a"),
    ("tie", "Tie", "s"),
    ("right", "Right is better", "d"),
    ("neither", "Both are bad", "f"),
)

STRENGTH: dict[str, Callable[[Any], Any]] = {
    "Route": lambda one: title(one.route),
    "Strength": lambda one: number(one.strength, signed=True),
}
COMPARED: dict[str, Callable[[Any], Any]] = {
    "Route": lambda one: title(one.route),
    "Other": lambda one: title(one.other),
    "Questions": attrgetter("questions"),
    "Wins": attrgetter("wins"),
    "Ties": attrgetter("ties"),
    "Both bad": attrgetter("neither"),
    "Losses": attrgetter("losses"),
}


@st.fragment
def draw(_: Desk) -> None:
    """Draw the next comparison with its keys, and what the comparisons so far show on demand."""
    try:
        desk = opened().desk
    except RouteScopeError as error:  # deleted by somebody meanwhile
        say.error(error)
        return
    known = preferences.leading(desk)
    if len(known) < 2:
        st.caption("A comparison needs the passages of two routes. Find some under Pool.")
        return
    account.notice("label")
    note = "The two that lead by the grades so far, unless you choose others"
    key = f"label_pair_routes:{desk.set.name}"
    chosen = st.multiselect("Routes to compare", known, known[:2], format_func=title, key=key, help=note)
    who, order = annotator(), preferences.matchups(desk, chosen)
    mine = {(one.question, tuple(sorted(desks.routes_of(one)))) for one in desk.preferences(who)}
    left = [one for one in order if (one.question, one.routes) not in mine]
    at = next((one for one in order if (one.question, one.routes) == st.session_state.get(AT)), None)
    at = at or next(iter(left), None)
    if at is not None:
        show(fragment("label.question", desk.asked[at.question]))
    pad = keys.Keypad()
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for kind, label, letter in KEYS:
            pad.button(label, f"label_pair_{kind}", letter, _judge, at, kind, lit=False, off=at is None)
        pad.button("Undo", "label_pair_undo", "u", _undo, hint="Withdraws your last comparison")
    pad.listen()
    keys.outcome()
    if at is None:
        st.caption("No comparison is left for these routes.")
    else:
        _sides(desk, at, who)
    st.caption(
        f"{len(order) - len(left)} of {len(order)} compared by you. Lists that differ much come early more "
        "often, with known chances: stop when your time is up, not because of the result."
    )
    sets.guide(desk.set)
    with st.expander("Result", key="label_pair_result", on_change="rerun") as panel:
        if panel.open:
            _result(desk)


def _sides(desk: Desk, at: Matchup, who: str) -> None:
    marker = Marker(desk.asked[at.question].query.text, (), analyzer_of(desk.set.corpus))
    ranked, pool = rankings(desk, TOP)[at.question], desk.pool[at.question]
    for name, route, column in zip(("Left", "Right"), at.sides(who), st.columns(2), strict=True):
        passages = [pool[id].passage for id in ranked[route]]
        rows = [(named(desk.set.corpus, one), excerpt(one, marker, SHOWN), one.text) for one in passages]
        with column:
            show(fragment("label.side", name, rows))


def _judge(at: Matchup | None, kind: Kind) -> None:
    if at is not None and keys.save(at.judged(annotator(), kind)):
        st.session_state[AT] = None


def _undo() -> None:
    if gone := keys.undo("compared anything", preferences=True):
        st.session_state[AT] = gone.question, tuple(sorted(desks.routes_of(gone)))


def _result(desk: Desk) -> None:
    """Draw what the comparisons show of the routes, and of every two that were compared."""
    found = preferences.preferences(desk)
    said = sentences("labels.preferred", found, title, preferences.CLAIMS_FROM)
    show(tag("div", *(tag("p", f"{one}.", css="rs-label-line") for one in said), css="rs"))
    if not found.pairs:
        return
    for of, columns, about in (
        (found.routes, STRENGTH, "Strengths by Bradley and Terry"),
        (found.pairs, COMPARED, "Comparisons of every two routes"),
    ):
        rows = [
            {
                **{head: read(one) for head, read in columns.items()},
                "Preferred": number(one.preferred),
                "95%": between(*one.ci95),
            }
            for one in of
        ]
        tables.table(rows, f"label_pair:{about}", about)
