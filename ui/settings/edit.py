"""Every setting with its value and origin; changes are checked, saved and applied at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.domain import settings_file
from core.domain.errors import RouteScopeError
from core.domain.settings_file import ShownSetting
from core.engine import engine as engine_module
from ui.app import account, state, visitors
from ui.app.markup import md

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Language model": ("llm", "index_llm"),
    "Budgets": ("route_", "timing"),
    "Answers": ("answer",),
    "Reranker": ("reranker",),
    "Web search": ("web_",),
    "Reflection model": ("self_",),
    "Sessions": ("delete_",),
    "Sign-in and people": ("oidc_", "cookie_", "public_", "proxy_", "daily_"),
    "Embedding and index": ("embedder", "late_", "sparse_", "fid_", "exact_"),
}
SAVED = "settings_saved"  # what was changed last, and what it was before: for Undo
ROUND = "settings_round"  # new widgets once something was saved: they show what is in force


def draw() -> None:
    """Draw one form for each group; settings from the environment are shown but cannot be changed."""
    home = state.engine().settings.home
    st.caption(
        md(
            f"Saved in {home / settings_file.FILE}. Environment variables (ROUTESCOPE_…) take precedence. "
            "You can enter secrets here; they are never shown again."
        )
    )
    allowed = account.notice("settings")
    _draw_saved()
    left = settings_file.listed(state.engine().settings)
    for group, starts in GROUPS.items():
        mine = [one for one in left if one.name.startswith(starts)]
        left = [one for one in left if one not in mine]
        _form(group, mine, allowed=allowed)
    _form("Folders and other settings", left, allowed=allowed)


def _form(group: str, settings: list[ShownSetting], *, allowed: bool) -> None:
    if not settings:
        return
    turn = st.session_state.get(ROUND, 0)
    with (
        st.expander(group, expanded=group in ("Language model", "Budgets")),
        st.form(f"set:{group}:{turn}", border=False),
    ):
        values = {}
        columns = st.columns(2)
        for at, one in enumerate(settings):
            with columns[at % 2]:
                values[one.name] = _widget(one, turn)
        able = allowed and any(one.editable for one in settings)
        if st.form_submit_button("Save", disabled=not able, key=f"save:{group}:{turn}"):
            _save(
                {
                    one.name: values[one.name]
                    for one in settings
                    if one.editable and _changed(one, values[one.name])
                }
            )


def _widget(one: ShownSetting, turn: int) -> Any:
    label, key = md(one.name), f"set:{one.name}:{turn}"
    where = {"default": "default", "file": "set here", "environment": "set by an environment variable"}[
        one.source
    ]
    note = md(f"{one.help} ({where})")
    off = not one.editable
    if one.secret:
        held = "Stored. Type a new value to replace it, or - to remove it." if one.given else "Not set"
        return st.text_input(label, type="password", key=key, help=note, placeholder=held, disabled=off)
    if one.choices:
        return st.selectbox(
            label, one.choices, one.choices.index(one.value), key=key, help=note, disabled=off
        )
    if one.kind in (int, float):
        whole = one.kind is int
        return st.number_input(
            label,
            value=one.value,
            step=1 if whole else None,
            format=None if whole else "%g",
            key=key,
            help=note,
            disabled=off,
        )
    return st.text_input(label, "" if one.value is None else str(one.value), key=key, help=note, disabled=off)


def _changed(one: ShownSetting, value: Any) -> bool:
    if one.secret:
        return bool(value)
    return bool((value if value != "" or not one.optional else None) != one.value)


def _save(values: Mapping[str, Any]) -> None:
    """Write what was changed; a mistake gets one clear message and changes nothing."""
    if not values:
        st.info("Nothing was changed.")
        return
    known = {one.name: one for one in settings_file.listed(state.engine().settings)}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        one = known[name]
        gone = value == "-" if one.secret else value in ("", None) and one.optional
        changes[name] = None if gone else value
    before = {
        name: known[name].value if known[name].source == "file" else None
        for name in changes
        if not known[name].secret
    }
    try:
        settings_file.write(changes, state.engine().settings.home, exposed=visitors.exposed())
        engine_module.reload_engine()
    except RouteScopeError as error:
        st.error(md(str(error)))
        return
    st.session_state[SAVED] = (sorted(changes), before)
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
    st.rerun()


def _draw_saved() -> None:
    names, before = st.session_state.get(SAVED, ([], {}))
    if not names:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.success(md(f"Saved. New runs use {', '.join(names)}."), width="stretch")
        if before and st.button("Undo", key="undo_settings", help="Restores all but secrets"):
            try:
                settings_file.write(before, state.engine().settings.home, exposed=visitors.exposed())
                engine_module.reload_engine()
            except RouteScopeError as error:
                st.error(md(str(error)))
                return
            st.session_state[SAVED] = ([], {})
            st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
            st.rerun()
