"""`fit`: fusion weights of a corpus, fitted on labels."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from core.cli.commands import command
from core.cli.common import emit, listed, note, working
from core.cli.text import table
from core.domain.errors import BadInput, Cancelled
from core.domain.format import between, number
from core.evaluation.spec import option

if TYPE_CHECKING:
    from core.backends.fusion_weights import FittedWeights


@command("fit")
def fit_(
    corpus: str,
    evaluation: str | None = option(
        None, "Labels of a saved evaluation, to compare with its routes.", "NAME"
    ),
    labels: str | None = option(None, "Labels of a label set from the Label page.", "SET"),
    split: str | None = option(
        None,
        "Questions to fit on; the others are held out. Default: dev if there are other splits, "
        "else all but test.",
        "SPLIT",
    ),
    lists: str | None = option(None, "Lists to fuse. Default: all that can be searched.", "A,B"),
    name: str = option("fitted", "Name of the weights."),
) -> int:
    """Fit the weights of the route learned_fusion on labelled questions, and measure them.

    The weights come from a logistic regression over each list's features of a passage. They are compared with
    fusions that need no labels, on questions they were not fitted on. No model is called.
    """
    from core.cli.corpora import ensured
    from core.engine.engine import shared_engine
    from core.evaluation.tuning import fusion_weights

    if evaluation is not None and labels is not None:
        raise BadInput("--evaluation and --labels cannot be combined; give one")
    if evaluation is None:
        ensured(corpus, shared_engine().settings)
    chosen = listed(lists)
    wanted = fusion_weights.Wanted(corpus, name, chosen, evaluation, labels, split)
    with working("q") as (bar, asked):
        try:
            fitted = fusion_weights.perform(
                shared_engine(), wanted, partial(bar, "questions"), note, asked.is_set
            )
        except Cancelled:
            note("stopped by the user; no weights were saved")
            return 1
    emit(asdict(fitted), lambda: fitted_text(fitted))
    return 0


def fitted_text(fitted: FittedWeights) -> str:
    """Format the finding, the weights, and each comparison."""
    from core.evaluation.tuning import fusion_weights

    lines = [f"{fitted.name}: {fitted.made['of']}: {fusion_weights.labels(fitted.made['counts'])}", ""]
    lines += [*fusion_weights.worth(fitted), fusion_weights.weights(fitted)]
    for part in ("held out", "out of fold"):
        for group in ("against", "measured"):
            if found := fusion_weights.rivals(fitted, part, group):
                rows = [
                    [
                        one.baseline,
                        f"{one.before:.3f}",
                        number(one.estimate, signed=True),
                        "-" if one.interval is None else between(*one.interval, signed=True),
                        f"{one.p:.3f}",
                        one.verdict,
                    ]
                    for one in found
                ]
                heads = [f"{part}, fitted minus", "nDCG@10", "difference", "95% interval", "p (Holm)", ""]
                lines += ["", table(heads, rows, right=(1, 2, 3, 4))]
    if found := fusion_weights.left_out(fitted):
        rows = [
            [one.baseline, f"{one.before:.3f}", number(one.estimate, signed=True), one.verdict]
            for one in found
        ]
        lines += ["", table(["out of fold, without", "nDCG@10", "difference", ""], rows, right=(1, 2))]
    lines += [
        "",
        f"The route learned_fusion now uses these weights. On the {len(fitted.made['questions'])} questions "
        "they were fitted on, it looks better than it is: measure it on others.",
    ]
    return "\n".join(lines)
