"""`gaps`: which questions no route answers, and whether the corpus could."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from core.cli.asked_corpus import with_questions
from core.cli.commands import COLUMNS, ROUTES, command
from core.cli.common import emit, table, warn, working
from core.domain.text import one_line
from core.engine import engine as engines
from core.engine.availability import without_model
from core.evaluation import access, gaps
from core.evaluation.spec import option
from core.evaluation.templating import say
from core.routes.registry import pick


@command("gaps")
def gaps_(
    corpus: str,
    questions: tuple[Path, ...] = option(MISSING, "As of `eval`, labelled or not; repeatable.", "FILE"),
    columns: Mapping[str, str] = COLUMNS,
    routes: str | None = ROUTES,
) -> None:
    """Sort questions that no route answers into gaps (in no document) and misses (not found).

    A question is answered if one of a route's first five passages answers it: by its labels, or else by a
    test that is calibrated on labelled questions of the corpus, or on its own sentences, with and without
    their documents. The test calls one in ten answerable questions a gap; how many real gaps it finds is
    printed. Names the document to write for each cluster of gaps, and the nearest route for misses.
    """
    source, opened, labelled = with_questions(corpus, questions, columns)
    assert labelled is not None  # --questions is required
    engine = engines.shared_engine()
    chosen = pick(routes) if routes is not None else without_model(engine, source.name)
    names, known = [route.name for route in chosen], access.own_questions(opened, source.path) or labelled
    with working() as (bar, stop):
        document = gaps.find(engine, opened, labelled, names, known, progress=bar, cancel=stop)
    warn(document["warnings"])
    emit(document, _text(document))


def _text(document: Mapping[str, Any]) -> str:
    """Format the clusters, the questions and the test for people."""
    texts = {one["id"]: one["text"] for kind in ("gaps", "misses") for one in document[kind]}
    rows = [
        (one["kind"], len(one["questions"]), one_line(texts[one["questions"][0]]), one_line(one["advice"]))
        for one in document["clusters"]
    ]
    heads = ("kind", "questions", "for example", "advice")
    return say("commands.gaps", document, table(heads, rows) if rows else "")
