"""One route's results for each question of an evaluation, with its steps, without reading other routes'
results.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from typing import Any

from core.domain.errors import BadInput
from core.domain.types import RouteResult
from core.evaluation.experiment_store import RUNS, Evaluation
from core.store.codec import from_document
from core.store.files import reading
from core.store.rows import bind, parsed, text
from core.store.runs import result_document

Progress = Callable[[int, int], None]  # (questions read, of how many)
_RESULT = (
    "SELECT results.*, texts.text AS question "
    "FROM results JOIN runs ON runs.number = run JOIN texts ON texts.hash = runs.question "
    "WHERE route = ? AND nth = 0 AND runs.id = ?"
)


def results(
    evaluation: Evaluation,
    route: str,
    questions: Collection[str] | None = None,
    progress: Progress = lambda _done, _total: None,
) -> dict[str, RouteResult]:
    """Return the route's results by question, in the evaluation's order; a question without a kept run is
    left out.

    Passages have their ids alone: their texts are not read. Raises BadInput where no runs are kept.
    """
    path = evaluation.folder / RUNS
    if not path.is_file():
        raise BadInput(
            f"evaluation {evaluation.name} has no stored runs ({RUNS} is missing) to recompute from; "
            "evaluate again"
        )
    asked = [id for id in evaluation.questions if questions is None or id in questions]
    found: dict[str, RouteResult] = {}
    with reading(path) as connection:
        for at, id in enumerate(asked):
            progress(at, len(asked))
            row = connection.execute(_RESULT, (bind(route), bind(evaluation.run_id(id)))).fetchone()
            if row is not None:
                found[id] = _result(connection, row)
    progress(len(asked), len(asked))
    return found


def _result(connection: sqlite3.Connection, row: sqlite3.Row) -> RouteResult:
    result: dict[str, Any] = result_document(row)
    numbers = sorted({span["hits"] for span in result["spans"] if span.get("hits") is not None})
    places = {number: at for at, number in enumerate(numbers)}
    for span in result["spans"]:
        if span.get("hits") is not None:
            span["hits"] = places[span["hits"]]
    marks = ", ".join("?" * len(numbers))
    lists = connection.execute(
        f"SELECT n, hits FROM rankings WHERE run = ? AND n IN ({marks}) ORDER BY n", (row["run"], *numbers)
    )
    document = {
        "id": "one",
        "created": "",
        "corpus": "",
        "fingerprint": "",
        "settings": {},
        "question": text(row["question"]),
        "results": [result],
        "rankings": [parsed(one["hits"]) for one in lists],
        "passages": [{"id": id, "doc_id": "", "title": "", "text": ""} for id, _ in result["hits"]],
    }
    return from_document(document).results[0]
