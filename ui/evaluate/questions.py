"""The questions of an evaluation, those first on which routes differ most; each with the routes' hits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.domain.errors import RouteScopeError
from core.domain.format import number
from core.evaluation import comparison, leaderboard
from core.evaluation.answers import Given, nugget_levels
from core.evaluation.comparison import SAME, Disagreement, by_question
from core.evaluation.experiment_store import Evaluation
from core.evaluation.finding import count
from core.evaluation.labels import label_next
from ui.app import address, state
from ui.app.choice import choice
from ui.app.evaluated import once, open_run
from ui.app.markup import cut, fragment, md, show
from ui.app.routes import title
from ui.components import tables
from ui.evaluate.view import Look, decided, sentences, values

MODE, ONE, OTHER, SIDE, QUESTION = (f"evaluate_{name}" for name in ("mode", "a", "b", "side", "question"))
ANY, NOBODY = "all", ""
PAGE = 20  # questions listed at a time
SHOWN = 3  # hits of a route
APART = 0.5  # difference of a metric from which routes differ on a question
NARROW = 76  # pixels of a column of scores, whatever the route is called


def draw(look: Look) -> None:
    """Draw it."""
    evaluation = look.evaluation
    found = once(
        evaluation, "disagreements", look.metric, compute=lambda: _disagreements(evaluation, look.metric)
    )
    modes = {question.mode for question in evaluation.questions.values() if question.mode}
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        named = {ANY: "all modes"} | {name: name for name in sorted(modes - {ANY})}
        mode = choice("mode", MODE, "Mode", named, width=220)
        best, routes = decided(look).verdict.best_so_far, [NOBODY, *evaluation.routes]
        given: Any = {"width": 230, "format_func": lambda route: title(route) if route else "all routes"}
        one = choice("a", ONE, "Route", routes, usual=best.route if best else NOBODY, **given)
        other = choice("b", OTHER, "Compare with", routes, usual=NOBODY, **given)
    other = other if one != other else NOBODY
    kept = [row for row in found if mode == ANY or evaluation.questions[row.question].mode == mode]
    sides = _sides(look, kept, one, other)
    counts = {name: f"{name.capitalize()} ({len(ids)})" for name, ids in sides.items()}
    side = choice("side", SIDE, "Questions", counts, segmented=True, label_visibility="collapsed")
    show(sentences([_described(sides, kept, one, other, look)]))
    by = {row.question: row for row in found}
    _list(look, [by[id] for id in sides[side]], by, one)
    with st.expander("All scores", key="evaluate_scores", on_change="rerun") as panel:
        if panel.open:
            _table(look, [by[id] for id in sides[side]])


def _sides(look: Look, kept: list[Disagreement], one: str, other: str) -> dict[str, list[str]]:
    """Return the ids of the questions of each filter.

    Failed: the route scored 0 or did not finish, or every route if `one` is "". Different: it scored
    otherwise than the other, or, without one, the best and the worst route are far apart. Uncertain: passages
    without a label could change which of the two leads, or which of the leader and its closest rival.
    """
    evaluation, by, metric = look.evaluation, values(look), look.metric
    ids = [row.question for row in kept]

    def failed(id: str, route: str) -> bool:
        asked = evaluation.outcomes.get(id, {}).get(route)
        return (asked is not None and asked.status != "ok") or by.get(route, {}).get(id, {}).get(metric) == 0

    routes = [one] if one else list(evaluation.routes)
    moved = by_question(by, one, other, metric) if one and other else {}
    if moved:
        order = sorted(moved, key=lambda id: -abs(moved[id]))
        different = [id for id in order if abs(moved[id]) > SAME and id in ids]
    else:
        different = [row.question for row in kept if (row.spread or 0) >= APART]
    rivals = (one, other) if one and other else decided(look).verdict.open_pair
    open_ = [each.id for each in label_next.of_evaluation(evaluation, *rivals)] if rivals else []
    sides = {
        "all": ids,
        "failed": [id for id in ids if all(failed(id, route) for route in routes)],
        "different": different,
        "uncertain": [id for id in open_ if id in ids],
    }
    if moved:
        sides["better"] = [id for id in different if moved[id] > 0]
        sides["worse"] = [id for id in different if moved[id] < 0]
    return sides


def _described(
    sides: Mapping[str, list[str]], kept: list[Disagreement], one: str, other: str, look: Look
) -> str:
    if "better" in sides:
        return (
            f"{title(one)} compared with {title(other)} in {titled(look.metric)}: better on "
            f"{len(sides['better'])}, worse on {len(sides['worse'])} of {len(kept)} questions."
        )
    scored = [row for row in kept if row.spread is not None]
    same = sum(not row.spread for row in scored)
    return (
        f"{titled(look.metric)} differs by {APART:g} or more between the best and the worst route on "
        f"{len(sides['different'])} of {len(scored)} scored questions; on {same} it is the same for all."
    )


def _list(look: Look, kept: list[Disagreement], by: Mapping[str, Disagreement], one: str) -> None:
    """Draw a page of questions; each opens to the routes' scores and first hits."""
    evaluation = look.evaluation
    address.take("question", QUESTION, address.one_of(list(evaluation.questions)))
    asked = str(st.session_state.get(QUESTION) or "")
    key = f"evaluate_pages:{evaluation.name}:{look.metric}:{len(kept)}"
    listed = kept[: PAGE * int(st.session_state.get(key, 1))]
    if asked in by and by[asked] not in listed:
        listed = [by[asked], *listed]
    for row in listed:
        id = row.question
        mine = values(look).get(one, {}).get(id, {}).get(look.metric)
        score = "" if mine is None else f"  ·  {title(one)} {number(mine)}"
        spread = "not scored" if row.spread is None else f"best to worst {number(row.spread)}"
        name = f"evaluate_asked:{evaluation.name}:{id}"
        st.session_state.setdefault(name, id == asked)
        label = f"{md(evaluation.questions[id].query.text)}  :small[{md(f'{score}  ·  {spread}')}]"

        def turned(name: str = name, id: str = id) -> None:
            st.session_state[QUESTION] = id if st.session_state[name] else None

        with st.expander(label, key=name, on_change=turned) as panel:
            if panel.open:
                _detail(look, row)
    address.keep("question", asked if asked in by else None)
    if len(listed) < len(kept):
        label, to = f"Show more ({len(kept) - len(listed)})", (key, st.session_state.get(key, 1) + 1)
        st.button(label, key="evaluate_more", on_click=st.session_state.__setitem__, args=to)


