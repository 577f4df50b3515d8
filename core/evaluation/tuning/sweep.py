"""A metric against the values of a route's parameters over the labelled questions of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from core.analysis.metrics import COMPARED, titled
from core.backends.workers.place import WorkPlace
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput
from core.domain.types import Scored
from core.engine.availability import missing
from core.engine.engine import Engine
from core.evaluation.comparison import family
from core.evaluation.experiment_store import stamp
from core.evaluation.finding import Finding, compared, sentence
from core.evaluation.runner import Plan, Spread, run, spread
from core.evaluation.templating import sentences
from core.evaluation.tuning.sweep_grid import shown
from core.evaluation.tuning.sweep_split import HELD_OUT, Split, split
from core.evaluation.tuning.sweep_subject import Point, Rankings, Subject
from core.routes.registry import pick

METRICS = (*COMPARED, "precision@5")
By = Literal["in use", "done again", "run", "done again and run", "waits for a run"]
Fresh = Mapping[tuple[Point, str], Scored | None]  # (point, question) -> ranking of a run; None: it failed


@dataclass(frozen=True, slots=True)
class Tried:
    """One point of the grid on the questions that values are chosen on. `effect` compares it with the point
    in use, with p adjusted for all points tried; None while `waiting` questions need a run.
    """

    point: Point
    by: By
    effect: Finding | None
    waiting: int = 0
    failed: int = 0

    @property
    def verdict(self) -> str:
        """The verdict against the point in use; "" for that point and while questions wait."""
        return "" if self.effect is None else self.effect.verdict


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric over a grid. `best` is the complete point with the highest mean; the point in use wins ties.
    `held` is its effect on the held-out questions, None if it is the point in use or no questions are held
    out. `untouched` questions never used the step that the parameters set.
    """

    subject: Subject
    metric: str
    split: Split
    tried: tuple[Tried, ...]
    best: Tried
    held: Finding | None
    untouched: int

    @property
    def now(self) -> Tried:
        """The point in use."""
        return next(one for one in self.tried if one.point == self.subject.now)

    @property
    def waiting(self) -> bool:
        """Return whether some point still needs a run."""
        return any(one.waiting for one in self.tried)

    @property
    def holds(self) -> bool:
        """Return whether the best value is better than the value in use: on the questions it was chosen on,
        after the adjustment for all points tried, and on the held-out questions.
        """
        low = self.held.interval[0] if self.held is not None and self.held.interval else -math.inf
        return self.best.verdict == "better" and low > 0


def curve(
    rankings: Rankings,
    grid: Sequence[Point],
    metric: str = "ndcg@10",
    fresh: Fresh | None = None,
    *,
    parts: Split | None = None,
) -> Curve:
    """Return the metric over `grid`, to which the values in use are added; `fresh` are the rankings of runs.

    Values are chosen on the questions `parts.chosen_on` and shown on `parts.held_out` (see
    `core.evaluation.tuning.sweep_split`). BadInput for a metric that is not known.
    """
    if metric not in METRICS:
        raise BadInput(f"metric {metric!r}; give one of {', '.join(METRICS)}")
    about = rankings.subject
    parts = parts or split(about.labelled, tuple(about.results))
    points = list(dict.fromkeys(grid))
    if about.now not in points:
        points.append(about.now)
        points.sort(
            key=lambda point: [(not isinstance(one, int | float), one) for one in point]  # numbers first
        )
    fresh = fresh or {}
    tried = _tried(rankings, points, metric, parts.chosen_on, fresh, parts.names[0])
    known = [one for one in tried if one.effect is not None]
    if not known:
        raise BadInput("no question that values are chosen on has a ranking")
    # the highest mean difference; of equal ones the value in use, then the first
    best = max(
        known, key=lambda one: (one.effect.estimate or 0.0 if one.effect else 0.0, one.point == about.now)
    )
    held = None
    if best.point != about.now and parts.held_out:
        held = _tried(rankings, [best.point], metric, parts.held_out, fresh, HELD_OUT)[0].effect
    return Curve(about, metric, parts, tuple(tried), best, held, len(about.untouched))


