"""Pairs: the results of two routes for a question side by side, without their names, and which is better."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from core.analysis.term_contributions import Marker
from core.evaluation.labels import preferences
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.preferences import TOP, Matchup, matched
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

CHOSEN = "label_pair_routes:{}"
SHOWN = 240  # characters of a passage before it is opened
KEYS: tuple[tuple[Kind, str, str], ...] = (
    ("left", "Left is better", "a"),
    ("tie", "Tie", "s"),
    ("right", "Right is better", "d"),
    ("neither", "Both are bad", "f"),
)


@st.fragment
@say.errors()  # somebody may delete the set meanwhile
def draw(_: Desk) -> None:
    """Draw the next comparison with its keys, and what the comparisons so far show on demand."""
    desk, who = opened().desk, annotator()
    known = preferences.leading(desk)
    if len(known) < 2:
        st.caption("A comparison needs the passages of two routes. Find some under Pool.")
        return
    account.notice("label")
    note = "At first the two that lead by the grades, or the first two without grades"
    given: Any = {"key": CHOSEN.format(desk.set.name), "format_func": title, "help": note}
    order = preferences.matchups(desk, st.multiselect("Routes to compare", known, known[:2], **given))
    left = _left(desk, order)
    if left:
        show(fragment("label.question", desk.asked[left[0].question]))
    pad = keys.Keypad()
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for kind, label, letter in KEYS if left else ():
            pad.button(label, f"label_pair_{kind}", letter, _judge, kind, lit=False)
        undo = partial(keys.undo, "compared anything", preferences=True)
        pad.button("Undo", "label_pair_undo", "u", undo, hint="Withdraws your last comparison")
    pad.listen()
    keys.outcome()
    if left:
        _sides(desk, left[0], who)
    st.caption(
        f"{len(order) - len(left)} of {len(order)} compared by you. Lists that differ much come early more "
        "often, with known chances: stop when your time is up, not because of the result."
    )
    sets.guide(desk.set)
    with st.expander("Result", key="label_pair_result", on_change="rerun") as panel:
        if panel.open:
            _result(desk)


def _left(desk: Desk, order: Sequence[Matchup]) -> list[Matchup]:
    """Return the comparisons of `order` that the annotator has not made."""
    mine = set(map(matched, desk.preferences(annotator())))
    return [one for one in order if (one.question, one.routes) not in mine]


def _judge(kind: Kind) -> None:
    """Save which side is better in the first comparison left, which changes with each of several keys."""
    desk = opened().desk
    order = preferences.matchups(desk, st.session_state[CHOSEN.format(desk.set.name)])
    for one in _left(desk, order)[:1]:
        keys.save(one.judged(annotator(), kind))


def _sides(desk: Desk, at: Matchup, who: str) -> None:
    marker = Marker(desk.asked[at.question].query.text, (), analyzer_of(desk.set.corpus))
    ranked, pool = rankings(desk, TOP)[at.question], desk.pool[at.question]
    for name, route, column in zip(("Left", "Right"), at.sides(who), st.columns(2), strict=True):
        passages = [pool[id].passage for id in ranked[route]]
        rows = [(named(desk.set.corpus, one), excerpt(one, marker, SHOWN), one.text) for one in passages]
        with column:
            show(fragment("label.side", name, rows))


def _result(desk: Desk) -> None:
    """Draw what the comparisons show of the routes, and of every two that were compared."""
    found = preferences.preferences(desk)
    said = sentences("labels.preferred", found, title, preferences.CLAIMS_FROM)
    show(tag("div", *(tag("p", f"{one}.", css="rs-label-line") for one in said), css="rs"))
    if found.pairs:
        rows = [{head.capitalize(): cell for head, cell in one.row(title).items()} for one in found.pairs]
        tables.table(rows, "label_pair_compared", "Comparisons of every two routes")
