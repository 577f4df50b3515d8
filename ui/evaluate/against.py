"""The open evaluation against another one: which questions broke and which were fixed."""

from __future__ import annotations

import streamlit as st

from core.analysis.metrics import QUALITY, titled
from core.evaluation import experiment_store
from core.evaluation.diff import evaluations
from core.evaluation.diff.evaluations import evaluations_diff
from ui.app import evaluated, say
from ui.app.choice import choice
from ui.app.help_mark import term
from ui.app.markup import md, show
from ui.app.routes import title
from ui.components import question_diff
from ui.evaluate.view import Look, sentences

OTHER, THEN, NOW = "evaluate_other", "evaluate_then", "evaluate_now"


def draw(look: Look) -> None:
    """Draw it."""
    evaluation = look.evaluation
    names = evaluated.others_of_corpus(evaluation)
    if not names:
        st.caption(
            "No other evaluation of this corpus is saved. After a change, evaluate the same questions again: "
            "this tab then shows which questions broke and which were fixed."
        )
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        name = choice("other", OTHER, "Earlier evaluation", names, always=True, width=300)
        other = evaluated.reopened(name)
        if not other.routes:
            st.info("That evaluation has no finished question yet.")
            return
        routes = list(evaluation.routes), list(other.routes)
        now = choice("now", NOW, "Route now", routes[0], usual=look.baseline, width=230, format_func=title)
        usual = now if now in other.routes else other.baseline
        then = choice("then", THEN, "Route then", routes[1], usual=usual, width=230, format_func=title)
    metric = look.metric if look.metric in QUALITY else QUALITY[0]
    found = evaluated.once(
        evaluation,
        *("against", str(other.folder), experiment_store.stamp(other.folder), then, now, metric),
        compute=lambda: evaluations_diff(other, evaluation, [(then, now)], metric),
    )
    (one,) = found.routes
    show(sentences([*evaluations.summary(found, one, title), *found.notes]))
    st.caption(md(evaluations.rule(found.depth)), help=term("mcnemar"))
    if metric != look.metric:
        say.caption(f"{titled(look.metric)} is of answers; rankings are compared by {titled(metric)}.")
    question_diff.draw(one.questions, "evaluate_against", {f"in {other.name}": other, "now": evaluation})
