"""A stored run once more: with one thing changed, or from stored model answers alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from core.analysis.run_diff import value
from core.corpus import catalogue
from core.domain.errors import RouteScopeError
from core.domain.types import Query, Run
from core.engine.replay import Again, Here, again
from core.engine.request import Request
from core.routes.registry import routes
from core.store import SessionRow
from ui.app import say, state
from ui.app.answer_style import ANSWERS
from ui.app.markup import cut
from ui.app.routes import by_family, title
from ui.compare.ask import MAX_PASTED
from ui.components import parameters
from ui.sessions import pair

REPLAY = (
    "Reruns it from cached model answers: searches run again, the language model is not called. "
    "A route whose next model answer is not cached stops there and reports it."
)
MODES = {
    "live": "live: cached answers, the model for the rest",
    "replay": "replay: cached answers only",
    "record": "record: always call the model and cache its answers",
}
FAILED = "session_again_failed"  # why the run could not be begun


def buttons(row: SessionRow) -> None:
    """Run again with a change, or replay, the picked run."""
    ended = row.status != "running"
    for label, key, then, about in (
        ("Rerun with a change", "again", pair.run_again, "Change one thing, and compare the two runs."),
        ("Replay without models", "replay", replay, REPLAY),
    ):
        st.button(label, key=key, on_click=then, args=(row.id,), disabled=not ended, help=about)
    if failed := st.session_state.pop(FAILED, None):
        say.error(failed)


def replay(run_id: str) -> None:
    """Begin the same from stored answers, and compare the two."""
    try:
        run, _ = state.find(run_id)
        begin(run_id, replace(known(run).request, mode="replay"))
    except RouteScopeError as error:
        st.session_state[FAILED] = str(error)


def begin(run_id: str, request: Request) -> None:
    """Start the request and compare what comes of it with the run it was made from; RouteScopeError."""
    job = state.start(request)
    pair.show(run_id, job.id)


def known(run: Run) -> Again:
    """Return a stored run's request with what of it is not available here."""
    engine = state.engine()
    corpora = {one.name: one for one in catalogue.known(engine.settings) if one.askable}
    fingerprints = {name: one.fingerprint for name, one in corpora.items()}
    embedders = {name: one.info.embedder for name, one in corpora.items() if one.info is not None}
    here = Here(routes(), fingerprints, engine.llm().model, embedders)
    return again(run, here, evidence=engine.settings.answer_evidence)


def form(run: Run) -> None:
    """Choose what to change and run it; then the two are compared."""
    st.button("All runs", key="back", on_click=pair.back)
    st.subheader("Rerun with one change", anchor=False)
    st.text(run.query.text)
    found = known(run)
    draw_differences(found)
    if not found.request.routes:
        st.error("This version has none of the routes of this run, so it cannot be rerun.")
        return
    changes: dict[str, Callable[[Request], Request]] = {
        "A parameter of a route": _parameter,
        "Routes": _routes,
        "Corpus": _corpus,
        "Question": _question,
        "Answers": _answers,
        "Model calls": _mode,
        "No change": lambda request: request,
    }
    what = st.segmented_control(
        "Change", list(changes), default="A parameter of a route", key="again_what", required=True
    )
    request = changes[what or "No change"](found.request)
    if request == found.request:
        st.caption("No change yet: this repeats the run.")
    say.caption(f"Corpus {request.corpus} · {len(request.routes)} routes · model calls {request.mode}")
    if st.button("Run", type="primary", key="again_run"):
        with say.errors():
            begin(run.id, request)
            st.rerun()


def draw_differences(found: Again) -> None:
    """Draw what of the stored run is unavailable or has changed."""
    if found.gone:
        say.warning(f"No longer available and left out: {'; '.join(found.gone)}.")
    if found.other:
        say.caption(f"Different from the stored run, whatever you change: {'; '.join(found.other)}.")
    if not found.gone and not found.other:
        st.caption("Everything this run used is still available.")


def _parameter(request: Request) -> Request:
    having = [name for name in request.routes if routes()[name].parameters]
    if not having:
        st.info("These routes have no parameters; change something else.")
        return request
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Route", having, format_func=title, key="again_route", width=280)
        route = routes()[name]
        by_name = {parameter.name: parameter for parameter in route.parameters}
        parameter = by_name[
            st.selectbox(
                "Parameter",
                list(by_name),
                format_func=lambda one: one.replace("_", " "),
                key=f"again_parameter:{name}",
                width=240,
            )
        ]
    now = route.settle(request.parameters.get(name, {}))
    with st.container(width=540):
        chosen = parameters.widget(parameter, now[parameter.name], f"again:{name}:{parameter.name}")
    say.caption(f"Was {value(now[parameter.name])}. {parameter.help}")
    if chosen is None:
        return request
    turned: Mapping[str, Any] = {**request.parameters.get(name, {}), parameter.name: chosen}
    return replace(request, parameters={**request.parameters, name: turned})


def _routes(request: Request) -> Request:
    offered = [route.name for route in by_family()]
    chosen = st.multiselect(
        "Routes",
        offered,
        default=list(request.routes),
        format_func=title,
        key="again_routes",
        width=720,
    )
    return replace(
        request,
        routes=tuple(chosen),
        parameters={name: turned for name, turned in request.parameters.items() if name in chosen},
        answered=tuple(name for name in request.answered if name in chosen),
    )


def _corpus(request: Request) -> Request:
    names = [one.name for one in catalogue.known(state.engine().settings) if one.askable]
    at = names.index(request.corpus) if request.corpus in names else None
    chosen = st.selectbox("Corpus", names, index=at, key="again_corpus", width=280)
    return replace(request, corpus=chosen or request.corpus)


def _question(request: Request) -> Request:
    text = st.text_area(
        "Question", request.query.text, key="again_question", height=80, width=720, max_chars=MAX_PASTED
    )
    turns = request.query.history
    if turns:
        say.caption(
            f"Follows the same {len(turns)} turns as before, starting with “{cut(turns[0].text, 80)}”."
        )
    return replace(request, query=Query(text, turns))


def _answers(request: Request) -> Request:
    chosen = st.radio(
        "Write answers",
        list(ANSWERS),
        index=list(ANSWERS).index(request.answers),
        format_func=ANSWERS.__getitem__,
        key="again_answers",
    )
    answered = request.answered
    if chosen == "selected":
        answered = tuple(
            st.multiselect(
                "Routes that answer",
                list(request.routes),
                default=list(answered),
                format_func=title,
                key="again_answered",
                width=720,
            )
        )
    return replace(request, answers=chosen, answered=answered)  # type: ignore[arg-type]


def _mode(request: Request) -> Request:
    chosen = st.radio(
        "Model calls",
        list(MODES),
        index=list(MODES).index(request.mode or "live"),
        format_func=MODES.__getitem__,
        key="again_mode",
    )
    return replace(request, mode=chosen)  # type: ignore[arg-type]
