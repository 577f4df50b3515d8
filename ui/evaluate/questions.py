"""The questions of an evaluation, those first on which routes differ most; each with the routes' hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.domain.errors import RouteScopeError
from core.domain.format import number
from core.evaluation import disagreement, leaderboard
from core.evaluation.comparison import ByRoute, by_question
from core.evaluation.disagreement import Disagreement
from core.evaluation.effects import SAME
from core.evaluation.experiment_store import Evaluation
from core.evaluation.labels import label_next
from ui.app import address, state
from ui.app.choice import choice
from ui.app.evaluated import to_sessions
from ui.app.markup import EMPTY, cut, join, md, show, table_of, tag
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
    found = _disagreements(look.key[0], look.key[1], look.metric, look.evaluation)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        mode = _mode(look.evaluation)
        one, other = _pair(look)
    kept = [row for row in found if mode == ANY or look.evaluation.questions[row.question].mode == mode]
    sides = _sides(look, kept, one, other)
    side = choice(
        "side",
        SIDE,
        "Questions",
        list(sides),
        segmented=True,
        format_func=lambda name: f"{name.capitalize()} ({len(sides[name])})",
        label_visibility="collapsed",
    )
    show(sentences([_described(sides, kept, one, other, look)]))
    by = {row.question: row for row in found}
    _list(look, [by[id] for id in sides[side]], by, one)
    with st.expander("All scores", key="evaluate_scores", on_change="rerun") as panel:
        if panel.open:
            _table(look, [by[id] for id in sides[side]])


def _mode(evaluation: Evaluation) -> str:
    modes = sorted({question.mode for question in evaluation.questions.values() if question.mode})
    options = [ANY, *(mode for mode in modes if mode != ANY)]
    return choice(
        "mode",
        MODE,
        "Mode",
        options,
        width=220,
        format_func=lambda name: "all modes" if name == ANY else name,
    )


def _pair(look: Look) -> tuple[str, str]:
    """Draw the choice of the route that the filters are about, and of another; "" stands for none.

    By default it is the leading route.
    """
    best = decided(look).verdict.best_so_far
    chosen = []
    for name, key, label, usual in (
        ("a", ONE, "Route", best.route if best else NOBODY),
        ("b", OTHER, "Compare with", NOBODY),
    ):
        options = [NOBODY, *look.evaluation.routes]
        chosen.append(
            choice(name, key, label, options, usual=usual, width=230, format_func=_titled("all routes"))
        )
    one, other = chosen
    return one, other if one != other else NOBODY


def _titled(none: str) -> Callable[[str], str]:
    """Return a function from routes to titles, with `none` for no route."""
    return lambda route: title(route) if route else none


def _sides(look: Look, kept: list[Disagreement], one: str, other: str) -> dict[str, list[str]]:
    """Return the ids of the questions of each filter.

    Failed: the route scored 0 or did not finish. Different: it scored otherwise than the other, or, without
    one, the best and the worst route are far apart. Uncertain: passages without a label could change which
    of the two leads, or which of the leader and its closest rival.
    """
    evaluation, by = look.evaluation, values(look)
    ids = [row.question for row in kept]
    failed = [id for id in ids if _failed(evaluation, by, one, id, look.metric)]
    moved = by_question(by, one, other, look.metric) if one and other else {}
    different = (
        [id for id in sorted(moved, key=lambda id: -abs(moved[id])) if abs(moved[id]) > SAME and id in ids]
        if moved
        else [row.question for row in kept if (row.spread or 0) >= APART]
    )
    verdict = decided(look).verdict
    rivals = (one, other) if one and other else verdict.open_pair
    open_ = [each.id for each in label_next.of_evaluation(evaluation, *rivals)] if rivals else []
    wanted = set(ids)
    sides = {
        "all": ids,
        "failed": failed,
        "different": different,
        "uncertain": [id for id in open_ if id in wanted],
    }
    if moved:
        sides["better"] = [id for id in different if moved[id] > 0]
        sides["worse"] = [id for id in different if moved[id] < 0]
    return sides


def _failed(evaluation: Evaluation, by: ByRoute, route: str, id: str, metric: str) -> bool:
    """Return whether the route, or every route if it is "", scored 0 on the question or did not finish."""
    routes = [route] if route else list(evaluation.routes)
    asked = evaluation.outcomes.get(id, {})
    return all(
        (name in asked and asked[name].status != "ok") or by.get(name, {}).get(id, {}).get(metric) == 0
        for name in routes
    )


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
        with st.expander(label, key=name, on_change=partial(_turned, name, id)) as panel:
            if panel.open:
                _detail(look, row)
    address.keep("question", asked if asked in by else None)
    if len(listed) < len(kept):
        st.button(f"Show more ({len(kept) - len(listed)})", key="evaluate_more", on_click=_more, args=(key,))


def _turned(name: str, id: str) -> None:
    st.session_state[QUESTION] = id if st.session_state[name] else None


def _more(key: str) -> None:
    st.session_state[key] = int(st.session_state.get(key, 1)) + 1


def _detail(look: Look, row: Disagreement) -> None:
    """Draw a question's facts, and each route's score with its first hits."""
    evaluation, id = look.evaluation, row.question
    question = evaluation.questions[id]
    grades = evaluation.labelled.qrels.get(id, {})
    relevant = sum(grade >= evaluation.labelled.relevant_from for grade in grades.values())
    facts = [
        f"mode {question.mode}" if question.mode else "",
        f"split {question.split}" if question.split else "",
        f"{relevant} relevant {'passage' if relevant == 1 else 'passages'} labelled",
    ]
    before = [f"{turn.role}: {turn.text}" for turn in question.query.history]
    show(
        tag(
            "div",
            *(tag("div", one, css="dim", dir="auto") for one in before),
            tag("div", question.query.text, dir="auto"),
            tag("div", join([fact for fact in facts if fact], " · "), css="dim"),
            tag("div", f"Gold answer: {question.answer}", dir="auto") if question.answer else EMPTY,
            _hits(look, id, grades),
            css="rs rs-evaluate-question",
        )
    )
    if not evaluation.run_id(id):
        st.caption("The evaluation saved no run of this question, so it cannot be opened in Why.")
    elif st.button("Open in Why", key=f"evaluate_why:{id}"):
        st.switch_page("why.py", query_params={"run": to_sessions(evaluation, id)})


def _hits(look: Look, id: str, grades: Mapping[str, int]) -> Any:
    """Return a row for each route, best first: its score, and its first hits with their grades."""
    evaluation, by = look.evaluation, values(look)
    asked = evaluation.outcomes.get(id, {})
    titles = _titles(evaluation, id)
    rows = []
    for route in leaderboard.distinct(look.figures, look.metric):
        if (one := asked.get(route)) is None:
            continue
        value = by.get(route, {}).get(id, {}).get(look.metric)
        cells = [
            tag("td", f"{at}. ", cut(titles.get(passage, passage), 60), _grade(grades.get(passage)))
            for at, (passage, _) in enumerate(one.hits[:SHOWN], 1)
        ]
        if one.status != "ok":
            cells = [tag("td", cut(f"{one.status}: {one.error}", 200), css="bad", colspan=SHOWN)]
        rows.append((value, tag("tr", tag("td", title(route)), tag("td", number(value), css="num"), *cells)))
    rows.sort(key=lambda row: -(row[0] if row[0] is not None else -1))
    heads = ("Route", titled(look.metric), "First hits", "", "")
    head = tag("tr", *(tag("th", text, css="num" if at == 1 else "") for at, text in enumerate(heads)))
    return tag("div", table_of(head, (row for _, row in rows)), css="rs-wide", dir="auto")


def _grade(grade: int | None) -> Any:
    return EMPTY if grade is None else tag("span", f" ◆ {grade}", css="up" if grade else "dim")


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
    import pandas as pd

    evaluation, by = look.evaluation, values(look)
    rows = [
        {
            "Question": cut(evaluation.questions[row.question].query.text, 240),
            "Mode": evaluation.questions[row.question].mode or "",
            "Best to worst": row.spread,
            "Apart": row.apart,
            **{
                title(route): by.get(route, {}).get(row.question, {}).get(look.metric)
                for route in leaderboard.distinct(look.figures, look.metric)
            },
        }
        for row in kept
    ]
    columns = list(rows[0]) if rows else ["Question"]
    tables.show(
        pd.DataFrame(rows, columns=columns),
        hide_index=True,
        width="stretch",
        height=min(420, 38 + 35 * max(1, len(rows))),
        key=f"evaluate_questions:{evaluation.name}:{look.metric}",
        column_config={
            **{name: st.column_config.NumberColumn(format="%.3f", width=NARROW) for name in columns[2:]},
            "Question": st.column_config.TextColumn(width=260, pinned=True),
            "Mode": st.column_config.TextColumn(width=110),
            "Apart": st.column_config.NumberColumn(
                format="%.3f",
                width=NARROW,
                help="How different the routes' top 10 passages are: 0 identical, 1 no passage in common",
            ),
        },
        alt="Questions by how much the routes differ",
    )


@st.cache_resource(max_entries=16, show_spinner="Comparing the routes on each question")
def _disagreements(
    folder: str,  # noqa: ARG001 - part of the cache key
    stamp: tuple[float, ...],  # noqa: ARG001 - part of the cache key
    metric: str,
    _evaluation: Evaluation,
) -> list[Disagreement]:
    rankings = {
        question: {
            route: [id for id, _ in one.hits[: disagreement.TOP]]
            for route, one in by.items()
            if one.status == "ok"
        }
        for question, by in _evaluation.outcomes.items()
    }
    return disagreement.disagreements(_evaluation.values, metric, rankings)
