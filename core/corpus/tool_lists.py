"""Reads descriptions of tools, a document each: OpenAPI (2 and 3), MCP tool lists and OpenAI functions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from core.corpus.types import Document
from core.domain import safe_yaml
from core.domain.text import composed, composed_values

MOST = 32 * 2**20  # bytes of a file that may be one
NODES = 1_000_000  # values in it
DEEP = 4  # levels of a schema that are described
SIGNS = (b"openapi", b"swagger", b"inputSchema", b"parameters")  # one of them is near the beginning
SNIFFED = 65_536
LINES = 400  # on one tool
Described = tuple[str, str, dict[str, str]]  # title, text, metadata
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def read(file: Path, name: str) -> list[Document]:
    """Return a document for each tool that a JSON or YAML file describes; none if it is no list of tools."""
    if file.stat().st_size > MOST:
        return []
    with file.open("rb") as opened:
        head = opened.read(SNIFFED)
    if not any(sign in head for sign in SIGNS):
        return []
    try:
        text = file.read_text(encoding="utf-8-sig")
        whole = json.loads(text) if file.suffix.lower() == ".json" else safe_yaml.load(text, NODES)
    except (ValueError, RecursionError):
        return []  # the readers of other files say what is wrong with it
    whole = composed_values(whole)
    if isinstance(whole, dict) and ("openapi" in whole or "swagger" in whole):
        found = _operations(whole)
    else:
        found = _functions(whole)
    return [Document(composed(f"{name}/{title}"), title, text, meta) for title, text, meta in found]


def _operations(api: Mapping[str, Any]) -> Iterator[Described]:
    for path, item in _items(api.get("paths")):
        for method, operation in _items(item):
            if method.lower() in METHODS and isinstance(operation, dict):
                title = f"{method.upper()} {path}"
                given = (*_listed(item.get("parameters")), *_listed(operation.get("parameters")))
                lines = [title, *_texts(operation, "operationId", "summary", "description")]
                lines += islice(_request(api, given, operation), LINES)
                tags = ", ".join(map(str, _listed(operation.get("tags"))))
                yield title, "\n".join(lines), {"tags": tags} if tags else {}


def _request(api: Mapping[str, Any], given: Sequence[Any], operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines on what an operation takes and answers."""
    for one in given:
        parameter = _resolved(api, one)
        schema = _resolved(api, parameter.get("schema")) or parameter
        about = {"description": parameter.get("description")} if "description" in parameter else {}
        need = ", required" if parameter.get("required") else ""
        yield from _schema(api, f"{parameter.get('name')} ({parameter.get('in')}{need})", {**schema, **about})
    for kind, content in _items(_resolved(api, operation.get("requestBody")).get("content")):
        yield from _schema(api, f"body, {kind}", content.get("schema") if isinstance(content, dict) else None)
    for status, answer in _items(operation.get("responses")):
        yield from (f"- {status}: {said}" for said in _texts(_resolved(api, answer), "description"))


def _functions(whole: Any) -> Iterator[Described]:
    """Yield MCP's tools, of a list or of a server's reply, and OpenAI's functions."""
    if isinstance(whole, dict):
        reply = whole.get("result")
        whole = (reply if isinstance(reply, dict) else whole).get("tools")
    for one in _listed(whole):
        tool = one.get("function", one) if isinstance(one, dict) else None
        schema = tool.get("inputSchema", tool.get("parameters")) if isinstance(tool, dict) else None
        if isinstance(tool, dict) and isinstance(tool.get("name"), str) and isinstance(schema, dict):
            lines = [tool["name"], *_texts(tool, "title", "description")]
            lines += islice(_schema(schema, "arguments", schema), LINES)
            yield tool["name"], "\n".join(lines), {}


def _schema(api: Mapping[str, Any], name: str, schema: Any, level: int = 0) -> Iterator[str]:
    """Yield lines on a JSON Schema: names, types, allowed values, descriptions."""
    one = _resolved(api, schema)
    if not one or level > DEEP:
        return
    allowed = ", ".join(map(str, _listed(one.get("enum"))))
    facts = "; ".join(filter(None, (str(one.get("type", "")), f"one of {allowed}" if allowed else "")))
    about = " ".join(_texts(one, "description"))
    yield f"{'  ' * level}- {name}{f' ({facts})' if facts else ''}{f': {about}' if about else ''}"
    for inner, part in _items(one.get("properties")):
        yield from _schema(api, inner, part, level + 1)
    if isinstance(one.get("items"), dict):
        yield from _schema(api, "each", one["items"], level + 1)
    for how in ("allOf", "oneOf", "anyOf"):
        for part in _listed(one.get(how)):
            yield from _schema(api, how, part, level + 1)


def _resolved(api: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return an object, or the one in the same file that its `$ref` names; {} for anything else."""
    for _ in range(DEEP):
        ref = value.get("$ref") if isinstance(value, dict) else None
        if not isinstance(ref, str):
            break
        value = api
        for part in ref.removeprefix("#/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[tuple[str, Any]]:
    return [(str(key), one) for key, one in value.items()] if isinstance(value, dict) else []


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _texts(value: Mapping[str, Any], *names: str) -> list[str]:
    return [text.strip() for name in names if isinstance(text := value.get(name), str) and text.strip()]
