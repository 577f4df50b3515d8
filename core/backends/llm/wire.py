"""The chat-completion wire format in both directions, strict about responses from any server. Pure."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.backends.base import Completion, LLMRequest, TokenLogprob
from core.backends.llm import reasoning
from core.backends.llm.profile import TRUSTED, WORDS, Profile, without_keywords
from core.domain.errors import ModelFailed
from core.domain.redact import MARK, redacted, spans

_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
EXCERPT = 160  # characters of a server's own words that a message may carry
GONE = "ended, or its connection,"
NOT_CALLED = "is not called"  # because its address must not be
CONNECT_S = 5.0  # to be taken on by an endpoint


class ConnectionLost(ModelFailed):
    """The endpoint could not be reached, or went away during the call (`midway`), which may not repeat.
    `refused`: its address must not be called, so another try is useless.
    """

    def __init__(self, message: object, *, midway: bool = True, refused: bool = False) -> None:
        super().__init__(message)
        self.midway, self.refused = midway, refused


class Passing(ModelFailed):
    """A failure that another try may not have; the seconds the service asks to wait, if it does."""

    def __init__(self, message: object, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class NoToolCall(ModelFailed):
    """A reply to a request with functions that calls none of them."""


class Empty(ModelFailed):
    """A reply without an answer; whether it ended at its limit of tokens, and its reasoning."""

    def __init__(self, message: object, *, cut: bool, reasoning: str = "") -> None:
        super().__init__(message)
        self.cut, self.reasoning = cut, reasoning


def body(
    request: LLMRequest,
    *,
    model: str,
    embedded: bool = False,
    profile: Profile = TRUSTED,
    thinking: int | None = 0,
    effort: str = "",
    stream: bool = False,
) -> dict[str, Any]:
    """Return a request as arguments of `chat.completions.create`, in the form the endpoint of `profile`
    accepts.

    `thinking`: reasoning tokens in addition to those of the answer, None for the profile's; `effort`: the
    reasoning effort. The embedded server reuses the cached start of a prompt only if log-probabilities are
    requested (grading many passages shares it) or the request says so. Other texts start uncached, so that
    they repeat exactly.
    """
    # A verdict in words needs more than the one token that holds probabilities.
    least = WORDS if request.top_logprobs and not profile.probabilities else 1
    wanted = max(max(request.max_tokens, least) + profile.allowance(thinking), profile.least_tokens)
    fields: dict[str, Any] = {
        "model": model,
        "messages": _messages(request, profile),
        "max_tokens": min(wanted, profile.most_tokens or wanted),
        "temperature": request.temperature,
        "seed": request.seed,
    }
    if request.stop:
        fields["stop"] = list(request.stop)
    if request.top_logprobs:
        most = profile.most_alternatives or request.top_logprobs
        fields |= {"logprobs": True, "top_logprobs": min(most, request.top_logprobs)}
    if tools := tools_of(request, profile):
        fields |= {"tools": tools, "tool_choice": "required"}
    elif request.schema is not None and profile.json == "schema":
        inside = without_keywords(request.schema, profile.without_keywords)
        schema = {"name": "answer", "strict": True, "schema": inside}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif request.schema is not None and profile.json == "object":
        fields["response_format"] = {"type": "json_object"}
    if effort:
        fields["reasoning_effort"] = effort
    if stream and "stream" not in profile.dropped:
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
    for name in profile.dropped:
        fields.pop(name, None)
        if name == "logprobs":
            fields.pop("top_logprobs", None)
    for ours, theirs in profile.renamed.items():
        if ours in fields:
            fields[theirs] = fields.pop(ours)
    extra = {"random_seed": fields.pop("random_seed")} if "random_seed" in fields else {}  # unknown to openai
    if embedded:
        keep = request.top_logprobs > 0 or request.reuse_prefix
        extra |= {"id_slot": 0, "cache_prompt": keep}
        if request.grammar:
            extra["grammar"] = request.grammar
    if extra:
        fields["extra_body"] = extra
    return fields


def tools_of(request: LLMRequest, profile: Profile) -> list[dict[str, Any]]:
    """Return a function for each action that a schema of `action` and `input` offers; [] for other schemas,
    and for an endpoint without functions.
    """
    given = (request.schema or {}).get("properties", {}) if "tools" not in profile.dropped else {}
    if given.keys() != {"action", "input"}:
        return []
    inside = {"properties": {"input": given["input"]}, "required": ["input"], "additionalProperties": False}
    functions = (
        {"name": name, "parameters": {"type": "object", **inside}} for name in given["action"].get("enum", ())
    )
    return [{"type": "function", "function": one} for one in functions]


def _called(message: dict[str, Any], words: EndpointWords) -> str:
    """Return the first function call of a message as JSON of the schema. Raises NoToolCall without one."""
    try:
        function = message["tool_calls"][0]["function"]
        given = json.loads(function["arguments"] or "{}").get("input", "")
        return json.dumps({"action": function["name"], "input": given})
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
        raise NoToolCall(str(words.failed("called no function", json.dumps(message)))) from None


def _messages(request: LLMRequest, profile: Profile) -> list[dict[str, str]]:
    """Return the messages; a schema that the service rejects is written into them, and a rejected system role
    moves into the user's first message.
    """
    found = [{"role": message.role, "content": message.content} for message in request.messages]
    if request.schema is not None and profile.json != "schema" and not tools_of(request, profile):
        schema = json.dumps(request.schema, ensure_ascii=False)
        found[-1]["content"] += f"\n\nReply with JSON alone, an object of this JSON schema:\n{schema}"
    if "system" in profile.dropped and found[0]["role"] == "system" and len(found) > 1:
        found[1]["content"] = f"{found[0]['content']}\n\n{found[1]['content']}"
        del found[0]
    return found


@dataclass(frozen=True, slots=True)
class EndpointWords:
    """The label of an endpoint in messages, and the secrets that must not be repeated."""

    label: str
    secrets: tuple[str, ...] = ()

    def failed(self, what: str, quoted: str | bytes | None = None) -> ModelFailed:
        """Return a one-line ModelFailed; `quoted` is the server's text, shortened, escaped, without
        secrets.
        """
        more = f": {self.excerpt(quoted)}" if quoted else ""
        return ModelFailed(f"{self.label} {self.clean(what)}{more}")

    def refused(self, status: int, data: bytes, hints: Mapping[int, str]) -> ModelFailed:
        """Return the error for a reply with a status other than 200, explained by `hints`."""
        if 300 <= status < 400:
            return self.failed(f"redirects elsewhere ({status}), which is not followed")
        return self.failed(hints.get(status, f"answered with status {status}"), data)

    def lost(self, what: str, quoted: str | bytes | None = None) -> ConnectionLost:
        """Return the same for an endpoint that cannot be reached or disconnected."""
        refused = what.startswith(NOT_CALLED)
        return ConnectionLost(str(self.failed(what, quoted)), midway=what.startswith(GONE), refused=refused)

    def clean(self, text: str) -> str:
        """`text` without the secrets or parts of them."""
        return redacted(text, self.secrets)

    def excerpt(self, quoted: str | bytes) -> str:
        """Return the start of hostile text on one line: no secrets, no control or direction characters."""
        start = quoted[: 4 * EXCERPT]  # what is cut off of a secret here is as a part of it
        text = self.clean(start.decode(errors="replace") if isinstance(start, bytes) else start)
        for secret in filter(None, self.secrets):
            text = text.replace(secret, MARK)  # those too short to have parts
        text = " ".join(text.split())
        text = "".join(c if unicodedata.category(c)[0] != "C" else f"\\u{ord(c):04x}" for c in text)
        return json.dumps(text[:EXCERPT] + ("..." if len(text) > EXCERPT else ""), ensure_ascii=False)


def read(
    data: bytes,
    request: LLMRequest,
    words: EndpointWords,
    model: str,
    profile: Profile = TRUSTED,
    limit: int | None = None,
) -> Completion:
    """Read the completion in a response body, with its reasoning separate. Raises Empty without an answer,
    Passing for a possibly temporary failure, ModelFailed for any other unusable response. `limit`: tokens
    requested.
    """
    answer, choice = choice_of(data, words)
    message = _object(choice, "message")
    finish = finish_of(choice)
    if message.get("refusal"):
        raise words.failed("refused to answer", str(message["refusal"]))
    text, thought = reasoning.of_message(message, unopened=profile.unopened and finish == "length")
    if tools_of(request, profile):
        text = (text or "") if finish == "length" else _called(message, words)
    if text is None:
        raise words.failed(f"answered without text (finish: {finish})", json.dumps(message))
    if "stop" in profile.dropped:
        text = text[: min((at for stop in request.stop if (at := text.find(stop)) >= 0), default=len(text))]
    if request.schema is not None:
        text = unfenced(text)
    logprobs = _logprobs(choice, request, words)
    if logprobs and thought:
        logprobs = reasoning.of_answer(logprobs, text)
    found = replace(
        completion(answer, text, finish, logprobs, model),
        reasoning=thought,
        unopened=reasoning.opens_itself(message.get("content")),
    )
    found = replace(found, reasoning_tokens=_reasoned(answer, found))
    if not text.strip() and (thought or not logprobs):
        told = f"answered with an empty text (finish: {finish})"
        if finish == "length":
            why = "before any answer: its reasoning" if found.reasoning_tokens else "with an empty text: it"
            spent = f" of {limit:,} tokens" if limit else ""
            told = f"ended {why} used up the limit{spent} (finish: length); raise llm_reasoning_tokens"
        raise Empty(words.failed(told), cut=finish == "length", reasoning=thought)
    return found


def unfenced(text: str) -> str:
    """Return the inside of a code fence, if the text has one and no other JSON."""
    found = _FENCE.search(text)
    return found[1].strip() if found and text.lstrip()[:1] not in ("{", "[") else text


def _reasoned(answer: dict[str, Any], found: Completion) -> int:
    """Return the reasoning tokens, as reported, else by the share of the text."""
    usage = _object(answer, "usage")
    details = _object(usage, "completion_tokens_details") or _object(usage, "output_tokens_details")
    told = _count(details.get("reasoning_tokens")) or _count(usage.get("reasoning_tokens"))
    if told or not found.reasoning:
        return min(told, found.completion_tokens) if found.completion_tokens else told
    length = len(found.reasoning) + len(found.text.strip())
    return round(found.completion_tokens * len(found.reasoning) / length)


def choice_of(data: bytes, words: EndpointWords) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a response body's object and its first choice."""
    answer = parsed(data, words, "is the base URL right? it often ends in /v1")
    if not isinstance(answer, dict):
        raise words.failed("answered with JSON that is not an object", data)
    if answer.get("error") and not answer.get("choices"):
        raise _failure(answer["error"], words)
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise words.failed(f"answered without a choice (choices: {json.dumps(choices)[:40]})")
    if choices[0].get("error"):
        raise _failure(choices[0]["error"], words)
    if choices[0].get("finish_reason") == "error":
        raise Passing(words.failed("ended its answer with an error"))
    return answer, choices[0]


