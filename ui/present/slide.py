"""One question of a playlist in large type, and the keys that go on and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from core.analysis.presentation import arranged, found, headline
from core.analysis.run_view import worked
from core.corpus.catalogue import current_fingerprint
from core.domain.errors import RouteScopeError
from core.domain.once import Recent
from core.domain.relevance import relevant
from core.domain.types import Query, Run
from core.engine.job import Job
from core.engine.request import Request
from core.routes.registry import routes
from core.store.playlists import PlaylistEntry
from ui.app import account, redraw, say, state
from ui.app.data import DATA
from ui.app.markup import fragment, show, tag
from ui.components.gold import gold_grades
from ui.components.grid import View, grid

PLAYING, AT = "slide_playing", "slide_at"
DEPTH = 5
COLUMNS = 5  # routes whose hits a slide has room for; all are in the list of scores
BEGUN = 32  # replays that are held; each has some megabytes
LOOKED_AT = 500  # stored runs of a corpus among which one of a question is looked for
POLL_S = 0.3  # seconds between looks at a run under way


def play(entries: Sequence[PlaylistEntry]) -> None:
    """Draw the current slide and begin the replay of the next one."""
    at = min(max(0, st.session_state.get(AT, 0)), len(entries) - 1)
    st.session_state[AT] = at
    st.html(DATA / "slide.css")
    _controls(at, len(entries))
    entry = entries[at]
    show(fragment("app.slide", entry.history, entry.question))
    try:
        run, job = _run(entry)
    except RouteScopeError as error:
        say.error(error)
        return
    if job is not None and not job.done:
        _wait(job)
        return
    _result(run, entry, stored=job is None)
    if at + 1 < len(entries):
        try:
            _run(entries[at + 1])
        except RouteScopeError:
            return  # shown when its turn comes


def _controls(at: int, count: int) -> None:
    def button(label: str, name: str, to: int, shortcut: str) -> None:
        act: dict[str, Any] = {"on_click": st.session_state.update, "args": ({AT: to},)}
        st.button(label, key=f"slide_{name}", shortcut=shortcut, disabled=not 0 <= to < count, **act)

    with st.container(horizontal=True, vertical_alignment="center"):
        button("Back", "back", at - 1, "left")
        button("Next", "next", at + 1, "right")
        st.caption(f"{at + 1} of {count}", width="stretch")
        leave: dict[str, Any] = {"on_click": st.session_state.update, "args": ({PLAYING: False},)}
        st.button("Leave", key="slide_leave", shortcut="escape", type="tertiary", **leave)
    with st.container(key="clicker"):  # what a presenter's clicker sends
        button("Back", "up", at - 1, "pageup")
        button("Next", "down", at + 1, "pagedown")


@st.cache_resource(show_spinner=False)
def begun() -> Recent[tuple[object, ...], Job]:
    """Return the replays of questions without a stored run, so that each is made once; none is stored."""
    return Recent(BEGUN)


def _run(entry: PlaylistEntry) -> tuple[Run, Job | None]:
    """Return the entry's run, and its job if it is replayed here.

    That is the entry's own run, else the newest stored one of its question over the current index, else a
    replay from recordings, which is not stored.
    """
    engine = state.engine()
    if entry.run:
        return engine.run(entry.run), None
    chosen = tuple(one for one in entry.routes if one in routes())
    names = chosen or tuple(one.name for one in routes().values() if one.first)
    fingerprint = current_fingerprint(entry.corpus, settings=engine.settings)
    query = Query(entry.question, entry.history)
    asked = (entry.question, entry.history, names)
    key = (engine.settings.home, entry.corpus, fingerprint, asked, account.key())
    if key not in begun():
        if (stored := _stored(query, entry.corpus, fingerprint, names)) is not None:
            return stored, None
        begun()[key] = engine.start(Request(query, entry.corpus, names, mode="replay", stored=False))
    job = begun()[key]
    return job.snapshot(), job


def _stored(query: Query, corpus: str, fingerprint: str | None, names: tuple[str, ...]) -> Run | None:
    """Return the newest finished run of this question by these routes over the current index, or None."""
    for row in state.store().sessions(corpus=corpus, limit=LOOKED_AT):
        if row.question == query.text and row.status == "done" and set(row.routes) >= set(names):
            run = state.engine().run(row.id)
            if run.query == query and fingerprint in (None, run.fingerprint):
                return run
    return None


@st.fragment(run_every=POLL_S)
def _wait(job: Job) -> None:
    if job.done:
        redraw.page()
    run = job.snapshot()
    total = len(run.results) + len(job.pending())
    st.progress(
        len(run.results) / max(1, total), text=f"{len(run.results)} of {total} routes, from recordings"
    )


def _result(run: Run, entry: PlaylistEntry, *, stored: bool) -> None:
    gold = gold_grades(run)
    told, of = headline(run, gold, DEPTH), len(relevant(gold))
    show(fragment("app.shown", told, entry.note, found(run, gold, DEPTH), of))
    ordered = arranged(run, gold, DEPTH)
    ordered = replace(ordered, results=tuple(worked(ordered)[:COLUMNS]))
    show(tag("div", grid(ordered, View(None, 3, "M", gold)), css="rs-big"))
    if stored:
        st.page_link("why.py", label="Why did these routes lose?", query_params={"run": run.id})
    else:
        link = {"q": run.query.text, "corpus": run.corpus}
        st.page_link("compare.py", label="Ask this on Compare", query_params=link)
