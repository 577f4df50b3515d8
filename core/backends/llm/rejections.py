"""The reasons for which a service rejected a request, in any format, and the change to make. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.backends.llm.profile import Profile, keywords, limit
from core.domain.program import table

STATUSES = (400, 403, 422)
_WORDS = table(__file__)
SPELLED: Mapping[str, list[str]] = _WORDS["spelled"]
QUOTED: Mapping[str, list[str]] = _WORDS["quoted"]
KIN = frozenset[str](_WORDS["schema"]["kin"])
_TEXT = ("message", "msg", "description", "detail", "error", "raw", "title", "reason", "errors")
_PLACE = ("param", "field", "parameter", "loc", "path")
_LEAST = re.compile(
    r"(?:>=|≥|at least|minimum(?: value)?(?: is| of)?|greater than or equal to|no less than)\D{0,12}(\d+)",
    re.I,
)
_MORE_THAN = re.compile(r"(?:greater than|more than|>)\s*(\d+)", re.I)
_MOST = re.compile(
    r"(?:<=|≤|at most|maximum(?: allowed)?(?: value)?(?: is| of|:)?|less than or equal to|max allowed:?|"
    r"no more than|up to|between \d+ and)\D{0,12}(\d+)",
    re.I,
)
_KEYWORD = re.compile(r"['\"`](\$?\w+)['\"`]")
_ELSEWHERE = re.compile(
    r"context[ _](?:length|window)|maximum context|prompt is too long|too many (?:input )?tokens|credit"
    r"|balance|billing|quota|content[ _](?:policy|filter|management)|safety|api key"
    r"|model[^.]{0,40}(?:not found|does not exist)",
    re.I,
)
_WINDOW = re.compile(r"(?:context (?:length|window)|maximum context)\D{0,40}([\d,]{4,})", re.I)
GUESSES = ("tools", "logprobs", "response_format", "seed", "stop", "temperature", "system")
# What a sentence is about, by what of a request is untried (`profile.parts`).
PARTS = {
    "alternatives": ("logprobs", "top_logprobs"),
    "schema": ("response_format",),
    "max_tokens": ("max_tokens",),
}
SCHEMA_WORDS = ("description", "title", "default")


@dataclass(frozen=True, slots=True)
class Rejection:
    """A service's rejection."""

    places: tuple[str, ...]  # the fields named in a place for that
    text: str  # its sentences


