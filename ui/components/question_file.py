"""The questions of an uploaded file: its first rows, which columns mean what, and what was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.domain.errors import BadInput
from core.evaluation.dataset import Written
from core.evaluation.labels import origins
from core.evaluation.question_formats import FIELDS
from core.evaluation.question_rows import ENDINGS
from ui.app.markup import md
from ui.components import tables

PREVIEWED = 5  # rows and questions
RECOGNISED = "as recognised"


@dataclass(frozen=True)
class QuestionFile:
    """An uploaded file that was read."""

    name: str
    content: bytes
    columns: Mapping[str, str]  # field -> column, as a person chose; {} as recognised
    written: Written


def choose(key: str) -> QuestionFile | None:
    """Draw the choice of a file and of its columns; None, with the reason, if it cannot be read yet.

    `key` begins the keys of the widgets.
    """
    given = st.file_uploader(
        "File of questions: of this tool, or of ragas, DeepEval, promptfoo, LangSmith, SQuAD, Quepid ...",
        type=[ending[1:] for ending in ENDINGS],
        key=f"{key}_file",
    )
    if given is None:
        return None
    content = given.getvalue()
    names, first = _first(given.name, content)
    unread = _problem(given.name, content, {})
    with st.expander("Columns", expanded=bool(unread)):
        if first:
            tables.show(
                first, hide_index=True, height="content", key=f"{key}_rows", alt="First rows of the file"
            )
        with st.container(horizontal=True):
            chosen = {
                field: st.selectbox(
                    field.capitalize(), [RECOGNISED, *names], key=f"{key}_column_{field}", width=180
                )
                for field in FIELDS
            }
    columns = {field: name for field, name in chosen.items() if name in names}
    if problem := _problem(given.name, content, columns):
        st.info(md(problem))
        return None
    written = _read(given.name, content, columns)
    for line in origins.about(written):
        st.caption(md(line))
    _preview(written)
    return QuestionFile(given.name, content, columns, written)


def _preview(written: Written) -> None:
    shown = written.questions[:PREVIEWED]
    labels = [
        " | ".join((one.quote or one.doc)[:80] for one in written.evidence.get(q.id, ())) for q in shown
    ]
    tables.show(
        {
            "Question": [one.query.text[:200] for one in shown],
            "Answer": [(one.answer or "")[:200] for one in shown],
            "Labels": labels,
        },
        hide_index=True,
    )


def _problem(name: str, content: bytes, columns: Mapping[str, str]) -> str:
    """Return why the file cannot be read with these columns; "" if it can."""
    try:
        _read(name, content, columns)
    except BadInput as error:
        return str(error)
    return ""


@st.cache_resource(max_entries=8, ttl=600, show_spinner="Reading the questions")
def _read(name: str, content: bytes, columns: Mapping[str, str]) -> Written:
    return origins.of_file(name, content, columns)


@st.cache_resource(max_entries=8, ttl=600, show_spinner=False)
def _first(name: str, content: bytes) -> tuple[list[str], list[dict[str, Any]]]:
    try:
        return origins.first_rows(name, content, PREVIEWED)
    except BadInput:
        return [], []  # the same error is drawn where the questions are read
