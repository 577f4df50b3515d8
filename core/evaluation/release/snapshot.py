"""A release in one JSON file: figures, values by question, criteria, decision, ranks of relevant passages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, FiniteFloat, TypeAdapter
from typing_extensions import TypedDict

from core.analysis.metrics import ANSWERS_COMPARED, COMPARED
from core.domain import people
from core.domain.errors import BadInput
from core.domain.format import number
from core.domain.program import version
from core.domain.settings import Settings
from core.evaluation import experiment_store
from core.evaluation.comparison import EVERY, Difference, family_level, pair, paired
from core.evaluation.diff.questions import (
    NOT_RECORDED,
    Asked,
    EvaluationSide,
    PassageLoss,
    QuestionsDiff,
    depth_of,
    questions_diff,
)
from core.evaluation.finding import count
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import Decision, decide
from core.evaluation.release.measured import Measured, find_evaluation, of_evaluation, settled
from core.evaluation.statistics import LEVEL
from core.evaluation.stored import checked
from core.evaluation.templating import say, sentences

KIND, SCHEMA = "routescope release", 1
MAX_BYTES = 50_000_000


Figure = FiniteFloat | None


class Shipped(TypedDict):
    """A route as it was then."""

    title: str
    means: Mapping[str, Figure]
    p50_ms: Figure
    p95_ms: Figure
    failed: Figure
    calls: Figure
    tokens: Figure
    cost: Figure
    parameters: dict[str, Any]  # of the route


@dataclass(slots=True)
class Snapshot:
    """A release as it was saved: `compared` is the route that later releases are compared with, the chosen
    one, else the best so far. As a Side it is that route; of its documents only the later release's matter.
    """

    name: str
    version: str
    asked: str
    corpus: str
    fingerprint: str
    baseline: str
    metric: str
    chosen: str | None
    compared: str
    criteria: Mapping[str, Any]
    decision: Mapping[str, Any]
    routes: Mapping[str, Shipped]
    # those that `compared` was asked, by id, with the losses of relevant passages beyond the first `depth`
    questions: Mapping[str, Asked]
    depth: int
    relevant_from: int
    # route -> metric -> question -> value
    values: Mapping[str, Mapping[str, Mapping[str, FiniteFloat]]]

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    documents: ClassVar[None] = None

    def loss(self, question: str, passage: str, depth: int) -> PassageLoss:  # noqa: ARG002 - that of the file
        """See Side."""
        unknown = PassageLoss(NOT_RECORDED, None, None, "The snapshot does not record the step.")
        return self.questions[question].losses.get(passage, unknown)


def snapshot(measured: Measured, decision: Decision) -> str:
    """Return the file's content; without values by question where only a metrics.json is known."""
    people.require("release")
    people.record("release snapshot", measured.name)
    metrics = [name for name in (*COMPARED, *ANSWERS_COMPARED) if name in measured.metrics()]
    metrics += [] if decision.criteria.metric in metrics else [decision.criteria.metric]
    columns = {name: values for name in metrics if (values := measured.values(name)) is not None}
    routes = [one.route for one in decision.candidates]
    depth = depth_of(decision.criteria.metric)
    side = EvaluationSide(measured.evaluation, decision.shown) if measured.evaluation else None
    document = {
        "kind": KIND,
        "schema": SCHEMA,
        "name": measured.name,
        "version": version(),
        "asked": run.created if (run := measured.first_run()) else "not recorded",
        "corpus": measured.figures.corpus,
        "fingerprint": measured.figures.fingerprint,
        "baseline": decision.baseline,
        "metric": decision.criteria.metric,
        "chosen": decision.chosen,
        "compared": decision.shown,
        "criteria": asdict(decision.criteria),
        "decision": decision.document(),
        "routes": {route: _route(measured, decision, route, metrics) for route in routes},
        "questions": {id: replace(one, losses=side.losses(id, depth)) for id, one in side.questions.items()}
        if side
        else {},
        "depth": depth,
        "relevant_from": side.relevant_from if side else 1,
        "values": {
            route: {name: dict(values[route]) for name, values in columns.items()} for route in routes
        },
    }
    return json.dumps(document, allow_nan=False, separators=(",", ":"), sort_keys=True, default=asdict) + "\n"


