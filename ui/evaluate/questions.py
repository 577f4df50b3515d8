"""The questions of an evaluation, those first on which routes differ most; each opens Why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.evaluation import disagreement, leaderboard
from core.evaluation.disagreement import Disagreement, Moved
from core.evaluation.experiment_store import Evaluation
from ui.app import address
from ui.app.choice import choice
from ui.app.evaluated import to_sessions
from ui.app.markup import EMPTY, cut, join, show, tag
from ui.app.routes import title
from ui.components import tables
from ui.evaluate.view import Look, sentences, values

MODE, ONE, OTHER, SIDE, QUESTION = (f"evaluate_{name}" for name in ("mode", "a", "b", "side", "question"))
ANY, NOBODY = "all", ""
SIDES = {"all": "All", "improved": "Improved", "worse": "Worse", "same": "Same"}


def draw(look: Look) -> None:
    """Draw it."""
    evaluation = look.evaluation
    found = _disagreements(look.key[0], look.key[1], look.metric, evaluation)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        mode = _mode(evaluation)
        one, other = _pair(look)
        kept = [row for row in found if mode == ANY or evaluation.questions[row.question].mode == mode]
        pair = _moved(look, one, other, {row.question for row in kept}) if one and other else None
        side = _side(pair) if pair else "all"
    show(
        sentences(
            [_describe_disagreements(kept, look), *([_describe_pair(pair, one, other, look)] if pair else [])]
        )
    )
    if pair is not None:
        kept = _of_side(kept, pair, side)
    _table(look, kept, (one, other) if pair else None)
    _detail(look, {row.question: row for row in found})


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
    """Draw the choice of two routes to compare; "" stands for none."""
    chosen = []
    for name, key, label, none in (("a", ONE, "Route", "any"), ("b", OTHER, "Compare with", "the baseline")):
        options = [NOBODY, *look.evaluation.routes]
        chosen.append(choice(name, key, label, options, width=230, format_func=_titled(none)))
    one, other = chosen
    if one and not other:
        other = look.baseline if one != look.baseline else NOBODY
    return (one, other) if one != other else (NOBODY, NOBODY)


def _titled(none: str) -> Callable[[str], str]:
    """Return a function from routes to titles, with `none` for no route."""
    return lambda route: title(route) if route else none


def _moved(look: Look, one: str, other: str, ids: set[str]) -> Moved:
    """Return the questions `ids` by which of two routes is better."""
    found = disagreement.moved(values(look), one, other, look.metric)
    return Moved(
        tuple(pair for pair in found.improved if pair[0] in ids),
        tuple(pair for pair in found.worse if pair[0] in ids),
        tuple(id for id in found.same if id in ids),
    )


def _side(pair: Moved) -> str:
    counts = {"all": pair.n, "improved": len(pair.improved), "worse": len(pair.worse), "same": len(pair.same)}
    return choice(
        "side",
        SIDE,
        "Questions",
        list(SIDES),
        usual="all",
        segmented=True,
        format_func=lambda name: f"{SIDES[name]} ({counts[name]})",
    )


def _of_side(kept: list[Disagreement], pair: Moved, side: str) -> list[Disagreement]:
    """Return the rows of one side, largest change first; for all sides in their own order."""
    sides = {
        "improved": [id for id, _ in pair.improved],
        "worse": [id for id, _ in pair.worse],
        "same": list(pair.same),
    }
    if side == "all":
        every = {id for ids in sides.values() for id in ids}
        return [row for row in kept if row.question in every]
    by = {row.question: row for row in kept}
    return [by[id] for id in sides[side]]


def _describe_disagreements(kept: list[Disagreement], look: Look) -> str:
    scored = [row for row in kept if row.spread is not None]
    if not scored:
        return f"{len(kept)} questions; on none of them were two routes scored."
    same = sum(not row.spread for row in scored)
    apart = sum((row.spread or 0) >= 0.5 for row in scored)
    return (
        f"On {apart} of {len(scored)} scored questions, {titled(look.metric)} differs by 0.5 or more between "
        f"the best and the worst route; on {same} it is the same for all routes."
    )


def _describe_pair(pair: Moved, one: str, other: str, look: Look) -> str:
    return (
        f"{title(one)} compared with {title(other)} in {titled(look.metric)}: better on "
        f"{len(pair.improved)}, worse on {len(pair.worse)} and the same on {len(pair.same)} of {pair.n} "
        "questions that both were scored on."
    )


def _table(look: Look, kept: list[Disagreement], pair: tuple[str, str] | None) -> None:
    import pandas as pd

    evaluation, by = look.evaluation, values(look)
    shown = list(pair) if pair else leaderboard.distinct(look.figures, look.metric)

    def cells(id: str) -> dict[str, Any]:
        found = {title(route): by.get(route, {}).get(id, {}).get(look.metric) for route in shown}
        if pair is None:
            return found
        first, second = found.values()
        return {"Difference": None if first is None or second is None else first - second, **found}

    rows = [
        {
            "Question": cut(evaluation.questions[row.question].query.text, 240),
            "Best to worst": row.spread,
            "Apart": row.apart,
            "Mode": evaluation.questions[row.question].mode or "",
            **cells(row.question),
        }
        for row in kept
    ]
    columns = list(rows[0]) if rows else ["Question"]
    numbers = {name: st.column_config.NumberColumn(format="%.3f") for name in columns[1:]}
    event = tables.show(
        pd.DataFrame(rows, columns=columns),
        hide_index=True,
        width="stretch",
        height=min(420, 38 + 35 * max(1, len(rows))),
        on_select="rerun",
        selection_mode="single-row",
        key=f"evaluate_questions:{evaluation.name}:{look.metric}:{pair}:{[row.question for row in kept][:3]}",
        column_config={
            **numbers,
            "Difference": st.column_config.NumberColumn(format="%+.3f"),
            "Question": st.column_config.TextColumn(width=330),
            "Mode": st.column_config.TextColumn(width=150),
            "Best to worst": st.column_config.NumberColumn(
                format="%.3f", help="The best route's value minus the worst's"
            ),
            "Apart": st.column_config.NumberColumn(
                format="%.2f",
                help="How different the routes' top 10 passages are: 0 identical, 1 no passage in common",
            ),
        },
        alt="Questions by how much the routes differ",
    )
    picked = [kept[n].question for n in event["selection"]["rows"] if n < len(kept)]
    if picked:
        st.session_state[QUESTION] = picked[0]
    st.caption(f"{len(kept)} questions. Select a row to see its details. An empty cell means not scored.")


def _detail(look: Look, found: dict[str, Disagreement]) -> None:
    evaluation = look.evaluation
    address.take("question", QUESTION, address.one_of(list(evaluation.questions)))
    id = str(st.session_state.get(QUESTION) or "")
    known = id in found
    address.keep("question", id if known else None)
    if not known:
        return
    question, row, asked = evaluation.questions[id], found[id], evaluation.outcomes.get(id, {})
    before = [
        tag("div", f"{turn.role}: {turn.text}", css="dim", dir="auto") for turn in question.query.history
    ]
    facts = [
        f"mode {question.mode}" if question.mode else "",
        f"split {question.split}" if question.split else "",
    ]
    relevant = sum(
        g >= evaluation.labelled.relevant_from for g in evaluation.labelled.qrels.get(id, {}).values()
    )
    facts.append(f"{relevant} relevant {'passage' if relevant == 1 else 'passages'} labelled")
    bad = [
        f"{title(route)}: {one.status}{f', {one.error}' if one.error else ''}"
        for route, one in asked.items()
        if one.status != "ok"
    ]
    best = ", ".join(map(title, row.best)) if row.spread else ""
    worst = ", ".join(map(title, row.worst)) if row.spread else ""
    lines = [
        tag("div", join([fact for fact in facts if fact], " · "), css="dim"),
        tag("div", f"Best: {best}. Worst: {worst}.") if best else EMPTY,
        tag("div", f"Gold answer: {question.answer}", dir="auto") if question.answer else EMPTY,
        *(tag("div", cut(one, 300), css="bad") for one in bad),
    ]
    show(
        tag(
            "div",
            *before,
            tag("div", tag("b", question.query.text), dir="auto"),
            *lines,
            css="rs rs-evaluate-question",
        )
    )
    if not evaluation.run_id(id):
        st.caption("The evaluation saved no run of this question, so it cannot be opened in Why.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Open in Why", key="evaluate_why"):
            run = to_sessions(evaluation, id)
            st.switch_page("why.py", query_params={"run": run})
        st.caption("Copies the run from the evaluation into Sessions and opens it in Why.")


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
