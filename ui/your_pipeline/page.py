"""The tab Your pipeline of Corpus: the state of each pipeline, a trial, and how to add one."""

from __future__ import annotations

from functools import partial

import streamlit as st
from markupsafe import Markup

from core.backends.external import doors
from core.backends.external.doors import DoorState
from core.corpus import builds
from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds
from core.domain.pipelines import Pipeline
from core.domain.program import COMMAND
from core.domain.settings import settings_file
from core.engine import external_trial
from core.engine.external_trial import Trial
from core.routes.registry import pipelines as own_pipelines
from core.routes.registry import problems, routes
from ui.app import redraw, state
from ui.app.data import table
from ui.app.markup import EMPTY, cut, join, md, show, table_of, tag

MAX_HITS = 20  # hits of a trial
SAMPLE = "How do I start a return?"
TEXT_CHARACTERS = 90  # characters of a hit's text
HEAD = ("Field", "Enables", "Fate of a passage that it reveals")


def draw() -> None:
    """Draw the pipelines, then how to add one."""
    pipelines()
    st.subheader("Add a pipeline", anchor=False)
    add()


def pipelines() -> None:
    """Draw each pipeline with its state and a trial."""
    for problem in problems():
        st.error(md(problem))
    known = own_pipelines()
    if not known:
        st.info(
            "You have not connected a pipeline yet. Connect a Python function, a LangChain, LlamaIndex or "
            "Haystack object, or an HTTP endpoint as shown below."
        )
        return
    st.caption(
        "Your pipeline runs like any other route, on every page and command. Its latency is measured end to "
        "end, and nothing is reused from other routes."
    )
    for name, pipeline in known.items():
        with st.container(border=True):
            _one(name, pipeline)


def _one(name: str, pipeline: Pipeline) -> None:
    broken = routes()[name].broken
    work = builds.get(_work(name))
    busy = work is not None and not work.done
    now = doors.known(name)
    show(_about(pipeline, broken, now))
    if broken:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        question = st.text_input(
            "Question", SAMPLE, key=f"try_question:{name}", persist_state="session", width=420
        )
        if st.button("Try it", key=f"try_pipeline:{name}", disabled=busy or not question.strip()):
            _begin(name, question)
            st.rerun()
        if now is not None and now.running and pipeline.door == "function":
            st.button(
                "End its process",
                key=f"end_pipeline:{name}",
                on_click=partial(doors.stop, name),
                help="The next question starts it again, with the file as it is then",
            )
    if busy:
        _wait(name)
    elif work is not None and work.error:
        st.error(md(work.error))
    if (tried := external_trial.outcome(name)) is not None:
        show(trial(tried))


def _work(name: str) -> str:
    return f"try pipeline {name}"


def _begin(name: str, question: str) -> None:
    engine, corpus = state.engine(), st.session_state[state.CORPUS]
    try:
        builds.start_work(
            _work(name),
            lambda _report, cancel: external_trial.attempt(engine, name, question, corpus, cancel),
        )
    except RouteScopeError as error:
        st.error(md(str(error)))


@st.fragment(run_every=0.5)
def _wait(name: str) -> None:
    """Follow the trial until it has ended; its Stop is in the sidebar."""
    work = builds.get(_work(name))
    if work is None or work.done:
        redraw.page()
    else:
        st.caption(f"Waiting for its reply, {work.seconds:.0f} s")


def _about(pipeline: Pipeline, broken: str, now: DoorState | None) -> Markup:
    given = "on the command line" if pipeline.given == "command" else "in the settings file"
    lines = [
        tag("div", tag("b", pipeline.label), "  ", tag("span", pipeline.door, css="chip"), dir="auto"),
        tag("div", f"Route {pipeline.name}, named {given}: {pipeline.target}", css="dim", dir="auto"),
    ]
    if pipeline.python:
        lines.append(tag("div", f"Interpreter: {pipeline.python}", css="dim"))
    if broken:
        lines.append(tag("div", "Cannot run: ", broken, css="bad", dir="auto"))
    elif now is None or not (now.calls or now.starts):
        lines.append(tag("div", "Not asked since the dashboard started.", css="dim"))
    else:
        lines.append(_state(pipeline, now))
    if now is not None and now.error:
        lines.append(tag("div", f"Last error, {now.error_at[11:16]} UTC: ", now.error, css="bad", dir="auto"))
    if now is not None and now.stderr:
        lines.append(
            tag(
                "details",
                tag("summary", "What it printed"),
                tag("pre", now.stderr[-8_000:], css="rs-your-printed", dir="auto"),
                css="rs-why-none",
            )
        )
    return tag("div", *lines, css="rs")


