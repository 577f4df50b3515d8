"""Rankings and vectors that earlier steps made: what was searched, fused, put in another order or chosen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.store.upgrade.earlier import Alone, Among, Around, Document, Earlier
from core.store.upgrade.read import rows, table

_ROUND = re.compile(r"round (\d+) of \d+")


def _search(span: Earlier) -> Document:
    inputs = span.inputs
    text = inputs.get("words" if span.name == "look up words" else "text")
    document: Document = {"type": "search", "texts": [text] if isinstance(text, str) else []}
    if "found by" in inputs:
        document["keys"] = inputs["found by"]
    if span.name == "search learned term weights" and "expansion" in inputs:
        document |= {name: inputs[name] for name in ("model", "terms", "expansion", "matched")}
    if span.name == "search all token vectors":
        document |= {"model": inputs.get("model", ""), "tokens": _tokens(inputs.get("match"))}
    if span.name == "search the conversation":
        document["recalled"] = rows(span.output)
    return document


def _tokens(match: Any) -> Document | None:
    if not isinstance(match, Mapping):
        return None
    hits = [{name: one[name] for name in one if name != "score"} for one in match["hits"]]
    return {"query": match["query"], "hits": hits}


def _samples(span: Earlier, around: Around) -> Document:
    lists = [one.hits or () for one in around.below(span) if one.ranks]
    given = table(span.output)
    return {
        "type": "sample_searches",
        "texts": span.inputs["texts"],
        "lists": lists,
        "overlap": given["overlap"],
        "in_all": given["in all"],
    }


def _embedding(span: Earlier, around: Around) -> Document:
    inputs = span.inputs
    if "texts" not in inputs:
        return {
            "type": "embedding",
            "texts": [inputs["text"]],
            "recalled": [id for id, _ in around.given(span, "recalled")],
        }
    return {
        "type": "embedding",
        "texts": inputs["texts"],
        "question": inputs.get("question"),
        "spread": inputs.get("spread"),
    }


def _fusion(method: str) -> Alone:
    def made(span: Earlier) -> Document:
        names = {
            "of": "names",
            "only": "only",
            "ranks": "ranks",
            "shares": "shares",
            "new": "new",
            "features": "features",
        }
        given = {names[name]: value for name, value in span.inputs.items() if name in names}
        return {"type": "fusion", "method": method, **given}

    return made


def _rerank(span: Earlier) -> Document:
    inputs = span.inputs
    moved = []
    for one in rows(inputs.get("order")):
        given = dict(one)
        document = {name: given.pop(name) for name in ("id", "was", "score", "state", "why") if name in given}
        moved.append({**document, "before": given.pop("first score"), "parts": given})
    return {
        "type": "rerank",
        "reranker": inputs.get("reranker", ""),
        "order": moved,
        "words": inputs.get("words", {}),
        "scored": len(moved),
    }


def _matched(span: Earlier) -> Document:
    inputs = span.inputs
    return {
        "type": "rerank",
        "reranker": inputs.get("model", ""),
        "scored": inputs.get("scored", 0),
        "tokens": _tokens(inputs.get("match")),
    }


def _by_grade(span: Earlier, around: Around) -> Document:
    verdict = table(span.inputs.get("verdict"))
    grades = {one["id"]: one for one in verdict["grades"]}
    return _reordered(
        span,
        around,
        verdict.get("evaluator", ""),
        {id: {"score": one["grade"], "state": one["state"], "why": one["why"]} for id, one in grades.items()},
    )


def _by_segments(span: Earlier, around: Around) -> Document:
    """By the scores that the step after it gave to the segments."""
    by = ("choose the best segment", "choose the best path")
    trees = [one for one in around.spans.values() if one.name in by and one.id > span.id]
    scores: dict[str, float] = {}
    for one in rows(table(trees[0].output).get("branches")) if trees else ():
        scores[one["passage"]] = max(one["score"], scores.get(one["passage"], one["score"]))
    wrote = ("answer from one passage and judge it", "write a segment for each passage")
    writing = {one.id for one in around.spans.values() if one.name in wrote and one.id < span.id}
    asked = [one.name for one in around.spans.values() if one.asked_model and one.parent in writing]
    return _reordered(
        span,
        around,
        asked[-1].removeprefix("ask ") if asked else "",
        {
            id: {"score": scores.get(id), "state": "scored" if id in scores else "not scored"}
            for id, _ in span.hits or ()
        },
    )


def _written_from(span: Earlier, around: Around) -> list[tuple[str, float]]:
    """The passages that the segments before a step were written from."""
    found = []
    for one in around.spans.values():
        if one.name == "write a segment for each passage" and one.id < span.id and not one.error:
            known = dict(around.given(one, "hits"))
            found += [(id, known[id]) for id in (each["passage"] for each in rows(one.output)) if id in known]
    return found


def _reordered(span: Earlier, around: Around, by: str, judged: Mapping[str, Document]) -> Document:
    """The order of a step that did not store it, where the list it was given is known."""
    given = around.given(span, "hits") if "hits" in span.inputs else _written_from(span, around)
    before = {id: (at, score) for at, (id, score) in reversed(list(enumerate(given, 1)))}
    document: Document = {"type": "rerank", "reranker": by}
    if not before.keys() >= {id for id, _ in span.hits or ()}:
        return document
    document["order"] = [
        {"id": id, "was": before[id][0], "before": before[id][1], **judged[id]} for id, _ in span.hits or ()
    ]
    return document


def _best_round(span: Earlier) -> Document:
    given = table(span.output)
    match = _ROUND.fullmatch(given["decision"])
    at = int(match[1]) - 1 if match else len(rows(span.inputs["found"])) - 1
    document = {name: given[name] for name in ("decision", "reason", "why")}
    return {"type": "selection", "method": "round", "at": at if at >= 0 else None, **document}


def _chosen(span: Earlier) -> Document:
    inputs = span.inputs
    named = {name: inputs[name] for name in ("chosen", "near", "alike") if name in inputs}
    return {"type": "selection", "method": "mmr", **named}


def _distinct(span: Earlier) -> Document:
    return {"type": "selection", "method": "duplicates", "dropped": span.inputs.get("dropped", {})}


def _near(span: Earlier) -> Document:
    return {
        "type": "selection",
        "method": "floor",
        "cosines": span.inputs.get("cosines", {}),
        "floor": span.inputs["floor"],
    }


def _named(why: str) -> Alone:
    return lambda _: {"type": "selection", "method": "named", "why": why}


ALONE: Mapping[str, Alone] = {
    "collect what is new": _fusion("collect"),
    "drop near-duplicates": _distinct,
    "drop passages far from the question": _near,
    "fuse by fitted weights": _fusion("fitted"),
    "keep by grade": _named("those whose grade was not too low"),
    "keep the best round": _best_round,
    "list the cited passages": _named("those the answer cites"),
    "look up words": _search,
    "merge by best score": _fusion("best"),
    "order by marginal relevance": _chosen,
    "rerank by BM25, cosine and MaxSim": _rerank,
    "rerank by the model's grades": _rerank,
    "rerank with a model of pairs": _rerank,
    "score by matching tokens": _matched,
    "search BM25 of keys": _search,
    "search all token vectors": _search,
    "search learned term weights": _search,
    "search the conversation": _search,
    "search the web": _search,
    "search vectors of keys": _search,
    "take the whole corpus": _search,
    "unite the lists": _fusion("union"),
}
AMONG: Mapping[str, Among] = {  # by more than their own span
    "embed tokens": _embedding,
    "mean of embeddings": _embedding,
    "mean with recalled turns": _embedding,
    "order by grade": _by_grade,
    "order by the segments written": _by_segments,
    "search with each sample": _samples,
}
