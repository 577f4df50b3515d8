"""The Fusion page: a step selected, its parameters changed, and what that does to the ranking."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.analysis.metrics import titled
from core.analysis.rank_overlap import halves
from core.analysis.run_view import worked
from core.analysis.what_if import fusion as what_if
from core.analysis.what_if.fusion import FusionOutcome, ReplayedFusion, ShareRow
from core.analysis.what_if.parameters import as_parameters
from core.analysis.what_if.parameters import controls as controls_of
from core.domain.errors import BadInput
from core.domain.types import RouteResult, Run, Scored
from core.evaluation.tuning.batch_run import SHOWN
from core.routes.registry import routes
from ui.app import address, next_run, opened, picked, say
from ui.app.choice import choice
from ui.app.glossary import of_metric
from ui.app.help_mark import marked, term
from ui.app.markup import cut, fragment, show
from ui.app.names import tail, title_of
from ui.app.plot import plot
from ui.charts.bars import NAME_CHARACTERS, describe_shares, share_bars
from ui.components import gold as labels
from ui.components.route_choice import route_choice
from ui.fusion import controls, labelled

ROUTE, STEP = "fusion_route", "fusion_step"
# The Glossary's term for each way to make a list.
METHODS = {"rrf": "RRF", "linear": "linear fusion", "fitted": "linear fusion", "marginal": "MMR"}
TOP = 10  # passages whose scores are drawn


@st.cache_resource(max_entries=4, show_spinner=False)
def _fusions(key: tuple[object, ...], _run: Run) -> dict[str, list[ReplayedFusion]]:  # noqa: ARG001
    """Return the fusing steps by route, read once: each is recomputed to see whether it can be."""
    found = {result.route: what_if.fusions(result) for result in worked(_run)}
    return {route: steps for route, steps in found.items() if steps}


@st.fragment  # a click leaves the line on the run and the sidebar as they are
def draw(run: Run, gold: Mapping[str, int]) -> None:
    """Draw the page about one run."""
    found = _fusions((run.id, run.created, *((one.route, len(one.spans)) for one in worked(run))), run)
    if not found:
        st.subheader("No route in this run fuses lists", anchor=False)
        st.caption("Run the question with a route that does, for example from the “hybrid” family.")
        opened.to("compare.py", "Choose routes in Compare")
        return
    result, fusion = _choose(run, found)
    names = what_if.list_names(result, fusion, run.query.text)
    if (halved := halves(result)) is not None:
        say.caption(f"{halved.line()}.")
    if fusion.lack:
        say.info(f"You cannot try other values for “{fusion.span.name}”: {fusion.lack}.")
        return
    scope = f"fusion:{run.id}:{result.route}:{fusion.span.id}"
    route = routes().get(result.route)
    movable = controls_of(route, fusion, [cut(name, 40) for name in names])
    changes = controls.controls(movable, scope)
    given = (movable, scope)
    st.button("Reset", key="fusion_reset", disabled=not changes, on_click=controls.reset, args=given)
    try:
        fused, parts = what_if.recompute(fusion, changes), what_if.shares(fusion, changes)
    except BadInput as error:
        say.error(error)
        return
    before, made = fusion.span.hits or (), what_if.outcome(result, fusion, fused)
    _stale(made)
    _ranks(run, result, made, (before, fused), gold)
    passage = picked.pick(run, gold)
    also = [id for id, grade in gold.items() if grade > 0] + ([passage] if passage else [])
    _bars(run, fusion, what_if.rows(fusion, before, fused, parts, gold, limit=TOP, also=also), names)
    if route is not None:
        lacking = f"{route.title} lacks a parameter for some of these changes."
        parameters = as_parameters(route, fusion.span, changes) if changes else {}
        next_run.offer(run, route, parameters, lacking)
        labelled.draw(run, result, fusion, changes, ranks=made.hits is not None)


def _choose(run: Run, found: Mapping[str, list[ReplayedFusion]]) -> tuple[RouteResult, ReplayedFusion]:
    results = {result.route: result for result in run.results}
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        name = route_choice(run, list(found), ROUTE)
        steps = {fusion.span.id: fusion for fusion in found[name]}
        first = next((id for id, one in steps.items() if not one.lack), next(iter(steps)))
        named = {id: cut(f"step {id}: {fusion.span.name}", 80) for id, fusion in steps.items()}
        step = first
        if len(steps) > 1:
            step = choice("step", STEP, "Step", named, usual=first, width=420)
        else:
            address.keep("step", None)
    return results[name], steps[step]


def _stale(made: FusionOutcome) -> None:
    """Draw which steps were not rerun with the changed values."""
    if made.stale:
        names = ", ".join(f"“{name}”" for name in dict.fromkeys(cut(span.name, 60) for span in made.stale))
        shown = "Showing the list that this step makes" if made.hits is None else "The ranking is updated"
        say.caption(f"{shown}. To update the later steps, run the question: {names}.")


def _ranks(
    run: Run, result: RouteResult, made: FusionOutcome, fused: tuple[Scored, Scored], gold: Mapping[str, int]
) -> None:
    """Describe where the labelled passages moved and how this question's metrics changed."""
    was, now = fused
    if made.hits is not None:
        was, now = tuple((hit.passage.id, hit.score) for hit in result.hits), made.hits
    lines = [
        (title_of(run, id), _way(a, b), what_if.arrow(a, b)) for id, a, b in what_if.moved(was, now, gold)
    ]
    first, then = what_if.ranks_in(was[:TOP]), what_if.ranks_in(now[:TOP])
    come = sum(id not in first for id in then)
    moves = sum(id in first and first[id] != rank for id, rank in then.items())
    note = (
        f"{come} of the top {TOP} are new, {moves} others change rank."
        if now != was
        else "Same as in the run."
    )
    measured = labels.gold_of(run).measured({"before": was, "after": now}, SHOWN) or {}
    figures = [
        (marked(titled(name), of_metric(name)), measured["before"][name], measured["after"][name])
        for name in (SHOWN if measured else ())
    ]
    show(fragment("fusion.ranks", lines, note, figures))


def _bars(run: Run, fusion: ReplayedFusion, shown: list[ShareRow], names: tuple[str, ...]) -> None:
    st.markdown("##### Score by list", help=term(METHODS[fusion.method]))
    words = describe_shares(shown[:TOP], names)
    inside = " The number in each segment is the passage's rank in that list."
    say.caption(words + (inside if fusion.method != "marginal" else ""))
    lists = [cut(name, 60) for name in names]
    figure = share_bars(fusion, shown, lists, lambda id: tail(title_of(run, id), NAME_CHARACTERS))
    plot(figure, "fusion_bars", words, table=False)
    with st.expander("Show as a table"):
        columns = names if fusion.method != "marginal" else ("input rank",)
        lines = []
        for one in shown:
            way = _way(one.before, one.after)
            lines.append(
                (one.grade, title_of(run, one.id), way, what_if.arrow(one.before, one.after), one.places)
            )
        show(fragment("fusion.rows", columns, lines))


def _way(before: int | None, after: int | None) -> str:
    if before == after:
        return "dim"
    return "up" if (after or 10**9) < (before or 10**9) else "down"
