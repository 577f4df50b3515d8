"""One run on Compare: the grid of routes and the views below it, all drawn from the run alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis import waits as recorded_waits
from core.analysis.answers import being_written
from core.analysis.run_view import model_failures, worked
from core.analysis.searches import rewrites
from core.corpus import catalogue, cautions
from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds
from core.domain.types import RouteResult, Run, Span
from core.engine.job import Job
from core.engine.replay import texts
from core.engine.request import FILTERS, Request
from ui.app import address, link, opened, state
from ui.app.markup import EMPTY, cut, join, md, show
from ui.app.plot import dark
from ui.app.routes import title
from ui.app.tabs import tabs
from ui.compare import answers as answers_tab
from ui.compare import late_answer, matches, overlap, ranks
from ui.compare.steps import steps
from ui.components import complaint, cost, passage
from ui.components.gold import gold_grades
from ui.components.grid import WHOLE_HITS, View, Waiting, dense, drawn, grid, kept, lit
from ui.components.view import controls

TAB = "tab"  # key of the tabs
VIEW_KEY = "shown"  # key of what changes with the view
COLUMNS = "columns_shown"  # (run, the columns of it that were drawn last)
WAITS = (
    (recorded_waits.loading, "for a model, text or tokens to be available"),
    (recorded_waits.waited, "for a busy model"),
)
SHOWN_FROM_MS = 50.0  # a wait that is worth a word
PAGES = {
    "why.py": "Why",
    "steps.py": "Steps",
    "latency.py": "Latency",
}
SPOKEN = {
    "running": "running",
    "cancelled": "stopped early",
    "interrupted": "interrupted: RouteScope stopped during the run",
}


def draw(run: Run, waiting: Sequence[Waiting] = ()) -> None:
    """Draw everything about a run; routes that have not ended are waiting columns."""
    gold = gold_grades(run)
    if run.status == "running":
        view = controls(run, gold, choose=False)
        show(join([dense(view.density), grid(run, view, waiting)]))
        return
    exactly = _summary(run, gold)
    _pages()
    _shown(run, exactly, gold)


@st.fragment(key=VIEW_KEY)  # another view of the run leaves all above it, and the sidebar, as they are
def _shown(run: Run, exactly: DeltaGenerator, gold: Mapping[str, int]) -> None:
    view = controls(run, gold)
    show(dense(view.density))
    if worked(run):
        with st.container():  # there also when empty: what follows keeps its place, and is not drawn again
            passage.draw(run, view)
        _tabs(run, view, exactly, gold)
    else:
        show(grid(run, view))
        exactly.code(address.here(), language=None)


@st.fragment  # another tab leaves the passage's panel as it is
def _tabs(run: Run, view: View, exactly: DeltaGenerator, gold: Mapping[str, int]) -> None:
    views: dict[str, Callable[[], None]] = {
        "Side by side": lambda: _side_by_side(run, view),
        "Ranks": lambda: ranks.draw(run, view, VIEW_KEY),
        "Overlap": lambda: overlap.draw(run, view),
        "Answers": lambda: answers_tab.draw(run, gold),
        "Matches": lambda: matches.draw(run, dark=dark()),
        "Cost": lambda: show(cost.costs(run)),
        "Steps": lambda: show(steps(run)),
    }
    tabs(views, TAB, {"Side by side": lambda: _behind(run)})
    exactly.code(address.here(), language=None)  # drawn last, when the address says all of it


def _pages() -> None:
    """Draw links to the other pages about this run."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for page, label in PAGES.items():
            opened.to(page, label)


def pending(job: Job) -> list[Waiting]:
    """Return the routes of a job that have not ended."""
    return [
        Waiting(
            title(name),
            at == "running",
            recorded_waits.now(spans) or (step.name if (step := current(spans)) else ""),
            being_written(spans),
        )
        for name, at, spans in job.pending()
    ]


def at_work(job: Job) -> str:
    """Describe the current step and its duration for the progress line."""
    for name, at, spans in job.pending():
        if at == "running":
            if waits := recorded_waits.now(spans):
                return f"{title(name)} {waits}"
            step = current(spans)
            return f"{title(name)}: {step.name}, {step.ms / 1000:.0f} s" if step else title(name)
    return "starting"


