"""The pool: passages to be judged, found by routes now, in stored sessions or in a kept evaluation."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds
from core.engine import availability
from core.evaluation import experiment_store
from core.evaluation.labels import pool
from core.evaluation.labels.coverage import Coverage, coverage
from core.evaluation.labels.pool import Pooling
from core.evaluation.labels.types import Desk
from core.routes.registry import routes
from ui.app import corpora, redraw, state
from ui.app.evaluated import reopened
from ui.app.help_mark import term
from ui.app.markup import cut, md
from ui.app.progress import progress
from ui.app.routes import by_family, title
from ui.components import tables
from ui.label.desk import store

EVERY = 0.4  # seconds between looks at one under way
SESSIONS = "stored sessions that asked these questions"
TOLD = "label_pool_told"  # what the last taking over brought


def draw(desk: Desk) -> None:
    """Draw what the pool holds, and the ways to fill it."""
    if told := st.session_state.pop(TOLD, None):
        st.success(md(told))
    if any(desk.pool.values()):
        _held(coverage(desk))
    else:
        st.subheader("No passages to judge yet", anchor=False)
        st.caption(
            "Routes find them: the best passages of each route together are the pool. A passage that only "
            "one route finds is judged as well, so no route is measured by what another one found.",
            help=term("pool"),
        )
    under_way = pool.under_way(state.engine(), desk.set.name)
    if under_way is not None and not under_way.done:
        _follow(desk.set.name)
        return
    if under_way is not None:
        _ended(under_way)
    _begin(desk)
    _found_before(desk)


def _held(found: Coverage) -> None:
    import pandas as pd

    spread = f"{found.least} to {found.most}, median {found.middle:g}"
    by = "1 route" if len(found.shares) == 1 else f"{len(found.shares)} routes"
    lines = [
        f"{found.passages:,} passages to judge: {spread} a question. "
        f"{by} found them; {found.several:,} were found by more than one route."
    ]
    if found.empty:
        lines.append(f"{found.empty} questions have none yet.")
    if found.unnamed:
        lines.append(f"{found.unnamed:,} came with imported labels, and no route found them.")
    st.markdown(md(" ".join(lines)), help=term("pool"))
    if found.shares:
        frame = pd.DataFrame(
            {
                "Route": [title(one.route) for one in found.shares],
                "Found": [one.found for one in found.shares],
                "Found by it alone": [one.alone for one in found.shares],
            }
        )
        tables.show(
            frame, hide_index=True, width=560, height=min(38 + 35 * len(frame), 318), key="label_pool_routes",
            alt="How many passages of the pool each route found, and how many no other route found",
        )  # fmt: skip


def _begin(desk: Desk) -> None:
    engine, name, corpus = state.engine(), desk.set.name, desk.set.corpus
    corpora.notice(corpus)
    gaps = availability.missing(engine, corpus)
    can = [route.name for route in by_family() if not availability.why_not(route, gaps)]
    usual = [one for one in pool.defaults(engine, corpus) if one in can]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.multiselect(
            "Routes that find passages", can, usual, format_func=title, key=f"label_routes:{name}",
            help="At first all that run without a language model",
        )  # fmt: skip
        depth = st.number_input(
            "Passages of each", 1, pool.MAX_DEPTH, pool.DEPTH, key="label_depth", width=150
        )
        if st.button("Find passages", key="label_pool_begin", type="primary", disabled=not chosen):
            try:
                pool.begin(engine, name, chosen, depth=int(depth))
            except RouteScopeError as error:
                st.error(md(str(error)))
            else:
                st.rerun()
    asking = [title(one) for one in chosen if one in routes() and routes()[one].asks()]
    more = f" {', '.join(asking)}: asks the language model for each question." if asking else ""
    st.caption(
        md(f"Asks {len(desk.questions)} questions of {len(chosen)} routes. What is there stays.{more}")
    )


@st.fragment(run_every=EVERY)
def _follow(name: str) -> None:
    """Progress with Stop; the page is drawn again at the end."""
    one = pool.under_way(state.engine(), name)
    if one is None or one.done:
        redraw.page()
        return
    told = f"{one.finished} of {one.total} questions asked of {len(one.routes)} routes, {one.new:,} new"
    progress(one, f"{told} passages", key="label_pool_stop")


def _ended(one: Pooling) -> None:
    told = (
        f"{one.finished} of {one.total} questions were asked in {milliseconds(1000 * one.seconds)}; "
        f"{one.new:,} passages are new."
    )
    if one.error:
        st.error(md(f"It ended with: {one.error}. {told}"))
    elif one.cancelled:
        st.info(md(f"It was stopped. {told} What was found is kept."))
    else:
        st.caption(md(told))
    if one.failed:
        why = "; ".join(
            f"{title(route)} at {count} ({cut(one.why.get(route, ''), 160)})"
            for route, count in one.failed.most_common()
        )
        st.warning(md(f"Some routes gave no result: {why}."))


def _found_before(desk: Desk) -> None:
    """The passages of stored sessions or of a kept evaluation: nothing is asked again."""
    engine, name = state.engine(), desk.set.name
    origins = [
        *([SESSIONS] if store().count(corpus=desk.set.corpus) else []),
        *experiment_store.names(engine.settings),
    ]
    if not origins:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        origin = st.selectbox(
            "Or take over what routes found before", origins, index=None, key="label_pool_from", width=420,
            placeholder="Choose stored sessions or an evaluation",
        )  # fmt: skip
        depth = st.number_input(
            "Passages of each", 1, pool.MAX_DEPTH, pool.DEPTH, key="label_depth_from", width=150
        )
        if not st.button("Take over", key="label_pool_take", disabled=origin is None) or origin is None:
            return
    try:
        with st.spinner("Reading what was found"):
            if origin == SESSIONS:
                added = pool.from_sessions(store(), name, depth=int(depth))
            else:
                corpus = engine.corpus(desk.set.corpus)
                added = pool.from_evaluation(store(), name, reopened(origin), corpus, depth=int(depth))
    except RouteScopeError as error:
        st.error(md(str(error)))
        return
    told = f"{added.new:,} new passages for {added.questions} questions of the set."
    if added.others and origin == SESSIONS:
        told += f" {added.others} were asked with other turns before them, and are left out."
    elif added.others:
        told += f" {added.others} questions of the evaluation are not in this set."
    if added.missing:
        told += f" {added.missing} hits were left out, as their text is gone."
    st.session_state[TOLD] = told
    st.rerun()
