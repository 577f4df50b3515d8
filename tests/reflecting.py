"""A reflection-token model by script: what it says to a prompt, as a completion or over HTTP."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.backends.base import Completion, LLMRequest, TokenLogprob
from core.steps.self_rag import NO_RETRIEVAL, RELEVANCE, RETRIEVE, SUPPORT, UTILITY
from tests.loopback import http

Token = tuple[str, Mapping[str, float]]  # as written, with the probabilities of the alternatives
Script = Callable[[str], Sequence[Token]]


def group(names: Sequence[str], masses: Sequence[float]) -> Token:
    """A critique token: the likeliest is written."""
    odds = dict(zip(names, masses, strict=True))
    return max(odds, key=lambda name: odds[name]), odds


def words(text: str, p: float = 0.8) -> list[Token]:
    """Each word as a token of probability `p`."""
    parts = re.findall(r"\s*\S+", text)
    return [(part, {part: p, "other": 1 - p}) for part in parts]


def segment(
    text: str,
    *,
    relevant: float = 0.9,
    support: tuple[float, float, float] = (0.8, 0.15, 0.05),
    useful: tuple[float, ...] | None = (0.02, 0.03, 0.1, 0.25, 0.6),
    p: float = 0.8,
    more: float | None = None,
) -> list[Token]:
    """One segment; with `more` it asks for further passages at the end, with that probability."""
    tokens = [group(RELEVANCE, (relevant, 1 - relevant)), *words(text, p), group(SUPPORT, support)]
    if useful is not None:
        tokens.append(group(UTILITY, useful))
    if more is not None:
        tokens.append(group((RETRIEVE, NO_RETRIEVAL), (more, 1 - more)))
    return tokens


def passage_of(prompt: str) -> str:
    """The last passage of a prompt; empty if it has none."""
    return prompt.rpartition("<paragraph>")[2].removesuffix("</paragraph>") if "<paragraph>" in prompt else ""


def by_default(prompt: str) -> Sequence[Token]:
    """Wants passages, and copies the beginning of each as one supported segment."""
    if prompt.endswith("### Response:\n"):
        return [group((RETRIEVE, NO_RETRIEVAL), (0.9, 0.1))]
    if prompt.endswith(NO_RETRIEVAL):
        return [*words("I know that."), group(UTILITY, (0.1, 0.1, 0.1, 0.1, 0.6))]
    title, _, text = passage_of(prompt).partition("\n")
    return segment(f"{' '.join(text.split()[:8]) or title}.", relevant=0.5 + len(title) % 5 / 10)


def body(tokens: Sequence[Token], finish: str = "stop") -> dict[str, Any]:
    """The response of a /completions endpoint."""
    logprobs = {
        "tokens": [token for token, _ in tokens],
        "token_logprobs": [math.log(max(odds[token], 1e-9)) for token, odds in tokens],
        "top_logprobs": [{name: math.log(max(p, 1e-9)) for name, p in odds.items()} for _, odds in tokens],
        "text_offset": [],
    }
    text = "".join(token for token, _ in tokens)
    choice = {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": finish}
    return {"model": "scripted", "choices": [choice], "usage": {"prompt_tokens": 50, "completion_tokens": 9}}


def answer(script: Script) -> Any:
    """A reply for `tests.loopback` that speaks by the script."""

    def reply(_: Any, talk: Any, sent: bytes) -> None:
        asked = json.loads(sent.split(b"\r\n\r\n", 1)[1])
        tokens = list(script(asked["prompt"]))[: asked["max_tokens"]]
        talk.sendall(http(json.dumps(body(tokens))))

    return reply


class ScriptedReflection:
    """The model itself, without a server."""

    model, endpoint, local = "reflecting", "test", False

    def __init__(self, script: Script = by_default) -> None:
        self.script = script
        self.requests: list[LLMRequest] = []

    def status(self) -> str | None:
        return None

    def complete(
        self, request: LLMRequest, *, timeout: float, cancel: threading.Event, written: Any = None
    ) -> Completion:
        self.requests.append(request)
        tokens = list(self.script(request.messages[0].content))[: request.max_tokens]
        logprobs = tuple(
            TokenLogprob(
                token,
                math.log(max(odds[token], 1e-9)),
                tuple((name, math.log(max(p, 1e-9))) for name, p in odds.items()),
            )
            for token, odds in tokens
        )
        text = "".join(token for token, _ in tokens)
        return Completion(text, self.model, "stop", 1.0, 50, len(tokens), 0, logprobs)
