"""Access control for Streamlit's own addresses: the role that each needs, and limits on uploads."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict, defaultdict, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config, runtime

from core.domain import people
from core.domain.people import Deed
from ui.app import account

log = logging.getLogger(__name__)
# None: whoever reaches the server, as the page to sign in is drawn with it.
NEEDED: Mapping[str, Deed | None] = {
    "/_stcore/health": None,
    "/_stcore/host-config": None,
    "/_stcore/stream": None,
    "/_stcore/bidi-components/": "look",
    "/_stcore/metrics": "settings",
    "/_stcore/upload_file/": "look",
    "/component/": "look",
    "/media/": "look",
}
CLOSED = ("/_stcore", "/app/", "/component", "/media")  # below these nothing but NEEDED is served
UPLOADS, MEDIA = "/_stcore/upload_file/", "/media/"
SESSION_BYTES, ALL_BYTES = 200 << 20, 1 << 30  # uploads held in memory: of one browser tab, and in all
FILE_BYTES = 4096  # counted for a file at least, so that many empty ones are not free
UNKNOWN = 100  # sockets of visitors who are not signed in
SWEEP_S, WARM_S = 15.0, 5.0  # seconds between sweeps; after the start, when the first page is drawn
# What an account was sent the address of: a file on a page, or a place for an upload.
_ADDRESS = re.compile(rb"/(media/[0-9a-f]{32}|_stcore/upload_file/[0-9a-f-]{36}/[0-9a-f-]{36})")
_REMEMBERED = 20_000  # addresses
IDLE = b"J\x00"  # a ForwardMsg whose session_status_changed says that no script is running
HOLD_S = 0.1  # the longest that a message waits for the end of the run that it belongs to


class _TooLarge(Exception):
    """An upload that exceeds the memory limits."""


class Batched:
    """Sends the messages of one run of a page together, or after HOLD_S if the run takes longer.

    The browser draws all elements again for each group of messages: one group is one drawing.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: deque[Message] = deque()
        self._in_order = asyncio.Lock()
        self._later: asyncio.Task[None] | None = None

    async def __call__(self, message: Message) -> None:
        """Hold the message, or send it with all held ones. Raises what a delayed sending raised."""
        if self._later is not None and self._later.done():
            self._later.result()
        self._held.append(message)
        ended = message["type"] != "websocket.send" or message.get("bytes") == IDLE
        if ended or self._in_order.locked():  # a browser that reads slowly makes the server wait
            await self._all()
        elif self._later is None or self._later.done():
            self._later = asyncio.create_task(self._all(HOLD_S))

    def cancel(self) -> None:
        """Stop the delayed sending."""
        if self._later is not None:
            self._later.cancel()

    async def _all(self, after: float = 0.0) -> None:
        await asyncio.sleep(after)
        async with self._in_order:
            while self._held:
                await self._send(self._held.popleft())