def read(content: bytes | str, name: str = "the snapshot") -> Snapshot:
    """Return a snapshot from a file's content. Raises BadInput for one that is damaged, or of a later
    version.
    """
    try:
        if len(content) > MAX_BYTES:
            raise BadInput(f"{name} is larger than {MAX_BYTES // 1_000_000} MB")
        found = json.loads(content)
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise BadInput(f"{name} is not a release snapshot: its kind is not {KIND!r}")
        if found["schema"] != SCHEMA:
            raise BadInput(f"{name} has schema {found['schema']!r}; this version reads schema {SCHEMA}")
        given = {key: value for key, value in found.items() if key not in ("kind", "schema")}
        one = checked(TypeAdapter(Snapshot), given)
        for field, route in (("chosen", one.chosen), ("compared", one.compared)):
            if route is not None and route not in one.routes:
                raise ValueError(f"{field}: {route!r} is not one of its routes")
        return one
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{name} is damaged: {type(error).__name__}: {str(error)[:200]}") from None


def earlier(settings: Settings, given: str, criteria: Criteria, called: str = "--against") -> Snapshot:
    """Return the snapshot in a file, or what the same criteria choose in an evaluation by its folder or name.

    `called` is how messages name it. Raises BadInput if it is neither, or damaged.
    """
    path = Path(given)
    if path.is_dir() or (not path.exists() and given in experiment_store.names(settings)):
        measured = of_evaluation(find_evaluation(settings, given))
        return read(snapshot(measured, decide(measured, settled(measured, criteria))), given)
    try:
        return read(path.read_bytes(), given)
    except OSError as error:
        known = ", ".join(experiment_store.names(settings)) or "none"
        raise BadInput(
            f"{called} {given!r} cannot be read: {error.strerror or error}; give a snapshot of gate "
            f"--snapshot, or an evaluation by folder or name; saved are: {known}"
        ) from None


def _route(measured: Measured, decision: Decision, route: str, metrics: list[str]) -> Shipped:
    one = decision.of(route)
    return {
        "title": one.title,
        "means": {name: measured.mean(route, name) for name in metrics},
        "p50_ms": one.p50_ms,
        "p95_ms": one.p95_ms,
        "failed": one.failed,
        "calls": one.calls,
        "tokens": one.tokens,
        "cost": one.cost,
        "parameters": measured.parameters(route),
    }


Regression = Literal["shown", "excluded", "undecided"]


@dataclass(frozen=True, slots=True)
class Change(Difference):
    """A difference in a metric, now minus then. The planned comparison has the level .95, the others are one
    family.
    """

    metric: str = ""
    # whether it is a drop that is shown and larger than the smallest that fails a build
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Against:
    """A release compared with the one before."""

    # the evaluation of the earlier release
    name: str
    # the routes compared
    then: str
    now: str
    # whether a drop larger than `min_effect` is shown, excluded or neither
    regression: Regression
    min_effect: float
    # the largest drop that cannot be excluded; None if nothing could be compared
    largest_drop: float | None
    # the finding in a sentence
    summary: str
    # the planned comparison first
    changes: tuple[Change, ...]
    # questions that both releases have
    paired: int
    # questions that one of the two lacks, or whose text changed; they are left out
    unpaired: int
    # further remarks
    notes: tuple[str, ...]
    # the questions that broke and those that were fixed; None if the passages are not known
    questions: QuestionsDiff | None = None
    # passages of a ranking that count as found
    depth: int = 0
    # how many questions may break; None for any number
    max_broken: int | None = None

    @property
    def too_many_broken(self) -> bool:
        """Return whether more questions broke than allowed, or their number cannot be determined."""
        if self.max_broken is None:
            return False
        if self.questions is None:
            return True
        return len(self.questions.of("broken")) + self.questions.undetermined > self.max_broken

    def sentences(self) -> list[str]:
        """Return the finding, the notes, and the questions that broke."""
        broken = () if self.questions is None else sentences("diff.broken", self.questions)
        return [self.summary, *self.notes, *broken]

    def document(self) -> dict[str, Any]:
        """Return the comparison as JSON values, with every question compared."""
        document = asdict(self)
        if self.questions is not None:
            document["questions"] = [one.document() for one in self.questions.questions]
            document["left_out"] = asdict(self.questions.left_out)
        return document


