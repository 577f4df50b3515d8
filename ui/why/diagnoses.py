"""Why routes found or lost passages, as HTML: diagnoses, the fate of each passage, its rank at each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from core.analysis import diagnosis_text as words
from core.analysis.diagnosis import Diagnosis, ranked_ms
from core.analysis.passage_trace import LossEvidence, PassageTrace
from core.domain.types import Passage, Span
from core.evaluation.reading_losses import is_lost
from ui.app.markup import EMPTY, cut, join, table_of, tag
from ui.app.names import named
from ui.charts.style import ERROR, KINDS

GREY = "#8A8D91"  # a kind of step that is not known here
MAX_LOST = 1  # lost passages in a diagnosis; the others are further below


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
        passage = self.passages.get(id)
        return (
            cut(named(self.corpus, passage), limit)
            if passage
            else f"{id.partition('#')[0]}: label not in the text as read"
            if is_lost(id)
            else id
        )


def diagnoses(made: Sequence[Diagnosis], view: DiagnosisView) -> Markup:
    """Return a row for each group of routes with the same verdict, worst first, then the other routes."""
    rows = [_diagnosis(group, view) for group in words.groups(made)]
    head = tag("tr", *(tag("th", text) for text in ("Route", "Verdict", "Lost at", "Possible fix")))
    table = table_of(head, rows, css="rs-why-table rs-why-verdicts") if rows else EMPTY
    return tag("div", table, _well(made), _unable(made), css="rs")


def _diagnosis(group: list[Diagnosis], view: DiagnosisView) -> Markup:
    one = group[0]
    names = join([tag("b", cut(each.result.title, 40)) for each in group], ", ")
    lost = [(id, fate) for id, fate in one.lost if fate is one.blamed]
    lost += [(id, fate) for id, fate in one.lost if fate is not one.blamed]
    lines = [tag("div", words.verdict(group, view.depth))]
    if losses := words.losses(one):
        lines.append(tag("div", losses))
    for id, fate in lost[:MAX_LOST]:
        name = tag("span", f"{view.title(id)}: ", css="dim") if one.of > 1 else EMPTY
        lines.append(tag("div", name, fate.words, css="rs-why-words", dir="auto"))
    blame = _blame(one)
    return tag("tr", tag("td", names), tag("td", *lines), tag("td", blame), tag("td", one.advice, dir="auto"))


def _blame(one: Diagnosis) -> Markup:
    if one.blamed is None:
        return EMPTY
    name, how = words.blamed(one)
    return join(
        [
            tag("div", tag("span", f"✕ {cut(name, 60)}", css="rs-why-lost"), style=colour(one.blamed.step)),
            tag("div", how, css="dim"),
        ]
    )


def _well(made: Sequence[Diagnosis]) -> Markup:
    good = sorted(
        (one for one in made if one.ran and one.well), key=lambda one: (one.best or 0, ranked_ms(one.result))
    )
    if not good:
        return EMPTY
    rows = [
        tag(
            "span",
            tag("b", cut(one.result.title, 40)),
            f" best rank {one.best}, nDCG@10 {one.ndcg or 0:.3f}",
            css="chip",
        )
        for one in good
    ]
    return tag("div", tag("div", "Routes with every relevant passage:", css="dim"), *rows, css="rs-why-chips")


def _unable(made: Sequence[Diagnosis]) -> Markup:
    rows = [
        tag("li", tag("b", cut(one.result.title, 40)), " ", cut(one.blamed.words if one.blamed else "", 400))
        for one in made
        if not one.ran
    ]
    if not rows:
        return EMPTY
    return tag(
        "details",
        tag("summary", f"{len(rows)} {'routes have' if len(rows) != 1 else 'route has'} no ranking"),
        tag("ul", *rows),
        css="rs-why-none",
    )


def passage(id: str, view: DiagnosisView, *, known: bool = True) -> Markup:
    """Return one passage's fate in every route, with the routes that lost it first."""
    fates = words.fates(view.funnels, id, view.depth)
    inside = [(funnel, fate) for funnel, fate in fates if in_top(fate, view)]
    groups = words.alike(fates, view.depth)
    grade = f"◆ {view.gold[id]} " if view.gold.get(id) else ""
    title = tag("h3", tag("span", grade, css="up"), view.title(id, 140), css="rs-part", dir="auto")
    summary = tag(
        "div",
        f"{len(inside)} of {len(fates)} routes have it in their top {view.depth}. ",
        _held(id, view, fates),
    )
    table = tag(
        "table", tag("tbody", *(_fate_row(rows, view) for rows in groups)), css="rs-table rs-why-table"
    )
    return tag(
        "div", title, summary if known else EMPTY, _ranked(inside), table if groups else EMPTY, css="rs"
    )


def _held(id: str, view: DiagnosisView, fates: Sequence[tuple[PassageTrace, LossEvidence]]) -> Markup:
    """Describe which lists contain the passage, for the routes that lack it."""
    if all(in_top(fate, view) for _, fate in fates):
        return EMPTY
    told = words.best_searches(view.funnels, id)
    if told is None:
        return tag("span", "No list in this run contains it.", css="bad" if view.judged else "dim")
    return tag("span", told, dir="auto") if told else EMPTY


def _ranked(inside: Sequence[tuple[PassageTrace, LossEvidence]]) -> Markup:
    if not inside:
        return EMPTY
    order = sorted(inside, key=lambda one: one[1].rank or 0)
    chips = [
        tag("span", tag("b", fate.rank), f" {cut(funnel.result.title, 40)}", css="chip")
        for funnel, fate in order
    ]
    return tag("div", *chips, css="rs-why-chips")


def _fate_row(rows: list[tuple[PassageTrace, LossEvidence]], view: DiagnosisView) -> Markup:
    fate = rows[0][1]
    names = ", ".join(cut(funnel.result.title, 40) for funnel, _ in rows)
    lost = not in_top(fate, view)
    red = lost and view.judged
    kind = tag(
        "span", f"✕ {fate.kind}" if red else fate.kind, css="rs-why-lost nowrap" if red else "dim nowrap"
    )
    return tag("tr", tag("td", tag("b", names)), tag("td", kind), tag("td", cut(fate.words, 700), dir="auto"))


def in_top(fate: LossEvidence, view: DiagnosisView) -> bool:
    """Return whether the passage counts as found."""
    return words.in_top(fate, view.depth)


def colour(step: Span | None) -> str:
    """Return the style that gives an element the colour of its kind of step."""
    kind = ERROR if step is None else KINDS.get(step.kind, ("", GREY))[1]
    return f"--kind:{kind}"
