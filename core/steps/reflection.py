"""The output format and prompt of a model trained with reflection tokens. Pure.

Source: Asai et al. 2023, "Self-RAG: Learning to Retrieve, Generate, and Critique through Self-Reflection",
arXiv:2310.11511, table 1 and appendix A; the prompt is that of the released models.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from core.backends.base import Completion, TokenLogprob
from core.backends.prompting.untrusted import harmless
from core.domain.errors import ModelFailed
from core.steps.beam import GOES_ON

RETRIEVE, NO_RETRIEVAL, CONTINUE = "[Retrieval]", "[No Retrieval]", "[Continue to Use Evidence]"
RELEVANCE = ("[Relevant]", "[Irrelevant]")
SUPPORT = ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]")
UTILITY = tuple(f"[Utility:{n}]" for n in range(1, 6))
WORTH = (-1.0, -0.5, 0.0, 0.5, 1.0)  # of each utility, section 3.3
TOKENS = (RETRIEVE, NO_RETRIEVAL, CONTINUE, *RELEVANCE, *SUPPORT, *UTILITY)
ALTERNATIVES = 20  # the most a vLLM server gives by default

_WRITTEN = re.compile("|".join(map(re.escape, TOKENS)))
_MARKUP = re.compile(r"</?paragraph>|</?s>|<unk>|\[PAD\]")
_NAMES = "|".join(re.sub(r"[\s:/]+", r"[\\s:/]*", token.strip("[]")) for token in TOKENS)
_INJECTED = re.compile(
    rf"\[(?=\s*(?:{_NAMES}|PAD)\s*\])|<(?=\s*/?\s*(?:paragraph|s|unk)\s*/?>)", re.IGNORECASE
)
_HEADING = re.compile(
    r"^(?:[^\S\n]|#)*#(?=\s*(?:instruction|input|response)\b)", re.IGNORECASE | re.MULTILINE
)

Ended = Literal["end", "retrieve", "cut"]


def foreign(text: str) -> str:
    """`text` of a question or passage without anything the model would read as a token or mark of its own:
    "[Relevant]" becomes "⟦Relevant]", "</paragraph>" becomes "‹/paragraph>".
    """
    marked = _INJECTED.sub(lambda found: "⟦" if found[0] == "[" else "‹", harmless(text))
    return _HEADING.sub("", marked)


def opening(question: str) -> str:
    """Return the prompt up to the model's own words."""
    return f"### Instruction:\n{foreign(question)}\n\n### Response:\n"


def evidence(title: str, text: str) -> str:
    """Format a passage as the model reads it, after the token that requests it."""
    return f"{RETRIEVE}<paragraph>{foreign(title)}\n{foreign(text)}</paragraph>"


def spoken(text: str) -> str:
    """Remove the reflection tokens and marks from a model's text."""
    return " ".join(_MARKUP.sub(" ", _WRITTEN.sub(" ", text)).split())


def odds(token: TokenLogprob, names: tuple[str, ...]) -> tuple[float, ...] | None:
    """Return the probabilities of `names` at a token, normalised to 1, or None if no alternative matches."""
    found = dict.fromkeys(names, 0.0)
    for written, logprob in dict(token.top or ((token.token, token.logprob),)).items():
        if written.strip() in found:
            found[written.strip()] += math.exp(logprob)
    total = sum(found.values())
    return tuple(mass / total for mass in found.values()) if total > 0 else None


@dataclass(frozen=True, slots=True)
class ReflectionSegment:
    """A text segment up to the model's next request for passages, with the model's own judgements."""

    text: str
    raw: str  # the text with its tokens, which a continuation needs
    relevance: float | None  # None if not judged, like `support` and `utility`
    support: Mapping[str, float] | None
    utility: float | None
    likelihood: float  # geometric mean of the tokens' probabilities
    ended: Ended  # "cut" at the token limit
    asks: float | None = None  # P(retrieve) against P(no retrieval) at the end


def read_segment(completion: Completion, threshold: float | None) -> ReflectionSegment:
    """Read the segment at the beginning of a completion and drop the rest.

    It ends with its first utility token, at [Retrieval], and, unless `threshold` is None, at a [No Retrieval]
    where [Retrieval] has at least that share of the two. Raises ModelFailed if text and tokens disagree.
    """
    places = _places(completion)
    end, size = len(completion.text), len(completion.logprobs)
    ended: Ended = "cut" if completion.finish == "length" else "end"
    asks = None
    for name, start, stop, at in places:
        if name in (RETRIEVE, NO_RETRIEVAL):
            share = odds(completion.logprobs[at], (RETRIEVE, NO_RETRIEVAL))
            asks = share[0] if share else None
            if name == RETRIEVE or (threshold is not None and (asks or 0.0) >= threshold):
                end, size, ended = start, at, GOES_ON
                break
        elif name in UTILITY:
            end, size, ended = stop, at + 1, "end"
            break
    tokens, raw = completion.logprobs[:size], completion.text[:end]
    relevance = odds(tokens[0], RELEVANCE) if tokens else None
    support = _first(tokens, SUPPORT)
    utility = _first(tokens, UTILITY)
    return ReflectionSegment(
        spoken(raw),
        raw.removesuffix("</s>"),
        relevance[0] if relevance else None,
        dict(zip(("fully", "partially", "no"), support, strict=True)) if support else None,
        sum(worth * mass for worth, mass in zip(WORTH, utility, strict=True)) if utility else None,
        math.exp(sum(token.logprob for token in tokens) / len(tokens)) if tokens else 0.0,
        ended,
        asks,
    )


def _first(tokens: tuple[TokenLogprob, ...], names: tuple[str, ...]) -> tuple[float, ...] | None:
    return next((odds(token, names) for token in tokens if token.token.strip() in names), None)


def _places(completion: Completion) -> Iterator[tuple[str, int, int, int]]:
    """Each reflection token: name, characters [start, stop) of the text, and index among the tokens."""
    at = [n for n, token in enumerate(completion.logprobs) if token.token.strip() in TOKENS]
    named = [completion.logprobs[n].token.strip() for n in at]
    found = list(_WRITTEN.finditer(completion.text))
    if [match[0] for match in found] == named[:-1] and named[-1:] == [RETRIEVE]:
        end = len(completion.text)  # a server that leaves out what it was told to stop at
        spans = [*((match.start(), match.end()) for match in found), (end, end)]
    elif [match[0] for match in found] == named:
        spans = [(match.start(), match.end()) for match in found]
    else:
        raise ModelFailed(
            f"{completion.model} gives {len(found)} reflection tokens in its text and {len(named)} among its "
            "tokens: it is no reflection-token model, or its server hides special tokens"
        )
    return ((name, *span, n) for name, span, n in zip(named, spans, at, strict=True))
