"""A release compared with the one before it, over the questions that both were measured on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from core.domain.format import milliseconds
from core.evaluation import effects
from core.evaluation.diff.questions import QuestionsDiff, questions_diff
from core.evaluation.diff.side import EvaluationSide
from core.evaluation.diff.text import broken
from core.evaluation.finding import Finding, count, sentence
from core.evaluation.naming import named
from core.evaluation.release.gate import Decision
from core.evaluation.release.losses import EVERY, paired
from core.evaluation.release.measured import Measured
from core.evaluation.release.snapshot import Snapshot, labels_of, side_of

State = Literal["no regression shown", "regression", "cannot be told"]


@dataclass(frozen=True, slots=True)
class Change:
    """The mean difference, now minus then, in a metric over `n` questions of a kind that both releases have;
    see core.evaluation.effects.family. All metrics over all questions are one Holm family, the kinds another.
    """

    metric: str
    mode: str
    n: int
    delta: float
    ci95: tuple[float, float] | None
    p_holm: float
    verdict: str
    detectable: float | None

    def finding(self, now: str, then: str) -> Finding:
        """The same as a finding, by what the two releases are called."""
        metric = named(self.metric) if self.mode == EVERY else f"{named(self.metric)} at {self.mode}"
        return Finding(
            now, metric, self.delta, self.ci95, self.p_holm, self.n, self.detectable, then, self.verdict
        )


@dataclass(frozen=True, slots=True)
class Against:
    """A release compared with the one before: `then` and `now` are the routes compared.

    `unpaired`: questions that only one of the two has, or whose text changed; they are left out. `in_words`
    is the finding in a sentence, `notes` are further remarks. `questions`: which broke and which were fixed,
    a passage found among the first `depth`; None where the snapshot or the evaluation lacks the passages.
    `max_broken`: how many may break, None for any number.
    """

    name: str
    then: str | None
    now: str | None
    state: State
    told: str
    changes: tuple[Change, ...]
    paired: int
    unpaired: int
    notes: tuple[str, ...]
    questions: QuestionsDiff | None = None
    depth: int = 0
    max_broken: int | None = None

    @property
    def too_many_broken(self) -> bool:
        """Whether more questions broke than may, or that cannot be determined."""
        if self.max_broken is None:
            return False
        return self.questions is None or len(self.questions.of("broken")) > self.max_broken

    def sentences(self) -> list[str]:
        """The finding, the notes, and the questions that broke."""
        return [self.told, *self.notes, *(broken(self.questions) if self.questions is not None else ())]

    def document(self) -> dict[str, Any]:
        """As JSON values, with every question compared."""
        document = asdict(self)
        if self.questions is not None:
            document["questions"] = [one.document() for one in self.questions.questions]
            document["left_out"] = asdict(self.questions.left_out)
        return document


def compare(
    before: Snapshot, measured: Measured, decision: Decision, *, max_broken: int | None = None
) -> Against:
    """The route to ship now against the one shipped then; where none passes now, that route as measured now.

    A question counts where its text is the same; where its judgements were changed is counted in the notes.
    """
    then = before.chosen
    now = decision.chosen or (then if then in measured.routes else None)
    same, unpaired, relabelled = _questions(before, measured)
    changes: tuple[Change, ...] = ()
    if then is not None and now is not None:
        changes = _changes(before, measured, then, now, same)
    at_all = [one for one in changes if one.mode == EVERY]
    lost = [one for one in changes if one.verdict == "worse"]
    state: State = "regression" if lost else "no regression shown" if at_all else "cannot be told"
    questions, depth = _by_question(before, measured, now)
    notes = _broken(questions, depth, max_broken)
    notes += _notes(before, measured, then, now, unpaired, relabelled)
    return Against(
        before.name, then, now, state, _in_words(before, measured, then, now, changes, state), changes,
        len(same), unpaired, tuple(notes), questions, depth, max_broken,
    )  # fmt: skip


def good(decision: Decision, change: Against | None) -> bool:
    """Whether a build passes: a route passes, no complaint broke again, and nothing is worse than before."""
    return not failures(decision, change)


def failures(decision: Decision, change: Against | None) -> list[str]:
    """Why a build fails, a phrase each; none where it passes."""
    found = []
    if decision.chosen is None:
        found.append("no route is known to meet every criterion")
    if decision.regressions is not None and decision.broken:
        found.append(f"{count(len(decision.regressions.broken), 'complaints')} broke again")
    if change is not None and change.state != "no regression shown":
        cannot = "whether it became worse cannot be determined"
        found.append(cannot if change.state == "cannot be told" else f"a regression against {change.name}")
    if change is not None and change.too_many_broken:
        what = "which questions broke cannot be determined"
        if change.questions is not None:
            what = f"{count(len(change.questions.of('broken')))} broke"
        found.append(f"{what}, and at most {change.max_broken} may")
    return found


def _by_question(before: Snapshot, measured: Measured, now: str | None) -> tuple[QuestionsDiff | None, int]:
    then = side_of(before)
    if then is None or now is None or measured.evaluation is None:
        return None, 0
    return questions_diff(then, EvaluationSide(measured.evaluation, now), then.depth), then.depth


def _broken(found: QuestionsDiff | None, depth: int, most: int | None) -> list[str]:
    allowed = "" if most is None else f" At most {most} may break."
    if found is None:
        return [f"Which questions broke cannot be determined.{allowed}"] if allowed else []
    lost, fixed = (len(found.of(change)) for change in ("broken", "fixed"))
    were = f"{fixed} {'was' if fixed == 1 else 'were'} fixed"
    return [
        f"{count(lost)} broke and {were}, of {count(len(found.questions))}, by the relevant passages among "
        f"the first {depth}.{allowed}"
    ]


def _questions(before: Snapshot, measured: Measured) -> tuple[dict[str, str], int, int]:
    """The questions both have with their kind now, how many are in one alone, how many judged otherwise."""
    asked = measured.evaluation.questions if measured.evaluation else {}
    same = {
        id: question.mode or ""
        for id, question in asked.items()
        if id in before.questions and before.questions[id]["text"] == question.query.text
    }
    relabelled = sum(labels_of(measured, id) != before.questions[id]["labels"] for id in same)
    return same, len(set(asked) | set(before.questions)) - len(same), relabelled


def _changes(
    before: Snapshot, measured: Measured, then: str, now: str, same: Mapping[str, str]
) -> tuple[Change, ...]:
    old = before.values.get(then, {})
    columns = {
        metric: paired(values[now], old[metric], [q for q in old[metric] if q in same])
        for metric in old
        if metric in measured.metrics() and (values := measured.values(metric)) is not None
    }
    overall = effects.family({metric: list(column.values()) for metric, column in columns.items()})
    main = columns.get(before.metric, {})
    modes = sorted({same[q] for q in main if same[q]})
    by_mode = effects.family({mode: [d for q, d in main.items() if same[q] == mode] for mode in modes})
    found = [((metric, EVERY), one) for metric, one in overall.items()]
    found += [((before.metric, mode), one) for mode, one in by_mode.items()]
    return tuple(
        Change(
            metric, mode, one["n"], one["delta"], tuple(one["ci95"]) if one["ci95"] else None, one["p_holm"],
            one["verdict"], one["detectable_holm"],
        )
        for (metric, mode), one in found
    )  # fmt: skip


def _in_words(
    before: Snapshot,
    measured: Measured,
    then: str | None,
    now: str | None,
    changes: tuple[Change, ...],
    state: State,
) -> str:
    if then is None:
        return "Cannot be determined: no route passed then, so there is none to compare with."
    was = str(before.routes[then]["title"])
    if now is None:
        return (
            f"Cannot be determined: {was} was shipped then but is not measured now, and no route passes now."
        )
    if state == "cannot be told":
        return "Cannot be determined: the two releases share no question with values for both."
    now_, then_ = f"{measured.title(now)} now", f"{was} then"
    if state == "regression":
        lost = [sentence(one.finding(now_, then_)) for one in changes if one.verdict == "worse"]
        return f"A regression: {' '.join(lost)}"
    main = next((one for one in changes if one.mode == EVERY and one.metric == before.metric), changes[0])
    return f"No regression found. {sentence(main.finding(now_, then_))}"


def _notes(
    before: Snapshot, measured: Measured, then: str | None, now: str | None, unpaired: int, relabelled: int
) -> list[str]:
    notes = []
    if unpaired:
        notes.append(f"{count(unpaired)} excluded: in only one of the releases, or with a changed text.")
    if relabelled:
        notes.append(f"{count(relabelled)} with changed labels, which may explain a difference.")
    if before.fingerprint != str(measured.figures.get("fingerprint", "")):
        notes.append("The corpus has changed since then.")
    if then is not None and now is not None:
        was, p95 = before.routes[then]["p95_ms"], measured.p95(now)
        if was is not None and p95 is not None:
            notes.append(f"p95 was {milliseconds(was)} and is now {milliseconds(p95)} (not tested).")
    return notes
