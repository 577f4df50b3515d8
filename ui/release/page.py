"""Release: criteria, the route that meets them, how sure that is, and the files to download."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.domain.errors import RouteScopeError
from core.domain.format import number
from core.evaluation.experiment_store import Evaluation
from core.evaluation.finding import count
from core.evaluation.release.criteria import command
from core.evaluation.release.gate import Decision, decide
from core.evaluation.release.measured import Measured, of_evaluation
from core.evaluation.release.module import module
from core.evaluation.release.report import limits, report
from core.evaluation.release.snapshot import snapshot
from core.evaluation.statistics import rounded
from core.evaluation.templating import sentences
from ui.app import evaluated, opened, say, state
from ui.app.choice import choice
from ui.app.evaluated import once
from ui.app.help_mark import term
from ui.app.markup import fragment, md, show
from ui.app.plot import plot
from ui.app.tabs import tabs
from ui.charts.intervals import of_verdict
from ui.charts.tradeoff import tradeoff
from ui.components import settle
from ui.components.download import download
from ui.release import comparisons, regressions, table
from ui.release import criteria as criteria_view

TAB = "release_tab"
FILE = "route.py"


def draw() -> None:
    """Draw the page."""
    evaluation = evaluated.chosen()
    if evaluation is not None:
        try:
            measured = once(evaluation, "measured", compute=lambda: of_evaluation(evaluation))
            _decided(measured, evaluation)
        except RouteScopeError as error:
            say.info(f"{error}.")
            evaluated.begin("Evaluate routes", "release_evaluate")
    opened.link()


@st.fragment  # a click leaves the choice of the evaluation and the sidebar as they are
def _decided(measured: Measured, evaluation: Evaluation) -> None:
    card = st.container(border=True, key="release_card")
    left, right = st.columns([3, 2], gap="medium")
    with right:
        st.markdown("**What a route must meet**", help=term("release criteria"))
        criteria = criteria_view.chosen(measured)
    decision: Decision = once(evaluation, "release", criteria, compute=lambda: decide(measured, criteria))
    with card:
        _card(decision, evaluation)
    with left:
        points = {one.route: (one.mean, one.p95_ms or one.p50_ms) for one in decision.candidates}
        titles, metric = {one.route: one.title for one in decision.candidates}, titled(criteria.metric)
        region, cost = (criteria.minimum, criteria.max_p95_ms), "95th percentile latency (p95)"
        given: Any = {"metric": metric, "cost": cost, "time": True, "region": region}
        figure = tradeoff(points, titles, decision.baseline, **given)
        plot(figure, "release_front", decision.headline, table=False)
        regressions.summary(measured, decision)
    with st.expander("Why"):
        st.markdown(f"**{md(decision.headline)}**")
        for sentence in (*sentences("decision.why", decision), *sentences("decision.equal", decision)):
            st.markdown(md(sentence))
    every = {
        "Criteria": _criteria,
        "What it rests on": _rests,
        "What it does worse": comparisons.worse,
        "Regressions": regressions.draw,
        "Ladder": table.ladder,
        "Against a release": comparisons.against,
        "Report and build": _taken,
        "Python module": _module,
    }
    views = {name: partial(view, measured, decision) for name, view in every.items()}
    tabs(views, TAB, views)


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
        (
            number(worse),
            f"largest loss against another route that is not excluded; margin {number(verdict.margin)}",
        ),
    )
    show(fragment("release.card", said, css, figures, change))
    if decision.chosen is None:
        settle.button(evaluation, verdict.open_pair, "release_settle")
    else:
        to = (TAB, "Report and build")
        st.button(to[1], key="release_next", type="primary", on_click=st.session_state.__setitem__, args=to)


def _criteria(measured: Measured, decision: Decision) -> None:
    show(table.criteria(decision))
    st.markdown("**What the labelled set can and cannot show**", help=term("detectable difference"))
    st.markdown("\n".join(f"- {md(sentence)}" for sentence in limits(measured, decision)))


def _rests(_measured: Measured, decision: Decision) -> None:
    verdict = decision.verdict
    if not verdict.pairs:
        st.caption("Only one route may ship, so there is nothing to compare.")
        return
    route = decision.titled(verdict.pairs[0].route)
    about = f"{titled(decision.criteria.metric)}, {route} minus the other"
    st.caption(
        "A route may ship if every interval lies right of the dashed line, at minus the margin of "
        f"{verdict.margin:g}.",
        help=term("margin"),
    )
    plot(of_verdict(verdict, decision.titled, about), "release_rests", decision.headline)


def _taken(measured: Measured, decision: Decision) -> None:
    against, stem = comparisons.snapshot_diff(measured, decision), f"release-{measured.name}"
    with st.container(horizontal=True):
        for label, ending, made in (
            ("Report (HTML)", "html", lambda: report(measured, decision, against)),
            ("Report (Markdown)", "md", lambda: report(measured, decision, against, kind="markdown")),
            ("Snapshot (JSON)", "json", lambda: snapshot(measured, decision)),
        ):
            download(label, f"{stem}.{ending}", made, f"release_{ending}", "release")
    st.caption("The snapshot contains every figure and each question's values, to compare a later release.")
    for purpose, given in (
        ("In CI, this command exits with 0 if a route is decided to ship, and with 1 otherwise:", "html"),
        ("For the next release, this command fails only on a drop that is shown:", "json"),
    ):
        st.markdown(purpose)
        option = {"report" if given == "html" else "against": f"{stem}.{given}"}
        line = command(measured.name, decision.criteria, **option)
        st.code(line, language="bash", wrap_lines=True)


def _module(measured: Measured, decision: Decision) -> None:
    """Choose a route, read its Python module, download it."""
    evaluation = measured.evaluation
    if evaluation is None:
        st.caption("Only the figures are available. Open the evaluation to export one of its routes.")
        return
    routes, spec = list(measured.routes), evaluation.spec
    chosen = decision.chosen or decision.nearest
    usual, titles = chosen if chosen in routes else None, {one: measured.title(one) for one in routes}
    name = choice("export", "export_route", "Route", titles, usual=usual, width=420)
    parameters, why = (spec.get("parameters") or {}).get(name, {}), f"as measured in {evaluation.name}"
    asked: Any = {"evidence": spec.get("evidence"), "purpose": why, "file": FILE}
    source = module(state.engine(), name, spec["corpus"], parameters, **asked)
    st.caption("Runs the route in the same engine, so it returns the same hits. Needs RouteScope installed.")
    st.download_button("Download", source, file_name=FILE, mime="text/x-python", on_click="ignore")
    st.code(source, language="python")
