"""`fit` and `calibrate`: fusion weights, and thresholds of the model's judgements, from labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from core.backends import calibrations
from core.backends.calibrations import DecisionCalibration
from core.backends.fusion_weights import FittedWeights
from core.cli import corpora
from core.cli.commands import argument, command
from core.cli.common import amount, emit, listed, note, table, working
from core.corpus import catalogue
from core.domain import settings
from core.domain.errors import BadInput, Cancelled, Unavailable
from core.domain.format import between, number
from core.domain.needs import Need
from core.engine import engine as engines
from core.engine.availability import missing
from core.evaluation import calibration as calibrating
from core.evaluation import sets
from core.evaluation.finding import Finding
from core.evaluation.spec import option
from core.evaluation.templating import say
from core.evaluation.tuning import fusion_weights


@command("fit")
def fit_(
    corpus: str,
    evaluation: str | None = option(
        None, "Labels of a saved evaluation, to compare with its routes.", "NAME"
    ),
    labels: str | None = option(None, "Labels of a label set from the Label page.", "SET"),
    split: str | None = option(
        None, "Questions to fit on, not the held-out ones. Default: dev, else all but test.", "SPLIT"
    ),
    lists: str | None = option(None, "Lists to fuse. Default: all that can be searched.", "A,B"),
    name: str = option("fitted", "Name of the weights."),
) -> int:
    """Fit the weights of the route learned_fusion on labelled questions, and measure them.

    The weights come from a logistic regression over each list's features of a passage. They are compared with
    fusions that need no labels, on questions they were not fitted on. No model is called.
    """
    if evaluation is not None and labels is not None:
        raise BadInput("--evaluation and --labels cannot be combined; give one")
    if evaluation is None:
        corpora.ensured(corpus, engines.shared_engine().settings)
    chosen = listed(lists)
    wanted = fusion_weights.Wanted(corpus, name, chosen, evaluation, labels, split)
    with working("q") as (bar, asked):
        try:
            fitted = fusion_weights.perform(
                engines.shared_engine(), wanted, partial(bar, "questions"), note, asked.is_set
            )
        except Cancelled:
            note("stopped by the user; no weights were saved")
            return 1
    emit(asdict(fitted), fitted_text(fitted))
    return 0


def fitted_text(fitted: FittedWeights) -> str:
    """Format the finding, the weights, and each comparison."""
    grids = []
    for part in ("held out", "out of fold"):
        for group in ("against", "measured"):
            if found := fusion_weights.rivals(fitted, part, group):
                heads = [f"{part}, fitted minus", "nDCG@10", "difference", "95% interval", "p (Holm)", ""]
                grids.append(table(heads, map(_row, found)))
    if found := fusion_weights.left_out(fitted):
        heads = ["out of fold, without", "nDCG@10", "difference", "", "", ""]
        grids.append(table(heads, map(_row, found)))
    labels, worth = fusion_weights.labels(fitted.made["counts"]), fusion_weights.worth(fitted)
    return say("commands.fitted", fitted, labels, worth, fusion_weights.weights(fitted), grids)


def _row(one: Finding) -> list[str | None]:
    ends = "-" if one.interval is None else between(*one.interval, signed=True)
    p = "" if one.p is None else f"{one.p:.3f}"
    return [one.baseline, f"{one.before:.3f}", number(one.estimate, signed=True), ends, p, one.verdict]


QUERIES = 24
SEED = 1  # another than that of `audit` and `eval`, whose questions are to be others


@command("calibrate")
def calibrate_(
    targets: Sequence[str] = argument("SET..."),
    decisions: str | None = option(None, "Decisions to calibrate. Default: all.", "A,B"),
    queries: int = option(QUERIES, "At most N cases from each set.", "N", least=1),
    seed: int = option(SEED, "Seed of the questions drawn.", least=None),
    split: str | None = option(None, "dev, test or all. Default: dev, else all but test.", "SPLIT"),
    out: Path | None = option(None, "Write them here. Default: where routes look for them.", "DIR"),
) -> int:
    """Measure what the model's yes-or-no judgements are worth, and choose a threshold for each.

    SET is the name of a corpus with questions, or a folder as `eval` takes it; give two or more, so that a
    threshold is also checked on a set that it was not chosen on. A decision with an AUC below 0.65 carries no
    signal: routes that go by it say so. The model's replies are cached, so a stopped command goes on.
    """
    wanted = calibrating.chosen(decisions)
    now, engine = settings.current(), engines.shared_engine()
    if why := missing(engine).get(Need.LLM):
        raise Unavailable(f"nothing to calibrate: {why}")
    sources = [catalogue.source(target, settings=now) for target in dict.fromkeys(targets)]
    found = [sets.read(one.name, one.path, split=split or "all") for one in sources]
    for source in sources:
        corpora.ensure(source, now)
    folder = out or now.home / "calibrations"
    made: list[DecisionCalibration] = []
    with working("q") as (bar, asked):
        try:
            for decision in wanted:
                cases: list[calibrating.Case] = []
                for source, written in zip(sources, found, strict=True):
                    corpus = engine.corpus(source.name)
                    labelled = sets.tie(written, corpus)[0]
                    labelled = labelled if split else calibrating.of_dev(labelled)
                    about = engine, labelled, corpus, decision, queries, seed
                    report = partial(bar, f"{decision}, {source.name}")
                    cases += calibrating.gather(*about, report, asked.is_set, note)
                try:
                    by = calibrations.subject(engine.llm())
                    one = calibrating.calibrate(decision, by, cases)
                except BadInput as error:
                    note(f"left out: {error}")
                    continue
                path = calibrations.write(one, folder)
                note(f"{decision}: AUC {one.auc:.2f}, threshold {one.threshold:g}, in {path}")
                made.append(one)
        except Cancelled:
            note("stopped by the user; what was finished is saved, and the same command goes on")
            return 1
    emit([asdict(one) for one in made], _calibrated(made))
    return 0 if made else 1


def _calibrated(made: Sequence[DecisionCalibration]) -> str:
    rows, apart = [], []
    for one in made:
        ends, signal = f"{one.interval[0]:.2f} to {one.interval[1]:.2f}", "yes" if one.signal else "no"
        about = one.decision, one.n, one.positive, f"{one.auc:.2f}"
        rows.append((*about, ends, f"{one.threshold:g}", signal))
        for held in one.held_out:
            figures = (amount(value, 2) for value in (held.auc, held.threshold, held.balanced_accuracy))
            apart.append((one.decision, held.name, held.n, held.positive, *figures))
    heads = ("decision", "cases", "true", "AUC", "95% interval", "threshold", "signal")
    parts = [table(heads, rows), "", "Each set by the threshold that the others give"]
    heads = ("decision", "set", "cases", "true", "AUC", "threshold", "balanced accuracy")
    return "\n".join((*parts, table(heads, apart)))
