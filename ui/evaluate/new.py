"""The form that describes an evaluation and begins it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from core.analysis.timeline import Latency, by_route
from core.corpus import catalogue, cautions
from core.corpus.source import base_of
from core.domain.errors import BadInput, RouteScopeError
from core.domain.format import milliseconds
from core.domain.needs import Need
from core.engine.availability import missing, why_not
from core.evaluation import background, dataset, experiment_store, sets
from core.evaluation.audit import decisions
from core.evaluation.finding import count as counted
from core.evaluation.labels import desk, pool
from core.evaluation.labels.final import labelled_set
from core.evaluation.spec import SEED, Spec
from ui.app import account, address, evaluated, opening, say, state, workers
from ui.app.help_mark import term
from ui.app.markup import md, show
from ui.app.routes import by_family, directory, on_page, title
from ui.components import question_file
from ui.evaluate.options import how, select
from ui.evaluate.saved import BEGUN

UPLOADED = "evaluate_new_file"  # name and content of the chosen file of questions
OWN, FILE = "", "\0file"  # no label set is called so
ANY = "all modes"
ALL, SPLITS = "all", ("dev", "test")
Kinds = dict[str, Counter[str | None]]  # split -> mode -> questions


def open_form(**choices: object) -> None:
    """Open the form with some of its choices made."""
    st.session_state[evaluated.NEW] = True
    st.session_state.update(choices)


@st.fragment
def form() -> None:
    """Draw the form as a fragment, so that its choices redraw nothing else."""
    engine = state.engine()
    known = catalogue.known(engine.settings)
    names = [one.name for one in known if one.askable and one.state in ("ready", "stale")]
    if not names:
        st.info("No corpus is indexed yet. Build one in the sidebar first.")
        return
    made = {one.name: one for one in desk.sets(state.store())}
    address.take("labels", "ev_asked", made.__getitem__)
    if asked := st.session_state.pop("ev_asked", None):
        st.session_state["ev_questions"], st.session_state["ev_corpus"] = asked.name, asked.corpus
    top = st.container(horizontal=True, vertical_alignment="bottom")
    usual = st.session_state.get(state.CORPUS)
    corpus = select(top, "corpus", "Corpus", dict(zip(names, names, strict=True)), usual=usual, width=200)
    opening.wait_for(corpus)
    found = _questions(
        top, corpus, [one for one, of in made.items() if base_of(of.corpus) == base_of(corpus)]
    )
    if found is None:
        return
    info = catalogue.describe(corpus, engine.settings).info
    for caution in cautions.of_corpus(info) if info is not None else ():
        say.warning(f"{caution.line()}.")
    spec, count = _sample(*found)
    chosen = _routes(missing(engine, corpus))
    if not chosen:
        st.info("Choose at least one route.")
        return
    _begin(_audited(how(replace(spec, routes=tuple(chosen)), corpus)), count)


def _questions(place: Any, corpus: str, made: list[str]) -> tuple[Spec, Counter[str | None]] | None:
    """Draw which questions are asked, and count those of each mode; None, with the reason, if none."""
    named = {OWN: "from the corpus", FILE: "from a file"} | {name: f"label set: {name}" for name in made}
    source = select(place, "questions", "Questions", named, width=280)
    if source == FILE:
        given = question_file.choose("ev")
        if given is None:
            return None
        if not any(given.written.evidence.values()):
            st.info("No question of this file has a label. Choose the column that names what is relevant, or")
            st.page_link("label.py", label="Label these questions")
            return None
        st.session_state[UPLOADED] = given.name, given.content  # stored when the evaluation begins
        spec = Spec(corpus, questions=(given.name,), columns=given.columns)
        return _part(place, spec, _counted(given.written))
    try:
        kinds = _kinds(corpus, source or None, str(state.engine().settings.home))
    except RouteScopeError as error:
        st.info("This corpus has no labelled questions yet." if source == OWN else md(str(error)))
        if source == OWN:
            to = {"tab": "My questions"}
            st.page_link("corpus.py", label="Compare routes on my questions", query_params=to)
        st.page_link("label.py", label="Label questions")
        return None
    return _part(place, Spec(corpus, labels=source or None), kinds)


def _part(place: Any, spec: Spec, kinds: Kinds) -> tuple[Spec, Counter[str | None]]:
    """Draw the choice of a split and of a mode, and return the spec with them."""
    splits = {name: name for name in (*sorted(kinds.keys() - {ALL}), ALL)}
    about = term("held-out questions", "Tune on dev; use test once, at the end.")
    split = select(place, "split", "Split", splits, usual=splits.get("test", ALL), width=130, help=about)
    counts = Counter(kinds[split])
    named = {ANY: f"{ANY} ({counts.total()})"}
    named |= {mode: f"{mode} ({counts[mode]})" for mode in sorted(mode for mode in counts if mode)}
    mode = select(place, "mode", "Modes", named, width=280)
    if mode != ANY:
        counts = Counter({mode: counts[mode]})
    return replace(spec, split=split, mode=None if mode == ANY else mode), counts


@st.cache_data(ttl=60, max_entries=16, show_spinner="Reading the labelled questions")
def _kinds(corpus: str, labels: str | None, home: str) -> Kinds:  # noqa: ARG001 - home is part of the cache key
    """Return the number of questions of each split and mode."""
    engine = state.engine()
    if labels is None:
        origin = catalogue.source(corpus, settings=engine.settings, known_only=True)
        found: dataset.Found = sets.read(origin.name, origin.path, split="all")
    else:
        found, _ = labelled_set(state.store(), labels, engine.corpus(corpus), split="all")
    kinds = _counted(found)
    if labels is None and kinds.keys() == {ALL}:  # in a BEIR folder a split is a file of judgements
        for split in SPLITS:
            with suppress(BadInput):
                kinds[split] = _counted(sets.read(origin.name, origin.path, split=split))[ALL]
    return kinds


def _counted(found: dataset.Found) -> Kinds:
    """Count the questions by mode: in total and for each split."""
    kinds: Kinds = {ALL: Counter(question.mode for question in found.questions)}
    for question in found.questions:
        if question.split not in (None, ALL):
            kinds.setdefault(str(question.split), Counter())[question.mode] += 1
    return kinds


def _sample(spec: Spec, counts: Counter[str | None]) -> tuple[Spec, int]:
    """Draw the choice of all questions or some, with their number."""
    whole = counts.total()
    options = {"all": f"All {whole}", "some": "A sample"}
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        st.session_state.setdefault("ev_sample", "all")
        given: Any = {"key": "ev_sample", "required": True, "persist_state": "session"}
        kind = st.segmented_control("How many", list(options), format_func=options.__getitem__, **given)
        if kind != "some":
            return spec, whole
        st.session_state["ev_some"] = min(whole, st.session_state.get("ev_some", 40))
        size = int(st.number_input("Questions", 1, whole, key="ev_some", width=160, persist_state="session"))
        st.session_state.setdefault("ev_seed", SEED)
        about = "The same seed selects the same questions"
        seed = int(st.number_input("Seed", 0, key="ev_seed", width=130, persist_state="session", help=about))
    return replace(spec, queries=size, seed=seed), size


def _routes(gaps: Mapping[Need, str]) -> list[str]:
    """Draw the choice of routes to measure, with the reasons for those that cannot run."""
    known = {route.name: route for route in by_family()}
    lacks = {name: why_not(route, gaps) for name, route in known.items()}
    able = [name for name in known if lacks[name] is None]
    free = [name for name in able if not known[name].asks()]
    st.session_state.setdefault("ev_routes", free)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        for label, names in (("Without a language model", free), ("All that can run", able)):
            given: Any = {"on_click": st.session_state.__setitem__, "args": ("ev_routes", names)}
            st.button(f"{label} ({len(names)})", key=f"ev_choose:{label}", **given)
        with st.popover("About the routes"), st.container(width=620, height=360):
            show(directory(gaps))

    def in_words(name: str) -> str:
        model = " · calls the model" if known[name].asks() else ""
        return title(name) + model + (" · cannot run now" if lacks[name] else "")

    chosen: list[str] = st.multiselect(
        "Routes", list(known), key="ev_routes", format_func=in_words, persist_state="session"
    )
    for name in chosen:
        if lack := lacks[name]:
            say.caption(f"{title(name)} cannot run now and will count as failed: {on_page(lack)}")
    return chosen


def _audited(spec: Spec) -> Spec:
    """Return the specification with a decision audit, if wanted and if some route makes decisions."""
    deciding = [name for name in spec.routes if name not in decisions.BASELINES and decisions.own(name)]
    if not deciding or spec.nuggets:
        return spec
    note = term("decision audit", f"Of {', '.join(map(title, deciding))}. Takes longer than estimated.")
    wanted = st.checkbox("Audit the decisions", key="ev_audit", persist_state="session", help=note)
    if not wanted:
        return spec
    baseline = decisions.BASELINE if spec.baseline in deciding else spec.baseline
    return replace(spec, audit=tuple(deciding), baseline=baseline)


def _begin(spec: Spec, count: int) -> None:
    """Draw the name, the expected effort and the start button."""
    engine = state.engine()
    taken = experiment_store.names(engine.settings)
    usual = background.free_name(f"{spec.corpus}-{datetime.now(UTC):%Y-%m-%d}", taken)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        given = st.text_input("Name", value=usual, max_chars=80, key=f"ev_name:{usual}", width=320)
        name = given.strip()
        by = None if spec.audit else workers.choose("ev_workers")
        label = f"Evaluate {counted(len(spec.routes), 'routes')} on {counted(count)}"
        begun = st.button(label, type="primary", key="ev_begin", **account.needs("edit"))
    say.caption(_describe_spec(spec, count))
    if background.active(engine):
        st.caption("Another evaluation is running. Latencies measured at the same time are not comparable.")
    if not begun:
        return
    with say.errors(), st.spinner("Checking the questions and the routes"):
        experiment_store.place(engine.settings, name)
        if name in taken:
            raise BadInput(f"the name {name} is taken; choose another one")
        if spec.questions:
            file, content = st.session_state[UPLOADED]
            spec = replace(spec, questions=(str(pool.keep(file, content, engine.settings)),))
        background.begin(engine, name, spec, workers=by)
        st.session_state[BEGUN] = name
        st.session_state[evaluated.NEW] = False
        address.keep("labels", None)
        st.rerun()


def _describe_spec(spec: Spec, count: int) -> str:
    """Estimate the duration from earlier runs."""
    newest = state.store().sessions(limit=1, corpus=spec.corpus)
    times = _times(spec.corpus, f"{newest[0].id} {account.key()}", newest[0].status) if newest else []
    history = background.medians(times, answered=spec.answers)
    seconds, unknown = background.estimate(history, spec.routes, count * spec.repeats)
    if not seconds:
        return "No time estimate: none of these routes has run on this corpus yet."
    together = spec.timing != "isolated" and len(spec.routes) > 1
    estimate = f"Estimated from earlier runs: {'at most ' if together else ''}about "
    estimate += f"{milliseconds(1000 * seconds)}."
    if unknown:
        estimate += f" Not included, because never run here: {', '.join(map(title, unknown))}."
    return estimate


@st.cache_data(max_entries=8, ttl=300, show_spinner="Reading the times of earlier runs")
def _times(corpus: str, newest: str, status: str) -> list[Latency]:  # noqa: ARG001 - of the cache's key
    return by_route(state.store().traces(corpus).results.values())
