"""Measured routes: the figures, and the values of each question where they were saved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import floor, inf
from pathlib import Path
from typing import Any

from core.analysis.metrics import ANSWERS, KNOWN, METRICS
from core.analysis.timeline import NEEDED
from core.domain.errors import BadInput
from core.domain.settings import Settings
from core.domain.types import Run
from core.evaluation import comparison, costs, experiment_store, scoring
from core.evaluation.comparison import EVERY, Difference, Equal
from core.evaluation.costs import spent
from core.evaluation.experiment_store import FIGURES, LABELLED, Evaluation
from core.evaluation.figures import BaselineDifference, CorrectedMean, CorrectedPair, Figures, Means, read
from core.evaluation.release.criteria import DERIVABLE, Criteria

UNJUDGED = "unjudged@10"
LEAST_MS = 1000.0  # what `settled` allows any route: Nielsen 1993, a user's train of thought is kept for 1 s
SLACK = 0.05  # by how much more of the first ten may be unjudged than of the baseline's


@dataclass(frozen=True, slots=True)
class RouteFigures:
    """A route's figures that the limits are on; None: cannot be determined. `mean` is of the criteria's
    metric. `failed` and `unjudged` are shares. `tokens` and `calls` are per completed question, `cost` per
    1,000; those of failed questions are spread over the completed ones. `interrupted`: not every question was
    asked.
    """

    route: str
    mean: float | None
    p50_ms: float | None
    p95_ms: float | None
    tokens: float | None
    calls: float | None
    cost: float | None
    failed: float | None
    unjudged: float | None
    interrupted: bool

    @property
    def expense(self) -> tuple[float, float, float]:
        """Return its cost as a sort key: price (tokens without prices), model calls, median time."""
        spent = self.tokens if self.cost is None else self.cost
        calls, time, spent = (inf if one is None else one for one in (self.calls, self.p50_ms, spent))
        return spent, calls, time


@dataclass(frozen=True)
class Measured:
    """The figures of metrics.json; `evaluation` is None if only that file is known. `plan`: the only routes
    planned to be compared with the baseline, see `planned`. `untimed`: the reason no time counts.
    """

    name: str
    figures: Figures
    evaluation: Evaluation | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    plan: tuple[str, ...] = ()
    untimed: str = ""

    @property
    def routes(self) -> tuple[str, ...]:
        """Return the routes measured, in order."""
        return tuple(self.figures.routes)

    @property
    def baseline(self) -> str:
        """Return the route that the others are compared with."""
        return self.figures.baseline

    @property
    def questions(self) -> int:
        """Return how many questions were asked."""
        return int(self.figures.queries)

    @cached_property
    def equal(self) -> tuple[Equal, ...]:
        """Return the routes that returned the same on every question, the simplest of each group first."""
        if self.evaluation is None:
            return self.figures.equal
        return comparison.equal_routes(self.evaluation.outcomes, self.routes)

    @cached_property
    def distinct(self) -> Measured:
        """The same with one route, the simplest, for those that returned the same: what a decision is among.
        Where the baseline is another of them, that one stands for it.
        """
        simplest = {route: one.route for one in self.equal for route in one.others}
        if not simplest:
            return self
        kept = [route for route in self.routes if route not in simplest]
        return self._of(kept, simplest.get(self.baseline, self.baseline))

    def planned(self, names: Sequence[str]) -> Measured:
        """Return the baseline and the routes that were planned to be compared with it, and no others. Raises
        BadInput for none, or one that was not measured.
        """
        unknown = [name for name in names if name not in self.routes]
        if unknown or not names:
            raise BadInput(
                f"planned route {unknown[0] if unknown else ''!r} was not measured; "
                f"there are: {', '.join(self.routes)}"
            )
        kept = [route for route in self.routes if route in names or route == self.baseline]
        return replace(self._of(kept, self.baseline), plan=tuple(route for route in kept if route in names))

    def _of(self, kept: Sequence[str], baseline: str) -> Measured:
        figures = self.figures.model_copy(
            update={
                "baseline": baseline,
                "routes": {route: self.figures.routes[route] for route in kept},
                "by_mode": {
                    mode: {route: block for route, block in by.items() if route in kept}
                    for mode, by in self.figures.by_mode.items()
                },
                "equal": tuple(one for one in self.figures.equal if {*one.routes} <= {*kept}),
            }
        )
        return replace(self, figures=figures)

    @cached_property
    def unlike(self) -> str:
        """Return why its times do not compare, as they come from different kinds of machine, or "" if they
        do.
        """
        if self.evaluation is not None:
            return costs.unlike(costs.machine_kinds(self.evaluation.outcomes.values()))
        return costs.unlike(self.figures.machines)

    def timed(self, criteria: Criteria) -> Measured:
        """Return the same; without times if they are of unlike machines and the criteria do not
        allow that.
        """
        return self if criteria.unlike_machines or not self.unlike else replace(self, untimed=self.unlike)

    def title(self, route: str) -> str:
        """Return a route's title."""
        return self.titles.get(route, route)

    def metrics(self) -> tuple[str, ...]:
        """Return the measures that a minimum can be set for: more is better in all."""
        rows = self.figures.routes.values()
        found = [name for name in METRICS if any(name in (row.model_extra or {}) for row in rows)]
        written = ANSWERS if any("answers" in row.model_fields_set for row in rows) else ()
        more = dict.fromkeys(name for row in rows for name in row.extra.ci95)
        known = (*found, *written, *more)
        return tuple(name for name in known if name not in KNOWN or KNOWN[name].more_is_better)

    def mean(self, route: str, metric: str) -> float | None:
        """Return the mean of a metric, the corrected one if there is one, or None without a value."""
        known = self._corrected_mean(route, metric)
        return known.mean if known else self._block(route, metric).mean(metric)

    def ends(self, route: str, metric: str) -> tuple[float, float] | None:
        """Return the 95% interval of that mean."""
        known = self._corrected_mean(route, metric)
        return known.ci95 if known else self._block(route, metric).ends(metric)

    def counted(self, route: str, metric: str) -> int:
        """Return the number of questions that the mean is over."""
        block = self._block(route, metric)
        return int(block.counts.get(metric, block.n))

    def against(self, route: str, metric: str, mode: str | None = None) -> BaselineDifference | None:
        """Return the difference to the baseline in metrics.json, of all questions or those of a kind, or None
        if it says nothing.
        """
        block = self._block(route, metric) if mode is None else self.figures.by_mode[mode].get(route, Means())
        return block.vs_baseline.get(metric)

    def ended(self, route: str) -> int:
        """Return the number of questions at which the route ended well."""
        return self.questions - int(self.figures.routes[route].failed)

    def of(self, route: str, metric: str) -> RouteFigures:
        """Return a route's figures. No time counts if `untimed`, nor a 95th percentile of fewer than 20
        measurements.
        """
        row, ended = self.figures.routes[route], self.ended(route)
        prompt, completion = int(row.prompt_tokens), int(row.completion_tokens)
        calls, tokens, cost = spent(int(row.llm_calls), prompt, completion, ended, row.prices)
        return RouteFigures(
            route,
            self.mean(route, metric),
            None if self.untimed else row.p50_ms,
            None if self.untimed or ended < NEEDED[95] else row.p95_ms,
            tokens,
            calls,
            cost,
            row.failed / self.questions if self.questions else None,
            self.mean(route, UNJUDGED),
            self.figures.interrupted,
        )

    def values(self, metric: str) -> Mapping[str, Mapping[str, float]] | None:
        """Return the metric's values, route -> question -> value, or None if only the figures are known."""
        if self.evaluation is None:
            return None
        found: Mapping[str, Any]
        if metric in METRICS:
            found = self.evaluation.values
        elif metric in ANSWERS:
            found = self._answers
        else:
            return None
        return {
            route: {q: value for q, row in found[route].items() if (value := row.get(metric)) is not None}
            for route in self.routes
        }

    @cached_property
    def _answers(self) -> scoring.Measures:
        if self.evaluation is None:  # asked for by `values` alone, which has looked
            return {}
        return scoring.measured(self.evaluation.labelled, self.evaluation.outcomes, self.routes)

    def corrected(self, metric: str) -> dict[tuple[str, str], CorrectedPair]:
        """Return the corrected difference of each two routes; {} if no judge graded, or another metric."""
        found = self.figures.corrected
        return {(p.route, p.other): p for p in found.pairs} if found and found.metric == metric else {}

    def _corrected_mean(self, route: str, metric: str) -> CorrectedMean | None:
        found = self.figures.corrected
        used = found is not None and found.metric == metric and found.pairs
        return self.figures.routes[route].corrected if used else None

    @property
    def drawn(self) -> bool:
        """Return whether questions were drawn with chances that only corrected figures consider."""
        return self.figures.corrected is not None and self.figures.corrected.drawn

    def losses(self, metric: str) -> tuple[Difference, ...] | None:
        """Compare every route with the baseline in every kind of question; None if neither the questions'
        values nor figures by kind are known, or the questions were drawn.
        """
        if self.drawn:
            return None
        values = self.values(metric)
        if values is not None:
            return comparison.losses(values, self.kinds(), self.baseline)
        found: list[Difference] = []
        for route in self.routes:
            if route != self.baseline:
                rows = {
                    mode: (int(row.n), row.delta, row.sd)
                    for mode in self.figures.by_mode
                    if (row := self.against(route, metric, mode)) is not None
                }
                found += comparison.from_figures(rows, route, self.baseline)
        return tuple(found) or None

    def kinds(self) -> dict[str, list[str]]:
        """Return the questions of each kind, by the kind's name; all together if none has a kind."""
        asked = self.evaluation.questions if self.evaluation else {}
        modes = {id: question.mode for id, question in asked.items() if question.mode}
        found: dict[str, list[str]] = {mode: [] for mode in sorted({*modes.values()})}
        for question, mode in modes.items():
            found[mode].append(question)
        return found or ({EVERY: [*asked]} if asked else {})

    def parameters(self, route: str) -> dict[str, Any]:
        """Return the parameters a route was measured with, those at their defaults too; as given if it is not
        known.
        """
        from core.routes.registry import routes

        spec = self.evaluation.spec if self.evaluation else {}
        given = dict((spec.get("parameters") or {}).get(route) or {})
        known = routes().get(route)
        try:
            return dict(known.settle(given)) if known else given
        except BadInput:  # measured by another version, whose parameters were others
            return given

    def first_run(self) -> Run | None:
        """Return the run of the first question asked, or None if no run was saved."""
        if self.evaluation is None:
            return None
        asked = next((id for id in self.evaluation.questions if id in self.evaluation.outcomes), None)
        try:
            return self.evaluation.run(asked) if asked is not None else None
        except BadInput:  # evaluated without saving runs
            return None

    def _block(self, route: str, metric: str) -> Means:
        return self.figures.routes[route].block(metric)


