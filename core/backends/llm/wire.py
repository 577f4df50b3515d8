"""The chat-completion wire format, both ways: strict about what comes back, whoever sent it. Pure."""

from __future__ import annotations

import json
import math
import unicodedata
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import accumulate
from typing import Any

from core.backends.base import Completion, LLMRequest, TokenLogprob
from core.domain.errors import ModelFailed
from core.domain.redact import MARK, redacted, spans

EXCERPT = 160  # characters of a server's own words that a message may carry
GONE = "ended, or its connection,"
CONNECT_S = 5.0  # to be taken on by an endpoint


class ConnectionLost(ModelFailed):
    """The endpoint could not be reached, or went away during the call."""


def body(request: LLMRequest, *, model: str, embedded: bool = False, openai: bool = False) -> dict[str, Any]:
    """The request as arguments of `chat.completions.create`.

    The embedded server reuses the cached start of a prompt only where log-probabilities are asked for
    (grading many passages shares it) or the request says so. Other texts start uncached, so that they repeat
    to the letter.
    """
    limit = "max_completion_tokens" if openai else "max_tokens"  # OpenAI's newer models refuse the old name
    fields: dict[str, Any] = {
        "model": model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        limit: request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
    }
    if request.stop:
        fields["stop"] = list(request.stop)
    if request.top_logprobs:
        fields |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    if request.schema is not None:
        schema = {"name": "answer", "strict": True, "schema": dict(request.schema)}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    if embedded:
        keep = request.top_logprobs > 0 or request.reuse_prefix
        fields["extra_body"] = {"id_slot": 0, "cache_prompt": keep}
        if request.grammar:
            fields["extra_body"]["grammar"] = request.grammar
    return fields


@dataclass(frozen=True, slots=True)
class Words:
    """How to speak of an endpoint in a message: its label, and the secrets that must not be repeated."""

    label: str
    secrets: tuple[str, ...] = ()

    def failed(self, what: str, quoted: str | bytes | None = None) -> ModelFailed:
        """A one-line ModelFailed; `quoted` is what the server said: shortened, escaped, without secrets."""
        return ModelFailed(
            f"{self.label} {self.clean(what)}" + (f": {self.excerpt(quoted)}" if quoted else "")
        )

    def lost(self, what: str, quoted: str | bytes | None = None) -> ConnectionLost:
        """The same, of an endpoint that went away."""
        return ConnectionLost(str(self.failed(what, quoted)))

    def clean(self, text: str) -> str:
        """`text` without the secrets or parts of them."""
        return redacted(text, self.secrets)

    def excerpt(self, quoted: str | bytes) -> str:
        """The start of hostile text on one line: no secrets, no control or direction characters."""
        start = quoted[: 4 * EXCERPT]  # what is cut off of a secret here is as a part of it
        text = self.clean(start.decode(errors="replace") if isinstance(start, bytes) else start)
        for secret in filter(None, self.secrets):
            text = text.replace(secret, MARK)  # those too short to have parts
        text = " ".join(text.split())
        text = "".join(c if unicodedata.category(c)[0] != "C" else f"\\u{ord(c):04x}" for c in text)
        return json.dumps(text[:EXCERPT] + ("..." if len(text) > EXCERPT else ""), ensure_ascii=False)


def read(
    data: bytes, request: LLMRequest, words: Words, *, model: str, ms: float, created: str
) -> Completion:
    """The completion in a response body. Raises ModelFailed for anything that is not a usable answer."""
    answer, choice = choice_of(data, words)
    message = _object(choice, "message")
    text, finish = message.get("content"), finish_of(choice)
    if message.get("refusal"):
        raise words.failed("refused to answer", str(message["refusal"]))
    if not isinstance(text, str):
        raise words.failed(f"answered without text (finish: {finish})", json.dumps(message))
    logprobs = _logprobs(choice, request, words)
    if not text.strip() and not logprobs:
        raise words.failed(f"answered with an empty text (finish: {finish})")
    if request.schema is not None:
        _check_json(text, finish, words)
    return completion(answer, text, finish, logprobs, model=model, ms=ms, created=created)


def choice_of(data: bytes, words: Words) -> tuple[dict[str, Any], dict[str, Any]]:
    """A response body's object and its first choice."""
    answer = _json(data, words)
    if "error" in answer and "choices" not in answer:
        raise words.failed("answered with an error", json.dumps(answer["error"]))
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise words.failed(f"answered without a choice (choices: {json.dumps(choices)[:40]})")
    return answer, choices[0]


