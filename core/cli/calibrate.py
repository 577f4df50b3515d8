"""`calibrate`: what the language model's closed questions are worth, measured on labelled questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from core.cli.commands import argument, command
from core.cli.common import emit, note, working
from core.cli.text import amount, table
from core.domain.errors import BadInput, Cancelled
from core.evaluation.spec import option

if TYPE_CHECKING:
    from core.backends.calibrations import DecisionCalibration

QUERIES = 24
SEED = 1  # another than that of `audit` and `eval`, whose questions are to be others


@command("calibrate")
def calibrate_(
    targets: Sequence[str] = argument("SET..."),
    decisions: str | None = option(None, "Decisions to calibrate. Default: all.", "A,B"),
    queries: int = option(QUERIES, "At most N cases from each set.", "N", least=1),
    seed: int = option(SEED, "Seed of the questions drawn.", least=None),
    split: str | None = option(
        None, "dev, test or all. Default: dev if a set has it, else all but test.", "SPLIT"
    ),
    out: Path | None = option(
        None, "Write the calibrations here. Default: where routes look for them.", "DIR"
    ),
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
    from core.evaluation import calibration, sets

    wanted = calibration.chosen(decisions)
    now, engine = settings.current(), shared_engine()
    if why := missing(engine).get(Need.LLM):
        raise Unavailable(f"nothing to calibrate: {why}")
    sources = [catalogue.source(target, settings=now) for target in dict.fromkeys(targets)]
    found = [sets.read(one.name, one.path, split=split or "all") for one in sources]
    for source in sources:
        ensure(source, now)
    folder = out or now.home / "calibrations"
    made: list[DecisionCalibration] = []
    with working("q") as (bar, asked):
        try:
            for decision in wanted:
                cases: list[calibration.Case] = []
                for source, written in zip(sources, found, strict=True):
                    corpus = engine.corpus(source.name)
                    labelled = sets.tie(written, corpus)[0]
                    label = f"{decision}, {source.name}"
                    cases += calibration.gather(
                        engine,
                        labelled if split else calibration.of_dev(labelled),
                        corpus,
                        decision,
                        queries,
                        seed,
                        partial(bar, label),
                        asked.is_set,
                        note,
                    )
                try:
                    one = calibration.calibrate(decision, calibrations.subject(engine.llm()), cases)
                except BadInput as error:
                    note(f"left out: {error}")
                    continue
                path = calibrations.write(one, folder)
                note(f"{decision}: AUC {one.auc:.2f}, threshold {one.threshold:g}, in {path}")
                made.append(one)
        except Cancelled:
            note("stopped by the user; what was finished is saved, and the same command goes on")
            return 1
    emit([asdict(one) for one in made], lambda: _text(made))
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
            *(amount(value, 2) for value in (held.auc, held.threshold, held.balanced_accuracy)),
        )
        for one in made
        for held in one.held_out
    ]
    heads = ("decision", "cases", "true", "AUC", "95% interval", "threshold", "signal")
    parts = [table(heads, rows, right=(1, 2, 3, 5)), "", "Each set by the threshold that the others give"]
    heads = ("decision", "set", "cases", "true", "AUC", "threshold", "balanced accuracy")
    return "\n".join((*parts, table(heads, apart, right=(2, 3, 4, 5, 6))))
