"""Endpoints: their addresses, and the abilities found by testing them."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.backends.llm import profile as learned
from core.backends.llm.profile import Profile
from core.corpus import builds
from core.domain import people
from core.engine import probes
from core.engine.probes import ProbedEndpoint
from ui.app import redraw, state
from ui.app.markup import md, show, tag


def draw() -> None:
    """Draw each endpoint with its known abilities and a button to test it."""
    st.caption(
        "A test makes a few small calls that bypass every cache. It starts an embedded model that is off."
    )
    engine = state.engine()
    for endpoint in probes.endpoints(engine):
        work = builds.get(_work(endpoint))
        busy = work is not None and not work.done
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                show(_about(endpoint))
                if st.button("Test", key=f"try:{endpoint.name}", disabled=busy or bool(endpoint.why_not)):
                    _begin(endpoint)
                    st.rerun()
            if busy:
                _wait(_work(endpoint))
            elif work is not None and work.error:
                st.error(md(work.error))

    for profile in learned.every(engine.settings.home):
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            show(_learned(profile))
            if st.button("Reset", key=f"reset:{profile.endpoint}:{profile.model}"):
                people.require("settings")
                learned.StoredProfile(engine.settings.home, profile.endpoint, profile.model).reset()
                st.rerun()


def _learned(profile: Profile) -> Markup:
    """Return what an endpoint accepts and how its model replies, as measured."""
    told = {True: "yes", False: "no", None: "not known"}
    facts = {
        "token probabilities": told[profile.probabilities],
        "reasoning": told[profile.reasons],
        "reasoning tokens": f"{profile.reasoning_tokens:,}",
        "context": f"{profile.context:,}" if profile.context else "not told",
        "model served": profile.served or "not known",
    }
    chips = [tag("span", name, " ", tag("b", value), css="chip") for name, value in facts.items()]
    lines = [tag("div", tag("b", profile.model), "  ", tag("span", "learned", css="chip"), dir="auto")]
    lines.append(tag("div", profile.endpoint, css="dim"))
    lines.append(tag("div", *[part for chip in chips for part in (chip, " ")]))
    lines += [
        tag("div", f"It rejects {name}: ", why, css="dim", dir="auto") for name, why in profile.said.items()
    ]
    return tag("div", *lines, css="rs")


def _work(endpoint: ProbedEndpoint) -> str:
    return f"try {endpoint.role}"


def _begin(endpoint: ProbedEndpoint) -> None:
    engine = state.engine()
    builds.start_work(
        _work(endpoint),
        lambda report, cancel: probes.attempt(engine, endpoint, report, cancel),
    )


@st.fragment(run_every=0.5)
def _wait(name: str) -> None:
    """Follow the work until it has ended; its Stop is in the sidebar."""
    work = builds.get(name)
    if work is None or work.done:
        redraw.page()
    else:
        st.caption(md(f"Testing: {work.stage}, {work.seconds:.0f} s"))


def _about(endpoint: ProbedEndpoint) -> Markup:
    tried = probes.outcome(endpoint)
    lines = [
        tag("div", tag("b", endpoint.model), "  ", tag("span", endpoint.role, css="chip"), dir="auto"),
        tag("div", endpoint.address, css="dim"),
    ]
    if endpoint.why_not:
        lines.append(tag("div", "Cannot be called: ", endpoint.why_not, css="bad"))
    elif tried is None:
        lines.append(tag("div", "Not tested since the dashboard started.", css="dim"))
    elif tried.error:
        lines.append(tag("div", f"Failed at {tried.when[11:16]} UTC: ", tried.error, css="bad"))
    else:
        facts = [tag("span", name, " ", tag("b", value), css="chip") for name, value in tried.facts]
        lines.append(tag("div", *[part for fact in facts for part in (fact, " ")]))
        lines.append(tag("div", f"Tested at {tried.when[11:16]} UTC", css="dim"))
    return tag("div", *lines, css="rs")