class Framework:
    """Middleware that refuses Streamlit's own addresses to roles that may not use them.

    With a login, an upload or a download is answered only for the account whose page was sent its address.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._sent: OrderedDict[tuple[str, str], None] = OrderedDict()  # (account, address), oldest first
        self._unknown = 0
        self._arriving: defaultdict[str, int] = defaultdict(int)  # bytes of uploads under way, by session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer with 403, 404 or 413."""
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"].removeprefix(
            f"/{config.get_option('server.baseUrlPath').strip('/')}".rstrip("/")
        )
        prefix = next(
            (one for one in NEEDED if path == one or (one[-1] == "/" and path.startswith(one))), None
        )
        refusal = None
        if prefix is None and path.startswith(CLOSED):
            refusal = PlainTextResponse("there is nothing here", 404)
        elif prefix is not None and (deed := NEEDED[prefix]) is not None:
            asking = account.of_request(HTTPConnection(scope))
            why = people.why_not(deed, asking)
            file = path.lstrip("/").partition(".")[0]
            if not why and asking.account and prefix in (UPLOADS, MEDIA):
                why = "" if (asking.account, file) in self._sent else "this file is on no page of yours"
            refusal = PlainTextResponse(why, 403) if why else None
        if refusal is not None:
            await refusal(scope, receive, send)
        elif prefix == UPLOADS and scope["method"] == "PUT":
            await self._upload(path.split("/")[3], scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        asking = account.of_request(HTTPConnection(scope))
        unknown = asking.role is None
        if unknown and self._unknown >= UNKNOWN:
            await send({"type": "websocket.close", "code": 1013})
            return

        async def send_and_note(message: Message) -> None:
            if asking.account and message["type"] == "websocket.send":
                for found in _ADDRESS.findall(message.get("bytes") or b""):
                    self._sent[asking.account, found.decode()] = None
                    self._sent.move_to_end((asking.account, found.decode()))
                while len(self._sent) > _REMEMBERED:
                    self._sent.popitem(last=False)
            await batched(message)

        batched = Batched(send)
        self._unknown += unknown
        try:
            await self.app(scope, receive, send_and_note)
        finally:
            batched.cancel()
            self._unknown -= unknown

    async def _upload(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        taken = FILE_BYTES
        self._arriving[session] += taken

        async def receive_and_count() -> Message:
            nonlocal taken
            message = await receive()
            size = len(message.get("body", b""))
            taken += size
            self._arriving[session] += size
            if not size:  # after the last part the file is held, and would count twice
                return message
            held = _held()
            if (
                held.get(session, 0) + self._arriving[session] > SESSION_BYTES
                or sum(held.values()) + sum(self._arriving.values()) > ALL_BYTES
            ):
                raise _TooLarge
            return message

        try:
            await self.app(scope, receive_and_count, send)
        except _TooLarge:
            why = (
                f"uploads may take {SESSION_BYTES >> 20} MB for one tab and {ALL_BYTES >> 20} MB for all "
                "people; take files away, or wait until others have"
            )
            await PlainTextResponse(why, 413)(scope, receive, send)
        finally:
            self._arriving[session] -= taken
            if not self._arriving[session]:
                del self._arriving[session]


def _held() -> dict[str, int]:
    """Return the bytes of uploads in memory by session."""
    files = _uploads()
    return {
        session: sum(max(FILE_BYTES, len(file.data)) for file in list(kept.values()))
        for session, kept in list(files.items())
    }


def _uploads() -> Mapping[str, Any]:
    found: Mapping[str, Any] = runtime.get_instance().uploaded_file_mgr.file_storage  # type: ignore[attr-defined]
    return found


def free_uploads() -> None:
    """Free the uploads of sessions that ended: Streamlit keeps them until another session happens to end."""
    running = runtime.get_instance()
    sessions: Any = running._session_mgr  # Streamlit has no public way to a session that is waiting
    waiting = sessions._session_storage
    ids = {one.session.id for one in waiting.list()}
    waiting._cache.expire()
    for session in list(_uploads()):
        if session not in ids and not sessions.is_active_session(session):
            running.uploaded_file_mgr.remove_session_files(session)


def _warm() -> None:
    """Import what evaluates and draws: the first page with a figure would take a second longer."""
    import pandas  # noqa: F401, ICN001
    import plotly.graph_objects as go

    from core.evaluation import leaderboard  # noqa: F401
    from core.evaluation.templating import macros

    go.Figure().add_bar(x=[0.0])
    macros("decision.txt")


@asynccontextmanager
async def sweeping(_: object) -> AsyncIterator[None]:
    """Free uploads of sessions that ended, every SWEEP_S seconds while the server runs."""

    async def sweep() -> None:
        await asyncio.sleep(WARM_S)
        await asyncio.to_thread(_warm)
        while True:
            await asyncio.sleep(SWEEP_S)
            try:
                free_uploads()
            except Exception:
                log.exception("uploads of sessions that ended could not be freed")

    task = asyncio.create_task(sweep())
    try:
        yield
    finally:
        task.cancel()
