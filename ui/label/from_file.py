"""Questions of an uploaded file: which columns mean what, a preview, and whether its labels are kept."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.domain.errors import BadInput
from core.evaluation.dataset import Written
from core.evaluation.labels import origins
from core.evaluation.question_rows import ENDINGS
from ui.app.markup import md
from ui.components import tables

WITH = "label_with"  # whether the labels of the file are taken over
PREVIEWED = 5  # questions
RECOGNISED = "as recognised"
MAPPED = ("question", "answer", "relevant", "grade", "id")


def choose() -> Written | None:
    """Draw the choice of a file and its columns; None, with what is wrong, as long as it cannot be read."""
    given = st.file_uploader(
        "File of questions: of this tool, or of ragas, DeepEval, promptfoo, LangSmith, SQuAD, Quepid ...",
        type=[ending[1:] for ending in ENDINGS],
        key="label_file",
    )
    if given is None:
        return None
    content = given.getvalue()
    names = _columns(given.name, content)
    first = _problem(given.name, content, {})
    with st.expander("Columns", expanded=bool(first)), st.container(horizontal=True):
        chosen = {
            field: st.selectbox(
                field.capitalize(), [RECOGNISED, *names], key=f"label_column_{field}", width=180
            )
            for field in MAPPED
        }
    columns = {field: name for field, name in chosen.items() if name in names}
    if problem := _problem(given.name, content, columns):
        st.info(md(problem))
        return None
    written = _read(given.name, content, columns)
    for line in origins.about(written):
        st.caption(md(line))
    _preview(written)
    if any(written.evidence.values()):
        st.checkbox("Take over the labels of the file, as judgements of “imported”", value=True, key=WITH)
    return written


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
    """Why the file cannot be read so; "" if it can."""
    try:
        _read(name, content, columns)
    except BadInput as error:
        return str(error)
    return ""


@st.cache_resource(max_entries=8, ttl=600, show_spinner="Reading the questions")
def _read(name: str, content: bytes, columns: Mapping[str, str]) -> Written:
    return origins.of_file(name, content, columns)


@st.cache_resource(max_entries=8, ttl=600, show_spinner=False)
def _columns(name: str, content: bytes) -> list[str]:
    try:
        return origins.columns_of(name, content)
    except BadInput:
        return []  # the same error is drawn where the questions are read