def _failure(error: Any, words: EndpointWords) -> ModelFailed:
    """Convert an error in a reply of status 200; it counts as temporary unless it says otherwise."""
    code, quoted = error.get("code") if isinstance(error, dict) else None, json.dumps(error)
    failure = words.failed("answered with an error", quoted)
    final = isinstance(code, int) and 400 <= code < 500 and code not in AGAIN
    return failure if final or spent(quoted.encode()) else Passing(failure)


AGAIN = (408, 409, 425, 429)  # statuses below 500 of a failure that may pass
_SPENT = re.compile(
    rb"insufficient_quota|insufficient[ _](?:balance|credits|funds)|billing_(?:hard_limit|not_active)"
    rb"|credit balance is too low|requires? more credits|per[ _]?day|out of credits|payment required",
    re.IGNORECASE,
)


def spent(data: bytes) -> bool:
    """Return True if an error reports an exhausted quota, which waiting does not restore."""
    return bool(_SPENT.search(data))


def passes(status: int, data: bytes) -> bool:
    """Return True if a call that failed with this status may succeed when repeated."""
    return (status in AGAIN or status >= 500) and status not in (501, 505) and not spent(data)


def finish_of(choice: dict[str, Any]) -> str:
    """Why the answer ended, as the server says."""
    return str(choice.get("finish_reason") or "unknown")[:40]


