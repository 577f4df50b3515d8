"""Nuggets: the facts of a good answer to each question, proposed by the model, checked and written by people,
and assigned by them to answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.relevance import SUPPORT, NuggetSupport
from core.evaluation.answers import answer_digest
from core.evaluation.dataset import Nugget, Question
from core.evaluation.finding import count
from core.evaluation.judge.correction import LEAST
from core.evaluation.labels import nuggets, pool, suggest
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.nuggets import NuggetPair
from ui.app import account, evaluated, outcome, say, state
from ui.app.help_mark import term
from ui.app.markup import cut, fragment, show
from ui.app.outcome import Outcome
from ui.components.complaint import who as annotator
from ui.label import model
from ui.label.desk import attempt, forget

PLACE, ASKED, EVALUATION = "label_nuggets", "label_nuggets_question", "label_nuggets_evaluation"
SAID = dict(zip(SUPPORT, ("Lacks it", "A part", "Contains it"), strict=True))


def draw(desk: Desk) -> None:
    """Draw the nuggets of a question, what proposes them, and an answer to assign them to."""
    if model.suggesting(desk, "nuggets", "questions"):
        return
    if not any(question.nuggets for question in desk.questions):
        say.caption("No nuggets yet: the facts that a good answer states. Propose some, or write them below.")
    if without := suggest.missing(desk, "", "nuggets"):
        label = f"Propose nuggets for {count(len(without), 'questions')}"
        begun = st.button(label, key="label_nuggets_propose", **account.needs("edit"))
        if begun and attempt(lambda: suggest.begin(state.engine(), desk.set.name, without, "nuggets")):
            st.rerun()
    outcome.draw(PLACE)
    offered = pool.worth_labelling(desk.questions) or desk.questions
    named = {
        one.id: f"{cut(one.query.text, 90)} ({len(one.checked_nuggets)} of {len(one.nuggets)} checked)"
        for one in offered
    }
    waiting = next((n for n, one in enumerate(offered) if one.nuggets != one.checked_nuggets), 0)
    asked = desk.asked[
        st.selectbox("Question", list(named), waiting, key=ASKED, format_func=named.__getitem__)
    ]
    show(fragment("label.question", asked))
    _edit(desk.set.name, asked)
    st.markdown("**Which answers contain them?**", help=term("nugget"))
    _assign(desk)


def _edit(name: str, asked: Question) -> None:
    """Draw the form of a question's nuggets, with a line for another one."""
    key = f"label_nuggets:{asked.id}:{hash(asked.nuggets)}"  # fresh fields once something changed
    with st.form(key, border=False):
        lines = enumerate([*asked.nuggets, Nugget("", True, "", True)], 1)
        given = [_row(f"{key}:{n}", one) for n, one in lines]
        note = "Only nuggets that count are measured. Empty a line to delete it."
        if st.form_submit_button("Save", key="label_nuggets_save", **account.needs("label", help=note)):
            outcome.act(PLACE, partial(_save, name, asked, given))
            st.rerun()


def _row(key: str, one: Nugget) -> Nugget:
    """Draw the fields of a nugget. One with another text is another nugget, without assignments."""
    hint = "A fact of a good answer, in one short sentence"
    given: Any = {"key": key, "placeholder": hint, "label_visibility": "collapsed"}
    with st.container(horizontal=True, vertical_alignment="center"):
        text = st.text_input("Nugget", one.text, max_chars=nuggets.LONGEST_NUGGET, **given)
        vital = st.checkbox("vital", one.vital, key=f"{key}:vital", width="content")
        counts = st.checkbox("counts", one.checked, key=f"{key}:counts", width="content")
    return replace(one if text == one.text else Nugget(text, vital, ""), vital=vital, checked=counts)


def _save(name: str, seen: Question, given: Sequence[Nugget], *, undone: bool = False) -> Outcome | None:
    now = nuggets.save(state.store(), name, seen, given, annotator())
    forget()
    said = f"Saved {count(len(now.checked_nuggets), 'nuggets')} that count."
    return None if undone else Outcome(said, partial(_save, name, now, seen.nuggets, undone=True))


def _assign(desk: Desk) -> None:
    """Draw the next answer and nugget of a random order, and what a person may say of it."""
    names = []
    for name in evaluated.of_corpus(desk.set.corpus):
        with suppress(RouteScopeError):  # a damaged one, which Evaluate reports
            spec = evaluated.reopened(name).spec
            names += [name] if spec.get("labels") == desk.set.name and spec.get("answers") else []
    if not names or not any(one.checked_nuggets for one in desk.questions):
        say.caption("It takes nuggets that count, and an evaluation of this set with answers.")
        return
    name = st.selectbox("Evaluation", names, key=EVALUATION, width=300)
    every = nuggets.pairs(desk.asked, evaluated.reopened(name).outcomes)
    left = [one for one in every if annotator() not in one[1].support.get(answer_digest(one[2]), {})]
    say.caption(
        f"You assigned {len(every) - len(left)} of {len(every)}, in random order: stop anywhere. From "
        f"{LEAST} on, an evaluation with nuggets can compare the model with you."
    )
    if not left:
        return
    show(fragment("label.assign", desk.asked[left[0][0]], *left[0][1:]))
    with st.container(horizontal=True):
        for level, label in SAID.items():
            say_it = partial(_say, desk.set.name, left[0], level)
            outcome.button(label, PLACE, say_it, f"label_{level}", **account.needs("label"))


def _say(name: str, pair: NuggetPair, level: NuggetSupport | None) -> Outcome | None:
    nuggets.assign(state.store(), name, pair, annotator(), level)
    forget()
    undo = partial(_say, name, pair, None)
    return Outcome(f"{SAID[level]}: {cut(pair[1].text, 80)}", undo) if level else None
