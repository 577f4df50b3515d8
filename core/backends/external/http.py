"""A pipeline behind `POST {query, history, k, filters, trace_id}`."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from core.backends.endpoint import Endpoint
from core.backends.llm.wire import EndpointWords, parsed
from core.domain.errors import ModelFailed, ModelTimedOut, PipelineFailed, PipelineTimedOut, Unavailable
from core.domain.pipelines import VARIABLE, Pipeline
from core.domain.reach import split

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
        rest = "user, password or query: give what is secret as a header"
        self._url = "".join(split(pipeline.target, wrong, rest))
        self._pipeline, self._secrets = pipeline, tuple(secrets)
        self._endpoint: Endpoint | None = None

    def ready(self, cancel: threading.Event) -> None:  # noqa: ARG002 - nothing is waited for
        """Fill the headers from the environment; nothing is started. Raises Unavailable if a variable is
        missing.
        """
        if self._endpoint is None:
            headers = {name: _filled(value, self._pipeline) for name, value in self._pipeline.headers}
            parts = (part for value in headers.values() for part in (value, *value.split()))
            secrets = (*self._secrets, *(one for one in parts if len(one) >= _MEANT))
            words = EndpointWords(self._pipeline.owner, secrets)
            self._endpoint = Endpoint(self._url, words, headers=headers, hints=HINTS)

    def ask(
        self, asked: Mapping[str, Any], timeout: float, cancel: threading.Event
    ) -> tuple[bytes, float | None]:
        """Return the body of the response. A failed call is never repeated."""
        self.ready(cancel)
        assert self._endpoint is not None
        words = self._endpoint.words
        try:
            data = self._endpoint.once(timeout, cancel, asked)
            start = data[:64].lstrip().lower()
            if not start or start.startswith(b"<"):  # the reader of replies checks the rest
                parsed(data, words, "is the address right?")
        except ModelTimedOut:
            raise PipelineTimedOut(f"{self._pipeline.owner} gave no reply within {timeout:.3g} s") from None
        except ModelFailed as error:
            raise PipelineFailed(str(error)) from None
        return words.clean(data.decode("utf-8", "replace")).encode(), None

    def facts(self) -> Mapping[str, Any]:
        """Fields of `DoorState`."""
        return {"kind": "HTTP", "running": self._endpoint is not None}

    def stop(self) -> None:
        """Forget the connection."""
        self._endpoint = None


def _filled(value: str, pipeline: Pipeline) -> str:
    """Replace environment variables in a header's value. Raises Unavailable if one is missing or unusable."""
    for name in VARIABLE.findall(value):
        found = os.environ.get(name)
        if not found or not (found.isascii() and found.isprintable()):
            lack = "contains characters that no header has" if found else "is not set here"
            raise Unavailable(f"{pipeline.owner}: the environment variable {name} of a header {lack}")
    return VARIABLE.sub(lambda found: os.environ[found[1]], value)
