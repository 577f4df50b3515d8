"""One run on Compare: the grid of routes and the views below it, all drawn from the run alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlencode

import streamlit as st

from core.charts import rank_matrix, waterfall
from core.charts.look import milliseconds
from core.engine import Job
from core.reading import worked
from core.reading_answers import being_written
from core.types import Run, Span
from ui import answers, decisions, matches, state, trust, written
from ui.gold import gold_grades
from ui.grades import grades
from ui.grid import View, Waiting, grid
from ui.markup import cut, join, md, show
from ui.rewrites import searched_anew, texts
from ui.routes import title
from ui.steps import steps
from ui.strips import strips
from ui.view import controls

SPOKEN = {
    "running": "running",
    "cancelled": "stopped early",
    "interrupted": "interrupted: the program ended meanwhile",
}
CHART = {"displayModeBar": False}


def dark() -> bool:
    """Whether the browser shows the dark theme."""
    return st.context.theme.type == "dark"


def draw(run: Run, waiting: Sequence[Waiting] = ()) -> None:
    """Everything a run has to show; routes that have not ended come as waiting columns."""
    gold = gold_grades(run)
    under_way = run.status == "running"
    if not under_way:
        _summary(run)
    view = controls(run, gold)
    if under_way or not worked(run):
        show(grid(run, view, waiting))
        return
    views: dict[str, Callable[[], None]] = {
        "Side by side": lambda: _side_by_side(run, view),
        "Ranks": lambda: _ranks(run, view),
        "Rewrites": lambda: show(texts(run, view.depth)),
        "Answers": lambda: written.draw(run),
        "Decisions": lambda: show(decisions.path(run)),
        "Grades": lambda: _grades(run),
        "Matches": lambda: matches.draw(run, dark=dark()),
        "Time": lambda: _time(run),
        "Steps": lambda: show(steps(run)),
    }
    for tab, body in zip(st.tabs(list(views), on_change="rerun", key="tab"), views.values(), strict=True):
        if tab.open:
            with tab:
                body()


def pending(job: Job) -> list[Waiting]:
    """The routes of a job that have not ended."""
    return [
        Waiting(
            title(name), at == "running", step.name if (step := current(spans)) else "", being_written(spans)
        )
        for name, at, spans in job.pending()
    ]


def at_work(job: Job) -> str:
    """Which step runs now and for how long, for the progress line."""
    for name, at, spans in job.pending():
        if at == "running":
            step = current(spans)
            return f"{title(name)}: {step.name}, {step.ms / 1000:.0f} s" if step else title(name)
    return "starting"


def current(spans: Sequence[Span]) -> Span | None:
    """The step a route is at; the calls below it are its own business."""
    return next((span for span in reversed(spans) if span.parent is None), None)


def _summary(run: Run) -> None:
    worked_count = len(worked(run))
    facts = [
        f"{worked_count} of {len(run.results)} routes with a result",
        f"{milliseconds(run.wall_ms)} in all",
        f"corpus {run.corpus}",
        f"asked {run.created[:16].replace('T', ' ')} UTC",
    ]
    anew = searched_anew(run)
    if anew:
        facts.insert(1, f"{anew} searched with another text than the question")
    if run.status in SPOKEN:
        facts.insert(0, SPOKEN[run.status])
    if run.query.text != (st.session_state.get(state.QUESTION) or "").strip():
        facts.insert(0, f"found for “{cut(run.query.text, 90)}”")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(md(" · ".join(facts)), width="stretch")
        with st.popover("Link", type="tertiary", key="link_menu"):
            here = (st.context.url or "").split("?")[0].rstrip("/")
            st.caption("Reopens exactly this run, without any model.")
            st.code(f"{here}/?run={run.id}", language=None)
            st.caption("Opens the question unasked.")
            st.code(f"{here}/?{urlencode({'q': run.query.text, 'corpus': run.corpus})}", language=None)


def _side_by_side(run: Run, view: View) -> None:
    answers.write(run)
    show(grid(run, view))


def _ranks(run: Run, view: View) -> None:
    figure = rank_matrix(run, depth=view.depth, gold=view.gold, dark=dark())
    told = "Rank of each passage in each route: the stronger the colour, the higher."
    st.caption(told + (" ◆ marks labelled passages with their grade." if view.gold else ""))
    st.plotly_chart(figure, theme=None, width="stretch", config=CHART, key="matrix", alt=told)


def _grades(run: Run) -> None:
    show(join([grades(run), strips(run)]))
    trust.draw(run, dark=dark())


def _time(run: Run) -> None:
    only = st.toggle(
        "Retrieval only",
        key="retrieval_only",
        help="Leave out the model's steps, beside which searches vanish",
    )
    told = "Each route as if it ran alone: every bar begins where the step began."
    st.caption(f"{told} All of them together took {milliseconds(run.wall_ms)} in this run.")
    figure = waterfall(run, dark=dark(), retrieval_only=only)
    st.plotly_chart(figure, theme=None, width="stretch", config=CHART, key="waterfall", alt=told)
