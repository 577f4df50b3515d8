"""Scripts in the page: components without a look, which the browser loads from this server.

The page's policy forbids scripts written into the page itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest

from ui.app.data import DATA

STATIC = Path(st.__file__).parent / "static"  # Streamlit's own page
FIGURES = next((f"./{file.relative_to(STATIC)}" for file in STATIC.glob("static/js/PlotlyChart.*.js")), "")


def fold_sidebar(page: str) -> None:
    """Close the sidebar when `page` opens in a narrow window, and load what draws figures while it idles."""
    _script("opened")(key=f"script_{page}", height=1, data={"figures": FIGURES})


def listen(key: str, pressed: Callable[[str], None], keys: str = "") -> None:
    """Call `pressed` with each press, in order and once, before the page is drawn again.

    A press is a letter of `keys`, or the `data-press` of an element that `markup.show` drew, as Streamlit's
    buttons are too slow by the hundred. Streamlit's own shortcuts are not used where each press counts: of
    two that one run handles, it swaps different ones and drops the second of equal ones.
    """
    heard = f"{key}_heard"  # (mount of the script in the page, number of its last press)

    def hear() -> None:
        told = st.session_state[key]["pressed"]
        mount, last = st.session_state[heard]
        for number, what in told["last"]:
            if told["mount"] != mount or number > last:
                st.session_state[heard] = (told["mount"], number)
                pressed(str(what))

    told = _script("presses")(key=key, height=1, data={"keys": keys}, on_pressed_change=hear)["pressed"]
    if heard not in st.session_state:  # a browser that reconnects repeats what an ended session has heard
        st.session_state[heard] = (told["mount"], told["last"][-1][0]) if told else ("", 0)


def _script(name: str) -> Callable[..., Any]:
    """Return the component of ui/data/scripts/`name`.js."""
    manager, full = get_bidi_component_manager(), f"routescope.{name}"
    if manager.get_component_asset_root(full) is None:
        manifest = ComponentManifest("routescope", "1", [ComponentConfig(name, "scripts")])
        manager.register_from_manifest(manifest, DATA)
    return st.components.v2.component(full, js=f"{name}.js")
