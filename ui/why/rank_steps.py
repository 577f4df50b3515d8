"""A passage's rank from step to step, a row a route: reads at forty routes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from core.analysis.lineage import is_search
from core.analysis.passage_trace import LossEvidence, PassageTrace, Stage
from ui.app.markup import cut, table_of, tag
from ui.charts.style import KINDS
from ui.why.diagnoses import DiagnosisView, colour, in_top


def picture(id: str, view: DiagnosisView) -> Markup:
    """Return a row for each route, best first: the passage's rank after each step, the losing step marked."""
    rows = [(funnel, funnel.fate(id, view.depth)) for funnel in view.funnels if funnel.flow.lists]
    rows.sort(key=lambda one: (one[1].kind == "no ranking", one[1].rank or 10**9))
    body = [
        tag(
            "tr",
            tag("td", cut(funnel.result.title, 32), css="nowrap"),
            tag("td", _final(fate, view), css="num"),
            tag("td", tag("div", *_chips(funnel, id, fate, view), css="rs-why-flow")),
        )
        for funnel, fate in rows
    ]
    head = tag("tr", tag("th", "Route"), tag("th", "Rank", css="num"), tag("th", "Rank after each step"))
    table = table_of(head, body, css="rs-why-table")
    return tag("div", legend(view), table, css="rs", role="figure", aria_label=picture_words(rows, view))


def picture_words(rows: Sequence[tuple[PassageTrace, LossEvidence]], view: DiagnosisView) -> str:
    """Describe the picture for screen readers."""
    inside = sum(in_top(fate, view) for _, fate in rows)
    return f"{inside} of {len(rows)} routes have it in their top {view.depth}. A row shows its rank by step."


def legend(view: DiagnosisView) -> Markup:
    """Return what colours and marks mean."""
    present = {span.kind for funnel in view.funnels for span in funnel.flow.lists}
    kinds = [
        tag("span", label, css="rs-why-step", style=f"--kind:{colour}")
        for kind, (label, colour) in KINDS.items()
        if kind in present
    ]
    marks = "✕ step that lost it · " if view.judged else ""
    marks += "– not in the list · dashed: list not used for the final ranking"
    if any(funnel.flow.unknown for funnel in view.funnels):
        marks += " or, where the route's own code combined lists, not recorded"
    return tag("div", *kinds, tag("span", marks, css="dim"), css="rs-why-flow")


def _final(fate: LossEvidence, view: DiagnosisView) -> Markup:
    if in_top(fate, view):
        return tag("b", fate.rank, css="up")
    return tag("span", fate.rank if fate.rank is not None else "–", css="bad" if view.judged else "dim")


def _chips(funnel: PassageTrace, id: str, fate: LossEvidence, view: DiagnosisView) -> list[Markup]:
    """Return the steps in order, with neighbouring searches of one name merged."""
    chips: list[Markup] = []
    for searching, run in groupby(funnel.stages(id), key=lambda stage: is_search(stage.span)):
        stages = list(run)
        groups: dict[object, list[Stage]] = {}
        for stage in stages:
            alike = (stage.span.name, stage.used) if searching else stage.span.id
            groups.setdefault(alike, []).append(stage)
        chips += [_chip(funnel, several, fate if view.judged else None) for several in groups.values()]
    if (
        view.judged
        and fate.step is not None
        and not any(fate.step.id == stage.span.id for stage in funnel.stages(id))
    ):
        chips.append(
            tag("span", f"✕ {cut(fate.step.name, 40)}", css="rs-why-step lost", style=colour(fate.step))
        )
    return chips


def _chip(funnel: PassageTrace, stages: list[Stage], fate: LossEvidence | None) -> Markup:
    first = stages[0]
    step = fate.step if fate is not None and fate.kind != "found" else None
    lost = step is not None and any(one.span.id == step.id for one in stages)
    ranks = " · ".join("–" if one.rank is None else str(one.rank) for one in stages)
    hints = [
        f"{funnel.called(one.span)}: {'not listed' if one.rank is None else f'rank {one.rank}'} of {one.size}"
        + (f", score {one.score:.4g}" if one.score is not None else "")
        for one in stages
    ]
    css = f"rs-why-step{' lost' if lost else ''}{'' if first.used else ' unused'}"
    mark = "✕ " if lost else ""
    return tag(
        "span",
        f"{mark}{cut(first.span.name, 34)} ",
        tag("b", ranks),
        css=css,
        style=colour(first.span),
        title=cut("; ".join(hints), 500),
    )
