"""The language model as the engine sees it: an endpoint, behind the cache and the recordings."""

from __future__ import annotations

import importlib.util
import math
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from core.backends import admission
from core.backends.base import Completion, LLMRequest
from core.backends.llm import catalogue, charging
from core.backends.llm.cache import CompletionCache, key_of
from core.backends.llm.client import ChatClient
from core.backends.llm.completions import CompletionsClient
from core.backends.llm.launch import EmbeddedServer, ServerState
from core.backends.llm.profile import StoredProfile
from core.backends.llm.recordings import Recordings
from core.backends.llm.wire import ConnectionLost
from core.domain import reach
from core.domain.errors import BadInput, Unavailable
from core.domain.models import filled
from core.domain.program import INSTALLED
from core.domain.settings import Settings

NO_MODEL = "this run does not call a model"
INSTALL = "pip install 'routescope[models]'" if INSTALLED else "make full"
Written = Callable[[str], None] | None  # called with the text so far


class NoLLM:
    """The model of a run that is to ask none: it refuses every call, so that optional uses are left out."""

    model, endpoint, local = "none", "none", False

    def status(self) -> str | None:
        """Why no call can be made."""
        return NO_MODEL

    def complete(self, *_: Any, **__: Any) -> NoReturn:
        """Raise Unavailable."""
        raise Unavailable(NO_MODEL)


class RemoteLLM:
    """A model behind an OpenAI-compatible base URL; for `reflection`, one trained to write reflection tokens
    behind a text-completion endpoint (`self_rag_base_url`).
    """

    def __init__(self, settings: Settings, *, reflection: bool = False) -> None:
        setting = "self_rag_base_url" if reflection else "llm_base_url"
        key_setting = setting.replace("_base_url", "_api_key")
        url, key = getattr(settings, setting) or "", getattr(settings, key_setting)
        self.endpoint = clean_url(url, setting, key_setting)
        self.local = reach.loopback(urlsplit(url).hostname or "")
        self.model = self.identity = settings.self_rag_model if reflection else settings.llm
        self._slots = settings.llm_slots or math.inf
        # A text-completion endpoint is sent what a reflection-token model needs, or nothing.
        self.known = None if reflection else StoredProfile(settings.home, self.endpoint, self.model)
        self._client = (CompletionsClient if reflection else ChatClient)(
            self.endpoint,
            model=self.model,
            key=key.get_secret_value() if key else "",
            label=f"{self.model} at {self.endpoint}",
            private=settings.private(setting),
            secrets=settings.secrets(),
            known=self.known,
            headers=None if reflection else filled(settings.llm_headers, "llm_headers"),
            thinking=settings.llm_reasoning_tokens,
            effort=settings.llm_reasoning_effort,
        )

    def status(self) -> str | None:
        """None: whether the endpoint answers is only known by calling it (see `probe`)."""
        return None

    def complete(
        self, request: LLMRequest, *, timeout: float, cancel: threading.Event, written: Written = None
    ) -> Completion:
        """One call; `timeout` begins when it is its turn."""
        with admission.turns(self.endpoint).slot(self._slots, cancel, told=True):
            return self._client.complete(request, timeout=timeout, cancel=cancel, written=written)


class EmbeddedLLM:
    """A model file served on this machine by a process that is started on first need and shared."""

    endpoint, local, known = "embedded", True, None

    def __init__(self, settings: Settings) -> None:
        name, sha256 = settings.llm, ""
        if name.endswith(".gguf"):
            path = Path(name).expanduser()
            self.model = path.stem
            self._missing: Callable[[], str | None] = lambda: (
                None if path.is_file() else f"no model file {path}"
            )
            stat = path.stat() if path.exists() else None  # tells a changed file of the same name
            state = f"{stat.st_size:x}-{stat.st_mtime_ns:x}" if stat else "missing"
            self.identity = f"{path.stem}@{state}"
        else:
            artefact = catalogue.find(name)
            path, sha256 = catalogue.path_of(artefact, settings), artefact.sha256
            self.model = self.identity = name
            self._missing = lambda: catalogue.missing(artefact, settings)
        self.server = EmbeddedServer(
            self.identity, path, settings.models_dir, settings.llm_context, settings.llm_idle_minutes, sha256
        )
        self._settings = settings
        self._lock = threading.Lock()
        self._served: tuple[ServerState, ChatClient] | None = None

    def status(self) -> str | None:
        """None if the server is up or can be started."""
        if importlib.util.find_spec("xllamacpp") is None:
            return f"the package xllamacpp is not installed; run: {INSTALL}"
        return self._missing()

    def complete(
        self, request: LLMRequest, *, timeout: float, cancel: threading.Event, written: Written = None
    ) -> Completion:
        """Make one call; `timeout` starts once the server is ready and the call's turn has come. A server
        that died is restarted once; a second death raises.
        """
        missing = self.status()
        if missing:
            raise Unavailable(missing)
        server, client = self._up(timeout, cancel)
        with admission.turns(f"embedded {self.server.name}").slot(1, cancel, told=True):
            deadline = time.monotonic() + timeout
            try:
                return client.complete(request, timeout=timeout, cancel=cancel, written=written)
            except ConnectionLost:
                if self.server.state() == server:
                    raise
            _, client = self._up(timeout, cancel)
            left = max(0.0, deadline - time.monotonic())
            return client.complete(request, timeout=left, cancel=cancel, written=written)

    def _up(self, timeout: float, cancel: threading.Event) -> tuple[ServerState, ChatClient]:
        """Return the server, started within `timeout` seconds if necessary, and its client."""
        server = self.server.state()
        if server.phase != "ready":
            with admission.aside(f"{self.model} is loaded"):
                server = self.server.ready(deadline=time.monotonic() + timeout, cancel=cancel)
        with self._lock:
            if self._served is None or self._served[0] != server:
                client = ChatClient(
                    f"{server.url}/v1",
                    model=self.model,
                    key=server.key,
                    label=f"embedded {self.model}",
                    embedded=True,
                    thinking=self._settings.llm_reasoning_tokens or 0,
                    effort=self._settings.llm_reasoning_effort,
                )
                self._served = server, client
            return self._served


