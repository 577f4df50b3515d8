"""A stored run once more: with one thing changed, or from stored model answers alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import streamlit as st

from core.analysis.run_diff import value
from core.corpus import catalogue
from core.domain.types import Query, Run
from core.engine.request import Again, Here, Request, again
from core.routes.registry import routes
from core.store import SessionRow
from ui.app import say, state
from ui.app.answer_style import ANSWERS
from ui.app.markup import cut
from ui.app.routes import by_family, title
from ui.compare.ask import MAX_PASTED
from ui.components import parameters
from ui.sessions import compare

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
    for label, key, then, about in (
        ("Rerun with a change", "again", choose, "Change one thing, and compare the two runs."),
        ("Replay without models", "replay", replay, REPLAY),
    ):
        st.button(label, key=key, on_click=then, args=(row.id,), disabled=row.status == "running", help=about)
    if failed := st.session_state.pop(FAILED, None):
        st.error(failed)


def choose(run_id: str) -> None:
    """Choose what to change of a run, which the address names."""
    st.query_params.from_dict({"again": run_id})


def replay(run_id: str) -> None:
    """Begin the same from stored answers, and compare the two."""
    with say.errors(lambda why: st.session_state.update({FAILED: why})):
        run, _ = state.find(run_id)
        begin(run_id, replace(known(run).request, mode="replay"))


def begin(run_id: str, request: Request) -> None:
    """Start the request and compare what comes of it with the run it was made from; RouteScopeError."""
    compare.of(run_id, state.start(request).id)


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
    compare.to_list()
    st.subheader("Rerun with one change", anchor=False)
    st.text(run.query.text)
    found = known(run)
    if found.gone:
        say.warning(f"No longer available and left out: {'; '.join(found.gone)}.")
    if found.other:
        say.caption(f"Different from the stored run, whatever you change: {'; '.join(found.other)}.")
    if not found.gone and not found.other:
        st.caption("Everything this run used is still available.")
    if not found.request.routes:
        st.error("This version has none of the routes of this run, so it cannot be rerun.")
        return
    changes: dict[str, Callable[[Request], Request]] = {
        "A parameter of a route": _parameter,
        "Routes": _routes,
        "Corpus": _corpus,
        "Question": _question,
        "Answers": _answers,
        "Model calls": lambda now: replace(now, mode=_radio("Model calls", MODES, now.mode, "mode")),
        "No change": lambda now: now,
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


def _radio(label: str, options: dict[str, str], now: str | None, key: str) -> Any:
    names = list(options)
    at = names.index(now) if now else 0
    return st.radio(label, names, index=at, format_func=options.__getitem__, key=f"again_{key}")


def _some(label: str, offered: Iterable[str], now: Iterable[str], key: str) -> tuple[str, ...]:
    given: dict[str, Any] = {"format_func": title, "key": f"again_{key}", "width": 720}
    return tuple(st.multiselect(label, list(offered), default=list(now), **given))


def _parameter(request: Request) -> Request:
    having = [name for name in request.routes if routes()[name].parameters]
    if not having:
        st.info("These routes have no parameters; change something else.")
        return request
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Route", having, format_func=title, key="again_route", width=280)
        route = routes()[name]
        by_name = {one.name: one for one in route.parameters}
        given: dict[str, Any] = {"key": f"again_parameter:{name}", "width": 240}
        given["format_func"] = lambda one: one.replace("_", " ")
        parameter = by_name[st.selectbox("Parameter", list(by_name), **given)]
    now = route.settle(request.parameters.get(name, {}))[parameter.name]
    with st.container(width=540):
        new = parameters.widget(parameter, now, f"again:{name}:{parameter.name}")
    say.caption(f"Was {value(now)}. {parameter.help}")
    if new is None:
        return request
    turned = {**request.parameters.get(name, {}), parameter.name: new}
    return replace(request, parameters={**request.parameters, name: turned})


def _routes(request: Request) -> Request:
    chosen = _some("Routes", (route.name for route in by_family()), request.routes, "routes")
    return replace(
        request,
        routes=chosen,
        parameters={name: turned for name, turned in request.parameters.items() if name in chosen},
        answered=tuple(name for name in request.answered if name in chosen),
    )


def _corpus(request: Request) -> Request:
    names = [one.name for one in catalogue.known(state.engine().settings) if one.askable]
    at = names.index(request.corpus) if request.corpus in names else None
    chosen = st.selectbox("Corpus", names, index=at, key="again_corpus", width=280)
    return replace(request, corpus=chosen or request.corpus)


def _question(request: Request) -> Request:
    given: dict[str, Any] = {"key": "again_question", "height": 80, "width": 720, "max_chars": MAX_PASTED}
    text = st.text_area("Question", request.query.text, **given)
    if turns := request.query.history:
        first = cut(turns[0].text, 80)
        say.caption(f"Follows the same {len(turns)} turns as before, starting with “{first}”.")
    return replace(request, query=Query(text, request.query.history))


def _answers(request: Request) -> Request:
    chosen, answered = _radio("Write answers", ANSWERS, request.answers, "answers"), request.answered
    if chosen == "selected":
        answered = _some("Routes that answer", request.routes, answered, "answered")
    return replace(request, answers=chosen, answered=answered)
