"""Imitations of services that serve chat models, each as strict about a request as its documentation.

A service knows how to reject (`reject`), how a reply looks (`Kind`) and what to say (`said`); it keeps every
request. What a reasoning model thinks holds `THOUGHT`, which must never come back in another request.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

THOUGHT = "Xanadu"
THINKING = (
    f"Okay, the user {THOUGHT} wants something. {THOUGHT} maybe yes, maybe no, 1 or [3] > [2]. "
    + f"Let me think again about {THOUGHT} and passage C. " * 12
    + 'Perhaps {"action": "search"} or SELECT 1; '
)
Body = dict[str, Any]
Refusal = tuple[int, Any]
Shows = Literal["nothing", "reasoning_content", "reasoning", "blocks", "tags", "no opening tag", "hidden"]


@dataclass(frozen=True)
class Kind:
    """One kind of service."""

    name: str
    reject: Callable[[Body], Refusal | None] = lambda _body: None
    probabilities: bool = False
    reasons: bool = False
    shows: Shows = "nothing"  # where the reasoning is in a reply
    fenced: bool = False  # JSON comes in a code fence
    ignores_stop: bool = False
    calls: bool = False  # it calls functions
    limits: tuple[str, ...] = ("max_tokens", "max_completion_tokens")


def _openai(message: str, param: str | None, code: str | None, status: int = 400) -> Refusal:
    return status, {
        "error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    }


KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref", "$defs"),
    *("const", "description", "title"),
}


def strict_schema(schema: Any, path: str = "()") -> str | None:
    """What is wrong with a schema for strict structured outputs; None if nothing is."""
    if not isinstance(schema, dict):
        return f"In context={path}, schema must be an object"
    if other := set(schema) - KEYWORDS:
        return f"In context={path}, '{min(other)}' is not permitted"
    if "type" not in schema and "anyOf" not in schema and "$ref" not in schema:
        return f"In context={path}, schema must have a 'type' key."
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return f"In context={path}, 'additionalProperties' is required to be supplied and to be false."
        if set(schema.get("required", ())) != set(schema.get("properties", ())):
            return f"In context={path}, 'required' is required to include every key in properties."
    parts = [*schema.get("properties", {}).items(), *schema.get("$defs", {}).items()]
    parts += [(str(at), one) for at, one in enumerate(schema.get("anyOf", []))]
    parts += [("items", schema["items"])] if "items" in schema else []
    return next((wrong for name, one in parts if (wrong := strict_schema(one, f"({name!r})"))), None)


def _schema_of(body: Body) -> Any:
    return (body.get("response_format") or {}).get("json_schema", {}).get("schema")


def _bad_schema(body: Body) -> Refusal | None:
    schema = _schema_of(body)
    wrong = strict_schema(schema) if schema is not None else None
    return (
        _openai(f"Invalid schema for response_format 'answer': {wrong}.", "response_format", None)
        if wrong
        else None
    )


def openai(body: Body) -> Refusal | None:
    """gpt-4o and its kind."""
    if body.get("stop") and len(body["stop"]) > 4:
        return _openai("Invalid 'stop': array too long.", "stop", "array_above_max_length")
    return _unknown(body) or _bad_schema(body)


COMMON = {"model", "messages", "max_tokens", "temperature", "stop", "response_format", "stream", "n", "top_p"}
REASONS = {"max_completion_tokens", "stream_options", "reasoning_effort"}
KNOWN = COMMON | REASONS | {"seed", "logprobs", "top_logprobs", "user", "tools", "tool_choice"}


def _unknown(body: Body) -> Refusal | None:
    other = set(body) - KNOWN
    return _openai(f"Unrecognized request argument supplied: {min(other)}", None, None) if other else None


def openai_reasoning(body: Body) -> Refusal | None:
    """gpt-5 and the o-series."""
    unsupported = "is not supported with this model"
    if "max_tokens" in body:
        said = f"Unsupported parameter: 'max_tokens' {unsupported}. Use 'max_completion_tokens' instead."
        return _openai(said, "max_tokens", "unsupported_parameter")
    if body.get("temperature", 1) != 1:
        said = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is."
        return _openai(said, "temperature", "unsupported_value")
    if "stop" in body:
        return _openai(f"Unsupported parameter: 'stop' {unsupported}.", "stop", "unsupported_parameter")
    if body.get("logprobs") or "top_logprobs" in body:
        return _openai("You are not allowed to request logprobs from this model", None, None, 403)
    return _unknown(body) or _bad_schema(body)


def mistral(body: Body) -> Refusal | None:
    """La Plateforme: other fields are forbidden by pydantic."""
    allowed = COMMON | {
        "random_seed",
        "safe_prompt",
        "tools",
        "tool_choice",
        "prompt_mode",
        "reasoning_effort",
    }
    wrong = next((name for name in body if name not in allowed), None)
    if wrong is None:
        return None
    said = {"type": "extra_forbidden", "loc": ["body", wrong], "msg": "Extra inputs are not permitted"}
    error = {"object": "error", "type": "invalid_request_error", "code": None}
    return 422, {**error, "message": {"detail": [{**said, "input": body[wrong]}]}}


def gemini(body: Body) -> Refusal | None:
    """Google's compatible endpoint: a list, with the violations in the details."""
    allowed = COMMON | REASONS
    wrong = next((name for name in body if name not in allowed), None)
    if wrong is None:
        return None
    said = f'Invalid JSON payload received. Unknown name "{wrong}": Cannot find field.'
    bad = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"description": said}]}
    return 400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT", "details": [bad]}}]


