"""Drawing the page again when something that it looked at by itself has ended."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState


def page() -> None:
    """For a fragment that looks again every while: draw the whole page again, now.

    Nothing is done while the whole page is being drawn, or a larger fragment, in which the fragment is a
    part: begun anew, that drawing would no longer know of the button that was pressed for it. The fragment
    looks again soon.
    """
    context = get_script_run_ctx(suppress_warning=True)
    drawn = context.fragment_ids_this_run if context is not None else None
    if drawn and ThreadState.get().fragment_id in drawn:
        st.rerun()
