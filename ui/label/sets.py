"""Label sets: the list, creating one, its guidelines, deleting and restoring it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from core.corpus.catalogue import current_fingerprint
from core.corpus.source import base_of
from core.domain.errors import RouteScopeError
from core.evaluation.dataset import Question
from core.evaluation.first_start import EXAMPLE
from core.evaluation.labels import desk as desks
from core.evaluation.labels import exchange, pool
from core.evaluation.labels.desk import Desk
from core.store.labels import LabelSet
from ui.app import account, address, opening, outcome, say, state
from ui.app.help_mark import term
from ui.app.markup import md, show, tag
from ui.app.outcome import Outcome
from ui.components import question_file
from ui.components.question_file import QuestionFile
from ui.label.desk import SET, attempt, choose_annotator

PLACE = "label_sets"  # of what was deleted last
CORPUS, FILE, PASTED, ASKED = "the corpus", "a file", "pasted text", "stored sessions"
WITH = "label_with"  # whether the labels of the file are taken over
SEED = 13  # of the sample of questions
MAX_PASTED = 200_000  # characters of pasted questions
ENOUGH = 50  # questions that are offered first: with 20 passages each, a thousand judgements
OTHERS = "label_others"
HERE = "label_corpus"  # the corpus of the sidebar when a set was chosen last
WANTED = "label_set_wanted"  # a set to be chosen when the choice is drawn next


def choose() -> str | None:
    """Draw the choice of a set and of the annotator; return None, with the next step, if there is no set."""
    outcome.draw(PLACE, "label_undelete")
    made = {one.name: one for one in desks.sets(state.store())}
    wanted = st.query_params.get("set")
    if wanted and wanted not in made:
        say.warning(f"Label set “{wanted}” does not exist or was deleted. Judgements are not saved to it.")
        address.keep("set", None)
    known = _offered(made)
    if not known:
        _empty()
        return None
    if st.session_state.get(SET) not in known:  # the newest of the chosen corpus, else of all
        here = st.session_state.get(state.CORPUS)
        newest = max(known.values(), key=lambda one: (one.corpus == here, one.created))
        st.session_state[SET] = newest.name
    with st.container(horizontal=True, vertical_alignment="bottom"):
        titles = {one: one if _own(of) else f"{one} · corpus {of.corpus}" for one, of in known.items()}
        given: Any = {"width": 340, "persist_state": "session", "format_func": titles.__getitem__}
        name: str = st.selectbox("Labelled set", list(known), key=SET, **given)
        choose_annotator()
        with st.popover("New set", key="label_new"):
            make()
    if name == EXAMPLE:
        st.caption("An example to try labelling on. Delete it under Set at any time.")
    address.keep("set", name)
    return name


def _offered(made: dict[str, LabelSet]) -> dict[str, LabelSet]:
    """Return the sets to choose from: those of the chosen corpus, and of others on request."""
    here = st.session_state.get(state.CORPUS)
    if st.session_state.get(HERE, here) != here and not address.is_new("set"):
        st.session_state.pop(SET, None)
        address.keep("set", None)
    st.session_state[HERE] = here
    address.take("set", SET, address.one_of(list(made)))
    if (fresh := st.session_state.pop(WANTED, None)) in made:
        st.session_state[SET] = fresh
    own = {name: one for name, one in made.items() if _own(one)}
    if len(own) == len(made):
        return own
    asked = st.session_state.get(SET) in made.keys() - own.keys()
    more = st.checkbox("Also of other corpora", key=OTHERS, value=asked, persist_state="session")
    return {**own, **made} if more or asked else own


def _own(one: LabelSet) -> bool:
    """Return whether a set is of the chosen corpus, in any chunking."""
    here = st.session_state.get(state.CORPUS)
    return here is None or base_of(one.corpus) == base_of(here)


def make() -> None:
    """Draw what makes a set over the corpus of the sidebar: its name, and where its questions come from."""
    if not account.notice("edit"):
        return
    corpus = st.session_state[state.CORPUS]
    name = st.text_input("Name", key="label_name", placeholder="release-1", max_chars=64, width=320)
    origin = st.radio("Questions from", [CORPUS, FILE, PASTED, ASKED], key="label_origin", horizontal=True)
    given = question_file.choose("label") if origin == FILE else None
    if given is not None and any(given.written.evidence.values()):
        st.checkbox("Take over the labels of the file, as judgements of “imported”", value=True, key=WITH)
    try:
        questions = given.written.questions if given else _questions(origin or CORPUS, corpus)
    except RouteScopeError as error:
        say.info(error)
        questions = ()
    if questions:
        questions = _chosen(questions)
    ready = bool(name.strip() and questions)
    lacking = "" if ready else "Enter a name" if questions else "Choose questions first"
    made = st.button("Create set", key="label_make", type="primary", disabled=not ready, help=lacking or None)
    if made and attempt(lambda: _create(name, corpus, questions, given)):
        st.session_state[WANTED] = " ".join(name.split())
        st.rerun()


def _create(name: str, corpus: str, questions: Sequence[Question], given: QuestionFile | None) -> None:
    """Create the set, with the labels of its file if they are wanted."""
    desks.create(state.store(), name, corpus, questions)
    if given is None or not st.session_state.get(WITH):
        return
    some = replace(given.written, questions=tuple(questions))
    if any(some.evidence.get(one.id) for one in questions):
        opening.wait_for(corpus)
        added = exchange.import_questions(
            state.store(), name, some, "imported", state.engine().corpus(corpus)
        )
        for line in added.left_out:
            st.toast(md(line))


def _delete(name: str) -> Outcome:
    desks.set_deleted(state.store(), name, True)
    address.keep("set", None)
    told = f"Label set “{name}” was deleted. Its judgements remain stored."
    return Outcome(told, partial(_restore, name))


def _restore(name: str) -> None:
    """Restore a deleted set and choose it."""
    desks.set_deleted(state.store(), name, False)
    address.keep("set", None)
    st.session_state[WANTED] = name


def about(desk: Desk) -> None:
    """Draw what the set is, its guidelines to be edited, and Delete; below it sets that were deleted."""
    one, reported = desk.set, sum(bool(question.complaints) for question in desk.questions)
    if reported:
        text = f"A regression set: people reported {reported} of its questions. Release checks them."
        st.caption(md(text), help=term("regression set"))
    by = account.by(state.store(), "label set made", one.name)
    say.caption(
        f"{len(desk.questions)} questions over corpus {one.corpus}, created on {one.created[:10]}{by}. "
        f"A passage counts as relevant from grade {one.relevant_from}."
    )
    guidelines(one, height=260)
    about = "Removes the set from the list. Its judgements remain stored, and Undo restores it."
    outcome.button("Delete this set", PLACE, partial(_delete, one.name), "label_delete", help=about)
    _deleted()


def guide(one: LabelSet) -> None:
    """Draw the guidelines, next to what is judged by them, and their form on demand."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("**Guidelines**")
        with st.popover("Edit", type="tertiary", key="label_guide_edit"):
            guidelines(one)
    text = tag("div", one.guidelines or "None yet.", css="rs-label-guide", dir="auto")
    show(tag("div", text, css="rs"))


