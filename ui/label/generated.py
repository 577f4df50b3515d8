"""Questions that a model wrote for this set: made here, then accepted, changed or dropped by people."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds
from core.evaluation.dataset import Question, State
from core.evaluation.labels.desk import Desk
from core.evaluation.questions import label_set, question_file
from core.evaluation.questions.write import KINDS, Kind
from ui.app import account, address, state
from ui.app.markup import md, show, tag
from ui.app.names import named
from ui.app.progress import progress
from ui.label.desk import annotator, store

AT = "generated_at"  # the id of the question that is shown
KIND = "generated_kind"  # "", or the kind or state that is listed
OUTCOME = "generated_said"
DONE = "generated_done"  # (set, question as it is now, its state and text before), for Undo
TEXT = "generated_text"  # of a question, as it is being changed
OPEN, EASY, EVERY = "not reviewed", "easy", "all"
LOOK_S = 1.0


def draw(desk: Desk) -> None:
    """Draw the review of the set's generated questions, and what makes more of them."""
    st.caption(
        "The language model writes questions about passages of the corpus and checks them. Figures made of"
        " them say so. Accept what somebody could ask; drop the rest."
    )
    if account.notice("edit"):
        _make(desk)
    found = label_set.questions(store(), desk.set.name)
    if not found:
        st.info("This set has no generated questions yet. Write some above, or add a file of them.")
        return
    _review(desk, found)