def anthropic(body: Body) -> Refusal | None:
    """Opus 4.7 and later behind Anthropic's compatible endpoint."""
    if "temperature" in body:
        said = "`temperature` is deprecated for this model."
        return _openai(said, None, "invalid_request_error")
    return None


def deepseek(body: Body) -> Refusal | None:
    """deepseek-reasoner: probabilities are an error."""
    kind = (body.get("response_format") or {}).get("type", "text")
    said = ""
    if given := [name for name in ("logprobs", "top_logprobs") if body.get(name)]:
        said = f"deepseek-reasoner does not support the parameter `{given[0]}`"
    elif kind not in ("text", "json_object"):
        said = "This response_format type is unavailable now"
    elif kind == "json_object" and "json" not in json.dumps(body["messages"]).lower():
        said = (
            "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'."
        )
    return _openai(said, None, "invalid_request_error") if said else None


def groq(body: Body) -> Refusal | None:
    """Groq: probabilities are a 400 that says `property`."""
    for name in ("logprobs", "top_logprobs"):
        if name in body:
            return _openai(f"property '{name}' is unsupported", None, None)
    return None


def _nested(status: int, inner: Any) -> Refusal:
    return status, {
        "error": {
            "message": "Provider returned error",
            "code": status,
            "metadata": {"raw": json.dumps(inner), "provider_name": "OpenAI"},
        },
        "user_id": "user_1",
    }


def openrouter_openai(body: Body) -> Refusal | None:
    """OpenRouter in front of OpenAI's responses: the real error is a string."""
    if body.get("logprobs") or body.get("top_logprobs"):
        return _nested(*_openai("logprobs are not supported with reasoning models.", None, None))
    limit = body.get("max_tokens", body.get("max_completion_tokens", 16))
    if limit < 16:
        said = f"Invalid 'max_output_tokens': below minimum value. Expected a value >= 16, but got {limit}."
        return _nested(*_openai(said, "max_output_tokens", "integer_below_min_value"))
    return None