def waiting(rankings: Rankings, grid: Sequence[Point], metric: str, fresh: Fresh) -> dict[Point, list[str]]:
    """Return the questions, of both parts, that take a run at each point of `grid`."""
    about = rankings.subject
    found = {}
    for point in grid:
        known = rankings.stored(point, metric)
        left = [q for q in about.results if q not in known and (point, q) not in fresh]
        if left:
            found[point] = left
    return found


def _tried(
    rankings: Rankings, points: Sequence[Point], metric: str, ids: Sequence[str], fresh: Fresh, unit: str
) -> list[Tried]:
    """Measure each point over the questions `ids`, called `unit`, from stored steps and from runs; all but
    the point in use are one family.
    """
    about, now = rankings.subject, rankings.subject.now
    base = rankings.stored(now, metric)
    found, pairs = [], {}
    for point in points:
        again = rankings.stored(point, metric)
        ran = {q: fresh[point, q] for q in ids if q not in again and (point, q) in fresh}
        values = {q: again[q] for q in ids if q in again}
        by: By = "done again and run" if values and ran else "run" if ran else "done again"
        values |= {q: rankings.ran(q, hits, metric) for q, hits in ran.items() if hits is not None}
        left = sum(q not in again and q not in ran for q in ids)
        by = "in use" if point == now else "waits for a run" if left else by
        found.append(Tried(point, by, None, left, sum(hits is None for hits in ran.values())))
        both = [(values[q], base[q]) for q in ids if q in values and q in base]
        if both and not left:
            pairs[point] = both
    tested = family({point: [a - b for a, b in both] for point, both in pairs.items() if point != now})
    effects = {}
    for point, both in pairs.items():
        row = tested.get(point) or {"delta": 0.0, "n": len(both), "p_holm": None, "verdict": ""}
        names = named(about, point), f"{named(about, now)} (in use)", titled(metric)
        effects[point] = replace(compared(row, *names, fmean(b for _, b in both)), unit=unit)
    return [replace(one, effect=effects.get(one.point)) for one in found]


def in_words(curve: Curve) -> list[str]:
    """Return the finding, one sentence each: the choice, its figures on held-out questions, and the
    advice.
    """
    if curve.now.effect is None or curve.best.effect is None:
        raise BadInput("the value in use has no figure on these questions")
    over = sum(one.effect is not None for one in curve.tried)
    return sentences(
        "sweep.found",
        curve,
        named,
        over,
        sentence(curve.best.effect),
        sentence(curve.held) if curve.held else "",
    )


def counted(curve: Curve) -> str:
    """Return the questions that the figures cover, and those that are excluded."""
    return " ".join(sentences("sweep.counted", curve))


def note(curve: Curve, point: Point) -> str:
    """Return one line on the origin of a saved value."""
    about = curve.subject
    tried = next(one for one in curve.tried if one.point == point)
    line = f"sweep over evaluation {about.evaluation.name}, {titled(curve.metric)}"
    if tried.effect is None or point == about.now:
        return f"{line}: the value in use there" if point == about.now else f"{line}: not measured"
    line += f": {sentence(tried.effect)}"
    if point == curve.best.point and curve.held is not None:
        line += f" {sentence(curve.held)} {'The choice holds' if curve.holds else 'Not shown to hold'}."
    return line


def named(subject: Subject, point: Point) -> str:
    """Return a point in words: "k = 60, alpha = 0.5"."""
    return ", ".join(f"{name} = {shown(value)}" for name, value in subject.values(point).items())


