"""`gate`: which measured route can be shipped; the exit code says whether one can."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.cli.common import ProgressBar, emit, model_options, note, output_options, stoppable
from core.cli.text import amount, one_line, table
from core.domain.errors import BadInput
from core.evaluation.release.criteria import Criteria

if TYPE_CHECKING:
    from core.evaluation.release.against import Against
    from core.evaluation.release.gate import Decision
    from core.evaluation.release.measured import Measured

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("gate")
@click.argument("metrics", metavar="METRICS")
@model_options(Criteria, "criteria", Criteria)
@click.option(
    "--planned", metavar="A,B", help="Compare only these routes with the baseline; others are no candidates."
)
@click.option(
    "--regressions",
    metavar="SET",
    help="Fail if a question of this label set of complaints broke again; asks now, or reads "
    "an evaluation of the set.",
)
@click.option(
    "--against",
    metavar="SNAPSHOT|EVALUATION",
    help="Guard against a drop since this earlier release, or since another evaluation (name or "
    "folder), instead of choosing: fail only on a drop that is shown.",
)
@click.option(
    "--fail-undecided", is_flag=True, help="With --against, also fail if such a drop is not excluded."
)
@click.option(
    "--max-broken",
    type=click.IntRange(min=0),
    metavar="N",
    help="Also fail if more than N questions broke since --against; see diff.",
)
@click.option("--report", "report_to", type=_FILE, metavar="FILE", help="Write a report, .html or .md.")
@click.option(
    "--snapshot",
    "keep_in",
    type=_FILE,
    metavar="FILE",
    help="Write a snapshot, to compare the next release with.",
)
@click.option(
    "--junit",
    type=_FILE,
    metavar="FILE",
    help="Write JUnit XML: each criterion and, with --against, each question.",
)
@click.option(
    "--markdown",
    "comment_to",
    type=_FILE,
    metavar="FILE",
    help="Write a Markdown comment for a pull request.",
)
@output_options
def gate_(
    metrics: str,
    criteria: Criteria,
    planned: str | None,
    regressions: str | None,
    against: str | None,
    fail_undecided: bool,
    max_broken: int | None,
    report_to: Path | None,
    keep_in: Path | None,
    junit: Path | None,
    comment_to: Path | None,
    as_json: bool,
) -> int:
    """Decide which route of an evaluation to ship. METRICS is the folder of `eval --out`, the metrics.json in
    it, or the name of a saved evaluation.

    A route ships if it is at most the margin worse than every other route that meets the limits, shown by the
    paired interval against each. With too few questions the result is "not enough evidence", with the best
    route so far and about how many more questions would decide.

    Exits with 0 if there is a route to ship, 1 if there is no such route or the evidence is too weak, 2 on
    invalid input. With --against, exits with 1 only if a drop is shown, every route misses a limit, or
    --regressions or --max-broken fail. From a metrics.json alone, routes can only be compared with the
    baseline.
    """
    from core.domain import settings
    from core.evaluation.release.against import compare, failures
    from core.evaluation.release.comment import comment
    from core.evaluation.release.earlier import earlier
    from core.evaluation.release.gate import decide
    from core.evaluation.release.junit import junit as junit_xml
    from core.evaluation.release.measured import find
    from core.evaluation.release.report import report
    from core.evaluation.release.snapshot import snapshot

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
        measured = measured.planned([name.strip() for name in planned.split(",") if name.strip()])
    decision = decide(measured, criteria)
    if regressions is not None:
        decision = _regressions(regressions, measured, decision)
    change = compare(before, measured, decision, max_broken=max_broken) if before is not None else None
    if report_to is not None:
        _write(
            report_to,
            report(measured, decision, change, kind="html" if report_to.suffix == ".html" else "markdown"),
        )
    if junit is not None:
        _write(junit, junit_xml(decision, change))
    if comment_to is not None:
        _write(comment_to, comment(decision, change))
    if keep_in is not None:
        _write(keep_in, snapshot(measured, decision))
    document: dict[str, Any] = {**decision.document(), "label_next": _label_next(measured, decision)}
    if change is not None:
        document |= {"regression": change.regression, "against": change.document()}
    emit(document, lambda: _text(decision, change, document["label_next"]), as_json=as_json)
    return 1 if failures(decision, change, fail_undecided=fail_undecided) else 0


def _regressions(given: str, measured: Measured, decision: Decision) -> Decision:
    from core.engine.engine import shared_engine
    from core.evaluation.release.regression_source import with_regressions

    bar = ProgressBar("q")
    with stoppable() as asked:
        found = with_regressions(
            shared_engine(),
            given,
            measured,
            decision,
            ended=asked.is_set,
            progress=lambda done, total: bar("regressions", done, total),
        )
    bar.close()
    return found


def _label_next(measured: Measured, decision: Decision) -> list[dict[str, Any]]:
    """Return the questions whose labels decide most between the two routes that the verdict is open about."""
    from core.evaluation.labels import label_next

    pair = decision.verdict.open_pair
    if pair is None or measured.evaluation is None:
        return []
    return [one.document() for one in label_next.of_evaluation(measured.evaluation, *pair)]


def _text(decision: Decision, change: Against | None, next_: list[dict[str, Any]]) -> str:
    from core.evaluation.release import text as words

    sentences = words.every(decision)
    sentences += change.sentences() if change is not None else []
    if next_:
        ids = ", ".join(one["id"] for one in next_[:5])
        sentences.append(f"Label next, the most decisive first: {ids} (of {len(next_)}; all with --json).")
    lines = [one_line(text) for text in sentences]
    lines += ["", f"Required: {'; '.join(words.asked(decision.criteria))}", _table(decision)]
    return "\n".join(lines)


def _table(decision: Decision) -> str:
    from core.domain.format import milliseconds
    from core.evaluation.release.text import lacking, standing

    rows = [
        (
            one.route,
            standing(decision, one),
            amount(one.mean),
            "-" if one.p95_ms is None else milliseconds(one.p95_ms),
            amount(one.tokens, 0),
            "" if one.passes else lacking(one),
        )
        for one in decision.ordered
    ]
    return table(
        ("route", "gate", decision.criteria.metric, "p95", "tokens", "misses"), rows, right=(2, 3, 4)
    )


def _write(path: Path, text: str) -> None:
    from core.evaluation.report import whole_lines

    try:
        whole_lines(path, [text])
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror or error}") from None
