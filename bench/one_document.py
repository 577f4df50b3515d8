"""Measure what one document in a thousand changes for all others: `python -m bench.one_document`.

The corpus: the passages of data/support and, up to 1,000, docstrings. For each attack one document is added,
every labelled question is asked again by routes without a model, and rankings are compared without it.
Prints a Markdown table, or JSON with --json.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.analysis.metrics import by_question
from core.corpus import catalogue, index
from core.corpus.chunk import WHOLE
from core.corpus.corpus import Corpus
from core.corpus.enrichments import store as enrichments
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.engine import Engine
from core.engine.request import Request
from core.evaluation import sets

SIZE, DEPTH = 1_000, 10
ROUTES = (
    "bm25",
    "hybrid_rrf",
    "prf_rm3",
    "dedupe",
    "adaptive_k",
    "recency",
    "self_query",
    "graph",
    "raptor_extracts",
)
ENRICHED = ("graph", "extracts")
ODD = "one-odd-document"
Rankings = dict[tuple[str, str], list[tuple[str, float]]]  # by route and question
log = logging.getLogger("bench")


def attacks(rows: list[dict[str, Any]], questions: list[str]) -> dict[str, dict[str, Any]]:
    """Return one document for each attack, by its name."""
    words = sorted({word for row in rows for word in row["text"].lower().split()})
    names = sorted({w for row in rows for w in row["text"].split() if w[:1].isupper() and w[1:].islower()})
    fields = sorted({name for row in rows for name in row["metadata"]})
    odd = dict.fromkeys(fields, "superseded, soon")

    def made(text: str, **meta: str) -> dict[str, Any]:
        return {"_id": ODD, "title": "Odd", "text": text, "metadata": meta}

    return {
        "an ordinary document": made(
            "The lift in the hall is inspected in April, and the stairs are closed then."
        ),
        "every word of the corpus once": made(" ".join(words)),
        "a million words": made(" ".join(f"w{number % 1000}" for number in range(1_000_000))),
        "all questions": made(" ".join(questions)),
        "odd values in every field": made("This document is of another kind.", **odd),
        "a date in the year 9999": made("Parcels and returns.", last_updated="9999-12-31"),
        "another language": made(
            "Il pacco è arrivato ieri, ma la scatola era aperta e mancava la fattura. " * 20
        ),
        "a copy of a passage": {**rows[0], "_id": ODD},
        "every name of the corpus": made(". ".join(names)),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--routes", default=",".join(ROUTES))
    parser.add_argument("--questions", type=int, default=1_000, help="at most so many")
    parser.add_argument("--attacks", default="", help="only those with this in their name")
    given = parser.parse_args(arguments)
    routes = tuple(given.routes.split(","))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        rows, asked, qrels = _corpus(settings, given.questions)
        before = _rankings(settings, rows, asked, routes)
        found = {}
        for name, document in attacks(rows, list(asked.values())).items():
            if given.attacks not in name:
                continue
            after = _rankings(settings, [*rows, document], asked, routes)
            found[name] = compare(before, after, qrels, routes)
            log.warning("%s: %s", name, found[name])
    sys.stdout.write(f"{json.dumps(found, indent=1) if given.json else table(found, routes)}\n")
    return 0


def compare(
    before: Rankings, after: Rankings, qrels: Mapping[str, Mapping[str, int]], routes: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    """Return by route the share of questions whose top 10 changed besides the odd document itself, the share
    in whose top 10 it is, and the change of the mean nDCG@10.
    """
    found = {}
    for route in routes:
        keys = [key for key in before if key[0] == route]
        changed = sum(_others(before[key]) != _others(after.get(key, [])) for key in keys)
        entered = sum(any(id == ODD for id, _ in after.get(key, [])[:DEPTH]) for key in keys)
        means = []
        for rankings in (before, after):
            ranked = {question: rankings.get((route, question), []) for _, question in keys}
            values = by_question(qrels, ranked, metrics=["ndcg@10"])
            means.append(sum(one["ndcg@10"] for one in values.values()) / len(values))
        found[route] = {
            "changed": changed / len(keys),
            "entered": entered / len(keys),
            "ndcg@10": means[1] - means[0],
        }
    return found


def table(found: Mapping[str, Mapping[str, Mapping[str, float]]], routes: tuple[str, ...]) -> str:
    """Draw the figures as Markdown: changed / entered / change of nDCG@10."""
    lines = [f"| one document | {' | '.join(routes)} |", "|---" * (len(routes) + 1) + "|"]
    for name, by_route in found.items():
        cells = [
            f"{one['changed']:.0%} / {one['entered']:.0%} / {one['ndcg@10']:+.3f}".replace("-", "−")
            for one in (by_route[route] for route in routes)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _others(ranking: list[tuple[str, float]]) -> list[str]:
    """The first passages without the odd one; one less, as it takes a place."""
    return [id for id, _ in ranking if id != ODD][: DEPTH - 1]


def _corpus(
    settings: Settings, most: int
) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, dict[str, int]]]:
    """Read the passages with the metadata of their documents, the questions, and their labels."""
    support = index.build("support", "support", settings=settings)
    source = catalogue.source("support", settings=settings)
    labelled, _ = sets.tie(sets.read("support", source.path, split="all"), support)
    rows = [_row(support, passage) for _, passage, _ in support.everything()]
    from core.corpus import pydocs

    for document in pydocs.documents():
        if len(rows) >= SIZE:
            break
        if len(document.text) > 200:
            rows.append(
                {"_id": document.id, "title": document.title, "text": document.text[:1500], "metadata": {}}
            )
    qrels = {id: dict(grades) for id, grades in labelled.qrels.items() if any(grades.values())}
    asked = {one.id: one.query.text for one in labelled.questions if one.id in qrels}
    support.close()
    return rows, dict(list(asked.items())[:most]), qrels


def _row(corpus: Corpus, passage: Any) -> dict[str, Any]:
    meta = {
        field.name: value
        for field in corpus.metadata.fields
        if (value := corpus.value(passage.id, field.name)) is not None
    }
    return {"_id": passage.id, "title": passage.title, "text": passage.text, "metadata": meta}


def _rankings(
    settings: Settings, rows: list[dict[str, Any]], asked: Mapping[str, str], routes: tuple[str, ...]
) -> Rankings:
    """Index the rows, and ask every question by every route."""
    folder = settings.home / "rows"
    folder.mkdir(exist_ok=True)
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    corpus = index.build("rows", folder, settings=settings, chunking=WHOLE)
    for name in ENRICHED:
        enrichments.build(name, corpus, settings=settings)
    engine = Engine(settings)
    found: Rankings = {}
    request = Request(Query("?"), "rows", routes, stored=False, models=False)
    for id, text in asked.items():
        for result in engine.ask(replace(request, query=Query(text))).results:
            if result.status != "ok":
                log.warning("%s: %s: %s", result.route, id, result.error)
            found[result.route, id] = [(hit.passage.id, hit.score) for hit in result.hits]
    return found


if __name__ == "__main__":
    sys.exit(main())
