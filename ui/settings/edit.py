"""Every setting with its value and origin; changes are checked, saved and applied at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from core.domain import settings_file
from core.domain.settings_file import ShownSetting
from core.engine import engine as engine_module
from ui.app import account, outcome, say, state, visitors
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
ORIGINS = {"default": "default", "file": "set here", "environment": "set by an environment variable"}
ROUND = "settings_round"  # new widgets once something was saved: they show what is in force


def draw() -> None:
    """Draw one form for each group; settings from the environment are shown but cannot be changed."""
    home = state.engine().settings.home
    where = f"Saved in {home / settings_file.FILE}; environment variables (ROUTESCOPE_…) take precedence."
    say.caption(f"{where} Secrets are never shown again.")
    allowed = account.notice("settings")
    outcome.draw("settings", "undo_settings")
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
            _save({one: values[one.name] for one in settings if one.editable})


def _widget(one: ShownSetting, turn: int) -> Any:
    label, key = md(one.name), f"set:{one.name}:{turn}"
    note = md(f"{one.help} ({ORIGINS[one.source]})")
    off = not one.editable
    if one.secret:
        held = "Stored. Type a new value to replace it, or - to remove it." if one.given else "Not set"
        return st.text_input(label, type="password", key=key, help=note, placeholder=held, disabled=off)
    given: dict[str, Any] = {"key": key, "help": note, "disabled": off}
    if one.choices:
        return st.selectbox(label, one.choices, one.choices.index(one.value), **given)
    if one.kind in (int, float):
        whole = one.kind is int
        form = None if whole else "%g"
        return st.number_input(label, value=one.value, step=1 if whole else None, format=form, **given)
    return st.text_input(label, "" if one.value is None else str(one.value), **given)


def _save(values: Mapping[ShownSetting, Any]) -> None:
    """Write what was changed; a mistake gets one clear message and changes nothing."""
    changes: dict[str, Any] = {}
    for one, value in values.items():
        after = None if (value == "-" if one.secret else one.optional and value == "") else value
        if bool(value) if one.secret else after != one.value:
            changes[one.name] = after
    if not changes:
        st.info("Nothing was changed.")
        return
    known = {one.name: one for one in values}
    open_ = [known[name] for name in changes if not known[name].secret]
    before = {one.name: one.value if one.source == "file" else None for one in open_}
    with say.errors():
        _write(changes)
        undo = partial(_write, before) if before else None
        done = outcome.Outcome(f"Saved. New runs use {', '.join(sorted(changes))}.", undo)
        outcome.act("settings", lambda: done)
        st.rerun()


def _write(changes: Mapping[str, Any]) -> None:
    settings_file.write(changes, state.engine().settings.home, exposed=visitors.exposed())
    engine_module.reload_engine()
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