def _make(desk: Desk) -> None:
    running = label_set.latest(state.engine(), desk.set.name)
    if running is not None and not running.done:
        _follow(desk)
        return
    if running is not None:
        _ended(running)
    with st.expander("Write questions, or add a file", key="generated_make"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            count = int(st.number_input("Questions in all", 1, 1000, 20, key="generated_count", width=160))
            kinds: list[Kind] = st.multiselect(
                "Kinds",
                list(KINDS),
                default=list(KINDS),
                key="generated_kinds",
                width=520,
                format_func=lambda kind: kind.replace("_", " "),
            )
            if st.button("Write", key="generated_write", type="primary", disabled=not kinds):
                _begin(desk, count, kinds)
        st.caption("About four short model calls per question (10–30 s each on a laptop CPU).")
        given = st.file_uploader("A file of `questions generate`", type=["jsonl"], key="generated_file")
        if given is not None and st.button("Add its questions", key="generated_add"):
            _add(desk, given.getvalue())


def _begin(desk: Desk, count: int, kinds: list[Kind]) -> None:
    try:
        label_set.begin(state.engine(), desk.set.name, desk.set.corpus, count, kinds)
    except RouteScopeError as error:
        st.error(md(str(error)))
        return
    st.rerun()


def _add(desk: Desk, content: bytes) -> None:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    try:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "questions.jsonl"
            path.write_bytes(content)
            lines = question_file.read(path)
        new = label_set.add(store(), desk.set.name, state.engine().corpus(desk.set.corpus), lines)
    except (RouteScopeError, UnicodeDecodeError) as error:
        st.error(md(str(error)))
        return
    st.session_state[OUTCOME] = f"{new} of {len(lines)} questions were new and are in the set."
    st.rerun()


@st.fragment(run_every=LOOK_S)
def _follow(desk: Desk) -> None:
    running = label_set.latest(state.engine(), desk.set.name)
    if running is None or running.done:
        st.rerun()
        return
    progress(running, f"{running.finished} of {running.total} questions", key="generated_stop")


def _ended(last: label_set.Generating) -> None:
    if last.error is not None:
        st.error(md(last.error))
    elif last.found is not None:
        found = last.found
        took = f", {milliseconds(1000 * found.per_question)} each" if found.per_question else ""
        st.caption(md(f"{len(found.lines)} questions are written{took}. {found.ended}".strip()))
        if found.dropped:
            reasons = "; ".join(f"{count} {why}" for why, count in found.dropped.most_common())
            st.caption(md(f"Not kept: {reasons}."))


def _review(desk: Desk, found: tuple[Question, ...]) -> None:
    listed = _listed(found)
    if note := st.session_state.pop(OUTCOME, None):
        st.caption(md(note))
    if not listed:
        st.success("Nothing is left here to review.")
        _undo_button()
        return
    ids = [question.id for question in listed]
    address.take("generated", AT, address.one_of(ids))
    if st.session_state.get(AT) not in ids:
        st.session_state[AT] = ids[0]
    at = ids.index(st.session_state[AT])
    address.keep("generated", ids[at])
    _question(listed[at], at, len(ids))
    _keys(desk, listed, at)
    _passages(desk, listed[at])


def _listed(found: tuple[Question, ...]) -> list[Question]:
    counts = {
        OPEN: sum(_state(one) == "proposed" for one in found),
        EASY: sum(map(_easy, found)),
        EVERY: len(found),
    }
    kinds = list(dict.fromkeys(one.mode or "" for one in found))
    chosen = st.segmented_control(
        "Show",
        [*counts, *kinds],
        default=OPEN,
        key=KIND,
        required=True,
        format_func=lambda one: f"{one} ({counts[one]})" if one in counts else one.replace("_", " "),
    )
    if chosen == OPEN:
        return [one for one in found if _state(one) == "proposed"]
    if chosen == EASY:
        return [one for one in found if _easy(one)]
    return [one for one in found if chosen in (EVERY, one.mode)]


def _question(question: Question, at: int, of: int) -> None:
    made = question.generated
    assert made is not None
    told = f"{at + 1} of {of} · {(question.mode or '').replace('_', ' ')} · {_word(question)}"
    show(
        tag(
            "div",
            tag("p", told, css="dim"),
            tag("h3", question.query.text),
            tag("p", f"Answer: {question.answer}" if question.answer else "The documents do not answer it."),
            tag("p", _checks(made.checks), css="dim"),
            css="rs",
        )
    )


def _passages(desk: Desk, question: Question) -> None:
    """Draw the passages that the question was written about, and the one with its label."""
    made = question.generated
    for id in made.passages if made else ():
        pooled = desk.pool.get(question.id, {}).get(id)
        passage = pooled.passage if pooled else state.engine().corpus(desk.set.corpus).by_ids([id]).get(id)
        if passage is not None:
            show(
                tag(
                    "div",
                    tag("p", tag("strong", named(desk.set.corpus, passage)), title=passage.id),
                    tag("p", passage.text, css="rs-passage-text"),
                    css="rs rs-box",
                )
            )


def _keys(desk: Desk, listed: list[Question], at: int) -> None:
    question = listed[at]
    st.text_input("Question", question.query.text, key=f"{TEXT}:{question.id}", max_chars=2000)
    with st.container(horizontal=True):
        st.button(
            "Accept",
            key="generated_accept",
            type="primary",
            shortcut="a",
            on_click=_decide,
            args=(desk, listed, at, "accepted"),
        )
        st.button(
            "Drop", key="generated_drop", shortcut="d", on_click=_decide, args=(desk, listed, at, "dropped")
        )
        st.button("Skip", key="generated_skip", shortcut="s", on_click=_go, args=(listed, at + 1))
        st.button("Back", key="generated_back", shortcut="b", on_click=_go, args=(listed, at - 1))
        _undo_button()


def _undo_button() -> None:
    if DONE in st.session_state:
        st.button("Undo", key="generated_undo", shortcut="u", on_click=_undo)


def _decide(desk: Desk, listed: list[Question], at: int, to: State) -> None:
    before = listed[at]
    text = str(st.session_state.get(f"{TEXT}:{before.id}") or "") if to == "accepted" else ""
    try:
        now = label_set.decide(store(), desk.set.name, before, to, annotator(), text)
    except RouteScopeError as error:
        st.session_state[OUTCOME] = str(error)
        return
    st.session_state[DONE] = desk.set.name, now, before
    st.session_state[OUTCOME] = f"{to.capitalize()}: {now.query.text}"
    _go(listed, at + 1)


def _undo() -> None:
    name, now, before = st.session_state.pop(DONE)
    try:
        label_set.decide(store(), name, now, _state(before), annotator(), before.query.text)
    except RouteScopeError as error:
        st.session_state[OUTCOME] = str(error)
        return
    st.session_state[AT] = before.id


def _go(listed: list[Question], at: int) -> None:
    st.session_state[AT] = listed[at % len(listed)].id


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
    if not isinstance(checks, dict):
        return ""
    said = []
    for name, value in checks.items():
        if isinstance(value, dict):
            value = ", ".join(
                f"{key} {one if one is not None else 'not found'}" for key, one in value.items()
            )
        if value not in ([], "", None) and name != "easy":
            said.append(f"{name}: {value}")
    return " · ".join(said)
