"""People with their roles, today's tokens and recent actions; owners change roles."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from core.domain import people, settings_file
from core.domain.people import ROLES
from core.engine import engine as engine_module
from ui.app import account, say, state
from ui.app.markup import show, table, tag

NEWEST = 100  # lines of what people did
NO_ROLE = "no role"
MEANS = {
    "viewer": "looks at what is shared, asks routes that call no language model",
    "labeller": "labels, and asks language models within the daily budget",
    "editor": "makes label sets, corpora, evaluations and presets; exports and releases",
    "owner": "deletes what others made, changes settings and roles",
}


def draw() -> None:
    """Draw roles, a form for owners, and the newest actions."""
    engine = state.engine()
    if not engine.settings.login:
        st.info(
            "There is no login, so there are no accounts: whoever reaches this page is its owner. "
            "docs/start-team.md shows how to set one up."
        )
        return
    roles = engine.settings.team.roles
    used = state.store().spent_today()
    st.caption("A role includes those above it. An account's own role goes before that of its domain.")
    _table(("Role", "May"), MEANS.items())
    st.markdown("**Accounts**")
    me = people.current()
    if not me.may("settings"):  # what others used is the owners' to know
        used = {name: tokens for name, tokens in used.items() if name == me.account}
    rows = []
    for name in dict.fromkeys([*roles, *used]):
        role = roles.get(name) or people.role_of(name, roles) or NO_ROLE
        rows.append((name, role, f"{used[name]:,}" if name in used else ""))
    _table(("Account", "Role", "Model tokens today (UTC)"), rows)
    if account.notice("settings"):
        _form()
    if done := state.store().done(NEWEST):
        st.markdown("**What people did**")
        deeds = [(one.at[:16].replace("T", " "), one.who, one.deed, one.about) for one in done]
        _table(("When (UTC)", "Who", "What", "About"), deeds)


def _form() -> None:
    with st.form("people_role", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        who = st.text_input("Email, @domain, or * for everybody else", key="people_who", width=320)
        role = st.selectbox("Role", [*ROLES, NO_ROLE], key="people_as", width=160)
        saved = st.form_submit_button("Save role", key="people_save")
    if not saved:
        return
    chosen = next((one for one in ROLES if one == role), None)
    with say.errors():
        settings_file.write_role(who, chosen, state.engine().settings.home)
        engine_module.reload_engine()
        st.rerun()


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    show(tag("div", table(heads, rows), css="rs"))
