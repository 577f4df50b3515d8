"""A streamed chat completion, put together as the body that a call without streaming would have had."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from core.backends.llm import reasoning

if TYPE_CHECKING:
    import openai


class EndedEarly(Exception):
    """The stream ended before the endpoint said that its answer was whole; how many characters had come."""


async def streamed(
    client: openai.AsyncOpenAI, fields: dict[str, Any], written: Callable[[str], None]
) -> bytes:
    """Make the call, whose `fields` ask for a stream, and tell `written` the text so far after each piece;
    raises what the client raises, what the transport below it raises meanwhile, and EndedEarly.

    An endpoint that answers all at once is no failure: its body is returned as it is.
    """
    async with client.chat.completions.with_streaming_response.create(**fields) as answer:
        if "text/event-stream" not in answer.headers.get("content-type", ""):
            return bytes(await answer.read())
        whole: dict[str, Any] = {"choices": [], "usage": None, "model": None}
        message: dict[str, Any] = {"content": None}
        ended = False
        async for line in answer.iter_lines():
            kind, _, data = line.partition(":")
            ended = ended or (kind == "data" and data.strip() == "[DONE]")
            if kind != "data" or data.strip() in ("", "[DONE]"):
                continue
            try:
                piece = json.loads(data)
            except (ValueError, RecursionError):
                return str(data).encode()  # the reader of bodies says what is wrong with it
            if not isinstance(piece, dict) or "error" in piece:
                return str(data).encode()
            if _add(piece, whole, message):
                written(message["content"])
        if not ended and whole["choices"] and whole["choices"][0]["finish_reason"] is None:
            raise EndedEarly(len(message["content"] or ""))
        return json.dumps(whole).encode()


def _add(piece: dict[str, Any], whole: dict[str, Any], message: dict[str, Any]) -> bool:
    """Add one piece; whether the text has grown."""
    whole |= {name: piece[name] for name in ("usage", "model") if piece.get(name)}
    choices = piece.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return False
    if not whole["choices"]:
        whole["choices"].append({"message": message, "finish_reason": None})
    said = {name: choices[0][name] for name in ("error", "finish_reason") if choices[0].get(name)}
    whole["choices"][0] |= said
    delta = choices[0].get("delta")
    if not isinstance(delta, dict):
        return False
    for name in ("refusal", *reasoning.FIELDS):
        if isinstance(delta.get(name), str):
            message[name] = message.get(name, "") + delta[name]
    content = delta.get("content")
    if isinstance(content, list):  # of typed blocks, see `reasoning.of_message`
        text, thought = reasoning.of_message({"content": content})
        message["reasoning"] = message.get("reasoning", "") + thought
        content = text
    if not isinstance(content, str):
        return False
    message["content"] = (message["content"] or "") + content
    return bool(content)
