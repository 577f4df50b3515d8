"""What earlier steps decided, with all that they could have decided."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.store.upgrade.earlier import Alone, Document, Earlier
from core.store.upgrade.read import rows, table

_MANY = re.compile(r"(\d+) of (\d+) tables")
ACTIONS = ("correct", "ambiguous", "incorrect")
CLASSES = ("no_retrieval", "exact", "plain", "conceptual", "complex", "conversational", "structured")
CANDIDATES: Mapping[str, tuple[str, ...]] = {  # the routes that a question of a class could be given to
    "no_retrieval": ("no search",),
    "exact": ("bm25",),
    "plain": ("rerank",),
    "conceptual": ("multistage", "rerank"),
    "complex": ("iterative", "decompose", "rerank"),
    "conversational": ("memory",),
    "structured": ("text_to_sql", "rerank"),
}
TABLES = ("answered", "repaired", "no rows", "rejected by the guard", "failed")
STOPS = ("answered", "steps used up", "nothing new", "repeated", "budget spent")

# What a step could decide, in the order declared.
WAYS: Mapping[str, tuple[str, ...]] = {
    "act on the grades": (
        "use what was found",
        "add the web",
        "replace it by the web",
        "go on without the web",
        "knowledge gap",
    ),
    "analyse the question": ("none", "rewrite", "decompose", "hyde", "variants"),
    "check the answer": ("passed", "failed", "not checked"),
    "choose again or stop": ("choose", "steps used up", "nothing to do", "budget spent"),
    "choose an action": ("search", "look_up", "sql", "answered", "unusable choice"),
    "choose tables": ("all tables", "some tables", "no tables"),
    "choose the side": ("both", "tables only", "passages only", "neither"),
    "classify the question": CLASSES,
    "criticise the draft and decide": ("refine", "stop"),
    "decide by confidence": ("answer without retrieval", "retrieve"),
    "decide whether to look it up": ("retrieve", "no retrieval"),
    "decide whether to retrieve": ("retrieve", "no retrieval"),
    "do the passages answer the question": ("yes", "no", "unknown"),
    "go on or stop": ("go on", *STOPS),
    "grade and decide": ACTIONS,
    "grade the round and decide": ("enough", "try again", "stop"),
    "is it another question": ("try again", "stop"),
    "is the answer in the passages": ("answer", "abstain"),
    "keep the best paths": ("go on", "every path has ended", "as deep as allowed", "nothing found"),
    "look for exact terms": ("hybrid", "hyde"),
    "reason one sentence": ("search", "answered", "nothing new", "repeated"),
    "was it asked before": ("new", "asked before", "repeated"),
    "ask the tables": TABLES,
    "write and run SQL": TABLES,
}
SCORES = {  # the field of an outcome with the score that was held against a threshold
    "decide by confidence": "confidence",
    "decide whether to look it up": "probability",
    "decide whether to retrieve": "probability",
    "is the answer in the passages": "score",
}
WRITTEN = {"choose an action": "input", "reason one sentence": "sentence"}  # the text to go on with


def decision(span: Earlier) -> Document:
    """A mapping with what was decided and why; fields of its own are its details."""
    given = dict(table(span.output))
    why = str(given.pop("why", "")).replace("the knob ", "the parameter ")  # what parameters were called then
    document: Document = {"type": "decision", "decision": given.pop("decision"), "why": why}
    document["ways"] = WAYS.get(span.name, ())
    if span.name in SCORES:
        document["score"] = given.pop(SCORES[span.name], None)
        document["threshold"] = given.pop("threshold", span.inputs.get("threshold"))
    if span.name in WRITTEN:
        document["text"] = given.pop(WRITTEN[span.name])
    return {**document, "scores": given.pop("scores", {}), "details": given}


def _whether(span: Earlier) -> Document:
    """The model was asked only where that was left to it."""
    document = decision(span)
    return document if document["score"] is not None else {**document, "threshold": None}


def _confidence(span: Earlier) -> Document:
    """Where there was no answer to be sure of, 0 stood for that."""
    document = decision(span)
    return {**document, "score": None} if document["details"].get("by") == "no answer" else document


def _analysis(span: Earlier) -> Document:
    given = table(span.output)
    document = {"type": "decision", "decision": given["transformation"], "why": given["reason"]}
    return {**document, "ways": WAYS[span.name], "details": {"nearest": given["nearest"]}}


def _terms(span: Earlier) -> Document:
    terms = rows(table(span.output)["terms"])
    named = ", ".join(repr(table(one)["text"]) for one in terms[:3])
    why = "it has no exact identifier: a hypothetical answer may be nearer"
    return {**decision(span), "why": f"it has exact identifiers: {named}" if terms else why}


def _dispatch(span: Earlier) -> Document:
    ways = CANDIDATES.get(str(span.inputs.get("asked")), ())
    return {**decision(span), "ways": ways}


def _tables_chosen(span: Earlier) -> Document:
    given = table(span.output)
    listed = [one if isinstance(one, Mapping) else {"name": one} for one in rows(given["tables"])]
    way = "some tables" if _MANY.fullmatch(given["decision"]) else given["decision"]
    return {**decision(span), "decision": way, "details": {"tables": listed}}


def _alone(span: Earlier) -> Document:
    ways = ("stands alone", "needs what was said")
    inputs = span.inputs
    return {
        "type": "decision",
        "decision": ways[0 if span.output else 1],
        "ways": ways,
        "why": inputs["note"],
        "score": inputs["best"],
        "threshold": inputs["enough"],
    }


ALONE: Mapping[str, Alone] = {
    "analyse the question": _analysis,
    "choose a route": _dispatch,
    "choose tables": _tables_chosen,
    "decide by confidence": _confidence,
    "decide whether to retrieve": _whether,
    "does the question stand alone": _alone,
    "look for exact terms": _terms,
}