Todo = Mapping[Point, Sequence[str]]  # the questions to ask at each point


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of asking: `seconds` and model `calls` by the route's figures in the evaluation, None if it
    was not measured with a model there. `asks`: a model may be asked at some point.
    """

    points: int
    questions: int
    seconds: float | None
    calls: int | None
    asks: bool


class Running(BackgroundJob):
    """The rankings of runs at points of a subject's grid, and the thread that makes them, begun by `ask`.

    `rankings` grows while it is under way: (point, question) -> ranking, None for a question that failed.
    """

    kind = "sweep"

    def __init__(self, engine: Engine, subject: Subject) -> None:
        super().__init__(f"{subject.route}.{','.join(subject.names)}", home=engine.settings.home)
        self.subject = subject
        self.rankings: dict[tuple[Point, str], Scored | None] = {}
        self.errors: dict[str, int] = {}  # message -> questions
        self._engine = engine
        self._todo: Todo = {}
        self._place: WorkPlace | None = None
        self._at_end.set()  # nothing is under way

    def ask(self, todo: Todo, workers: WorkPlace | None = None) -> None:
        """Ask in the background, by workers where some are given; what is under way goes on as it is."""
        if not self.done:
            return
        self._stopped = False
        self._cancel.clear()
        self._at_end.clear()
        self.error, self.errors = None, {}
        self.finished, self.total, self._todo = 0, sum(map(len, todo.values())), dict(todo)
        self._place = workers
        self.begin()

    def _do(self) -> None:
        evaluation, corpus = self.subject.evaluation, _corpus(self.subject)
        then = evaluation.figures.get("fingerprint")
        then = then or evaluation.run(next(iter(self.subject.results))).fingerprint
        if self._engine.corpus(corpus).fingerprint != then:
            raise BadInput(
                f"corpus {corpus} was reindexed since evaluation {evaluation.name}, so new runs cannot be "
                "compared with it; evaluate again"
            )
        with spread(self._place, self._engine) as elsewhere:
            for point, ids in self._todo.items():
                if self._cancel.is_set():
                    break
                self._ask(point, ids, elsewhere)

    def _ask(self, point: Point, ids: Sequence[str], elsewhere: Spread | None) -> None:
        subject, before = self.subject, self.finished
        wanted, route = set(ids), subject.route
        asked = tuple(q for q in subject.labelled.questions if q.id in wanted)
        labelled = replace(subject.labelled, questions=asked)
        plan = Plan(_corpus(subject), (route,), {route: subject.parameters(point)})

        def follow(done: int, _total: int) -> None:
            self.finished = before + done

        found, _ = run(
            self._engine, labelled, plan, progress=follow, ended=self._cancel.is_set, workers=elsewhere
        )
        for question, by in found.items():
            one = by[route]
            self.rankings[point, question] = tuple(one.hits) if one.status == "ok" else None
            if one.status != "ok":
                message = one.error or one.status
                self.errors[message] = self.errors.get(message, 0) + 1


def running(engine: Engine, subject: Subject) -> Running:
    """Return the runs of this process at points of `subject`'s parameters, whether any are under way or
    not.
    """
    folder = subject.evaluation.folder
    key = (str(engine.settings.home), str(folder), stamp(folder), subject.route, subject.names)
    return jobs.keep(Running, key, lambda: Running(engine, subject))


def lacking(engine: Engine, subject: Subject, todo: Todo) -> dict[Point, str]:
    """Why points cannot be run here, by point; those that can are not in it."""
    (route,) = pick([subject.route])
    gaps = missing(engine, _corpus(subject))
    found = {}
    for point in todo:
        needed = route.needed(route.settle(subject.parameters(point)))
        if reason := next((gaps[need] for need in needed if need in gaps), None):
            found[point] = reason
    return found


def asking(subject: Subject, todo: Todo) -> dict[Point, Sequence[str]]:
    """Return the part of `todo` that may call a language model."""
    (route,) = pick([subject.route])
    return {point: ids for point, ids in todo.items() if route.asks(route.settle(subject.parameters(point)))}


def cost(subject: Subject, todo: Todo) -> Cost:
    """Estimate the cost of running `todo`."""
    (route,) = pick([subject.route])
    count, asks = sum(map(len, todo.values())), bool(asking(subject, todo))
    asked = route.asks(route.settle(subject.ran))
    every = (by.get(subject.route) for by in subject.evaluation.outcomes.values())
    seen = [one for one in every if one is not None and one.status == "ok"]
    if not seen or (asks and not asked):
        return Cost(len(todo), count, None, None, asks)
    calls = round(sum(one.calls for one in seen) / len(seen) * count)
    return Cost(len(todo), count, sum(one.ms for one in seen) / len(seen) * count / 1000, calls, asks)


def _corpus(subject: Subject) -> str:
    return str(subject.evaluation.spec["corpus"])
