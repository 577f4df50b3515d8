"""`gate` and `diff`: which measured route can be shipped, and what broke or was fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from core.api.gating import decided
from core.cli.commands import argument, command, declared
from core.cli.common import amount, emit, listed, note, table, working
from core.domain import settings
from core.domain.errors import BadInput
from core.domain.format import milliseconds
from core.domain.text import one_line
from core.evaluation.diff import evaluations as words
from core.evaluation.diff.evaluations import EvaluationsDiff, evaluations_diff
from core.evaluation.labels.label_next import of_evaluation
from core.evaluation.release.comment import comment
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import Decision
from core.evaluation.release.junit import junit as junit_xml
from core.evaluation.release.measured import find, find_evaluation
from core.evaluation.release.report import report
from core.evaluation.release.snapshot import Against, earlier, failures, snapshot
from core.evaluation.spec import option
from core.evaluation.stored import whole_lines
from core.evaluation.templating import say


@command("gate")
def gate_(
    metrics: str,
    criteria: Criteria = declared(Criteria, Criteria),
    planned: str | None = option(None, "The only candidates, compared with the baseline.", "A,B"),
    regressions: str | None = option(
        None, "Fail if a question of this label set of complaints, or an evaluation of it, broke.", "SET"
    ),
    against: str | None = option(
        None,
        "Fail only on a drop that is shown since this earlier release or evaluation (name or folder).",
        "SNAPSHOT|EVALUATION",
    ),
    fail_undecided: bool = option(False, "With --against, also fail if such a drop is not excluded."),
    max_broken: int | None = option(None, "Fail if more questions broke since --against; see diff.", "N"),
    report_to: Path | None = option(None, "Write a report, .html or .md.", "FILE", "--report"),
    keep_in: Path | None = option(None, "Write a snapshot for the next --against.", "FILE", "--snapshot"),
    junit: Path | None = option(None, "Write JUnit XML, with --against a case for each question.", "FILE"),
    comment_to: Path | None = option(None, "Write a pull request's comment.", "FILE", "--markdown"),
) -> int:
    """Decide which route of an evaluation to ship. METRICS is the folder of `eval --out`, the metrics.json in
    it, or the name of a saved evaluation.

    A route ships if it is at most the margin worse than every other route that meets the limits, shown by the
    paired interval against each. With too few questions the result is "not enough evidence", with the best
    route so far and about how many more questions would decide. Limits that are not given follow from the
    baseline, and are named.

    Exits with 0 if there is a route to ship, 1 if there is no such route or the evidence is too weak, 2 on
    invalid input. With --against, exits with 1 only if a drop is shown, every route misses a limit, or
    --regressions or --max-broken fail. From a metrics.json alone, routes can only be compared with the
    baseline.
    """

    if report_to is not None and report_to.suffix not in (".html", ".md"):
        raise BadInput(f"--report {report_to}: give a name that ends in .html or .md")
    now = settings.current()
    if against is None and (max_broken is not None or criteria.min_effect is not None or fail_undecided):
        raise BadInput("--max-broken, --min-effect and --fail-undecided need --against")
    before = earlier(now, against, criteria) if against is not None else None
    measured = find(now, metrics)
    if measured.evaluation is None:
        note("warning: metrics.json alone lacks the values of each question, so some results are missing")
    if planned is not None:
        measured = measured.planned(list(listed(planned)))
    with working("q") as (bar, stop):
        asking = {"ended": stop.is_set, "progress": partial(bar, "regressions")}
        decision, change = decided(measured, criteria, before, regressions, max_broken, **asking)
    kind: Literal["html", "markdown"] = "html" if report_to and report_to.suffix == ".html" else "markdown"
    written: list[tuple[Path | None, Callable[[], str]]] = [
        (report_to, lambda: report(measured, decision, change, kind=kind)),
        (junit, lambda: junit_xml(decision, change)),
        (comment_to, lambda: comment(decision, change)),
        (keep_in, lambda: snapshot(measured, decision)),
    ]
    for path, text in written:
        try:
            if path is not None:
                whole_lines(path, [text()])
        except OSError as error:
            raise BadInput(f"{path} cannot be written: {error.strerror or error}") from None
    pair = decision.verdict.open_pair  # of these two routes labels decide
    open_ = [] if pair is None or measured.evaluation is None else of_evaluation(measured.evaluation, *pair)
    document: dict[str, Any] = {**decision.document(), "label_next": [one.document() for one in open_]}
    if change is not None:
        document |= {"regression": change.regression, "against": change.document()}
    emit(document, _text(decision, change, document["label_next"]))
    return 1 if failures(decision, change, fail_undecided=fail_undecided) else 0


def _text(decision: Decision, change: Against | None, next_: list[dict[str, Any]]) -> str:
    sentences = decision.sentences
    sentences += change.sentences() if change is not None else []
    rows = [
        (
            one.route,
            say("decision.standing", decision, one),
            amount(one.mean),
            "-" if one.p95_ms is None else milliseconds(one.p95_ms),
            amount(one.tokens, 0),
            "" if one.passes else say("decision.lacking", one),
        )
        for one in decision.ordered
    ]
    heads = ("route", "gate", decision.criteria.metric, "p95", "tokens", "misses")
    return say("commands.gate", sentences, next_, decision.required, table(heads, rows))


@command("diff")
def diff_(
    before: str = argument("A"),
    after: str = argument("B"),
    routes: Sequence[str] = option(
        (), "A route, or one of A with one of B; repeatable. Default: all.", "R|A_ROUTE:B_ROUTE", "--route"
    ),
    metric: str = option("ndcg@10", "Metric of the means; its number after @ is k (10 if it has none)."),
) -> None:
    """Show which questions broke and which were fixed from evaluation A to B, and at which step.

    Each is listed with the passage that was lost or found. A and B are names of saved evaluations or folders
    of `eval --out`.

    A relevant passage is found if it is among the first k of the ranking. A question is broken if B finds
    fewer of its relevant passages than A, fixed if B finds more, and unchanged if B finds as many; a route
    that failed found nothing. Only questions that both have with the same text and a relevant passage in
    common are compared. The step is read from the recorded traces, and "not recorded" without them.

    If the corpus changed, displaced_by names the new and changed documents now ranked above a relevant
    passage that left the first k or whose reciprocal rank halved. rank_without is its rank in B's recorded
    ranking without these documents; if B did not rank it, the best rank that leaves.

    Exits with 0 whatever the difference, 2 on invalid input.
    """

    now = settings.current()
    found = evaluations_diff(
        find_evaluation(now, before), find_evaluation(now, after), [_pair(one) for one in routes], metric
    )
    emit(found.document(), _questions(found))


def _pair(given: str) -> tuple[str, str]:
    before, colon, after = given.partition(":")
    if not before or (colon and not after):
        raise BadInput(f"--route {given!r}: give the name of a route, or A_ROUTE:B_ROUTE")
    return before, after or before


def _questions(found: EvaluationsDiff) -> str:

    lines = [f"{found.before} to {found.after}, {found.metric}", words.rule(found.depth), *found.notes]
    for one in found.routes:
        lines += ["", words.route_name(one), *words.summary(found, one)]
        for question in (*one.questions.of("broken"), *one.questions.of("fixed")):
            about = f"{question.change:7} {question.id} {question.text}"
            lines += [about, *(f"{'':8}{words.passage_change(one)}" for one in [question.decisive] if one)]
        lines += [line for question in one.questions.questions for line in words.displacements(question)]
    return "\n".join(_one_line(line) for line in lines)


def _one_line(line: str) -> str:
    return line[: len(line) - len(line.lstrip())] + one_line(line)
