"""The questions of an uploaded file: its first rows, which columns mean what, and what was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.domain.errors import BadInput
from core.evaluation.dataset import Written
from core.evaluation.labels import pool
from core.evaluation.question_formats import FIELDS
from core.evaluation.question_rows import ENDINGS
from ui.app import say
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
    tools = "ragas, DeepEval, promptfoo, LangSmith, SQuAD, Quepid ..."
    types = [ending[1:] for ending in ENDINGS]
    given = st.file_uploader(f"File of questions: of this tool, or of {tools}", types, key=f"{key}_file")
    if given is None:
        return None
    content = given.getvalue()
    names, first = _first(given.name, content)
    _, problem = _read(given.name, content, {})
    with st.expander("Columns", expanded=bool(problem)):
        if first:
            alt = "First rows of the file"
            tables.show(first, hide_index=True, height="content", key=f"{key}_rows", alt=alt)
        with st.container(horizontal=True):
            columns: dict[str, str] = {}
            for one in FIELDS:
                label, at = one.capitalize(), f"{key}_column_{one}"
                name = st.selectbox(label, [RECOGNISED, *names], key=at, width=180)
                columns |= {one: name} if name in names else {}
    written, problem = _read(given.name, content, columns)
    if written is None:
        say.info(problem)
        return None
    for line in pool.about(written):
        say.caption(line)
    rows = [
        {
            "Question": one.query.text[:200],
            "Answer": (one.answer or "")[:200],
            "Labels": " | ".join((e.quote or e.doc)[:80] for e in written.evidence.get(one.id, ())),
        }
        for one in written.questions[:PREVIEWED]
    ]
    tables.show(rows, hide_index=True)
    return QuestionFile(given.name, content, columns, written)


@st.cache_resource(max_entries=8, ttl=600, show_spinner="Reading the questions")
def _read(name: str, content: bytes, columns: Mapping[str, str]) -> tuple[Written | None, str]:
    """Return what the file holds with these columns, or why it cannot be read."""
    try:
        return pool.of_file(name, content, columns), ""
    except BadInput as error:
        return None, str(error)


@st.cache_resource(max_entries=8, ttl=600, show_spinner=False)
def _first(name: str, content: bytes) -> tuple[list[str], list[dict[str, Any]]]:
    try:
        return pool.first_rows(name, content, PREVIEWED)
    except BadInput:
        return [], []  # the same error is drawn where the questions are read
