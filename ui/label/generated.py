"""Questions that a model wrote for this set: made here, then accepted, changed or dropped by people."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.domain.format import milliseconds
from core.evaluation.dataset import Question, State
from core.evaluation.labels.desk import Desk
from core.evaluation.questions import label_set
from core.evaluation.questions.generate import KINDS, Kind
from ui.app import account, address, outcome, say, state
from ui.app.markup import fragment, show
from ui.app.names import named
from ui.app.outcome import Outcome
from ui.app.progress import follow
from ui.components.complaint import who as annotator
from ui.label.desk import attempt
from ui.label.keys import Keypad

AT = "generated_at"  # the id of the question that is shown
KIND = "generated_kind"  # "", or the kind or state that is listed
PLACE = "generated"  # of the outcome of the last decision
TEXT = "generated_text"  # of a question, as it is being changed
OPEN, EASY, EVERY = "not reviewed", "easy", "all"


def draw(desk: Desk) -> None:
    """Draw the review of the set's generated questions, and what makes more of them."""
    st.caption(
        "The language model writes questions about passages of the corpus and checks them. Accept what "
        "somebody could ask; drop the rest."
    )
    found = label_set.questions(state.store(), desk.set.name)
    if account.notice("edit"):
        _make(desk, opened=not found)
    outcome.draw(PLACE, "generated_undo", "u")
    if found:
        _review(desk, found)


def _make(desk: Desk, *, opened: bool) -> None:
    engine, name = state.engine(), desk.set.name
    last = label_set.latest(engine, name)
    if follow(last, "{0.finished} of {0.total} questions".format, key="generated_stop"):
        return
    if last is not None:
        _ended(last)
    with (
        st.expander("Write questions", key="generated_make", expanded=opened),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        count = int(st.number_input("Questions in all", 1, 1000, 20, key="generated_count", width=160))
        kinds: list[Kind] = st.multiselect(
            "Kinds",
            list(KINDS),
            default=list(KINDS),
            key="generated_kinds",
            width=520,
            format_func=lambda kind: kind.replace("_", " "),
            help="About four short model calls per question (10–30 s each on a laptop CPU)",
        )
        begun = st.button("Write", key="generated_write", type="primary", disabled=not kinds)
        if begun and attempt(lambda: label_set.begin(engine, name, desk.set.corpus, count, kinds)):
            st.rerun()


def _ended(last: label_set.Generating) -> None:
    if last.error is not None:
        say.error(last.error)
    elif last.found is not None:
        found = last.found
        took = f", {milliseconds(1000 * found.per_question)} each" if found.per_question else ""
        say.caption(f"{len(found.lines)} questions are written{took}. {found.ended}".strip())
        if found.dropped:
            reasons = "; ".join(f"{count} {why}" for why, count in found.dropped.most_common())
            say.caption(f"Not kept: {reasons}.")


def _review(desk: Desk, found: tuple[Question, ...]) -> None:
    listed = _listed(found)
    if not listed:
        st.success("Nothing is left here to review.")
        return
    ids = [question.id for question in listed]
    address.take("generated", AT, address.one_of(ids))
    if st.session_state.get(AT) not in ids:
        st.session_state[AT] = ids[0]
    at = _place(listed)
    address.keep("generated", ids[at])
    question = listed[at]
    told = f"{at + 1} of {len(ids)} · {(question.mode or '').replace('_', ' ')} · {_word(question)}"
    checks = _checks(question.generated.checks if question.generated else {})
    pool, corpus, passages = desk.pool.get(question.id, {}), desk.set.corpus, []
    for id in question.generated.passages if question.generated else ():
        one = pool[id].passage if id in pool else state.engine().corpus(corpus).by_ids([id]).get(id)
        passages += [(named(corpus, one), one)] if one is not None else []
    show(fragment("label.generated", told, question, checks))
    st.text_input("Question", question.query.text, key=f"{TEXT}:{question.id}", max_chars=2000)
    pad = Keypad()
    with st.container(horizontal=True):
        pad.button("Accept", "generated_accept", "a", _decide, desk, listed, "accepted", lit=True)
        pad.button("Drop", "generated_drop", "d", _decide, desk, listed, "dropped", lit=False)
        pad.button("Skip", "generated_skip", "s", _go, listed, 1, lit=False)
        pad.button("Back", "generated_back", "b", _go, listed, -1, lit=False)
    pad.listen()
    show(fragment("label.sources", passages))


def _listed(found: tuple[Question, ...]) -> list[Question]:
    """Draw the choice of a state or kind of questions, and return those of it."""
    by = {
        OPEN: [one for one in found if _state(one) == "proposed"],
        EASY: [one for one in found if _easy(one)],
        EVERY: list(found),
    }
    kinds = {one.mode or "": [each for each in found if each.mode == one.mode] for one in found}
    chosen = st.segmented_control(
        "Show",
        [*by, *kinds],
        default=OPEN,
        key=KIND,
        required=True,
        format_func=lambda one: f"{one} ({len(by[one])})" if one in by else one.replace("_", " "),
    )
    return {**kinds, **by}[chosen or OPEN]


def _decide(desk: Desk, listed: list[Question], to: State) -> None:
    before, name = listed[_place(listed)], desk.set.name
    text = str(st.session_state.get(f"{TEXT}:{before.id}") or "") if to == "accepted" else ""

    def work() -> Outcome:
        now = label_set.decide(state.store(), name, before, to, annotator(), text)
        _go(listed, 1)
        return Outcome(f"{to.capitalize()}: {now.query.text}", partial(undo, now))

    def undo(now: Question) -> None:
        label_set.decide(state.store(), name, now, _state(before), annotator(), before.query.text)
        st.session_state[AT] = before.id

    outcome.act(PLACE, work)


def _go(listed: list[Question], by: int) -> None:
    st.session_state[AT] = listed[(_place(listed) + by) % len(listed)].id


def _place(listed: list[Question]) -> int:
    """Return the place of the question shown; earlier presses of the same run may have moved it."""
    return [question.id for question in listed].index(st.session_state[AT])


def _state(question: Question) -> State:
    return question.generated.state if question.generated else "proposed"


def _easy(question: Question) -> bool:
    return question.generated is not None and bool(question.generated.checks.get("easy"))


def _word(question: Question) -> str:
    made = question.generated
    if made is None or made.state == "proposed":
        return "not reviewed" + (", easy: every cheap route has it at rank 1" if _easy(question) else "")
    return f"{made.state} by {made.reviewer}" + (", changed" if made.first else "")


def _checks(checks: object) -> str:
    """Describe the results of the checks in one line."""
    said = []
    for name, value in checks.items() if isinstance(checks, dict) else ():
        if isinstance(value, dict):
            parts = (f"{key} {one if one is not None else 'not found'}" for key, one in value.items())
            value = ", ".join(parts)
        if value not in ([], "", None) and name != "easy":
            said.append(f"{name}: {value}")
    return " · ".join(said)