class CachedLLM:
    """A model behind its cache on disk and the recordings, in the order `settings.llm_mode` asks for."""

    def __init__(
        self,
        backend: RemoteLLM | EmbeddedLLM,
        *,
        cache: CompletionCache,
        recordings: Recordings,
        mode: str,
        daily: int | None = None,
    ) -> None:
        """`daily`: the tokens that a person may use a day."""
        self.backend = backend
        self.model, self.endpoint, self.local = backend.model, backend.endpoint, backend.local
        self._cache, self._recordings, self._mode, self._daily = cache, recordings, mode, daily

    @property
    def reported(self) -> str:
        """Return the embedded model's name, or the one named in a service's replies, with its endpoint."""
        if not isinstance(self.backend, RemoteLLM):
            return self.model
        known = self.backend.known
        return f"{(known.get().served if known else '') or self.model} at {self.endpoint}"

    @property
    def context(self) -> int | None:
        """Return the context length in tokens that a service reports, or None."""
        return self.backend.known.get().context if self.backend.known else None

    def in_mode(self, mode: str) -> CachedLLM:
        """Return a client of the same model, cache and recordings in another mode."""
        return CachedLLM(
            self.backend, cache=self._cache, recordings=self._recordings, mode=mode, daily=self._daily
        )

    def status(self) -> str | None:
        """None if calls can be made; in replay mode, if anything of this model is recorded."""
        if self._mode != "replay":
            return self.backend.status()
        about = {"endpoint": self.endpoint, "model": self.backend.identity}
        if self._cache.path.exists() or self._recordings.any_of(**about):
            return None
        return f"llm_mode is replay, and nothing of {self.model} is recorded"

    def recorded(self, request: LLMRequest) -> bool:
        """Return True if `complete` would answer this request without calling the model."""
        return self._recall(self._key(request)) is not None

    def complete(
        self, request: LLMRequest, *, timeout: float, cancel: threading.Event, written: Written = None
    ) -> Completion:
        """Return the stored reply, else call the model and store its reply; `source` is the origin. Raises
        NotAllowed and BudgetSpent if the person may not call a model, or has used the day's tokens; stored
        replies cost none.
        """
        key = self._key(request)
        known = self._recall(key)
        if known is not None:
            return known
        if self._mode == "replay":
            raise Unavailable(f"not recorded: {request.prompt} by {self.model}; llm_mode is replay")
        with charging.charged(request, self._daily, cancel) as charge:

            def note(text: str) -> None:
                charge.received = text
                if written is not None:
                    written(text)

            told = note if written is not None else None
            made = self.backend.complete(request, timeout=timeout, cancel=cancel, written=told)
            charge.answer = made
        self._cache.keep(key, made)
        if self._mode == "record":
            self._recordings.add(key, request, made, endpoint=self.endpoint, model=self.backend.identity)
        return made

    def remember(self, request: LLMRequest, completion: Completion) -> None:
        """Keep an answer that another process got from the same model."""
        self._cache.keep(self._key(request), completion)

    def _key(self, request: LLMRequest) -> str:
        return key_of(request, endpoint=self.endpoint, model=self.backend.identity)

    def _recall(self, key: str) -> Completion | None:
        cached = None if self._mode == "record" else self._cache.completion(key)
        return cached or self._recordings.get(key)


def clean_url(url: str, setting: str = "llm_base_url", key: str = "llm_api_key") -> str:
    """Return a base URL that is safe to show and compare. Raises BadInput, which repeats no possibly secret
    part.
    """
    wrong = f"setting {setting}: give http://host:port/v1 or https://host/v1"
    plain, mark, version = url.strip().partition("?api-version=")
    if mark and not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:-preview)?|preview|v1|latest", version):
        raise BadInput(f"{wrong}; of a query only ?api-version=2024-10-21 is taken, for Azure")
    parts = reach.split(plain, wrong, f"user, password or query: put the key into {key}")
    return "".join((*parts, mark, version))
