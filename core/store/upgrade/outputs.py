"""What an earlier step came to, as a type: told by its name, else by the shape of what it gave.

The functions give documents for `core.domain.outputs.from_document`, so that what does not fit is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.domain import outputs
from core.domain.errors import BadInput
from core.domain.outputs import NOTHING, Embedding, Fusion, Output, Pass, Reply, Search
from core.store.upgrade import decisions, lists, writings
from core.store.upgrade.earlier import Around, Document, Earlier
from core.store.upgrade.read import table

ALONE = {**decisions.ALONE, **lists.ALONE, **writings.ALONE}
AMONG = {**lists.AMONG, **writings.AMONG}
ALWAYS = {  # also of a step that did not end: it tells what was to be done
    "copy words from the passages",
    "embed",
    "embed tokens",
    "look for a short answer",
    "look up words",
    "search BM25",
    "search the conversation",
    "search the web",
    "search vectors",
}
_PLAIN: Mapping[str, Output] = {
    "append the rest": Fusion("append"),
    "fuse by normalised scores": Fusion("linear"),
    "fuse by reciprocal rank": Fusion("rrf"),
    "search vectors": Search(),
}


def output_of(span: Earlier, around: Around) -> Output:
    """The outcome as a type; as it was stored where it fits none."""
    try:
        if (plain := _plain(span)) is not None:
            return plain
        document = _document(span, around)
        return NOTHING if document is None else outputs.from_document(document)
    except (BadInput, TypeError, ValueError, AttributeError, LookupError):  # a bundle may hold anything
        return Pass(span.output)


def _document(span: Earlier, around: Around) -> Document | None:
    if span.output is None and not span.ranks and span.name not in ALWAYS:
        return None  # it did not end, or gave nothing but a vector
    if span.name in AMONG:
        return AMONG[span.name](span, around)
    if span.name in ALONE:
        return ALONE[span.name](span)
    if isinstance(table(span.output).get("decision"), str):
        return decisions.decision(span)
    return None if span.output is None else {"type": "pass", "value": span.output}


def _plain(span: Earlier) -> Output | None:
    """The commonest ones, made without a detour."""
    if span.asked_model:
        if not isinstance(span.output, str):
            return NOTHING
        made, cut = span.inputs.get("made"), bool(span.inputs.get("finish"))
        model = span.name.removeprefix("ask ")
        return Reply(span.output, model=model, made=made if isinstance(made, str) else "", cut=cut)
    text = span.inputs.get("text")
    if span.name in _PLAIN:
        return _PLAIN[span.name]
    if span.name in ("embed", "search BM25") and isinstance(text, str):
        return Embedding((text,)) if span.name == "embed" else Search((text,))
    return None