KINDS = {
    kind.name: kind
    for kind in (
        Kind("openai", openai, probabilities=True, calls=True),
        Kind("openai-reasoning", openai_reasoning, reasons=True, shows="hidden", calls=True),
        Kind("mistral", mistral),
        Kind("magistral", mistral, reasons=True, shows="blocks"),
        Kind("gemini", gemini, reasons=True, shows="hidden"),
        Kind("anthropic", anthropic, fenced=True),
        Kind("deepseek", deepseek, reasons=True, shows="reasoning_content"),
        Kind("groq", groq),
        Kind("openrouter", openrouter_openai, reasons=True, shows="reasoning"),
        Kind("ollama"),
        Kind("ollama-reasoning", reasons=True, shows="reasoning"),
        Kind("think-tags", probabilities=True, reasons=True, shows="tags"),
        Kind("think-unopened", reasons=True, shows="no opening tag"),
        Kind("vllm", probabilities=True),
        Kind("azure", openai, probabilities=True),
    )
}


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.lower()))


def _relevant(shown: str) -> bool:
    """Whether passages share words with the question under them."""
    passages, _, rest = shown.rpartition("Question:")
    return len(_words(passages) & _words(rest.split("\n")[0])) >= 2


def _value(schema: Any, whole: Any) -> Any:
    """Some value of a schema."""
    if "$ref" in schema:
        return _value(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], whole)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][-1]
    kinds = {"string": "fragile item", "integer": 1, "number": 1, "boolean": True, "null": None, "array": []}
    if schema.get("type") == "object":
        return {name: _value(one, whole) for name, one in schema.get("properties", {}).items()}
    return kinds[schema["type"]]


def said(body: Body) -> str:
    """What a sensible model would reply, without reasoning."""
    last, system = body["messages"][-1]["content"], body["messages"][0]["content"]
    asked = last.rpartition("Question:")[2].strip().split("\n")[0]
    if (schema := _schema_of(body)) is not None:
        return json.dumps(_value(schema, schema))
    both = f"{system}\n{last}"
    if '"action"' in both or "JSON" in both:
        wanted = re.search(r"\{.*\"type\": ?\"object\".*\}", both, re.DOTALL)
        if wanted:
            found = json.JSONDecoder().raw_decode(both[wanted.start() :])[0]
            return json.dumps(_value(found, found))
    if "Yes or No" in last:
        return "Yes." if _relevant(last) else "No."
    if "SQL" in both or "CREATE TABLE" in both:
        return "SELECT order_no FROM orders WHERE status = 'shipped'"
    if "Rank the" in last:
        count = len(re.findall(r"<passage \d+>", last))
        return " > ".join(f"[{n}]" for n in range(count, 0, -1))
    if "letter" in last:
        return "B"
    if "Number of queries" in last or "At most:" in last:
        return "How are fragile items packed?\nHow is an item sent back?\nWho pays for it?\nWhat is a parcel?"
    if "Numbers of the sentences" in last:
        return "1"
    if re.search(r"0 to 100|percent", both):
        return "80"
    if re.search(r"1 to 5|from 1", both):
        return "4"
    if "fully" in both and "partially" in both:
        return "fully"
    if "standalone" in both or "search question" in both:
        return "How do I send a fragile item back?"
    if "[1]" in last:
        return "Fragile items are double boxed and take one more business day [1]."
    return f"Fragile items are sent back in a double box within 30 days: {asked}"