def guidelines(one: LabelSet, *, height: int = 200) -> None:
    """Draw the editor of the guidelines; only the button saves it."""
    key = f"label_guide:{one.name}"
    if st.session_state.get(f"{key}:of") != one.guidelines:  # changed elsewhere: the editor begins with it
        st.session_state[f"{key}:of"] = st.session_state[key] = one.guidelines
    st.session_state.setdefault(key, one.guidelines)
    text = st.text_area("Guidelines for the annotators of this set", key=key, height=height, max_chars=20_000)
    saved = st.button("Save guidelines", key=f"{key}:save", disabled=text == one.guidelines)
    if saved and attempt(lambda: desks.set_guidelines(state.store(), one.name, text)):
        st.rerun()


def _empty() -> None:
    st.subheader(md(f"No labelled set of {st.session_state.get(state.CORPUS)} yet"), anchor=False)
    st.caption("It records which passages answer which question, so that Evaluate can measure every route.")
    with st.container(border=True):
        make()
    _deleted()


def _deleted() -> None:
    gone = [one.name for one in desks.sets(state.store(), deleted=True)]
    if gone:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.selectbox("Deleted sets", gone, index=None, key="label_gone", width=340)
            outcome.button(
                "Restore", PLACE, partial(_restore, name or ""), "label_restore", disabled=not name
            )


def _questions(origin: str, corpus: str) -> tuple[Question, ...]:
    if origin == FILE:
        return ()
    if origin == PASTED:
        text = st.text_area("Questions, one a line", key="label_pasted", max_chars=MAX_PASTED, height=160)
        return pool.of_lines(text)
    if origin == ASKED:
        found = pool.of_sessions(state.store(), corpus)
        if not found:
            say.caption(f"No stored session has asked corpus {corpus} a question yet.")
        return found
    settings = state.engine().settings
    return _of_corpus(corpus, str(settings.home), current_fingerprint(corpus, settings=settings))


@st.cache_data(ttl=60, max_entries=16, show_spinner="Reading the questions")
def _of_corpus(corpus: str, home: str, fingerprint: str | None) -> tuple[Question, ...]:  # noqa: ARG001
    return pool.of_corpus(corpus, state.engine().settings)


def _chosen(questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """Return the questions of a split, or a sample of them, always the same, if fewer are wanted."""
    splits = sorted({one.split for one in questions if one.split})
    with st.container(horizontal=True, vertical_alignment="bottom"):
        split = st.selectbox("Split", ["all", *splits], key="label_split", width=150) if splits else "all"
        some = tuple(one for one in questions if split in ("all", one.split))
        most, note = len(some), "Fewer are a random sample, always the same for the same number"
        given: Any = {"width": 180, "key": f"label_count:{most}", "help": note}
        count = int(st.number_input(f"How many of the {most}", 1, most, min(ENOUGH, most), **given))
    drawn = set(random.Random(SEED).sample(range(most), count))
    return tuple(one for at, one in enumerate(some) if at in drawn)