def parse(data: bytes) -> Rejection:
    """Parse the body of an error into places and sentences: objects, lists, and JSON inside strings."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return Rejection((), data[:2000].decode(errors="replace"))
    pairs = list(_walk(found, 0))
    places = [text for kind, text in pairs if kind == "place"]
    return Rejection(tuple(dict.fromkeys(places)), " ".join(text for kind, text in pairs if kind == "text"))


def _walk(value: Any, depth: int, key: str = "message") -> Iterator[tuple[str, str]]:
    if depth > 12:
        return
    if isinstance(value, str):
        start = value.lstrip()[:1]
        if start in ("{", "["):
            try:
                yield from _walk(json.loads(value), depth + 1)
                return
            except (ValueError, RecursionError):
                pass
        if key in _PLACE:
            yield "place", value
        elif key in _TEXT:
            yield "text", value[:2000]
    elif isinstance(value, list):
        if key == "loc":
            yield "place", ".".join(str(one) for one in value if isinstance(one, str) and one != "body")
            return
        for one in value:
            yield from _walk(one, depth + 1, key)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name != "input":  # what was sent: anybody's text
                yield from _walk(one, depth + 1, name)


def window(rejection: Rejection) -> int | None:
    """Return the context length in tokens named by the rejection of a long prompt, or None."""
    found = _WINDOW.search(rejection.text)
    return int(found[1].replace(",", "")) if found else None


def learned(
    status: int, rejection: Rejection, fields: Mapping[str, Any], profile: Profile, untried: set[str]
) -> Profile | None:
    """Return the profile updated by a rejection, or None if it does not concern a field that was sent.

    `untried` are the parts the endpoint has never accepted: a sentence that only mentions a field counts for
    those alone, a place for names counts for any.
    """
    ours = {theirs: name for name, theirs in profile.renamed.items()}
    sent = {ours.get(name, name) for name in fields}
    if fields["messages"][0]["role"] == "system":
        sent.add("system")
    if (at := {name for place in rejection.places if (name := _named(place)) in sent}) == set():
        if _ELSEWHERE.search(rejection.text):
            return None
        about = untried.union(*(names for part, names in PARTS.items() if part in " ".join(untried)))
        at = {name for name in _mentioned(rejection.text) if name in sent & about}
    after = profile
    for name in sorted(at):
        after = _changed(name, status, rejection.text, fields, after)
    return after if after != profile else None


def guesses(fields: Mapping[str, Any], untried: set[str]) -> list[str]:
    """Return the fields to omit one after another if a rejection names none."""
    return [name for name in GUESSES if name in untried and (name in fields or name == "system")]


def elsewhere(rejection: Rejection) -> bool:
    """Return True if a rejection does not concern the form of the request."""
    return bool(_ELSEWHERE.search(rejection.text))


def _named(place: str) -> str:
    """Our name of the field at a place such as "response_format.json_schema.schema" or "messages[0].role"."""
    if re.match(r"messages(?:[.\[]0\]?)?\.role", place):
        return "system"
    first = re.split(r"[.\[]", place.strip())[0]
    for ours, names in (*SPELLED.items(), *QUOTED.items()):
        if place in names or first in names or first == ours:
            return ours
    return first


def _mentioned(text: str) -> list[str]:
    forms = ((SPELLED, r"(?<![A-Za-z]){}(?![A-Za-z_])"), (QUOTED, "['\"`]{}['\"`]"))
    found = [
        ours
        for table, form in forms
        for ours, names in table.items()
        if any(re.search(form.format(re.escape(name)), text, re.I) for name in names)
    ]
    if re.search(r"system (?:role|message|prompt|instruction)|developer instruction", text, re.I):
        found.append("system")
    if "top_logprobs" in found and not re.search(r"(?<!top_)logprobs", text):
        found = [name for name in found if name != "logprobs"]
    if re.search(r"structured outputs?|json schema", text, re.I):
        found.append("response_format")
    return list(dict.fromkeys(found))


def _changed(name: str, status: int, text: str, fields: Mapping[str, Any], profile: Profile) -> Profile:
    """Return the profile without the field, or with another name or limit for it."""
    noted = profile.noting(name, " ".join(text.split())[:200])
    most = _bound(_MOST, text)
    if name == "max_tokens":
        sent = limit(fields)
        least = _bound(_LEAST, text) or _bound(_MORE_THAN, text) + 1
        if least > sent:
            return replace(noted, least_tokens=least)
        if least <= most < sent:
            return replace(noted, most_tokens=most)
    if name == "top_logprobs":
        if 0 < most < int(fields.get("top_logprobs") or 0):
            return replace(noted, most_alternatives=most)
        return noted.without("logprobs")
    other = {"max_tokens": "max_completion_tokens", "seed": "random_seed"}.get(name)
    if other and name not in noted.renamed and (name != "seed" or status == 422 or other in text):
        return replace(noted, renamed={**noted.renamed, name: other})
    if name == "response_format":
        return _other_schema(text, fields, noted)
    return noted.without(name)


def _other_schema(text: str, fields: Mapping[str, Any], profile: Profile) -> Profile:
    inside = keywords(((fields.get("response_format") or {}).get("json_schema") or {}).get("schema"))
    removable = inside - {"type", "properties", "items", "anyOf", "enum", "$ref", "$defs", "required"}
    gone = [word for word in _KEYWORD.findall(text) if word in removable and word != "additionalProperties"]
    gone = gone or [
        word
        for word in sorted(removable)
        if re.search(rf"\b{re.escape(word)}\b", text)
        and word not in (*SCHEMA_WORDS, "additionalProperties", "name", "strict")
    ]
    if gone:
        words = {*profile.without_keywords, *gone, *(KIN if KIN & set(gone) else ())}
        return replace(profile, without_keywords=tuple(sorted(words)))
    return replace(profile, json="object" if profile.json == "schema" else "none")


def _bound(pattern: re.Pattern[str], text: str) -> int:
    """Return the number that `pattern` finds in a sentence, or 0."""
    found = pattern.search(text)
    return int(found[1]) if found else 0
