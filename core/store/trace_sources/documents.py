"""Retrieved documents in the outputs of steps, however a framework serialised them.

Sources: LangChain's Document as a dict, as `dumpd` writes it (lc, kwargs), as str and repr print it, in pairs
with scores, and as artifact of a tool message; LlamaIndex' NodeWithScore; Haystack's Document; the query
results of Chroma, Pinecone, Qdrant, Milvus, Elasticsearch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from itertools import islice, zip_longest
from typing import Any

from core.store.trace_sources.values import names, parsed_text

LISTS = names("lists")
TEXT = names("text")
ID = names("id")
_INSIDE = names("inside")
_BESIDE = names("beside")
_SAID = names("message")  # a message, and no document
_PRINTED = re.compile(  # as str() prints LangChain's Document
    r"(?:id=(?P<id>'[^']*'|None) )?(?:metadata=(?P<before>\{.*?\}) )?page_content=(?P<text>'.*?'|\".*?\")"
    r"(?: metadata=(?P<metadata>\{.*?\}))?(?=\s|,|\)|\]|$)",
    re.DOTALL,
)
DEPTH = 5
MAX_PRINTED = 2_000_000  # characters of a printed list that are read


def listed(value: Any, depth: int = DEPTH) -> list[dict[str, Any]]:
    """Return the documents of an output, [] if it is not, and does not hold, a list of them."""
    if isinstance(value, str):
        parsed = parsed_text(value)
        return listed(parsed, depth) if parsed is not None else printed(value)
    if depth <= 0:
        return []
    if isinstance(value, list | tuple):
        found = [document(one) for one in value]
        if found and all(one is not None for one in found):
            return [one for one in found if one is not None]
        nested = [one for one in value[:50] if isinstance(one, list | dict)]
        return next((inner for one in nested if (inner := listed(one, depth - 1))), [])
    if isinstance(value, dict):
        if columns := _columns(value):
            return columns
        names = [name for name in LISTS if name in value]
        return next((inner for name in names if (inner := listed(value[name], depth - 1))), [])
    return []


def document(value: Any) -> dict[str, Any] | None:
    """Return a document as a dict with its text, id, score and metadata on one level, or None if it is not a
    document.
    """
    if isinstance(value, str):
        found = printed(value) if "page_content=" in value[:200] else []
        return found[0] if len(found) == 1 else None
    if isinstance(value, list | tuple) and len(value) == 2 and type(value[1]) in (int, float):
        inner = document(value[0])
        return None if inner is None else {"score": value[1], **inner}
    if not isinstance(value, dict) or any(name in value for name in _SAID):
        return None
    for name in _INSIDE:
        if isinstance(inside := value.get(name), dict):
            inner = document(inside) or (dict(inside) if any(inside.get(text) for text in TEXT) else None)
            if inner is not None:
                own = {
                    key: value[key] for key in ("score", "_score", "distance") if value.get(key) is not None
                }
                ids = {key: value[key] for key in ID if isinstance(value.get(key), str | int)}
                return {**(ids if name != "kwargs" else {}), **inner, **own}
    metadata = value.get("metadata")
    has_text = any(isinstance(value.get(name), str) and value[name] for name in TEXT)
    if not has_text and isinstance(metadata, dict) and any(metadata.get(name) for name in TEXT):  # Pinecone
        text = next(metadata[name] for name in TEXT if metadata.get(name))
        return {**value, "content": text}
    return dict(value) if has_text and any(name in value for name in _BESIDE) else None


def printed(text: str) -> list[dict[str, Any]]:
    """Return the documents in a text that Python printed: Document(...), or page_content='...'."""
    if "page_content=" not in text or len(text) > MAX_PRINTED:
        return []
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is not None:
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        found = [
            {str(one.arg): _literal(ast.unparse(one.value)) for one in call.keywords}
            for call in calls
            if getattr(call.func, "id", "") == "Document"
        ]
        return [one for one in found if one.get("page_content")]
    return [
        {
            "page_content": _literal(one["text"]),
            "metadata": _literal(one["metadata"] or one["before"] or "{}"),
            "id": _literal(one["id"] or "None"),
        }
        for one in _PRINTED.finditer(text)
    ]


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None if text.startswith("{") else text.strip("'\"")


def _columns(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the documents of a result that has a list for each of their fields, like Chroma's."""
    given = (value.get(name) for name in ("ids", "documents", "metadatas", "distances"))
    lists = (one if isinstance(one, list) else [] for one in given)
    ids, texts, *more = (one[0] if one and isinstance(one[0], list) else one for one in lists)
    if len(ids) != len(texts) or not all(isinstance(text, str) for text in texts):
        return []
    rows = islice(zip_longest(ids, texts, *more), len(ids))
    return [dict(zip(("id", "content", "metadata", "distance"), row, strict=True)) for row in rows]
