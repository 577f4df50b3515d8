"""Host and origin checks: only pages of the server's own address may talk to it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect, WebSocketDisconnected
from streamlit import config

from core.domain import reach, sign_in
from core.domain import settings as settings_module
from core.domain.sign_in import NO_LOGIN as NO_LOGIN

log = logging.getLogger(__name__)
PORTS = {"http": 80, "https": 443}
HEALTH = "/_stcore/health"
SEALED, SEAL = "x-routescope-account", secrets.token_hex(32)  # the header's name, and what proves it is ours
NO_TEXT, POLICY = 1003, 1008  # WebSocket close codes: data of a kind that is not accepted, policy violation


def exposed() -> bool:
    """Return whether other machines or accounts can reach the server."""
    return bool(settings_module.current().login) or listens_elsewhere()


def listens_elsewhere() -> bool:
    """Return whether the server listens on more than loopback."""
    address = str(config.get_option("server.address") or "")
    found = reach.literal(address.strip("[]"))
    return not (
        address == "localhost" or address.startswith("unix:") or (found is not None and found.is_loopback)
    )


class Door:
    """Lets in whom the login lets in. Without one nobody comes from elsewhere, however the server was
    started. Behind a proxy that people sign in to, the proxy alone may connect; the account it names is
    passed on in a header of our own with a seal that nobody outside this process knows, and all that came
    under that name is dropped.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._settings = settings_module.current()
        self._trusted = sign_in.trusted(self._settings) if self._settings.login == "proxy" else ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or answer with 403."""
        if scope["type"] in ("http", "websocket"):
            why = self._refusal(scope)
            if why:
                await _refuse(why, scope, receive, send)
                return
            if self._settings.login == "proxy":
                scope = {**scope, "headers": self._sealed(scope["headers"])}
        await self.app(scope, receive, send)

    def _refusal(self, scope: Scope) -> str:
        login = self._settings.login
        if not login:
            host, port = scope.get("server") or ("", None)
            address = reach.literal(host)  # where this connection came in; a socket file has no port
            here = port is None or (address is not None and address.is_loopback) or host == "localhost"
            return "" if here else NO_LOGIN
        if login == "proxy" and scope["path"] != HEALTH:
            peer = scope.get("client")
            if not sign_in.is_trusted(peer[0] if peer else None, self._trusted):
                return "this server answers to its proxy alone"
        return ""

    def _sealed(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        own = self._settings.proxy_header.lower().encode()
        given = [value for name, value in headers if name.lower() == own]
        kept = [(name, value) for name, value in headers if name.lower() not in (own, SEALED.encode())]
        if len(given) == 1 and given[0].strip():  # of two nobody knows which is the proxy's
            kept.append((SEALED.encode(), f"{SEAL} ".encode() + given[0].strip()))
        return kept


async def _refuse(why: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":  # closed before it is open: the handshake is answered by 403
        await send({"type": "websocket.close", "code": POLICY})
    else:
        await PlainTextResponse(why, 403)(scope, receive, send)


class OwnOrigin:
    """Middleware that refuses requests from pages of another origin.

    Streamlit compares only host names, so any program on another port of this machine could make a visitor's
    browser ask questions, change settings and delete runs. Browsers send the page's origin with every
    WebSocket and with every request that changes something.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is the server's own; all else gets 403, also at a WebSocket's handshake."""
        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            own = {headers.get("host", "").lower(), *configured()}
            if not all(is_own(origin, own) for origin in headers.getlist("origin")):
                await _refuse("a page of another origin may not talk to this server", scope, receive, send)
                return
        await self.app(scope, receive, send)


def configured() -> set[str]:
    """Return the hosts with ports that the configuration names as this server's addresses."""
    allowed = config.get_option("server.corsAllowedOrigins")
    found = {urlsplit(str(origin).strip()).netloc.lower() for origin in allowed}
    if config.is_manually_set("browser.serverAddress"):
        address, port = (config.get_option(f"browser.{name}") for name in ("serverAddress", "serverPort"))
        found.add(f"{address}:{port}".lower())
    return found - {""}


def is_own(origin: str, own: set[str]) -> bool:
    """Return whether an Origin header names one of `own`: a host, or a host and port."""
    try:
        parts = urlsplit(origin)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return False
    if parts.scheme not in PORTS or not parts.hostname:
        return False
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    names = {f"{host}:{port}", host} if port == PORTS[parts.scheme] else {f"{host}:{port}"}
    return bool(names & own)


class Departures:
    """Middleware that handles visitors who leave, or send unexpected messages, without logging an error."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        logging.getLogger("streamlit.web.server.starlette.starlette_websocket").addFilter(_may_log)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything through; only WebSockets are looked at."""
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return

        async def receive_bytes() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive" and message.get("bytes") is None:
                await send({"type": "websocket.close", "code": NO_TEXT})
                return {"type": "websocket.disconnect", "code": NO_TEXT}
            return message

        try:
            await self.app(scope, receive_bytes, send)
        except (WebSocketDisconnect, WebSocketDisconnected) as gone:
            log.debug("a visitor went away: %s", gone)


def _may_log(record: logging.LogRecord) -> bool:
    """Return whether Streamlit's WebSocket may log a record: not errors of sending to a visitor who left."""
    return not (record.exc_info and isinstance(record.exc_info[1], WebSocketDisconnected))