def of_evaluation(evaluation: Evaluation) -> Measured:
    """Return an opened evaluation. Raises BadInput if it has no figures yet."""
    if not evaluation.figures:
        raise BadInput(f"evaluation {evaluation.name} has no figures yet; wait until it finishes")
    return of_figures(evaluation.figures, evaluation.name, evaluation)


def of_figures(figures: Any, name: str, evaluation: Evaluation | None = None) -> Measured:
    """Return the figures without an evaluation. Raises BadInput if they are not the content of a
    metrics.json.
    """
    from core.routes.registry import routes

    found = read(figures, name)
    titles = {route: known.title for route, known in routes().items() if route in found.routes}
    for route, row in found.routes.items():
        if row.source:
            titles[route] = f"{route} (replies from {row.source.file})"
    return Measured(name, found, evaluation, titles)


def find(settings: Settings, given: str) -> Measured:
    """Return the evaluation in a folder, around a metrics.json or of that name; a metrics.json alone will do.

    Raises BadInput with what was looked for.
    """
    path = Path(given)
    folder = path if path.is_dir() else path.parent if path.name == FIGURES and path.is_file() else None
    if folder is None and not path.is_file():
        if not experiment_store.NAME.fullmatch(given) or not experiment_store.place(settings, given).is_dir():
            known = ", ".join(experiment_store.names(settings)) or "none"
            raise BadInput(f"{given!r} is not a folder, a file or a saved evaluation; saved are: {known}")
        folder = experiment_store.place(settings, given)
    if folder is not None and (folder / LABELLED).is_file():
        return of_evaluation(experiment_store.opened(folder))
    file = folder / FIGURES if folder is not None else path
    if not file.is_file():
        raise BadInput(f"{folder} contains no evaluation: {FIGURES} is missing")
    try:
        figures = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise BadInput(f"{file} cannot be read as JSON: {error}") from None
    return of_figures(figures, file.resolve().parent.name or file.name)


