"""Drawing the page again when something that it looked at by itself has ended."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState


def page() -> None:
    """Redraw the whole page from a fragment that refreshes regularly.

    Nothing happens while the page, or a larger fragment around this one, is being drawn: a new run would
    lose the button press that started it. The fragment soon tries again.
    """
    context = get_script_run_ctx(suppress_warning=True)
    drawn = context.fragment_ids_this_run if context is not None else None
    if drawn and ThreadState.get().fragment_id in drawn:
        st.rerun()
