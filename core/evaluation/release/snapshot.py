"""A release in one JSON file: figures, values by question, criteria, decision, ranks of relevant passages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import ConfigDict, FiniteFloat, TypeAdapter
from typing_extensions import TypedDict

from core.analysis.metrics import ANSWERS_COMPARED, COMPARED
from core.domain import people
from core.domain.errors import BadInput
from core.domain.program import version
from core.evaluation import experiment_store
from core.evaluation.diff.questions import NOT_RECORDED, Asked, EvaluationSide, PassageLoss, depth_of
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import Decision, decide
from core.evaluation.release.measured import Measured, find_evaluation, of_evaluation, settled
from core.evaluation.stored import checked

if TYPE_CHECKING:
    from core.domain.settings import Settings
    from core.evaluation.experiment_store import Evaluation

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


class SnapshotQuestion(TypedDict):
    """A question as it was then; `labels` is a hash of its judgements."""

    text: str
    mode: str
    labels: str


class Ranked(TypedDict):
    """A relevant passage: its rank and document, None if it is not ranked, and the reason it is not among the
    first k.
    """

    grade: int
    document: str | None
    rank: int | None
    loss: PassageLoss | None


class AskedOf(TypedDict):
    """The route's status for a question, and its relevant passages."""

    status: str
    relevant: Mapping[str, Ranked]


class Passages(TypedDict):
    """The shipped route's ranks of the relevant passages of each question; `depth` is k."""

    depth: int
    relevant_from: int
    questions: Mapping[str, AskedOf]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A release as it was saved. `values`: route -> metric -> question -> value. `questions`: id -> its
    "text", "mode" and "labels", a hash of its judgements. `compared` is the route that later releases are
    compared with: the chosen one, else the best so far; None if neither is known. `passages`: where its
    relevant passages were; None if the questions are not known.
    """

    name: str
    version: str
    asked: str
    corpus: str
    fingerprint: str
    baseline: str
    metric: str
    chosen: str | None
    compared: str | None
    criteria: Mapping[str, Any]
    decision: Mapping[str, Any]
    routes: Mapping[str, Shipped]
    questions: Mapping[str, SnapshotQuestion]
    values: Mapping[str, Mapping[str, Mapping[str, FiniteFloat]]]
    passages: Passages | None = None

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


def snapshot(measured: Measured, decision: Decision) -> str:
    """Return the file's content; without values by question where only a metrics.json is known."""
    people.require("release")
    people.record("release snapshot", measured.name)
    metrics = [name for name in (*COMPARED, *ANSWERS_COMPARED) if name in measured.metrics()]
    metrics += [] if decision.criteria.metric in metrics else [decision.criteria.metric]
    columns = {name: values for name in metrics if (values := measured.values(name)) is not None}
    routes = [one.route for one in decision.candidates]
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
        "questions": {
            id: {"text": question.query.text, "mode": question.mode or "", "labels": labels_of(measured, id)}
            for id, question in (measured.evaluation.questions if measured.evaluation else {}).items()
        },
        "values": {
            route: {name: dict(values[route]) for name, values in columns.items()} for route in routes
        },
        "passages": passages_of(measured.evaluation, decision.shown, depth_of(decision.criteria.metric))
        if measured.evaluation is not None
        else None,
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
        if one.passages and (odd := one.passages["questions"].keys() - one.questions.keys()):
            raise ValueError(f"passages: {min(odd)!r} is not one of its questions")
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


def labels_of(measured: Measured, question: str) -> str:
    """Return a short hash of a question's judgements, which changes when they do."""
    qrels = measured.evaluation.labelled.qrels.get(question, {}) if measured.evaluation else {}
    return hashlib.sha256(json.dumps(sorted(qrels.items())).encode()).hexdigest()[:12]


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


def passages_of(evaluation: Evaluation, route: str, depth: int) -> Passages:
    """Return a route's passages for a snapshot."""
    side = EvaluationSide(evaluation, route)

    def ranked(id: str, passage: str, asked: Asked) -> Ranked:
        rank = asked.ranks.get(passage)
        loss = None if rank is not None and rank <= depth else side.loss(id, passage, depth)
        document = asked.documents.get(passage)
        return {"grade": asked.labels[passage], "document": document, "rank": rank, "loss": loss}

    return {
        "depth": depth,
        "relevant_from": side.relevant_from,
        "questions": {
            id: {
                "status": asked.status,
                "relevant": {
                    passage: ranked(id, passage, asked)
                    for passage, grade in asked.labels.items()
                    if grade >= side.relevant_from
                },
            }
            for id, asked in side.questions.items()
        },
    }


class SnapshotSide:
    """The shipped route of a snapshot that has its passages (core.evaluation.diff.questions.Side)."""

    documents = None  # a snapshot is the earlier of two releases: only the later one's documents matter

    def __init__(self, snapshot: Snapshot, route: str, passages: Passages) -> None:
        self.name, self.route, self.depth = snapshot.name, route, passages["depth"]
        self.corpus, self.fingerprint = snapshot.corpus, snapshot.fingerprint
        self.relevant_from = passages["relevant_from"]
        self._asked = passages["questions"]
        self.questions = {}
        for id, one in self._asked.items():
            relevant, asked = one["relevant"], snapshot.questions[id]
            grades = {passage: ranked["grade"] for passage, ranked in relevant.items()}
            ranks = {p: rank for p, ranked in relevant.items() if (rank := ranked["rank"]) is not None}
            documents = {p: ranked["document"] or "" for p, ranked in relevant.items()}
            self.questions[id] = Asked(asked["text"], asked["mode"], grades, ranks, one["status"], documents)

    def loss(self, question: str, passage: str, depth: int) -> PassageLoss:
        """See Side; the snapshot has it for the depth it was written with."""
        found = self._asked[question]["relevant"][passage]["loss"]
        if found is None or depth != self.depth:
            return PassageLoss(NOT_RECORDED, None, None, "The snapshot does not record the step.")
        return found
