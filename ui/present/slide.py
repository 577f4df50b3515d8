"""One question of a playlist in large type, and the keys that go on and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core.analysis.presentation import arranged, found, headline
from core.corpus.catalogue import current_fingerprint
from core.domain import people
from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds
from core.domain.once import Recent
from core.domain.relevance import relevant
from core.domain.types import Query, Run
from core.engine.job import Job
from core.engine.request import Request
from core.routes.registry import routes
from core.store.playlists import PlaylistEntry
from ui.app import account, redraw, state
from ui.app.data import DATA
from ui.app.markup import join, md, show, tag
from ui.components.gold import gold_grades
from ui.components.grid import View, grid

PLAYING, AT = "slide_playing", "slide_at"
DEPTH = 5
BEGUN = 1000  # questions shown without a run whose runs are remembered
POLL_S = 0.3  # seconds between looks at a run under way


def play(name: str, entries: Sequence[PlaylistEntry]) -> None:
    """Draw the current slide and start the next one's run."""
    at = min(max(0, st.session_state.get(AT, 0)), len(entries) - 1)
    st.session_state[AT] = at
    st.html(DATA / "slide.css")
    _controls(at, len(entries))
    entry = entries[at]
    said = [tag("div", turn.role, ": ", turn.text, css="dim", dir="auto") for turn in entry.history]
    show(tag("div", *said, tag("h2", entry.question, dir="auto"), css="rs rs-slide"))
    try:
        run, job = _run(entry)
    except RouteScopeError as error:
        st.error(md(str(error)))
        return
    if job is not None and not job.done:
        _wait(job)
        return
    if job is not None:
        _keep(name, at, entry, run.id)
    _result(run, entry)
    if at + 1 < len(entries):
        try:
            _run(entries[at + 1])
        except RouteScopeError:
            return  # shown when its turn comes


def _controls(at: int, count: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Back", key="slide_back", shortcut="left", disabled=at == 0, on_click=_to, args=(at - 1,))
        st.button(
            "Next", key="slide_next", shortcut="right", disabled=at + 1 >= count, on_click=_to, args=(at + 1,)
        )
        st.caption(f"{at + 1} of {count}", width="stretch")
        st.button("Leave", key="slide_leave", shortcut="escape", type="tertiary", on_click=_leave)
    with st.container(key="clicker"):  # what a presenter's clicker sends
        st.button("Back", key="slide_up", shortcut="pageup", disabled=at == 0, on_click=_to, args=(at - 1,))
        st.button(
            "Next",
            key="slide_down",
            shortcut="pagedown",
            disabled=at + 1 >= count,
            on_click=_to,
            args=(at + 1,),
        )


def _to(at: int) -> None:
    st.session_state[AT] = at


def _leave() -> None:
    st.session_state[PLAYING] = False


@st.cache_resource(show_spinner=False)
def begun() -> Recent[tuple[object, ...], str]:
    """Return the cache of runs started for questions without one, so that each is started once."""
    return Recent(200)


def _run(entry: PlaylistEntry) -> tuple[Run, Job | None]:
    """Return the entry's run, and its job if started here.

    Without a stored run, the question is replayed from recordings.
    """
    engine = state.engine()
    if entry.run:
        return engine.run(entry.run), None
    chosen = tuple(one for one in entry.routes if one in routes())
    names = chosen or tuple(one.name for one in routes().values() if one.first)
    fingerprint = current_fingerprint(entry.corpus, settings=engine.settings)
    key = (
        engine.settings.home,
        entry.corpus,
        fingerprint,
        entry.question,
        entry.history,
        names,
        account.key(),
    )
    if key in begun():
        try:
            return state.find(begun()[key])
        except RouteScopeError:
            begun().pop(key)  # deleted meanwhile: it is run once more
    request = Request(Query(entry.question, entry.history), entry.corpus, names, mode="replay")
    while len(begun()) >= BEGUN:
        begun().pop(next(iter(begun())), None)
    begun()[key] = engine.start(request).id
    return state.find(begun()[key])


def _keep(name: str, at: int, entry: PlaylistEntry, run_id: str) -> None:
    """Save the run of an entry in its playlist, which then shows the same run again."""
    store = state.engine().store
    if not people.current().may("edit"):
        return  # it is found again among the runs that this process began
    for one in store.playlists() if store is not None else ():
        if store is not None and one.name == name and one.entries[at : at + 1] == (entry,):
            entries = (*one.entries[:at], replace(entry, run=run_id), *one.entries[at + 1 :])
            store.save_playlist(name, entries)


@st.fragment(run_every=POLL_S)
def _wait(job: Job) -> None:
    if job.done:
        redraw.page()
    run = job.snapshot()
    total = len(run.results) + len(job.pending())
    st.progress(
        len(run.results) / max(1, total), text=f"{len(run.results)} of {total} routes, from recordings"
    )


def _result(run: Run, entry: PlaylistEntry) -> None:
    gold = gold_grades(run)
    lines = [tag("p", headline(run, gold, DEPTH), css="rs-headline")]
    if entry.note:
        lines.append(tag("p", entry.note, css="dim", dir="auto"))
    if relevant(gold):
        of = len(relevant(gold))
        lines.append(
            join(
                [
                    tag(
                        "div",
                        tag("span", one.result.title, css="who"),
                        tag(
                            "span",
                            "●" * one.in_top + "○" * (of - one.in_top),
                            css="dots",
                            title="relevant passages",
                        ),
                        tag("span", f"{one.in_top} of {of}", css="num"),
                        tag("span", f"first at rank {one.best}" if one.best else "none found", css="dim"),
                        tag("span", f"{milliseconds(one.result.ms)} alone", css="dim num"),
                        css="rs-score",
                    )
                    for one in found(run, gold, DEPTH)
                ]
            )
        )
    show(tag("div", *lines, css="rs rs-slide"))
    ordered = arranged(run, gold, DEPTH)
    show(tag("div", grid(ordered, View(None, 3, "M", gold)), css="rs-big"))
    st.page_link("why.py", label="Why did these routes lose?", query_params={"run": run.id})