def _detail(look: Look, row: Disagreement) -> None:
    """Draw a question's facts, and each route's score with its first hits."""
    evaluation, id = look.evaluation, row.question
    question = evaluation.questions[id]
    grades = evaluation.labelled.qrels.get(id, {})
    relevant = sum(grade >= evaluation.labelled.relevant_from for grade in grades.values())
    facts = [f"{name} {value}" for name in ("mode", "split") if (value := getattr(question, name))]
    facts.append(f"{count(relevant, 'relevant passages')} labelled")
    hits = _hits(look, id, grades)
    nuggets = [
        (title(route), nugget_levels(question.checked_nuggets, Given(one.answer, abstained=one.abstained)))
        for route, one in evaluation.outcomes.get(id, {}).items()
        if question.checked_nuggets and one.answer is not None
    ]
    show(fragment("evaluate.question", question, facts, titled(look.metric), hits, nuggets))
    open_run(evaluation, id, f"evaluate_why:{id}")


def _hits(look: Look, id: str, grades: Mapping[str, int]) -> list[tuple[Any, ...]]:
    """Return each route, best first: its title, score, and first hits with their grades, or its error."""
    evaluation, by = look.evaluation, values(look)
    asked, titles = evaluation.outcomes.get(id, {}), _titles(evaluation, id)
    scores = {route: by.get(route, {}).get(id, {}).get(look.metric) for route in asked}
    routes = [route for route in leaderboard.distinct(look.figures, look.metric) if route in asked]
    rows = []
    for route in sorted(routes, key=lambda route: 1 if (value := scores[route]) is None else -value):
        one = asked[route]
        hits = [(titles.get(passage, passage), grades.get(passage)) for passage, _ in one.hits[:SHOWN]]
        error = "" if one.status == "ok" else f"{one.status}: {one.error}"
        rows.append((title(route), number(scores[route]), hits, error))
    return rows


def _titles(evaluation: Evaluation, id: str) -> Mapping[str, str]:
    """Return the titles of the passages that the routes returned, of the stored run or else the corpus."""
    ids = sorted({hit for one in evaluation.outcomes.get(id, {}).values() for hit, _ in one.hits[:SHOWN]})
    try:
        if evaluation.run_id(id):
            known = evaluation.run(id).passages
        else:
            known = state.engine().corpus(str(evaluation.spec["corpus"])).by_ids(ids)
    except RouteScopeError:  # the corpus is gone: ids are all that is known
        return {}
    return {passage: one.title for passage, one in known.items()}


def _table(look: Look, kept: list[Disagreement]) -> None:
    """Draw every score: a row for each question, a narrow column for each route."""
    evaluation, by = look.evaluation, values(look)
    scores = {title(route): by.get(route, {}) for route in leaderboard.distinct(look.figures, look.metric)}
    tables.table(
        [
            {
                "Question": cut(evaluation.questions[row.question].query.text, 240),
                "Mode": evaluation.questions[row.question].mode or "",
                "Best to worst": row.spread,
                "Apart": row.apart,
                **{name: of.get(row.question, {}).get(look.metric) for name, of in scores.items()},
            }
            for row in kept
        ],
        f"evaluate_questions:{evaluation.name}:{look.metric}",
        "Questions by how much the routes differ",
        columns={name: {"width": NARROW} for name in ("Best to worst", *scores)},
        pinned="Question",
    )


def _disagreements(evaluation: Evaluation, metric: str) -> list[Disagreement]:
    rankings = {
        question: {
            route: [id for id, _ in one.hits[: comparison.TOP]]
            for route, one in by.items()
            if one.status == "ok"
        }
        for question, by in evaluation.outcomes.items()
    }
    return comparison.disagreements(evaluation.values, metric, rankings)
