"""Reading files: which there are, which are left out and why, and the choices to make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from core.corpus import endings
from core.corpus.columns import NONE
from core.corpus.manifest import CorpusInfo
from core.corpus.reading import Reader
from core.corpus.types import HTML, FileRecord, Reading, Skipped, named
from core.evaluation.finding import count
from ui.app import say
from ui.app.markup import show, table, tag

MAX_NOTES = 20  # notes
WORST = 50  # files that were read in part
PAGES = {"main": "Without navigation, header and footer", "all": "All text of the page"}
FOUND, CHOSEN, NO_ROWS = "Found by name and length", "Chosen columns", "No rows are documents"


def folder(path: Path, usual: Reading, key: str) -> Reading | None:
    """Draw what would be read from `path` or left out, and the choices.

    Returns None, with the reason on the page, if nothing can be read.
    """
    place = st.container()
    with say.errors(), Reader() as reader:
        kinds, report = reader.survey(path, usual)
        with place:
            pages = any(kind in endings.HTML for kind in kinds)
            reading = chosen(usual, key) if pages else usual
            reading = columns(reading, tuple(report.columns), key)
        if reading != usual:
            kinds, report = reader.survey(path, reading)
        listed = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items())
        say.text(f"{count(sum(kinds.values()), 'files')} of kinds that are read: {listed}.")
        left_out(report.skipped, "Would be left out")
        empty = report.empty
        notes(
            [
                *([f"{named(empty.names, empty.count)}: empty"] if empty.count else []),
                *(f"{named(one.names, one.count)}: {kind}" for kind, one in report.kinds.items()),
            ]
        )
        return reading
    return None


def chosen(usual: Reading, key: str) -> Reading:
    """Draw the choice of how to read HTML pages."""
    ways, named_ = HTML[::-1], PAGES.__getitem__
    now = ways.index(usual.html)
    html = st.selectbox("HTML pages", ways, now, named_, key=f"{key}:html", width=320)
    return replace(usual, html=html or usual.html)


def columns(reading: Reading, known: Sequence[str], key: str) -> Reading:
    """Draw the choice of text columns if there are files of rows."""
    if not known:
        return reading
    before = [name for name in known if name.strip().lower() in reading.text_columns]
    kinds = [FOUND, CHOSEN, NO_ROWS]
    usual = NO_ROWS if reading.text_columns == NONE else CHOSEN if before else FOUND
    note = "Each row of a CSV, JSONL or workbook file with text is a document. Other columns are metadata."
    at = kinds.index(usual)
    how = st.radio("Text of rows", kinds, at, key=f"{key}:rows", horizontal=True, help=note)
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
        items = [tag("li", line, dir="auto") for line in (*lines[:MAX_NOTES], *more)]
        show(tag("ul", *items, css="rs rs-corpus-notes"))


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
    say.text(f"{whole:,} of {len(records):,} files were read as a whole.")
    if partly:
        heads = ("File", "Read", "Reader", "Pages", "Tables", "Characters", "Not read")
        rows = [
            (
                one.file,
                f"{one.coverage:.0%}",
                one.reader,
                f"{one.pages:,}" if one.pages else "",
                f"{one.tables:,}" if one.tables else "",
                f"{one.characters:,}",
                _left(one),
            )
            for one in partly[:WORST]
        ]
        made = table(heads, rows, numbers=(1, 3, 4, 5), css="rs-corpus-table")
        show(tag("div", made, css="rs"))
    if len(partly) > WORST:
        st.caption(f"And {len(partly) - WORST:,} more that were read in part.")


def _left(record: FileRecord) -> str:
    """Describe what of a file was not read."""
    pages = ", ".join(map(str, record.unread_pages[:20]))
    parts = [record.skipped, f"pictures without text on page {pages}" if pages else "", *record.dropped]
    return "; ".join(part for part in parts if part)


def left_out(skipped: Sequence[Skipped], what: str = "Left out") -> None:
    """Draw the files left out, by reason."""
    if skipped:
        say.text(f"{what}: {count(sum(one.count for one in skipped), 'files')}")
        rows = [(f"{one.count:,}", one.reason, named(one.names, one.count)) for one in skipped]
        heads = ("Files", "Reason", "Which")
        show(tag("div", table(heads, rows, numbers=(0,), css="rs-corpus-table"), css="rs"))
