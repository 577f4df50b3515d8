"""`gaps`: which questions no route answers, and whether the corpus could."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from core.cli.commands import COLUMNS, command
from core.cli.common import emit, warn, working
from core.cli.text import table
from core.domain.text import one_line
from core.evaluation.spec import option


@command("gaps")
def gaps_(
    corpus: str,
    questions: tuple[Path, ...] = option(
        MISSING, "As of `eval`, with or without labels; repeatable.", "FILE"
    ),
    columns: Mapping[str, str] = COLUMNS,
    routes: str | None = option(None, "Names from `routes`, or all. Default: all that ask no model.", "A,B"),
) -> None:
    """Sort questions that no route answers into gaps (not in the documents) and misses (not found).

    A question is answered if one of a route's first five passages answers it: by its labels, or else by a
    test that is calibrated on labelled questions of the corpus, or on its own sentences, with and without
    their documents. The test calls one in ten answerable questions a gap; how many real gaps it finds is
    printed. Names the document to write for each cluster of gaps, and the nearest route for misses.
    """
    from core.cli.corpora import ensure
    from core.corpus import catalogue
    from core.domain import settings
    from core.engine.availability import without_model
    from core.engine.engine import shared_engine
    from core.evaluation import gaps, sets
    from core.evaluation.access import own_questions
    from core.routes.registry import pick

    now = settings.current()
    source = catalogue.source(corpus, settings=now)
    found = sets.read(source.name, source.path, split="all", questions=questions, columns=columns)
    ensure(source, now)
    engine = shared_engine()
    opened = engine.corpus(source.name)
    labelled, said = sets.tie(found, opened)
    chosen = pick(routes) if routes is not None else without_model(engine, source.name)
    with working() as (bar, stop):
        document = gaps.find(
            engine,
            opened,
            labelled,
            [route.name for route in chosen],
            own_questions(opened, source.path) or labelled,
            progress=bar,
            cancel=stop,
        )
    warn((*said, *document["warnings"]))
    emit(document, lambda: _text(document))


def _text(document: Mapping[str, Any]) -> str:
    """Format the clusters, the questions and the test for people."""
    texts = {one["id"]: one["text"] for kind in ("gaps", "misses") for one in document[kind]}
    rows = [
        (one["kind"], len(one["questions"]), one_line(texts[one["questions"][0]]), one_line(one["advice"]))
        for one in document["clusters"]
    ]
    test = document["test"]
    return "\n".join(
        (
            f"{document['questions']} questions: {document['answered']} answered, {len(document['misses'])} "
            f"misses, {len(document['gaps'])} gaps",
            "",
            *([table(("kind", "questions", "for example", "advice"), rows, right=(1,)), ""] if rows else []),
            f"The test was calibrated on {test['questions']} {test['source']}: AUC {test['auc']:.2f}; it "
            f"calls 10% of answerable questions gaps, and {test['caught']:.0%} of those whose documents were "
            "left out.",
        )
    )
