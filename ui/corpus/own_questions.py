"""Compare routes on one's own questions, without labels: run, see where they agree, grade what decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st
from markupsafe import Markup

from core.corpus.source import base_of
from core.domain.background_job import BackgroundJob
from core.domain.errors import RouteScopeError
from core.evaluation import triage
from core.evaluation.comparison import disagreements
from core.evaluation.dataset import Question
from core.evaluation.finding import sentence
from core.evaluation.labels import desk as desks
from core.evaluation.labels import pool, route_map
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.settled import SHOWN, beyond_shown, contest
from core.evaluation.questions import label_set as generating
from core.evaluation.questions.generate import KINDS
from core.evaluation.verdict import details, headline
from core.store.labels import GRADES, Judgement, Pair
from ui.app import account, opening, say, state
from ui.app.markup import cut, fragment, md, show
from ui.app.names import named
from ui.app.progress import ended, follow
from ui.app.routes import chosen, title
from ui.components import complaint, question_file
from ui.components.hits import excerpt

TAB = "My questions"
SET, NEW = "own_set", ""
PASTED, FILE, GENERATED, TRAFFIC = "Paste", "Upload a file", "Generate", "Traffic"
ASKED, TO_GRADE, SIDE_BY_SIDE = 20, 10, 4  # questions to generate; passages; groups
MAX_PASTED = 200_000  # characters


def offer() -> None:
    """Draw the link to this tab."""
    st.page_link("corpus.py", label="Compare routes on my questions", query_params={"tab": TAB})


def draw(corpus: str) -> None:
    """Draw the next step: the questions, their run, or the map with the passages to grade."""
    store = state.store()
    own = [one.name for one in desks.sets(store) if base_of(one.corpus) == base_of(corpus)]
    options = [*sorted(own, key=lambda name: name != _usual(corpus)), NEW]
    if st.session_state.get(SET) not in options:
        st.session_state[SET] = options[0]
    if own:
        st.selectbox("Questions", options, key=SET, format_func=lambda one: one or "New questions", width=340)
    name = st.session_state[SET]
    if name == NEW:
        _questions(corpus, own)
        return
    job: BackgroundJob | None = generating.latest(state.engine(), name)
    if job is None or job.done:
        job = pool.under_way(state.engine(), name)
    runs = follow(job, "{0.finished} of {0.total} questions".format, key="own_stop")
    if job is not None and job.done and job.error:
        say.error(job.error)
    desk = desks.load(store, name)
    found = route_map.rankings(desk)
    left = len(desk.questions) - len(found)
    if left and not runs:
        routes = len(pool.defaults(state.engine(), corpus))
        label, given = f"Run {routes} routes on {len(desk.questions)} questions", account.needs("edit")
        st.button(label, key="own_run", on_click=_run, args=(name,), type="primary", **given)
    if found:
        _map(desk, found)
        _grade(desk)
        _decision(corpus, desk, found)


def _usual(corpus: str) -> str:
    return f"questions {corpus}"[:64]


def _questions(corpus: str, taken: Sequence[str]) -> None:
    """Draw the ways to give questions; with the first ones the routes are run at once."""
    kind = st.segmented_control(
        "Questions", [PASTED, FILE, GENERATED, TRAFFIC], key="own_kind", default=PASTED, required=True
    )
    if kind == TRAFFIC:
        _traffic(corpus)
        return
    name, number = _usual(corpus), 2
    while name in taken:
        name, number = f"{_usual(corpus)[:58]} {number}", number + 1
    if kind == GENERATED:
        _generate(corpus, name)
        return
    if kind == FILE:
        given = question_file.choose("own")
        asked = given.written.questions if given is not None else ()
    else:
        asked = pool.of_lines(
            st.text_area("One question a line", key="own_pasted", max_chars=MAX_PASTED, height=220)
        )
    label = f"Run the routes on {len(asked)} questions" if asked else "Run the routes"
    given_, args = account.needs("edit", disabled=not asked), (corpus, name, asked)
    st.button(label, key="own_begin", on_click=_begin, args=args, type="primary", **given_)


def _generate(corpus: str, name: str) -> None:
    why = state.engine().llm().status()
    if why:
        say.info(f"The language model writes questions: {why} Until then, paste some.")
    count = int(st.number_input("How many", 1, 200, ASKED, key="own_count", width=140))
    given = account.needs("edit", disabled=bool(why))
    args = (corpus, name, count)
    st.button("Generate", key="own_generate", on_click=_write, args=args, type="primary", **given)


def _traffic(corpus: str) -> None:
    """Draw the replay of imported traces: its routes and budget, its progress, and what differed."""
    engine, name = state.engine(), f"traffic {corpus}"[:64]
    count = len(state.store().ids(corpus=corpus, source="trace"))
    if not count:
        say.info(
            "No imported traces: import a file of them (`import`), or take them live (`import --listen`)."
        )
        return
    job = triage.under_way(engine, name)
    if follow(job, "{0.stage}: {0.finished} of {0.total}".format, key="own_stop"):
        return
    if ended(job, "The replay", "Stopped: what was replayed so far is kept.") and job is not None:
        found = job.document
        differ, same = len(found["to_label"]), found["same"]
        say.caption(
            f"{differ} questions differ, {same} do not. Choose “{name}” above to grade those that do."
        )
        say.caption(" ".join(f"{one}." for one in found["warnings"]))
    able = pool.defaults(engine, corpus)
    usual = [name for name in chosen() if name in able][:2]
    routes = st.multiselect("Candidate routes", able, usual, format_func=title, key="own_candidates")
    most = int(st.number_input("New questions at most", 1, 10_000, 200, key="own_most", width=200))
    given = account.needs("edit", disabled=not routes)
    args = (corpus, name, routes, most)
    st.button(
        f"Replay {count} traces", key="own_replay", on_click=_replay, args=args, type="primary", **given
    )


def _replay(corpus: str, name: str, routes: Sequence[str], most: int) -> None:
    with say.errors(st.toast):
        triage.begin(state.engine(), corpus, routes, name, triage.Budget(questions=most))


def _write(corpus: str, name: str, count: int) -> None:
    with say.errors(st.toast):
        generating.begin(state.engine(), name, corpus, count, KINDS)


def _begin(corpus: str, name: str, asked: Sequence[Question]) -> None:
    with say.errors(st.toast):
        desks.create(state.store(), name, corpus, asked)
        st.session_state[SET] = name
        _run(name)


def _run(name: str) -> None:
    with say.errors(st.toast):
        pool.begin(state.engine(), name)


def _map(desk: Desk, found: route_map.Rankings) -> None:
    """Draw the groups of routes, the questions that divide them, and one question side by side."""
    made = route_map.groups(found)
    count = sum(len(group.routes) for group in made)
    st.markdown(f"##### {count} routes in {len(made)} groups that show nearly the same passages")
    rows = [
        (", ".join(map(title, one.routes)), f"{one.overlap:.3f}" if len(one.routes) > 1 else "–")
        for one in made
    ]
    show(fragment("corpus.route_map", rows))
    apart = disagreements({}, "", found)
    told = {one.question: one.apart or 0.0 for one in apart if one.question in desk.asked}
    chosen = st.selectbox(
        "Questions, the most divided first",
        list(told),
        index=None,
        key=f"own_look:{desk.set.name}",
        format_func=lambda id: f"{told[id]:.3f}  {cut(desk.asked[id].query.text, 110)}",
        placeholder="Choose one to see the passages side by side",
    )
    if chosen is not None:
        shown = [group for group in made if group.routes[0] in found[chosen]][:SIDE_BY_SIDE]
        for column, group in zip(st.columns(max(1, len(shown))), shown, strict=False):
            first = [_told(desk, (chosen, id), 120) for id in found[chosen][group.routes[0]][:5]]
            with column:
                show(fragment("corpus.first", title(group.routes[0]), first))


def _grade(desk: Desk) -> None:
    """Draw the next passages whose grades separate the routes most."""
    judged = {one.pair for one in desk.current if one.kind == "grade"}
    st.markdown(f"##### Grade the passages that decide most ({len(judged)} graded)")
    say.caption(" · ".join(f"{grade}: {meaning}" for grade, meaning in GRADES.items()))
    if judged:
        st.button("Undo the last grade", key="own_undo", on_click=_undo, args=(desk.set.name,))
    locked = bool(account.needs("label")["disabled"])
    worth = {one.id for one in pool.worth_labelling(desk.questions)}
    open_ = [one for one in contest(desk).order() if one not in judged and one[0] in worth]
    for pair in open_[:TO_GRADE]:
        with st.container(border=True):
            question = cut(desk.asked[pair[0]].query.text, 200)
            show(fragment("corpus.to_grade", question, *_told(desk, pair, 500)))
            with st.container(horizontal=True):
                for grade, meaning in GRADES.items():
                    key, args = f"own_{grade}:{pair[0]}:{pair[1]}", (desk.set.name, pair, grade)
                    st.button(f"{grade}", key=key, help=meaning, on_click=_judge, args=args, disabled=locked)


def _judge(name: str, pair: Pair, grade: int) -> None:
    told = Judgement(*pair, complaint.who(), "person", "grade", grade)
    with say.errors(st.toast):
        desks.judge(state.store(), name, told)


def _undo(name: str) -> None:
    with say.errors(st.toast):
        desks.undo(state.store(), name, complaint.who())


def _decision(corpus: str, desk: Desk, found: route_map.Rankings) -> None:
    """Draw what the grades so far can show, which is nothing as a rule."""
    st.markdown("##### Decision")
    opening.wait_for(corpus)
    engine, name = state.engine(), desk.set.name
    if any(SHOWN in by for by in found.values()):
        for one in beyond_shown(desk):
            told = replace(one, subject=title(one.subject), baseline="what was shown")
            st.markdown(md(sentence(told)))
        return
    if desk.drawn:
        label = "Evaluate routes on this set, which counts each drawn question by its chance"
        st.page_link("evaluate.py", label=label, query_params={"labels": name})
        return
    try:
        verdict = route_map.decision(state.store(), name, engine.corpus(corpus), found, title)
    except RouteScopeError:
        st.caption("Grade passages first: without a grade, nothing shows which route is better.")
        return
    st.markdown(f"**{md(headline(verdict, title, 'nDCG@10'))}**")
    say.caption(" ".join(details(verdict, title)))
    st.page_link("label.py", label="Grade more on Label", query_params={"set": name})


def _told(desk: Desk, pair: Pair, limit: int) -> tuple[str, Markup]:
    """Return a passage's name and the beginning of its text."""
    passage = desk.pool[pair[0]][pair[1]].passage
    return cut(named(desk.set.corpus, passage), 90), excerpt(passage, None, limit)
