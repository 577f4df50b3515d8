"""The labels: the final grade of each passage and its origin, with export and import."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import streamlit as st

from core.corpus.catalogue import current_fingerprint
from core.domain.errors import RouteScopeError
from core.evaluation.labels import desk as desks
from core.evaluation.labels import exchange
from core.evaluation.labels import final as listing
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.final import Line, final, tie
from ui.app import opening, outcome, say, state
from ui.app.choice import choice
from ui.app.markup import md
from ui.app.outcome import Outcome
from ui.app.routes import on_page
from ui.components import tables
from ui.components.download import download
from ui.label.keys import SHORT

FILTER = "label_shown"  # which lines
GIVEN = "label_given"  # grows when a file was imported, to empty the uploader
PLACE = "label_import"  # of the outcome of the last import
ALL = "all"
IMPORTER = "imported"  # the annotator of imported judgements without a name
ORIGINS = {
    "one grade": "by one person",
    "all agree": "by several people who agree",
    "adjudicated": "adjudicated",
    listing.MEDIAN: "by the lower median of different grades",
}
CHANGED = {  # by the first word of a line's state
    "carried": "labels moved to the passages that now contain their text",
    "its": "judged passages have changed and need to be judged again",
    "lost:": "labels are lost because the corpus no longer has their text",
}


def draw(desk: Desk) -> None:
    """Draw the labels with their origin, their state in the corpus, and the files."""
    outcome.draw(PLACE)
    opening.wait_for(desk.set.corpus)
    labels, settings = state.store(), state.engine().settings
    fingerprint = current_fingerprint(desk.set.corpus, settings=settings)
    version = (str(labels.path), *desks.version(labels, desk.set.name), fingerprint)
    found, lacking = _lines(desk, version)
    if lacking:
        say.warning(f"The labels could not be checked against the corpus: {on_page(lacking)}")
    if not found:
        st.caption("No passages yet. Find some under Pool, or import labels below.")
    else:
        st.markdown(md(_in_words(found, desk)))
        kinds = Counter(one.now.split(" ")[0] for one in found if one.now)
        effects = [f"{kinds[kind]:,} {what}" for kind, what in CHANGED.items() if kinds[kind]]
        if effects:
            say.warning(f"The corpus was reindexed. {'; '.join(effects)}.")
        _table(found)
    _out(desk)
    _in(desk)


def _in_words(found: list[Line], desk: Desk) -> str:
    """Describe the number of labels by origin."""
    graded = [(one.question, one.grade) for one in found if one.grade is not None]
    judged, relevant = ({id for id, grade in graded if grade >= at} for at in (0, desk.set.relevant_from))
    how, left = Counter(one.how for one in found), len(desk.questions) - len(judged)
    kinds = [f", {how[name]:,} {origin}" for name, origin in ORIGINS.items() if how[name]]
    text = f"{len(graded):,} of {len(found):,} passages have a label{''.join(kinds)}."
    if without := len(judged - relevant):
        text += f" Judged questions without a passage of grade {desk.set.relevant_from} or more: {without}."
    return text + (f" Questions without a judgement: {left}." if left else "")


@st.cache_resource(max_entries=4, show_spinner="Matching the labels to the corpus")
def _lines(_desk: Desk, version: tuple[Any, ...]) -> tuple[list[Line], str]:  # noqa: ARG001
    """Return the lines, and why the corpus is unavailable ("" if it is available)."""
    finals = final(_desk)
    tied, corpus, lacking = None, None, ""
    try:
        corpus = state.engine().corpus(_desk.set.corpus)
        tied = tie(_desk, finals, corpus)
    except RouteScopeError as error:
        lacking = str(error)
    return listing.lines(_desk, finals, tied, corpus), lacking


def _table(found: list[Line]) -> None:
    kinds = {
        ALL: found,
        "graded": [one for one in found if one.grade is not None],
        "unjudged": [one for one in found if one.grade is None],
        "changed in the corpus": [one for one in found if one.now],
    }
    kinds |= {how: [one for one in found if one.how == how] for how in ("adjudicated", listing.MEDIAN)}
    some = {name: lines for name, lines in kinds.items() if lines}
    counted = {one: f"{one} ({len(lines):,})" for one, lines in some.items()}
    name = choice("show", FILTER, "Show", counted, width=340)
    lines = some[name]
    moved = any(one.now for one in lines)
    rows = [
        {
            "Question": one.text,
            "Passage": one.title or one.passage,
            "Document": one.doc,
            "Grade": f"{one.grade} {SHORT[one.grade]}" if one.grade is not None else "",
            "Origin": one.how,
            "Judgements": one.said,
            **({"In the corpus now": one.now} if moved else {}),
        }
        for one in lines
    ]
    tables.table(rows, f"label_lines:{name}", f"{len(lines)} passages with their grade and its origin")


def _out(desk: Desk) -> None:
    name, about = desk.set.name, ("Final grades, one per line", "Every judgement with its note")
    with st.container(horizontal=True, vertical_alignment="center"):
        download("TREC qrels", f"{name}.qrels", partial(exchange.qrels, desk), "label_qrels", help=about[0])
        table = partial(exchange.table, desk, unjudged=True)
        download("CSV", f"{name}.csv", table, "label_csv", help=about[1])
        st.page_link("evaluate.py", label="Evaluate routes on this set", query_params={"labels": name})


def _in(desk: Desk) -> None:
    with st.expander("Import labels", key="label_import", on_change="rerun") as panel:
        if not panel.open:
            return
        st.caption("A CSV file exported here, or TREC qrels. If a line is invalid, nothing is imported.")
        key, kinds = f"label_import_file:{st.session_state.get(GIVEN, 0)}", ["csv", "qrels", "txt", "tsv"]
        given = st.file_uploader("File", kinds, label_visibility="collapsed", key=key)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            label = "Annotator for lines without one"
            who = st.text_input(label, IMPORTER, key="label_importer", max_chars=64, width=280)
            if not st.button("Import", key="label_import_go", type="primary", disabled=given is None):
                return
        if given is not None:
            outcome.act(PLACE, lambda: take(desk, given.name, given.getvalue(), who))
            st.session_state[GIVEN] = st.session_state.get(GIVEN, 0) + 1
            st.rerun()


def take(desk: Desk, file: str, content: bytes, who: str) -> Outcome:
    """Add the judgements of a file to a set. BadInput names the invalid line, and nothing of the file is
    imported then.
    """
    if file.lower().endswith(".csv"):
        found = exchange.import_table(state.store(), desk.set.name, content, file, who)
    else:
        corpus = state.engine().corpus(desk.set.corpus)
        found = exchange.import_qrels(state.store(), desk.set.name, content, file, who, corpus)
    added = f"{found.added:,} judgements imported from {file}; {found.known:,} existed already"
    return Outcome(f"{added}; {found.passages:,} passages added to the pool.")
