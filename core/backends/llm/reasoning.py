"""Separates what a reasoning model thinks from what it answers: the one place where replies enter. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from core.backends.base import TokenLogprob

FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")  # of a message, next to its content
_NAMES = "think|thinking|thought|thoughts|reasoning|reflection|seed:think"
_OPEN = re.compile(
    rf"<({_NAMES})>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|START_THINKING\|>"
    r"|<\|channel\|>(?:analysis|commentary)[^<]*<\|message\|>",
    re.IGNORECASE,
)
_CLOSE = re.compile(
    rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>"
    r"|<\|channel\|>final[^<]*<\|message\|>",
    re.IGNORECASE,
)
_MARKS = re.compile(
    r"<\|(?:start|end|return|START_RESPONSE|END_RESPONSE|(?:begin|end)_of_solution)\|>(?:assistant)?"
)
_LONGEST = 48  # characters of a tag


def split(content: str, *, unopened: bool = False, ended: bool = True) -> tuple[str, str]:
    """Return the answer in `content` and the reasoning.

    A tag that is never closed makes the rest reasoning; a closing tag alone makes all before it reasoning.
    `unopened`: this model's template opens the tag, so text without a closing tag is reasoning. Not `ended`:
    more will come, so the beginning of a tag at the end is held back.
    """
    closes = list(_CLOSE.finditer(content))
    if closes and (not (first := _OPEN.search(content)) or closes[0].start() < first.start()):
        before = content[: closes[0].start()]
        answer, rest = split(content[closes[0].end() :], ended=ended)
        return answer, _joined(before, rest)
    if unopened and not closes and not _OPEN.search(content):
        return "", content.strip()
    kept, thought, at = [], [], 0
    while opened := _OPEN.search(content, at):
        kept.append(content[at : opened.start()])
        closed = _CLOSE.search(content, opened.end())
        thought.append(content[opened.end() : closed.start() if closed else None])
        at = closed.end() if closed else len(content)
    rest = content[at:]
    if not ended:
        rest = rest[: _held_back(rest)]
    if not thought:
        return rest, ""
    return _MARKS.sub("", "".join((*kept, rest))).strip(), _joined(*thought)


def of_message(message: Mapping[str, Any], *, unopened: bool = False) -> tuple[str | None, str]:
    """Return the answer of a message, None if it has none, and its reasoning, wherever that is."""
    content, apart = _text(message.get("content"))
    for name in FIELDS:
        if isinstance(found := message.get(name), str) and found:
            apart = _joined(apart, found)
            break
    if content is None:
        return ("" if apart else None), apart
    answer, inside = split(content, unopened=unopened and not apart)
    return answer, _joined(apart, inside)


def opens_itself(content: Any) -> bool:
    """Return True if a reply closes a tag that it never opened."""
    if not isinstance(content, str) or not (closed := _CLOSE.search(content)):
        return False
    opened = _OPEN.search(content)
    return opened is None or closed.start() < opened.start()


def of_answer(tokens: tuple[TokenLogprob, ...], answer: str) -> tuple[TokenLogprob, ...]:
    """Return those of a reply's tokens that spell `answer`; none if reasoning may be among them."""
    whole, wanted = "".join(token.token for token in tokens), answer.strip()
    at = whole.rfind(wanted) if wanted else len(whole)
    ends = accumulate(len(token.token) for token in tokens)
    return next((tokens[number:] for number, end in enumerate(ends) if 0 <= at < end), ())


def _text(content: Any) -> tuple[str | None, str]:
    """Return the text and the reasoning of a content that may be a list of typed blocks."""
    if not isinstance(content, list):
        return (content, "") if isinstance(content, str) else (None, "")
    kept, thought = [], []
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        inside = block.get(kind) if isinstance(kind, str) else None
        if kind == "text" and isinstance(inside, str):
            kept.append(inside)
        elif kind in ("thinking", "reasoning"):
            parts = inside if isinstance(inside, list) else [inside]
            thought += [one["text"] if isinstance(one, dict) and "text" in one else str(one) for one in parts]
    return ("".join(kept) if kept else None), _joined(*thought)


def _held_back(text: str) -> int:
    """Return where a tag may begin that has not wholly come yet."""
    for mark in ("<", "[", "◁"):
        at = text.rfind(mark)
        if at >= 0 and len(text) - at < _LONGEST and not re.search(r"[>\]▷\n]", text[at:]):
            return at
    return len(text)


def _joined(*parts: str) -> str:
    return "\n".join(part.strip() for part in parts if part.strip())