def current(spans: Sequence[Span]) -> Span | None:
    """Return the top-level step that a route is running, or None."""
    return next((span for span in reversed(spans) if span.parent is None), None)


def _summary(run: Run, gold: Mapping[str, int]) -> DeltaGenerator:
    """Draw a line about the run and return the place for the link, which is complete only at the end."""
    worked_count = len(worked(run))
    facts = [
        f"{worked_count} of {len(run.results)} routes with a result",
        f"{milliseconds(run.wall_ms)} in total",
        f"corpus {run.corpus}",
        *[f"filter {one}" for one in texts(run.settings.get(FILTERS))],
        f"asked {run.created[:16].replace('T', ' ')} UTC",
    ]
    anew = sum(any(one.changed for _, one in rewrites(result)) for result in worked(run))
    if anew:
        facts.insert(1, f"{anew} searched with a rewrite")
    for waits, reason in WAITS:
        longest = max((waits(result.spans) for result in run.results), default=0.0)
        if longest >= SHOWN_FROM_MS:
            facts.append(f"waited {milliseconds(longest)} {reason} (not counted in any route's time)")
    if run.status in SPOKEN:
        facts.insert(0, SPOKEN[run.status])
    failed = model_failures(run)
    if failed:
        some = "1 route" if len(failed) == 1 else f"{len(failed)} routes"
        facts.insert(0, f"{some} failed at the language model: {cut(_reason(failed[0]), 160)}")
    if run.query.text != (st.session_state.get(state.QUESTION) or "").strip():
        facts.insert(0, f"results for “{cut(run.query.text, 90)}”")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(md(" · ".join(facts)), width="stretch")
        if failed and run.status != "running":
            if st.button("Retry", key="retry_model", type="tertiary"):
                _again(run)
            st.page_link("settings.py", label="Settings")
        if run.status != "running":
            complaint.popover(run, "wrong_ranking", gold)
        with st.popover("Link", type="tertiary", key="link_menu"):
            st.caption("Opens this view with these results. No model needed.")
            exactly = st.empty()
            st.caption("Fills in the question without running it.")
            st.code(address.here("/", q=run.query.text, corpus=run.corpus), language=None)
    _cautions(run)
    return exactly


def _reason(result: RouteResult) -> str:
    """Return why a route's model failed: the error of its last failed call, else the route's own."""
    calls = [span.error for span in result.spans if span.kind == "LLM" and span.error]
    return calls[-1] if calls else result.error or result.answer_error or ""


def _again(run: Run) -> None:
    """Ask the run's question once more: good replies are remembered, failed calls are made again."""
    answered = tuple(one.route for one in run.results if one.answer_status != "not asked")
    parameters = {one.route: dict(one.parameters) for one in run.results}
    asked = Request(
        run.query,
        run.corpus,
        tuple(parameters),
        parameters,
        "selected" if answered else "none",
        answered,
        style=state.answer_style(),
    )
    try:
        job = state.start(asked)
    except RouteScopeError as error:
        st.error(md(str(error)))
        return
    link.show(job.id)
    st.rerun()


def _cautions(run: Run) -> None:
    """Draw warnings about what dense searches of this run could not find."""
    try:
        info = catalogue.describe(run.corpus, state.engine().settings).info
    except RouteScopeError:
        return  # a corpus that is not here
    for caution in cautions.of_run(run, info) if info is not None else ():
        st.warning(md(f"{caution.line()}."))


def _side_by_side(run: Run, view: View) -> None:
    whole = drawn(run, view) <= WHOLE_HITS
    with st.container():  # the grid keeps its place below it, and is not made anew in the browser
        late_answer.write(run)
        if not whole:
            st.caption(
                f"{drawn(run, view):,} hits. Above {WHOLE_HITS} hits, full texts are left out."
                " Select a passage above to read it, or show fewer hits."
            )
    show(lit(run, view.lit))
    columns = kept(run, view, passage.marker(run) if whole else None)
    st.session_state[COLUMNS] = (run.id, columns)
    show(columns)


def _behind(run: Run) -> None:
    """Draw the last columns again, behind another tab, so that the browser keeps their many elements."""
    of, columns = st.session_state.get(COLUMNS, ("", EMPTY))
    if of == run.id:
        st.container()
        show(columns)
