"""The interfaces of backends. Each Protocol has a real implementation here and fakes only in tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from core.domain.types import Passage

Vector = NDArray[np.float32]  # shape (dim,), length 1
Matrix = NDArray[np.float32]  # shape (n, dim), rows of length 1
Mask = NDArray[np.bool_]  # shape (n,): whether a row may be found
Rows = list[tuple[int, float]]  # (row of the corpus, score), best first, ties by row


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """All that decides a completion: its content hash, with endpoint and model, is the cache key.

    `prompt` names the prompt and its version ("hyde/1"). `top_logprobs` > 0 asks for the alternatives of each
    token. `schema` asks for JSON of that JSON schema. `reuse_prefix` lets an endpoint keep what it made of
    the prompt's start for the next call that starts the same; it decides the cost, and is no part of the key.
    An endpoint that gives no alternatives is no failure: their list is empty, and a step reads words.
    `grammar` (GBNF, as llama.cpp reads it) bounds what the embedded server can write; other endpoints are not
    sent it, so a reply has to be checked all the same.
    """

    prompt: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int = 0
    top_logprobs: int = 0
    schema: Mapping[str, Any] | None = None
    stop: tuple[str, ...] = ()
    reuse_prefix: bool = False
    grammar: str = ""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One generated token with its alternatives: (text, natural log of the probability), likeliest first."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer. `ms` is the measured time of the call that made it, also when it came from the cache
    or a recording.
    """

    text: str
    model: str
    finish: str  # "stop" | "length" | ...
    ms: float
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    logprobs: tuple[TokenLogprob, ...] = ()
    source: Literal["live", "cache", "recording"] = "live"
    created: str = ""  # ISO 8601, UTC: when the call was made
    reasoning_tokens: int = 0  # of the completion tokens
    reasoning: str = ""  # what the model thought before it answered: for people alone, never cached
    unopened: bool = False  # its reasoning had no opening tag


class LLM(Protocol):
    """A chat model. Raises ModelFailed, ModelTimedOut, Unavailable, Cancelled; never returns an unusable
    answer.
    """

    @property
    def model(self) -> str:
        """The model's name, as shown."""

    @property
    def endpoint(self) -> str:
        """ "embedded" or the base URL, without secrets."""

    @property
    def local(self) -> bool:
        """Return True if the model runs on this machine's cores, so that routes must not run in parallel."""

    def status(self) -> str | None:
        """None if calls can be made (or started) now; else why not and how to get it. Must not block."""

    def complete(
        self,
        request: LLMRequest,
        *,
        timeout: float,
        cancel: threading.Event,
        written: Callable[[str], None] | None = None,
    ) -> Completion:
        """Answer within `timeout` seconds in all, or raise; setting `cancel` ends the call at once.

        `written` is called with the text so far whenever it has grown; it must return at once.
        """


class Embedder(Protocol):
    """Turns text into unit vectors; query and passage may differ for some models."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    def embed_query(self, text: str) -> Vector:
        """One text, low latency."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Many texts, in batches."""


class WebSearch(Protocol):
    """A search outside the corpus."""

    @property
    def label(self) -> str:
        """Return the label of the results on screen."""

    def search(
        self, text: str, k: int, *, timeout: float = 60.0, cancel: threading.Event | None = None
    ) -> list[tuple[Passage, float]]:
        """Up to `k` passages, best first, each with its score; their ids begin with "web/".

        Raises WebFailed, WebTimedOut (after `timeout` seconds in all) or Cancelled (`cancel` was set).
        """