def completion(
    answer: dict[str, Any],
    text: str,
    finish: str,
    logprobs: tuple[TokenLogprob, ...],
    model: str,
) -> Completion:
    """Build the completion with the model and token counts of the response; its time is still 0."""
    usage = _object(answer, "usage")
    details = _object(usage, "prompt_tokens_details")
    named = answer.get("model")
    return Completion(
        text=text,
        model=named if isinstance(named, str) and named else model,
        finish=finish,
        ms=0.0,
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")),
        logprobs=logprobs,
    )


def without_secrets(completion: Completion, words: EndpointWords) -> Completion:
    """Remove the secrets from a completion's text and model name; tokens that spell one are all dropped."""
    tokens = "".join(token.token for token in completion.logprobs)
    return replace(
        completion,
        text=words.clean(completion.text),
        reasoning=words.clean(completion.reasoning),
        model=words.clean(completion.model),
        finish=words.clean(completion.finish),
        logprobs=() if any(spans(tokens, words.secrets)) else completion.logprobs,
    )


def parsed(data: bytes, words: EndpointWords, right: str) -> Any:
    """Parse the JSON of a response body. Raises ModelFailed with the kind of any other content. `right`: the
    setting to check if it is a web page.
    """
    start = data[:64].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html")):
        raise words.failed(f"answered with a web page instead of JSON ({right})", data)
    if not data.strip():
        raise words.failed("answered with nothing: the body is empty")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        cut = isinstance(error, ValueError) and data.rstrip()[-1:] not in b"}]"
        if cut and start.startswith((b"{", b"[")):
            raise words.lost(f"{GONE} in the middle of its answer ({len(data)} bytes came)", data) from None
        raise words.failed(f"answered with broken JSON ({len(data)} bytes)", data) from None


def _logprobs(choice: dict[str, Any], request: LLMRequest, words: EndpointWords) -> tuple[TokenLogprob, ...]:
    if not request.top_logprobs:
        return ()
    content = _object(choice, "logprobs").get("content")
    if not isinstance(content, list) or not content:
        return ()  # who asked reads words, then
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
    """Convert a log-probability; "-inf", which JSON lacks, becomes a very small one."""
    number = float(value)
    if math.isnan(number) or number == math.inf:
        raise ValueError(value)
    return max(number, -1e4)


def _object(holder: dict[str, Any], name: str) -> dict[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
