"""One route's results for each question of an evaluation, with its steps, without reading other routes'
results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from core.domain.errors import BadInput
from core.domain.types import RouteResult
from core.evaluation.experiment_store import RUNS, Evaluation
from core.store.files import reading
from core.store.runs import read_result

Progress = Callable[[int, int], None]  # (questions read, of how many)


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
            result = read_result(connection, evaluation.run_id(id), route)
            if result is not None:
                found[id] = result
    progress(len(asked), len(asked))
    return found
