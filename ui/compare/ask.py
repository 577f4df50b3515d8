"""The top of Compare: the question and all that decides how it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
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
from ui.app import say, state, tour
from ui.app.answer_style import ANSWERS, BY, ORDERS
from ui.app.markup import cut, fragment, md, show
from ui.app.routes import by_family, chosen, directory, on_page, title
from ui.compare import menus
from ui.components import parameters

# Too long a question gets one message. A box takes no more than this, as a page that sends much more than
# anybody writes loses its connection.
MAX_PASTED = 10 * MAX_QUESTION
MAX_ROUTES = 25  # routes that are compared at once: more columns are not read
KEEP: dict[str, Any] = {"persist_state": "session"}


def form(corpus: str, run: Run | None, *, running: bool) -> tuple[bool, bool]:
    """Draw the inputs next to the `run` shown, and return whether Run and whether Stop was pressed."""
    pressed = stop = False
    with st.container(horizontal=True, gap="small", vertical_alignment="top", key="ask"):
        st.text_area(
            "Question",
            key=state.QUESTION,
            height=68,
            placeholder=f"Ask a question (up to {MAX_QUESTION:,} characters)",
            max_chars=MAX_PASTED,
            label_visibility="collapsed",
            **KEEP,
        )
        if running:
            stop = st.button("Stop", key="stop")
        else:
            pressed = st.button("Run", type="primary", shortcut="mod+enter", key="run")
        _route_menu(missing(state.engine(), corpus))
        _answer_menu()
        menus.filters(corpus, run)
        _more_menu(corpus)
    return pressed, stop


def _more_menu(corpus: str) -> None:
    """Draw what is needed less often, in one menu; its label says what of it is in use."""
    turns, preset = state.said(), menus.applied()
    used = [f"{len(turns)} turns"] if turns else []
    used += [f"preset {cut(preset.name, 20)}"] if preset is not None else []
    used += [f"session {cut(state.session(), 20)}"] if state.session() else []
    parts: dict[str, Callable[[], None]] = {
        "Samples": partial(_samples, corpus),
        "Conversation": _conversation,
        "Parameters": _parameters,
        "Presets": partial(menus.presets, corpus),
        "Session": menus.session,
    }
    label = md(f"More: {', '.join(used)}") if used else "More"
    with st.popover(label, key="more_menu"), st.container(width=640):
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
        where=menus.chosen_filters(),
    )


def hello(corpus: str) -> None:
    """Draw, on a first visit, what to do, then the corpus' sample questions as buttons."""
    known = samples(corpus)
    steps = (
        "Pick a sample question below, or write your own above." if known else "Write a question above.",
        "Press Ctrl+Enter (⌘+Enter on a Mac), or Run.",
        "Compare the routes: queries, hits, rank changes against the baseline, time and cost.",
    )
    show(fragment("app.hello", steps))
    tour.offer()
    if known:
        _sample_buttons(corpus, "hello", columns=2)
        return
    st.caption("This corpus has no sample questions.")
    with st.container(horizontal=True, gap="small"):
        if st.button("Add documents", key="hello_add"):
            st.switch_page("corpus.py", query_params={"tab": "Add"})
        if st.button("Write or generate questions", key="hello_questions"):
            st.switch_page("label.py")


def _sample_buttons(corpus: str, place: str, columns: int = 1) -> None:
    """Draw every sample question as a button with its purpose."""
    grid = st.columns(columns, gap="small")
    for number, sample in enumerate(samples(corpus)):
        before = next((turn.text for turn in sample.query.history if turn.role == "user"), "")
        asked = f"{sample.query.text}  (after “{before}”)" if before else sample.query.text
        with grid[number % columns], st.container(border=columns > 1, gap=None):
            key = f"{place}:{sample.id}"
            st.button(md(asked), key=key, type="tertiary", on_click=_fill_in, args=(sample,))
            say.caption(sample.shows)


def _fill_in(sample: Sample) -> None:
    """Put a sample into the inputs, and add its routes to the selected ones."""
    state.fill_in(sample.query)
    before = st.session_state.get(state.ROUTES) or chosen()
    wanted = [*before, *(name for name in (*sample.routes, *sample.answered) if name in routes())]
    wanted = list(dict.fromkeys(wanted))
    if len(wanted) > MAX_ROUTES:
        return
    st.session_state[state.ROUTES] = wanted
    if sample.answered and st.session_state.get(state.ANSWERS) != "all":
        st.session_state[state.ANSWERS] = "selected"
        st.session_state[state.ANSWERED] = [name for name in sample.answered if name in wanted]


