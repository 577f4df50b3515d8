"""`fit`: fusion weights of a corpus, fitted on labels."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from core.backends.fusion_weights import FittedWeights
from core.cli import corpora
from core.cli.commands import command
from core.cli.common import emit, listed, note, table, working
from core.domain.errors import BadInput, Cancelled
from core.domain.format import between, number
from core.engine import engine as engines
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
