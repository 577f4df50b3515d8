"""The keys of a browser session's state, and the engine that all pages share."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.domain.background_job import owner
from core.domain.errors import Unavailable
from core.domain.types import AnswerStyle, Query, Run, Turn
from core.engine import engine as engine_module
from core.engine.engine import Engine
from core.engine.job import Job
from core.engine.request import Request
from core.store import Store

QUESTION = "question"
CORPUS = "corpus"
ROUTES = "routes"
RUN = "run_id"  # the run that Compare shows
ASKED = "run_asked"  # the run that was begun here last: the address names it too, which survives a reload
TURNS = "turns"  # the conversation before the question, as it was put into the editor
# the same with what was edited since: survives a visit to another page, which the editor does not
SAID = "said"
VERSION = "turns_version"  # new editors of turns and parameters are made when they are replaced from outside
PARAMETERS = "parameters"  # {route: {parameter: value}}, only what differs from the defaults
ANSWERS = "answers"
ANSWERED = "answered"
ANSWER_BY = "answer_by"
ANSWER_ORDER = "answer_order"
EVIDENCE = "answer_evidence"  # that of named settings put in place; without it the setting's
FILTERS = "filters"  # conditions on metadata, one a line, as they are or were written
FILTERS_VERSION = "filters_version"  # a box that is not on screen keeps what it held: a new one is made
SESSION = "session_name"  # what is asked is remembered under this name; empty: it is not


def engine() -> Engine:
    """Return the engine that all sessions share; what is started with it belongs to this session."""
    owner.set(session_id())
    return engine_module.shared_engine()


def store() -> Store:
    """Return the store that all sessions share."""
    found = engine().store
    if found is None:  # the shared engine has one
        raise Unavailable("runs are not stored here")
    return found


def session_id() -> str:
    """Return the id of this browser session."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context is not None else ""


def fill_in(query: Query) -> None:
    """Put a question and its conversation into the inputs; only before they are drawn."""
    st.session_state[QUESTION] = query.text
    st.session_state[TURNS] = [{"role": turn.role, "text": turn.text} for turn in query.history]
    st.session_state.pop(SAID, None)
    renew()


def renew() -> None:
    """Have the widgets of turns and parameters made again, which show what was set."""
    st.session_state[VERSION] = st.session_state.get(VERSION, 0) + 1


def set_filters(written: str) -> None:
    """Put conditions into their box."""
    st.session_state[FILTERS] = written
    st.session_state[FILTERS_VERSION] = st.session_state.get(FILTERS_VERSION, 0) + 1


def editor_key() -> str:
    """Return the key of the conversation's editor."""
    return f"turns:{st.session_state.get(VERSION, 0)}"


def said() -> list[dict[str, str]]:
    """Return the conversation as edited: the editor stores only differences from its input."""
    if editor_key() not in st.session_state:
        st.session_state[TURNS] = st.session_state.get(SAID, st.session_state.get(TURNS, []))
    changes = st.session_state.get(editor_key(), {})
    gone, edited = changes.get("deleted_rows", []), changes.get("edited_rows", {})
    rows = [{**row, **edited.get(n, {})} for n, row in enumerate(st.session_state[TURNS]) if n not in gone]
    rows += changes.get("added_rows", [])
    st.session_state[SAID] = [row for row in rows if str(row.get("text") or "").strip()]
    found: list[dict[str, str]] = st.session_state[SAID]
    return found


def history() -> tuple[Turn, ...]:
    """Return the conversation as turns for the engine."""
    return tuple(
        Turn("assistant" if row.get("role") == "assistant" else "user", str(row["text"])) for row in said()
    )


def session() -> str:
    """Return the name of the session that questions are remembered in."""
    return (st.session_state.get(SESSION) or "").strip()


def start(request: Request) -> Job:
    """Begin a run of this browser session; BadInput or Unavailable if it cannot be begun."""
    job = engine().start(request)
    st.session_state[ASKED] = job.id
    return job


def find(run_id: str) -> tuple[Run, Job | None]:
    """Return a run by id, with its job if this process remembers it.

    Raises BadInput or Unavailable if missing.
    """
    return engine().run(run_id), engine().job(run_id)


def answer_style() -> AnswerStyle:
    """Return how to write answers: as chosen here, else as set in the settings."""
    now = engine().settings
    by, order = st.session_state.get(ANSWER_BY), st.session_state.get(ANSWER_ORDER)
    return AnswerStyle(
        "extract" if (by or now.answer_by) == "extract" else "model",
        "best at both ends" if (order or now.answer_order) == "best at both ends" else "best first",
        st.session_state.get(EVIDENCE, now.answer_evidence),
    )
