"""ASGI entry, run by `streamlit run app.py`: the dashboard behind security headers and checks of who asks."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.domain import process_setup, settings, sign_in, system
from core.domain.errors import RouteScopeError
from ui.app import agents
from ui.app.framework import Framework, sweeping
from ui.app.markup import md
from ui.app.visitors import Departures, Door, OwnOrigin, listens_elsewhere


def secrets() -> dict[str, Any]:
    """Return the secrets of Streamlit's login.

    Ends the process if others could reach the server without a login.
    """
    try:
        now = settings.current()
        sign_in.check(now)
    except RouteScopeError as error:
        sys.exit(f"error: {error}")
    if not now.login and listens_elsewhere():
        sys.exit(f"error: {sign_in.NO_LOGIN}")
    return sign_in.streamlit_secrets(now)


def told(error: Exception) -> bool:
    """Show a RouteScopeError of a callback as one line and return True; leave other errors to Streamlit."""
    if not isinstance(error, RouteScopeError):
        return False
    st.error(md(str(error)))
    return True


process_setup.settle()
system.conceal()
process_setup.end_with_parent()


def inline_scripts() -> list[str]:
    """CSP hashes of the scripts written into Streamlit's own page, so that no others need be allowed."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]


# Everything a page shows (documents, questions, model texts) may be hostile: should some escape be missed,
# the browser still loads nothing from elsewhere and runs no script but the ones served here.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        " ".join(("script-src 'self' 'wasm-unsafe-eval'", *inline_scripts())),
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",  # its WebSocket too: the same host and port
        "worker-src 'self' blob:",
        "media-src 'self' blob: data:",
        "frame-src 'self' blob:",
        "frame-ancestors 'self'",
        "base-uri 'self'",
        "form-action 'self'",
        "object-src 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class SecurityHeaders:
    """Adds `HEADERS` to every HTTP response, errors and static files included."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything through; only the start of an HTTP response is touched."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, send_with_headers)


app = st.App(
    "pages/frame.py",
    secrets=secrets(),
    on_script_error=told,
    lifespan=sweeping,
    routes=[agents.ROUTE],
    middleware=[
        Middleware(SecurityHeaders),
        Middleware(Door),
        # Streamlit checks the host of the WebSocket only; files and pages deserve the same.
        Middleware(TrustedHostMiddleware, allowed_hosts=st.get_option("server.allowedHosts") or ["*"]),
        Middleware(OwnOrigin),
        Middleware(Framework),
        Middleware(Departures),
    ],
)
