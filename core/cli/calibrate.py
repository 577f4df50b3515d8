"""`calibrate`: what the language model's closed questions are worth, measured on labelled questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.cli.common import ProgressBar, emit, note, output_options, stoppable
from core.cli.text import table
from core.domain.errors import BadInput, Cancelled

if TYPE_CHECKING:
    from core.backends.calibrations import DecisionCalibration

QUERIES = 24
SEED = 1  # another than that of `audit` and `eval`, whose questions are to be others


@click.command("calibrate")
@click.argument("targets", metavar="SET...", nargs=-1, required=True)
@click.option("--decisions", metavar="A,B", help="Decisions to calibrate. Default: all.")
@click.option(
    "--queries",
    type=click.IntRange(min=1),
    default=QUERIES,
    show_default=True,
    metavar="N",
    help="At most N cases from each set.",
)
@click.option("--seed", type=int, default=SEED, show_default=True, help="Seed of the questions drawn.")
@click.option(
    "--split", metavar="SPLIT", help="dev, test or all. Default: dev if a set has it, else all but test."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the calibrations here. Default: where routes look for them.",
)
@output_options
def calibrate_(
    targets: Sequence[str],
    decisions: str | None,
    queries: int,
    seed: int,
    split: str | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Measure what the language model's yes-or-no judgements are worth, and choose a threshold for each.

    SET is the name of a corpus with questions, or a folder as `eval` takes it; give two or more, so that a
    threshold is also checked on a set that it was not chosen on. A decision with an AUC below 0.65 carries no
    signal: routes that go by it say so. The model's replies are cached, so a stopped command goes on.
    """
    from core.backends import calibrations
    from core.cli.corpora import ensure
    from core.corpus import catalogue
    from core.domain import settings
    from core.domain.errors import Unavailable
    from core.domain.needs import Need
    from core.engine.availability import missing
    from core.engine.engine import shared_engine
    from core.evaluation import model_calibration, sets

    wanted = model_calibration.chosen(decisions)
    now, engine = settings.current(), shared_engine()
    if why := missing(engine).get(Need.LLM):
        raise Unavailable(f"nothing to calibrate: {why}")
    sources = [catalogue.source(target, settings=now) for target in dict.fromkeys(targets)]
    found = [sets.read(one.name, one.path, split=split or "all") for one in sources]
    for one in sources:
        ensure(one, now)
    folder = out or now.home / "calibrations"
    made: list[DecisionCalibration] = []
    bar = ProgressBar("q")
    with stoppable() as asked:
        try:
            for decision in wanted:
                cases: list[model_calibration.Case] = []
                for source, written in zip(sources, found, strict=True):
                    corpus = engine.corpus(source.name)
                    labelled = sets.tie(written, corpus)[0]
                    label = f"{decision}, {source.name}"
                    cases += model_calibration.gather(
                        engine,
                        labelled if split else model_calibration.of_dev(labelled),
                        corpus,
                        decision,
                        queries,
                        seed,
                        partial(bar, label),
                        asked.is_set,
                        note,
                    )
                try:
                    calibration = model_calibration.calibrate(
                        decision, calibrations.subject(engine.llm()), cases
                    )
                except BadInput as error:
                    note(f"left out: {error}")
                    continue
                path = calibrations.write(calibration, folder)
                note(f"{decision}: AUC {calibration.auc:.2f}, threshold {calibration.threshold:g}, in {path}")
                made.append(calibration)
        except Cancelled:
            bar.close()
            note("stopped by the user; what was finished is saved, and the same command goes on")
            return 1
    bar.close()
    emit([asdict(one) for one in made], lambda: _text(made), as_json=as_json)
    return 0 if made else 1


def _text(made: Sequence[DecisionCalibration]) -> str:
    rows = [
        (
            one.decision,
            one.n,
            one.positive,
            f"{one.auc:.2f}",
            f"{one.interval[0]:.2f} to {one.interval[1]:.2f}",
            f"{one.threshold:g}",
            "yes" if one.signal else "no",
        )
        for one in made
    ]
    apart = [
        (
            one.decision,
            held.name,
            held.n,
            held.positive,
            _number(held.auc),
            _number(held.threshold),
            _number(held.balanced_accuracy),
        )
        for one in made
        for held in one.held_out
    ]
    heads = ("decision", "cases", "true", "AUC", "95% interval", "threshold", "signal")
    parts = [table(heads, rows, right=(1, 2, 3, 5)), "", "Each set by the threshold that the others give"]
    heads = ("decision", "set", "cases", "true", "AUC", "threshold", "balanced accuracy")
    return "\n".join((*parts, table(heads, apart, right=(2, 3, 4, 5, 6))))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
