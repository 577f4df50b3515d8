"""One run on Compare: a bar, the routes without a ranking, and the views, all drawn from the run alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import streamlit as st

from core.analysis import waits as recorded_waits
from core.analysis.answers import being_written
from core.analysis.run_view import model_failures, worked
from core.analysis.searches import rewrites
from core.corpus import catalogue, cautions
from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds
from core.domain.types import Run
from core.engine.job import Job
from core.engine.request import FILTERS, again, texts
from core.evaluation.labels import run_labels
from core.routes.registry import routes
from ui.app import address, link, opening, redraw, say, scripts, state
from ui.app.markup import EMPTY, md, show, tag
from ui.app.picked import PASSAGE
from ui.app.routes import title
from ui.app.tabs import tabs
from ui.compare import answers, matches, overlap, ranks
from ui.compare.steps import steps
from ui.components import complaint, cost, passage, sharing
from ui.components.gold import gold_grades
from ui.components.grid import WHOLE_HITS, View, Waiting, dense, drawn, grid, kept, lit, troubles
from ui.components.view import controls

MANY = 7  # routes from which the matrix comes first: so many columns are not read at a glance
TAB, MANY_TAB = "tab", "tab_many"  # keys of the tabs, for few and for many routes
VIEW_KEY = "shown"  # key of what changes with the view
BESIDE = "beside_columns"  # key of the columns and the selected passage
COLUMNS = "columns_shown"  # (run, the columns of it that were drawn last)
WAITS = (
    (recorded_waits.loading, "for a model, text or tokens to be available"),
    (recorded_waits.waited, "for a busy model"),
)
STATUS_WIDTH = 165  # pixels, of a bar and of the button that replaces it
POLL_S, ELSEWHERE_S = 0.4, 2.0  # seconds between looks at a job, and at a run that only the store knows
SHOWN_FROM_MS = 50.0  # a wait that is worth a word
SPOKEN = {"cancelled": "stopped early", "interrupted": "interrupted when RouteScope stopped"}


@st.fragment(key=VIEW_KEY)  # another view of the run leaves all above it, and the sidebar, as they are
def draw(run: Run, waiting: Sequence[Waiting] = (), doing: str = "") -> None:
    """Draw everything about a run. Routes that have not ended are `waiting`; `doing` is the current step."""
    with suppress(RouteScopeError):  # without its corpus, a run's passages are named by their documents
        if catalogue.describe(run.corpus, state.engine().settings).state in ("ready", "stale"):
            opening.begin(run.corpus)  # it has the headings that passages are named by
    gold = gold_grades(run)
    scripts.listen("script_presses", partial(pressed, run))
    with st.container(key="bar", horizontal=True, vertical_alignment="center", gap="small"):
        _status(run, waiting, doing)
        view = controls(run, gold)
        if run.status != "running":
            complaint.popover(run, "wrong_ranking", gold)
        about = st.container(width="content")
    if run.results and not worked(run):
        show(troubles(run.results))
    show(dense(view.density))
    columns = {"Columns": lambda: _columns(run, view, waiting)}
    matrix = {"Ranks": lambda: _ranks(run, view, waiting)}
    many = len(run.results) + len(waiting) >= MANY
    views: dict[str, Callable[[], None]] = {
        **(matrix | columns if many else columns | matrix),
        "Answers": lambda: answers.draw(run),
        "Overlap": lambda: overlap.draw(run, view),
        "Matches": lambda: matches.draw(run),
        "Cost": lambda: show(cost.costs(run)),
        "Trace": lambda: show(steps(run)),
    }
    tabs(views, MANY_TAB if many else TAB, {"Columns": lambda: _behind(run)})
    with about:  # drawn last, when the address says all of the view
        _about(run)


def pressed(run: Run, told: str) -> None:
    """Do what a press inside the grid or the matrix asks for: grade or select a passage, or sort by a route.

    Raises BadInput or NotAllowed if a grade cannot be stored.
    """
    deed, _, rest = told.partition(" ")
    if deed == "sort":
        st.session_state[ranks.SORT] = None if st.session_state.get(ranks.SORT) == rest else rest
        return
    number, _, grade = rest.partition(" ")
    ids = list(run.passages)
    if not number.isdecimal() or int(number) >= len(ids):
        return
    if deed == "passage":
        st.session_state[PASSAGE] = ids[int(number)]
    elif deed == "grade" and grade.isdecimal():
        run_labels.grade(state.store(), run, ids[int(number)], complaint.who(), int(grade))


def _status(run: Run, waiting: Sequence[Waiting], doing: str) -> None:
    """Draw how many routes have a result: a bar while the run is under way, then why some have none.

    It takes the same place either way, so that nothing below moves when a run ends.
    """
    done, total = len(run.results), len(run.results) + len(waiting)
    failed = done - len(worked(run))
    with st.container(width=STATUS_WIDTH, key="status"):
        if run.status == "running":
            lost = f", {failed} failed" if failed else ""
            st.progress(done / max(1, total), text=md(f"{done} of {total} routes{lost} · {doing}"))
            return
        facts = (
            []
            if _troubles(run, failed)
            else [f"{len(worked(run))} of {total} routes, {milliseconds(run.wall_ms)}"]
        )
        facts += [SPOKEN[run.status]] if run.status in SPOKEN else []
        facts += [f"filter {one}" for one in texts(run.settings.get(FILTERS))]
        if run.query.text != (st.session_state.get(state.QUESTION) or "").strip():
            facts.append("the question above is not the one of this run")
        if facts:
            say.caption(" · ".join(facts))


def _troubles(run: Run, failed: int) -> bool:
    """Draw why routes of an ended run have no ranking or no answer, with Retry behind a button, and return
    whether there are any.
    """
    lines = troubles(run.results)
    if not lines:
        return False
    total, lost = len(run.results), failed or sum(bool(result.answer_error) for result in run.results)
    label = f"{lost} of {total} {'failed' if failed else 'no answer'}, {milliseconds(run.wall_ms)}"
    with st.popover(label, key="troubles", type="tertiary"), st.container(width=640):
        with st.container(horizontal=True, gap="small"):
            if st.button("Retry", key="retry", help="Ask again: only what failed is done again"):
                _again(run)
            if model_failures(run) or any(result.status == "unavailable" for result in run.results):
                st.page_link("settings.py", label="Settings")
        show(lines)
    return True


def _again(run: Run) -> None:
    """Ask the run's question once more: good replies are remembered, failed calls are made again."""
    request, _ = again(run, routes())
    with say.errors():
        link.show(state.start(replace(request, style=state.answer_style(), mode=None)).id)
        st.rerun()


