"""Why routes found or lost passages, as HTML: diagnoses, the fate of each passage, its rank at each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup

from core.analysis import diagnosis as words
from core.analysis.diagnosis import Diagnosis, ranked_ms
from core.analysis.lineage import is_search
from core.analysis.passage_trace import LossEvidence, PassageTrace, Stage
from core.domain.types import Passage, Span
from core.evaluation.labels_file import is_lost
from ui.app.markup import cut, fragment
from ui.app.names import named
from ui.charts.style import ERROR, KINDS

GREY = "#8A8D91"  # a kind of step that is not known here


@dataclass(frozen=True, slots=True)
class DiagnosisView:
    """The data of a drawing: the routes, the number of hits that count, grades, and passages by id."""

    funnels: Sequence[PassageTrace]
    depth: int
    gold: Mapping[str, int]
    passages: Mapping[str, Passage]
    corpus: str
    judged: bool  # a passage is expected, so that missing it is a loss

    def title(self, id: str, limit: int = 70) -> str:
        """Return a passage's name for a sentence."""
        if passage := self.passages.get(id):
            return cut(named(self.corpus, passage), limit)
        return f"{id.partition('#')[0]}: label not in the text as read" if is_lost(id) else id

    def in_top(self, fate: LossEvidence) -> bool:
        """Return whether the passage counts as found."""
        return words.in_top(fate, self.depth)


def diagnoses(made: Sequence[Diagnosis], view: DiagnosisView) -> Markup:
    """Return a row for each group of routes with the same verdict, worst first, then the other routes."""
    good = [one for one in made if one.ran and one.well]
    good.sort(key=lambda one: (one.best or 0, ranked_ms(one.result)))
    unable = [one for one in made if not one.ran]
    rows = [_diagnosis(group, view) for group in words.groups(made)]
    return fragment("why.verdicts", rows, good, unable)


def _diagnosis(group: list[Diagnosis], view: DiagnosisView) -> tuple[Any, ...]:
    """Return the cells of a verdict, with the fate of the passage that it blames or else of the first."""
    one = group[0]
    names = [cut(each.result.title, 40) for each in group]
    lines = [line for line in (words.verdict(group, view.depth), words.losses(one)) if line]
    id, fate = next((pair for pair in one.lost if pair[1] is one.blamed), next(iter(one.lost), ("", None)))
    step, how = words.blamed(one) if one.blamed is not None else ("", "")
    name = view.title(id) if one.of > 1 and id else ""
    style = colour(one.blamed.step) if one.blamed is not None else ""
    return names, lines, name, fate.words if fate else "", step, how, style, one.advice


def passage(id: str, view: DiagnosisView) -> Markup:
    """Return one passage's fate in every route, with the routes that lost it first."""
    fates = words.fates(view.funnels, id, view.depth)
    inside = [(fate.rank or 0, funnel.result.title) for funnel, fate in fates if view.in_top(fate)]
    held: str | None = ""
    if len(inside) < len(fates):  # which lists contain it, for the routes that lack it
        held = words.best_searches(view.funnels, id)
    bad = "" if held is not None else "bad" if view.judged else "dim"
    groups = [
        (
            ", ".join(cut(funnel.result.title, 40) for funnel, _ in rows),
            view.judged and not view.in_top(rows[0][1]),
            rows[0][1],
        )
        for rows in words.alike(fates, view.depth)
    ]
    return fragment(
        "why.passage",
        f"◆ {view.gold[id]} " if view.gold.get(id) else "",
        view.title(id, 140),
        f"{len(inside)} of {len(fates)} routes have it in their top {view.depth}.",
        "No list in this run contains it." if held is None else held,
        bad,
        sorted(inside, key=lambda one: one[0]),
        groups,
    )


def pictures(ids: Sequence[str], view: DiagnosisView, most: int) -> Markup:
    """Return the ranks of the first `most` passages from step to step, the first one open."""
    drawn = [(view.title(id, 140), _picture(id, view)) for id in ids[:most]]
    return fragment("why.pictures", drawn, len(ids) - most)


def _picture(id: str, view: DiagnosisView) -> Markup:
    """Return a row for each route, best first: the passage's rank after each step, the losing step marked."""
    rows = [(funnel, funnel.fate(id, view.depth)) for funnel in view.funnels if funnel.flow.lists]
    rows.sort(key=lambda one: (one[1].kind == "no ranking", one[1].rank or 10**9))
    present = {span.kind for funnel in view.funnels for span in funnel.flow.lists}
    marks = "✕ step that lost it · " if view.judged else ""
    marks += "– not in the list · dashed: list not used for the final ranking"
    if any(funnel.flow.unknown for funnel in view.funnels):
        marks += " or, where the route's own code combined lists, not recorded"
    inside = sum(view.in_top(fate) for _, fate in rows)
    drawn = []
    for funnel, fate in rows:
        css = "up" if view.in_top(fate) else "bad" if view.judged else "dim"
        drawn.append((funnel.result.title, fate.rank, css, _chips(funnel, id, fate if view.judged else None)))
    return fragment(
        "why.picture",
        [look for kind, look in KINDS.items() if kind in present],
        marks,
        drawn,
        f"{inside} of {len(rows)} routes have it in their top {view.depth}. A row shows its rank by step.",
    )


def _chips(funnel: PassageTrace, id: str, fate: LossEvidence | None) -> list[tuple[str, ...]]:
    """Return the steps in order, with neighbouring searches of one name merged, and the step that lost it."""
    lost = fate.step if fate is not None and fate.kind != "found" else None
    chips: list[tuple[str, ...]] = []
    for searching, run in groupby(funnel.stages(id), key=lambda stage: is_search(stage.span)):
        groups: dict[object, list[Stage]] = {}
        for stage in run:
            alike = (stage.span.name, stage.used) if searching else stage.span.id
            groups.setdefault(alike, []).append(stage)
        for stages in groups.values():
            span, used = stages[0].span, stages[0].used
            here = lost is not None and any(one.span.id == lost.id for one in stages)
            ranks = " · ".join("–" if one.rank is None else str(one.rank) for one in stages)
            hint = cut("; ".join(_hint(funnel, one) for one in stages), 500)
            css = f"{' lost' if here else ''}{'' if used else ' unused'}"
            chips.append((f"{'✕ ' if here else ''}{cut(span.name, 34)}", ranks, css, colour(span), hint))
    step = fate.step if fate is not None else None
    if step is not None and all(step.id != stage.span.id for stage in funnel.stages(id)):
        chips.append((f"✕ {cut(step.name, 40)}", "", " lost", colour(step), ""))
    return chips


def _hint(funnel: PassageTrace, one: Stage) -> str:
    rank = "not listed" if one.rank is None else f"rank {one.rank}"
    score = "" if one.score is None else f", score {one.score:.4g}"
    return f"{funnel.called(one.span)}: {rank} of {one.size}{score}"


def colour(step: Span | None) -> str:
    """Return the style that gives an element the colour of its kind of step."""
    kind = ERROR if step is None else KINDS.get(step.kind, ("", GREY))[1]
    return f"--kind:{kind}"
