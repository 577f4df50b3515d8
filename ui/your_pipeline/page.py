"""The tab Your pipeline of Corpus: the state of each pipeline, a trial, and how to add one."""

from __future__ import annotations

from functools import partial

import streamlit as st
from markupsafe import Markup

from core.backends.external import doors
from core.backends.external.doors import DoorState
from core.corpus import builds
from core.corpus.passage_matching import describe
from core.domain.format import milliseconds
from core.domain.pipelines import Pipeline
from core.domain.program import COMMAND
from core.domain.settings import settings_file
from core.engine import endpoints
from core.engine.endpoints import Trial
from core.routes.registry import pipelines as own_pipelines
from core.routes.registry import problems, routes
from ui.app import data, say, state
from ui.app.markup import cut, fragment, show, table, tag
from ui.app.progress import follow_work

MAX_HITS = 20  # hits of a trial
SAMPLE = "How do I start a return?"
HEAD = ("Field", "Enables", "Fate of a passage that it reveals")


def draw() -> None:
    """Draw the pipelines, then how to add one."""
    pipelines()
    st.subheader("Add a pipeline", anchor=False)
    add()


def pipelines() -> None:
    """Draw each pipeline with its state and a trial."""
    for problem in problems():
        say.error(problem)
    known = own_pipelines()
    if not known:
        st.info(
            "You have not connected a pipeline yet. Connect a Python function, a LangChain, LlamaIndex or "
            "Haystack object, or an HTTP endpoint as shown below."
        )
        return
    st.caption("Your pipeline runs like any other route. Its latency is measured end to end.")
    for name, pipeline in known.items():
        with st.container(border=True):
            _one(name, pipeline)


def _one(name: str, pipeline: Pipeline) -> None:
    broken = routes()[name].broken
    work = builds.get(_work(name))
    busy = work is not None and not work.done
    now = doors.known(name)
    show(fragment("settings.pipeline", pipeline, broken, now, _facts(pipeline, now)))
    if broken:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        question = st.text_input(
            "Question", SAMPLE, key=f"try_question:{name}", persist_state="session", width=420
        )
        if st.button("Try it", key=f"try_pipeline:{name}", disabled=busy or not question.strip()):
            attempt = partial(endpoints.try_pipeline, state.engine(), name, question)
            corpus = st.session_state[state.CORPUS]
            with say.errors():
                builds.start_work(_work(name), lambda _, cancel: attempt(corpus, cancel))
                st.rerun()
        if now is not None and now.running and pipeline.door == "function":
            st.button(
                "End its process",
                key=f"end_pipeline:{name}",
                on_click=partial(doors.stop, name),
                help="The next question starts it again, with the file as it is then",
            )
    if busy:
        follow_work(_work(name), "Waiting for its reply")
    elif work is not None and work.error:
        say.error(work.error)
    if (tried := endpoints.last_trial(name)) is not None:
        show(trial(tried))


def _work(name: str) -> str:
    return f"try pipeline {name}"


def _facts(pipeline: Pipeline, now: DoorState | None) -> list[tuple[str, str]]:
    """Return what is known of a pipeline's calls; [] if it was not asked yet."""
    if now is None or not (now.calls or now.starts):
        return []
    facts = [("calls", f"{now.calls:,}"), ("failed", f"{now.failed:,}")]
    if pipeline.door == "function":
        facts.insert(0, ("process", "running" if now.running else "not running"))
        facts += [("Python", now.python)] if now.python else []
        facts += [("asked as", now.kind)] if now.kind else []
        facts += [("started in", milliseconds(now.start_ms))] if now.start_ms is not None else []
        facts += [("starts", f"{now.starts:,}")] if now.starts > 1 else []
    if now.last_ms is not None:
        facts.append(("last call", milliseconds(now.last_ms)))
    return facts


def trial(tried: Trial) -> Markup:
    """Return a trial's matched share, stages and hits."""
    if tried.reply is None or tried.matched is None:
        return fragment("settings.trial", tried, "", "", (), 0)
    stages = (
        f"{stage.name} ({stage.kind}, {'no list' if stage.hits is None else f'{len(stage.hits)} hits'}"
        f"{'' if stage.ms is None else f', {milliseconds(stage.ms)} as reported'})"
        for stage in tried.reply.stages
    )
    depth = "It reported no stages: Why shows found or not found, and nothing of the inside."
    if tried.reply.stages:
        depth = f"Stages: {cut(', '.join(stages), 600)}."
    passages: dict[int, list[str]] = {}
    for placed in tried.matched.placed:
        passages.setdefault(placed.at, []).append(placed.passage.id)
    pairs = list(zip(tried.reply.hits, tried.matched.rules, strict=True))
    rows = [
        (
            "–" if hit.score is None else f"{hit.score:.4g}",
            rule,
            ", ".join(passages.get(at, [])) if rule else hit.doc_id,
            hit.text,
        )
        for at, (hit, rule) in enumerate(pairs[:MAX_HITS])
    ]
    return fragment("settings.trial", tried, describe([tried.matched]), depth, rows, len(pairs) - MAX_HITS)


def add() -> None:
    """Draw how to add a pipeline, and what each field of a reply unlocks."""
    guide = data.table("pipeline_guide")
    examples = guide["examples"]
    st.markdown("A pipeline becomes a route in one of two ways. This page never adds or runs what it shows.")
    st.markdown("###### For one command")
    st.code(examples["commands"].format(command=COMMAND), language="bash")
    st.markdown("###### On every page")
    say.caption(f"In the settings file, {settings_file()}; in force after a restart.")
    st.code(examples["settings"], language="toml")
    st.markdown("###### What is asked")
    st.code(examples["function"], language="python")
    st.code(examples["stages"], language="python")
    st.markdown("###### Which field enables what")
    rows = [(tag("code", row["name"]), row["unlocks"], row["fate"]) for row in guide["field"]]
    show(tag("div", tag("div", table(HEAD, rows), css="rs-wide"), css="rs"))
    st.caption("docs/your-pipeline.md shows the way from LangChain, LlamaIndex, Haystack and FastAPI.")