@st.fragment
def _about(run: Run) -> None:
    """Draw links to this view and facts about the run, when they are opened: the view may have changed."""
    with st.popover("Link", type="tertiary", key="link_menu", on_change="rerun") as menu:
        if not menu.open:
            return
        st.caption("Opens this view with these results. No model needed.")
        st.code(address.here(), language=None)
        st.caption("Fills in the question without running it.")
        st.code(address.here("/", q=run.query.text, corpus=run.corpus), language=None)
        sharing.draw(run.id)
        facts = [f"Corpus {run.corpus}", f"asked {run.created[:16].replace('T', ' ')} UTC"]
        changed = sum(any(one.changed for _, one in rewrites(result)) for result in worked(run))
        facts += [f"{changed} routes searched with a rewrite"] if changed else []
        for waits, reason in WAITS:
            longest = max((waits(result.spans) for result in run.results), default=0.0)
            if longest >= SHOWN_FROM_MS:
                facts.append(f"waited {milliseconds(longest)} {reason} (not counted in any route's time)")
        say.caption(" · ".join(facts))
        with suppress(RouteScopeError):  # a corpus that is not here
            info = catalogue.describe(run.corpus, state.engine().settings).info
            for caution in cautions.of_run(run, info) if info is not None else ():
                say.warning(f"{caution.text}.")


@st.fragment(run_every=POLL_S)
def follow(job: Job) -> None:
    """Draw the results so far with the progress; redraw the page when the run ends."""
    if job.done:
        redraw.page()
    draw(job.snapshot(), *at_work(job))


def at_work(job: Job) -> tuple[list[Waiting], str]:
    """Return the routes of a job that have not ended, and the current step with its duration."""
    waiting, doing = [], ""
    for name, at, spans in job.pending():
        step = next((span for span in reversed(spans) if span.parent is None), None)
        waits = recorded_waits.now(spans)
        now = waits or (step.name if step else "")
        waiting.append(Waiting(title(name), at == "running", now, being_written(spans)))
        if at == "running" and not doing:
            took = f": {step.name}, {step.ms / 1000:.0f} s" if step else ""
            doing = f"{title(name)} {waits}" if waits else f"{title(name)}{took}"
    return waiting, doing or "starting"


@st.fragment(run_every=ELSEWHERE_S)
def watch(run_id: str) -> None:
    """Follow a run of another process until it or its process has ended."""
    with say.errors():  # deleted meanwhile, say
        run, _ = state.find(run_id)
        if run.status != "running":
            redraw.page()
        ended = [result.route for result in run.results]
        names = [name for name in run.settings.get("routes", ()) if name not in ended]
        waiting = [Waiting(title(name), running=False, step="not finished yet") for name in names]
        draw(run, waiting, "running in another process")


def _columns(run: Run, view: View, waiting: Sequence[Waiting]) -> None:
    count = drawn(run, view)
    with st.container(key=BESIDE):  # the selected passage is at the right if there is room, else below
        with st.container():
            marker = passage.marker(run) if count <= WHOLE_HITS else None
            columns = grid(run, view, waiting, marker) if waiting else kept(run, view, marker)
            if marker is None:
                less = f"{count:,} hits. Above {WHOLE_HITS} hits, full texts are left out."
                columns = tag("div", tag("div", less, css="dim"), css="rs") + columns
            st.session_state[COLUMNS] = (run.id, columns)
            show(lit(run, view.lit))
            show(columns)
        with st.container():
            passage.draw(run, view)


def _ranks(run: Run, view: View, waiting: Sequence[Waiting]) -> None:
    rows = ranks.rows_of(run, view)
    chosen = replace(view, lit=view.lit or (rows[0].id if rows else None))
    with st.container(key="beside"):
        with st.container():
            show(lit(run, chosen.lit))
            show(ranks.matrix(run, view, rows, passage.marker(run), waiting))
        with st.container():
            passage.draw(run, chosen, ranks=False)


def _behind(run: Run) -> None:
    """Draw the last columns again, in a closed tab and in the same containers.

    So the browser keeps their many elements.
    """
    of, columns = st.session_state.get(COLUMNS, ("", EMPTY))
    if of == run.id:
        with st.container(key=BESIDE), st.container():
            show(columns)
