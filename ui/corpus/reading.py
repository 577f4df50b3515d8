"""Reading files: which there are, which are left out and why, and the choices to make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st
from markupsafe import Markup

from core.corpus import endings
from core.corpus.columns import NONE
from core.corpus.load_report import Skipped, named
from core.corpus.manifest import CorpusInfo
from core.corpus.reading import Reader
from core.corpus.types import HTML, FileRecord, Reading
from core.domain.errors import RouteScopeError
from ui.app.markup import join, md, show, tag

MAX_NOTES = 20  # notes
WORST = 50  # files that were read in part
PAGES = {"main": "Without navigation, header and footer", "all": "All text of the page"}
FOUND, CHOSEN, NO_ROWS = "Found by name and length", "Chosen columns", "No rows are documents"


def folder(path: Path, usual: Reading, key: str) -> Reading | None:
    """Draw what would be read from `path` or left out, and the choices.

    Returns None, with the reason on the page, if nothing can be read.
    """
    place = st.container()
    try:
        with Reader() as reader:
            kinds, report = reader.survey(path, usual)
            with place:
                pages = any(kind in endings.HTML for kind in kinds)
                reading = chosen(usual, key) if pages else usual
                reading = columns(reading, tuple(report.columns), key)
            if reading != usual:
                kinds, report = reader.survey(path, reading)
    except RouteScopeError as error:
        st.error(md(str(error)))
        return None
    count = sum(kinds.values())
    many = f"{count:,} {'file' if count == 1 else 'files'} of kinds that are read"
    st.markdown(md(f"{many}: {', '.join(f'{n:,} {kind}' for kind, n in kinds.items())}."))
    empty = report.empty
    left_out(report.skipped, "Would be left out")
    notes(
        [
            *([f"{named(empty.names, empty.count)}: empty"] if empty.count else []),
            *(f"{named(one.names, one.count)}: {kind}" for kind, one in report.kinds.items()),
        ]
    )
    return reading


def chosen(usual: Reading, key: str) -> Reading:
    """Draw the choice of how to read HTML pages."""
    html = st.selectbox(
        "HTML pages",
        HTML[::-1],
        index=HTML[::-1].index(usual.html),
        key=f"{key}:html",
        format_func=PAGES.__getitem__,
        width=320,
    )
    return replace(usual, html=html or usual.html)


def columns(reading: Reading, known: Sequence[str], key: str) -> Reading:
    """Draw the choice of text columns if there are files of rows."""
    if not known:
        return reading
    before = [name for name in known if name.strip().lower() in reading.text_columns]
    kinds = [FOUND, CHOSEN, NO_ROWS]
    usual = NO_ROWS if reading.text_columns == NONE else CHOSEN if before else FOUND
    how = st.radio(
        "Text of rows",
        kinds,
        index=kinds.index(usual),
        key=f"{key}:rows",
        horizontal=True,
        help="Each row of a CSV, JSONL or workbook file with text is a document. Other columns are metadata.",
    )
    if how == NO_ROWS:
        return replace(reading, text_columns=NONE)
    if how != CHOSEN:
        return replace(reading, text_columns=())
    picked = st.multiselect("Text columns", list(known), default=before, key=f"{key}:columns", width=420)
    return replace(reading, text_columns=tuple(dict.fromkeys(one.strip().lower() for one in picked)))


def notes(lines: Sequence[str]) -> None:
    """Draw notes about files, one line each."""
    if lines:
        more = [f"and {len(lines) - MAX_NOTES} more"] if len(lines) > MAX_NOTES else []
        show(
            tag(
                "ul",
                join([tag("li", line, dir="auto") for line in (*lines[:MAX_NOTES], *more)]),
                css="rs rs-corpus-notes",
            )
        )


def told(info: CorpusInfo) -> None:
    """Draw the notes from reading the corpus."""
    lines = {one.line() for one in info.skipped}
    others = [note for note in info.notes if note not in lines]
    if others:
        st.markdown("#### Notes on the documents")
        notes(others)
    left_out(info.skipped)


def coverage(records: Sequence[FileRecord]) -> None:
    """Draw how much of each file was read, lowest share first."""
    partly = sorted((one for one in records if _left(one)), key=lambda one: (one.coverage, one.file))
    if not records:
        return
    st.markdown("#### Reading")
    whole = len(records) - len(partly)
    st.markdown(md(f"{whole:,} of {len(records):,} files were read as a whole."))
    if partly:
        show(tag("div", _coverage(partly[:WORST]), css="rs"))
    if len(partly) > WORST:
        st.caption(f"And {len(partly) - WORST:,} more that were read in part.")


def _left(record: FileRecord) -> str:
    """Describe what of a file was not read."""
    pages = ", ".join(map(str, record.unread_pages[:20]))
    parts = [record.skipped, f"pictures without text on page {pages}" if pages else "", *record.dropped]
    return "; ".join(part for part in parts if part)


def _coverage(records: Sequence[FileRecord]) -> Markup:
    names = ("File", "Read", "Reader", "Pages", "Tables", "Characters", "Not read")
    lines = [
        tag(
            "tr",
            tag("td", one.file, dir="auto"),
            tag("td", f"{one.coverage:.0%}", css="num"),
            tag("td", one.reader),
            tag("td", f"{one.pages:,}" if one.pages else "", css="num"),
            tag("td", f"{one.tables:,}" if one.tables else "", css="num"),
            tag("td", f"{one.characters:,}", css="num"),
            tag("td", _left(one), dir="auto"),
        )
        for one in records
    ]
    head = tag("thead", tag("tr", *[tag("th", name) for name in names]))
    return tag("table", head, tag("tbody", join(lines)), css="rs-table rs-corpus-table")


def left_out(skipped: Sequence[Skipped], what: str = "Left out") -> None:
    """Draw the files left out, by reason."""
    if not skipped:
        return
    count = sum(one.count for one in skipped)
    st.markdown(md(f"{what}: {count:,} {'file' if count == 1 else 'files'}"))
    show(tag("div", _table(skipped), css="rs"))


def _table(skipped: Sequence[Skipped]) -> Markup:
    head = tag("thead", tag("tr", *[tag("th", name) for name in ("Files", "Reason", "Which")]))
    lines = [
        tag(
            "tr",
            tag("td", f"{one.count:,}", css="num"),
            tag("td", one.reason, dir="auto"),
            tag("td", named(one.names, one.count), dir="auto"),
        )
        for one in skipped
    ]
    return tag("table", head, tag("tbody", join(lines)), css="rs-table rs-corpus-table")
