"""Endpoints: their addresses, and the abilities found by testing them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.backends.llm import profile as learned
from core.backends.llm.profile import Profile
from core.corpus import builds
from core.domain import people
from core.engine import endpoints
from ui.app import say, state
from ui.app.markup import fragment, show
from ui.app.progress import follow_work

KNOWN = {True: "yes", False: "no", None: "not known"}


def draw() -> None:
    """Draw each endpoint with its known abilities and a button to test it."""
    st.caption("A test makes a few small calls that bypass every cache, and starts an embedded model.")
    engine = state.engine()
    for endpoint in endpoints.endpoints(engine.settings):
        name = f"try {endpoint.title}"
        work = builds.get(name)
        busy = work is not None and not work.done
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                show(fragment("settings.endpoint", endpoint))
                if st.button("Test", key=f"try:{endpoint.title}", disabled=busy):
                    builds.start_work(name, partial(endpoints.try_endpoint, engine, endpoint))
                    st.rerun()
            if busy and work is not None:
                follow_work(name, f"Testing: {work.stage}")
            elif work is not None and work.error:
                say.error(work.error)
    for profile in learned.every(engine.settings.home):
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            show(fragment("settings.learned", profile, _facts(profile)))
            if st.button("Reset", key=f"reset:{profile.endpoint}:{profile.model}"):
                people.require("settings")
                learned.StoredProfile(engine.settings.home, profile.endpoint, profile.model).reset()
                st.rerun()


def _facts(profile: Profile) -> dict[str, str]:
    """Return what an endpoint accepts and how its model replies, as measured."""
    return {
        "token probabilities": KNOWN[profile.probabilities],
        "reasoning": KNOWN[profile.reasons],
        "reasoning tokens": f"{profile.reasoning_tokens:,}",
        "context": f"{profile.context:,}" if profile.context else "not told",
        "model served": profile.served or "not known",
    }