def _state(pipeline: Pipeline, now: DoorState) -> Markup:
    facts = [("calls", f"{now.calls:,}"), ("failed", f"{now.failed:,}")]
    if pipeline.door == "function":
        facts.insert(0, ("process", "running" if now.running else "not running"))
        facts += [("Python", now.python)] if now.python else []
        facts += [("asked as", now.kind)] if now.kind else []
        facts += [("started in", milliseconds(now.start_ms))] if now.start_ms is not None else []
        facts += [("starts", f"{now.starts:,}")] if now.starts > 1 else []
    if now.last_ms is not None:
        facts.append(("last call", milliseconds(now.last_ms)))
    chips = [tag("span", name, " ", tag("b", value), css="chip") for name, value in facts]
    return tag("div", join(chips, " "))


def trial(tried: Trial) -> Markup:
    """Return a trial's matched share, stages and hits."""
    head = f"Tried at {tried.when[11:16]} UTC on corpus {tried.corpus}: “{cut(tried.question, 120)}”"
    lines = [tag("div", head, css="dim", dir="auto")]
    if tried.reply is None or tried.matched is None:
        lines.append(tag("div", "Failed: ", tried.error, css="bad", dir="auto"))
        return tag("div", *lines, css="rs rs-block")
    inside = "" if tried.inside_ms is None else f", of which {milliseconds(tried.inside_ms)} in its own code"
    lines.append(tag("div", f"Replied in {milliseconds(tried.ms or 0.0)}{inside}."))
    lines.append(tag("div", tried.matched.in_words(), css="rs-why-words"))
    lines.append(tag("div", _depth(tried)))
    if tried.reply.ignored:
        lines.append(tag("div", f"Not read: {', '.join(tried.reply.ignored)}.", css="dim", dir="auto"))
    return tag("div", *lines, _hits(tried), css="rs rs-block")


def _depth(tried: Trial) -> str:
    reply = tried.reply
    if reply is None or not reply.stages:
        return "It reported no stages: Why shows found or not found, and nothing of the inside."
    named = (
        f"{stage.name} ({stage.kind}, {'no list' if stage.hits is None else f'{len(stage.hits)} hits'}"
        f"{'' if stage.ms is None else f', {milliseconds(stage.ms)} as reported'})"
        for stage in reply.stages
    )
    return f"Stages: {cut(', '.join(named), 600)}."


def _hits(tried: Trial) -> Markup:
    if tried.reply is None or tried.matched is None or not tried.reply.hits:
        return EMPTY
    passages: dict[int, list[str]] = {}
    for placed in tried.matched.placed:
        passages.setdefault(placed.at, []).append(placed.passage.id)
    rows = []
    for at, (hit, rule) in enumerate(zip(tried.reply.hits, tried.matched.rules, strict=True)):
        if at >= MAX_HITS:
            break
        matched = tag("span", "not in the corpus", css="chip") if rule is None else tag("span", f"by {rule}")
        rows.append(
            tag(
                "tr",
                tag("td", str(at + 1), css="num"),
                tag("td", "–" if hit.score is None else f"{hit.score:.4g}", css="num"),
                tag("td", matched),
                tag("td", cut(", ".join(passages.get(at, [])) if rule else hit.doc_id, 60), dir="auto"),
                tag("td", cut(hit.text, TEXT_CHARACTERS), dir="auto"),
            )
        )
    heads = ("Rank", "Score", "Matched", "Passage, or its document", "Text")
    head = tag("tr", *(tag("th", text, css="num" if text in heads[:2] else "") for text in heads))
    more = len(tried.reply.hits) - MAX_HITS
    rest = tag("div", f"{more} more hits.", css="dim") if more > 0 else EMPTY
    return tag("div", table_of(head, rows), rest, css="rs-wide")


def add() -> None:
    """Draw how to add a pipeline, and what each field of a reply unlocks."""
    guide = table("pipeline_guide")
    examples = guide["examples"]
    st.markdown("A pipeline becomes a route in one of two ways. This page never adds or runs what it shows.")
    st.markdown("###### For one command")
    st.code(examples["commands"].format(command=COMMAND), language="bash")
    st.markdown("###### On every page")
    st.caption(md(f"In the settings file, {settings_file()}; in force after a restart."))
    st.code(examples["settings"], language="toml")
    st.markdown("###### What is asked")
    st.code(examples["function"], language="python")
    st.code(examples["stages"], language="python")
    st.markdown("###### Which field enables what")
    head = tag("tr", *(tag("th", text) for text in HEAD))
    rows = (
        tag("tr", tag("td", tag("code", row["name"])), tag("td", row["unlocks"]), tag("td", row["fate"]))
        for row in guide["field"]
    )
    show(tag("div", tag("div", table_of(head, rows), css="rs-wide"), css="rs"))
    st.caption("docs/your-pipeline.md shows the way from LangChain, LlamaIndex, Haystack and FastAPI.")
