"""The models there are, those that are here, fetching one, and the embedded server."""

from __future__ import annotations

import threading

import streamlit as st

from core.backends.llm import catalogue, server_state, start_server, stop_server
from core.backends.llm.catalogue import CatalogueEntry
from core.backends.llm.fetch import pull
from core.corpus import builds
from core.corpus.build import Progress as Report
from core.domain.format import size
from ui.app import say, state
from ui.app.markup import fragment, show


def draw() -> None:
    """Draw every known model with its size and use, and a button to download missing ones."""
    settings = state.engine().settings
    say.caption(f"Stored in {settings.models_dir}, verified by SHA-256.")
    for entry in catalogue.entries(settings):
        _entry(entry, used=not settings.llm_base_url and settings.llm == entry.artefact.name)
    _server()


def _entry(entry: CatalogueEntry, *, used: bool) -> None:
    known = entry.artefact
    work = builds.get(f"model {known.name}")
    busy = work is not None and not work.done
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        error = work.error if work is not None and not entry.present else ""
        show(fragment("settings.model", entry, used, error))
        if not entry.present and st.button("Download", key=f"pull:{known.name}", disabled=busy):
            _fetch(known.name)
            st.rerun()
        if busy:
            st.caption("Downloading. Progress and Stop are in the sidebar.")


def _fetch(name: str) -> None:
    settings = state.engine().settings

    def work(report: Report, cancel: threading.Event) -> None:
        def progress(stage: str, done: int, total: int) -> None:
            report(f"{stage} {size(done)} of {size(total)}", done, total)

        pull(name, settings=settings, progress=progress, cancel=cancel)

    builds.start_work(f"model {name}", work)


def _server() -> None:
    """Draw the embedded server's state, with buttons that start or stop it for all programs."""
    settings = state.engine().settings
    now = server_state(settings)
    if now is None:
        say.caption(f"The language model runs at {settings.llm_base_url}: no embedded server is needed.")
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        idle = f"stops after {settings.llm_idle_minutes:g} minutes without a call"
        say.caption(f"Embedded server: {now.phase}. It starts with the first call to the model and {idle}.")
        if now.phase in ("off", "failed"):
            if st.button("Start", key="start_server"):
                start_server(settings)
                st.rerun()
        elif st.button("Stop", key="stop_server", help="Stops it for every program on this machine"):
            stop_server(settings)
            st.rerun()
        st.button("Refresh", key="server_again")
