"""The pool: passages to be judged, found by routes now, in stored sessions or in a saved evaluation."""

from __future__ import annotations

import streamlit as st

from core.domain.format import milliseconds
from core.engine import availability
from core.evaluation import experiment_store
from core.evaluation.finding import count
from core.evaluation.labels import pool
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.pool import Pooling, shares
from core.routes.registry import routes
from ui.app import account, corpora, outcome, say, state
from ui.app.evaluated import reopened
from ui.app.help_mark import term
from ui.app.markup import cut, md
from ui.app.outcome import Outcome
from ui.app.progress import ended, follow
from ui.app.routes import by_family, title
from ui.components import tables
from ui.label.desk import attempt

SESSIONS = "stored sessions that asked these questions"
PLACE = "label_pool"  # of the outcome of the last import


def draw(desk: Desk) -> None:
    """Draw the contents of the pool, and the controls to fill it."""
    outcome.draw(PLACE)
    if any(desk.pool.values()):
        _held(desk)
    else:
        st.subheader("No passages to judge yet", anchor=False)
        st.caption("Collect the top results of several routes, to judge them all fairly.", help=term("pool"))
    job = pool.under_way(state.engine(), desk.set.name)
    if follow(
        job, "{0.finished} of {0.total} questions, {0.new:,} new passages".format, key="label_pool_stop"
    ):
        return
    if job is not None:
        _ended(job)
    if account.notice("edit"):
        _begin(desk)
        _found_before(desk)


def _held(desk: Desk) -> None:
    sizes = [len(desk.pool.get(question.id, {})) for question in desk.questions]
    text = f"{sum(sizes):,} passages to judge."
    text += f" Questions without any: {sizes.count(0)}." if 0 in sizes else ""
    st.markdown(md(text), help=term("pool"))
    rows = [
        {"Route": title(one.route), "Found": one.found, "Only by this route": one.alone}
        for one in shares(desk)
    ]
    if rows:
        about = "How many passages of the pool each route found, and how many no other route found"
        tables.table(rows, "label_pool_routes", about, width=560)


def _begin(desk: Desk) -> None:
    engine, name, corpus = state.engine(), desk.set.name, desk.set.corpus
    corpora.notice(corpus)
    gaps = availability.missing(engine, corpus)
    can = [route.name for route in by_family() if not availability.why_not(route, gaps)]
    usual = [one for one in pool.defaults(engine, corpus) if one in can]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        note = "By default, all routes that run without a language model, except controls and pipelines"
        label, key = "Routes that find passages", f"label_routes:{name}"
        chosen = st.multiselect(label, can, usual, format_func=title, key=key, help=note)
        depth = _depth("label_depth")
        begun = st.button("Find passages", key="label_pool_begin", type="primary", disabled=not chosen)
        if begun and attempt(lambda: pool.begin(engine, name, chosen, depth=depth)):
            st.rerun()
    asking = [title(one) for one in chosen if one in routes() and routes()[one].asks()]
    more = f" These call the language model for each question: {', '.join(asking)}." if asking else ""
    asked = len(pool.worth_labelling(desk.questions))
    if left := len(desk.questions) - asked:
        more += f" Left out: {count(left)} that documents do not answer, such as small talk."
    say.caption(f"Runs {len(chosen)} routes on {count(asked)}. Existing passages stay.{more}")


def _depth(key: str) -> int:
    return int(st.number_input("Passages per route", 1, pool.MAX_DEPTH, pool.DEPTH, key=key, width=150))


def _ended(one: Pooling) -> None:
    took = milliseconds(1000 * one.seconds)
    done = f"{one.finished} of {one.total} questions run in {took}; {one.new:,} new passages."
    if ended(one, "The search", f"Stopped. {done} They stay in the pool."):
        say.caption(done)
    if one.failed:
        why = "; ".join(
            f"{title(route)} on {times} ({cut(one.why.get(route, ''), 160)})"
            for route, times in one.failed.most_common()
        )
        say.warning(f"Some routes failed on some questions: {why}.")


def _found_before(desk: Desk) -> None:
    """Draw the choice of passages from stored sessions or a saved evaluation; no route is rerun."""
    origins = list(experiment_store.names(state.engine().settings))
    if state.store().count(corpus=desk.set.corpus):
        origins.insert(0, SESSIONS)
    if not origins:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label, hint = "Or add passages from earlier runs", "Choose stored sessions or an evaluation"
        origin = st.selectbox(label, origins, None, key="label_pool_from", width=420, placeholder=hint)
        depth = _depth("label_depth_from")
        if not st.button("Add passages", key="label_pool_take", disabled=origin is None) or origin is None:
            return
    with st.spinner("Reading the passages"):
        outcome.act(PLACE, lambda: _take(desk, origin, depth))
    st.rerun()


def _take(desk: Desk, origin: str, depth: int) -> Outcome:
    """Add the first `depth` passages of each question of stored sessions or an evaluation."""
    name, others = desk.set.name, "questions of the evaluation are not in this set"
    if origin == SESSIONS:
        added = pool.from_sessions(state.store(), name, depth=depth)
        others = "runs were skipped because their conversation history differs"
    else:
        corpus = state.engine().corpus(desk.set.corpus)
        added = pool.from_evaluation(state.store(), name, reopened(origin), corpus, depth=depth)
    told = f"{added.new:,} new passages for {added.questions} questions of the set."
    told += f" {added.others} {others}." if added.others else ""
    missing = f" {added.missing} hits were skipped because their text no longer exists."
    return Outcome(told + missing * bool(added.missing))
