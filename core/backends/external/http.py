"""A pipeline behind `POST {query, history, k, filters, trace_id}`."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.backends.llm.client import run_call
from core.backends.llm.wire import EndpointWords, parsed
from core.domain.errors import ModelFailed, ModelTimedOut, PipelineFailed, PipelineTimedOut, Unavailable
from core.domain.pipelines import VARIABLE, Pipeline
from core.domain.reach import split

if TYPE_CHECKING:
    import httpx2

HINTS = {
    401: "refused the request (401): set its header in the settings file",
    403: "refused access (403)",
    404: "knows no such address (404)",
    405: "does not take POST (405)",
    413: "found the request too large (413)",
    422: "did not accept the request (422); it is sent query, history, k, filters and trace_id",
    429: "was asked too often (429)",
}
_MEANT = 8  # characters from which a header's value is taken for a secret


class PipelineEndpoint:
    """One address, any number of threads; nothing is imported or opened before the first call."""

    def __init__(self, pipeline: Pipeline, secrets: Sequence[str]) -> None:
        """Check the address. Raises BadInput, which repeats no possibly secret part, if it must not be
        called.
        """
        wrong = f"{pipeline.owner}: an endpoint's address is http://host:port/path"
        origin, path = split(
            pipeline.target, wrong, "user, password or query: give what is secret as a header"
        )
        self._url, self._pipeline, self._given = f"{origin}{path}", pipeline, tuple(secrets)
        self._words = EndpointWords(pipeline.owner, self._given)
        self._client: httpx2.AsyncClient | None = None

    def ready(self, cancel: threading.Event) -> None:  # noqa: ARG002 - nothing is waited for
        """Check the environment variables of the headers; nothing is started. Raises Unavailable if one is
        missing.
        """
        if self._client is None:
            own = {name: _filled(value, self._pipeline) for name, value in self._pipeline.headers}
            kept = (part for value in own.values() for part in (value, *value.split()))
            self._words = EndpointWords(
                self._pipeline.owner, (*self._given, *(one for one in kept if len(one) >= _MEANT))
            )
            self._open(own)

    def ask(
        self, asked: Mapping[str, Any], timeout: float, cancel: threading.Event
    ) -> tuple[bytes, float | None]:
        """Return the body of the response. A failed call is never repeated."""
        try:
            status, data = run_call(self._post(asked), self._pipeline.owner, timeout, cancel)
        except ModelTimedOut:
            raise PipelineTimedOut(f"{self._pipeline.owner} gave no reply within {timeout:.3g} s") from None
        except ModelFailed as error:
            raise PipelineFailed(str(error)) from None
        if status != 200:
            raise self._refusal(status, data)
        self._json(data)
        return self._words.clean(data.decode("utf-8", "replace")).encode(), None

    def facts(self) -> Mapping[str, Any]:
        """Fields of `DoorState`."""
        return {"kind": "HTTP", "running": self._client is not None}

    def stop(self) -> None:
        """Forget the connection."""
        self._client = None

    async def _post(self, asked: Mapping[str, Any]) -> tuple[int, bytes]:
        import httpx2

        from core.backends.llm.transport import unreachable

        client = self._client
        assert client is not None
        try:
            answer = await client.post(
                self._url, content=json.dumps(asked).encode(), headers={"content-type": "application/json"}
            )
        except httpx2.HTTPError as error:
            raise self._words.failed(unreachable(error, self._words)) from None
        return answer.status_code, answer.content

    def _open(self, own: Mapping[str, str]) -> None:
        from core.backends.llm.transport import client

        headers = {"accept": "application/json", "user-agent": "RouteScope"}
        self._client = client("", private=True, headers=headers, own=own)

    def _json(self, data: bytes) -> None:
        """Raise PipelineFailed for a web page or an empty body; the reader of replies checks the rest."""
        start = data[:64].lstrip().lower()
        if not start or start.startswith((b"<!doctype", b"<html")):
            try:
                parsed(data, self._words, "is the address right?")
            except ModelFailed as error:
                raise PipelineFailed(str(error)) from None

    def _refusal(self, status: int, data: bytes) -> PipelineFailed:
        if 300 <= status < 400:
            return PipelineFailed(
                str(self._words.failed(f"redirects elsewhere ({status}), which is not followed"))
            )
        return PipelineFailed(
            str(self._words.failed(HINTS.get(status, f"answered with status {status}"), data))
        )


def _filled(value: str, pipeline: Pipeline) -> str:
    """Replace environment variables in a header's value. Raises Unavailable if one is missing or unusable."""
    for name in VARIABLE.findall(value):
        if not os.environ.get(name):
            raise Unavailable(
                f"{pipeline.owner}: a header needs the environment variable {name}, not set here"
            )
        if not (os.environ[name].isascii() and os.environ[name].isprintable()):
            raise Unavailable(f"{pipeline.owner}: {name} contains characters that no header has")
    return VARIABLE.sub(lambda found: os.environ[found[1]], value)