@dataclass
class Service:
    """A running imitation: where it is, and what it was sent and answered."""

    kind: Kind
    url: str = ""
    requests: list[Body] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    delay: float = 0.0
    think: str = THINKING
    lock: threading.Lock = field(default_factory=threading.Lock)
    say: Callable[[Body], str] = said
    models: Any = None

    @property
    def rejected(self) -> int:
        """How many requests it rejected."""
        return sum(status >= 400 for status in self.statuses)

    def answer(self, body: Body) -> tuple[int, Any]:
        """The status and body of a reply."""
        refused = self.kind.reject(body)
        if refused is not None:
            return refused
        limit = next((body[name] for name in self.kind.limits if body.get(name)), 4096)
        text, reasoning = self.say(body), self.think if self.kind.reasons else ""
        if self.kind.fenced and text.startswith("{"):
            text = f"```json\n{text}\n```"
        for stop in () if self.kind.ignores_stop else body.get("stop") or ():
            text = text.partition(stop)[0]
        thought, wrote = re.findall(r"\S+\s*", reasoning), re.findall(r"\S+\s*", text)
        kept, cut = wrote[: max(0, limit - len(thought))], len(thought) + len(wrote) > limit
        thought = thought[:limit]
        content: Any = "".join(kept)
        message: Body = {"role": "assistant"}
        usage: Body = {
            "prompt_tokens": len(json.dumps(body["messages"]).split()),
            "completion_tokens": len(thought) + len(kept),
        }
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        over = "".join(thought)
        if self.kind.shows in ("reasoning", "reasoning_content"):
            message[self.kind.shows] = over
        elif self.kind.shows == "hidden":
            usage["completion_tokens_details"] = {"reasoning_tokens": len(thought)}
        elif self.kind.shows == "blocks":
            content = [{"type": "thinking", "thinking": [{"type": "text", "text": over}]}]
            content += [{"type": "text", "text": "".join(kept)}] if kept else []
        elif self.kind.shows in ("tags", "no opening tag"):
            opening = "<think>\n" if self.kind.shows == "tags" else ""
            ended = len(thought) == len(re.findall(r"\S+\s*", reasoning)) and kept
            content = f"{opening}{over}" + (f"\n</think>\n\n{''.join(kept)}" if ended else "")
        message["content"] = content
        if self.kind.calls and body.get("tools") and kept:
            last = body["tools"][-1]["function"]
            given = json.dumps(_value(last["parameters"], None))
            called = {"name": last["name"], "arguments": given}
            message |= {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": called}]}
        choice: Body = {"index": 0, "message": message, "finish_reason": "length" if cut else "stop"}
        if self.kind.probabilities and body.get("logprobs"):
            choice["logprobs"] = {"content": self._probabilities(content, body.get("top_logprobs", 0))}
        return 200, {"model": f"{body['model']}-served", "choices": [choice], "usage": usage}

    def _probabilities(self, content: str, top: int) -> list[Body]:
        other = {"Yes": "No", "No": "Yes", "B": "A"}
        found = []
        for token in re.findall(r"\w+|\W+", content):
            tops = [(token, 0.8), (other.get(token, "the"), 0.2)][: max(1, top)]
            alternatives = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in tops]
            found.append(
                {"token": token, "logprob": math.log(0.8), "bytes": None, "top_logprobs": alternatives}
            )
        return found


@contextmanager
def service(kind: str | Kind, **more: Any) -> Iterator[Service]:
    """Serve an imitation on loopback; its `url` ends in /v1."""
    running = Service(KINDS[kind] if isinstance(kind, str) else kind, **more)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each reply waits 40 ms for an acknowledgement

        def log_message(self, *_: Any) -> None:
            """Nothing."""

        def do_GET(self) -> None:
            self._send(200 if running.models else 404, running.models or {"error": "no such page"})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with running.lock:
                running.requests.append(body)
            if running.delay:
                time.sleep(running.delay)
            status, reply = running.answer(body)
            with running.lock:
                running.statuses.append(status)
            if status == 200 and body.get("stream"):
                self._stream(reply)
            else:
                self._send(status, reply)

        def _send(self, status: int, reply: Any) -> None:
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, reply: Body) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            choice = reply["choices"][0]
            lines = [": comment", 'data: {"choices": [], "usage": null}']
            for name, value in choice["message"].items():
                deltas = [{"index": 0, "delta": {name: piece}} for piece in _pieces(name, value)]
                lines += [
                    f"data: {json.dumps({'model': reply['model'], 'choices': [one]})}" for one in deltas
                ]
            end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
            lines.append("data: " + json.dumps({"choices": [end], "usage": reply["usage"]}))
            lines.append("data: [DONE]")
            self.wfile.write(("\n\n".join(lines) + "\n\n").encode())
            self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()


def _pieces(name: str, value: Any) -> list[Any]:
    """A message's value as a stream sends it: text in pieces of three letters, so that tags are split."""
    if name == "role" or value is None:
        return [value]
    if isinstance(value, list):
        return [[one] for one in value]
    return [value[at : at + 3] for at in range(0, len(value), 3)] or [""]
