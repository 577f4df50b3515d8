"""What an earlier step came to, as a type: told by its name, else by the shape of what it gave.

The functions give documents for `core.outputs.from_document`, so that what does not fit is noticed.
"""

from __future__ import annotations

from core import outputs
from core.errors import BadInput
from core.outputs import NOTHING, Output, Pass
from core.store.upgrade import decisions, lists, writings
from core.store.upgrade.earlier import Around, Document, Earlier
from core.store.upgrade.read import table

ALONE = {**decisions.ALONE, **lists.ALONE, **writings.ALONE}
AMONG = {**lists.AMONG, **writings.AMONG}
ALWAYS = {  # also of a step that did not end: it tells what was to be done
    "copy words from the passages", "embed", "embed tokens", "look for a short answer", "look up words",
    "search BM25", "search the conversation", "search the web", "search vectors",
}  # fmt: skip


def output_of(span: Earlier, around: Around) -> Output:
    """The outcome as a type; as it was stored where it fits none."""
    try:
        document = _document(span, around)
        return NOTHING if document is None else outputs.from_document(document)
    except (BadInput, TypeError, ValueError, AttributeError, LookupError):  # a bundle may hold anything
        return Pass(span.output)


def _document(span: Earlier, around: Around) -> Document | None:
    if span.asked_model:
        return _reply(span)
    if span.output is None and not span.ranks and span.name not in ALWAYS:
        return None  # it did not end, or gave nothing but a vector
    if span.name in AMONG:
        return AMONG[span.name](span, around)
    if span.name in ALONE:
        return ALONE[span.name](span)
    if isinstance(table(span.output).get("decision"), str):
        return decisions.decision(span)
    return None if span.output is None else {"type": "pass", "value": span.output}


def _reply(span: Earlier) -> Document | None:
    if not isinstance(span.output, str):
        return None
    made = span.inputs.get("made")
    document = {"type": "reply", "text": span.output, "cut": bool(span.inputs.get("finish"))}
    return {**document, "made": made} if isinstance(made, str) else document