def _samples(corpus: str) -> None:
    if not samples(corpus):
        st.caption("This corpus has no sample questions.")
        return
    with st.container(height=420, border=False):
        _sample_buttons(corpus, "menu")


def _conversation() -> None:
    """Draw the earlier turns of the conversation in an editor."""
    import pandas as pd

    st.caption("Messages before the question, oldest first. Follow-up questions need them.")
    box = st.container(key="turns")  # style.css takes the CSV of it away: what is edited cannot be shielded
    role = st.column_config.SelectboxColumn(
        "Role", options=["user", "assistant"], default="user", required=True, width=90
    )
    box.data_editor(
        pd.DataFrame(st.session_state[state.TURNS], columns=["role", "text"], dtype="string"),
        num_rows="dynamic",
        width=620,
        hide_index=True,
        column_config={"role": role, "text": st.column_config.TextColumn("Message", width=500)},
        key=state.editor_key(),
    )


def _route_menu(gaps: Mapping[Need, str]) -> None:
    st.session_state.setdefault(state.ROUTES, chosen())
    selected: list[str] = st.session_state[state.ROUTES]
    known = [routes()[name] for name in selected if name in routes()]
    names = [route.name for route in by_family()]
    names += [route.name for route in known if AT in route.name]
    given: Mapping[str, Any] = st.session_state.get(state.PARAMETERS, {})
    lacking = [(route, why) for route in known if (why := why_not(route, gaps, given.get(route.name)))]
    with st.popover(f"{len(selected)} route{'s' * (len(selected) != 1)}", key="routes_menu"):
        with st.container(horizontal=True, gap="small"):
            able = [route for route in by_family() if why_not(route, gaps) is None]
            everything = "All available" if len(able) <= MAX_ROUTES else f"First {MAX_ROUTES} available"
            for label, some in (
                ("First choice", [route.name for route in by_family() if route.first]),
                ("Without a language model", [one.name for one in able if not one.asks()][:MAX_ROUTES]),
                (everything, [route.name for route in able][:MAX_ROUTES]),
            ):
                key = f"choose:{label}"
                st.button(f"{label} ({len(some)})", key=key, on_click=_select, args=(some,))
        box = f"Routes to run, up to {MAX_ROUTES}"
        st.multiselect(box, names, key=state.ROUTES, format_func=title, width=620, **KEEP)
        models = list(state.engine().settings.models)
        asking = list(dict.fromkeys(route.name.partition(AT)[0] for route in known if route.asks()))
        if models and asking:
            with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
                route = st.selectbox("Add this route", asking, format_func=title, key="add_route")
                model = st.selectbox("with another model", models, key="add_model")
                more = [*selected, f"{route}{AT}{model}"]
                st.button("Add", key="add_with_model", on_click=_select, args=(more,))
        if (over := len(selected) - MAX_ROUTES) > 0:
            st.caption(f"{over} too many: you can compare at most {MAX_ROUTES} routes at once.")
        if lacking:
            st.caption(f"{len(lacking)} of these cannot run now; the list below gives the reasons.")
        for one, why in lacking:
            if why_not(one, gaps) is None:
                say.caption(f"{one.title} cannot run with the parameters chosen: {on_page(why)}")
        with st.container(width=620, height=360):
            show(directory(gaps))


def _select(names: list[str]) -> None:
    st.session_state[state.ROUTES] = list(dict.fromkeys(names))


def _parameters() -> None:
    given: dict[str, dict[str, Any]] = st.session_state.setdefault(state.PARAMETERS, {})
    having = [route.name for route in by_family() if route.parameters]
    name = st.selectbox("Route", having, format_func=title, key="parameters_of", **KEEP)
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
        st.radio("Write answers", list(ANSWERS), format_func=ANSWERS.__getitem__, key=state.ANSWERS, **KEEP)
        st.radio("Answer source", list(BY), format_func=BY.__getitem__, key=state.ANSWER_BY, **KEEP)
        order: dict[str, Any] = {
            "key": state.ANSWER_ORDER,
            "disabled": st.session_state[state.ANSWER_BY] != "model",
            **KEEP,
        }
        st.selectbox("Passage order in the prompt", list(ORDERS), format_func=ORDERS.__getitem__, **order)
        st.caption("Generating answers takes most of a run's time; copying sentences takes almost none.")
        if st.session_state[state.ANSWERS] == "selected":
            some = st.session_state[state.ROUTES]
            st.multiselect("Routes to answer", some, key=state.ANSWERED, format_func=title, **KEEP)