def find_evaluation(settings: Settings, given: str) -> Evaluation:
    """Return a saved evaluation by its name or folder. Raises BadInput with what there is, and for a
    metrics.json alone.
    """
    evaluation = find(settings, given).evaluation
    if evaluation is None:
        raise BadInput(
            f"{given} is a metrics.json alone, which lacks the questions; give the folder of `eval --out`, "
            "or the name of a saved evaluation"
        )
    return evaluation


def settled(measured: Measured, criteria: Criteria) -> Criteria:
    """Return the criteria with the limits of DERIVABLE that are not given taken from the baseline: as good,
    not much slower, and judged about as well. A figure that the baseline lacks gives no limit.

    Both the page Release and the command `gate` begin with these limits.
    """
    if not criteria.derive:
        return criteria
    base = measured.timed(criteria).of(measured.baseline, criteria.metric)
    begin: dict[str, float | None] = {
        "minimum": None if base.mean is None else floor(base.mean * 100) / 100,
        "max_p95_ms": None if base.p95_ms is None else max(LEAST_MS, 100.0 * round(2 * base.p95_ms / 100)),
        "max_unjudged": None if base.unjudged is None else round(min(1.0, base.unjudged + SLACK), 2),
    }
    taken: dict[str, Any] = {
        name: begin[name] for name in DERIVABLE if getattr(criteria, name) is None and begin[name] is not None
    }
    return replace(criteria, **taken, derive=False, derived=tuple(taken))
