"""The top of Compare: the question and all that decides how it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.corpus.samples import Sample, samples
from core.domain.errors import BadInput
from core.domain.models import AT
from core.domain.needs import Need
from core.domain.types import Query, Run
from core.engine.availability import missing, why_not
from core.engine.request import MAX_QUESTION, Request
from core.routes.registry import routes
from ui.app import state
from ui.app.answer_style import ANSWERS, BY, ORDERS
from ui.app.markup import cut, md, show
from ui.app.routes import by_family, chosen, directory, title
from ui.compare import filters, presets, session_memory
from ui.components import parameters

# Too long a question gets one message. A box takes no more than this, as a page that sends much more than
# anybody writes loses its connection.
MAX_PASTED = 10 * MAX_QUESTION
MAX_ROUTES = 25  # routes that are compared at once: more columns are not read


def form(corpus: str, run: Run | None, *, running: bool) -> tuple[bool, bool]:
    """Draw the inputs next to the `run` shown, and return whether Run and whether Stop was pressed."""
    gaps = missing(state.engine(), corpus)
    pressed = stop = False
    with st.container(horizontal=True, gap="small", vertical_alignment="top", key="ask"):
        st.text_area(
            "Question",
            key=state.QUESTION,
            height=68,
            placeholder=f"Ask a question (up to {MAX_QUESTION:,} characters)",
            max_chars=MAX_PASTED,
            label_visibility="collapsed",
            persist_state="session",
        )
        if running:
            stop = st.button("Stop", key="stop")
        else:
            pressed = st.button("Run", type="primary", shortcut="mod+enter", key="run")
        _route_menu(gaps)
        _answer_menu()
        filters.menu(corpus, run)
        _more_menu(corpus)
    return pressed, stop


def _more_menu(corpus: str) -> None:
    """Draw what is needed less often, in one menu; its label says what of it is in use."""
    turns, preset = state.said(), presets.in_place()
    used = [f"{len(turns)} turns"] if turns else []
    used += [f"preset {cut(preset.name, 20)}"] if preset is not None else []
    used += [f"session {cut(state.session(), 20)}"] if state.session() else []
    parts = {
        "Samples": lambda: _samples(corpus),
        "Conversation": _conversation,
        "Parameters": _parameters,
        "Presets": lambda: presets.draw(corpus),
        "Session": session_memory.draw,
    }
    with (
        st.popover(md(f"More: {', '.join(used)}") if used else "More", key="more_menu"),
        st.container(width=640),
    ):
        for part, tab in zip(parts.values(), st.tabs(list(parts)), strict=True):
            with tab:
                part()


def request(corpus: str) -> Request:
    """Return the request that the inputs describe. Raises BadInput if no route or too many are selected."""
    names = tuple(st.session_state[state.ROUTES])
    if not names:
        raise BadInput("no route is selected; select at least one under Routes")
    if len(names) > MAX_ROUTES:
        raise BadInput(f"{len(names)} routes are selected; you can compare at most {MAX_ROUTES} at once")
    given: Mapping[str, Any] = st.session_state.get(state.PARAMETERS, {})
    return Request(
        Query(st.session_state[state.QUESTION] or "", state.history()),
        corpus,
        names,
        {name: given[name] for name in names if given.get(name)},
        st.session_state[state.ANSWERS],
        tuple(name for name in st.session_state.get(state.ANSWERED, []) if name in names),
        session=state.session(),
        style=state.answer_style(),
        where=filters.chosen(),
    )


def sample_buttons(corpus: str, place: str, columns: int = 1) -> None:
    """Draw every sample question as a button with its purpose."""
    grid = st.columns(columns, gap="small")
    for number, sample in enumerate(samples(corpus)):
        with grid[number % columns], st.container(border=columns > 1, gap=None):
            key = f"{place}:{sample.id}"
            st.button(md(_asked(sample)), key=key, type="tertiary", on_click=_fill_in, args=(sample,))
            st.caption(md(sample.shows))


def _fill_in(sample: Sample) -> None:
    """Put a sample into the inputs, and add its routes to the selected ones."""
    state.fill_in(sample.query)
    before = st.session_state.get(state.ROUTES) or chosen()
    spoken = dict.fromkeys((*sample.routes, *sample.answered))
    wanted = [*before, *(name for name in spoken if name in routes() and name not in before)]
    if len(wanted) > MAX_ROUTES:
        return
    st.session_state[state.ROUTES] = wanted
    if sample.answered and st.session_state.get(state.ANSWERS) != "all":
        st.session_state[state.ANSWERS] = "selected"
        st.session_state[state.ANSWERED] = [name for name in sample.answered if name in wanted]


def _asked(sample: Sample) -> str:
    before = next((turn.text for turn in sample.query.history if turn.role == "user"), None)
    return f"{sample.query.text}  (after “{before}”)" if before else sample.query.text


def _samples(corpus: str) -> None:
    if not samples(corpus):
        st.caption("This corpus has no sample questions.")
        return
    with st.container(height=420, border=False):
        sample_buttons(corpus, "menu")


def _conversation() -> None:
    """Draw the earlier turns of the conversation in an editor."""
    st.caption("Messages before the question, oldest first. Follow-up questions need them.")
    box = st.container(key="turns")  # style.css takes the CSV of it away: what is edited cannot be shielded
    box.data_editor(
        pandas_frame(st.session_state[state.TURNS]),
        num_rows="dynamic",
        width=620,
        hide_index=True,
        column_config={
            "role": st.column_config.SelectboxColumn(
                "Role", options=["user", "assistant"], default="user", required=True, width=90
            ),
            "text": st.column_config.TextColumn("Message", width=500),
        },
        key=state.editor_key(),
    )


def pandas_frame(rows: list[dict[str, str]]) -> Any:
    """Return rows with both columns, even if there are no rows yet."""
    import pandas as pd

    return pd.DataFrame(rows, columns=["role", "text"], dtype="string")


def _route_menu(gaps: Mapping[Need, str]) -> None:
    st.session_state.setdefault(state.ROUTES, chosen())
    names = [route.name for route in by_family()]
    names += [name for name in st.session_state[state.ROUTES] if AT in name and name in routes()]
    given: Mapping[str, Any] = st.session_state.get(state.PARAMETERS, {})
    selected = [routes()[name] for name in st.session_state[state.ROUTES] if name in routes()]
    lacking = [
        (route, why) for route in selected if (why := why_not(route, gaps, given.get(route.name))) is not None
    ]
    count = len(st.session_state[state.ROUTES])
    label = f"{count} route{'s' * (count != 1)}"
    with st.popover(label, key="routes_menu"):
        with st.container(horizontal=True, gap="small"):
            for label, some in _choices(gaps).items():
                st.button(f"{label} ({len(some)})", key=f"choose:{label}", on_click=_choose, args=(some,))
        st.multiselect(
            f"Routes to run, up to {MAX_ROUTES}",
            names,
            key=state.ROUTES,
            format_func=title,
            persist_state="session",
            width=620,
        )
        _other_model()
        if (over := len(st.session_state[state.ROUTES]) - MAX_ROUTES) > 0:
            st.caption(f"{over} too many: you can compare at most {MAX_ROUTES} routes at once.")
        if lacking:
            st.caption(f"{len(lacking)} of these cannot run now; the list below gives the reasons.")
        for route, why in lacking:
            if why_not(route, gaps) is None:
                st.caption(md(f"{route.title} cannot run with the parameters chosen: {why}"))
        with st.container(width=620, height=360):
            show(directory(gaps))


def _other_model() -> None:
    """Add a route with another model: a column of its own."""
    models = list(state.engine().settings.models)
    asking = [name for name in st.session_state[state.ROUTES] if name in routes() and routes()[name].asks()]
    asking = list(dict.fromkeys(name.partition(AT)[0] for name in asking))
    if not models or not asking:
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        route = st.selectbox("Add this route", asking, format_func=title, key="add_route")
        model = st.selectbox("with another model", models, key="add_model")
        st.button("Add", key="add_with_model", on_click=_add, args=(f"{route}{AT}{model}",))


def _add(name: str) -> None:
    st.session_state[state.ROUTES] = list(dict.fromkeys((*st.session_state[state.ROUTES], name)))


def _choices(gaps: Mapping[Need, str]) -> dict[str, list[str]]:
    """Draw buttons that select groups of routes."""
    able = [route for route in by_family() if why_not(route, gaps) is None]
    free = [route.name for route in able if not route.asks()]
    everything = "All available" if len(able) <= MAX_ROUTES else f"First {MAX_ROUTES} available"
    return {
        "First choice": [route.name for route in by_family() if route.first],
        "Without a language model": free[:MAX_ROUTES],
        everything: [route.name for route in able][:MAX_ROUTES],
    }


def _choose(names: list[str]) -> None:
    st.session_state[state.ROUTES] = names


def _parameters() -> None:
    given: dict[str, dict[str, Any]] = st.session_state.setdefault(state.PARAMETERS, {})
    having = [route.name for route in by_family() if route.parameters]
    name = st.selectbox("Route", having, format_func=title, key="parameters_of", persist_state="session")
    if name:
        given[name] = parameters.draw(routes()[name], given.get(name, {}))
    if changed := sum(map(len, given.values())):
        st.caption(f"{changed} parameters differ from their defaults.")


def _answer_menu() -> None:
    now = state.answer_style()
    st.session_state.setdefault(state.ANSWER_BY, now.by)
    st.session_state.setdefault(state.ANSWER_ORDER, now.order)
    off = st.session_state.get(state.ANSWERS, "none") == "none"
    with st.popover("Answers off" if off else "Answers on", key="answers_menu"):
        st.radio(
            "Write answers",
            list(ANSWERS),
            format_func=ANSWERS.__getitem__,
            key=state.ANSWERS,
            persist_state="session",
        )
        st.radio(
            "Answer source",
            list(BY),
            format_func=BY.__getitem__,
            key=state.ANSWER_BY,
            persist_state="session",
        )
        st.selectbox(
            "Passage order in the prompt",
            list(ORDERS),
            format_func=ORDERS.__getitem__,
            key=state.ANSWER_ORDER,
            persist_state="session",
            disabled=st.session_state[state.ANSWER_BY] != "model",
        )
        st.caption(
            "Generating answers takes most of a run's time. Copying sentences takes almost none. Rankings do"
            " not depend on answers."
        )
        if st.session_state[state.ANSWERS] == "selected":
            st.multiselect(
                "Routes to answer",
                st.session_state[state.ROUTES],
                key=state.ANSWERED,
                format_func=title,
                persist_state="session",
            )
