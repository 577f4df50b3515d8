"""The thresholds of a saved evaluation, and which routes have any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.errors import BadInput
from core.domain.types import RouteResult
from core.evaluation import sets
from core.evaluation.experiment import Progress
from core.evaluation.experiment_store import RUNS, Evaluation
from core.evaluation.raft import quotes
from core.evaluation.tuning.batch_run import MODELS
from core.evaluation.tuning.targets import Found
from core.evaluation.tuning.threshold_cases import found
from core.routes.declare import Route
from core.routes.registry import routes

if TYPE_CHECKING:
    from core.domain.settings import Settings

GRADED = frozenset(("low", "high", "floor"))  # thresholds on scores that need no model
DECIDED = frozenset((*GRADED, "threshold"))


def gathered(settings: Settings, evaluation: Evaluation, progress: Progress = lambda _, __: None) -> Found:
    """Return every threshold in the stored spans of an evaluation; none if it saved no runs."""
    return found(results(evaluation, progress), evaluation.labelled, quoted(settings, evaluation.spec))


def results(
    evaluation: Evaluation, progress: Progress = lambda _, __: None
) -> Iterator[tuple[str, RouteResult]]:
    """Yield (question, result with its spans) of every stored run, one after another. `progress` receives how
    many questions were read, of how many.
    """
    from core.store import Store

    if not (evaluation.folder / RUNS).is_file():
        return
    with closing(Store(evaluation.folder / RUNS)) as store:
        for done, question in enumerate(evaluation.outcomes):
            progress(done, len(evaluation.outcomes))
            if id := evaluation.run_id(question):
                for result in store.load(id).results:
                    yield question, result


def quoted(settings: Settings, spec: Mapping[str, object]) -> Mapping[str, Sequence[str]]:
    """Return the labelled quotes of an evaluation's questions, or {} if the set has none or is no longer
    there.
    """
    from core.corpus import catalogue

    if spec.get("labels"):
        return {}
    given, qrels, named = (spec.get(name) for name in ("questions", "qrels", "columns"))
    columns = {str(name): str(column) for name, column in named.items()} if isinstance(named, dict) else None
    files = [Path(str(one)) for one in given] if isinstance(given, list | tuple) else []
    try:
        origin = catalogue.source(str(spec["corpus"]), settings=settings, known_only=True)
        return quotes(
            sets.read(
                origin.name,
                origin.path,
                split=str(spec.get("split") or "all"),
                questions=files,
                qrels=Path(str(qrels)) if qrels else None,
                columns=columns,
            )
        )
    except BadInput:
        return {}  # what cuts passages into pieces then says that no quote is labelled


def having(names: frozenset[str] = DECIDED) -> list[Route]:
    """Return the routes with a parameter for one of the thresholds `names`."""
    return [
        route
        for route in routes().values()
        if any(parameter.tunes in names for parameter in route.parameters)
    ]


def batch_runnable() -> list[Route]:
    """Those of them that grade without a language model."""
    return [route for route in having(GRADED) if not MODELS & {*route.needed(route.settle({}))}]
