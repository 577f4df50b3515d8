"""A release compared with the one before it, over the questions that both were measured on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from core.domain.format import number
from core.evaluation.comparison import EVERY, Difference, family_level, pair, paired
from core.evaluation.diff.evaluations import broken
from core.evaluation.diff.questions import EvaluationSide, QuestionsDiff, questions_diff
from core.evaluation.finding import count
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import Measured
from core.evaluation.release.snapshot import Snapshot, SnapshotSide, labels_of
from core.evaluation.statistics import LEVEL
from core.evaluation.templating import say, sentences

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
    # the routes compared, or None
    then: str | None
    now: str | None
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
        return [self.summary, *self.notes, *(broken(self.questions) if self.questions is not None else ())]

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
    same = {
        id: question.mode or ""
        for id, question in asked.items()
        if id in before.questions and before.questions[id]["text"] == question.query.text
    }
    relabelled = {id for id in same if labels_of(measured, id) != before.questions[id]["labels"]}
    unpaired = len({*asked, *before.questions}) - len(same)
    least = decision.criteria.least_drop
    changes = _changes(before, measured, then, now, same, least) if then is not None else ()
    planned = next((one for one in changes if one.mode == EVERY and one.metric == metric), None)
    regression: Regression = "undecided"
    if any(one.dropped for one in changes):
        regression = "shown"
    elif planned is not None and planned.low > -least:
        regression = "excluded"
    questions, depth = None, 0
    if before.passages is not None and then is not None and measured.evaluation is not None:
        side = SnapshotSide(before, then, before.passages)
        depth = side.depth
        questions = questions_diff(side, EvaluationSide(measured.evaluation, now), depth)
        gone = {one.id for one in questions.questions if one.deleted and not one.relabelled}
        relabelled -= gone
    moved = before.fingerprint != measured.figures.fingerprint
    times = (before.routes[then]["p95_ms"] if then is not None else None, measured.of(now, metric).p95_ms)
    notes = sentences("against.notes", questions, depth, max_broken, unpaired, len(relabelled), moved, *times)
    title = measured.title(now)
    summary = say("against.summary", before, title, then, changes, planned, regression, least)
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
        depth,
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
    before: Snapshot, measured: Measured, then: str, now: str, same: Mapping[str, str], least: float
) -> tuple[Change, ...]:
    """Compare the planned metric over all questions first; other metrics and the kinds are one family."""
    old = before.values.get(then, {})
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
        if (one := pair(now, then, apart, level, mode)) is not None:
            dropped = one.high < 0 and one.delta < -least
            found.append(Change(**asdict(one), metric=metric, dropped=dropped))
    return tuple(found)
