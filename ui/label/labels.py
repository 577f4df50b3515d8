"""The labels: the final grade of each passage and its origin, with export and import."""

from __future__ import annotations

from collections import Counter
from typing import Any

import streamlit as st

from core.domain.errors import RouteScopeError
from core.evaluation.labels import desk as desks
from core.evaluation.labels import exchange, listing
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.final import final, tie
from core.evaluation.labels.listing import Counts, Line
from ui.app import account, opening, state
from ui.app.choice import choice
from ui.app.markup import md
from ui.components import tables
from ui.label.desk import store
from ui.label.keys import SHORT

FILTER = "label_shown"  # which lines
GIVEN = "label_given"  # grows when a file was imported, to empty the uploader
IMPORT_RESULT = "label_import_told"
ALL = "all"
IMPORTER = "imported"  # the annotator of imported judgements without a name


def draw(desk: Desk) -> None:
    """Draw the labels with their origin, their state in the corpus, and the files."""
    if result := st.session_state.pop(IMPORT_RESULT, None):
        st.success(md(result))
    opening.wait_for(desk.set.corpus)
    found, counts, lacking = _lines(desk, _version(desk))
    if lacking:
        st.warning(md(f"The labels could not be checked against the corpus: {lacking}"))
    if not found:
        st.caption("No passages yet. Find some under Pool, or import labels below.")
    else:
        st.markdown(md(words(counts, desk)))
        _changes(found)
        _table(found)
    _out(desk)
    _in(desk)


def words(counts: Counts, desk: Desk) -> str:
    """Describe the number of labels by origin."""
    graded = counts.passages - counts.how.get("unjudged", 0)
    kinds = [
        f"{counts.how[how]:,} {origin}"
        for how, origin in (
            ("one grade", "by one person"),
            ("all agree", "by several people who agree"),
            ("adjudicated", "adjudicated"),
            ("median", "by the lower median of different grades"),
        )
        if counts.how.get(how)
    ]
    parts = [
        f"{graded:,} of {counts.passages:,} passages have a label"
        + (f": {', '.join(kinds)}." if kinds else ".")
    ]
    if left := counts.passages - graded:
        parts.append(f"{left:,} are unjudged; Evaluate shows their share beside each metric.")
    if counts.without:
        parts.append(
            f"{counts.without} judged questions have no passage of grade {desk.set.relevant_from} or higher, "
            "so rankings cannot be measured on them."
        )
    if counts.unasked:
        parts.append(f"{counts.unasked} questions have no judgements yet.")
    return " ".join(parts)


def _version(desk: Desk) -> tuple[Any, ...]:
    engine = state.engine()
    from core.corpus.catalogue import current_fingerprint

    now = desks.version(store(), desk.set.name)
    return (str(store().path), *now, current_fingerprint(desk.set.corpus, settings=engine.settings))


@st.cache_resource(max_entries=4, show_spinner="Matching the labels to the corpus")
def _lines(_desk: Desk, version: tuple[Any, ...]) -> tuple[list[Line], Counts, str]:  # noqa: ARG001
    """Return the lines, their counts, and why the corpus is unavailable ("" if it is available)."""
    finals = final(_desk)
    tied, corpus, lacking = None, None, ""
    try:
        corpus = state.engine().corpus(_desk.set.corpus)
        tied = tie(_desk, finals, corpus)
    except RouteScopeError as error:
        lacking = str(error)
    return listing.lines(_desk, finals, tied, corpus), listing.counts(_desk, finals), lacking


def _changes(found: list[Line]) -> None:
    """Draw how reindexing the corpus affected the labels."""
    kinds = Counter(one.now.split(" ")[0] for one in found if one.now)
    effects = []
    if kinds["carried"]:
        effects.append(f"{kinds['carried']:,} labels moved to the passages that now contain their text")
    if kinds["its"]:
        effects.append(f"{kinds['its']:,} judged passages have changed and need to be judged again")
    if kinds["lost:"]:
        effects.append(f"{kinds['lost:']:,} labels are lost because the corpus no longer has their text")
    if effects:
        st.warning(md(f"The corpus was reindexed. {'; '.join(effects)}."))


