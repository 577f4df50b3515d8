"""Tells passages that talk to the model: a heuristic that warns people, and decides nothing.

Patterns find what is worded as an instruction. They do not find an instruction worded as a plain sentence or
question, and a passage about prompts, or one that quotes a dialogue, looks like one. So what they find is
shown and not left out: what keeps a document from steering a route is that the route does not let it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_PASSAGE = re.compile(r"^<passage (\d+)>\n(.*?)\n</passage \1>$", re.DOTALL | re.MULTILINE)
_ALONE = ("passage", "document", "sentences")  # names of values that hold a text of the corpus without marks
_REPLY = r"(?:answers?|repl(?:y|ies)|responses?|outputs?|elucidations?|solutions?|implementations?)"
PATTERNS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for name, pattern in {
        "sets other instructions aside": r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,40}"
        r"\b(?:previous|prior|above|earlier|preceding|other|all|your)\b[^.\n]{0,30}"
        r"\b(?:instructions?|prompts?|rules?|directions?|context|guidelines?|messages?)\b",
        "says what to reply": r"\b(?:reply|respond|answer|output)\s+(?:only\s+|just\s+|exactly\s+)*"
        r"(?:with\b|only\b|exactly\b|yes\b|no\b|[\"'“])",
        "speaks of the model's answer": rf"\byour\s+(?:\w+\s+){{0,2}}{_REPLY}\b",
        "asks for a piece of code": r"\b(?:following|below|subsequent|provided|given|ensuing)\s+"
        r"(?:\w+\s+)?(?:code|script)\b",
        "takes a role in the dialogue": r"^[^\S\n]*+(?:#++[^\S\n]*+)?"
        r"(?:system|assistant|developer|ai)(?:\s*(?:prompt|message))?\s*:",
        "addresses a model": r"\bas an? (?:ai|language model|assistant)\b|\byou are (?:now )?an? "
        r"(?:ai|assistant|chatbot|language model|helpful)\b"
        r"|\b(?:dear|hey|hello),? (?:ai|assistant|chatgpt|model)\b",
        "gives orders": r"\byou (?:must|should|will|shall|have to) (?:now|only|always|never|instead)\s+"
        r"(?:answer|reply|respond|say|output|write|act|call|use|ignore|follow)\b|\bfrom now on,? you\b|"
        r"\bnew instructions?\b",
        "looks like a tool call": r"</?tool_call|\bfunction_call\b|"
        r"[\"'](?:tool|action|function|name)[\"']\s*:\s*[\"'][\w.-]+[\"']\s*,\s*[\"'](?:arguments|input|parameters|args)[\"']\s*:",
        "has a coded block": r"(?<![\w/+=])(?-i:(?=[\w/+]*[a-z])(?=[\w/+]*[A-Z]))"
        r"(?=[\w/+]*\d)[a-z0-9+/]{60,}={0,2}",
    }.items()
}


def instructions(text: str) -> tuple[str, ...]:
    """Return the names of the `PATTERNS` of instructions to a model that `text` contains."""
    return tuple(name for name, pattern in PATTERNS.items() if pattern.search(text))


def warnings(values: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the suspicious wording of the passages in a prompt's values by passage number; a text without a
    number is "1".
    """
    shown = {number: text for value in values.values() for number, text in _PASSAGE.findall(value)}
    if not shown:
        shown["1"] = "\n".join(value for name, value in values.items() if name in _ALONE)
    return {number: found for number, text in shown.items() if (found := instructions(text))}