def compare(
    before: Snapshot, measured: Measured, decision: Decision, *, max_broken: int | None = None
) -> Against:
    """Compare the route to ship now with the one of the earlier release; if none is to ship now, the same
    route.

    A question counts if its text is the same; those whose judgements changed are counted in the notes.
    """
    then, metric = before.compared, before.metric
    now = decision.chosen or (then if then in measured.routes else decision.nearest)
    asked = measured.evaluation.questions if measured.evaluation else {}
    qrels = measured.evaluation.labelled.qrels if measured.evaluation else {}
    same = {
        id: question.mode or ""
        for id, question in asked.items()
        if id in before.questions and before.questions[id].text == question.query.text
    }
    relabelled = {id for id in same if qrels.get(id, {}) != before.questions[id].labels}
    unpaired = len({*asked, *before.questions}) - len(same)
    least = decision.criteria.least_drop
    changes = _changes(before, measured, now, same, least)
    planned = next((one for one in changes if one.mode == EVERY and one.metric == metric), None)
    regression: Regression = "undecided"
    if any(one.dropped for one in changes):
        regression = "shown"
    elif planned is not None and planned.low > -least:
        regression = "excluded"
    questions = None
    if before.questions and measured.evaluation is not None:
        questions = questions_diff(before, EvaluationSide(measured.evaluation, now), before.depth)
        relabelled -= {one.id for one in questions.questions if one.deleted and not one.relabelled}
    moved = before.fingerprint != measured.figures.fingerprint
    counts = (before.depth, max_broken, unpaired, len(relabelled), moved)
    times = (before.routes[then]["p95_ms"], measured.of(now, metric).p95_ms)
    notes = sentences("against.notes", questions, *counts, *times)
    title = measured.title(now)
    summary = say("against.summary", before, title, changes, planned, regression, least)
    return Against(
        before.name,
        then,
        now,
        regression,
        least,
        max(0.0, -planned.low) if planned else None,
        summary,
        changes,
        len(same),
        unpaired,
        tuple(notes),
        questions,
        before.depth,
        max_broken,
    )


def failures(decision: Decision, change: Against | None, *, fail_undecided: bool = False) -> list[str]:
    """Return why a build fails, a phrase each; [] if it passes.

    Choosing a release needs a route to ship. Guarding one against an earlier release asks another question:
    it fails on what is known, a shown drop or a limit that every route misses, and with `fail_undecided` also
    if too little is known.
    """
    found = []
    if decision.chosen is None and decision.verdict.decision == "none":
        found.append("every route misses a limit")
    elif decision.chosen is None and change is None:
        found.append("not enough evidence")
    if change is not None:
        if change.regression == "shown":
            found.append(f"a regression against {change.name}")
        elif not change.changes:
            found.append(f"nothing can be compared with {change.name}")
        elif change.regression == "undecided" and fail_undecided:
            found.append(f"a drop of {number(change.min_effect)} against {change.name} is not excluded")
        if change.too_many_broken:
            what = "which questions broke cannot be determined"
            if change.questions is not None:
                what = f"{count(len(change.questions.of('broken')))} broke"
                if more := change.questions.undetermined:
                    what += f" and {count(more)} cannot be determined"
            found.append(f"{what}, and at most {change.max_broken} may")
    if decision.regressions is not None and decision.broken:
        found.append(f"{count(len(decision.regressions.broken), 'complaints')} broke again")
    return found


def _changes(
    before: Snapshot, measured: Measured, now: str, same: Mapping[str, str], least: float
) -> tuple[Change, ...]:
    """Compare the planned metric over all questions first; other metrics and the kinds are one family."""
    old = before.values.get(before.compared, {})
    columns = {
        metric: paired(values[now], old[metric], [q for q in old[metric] if q in same])
        for metric in sorted(old, key=lambda metric: metric != before.metric)
        if metric in measured.metrics() and (values := measured.values(metric)) is not None
    }
    main = columns.get(before.metric, {})
    rows = {(metric, EVERY): list(column.values()) for metric, column in columns.items()}
    for mode in sorted({same[q] for q in main if same[q]}):
        rows[before.metric, mode] = [change for q, change in main.items() if same[q] == mode]
    planned = (before.metric, EVERY)
    family = family_level([len(apart) for key, apart in rows.items() if key != planned])
    found = []
    for (metric, mode), apart in rows.items():
        level = LEVEL if (metric, mode) == planned else family
        if (one := pair(now, before.compared, apart, level, mode)) is not None:
            dropped = one.high < 0 and one.delta < -least
            found.append(Change(**asdict(one), metric=metric, dropped=dropped))
    return tuple(found)
