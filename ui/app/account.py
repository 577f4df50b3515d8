"""The current person and role, from Streamlit's login or a trusted proxy's header, and signing out."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from starlette.requests import HTTPConnection
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.starlette import starlette_websocket

from core.domain import people, sign_in
from core.domain import settings as settings_module
from core.domain.errors import BadInput
from core.domain.people import MACHINE, NOBODY, Deed, Person
from core.engine import engine as engine_module
from core.store import Store
from ui.app import visitors
from ui.app.markup import md, show, tag

COOKIE = "_streamlit_user"  # of who signed in; its name is Streamlit's
REMEMBERED = 10_000  # sign-outs: more than a day of a large team has
_left: dict[str, None] = {}  # hashes of the cookies that somebody signed out with, the oldest first
_lock = threading.Lock()


def person() -> Person:
    """Return the person behind this thread; NOBODY if the server has a login and the thread no session."""
    now = settings_module.current()
    if not now.login:
        return MACHINE
    name, _ = _known(now.login)
    return Person(name, people.role_of(name, now.team.roles)) if name else NOBODY


people.find_by(person)


def admitted() -> bool:
    """Return whether the current person may see pages; otherwise draw how to sign in."""
    now = settings_module.current()
    if not now.login and visitors.listens_elsewhere():  # the page was started without the program around it
        st.error(md(visitors.NO_LOGIN))
        return False
    who = people.current()
    if who.may("look"):
        return True
    st.space("medium")  # below the logo, which hangs above the page without a sidebar
    st.subheader("Sign in to RouteScope", anchor=False)
    _, why = _known(now.login)
    if who.account:
        st.warning(
            md(f"You are signed in as {who.account}, which has no role here. An owner can give it one.")
        )
        _sign_out("sign_out_page")
    elif why:
        st.error(md(why))
        _sign_out("sign_out_page")
    elif now.login == "oidc":
        st.caption("People of this team ask questions here, compare routes and label passages.")
        if st.button("Sign in", key="sign_in", type="primary"):
            st.login()
    else:
        st.error("The proxy in front of this server named no account. Open the dashboard by its address.")
    return False


def sidebar() -> None:
    """Draw the account with its role, today's tokens and Sign out; nothing without a login."""
    who = people.current()
    if not who.account:
        return
    with st.container(key="account", gap="small"):
        show(tag("div", tag("b", who.account), tag("span", f" {who.role}", css="dim"), css="rs rs-account"))
        daily = engine_module.shared_engine().settings.daily_tokens
        if daily is not None and who.may("ask a model"):
            used = people.spent(who)
            st.caption(f"{used:,} of {daily:,} model tokens used today (UTC)")
        _sign_out("sign_out")


def needs(deed: Deed, *, disabled: bool = False, help: str | None = None) -> dict[str, Any]:
    """Return `disabled` and `help` for a control that a role may not allow; `help` then gives the reason."""
    why = people.why_not(deed)
    return {"disabled": True, "help": md(_sentence(why))} if why else {"disabled": disabled, "help": help}


def notice(deed: Deed) -> bool:
    """Return whether the deed is allowed; otherwise draw the reason."""
    why = people.why_not(deed)
    if why:
        st.info(md(_sentence(why)))
    return not why


def key() -> str:
    """Return the current account for cache keys, since people see different runs."""
    return people.current().account


def by(store: Store, deed: str, about: str) -> str:
    """Return " by NAME", who did something first; "" if that is not recorded."""
    who = store.maker(deed, about) if people.current().account else ""
    return f" by {who}" if who else ""


def _sentence(why: str) -> str:
    return f"{why[:1].upper()}{why[1:]}."


def of_request(asking: HTTPConnection) -> Person:
    """Return who sends a request that belongs to no page's session: a download, an upload, a handshake."""
    now = settings_module.current()
    if not now.login:
        return MACHINE
    try:
        if now.login == "proxy":
            name = _sealed(asking.headers.get(visitors.SEALED, ""))
        else:
            name, _ = _verified(_of_cookie(asking.cookies), asking.cookies)
    except BadInput:
        return NOBODY
    return Person(name, people.role_of(name, now.team.roles)) if name else NOBODY


def of_agent(asking: HTTPConnection) -> Person:
    """Return who sends an agent's request: the account of its token, else as `of_request`."""
    given = asking.headers.get("authorization", "")
    now = settings_module.current()
    if not given or not now.login:
        return of_request(asking)
    try:
        name = sign_in.of_token(given, now)
    except BadInput:  # the settings name no account
        return NOBODY
    return Person(name, people.role_of(name, now.team.roles)) if name else NOBODY


def _known(login: str) -> tuple[str, str]:
    """Return the account and, if a sign-in failed, the reason; both are "" if nobody signed in."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return "", ""
    try:
        if login == "oidc":
            return _verified(st.user.to_dict(), st.context.cookies)
        return _sealed(str(st.context.headers.get(visitors.SEALED, ""))), ""
    except BadInput as error:
        return "", str(error)


def _verified(told: Mapping[str, Any], cookies: Mapping[str, str]) -> tuple[str, str]:
    """Return the account that an identity provider names and, if it is rejected, the reason; "" for none."""
    if told.get("is_logged_in") is not True or _hash(cookies) in _left:
        return "", ""
    if settings_module.current().oidc_email == "verified" and told.get("email_verified") not in (
        True,
        "true",
    ):
        return "", "Your identity provider does not say that it verified your email address."
    return people.account(told.get("email")), ""


def _of_cookie(cookies: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the claims in Streamlit's signed cookie, or {} without a valid one."""
    signed = starlette_websocket._get_signed_cookie_with_chunks(dict(cookies), COOKIE)
    if not signed:
        return {}
    where = urlsplit(settings_module.current().public_url)
    return starlette_websocket._parse_decoded_user_cookie(signed, f"{where.scheme}://{where.netloc}")


def _sealed(header: str) -> str:
    """Return the account in a header sealed by `visitors.Door`, or "" if the seal is missing."""
    seal, _, name = header.partition(" ")
    return people.account(name) if seal == visitors.SEAL and name else ""


def _sign_out(key: str) -> None:
    now = settings_module.current()
    if now.login == "oidc":
        if st.button("Sign out", key=key):
            with _lock:
                _left[_hash(st.context.cookies)] = None  # other tabs of the browser keep their session else
                while len(_left) > REMEMBERED:
                    del _left[next(iter(_left))]
            st.logout()
    elif now.proxy_sign_out:
        show(tag("a", "Sign out", href=now.proxy_sign_out, target="_self", css="rs"))


def _hash(cookies: Mapping[str, str]) -> str:
    """Return a hash over all parts of the sign-in cookie, or "" without one."""
    parts = sorted((name, value) for name, value in cookies.items() if name.startswith(COOKIE))
    return hashlib.sha256(repr(parts).encode()).hexdigest() if parts else ""
