"""Drawing the page again when something that it looked at by itself has ended."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx


def page() -> None:
    """For a fragment that looks again every while: draw the whole page again, now.

    Nothing is done while the whole page is being drawn, in which the fragment is a part: begun anew, that
    drawing would no longer know of the button that was pressed for it. The fragment looks again soon.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is not None and context.fragment_ids_this_run:
        st.rerun()
