"""Present: a playlist of questions for a team, one at a time, in large type."""

from __future__ import annotations

import streamlit as st

from ui.app import address, say
from ui.present import playlists, slide


def page() -> None:
    """Draw the current slide, or else the playlists."""
    known = playlists.known()
    address.take("playlist", playlists.NAME, address.one_of(list(known)))
    address.take("at", slide.AT, lambda text: int(text) - 1)
    address.take("play", slide.PLAYING, lambda text: text == "1")
    if st.session_state.get(playlists.NAME) not in known:
        st.session_state[playlists.NAME] = next(iter(known), None)
    name = st.session_state[playlists.NAME]
    if st.session_state.get(slide.PLAYING) and name and known[name]:
        slide.play(known[name])
    else:
        playlists.manage(known)
    playing = bool(st.session_state.get(slide.PLAYING))
    address.keep("playlist", name)
    address.keep("at", str(st.session_state.get(slide.AT, 0) + 1) if playing else None)
    address.keep("play", "1" if playing else None)


with say.errors():
    page()
