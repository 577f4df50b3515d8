"""A text-completion endpoint (/completions), for models that are prompted with bare text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from core.backends.base import Completion, LLMRequest, TokenLogprob
from core.backends.llm import wire
from core.backends.llm.client import ChatClient
from core.backends.llm.profile import Profile

if TYPE_CHECKING:
    import openai


class CompletionsClient(ChatClient):
    """As `ChatClient`; a request's only message is the whole prompt, sent as it is.

    The answer comes with its special tokens as text, and with what ended it, as vLLM gives them when asked;
    servers that do not know these options must ignore them. Nothing is streamed.
    """

    hints: Mapping[int, str] = {
        **ChatClient.hints,
        401: "refused the API key (401); set self_rag_api_key",
        404: "knows no such model or address (404); check self_rag_model and self_rag_base_url",
    }

    def _fields(self, request: LLMRequest, _profile: Profile, _stream: bool) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "model": self.model,
            "prompt": "".join(message.content for message in request.messages),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "echo": False,
            "extra_body": {
                "skip_special_tokens": False,
                "spaces_between_special_tokens": False,
                "include_stop_str_in_output": True,
            },
        }
        if request.stop:
            fields["stop"] = list(request.stop)
        if request.top_logprobs:
            fields["logprobs"] = request.top_logprobs
        return fields

    def _create(self, client: openai.AsyncOpenAI) -> Callable[..., Any]:
        return client.completions.with_raw_response.create

    def _read(self, data: bytes, request: LLMRequest, _profile: Profile, _limit: int) -> Completion:
        return read(data, request, self._words, self.model)


def read(data: bytes, request: LLMRequest, words: wire.EndpointWords, model: str) -> Completion:
    """Read the completion in a response body. Raises ModelFailed for anything that is not a usable answer."""
    answer, choice = wire.choice_of(data, words)
    text, finish = choice.get("text"), wire.finish_of(choice)
    if not isinstance(text, str):
        raise words.failed(f"answered without text (finish: {finish})", json.dumps(choice))
    logprobs = _logprobs(choice.get("logprobs"), words) if request.top_logprobs else ()
    if not text.strip() and not logprobs:
        raise words.failed(f"answered with an empty text (finish: {finish})")
    return wire.completion(answer, text, finish, logprobs, model)


def _logprobs(given: Any, words: wire.EndpointWords) -> tuple[TokenLogprob, ...]:
    """Read the tokens with their alternatives, given as parallel lists."""
    tokens = given.get("tokens") if isinstance(given, dict) else None
    if not isinstance(tokens, list) or not tokens:
        raise words.failed("gave no token probabilities, which this step needs")
    try:
        found = tuple(
            TokenLogprob(
                str(token),
                wire.number(logprob),
                tuple(sorted(((str(o), wire.number(p)) for o, p in top.items()), key=lambda one: -one[1])),
            )
            for token, logprob, top in zip(
                tokens, given["token_logprobs"], given["top_logprobs"], strict=True
            )
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise words.failed("gave token probabilities of an unknown form", json.dumps(given)) from None
    return found
