"""Release: criteria, the route that meets them, how sure that is, and the files to download."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.analysis.metrics import titled
from core.domain.errors import RouteScopeError
from core.domain.format import number
from core.evaluation import experiment_store
from core.evaluation.experiment_store import Evaluation
from core.evaluation.finding import count
from core.evaluation.power import rounded
from core.evaluation.release import text
from core.evaluation.release.criteria import Criteria, command
from core.evaluation.release.gate import Decision, decide
from core.evaluation.release.measured import Measured, of_evaluation
from core.evaluation.release.report import limits, report
from core.evaluation.release.snapshot import snapshot
from ui.app import account, evaluated, opened
from ui.app.help_mark import term
from ui.app.markup import md, show, tag
from ui.app.plot import plot
from ui.app.tabs import tabs
from ui.charts.intervals import of_verdict
from ui.charts.tradeoff import tradeoff
from ui.components import settle
from ui.release import against as against_view
from ui.release import criteria as criteria_view
from ui.release import ladder, module, regressions, table, worse

TAB = "release_tab"


def draw() -> None:
    """Draw the page."""
    evaluation = evaluated.chosen()
    if evaluation is not None:
        try:
            _decided(_measured(evaluation), evaluation)
        except RouteScopeError as error:
            st.info(md(f"{error}."))
            st.page_link("evaluate.py", label="Go to Evaluate")
    opened.link()


def _decided(measured: Measured, evaluation: Evaluation) -> None:
    card = st.container(border=True, key="release_card")
    left, right = st.columns([3, 2], gap="medium")
    with right:
        st.markdown("**What a route must meet**", help=term("release criteria"))
        criteria = criteria_view.chosen(measured)
    decision = _decision(
        str(evaluation.folder), experiment_store.stamp(evaluation.folder), criteria, measured
    )
    with card:
        _card(decision, evaluation)
    with left:
        _figure(decision)
        regressions.summary(measured, decision)
    with st.expander("Why"):
        for sentence in (f"**{md(text.headline(decision))}**", *map(md, text.why(decision))):
            st.markdown(sentence)
        for sentence in text.equal(decision):
            st.markdown(md(sentence))
    tabs(
        {
            "Criteria": partial(_table, measured, decision),
            "What it rests on": partial(_rests, decision),
            "What it does worse": partial(worse.draw, measured, decision),
            "Regressions": partial(regressions.draw, measured, decision),
            "Ladder": partial(ladder.draw, measured, decision),
            "Against a release": partial(against_view.draw, measured, decision),
            "Report and build": partial(_taken, measured, decision),
            "Python module": partial(module.draw, measured, decision),
        },
        TAB,
    )


def _card(decision: Decision, evaluation: Evaluation) -> None:
    """Draw the verdict, the two numbers behind it, what would change it, and the next step."""
    verdict, best = decision.verdict, decision.verdict.best_so_far
    name = decision.titled(decision.shown)
    said, css = {
        "ship": (f"Ship {name}", "passed"),
        "equivalent": (f"Ship {name}, the cheapest of {len(verdict.equivalent)} equal routes", "passed"),
        "none": ("Nothing passes: every route misses a limit", "failed"),
    }.get(verdict.decision, (f"Not enough evidence: {name} is best so far", "open"))
    mean = decision.of(decision.shown).mean
    worse = max(0.0, -min((one.low for one in verdict.pairs), default=0.0)) if best else None
    if verdict.more_questions is not None:
        change = f"About {count(rounded(verdict.more_questions), 'more questions')} would decide."
    elif decision.chosen:
        change = "A loss beyond the margin on new questions, or other limits, would change it."
    else:
        change = next((one.text for one in verdict.reasons), "")
    figures = (
        (number(mean), f"mean {titled(decision.criteria.metric)}, {count(verdict.questions)}"),
        (number(worse), f"worse than another route at most; margin {number(verdict.margin)}"),
    )
    show(
        tag(
            "div",
            tag("h2", said, css=f"rs-release-{css}"),
            *(tag("div", tag("b", value), " ", about) for value, about in figures),
            tag("div", change, css="dim"),
            css="rs rs-release-card",
        )
    )
    if decision.chosen is None:
        settle.button(evaluation, verdict.open_pair, "release_settle")
    else:
        st.button("Report and build", key="release_next", type="primary", on_click=_report)


def _report() -> None:
    st.session_state[TAB] = "Report and build"


def _figure(decision: Decision) -> None:
    """Draw quality against time, with the region that the limits allow."""
    criteria = decision.criteria
    points = {one.route: (one.mean, one.p95_ms or one.p50_ms) for one in decision.candidates}
    figure = tradeoff(
        points,
        {one.route: one.title for one in decision.candidates},
        decision.baseline,
        metric=titled(criteria.metric),
        cost="95th percentile latency (p95)",
        time=True,
        region=(criteria.minimum, criteria.max_p95_ms),
    )
    plot(figure, "release_front", text.headline(decision), table=False)


def _table(measured: Measured, decision: Decision) -> None:
    show(table.table(decision))
    st.markdown("**What the labelled set can and cannot show**", help=term("detectable difference"))
    st.markdown("\n".join(f"- {md(sentence)}" for sentence in limits(measured, decision)))


def _rests(decision: Decision) -> None:
    verdict = decision.verdict
    if not verdict.pairs:
        st.caption("Only one route may ship, so there is nothing to compare.")
        return
    route = decision.titled(verdict.pairs[0].route)
    st.caption(
        md(
            f"{route} minus each other route, in {titled(decision.criteria.metric)}. A route may ship if "
            f"every interval lies right of the dashed line, at minus the margin of {verdict.margin:g}."
        ),
        help=term("margin"),
    )
    about = f"{titled(decision.criteria.metric)}, {route} minus the other"
    figure = of_verdict(verdict, decision.titled, about)
    plot(figure, "release_rests", text.headline(decision))


def _taken(measured: Measured, decision: Decision) -> None:
    against = against_view.found(measured, decision)
    stem = f"release-{measured.name}"
    with st.container(horizontal=True):
        st.download_button(
            "Report (HTML)",
            account.by_me(lambda: report(measured, decision, against)),
            f"{stem}.html",
            "text/html",
            on_click="ignore",
            key="release_html",
            **account.needs("release"),
        )
        st.download_button(
            "Report (Markdown)",
            account.by_me(lambda: report(measured, decision, against, kind="markdown")),
            f"{stem}.md",
            "text/markdown",
            on_click="ignore",
            key="release_md",
            **account.needs("release"),
        )
        st.download_button(
            "Snapshot (JSON)",
            account.by_me(lambda: snapshot(measured, decision)),
            f"{stem}.json",
            "application/json",
            on_click="ignore",
            key="release_json",
            **account.needs("release"),
        )
    st.caption(
        "The report is one file with the decision, its reasons and its limits. The snapshot contains every"
        " figure and each question's values, to compare the next release with."
    )
    st.markdown("In CI, this command exits with 0 if a route is decided to ship, and with 1 otherwise:")
    st.code(
        command(measured.name, decision.criteria, report=f"{stem}.html"), language="bash", wrap_lines=True
    )
    st.markdown("For the next release, this command fails only on a drop that is shown:")
    st.code(
        command(measured.name, decision.criteria, against=f"{stem}.json"), language="bash", wrap_lines=True
    )


def _measured(evaluation: Evaluation) -> Measured:
    return _kept(str(evaluation.folder), experiment_store.stamp(evaluation.folder), evaluation)


@st.cache_resource(max_entries=4, show_spinner=False)
def _kept(
    folder: str,  # noqa: ARG001 - part of the cache key
    stamp: tuple[float, ...],  # noqa: ARG001 - part of the cache key
    _evaluation: Evaluation,
) -> Measured:
    return of_evaluation(_evaluation)


@st.cache_resource(max_entries=32, show_spinner="Checking the routes against the criteria")
def _decision(
    folder: str,  # noqa: ARG001 - part of the cache key
    stamp: tuple[float, ...],  # noqa: ARG001 - part of the cache key
    criteria: Criteria,
    _measured: Measured,
) -> Decision:
    return decide(_measured, criteria)
