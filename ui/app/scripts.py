"""Scripts in the page: components without a look, which the browser loads from this server.

The page's policy forbids scripts written into the page itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest

from ui.app.data import DATA


def fold_sidebar(page: str) -> None:
    """Close the sidebar when `page` opens in a narrow window."""
    _script("narrow")(key=f"script_{page}", height=1)


def listen(key: str, pressed: Callable[[str], None]) -> None:
    """Call `pressed` with the `data-press` of each element that is pressed, before the page is drawn again.

    Elements that `markup.show` draws become controls: Streamlit's buttons are too slow by the hundred.
    """
    _script("presses")(
        key=key, height=1, on_pressed_change=lambda: pressed(str(st.session_state[key]["pressed"]))
    )


def _script(name: str) -> Callable[..., Any]:
    """Return the component of ui/data/scripts/`name`.js."""
    manager, full = get_bidi_component_manager(), f"routescope.{name}"
    if manager.get_component_asset_root(full) is None:
        manifest = ComponentManifest("routescope", "1", [ComponentConfig(name, "scripts")])
        manager.register_from_manifest(manifest, DATA)
    return st.components.v2.component(full, js=f"{name}.js")