def _table(found: list[Line]) -> None:
    import pandas as pd

    kinds = {
        ALL: found,
        "graded": [one for one in found if one.grade is not None],
        "unjudged": [one for one in found if one.grade is None],
        "changed in the corpus": [one for one in found if one.now],
    }
    kinds |= {how: [one for one in found if one.how == how] for how in ("adjudicated", listing.MEDIAN)}
    some = {name: lines for name, lines in kinds.items() if lines}
    name = choice(
        "show",
        FILTER,
        "Show",
        list(some),
        usual=ALL,
        width=340,
        format_func=lambda one: f"{one} ({len(some[one]):,})",
    )
    lines = some[name]
    frame = pd.DataFrame(
        {
            "Question": [one.text for one in lines],
            "Passage": [one.title or one.passage for one in lines],
            "Document": [one.doc for one in lines],
            "Grade": [f"{one.grade} {SHORT[one.grade]}" if one.grade is not None else "" for one in lines],
            "Origin": [one.how for one in lines],
            "Judgements": [one.said for one in lines],
            "In the corpus now": [one.now for one in lines],
        }
    )
    if not any(one.now for one in lines):
        frame = frame.drop(columns="In the corpus now")
    tables.show(
        frame,
        hide_index=True,
        height=min(38 + 35 * len(lines), 420),
        key=f"label_lines:{name}",
        alt=f"{len(lines)} passages with their grade and its origin",
    )


def _out(desk: Desk) -> None:
    name = desk.set.name
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "TREC qrels",
            account.by_me(lambda: exchange.qrels(desk)),
            f"{name}.qrels",
            "text/plain",
            key="label_qrels",
            on_click="ignore",
            **account.needs("export", help="Final grades, one per line: question, 0, passage, grade"),
        )
        st.download_button(
            "CSV",
            account.by_me(lambda: exchange.table(desk, unjudged=True)),
            f"{name}.csv",
            "text/csv",
            key="label_csv",
            on_click="ignore",
            **account.needs("export", help="Every judgement with its passage, annotator and note"),
        )
        st.page_link("evaluate.py", label="Evaluate routes on this set", query_params={"labels": name})


def _in(desk: Desk) -> None:
    with st.expander("Import labels", key="label_import", on_change="rerun") as panel:
        if not panel.open:
            return
        st.caption(
            "A CSV file exported here, or TREC qrels: question, 0, passage, grade. If a line is invalid, "
            "nothing is imported. Existing labels stay."
        )
        given = st.file_uploader(
            "File",
            type=["csv", "qrels", "txt", "tsv"],
            label_visibility="collapsed",
            key=f"label_import_file:{st.session_state.get(GIVEN, 0)}",
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            who = st.text_input(
                "Annotator for lines without one", IMPORTER, key="label_importer", max_chars=64, width=280
            )
            if not st.button("Import", key="label_import_go", type="primary", disabled=given is None):
                return
        if given is None:
            return
        try:
            result = take(desk, given.name, given.getvalue(), who)
        except RouteScopeError as error:
            st.error(md(f"Nothing was imported. {error}"))
            return
        st.session_state[IMPORT_RESULT] = result
        st.session_state[GIVEN] = st.session_state.get(GIVEN, 0) + 1
        st.rerun()


def take(desk: Desk, file: str, content: bytes, who: str) -> str:
    """Add the judgements of a file to a set; the result in words. BadInput names the invalid line, and
    nothing of the file is imported then.
    """
    if file.lower().endswith(".csv"):
        found = exchange.import_table(store(), desk.set.name, content, file, who)
    else:
        corpus = state.engine().corpus(desk.set.corpus)
        found = exchange.import_qrels(store(), desk.set.name, content, file, who, corpus)
    return (
        f"{found.added:,} judgements imported from {file}; {found.known:,} existed already; "
        f"{found.passages:,} passages added to the pool."
    )