def retry_after(value: str | None, now: datetime) -> float | None:
    """The seconds that a Retry-After header asks to wait, given as a number or as a date; None without one
    that can be read. Source: RFC 9110, section 10.2.3.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            until = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def finish_of(choice: dict[str, Any]) -> str:
    """Why the answer ended, as the server says."""
    return str(choice.get("finish_reason") or "unknown")[:40]


def completion(
    answer: dict[str, Any],
    text: str,
    finish: str,
    logprobs: tuple[TokenLogprob, ...],
    *,
    model: str,
    ms: float,
    created: str,
) -> Completion:
    """The completion, with what the response says of its model and its tokens."""
    usage = _object(answer, "usage")
    details = _object(usage, "prompt_tokens_details")
    named = answer.get("model")
    return Completion(
        text=text, model=named if isinstance(named, str) and named else model, finish=finish, ms=ms,
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")), logprobs=logprobs, created=created,
    )  # fmt: skip


def without_secrets(completion: Completion, words: Words) -> Completion:
    """The completion without the secrets: in its text, its tokens and the name of its model."""
    return replace(
        completion,
        text=words.clean(completion.text),
        model=words.clean(completion.model),
        finish=words.clean(completion.finish),
        logprobs=_clean_tokens(completion.logprobs, words),
    )


def _clean_tokens(tokens: tuple[TokenLogprob, ...], words: Words) -> tuple[TokenLogprob, ...]:
    """Tokens that are part of a secret are marks, and have no alternatives: these spell it as well."""
    ends = list(accumulate(len(token.token) for token in tokens))
    hidden = spans("".join(token.token for token in tokens), words.secrets)
    if not hidden:
        return tokens
    return tuple(
        TokenLogprob(MARK, token.logprob, ())
        if any(start < end and end - len(token.token) < stop for start, stop in hidden)
        else token
        for token, end in zip(tokens, ends, strict=True)
    )


def parsed(data: bytes, words: Words, right: str) -> Any:
    """The JSON of a response body; ModelFailed names what else it is. `right`: what to look at for a page."""
    start = data[:64].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html")):
        raise words.failed(f"answered with a web page instead of JSON ({right})", data)
    if not data.strip():
        raise words.failed("answered with nothing: the body is empty")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        if _cut_off(error):
            raise words.lost(f"{GONE} in the middle of its answer ({len(data)} bytes came)", data) from None
        raise words.failed(f"answered with broken JSON ({len(data)} bytes)", data) from None


def _json(data: bytes, words: Words) -> dict[str, Any]:
    answer = parsed(data, words, "is the base URL right? it often ends in /v1")
    if not isinstance(answer, dict):
        raise words.failed("answered with JSON that is not an object", data)
    return answer


def _cut_off(error: Exception) -> bool:
    """Whether what is wrong with JSON is that it ends too early."""
    if isinstance(error, UnicodeDecodeError):
        return error.reason == "unexpected end of data"
    if not isinstance(error, json.JSONDecodeError) or error.doc.lstrip()[:1] not in ("{", "["):
        return False
    left = error.doc[error.pos :]
    return error.msg.startswith("Unterminated string") or any(
        word.startswith(left.rstrip()) for word in ("true", "false", "null")
    )


def _check_json(text: str, finish: str, words: Words) -> None:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        why = "was cut off at its token limit" if finish == "length" else "is not JSON"
        raise words.failed(f"was asked for JSON, but its answer {why}", text) from None


def _logprobs(choice: dict[str, Any], request: LLMRequest, words: Words) -> tuple[TokenLogprob, ...]:
    if not request.top_logprobs:
        return ()
    content = _object(choice, "logprobs").get("content")
    if (not isinstance(content, list) or not content) and request.logprobs_optional:
        return ()
    if not isinstance(content, list) or not content:
        raise words.failed("gave no token probabilities, which this step needs")
    try:
        return tuple(
            TokenLogprob(
                str(token["token"]),
                number(token["logprob"]),
                tuple((str(other["token"]), number(other["logprob"])) for other in token["top_logprobs"]),
            )
            for token in content
        )
    except (KeyError, TypeError, ValueError):
        raise words.failed("gave token probabilities of an unknown form", json.dumps(content)) from None


def number(value: Any) -> float:
    """A log-probability; "-inf" would not survive JSON, so it becomes a very small one."""
    number = float(value)
    if math.isnan(number) or number == math.inf:
        raise ValueError(value)
    return max(number, -1e4)


def _object(holder: dict[str, Any], name: str) -> dict[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
