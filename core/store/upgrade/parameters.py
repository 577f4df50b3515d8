"""Which of a route's parameters set the arguments of its steps, as the routes were written then.

A value is taken for a parameter's only where they are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.domain.parameters import member

_WEIGHTS = "weights.relevance=w_rel weights.support=w_sup weights.utility=w_use"
# By route and step: the argument, dotted for members, and its parameter if that has another name.
SET: Mapping[str, Mapping[str, str]] = {
    "adaptive": {"classify the question": "by=classifier"},
    "agentic": {
        "choose again or stop": "steps",
        "collect what is new": "each keep",
        "count what was found": "each",
    },
    "bm25": {"search BM25": "engine"},
    "compress": {
        "drop passages far from the question": "floor",
        "keep the strips that matter": "floor=strip_floor",
    },
    "confidence": {"decide by confidence": "how threshold"},
    "contextual": {"fuse by normalised scores": "weights.1=alpha"},
    "contextual_headings": {"fuse by normalised scores": "weights.1=alpha"},
    "crag": {"grade and decide": "low high", "keep the strips that matter": "floor=strip_floor"},
    "critique_loop": {
        "choose the best segment": _WEIGHTS,
        "order by the segments written": _WEIGHTS,
        "decide whether to look it up": "threshold=search_from",
    },
    "decompose": {"split into simpler questions": "n"},
    "dedupe": {"drop near-duplicates": "by threshold"},
    "hybrid_linear": {"fuse by normalised scores": "weights.1=alpha norm"},
    "hybrid_rrf": {"fuse by reciprocal rank": "k weights.0=bm25_weight weights.1=dense_weight"},
    "hyde": {"write hypothetical passages": "n instruction"},
    "hyde_gated": {"write hypothetical passages": "n"},
    "hype_hyde": {"write hypothetical passages": "n"},
    "iterative": {"collect what is new": "each keep", "go on or stop": "steps"},
    "late_interaction": {
        "score by matching tokens": "candidates",
        "search BM25": "k=candidates",
        "search vectors": "k=candidates",
    },
    "learned_fusion": {"fuse by fitted weights": "candidates"},
    "memory": {
        "does the question stand alone": "threshold=enough",
        "fuse by reciprocal rank": "weights.2=memory_weight",
        "mean with recalled turns": "weight=memory_weight",
        "search the conversation": "decay relevance k=turns",
    },
    "mmr": {"order by marginal relevance": "lam k pool"},
    "multi_query": {"write query variants": "n"},
    "multistage": {
        "analyse the question": "strange",
        "drop near-duplicates": "threshold=alike",
        "order by marginal relevance": "lam pool=candidates",
    },
    "parent": {"fuse by normalised scores": "weights.1=alpha"},
    "rag_fusion": {"fuse by reciprocal rank": "k", "write query variants": "n"},
    "rewrite": {"fuse by reciprocal rank": "weights.2=weight weights.3=weight"},
    "self_correct": {"criticise the draft and decide": "rounds"},
    "self_rag": {
        "decide whether to retrieve": "when=retrieve threshold",
        "write a segment for each passage": "threshold",
    },
    "self_reflective": {"grade the round and decide": "threshold gain rounds"},
    "step_back": {"fuse by reciprocal rank": "k weights.2=weight weights.3=weight"},
    "structured_hybrid": {"ask the tables": "repairs", "write and run SQL": "repairs"},
    "table_qa": {
        "ask the tables": "tables repairs rows",
        "choose tables": "most=tables",
        "run SQL": "rows",
        "write and run SQL": "repairs rows",
    },
    "text_to_sql": {
        "ask the tables": "tables repairs rows",
        "choose tables": "most=tables",
        "run SQL": "rows",
        "write and run SQL": "repairs rows",
    },
}
CALIBRATED = ("low", "high")  # 0 stood for the threshold as calibrated


def set_by(route: str, parameters: Mapping[str, Any], step: str, args: Mapping[str, Any]) -> dict[str, str]:
    """For each argument of a step the route's parameter that set it."""
    found = dict[str, str]()
    arguments = SET.get(route, {}).get(step)
    if arguments is None:
        return found
    for one in arguments.split():
        arg, _, named = one.partition("=")
        name = named or arg
        value = member(args, arg)
        if name in parameters and value is not None:
            given = parameters[name]
            if value == given or (given == 0 and arg in CALIBRATED):
                found[arg] = name
    return found
