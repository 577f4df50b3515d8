"""`labels judge`: how far a model's judgement of relevance agrees with people's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.cli.commands import argument, command
from core.cli.common import emit, ended, followed, note, warn
from core.cli.text import table
from core.domain.errors import BadInput
from core.evaluation.spec import option

if TYPE_CHECKING:
    from core.evaluation.judge.record import JudgeRecord

COUNT, SEED = 100, 1


@command("judge")
def judge_(
    target: str = argument("SET"),
    count: int = option(
        COUNT, "At most N labelled passages; half of their questions are held out.", "N", least=20
    ),
    seed: int = option(SEED, "Seed of the passages drawn.", least=None),
) -> int:
    """Measure how far the language model's judgement of relevance agrees with people's labels.

    SET is a label set, or a corpus with labels of its own, as `eval` takes it. The labelling guidelines stand
    in the prompt. One half of the questions chooses the bounds of the grades, the other is held out for
    Cohen's kappa with its interval. `eval --judge` uses the result. The model's replies are cached, so a
    stopped command goes on.
    """
    from core.cli.corpora import ensure
    from core.corpus import catalogue
    from core.domain import settings
    from core.engine.engine import shared_engine
    from core.evaluation.judge import measure, source

    engine = shared_engine()
    measure.check_model(engine)
    if target in source.label_sets(engine):
        labels = source.of_set(engine, target)
    else:
        try:
            origin = catalogue.source(target, settings=settings.current())
        except BadInput as error:
            known = ", ".join(source.label_sets(engine)) or "none"
            raise BadInput(f"{error}; label sets: {known}") from None
        ensure(origin, settings.current())
        labels = source.of_corpus(engine, origin.name, origin.path)
    warn(labels.warnings)
    under_way = measure.begin(engine, labels, count=count, seed=seed)
    followed(under_way, "passages")
    if under_way.unscored:
        note(f"warning: {under_way.unscored} passages got no score: {under_way.why}")
    record = under_way.record
    if record is not None:
        emit(record.document(), lambda: _text(record))
    elif under_way.cancelled:
        note("stopped by the user; the model's replies are saved, and the same command goes on")
    return ended(under_way)


def _text(record: JudgeRecord) -> str:
    from core.evaluation.judge import record as records

    grades = range(len(record.confusion))
    rows = [(f"people: {grade}", *record.confusion[grade]) for grade in grades]
    heads = ("", *(f"judge: {grade}" for grade in grades))
    bounds = ", ".join(
        f"{grade} from {'never' if bound is None else f'{bound:g}'}"
        for grade, bound in enumerate(record.bounds, 1)
    )
    return "\n".join(
        (
            f"{record.name} ({record.of}), judged by {record.model} with prompt {record.prompt} and "
            f"guidelines {record.policy_hash[:12]}",
            f"Grades by P(Yes), chosen on {record.chosen.pairs} other passages: {bounds}",
            "",
            table(heads, rows, right=tuple(range(1, len(heads)))),
            "",
            records.agreement(record),
            records.leaves_open(record),
            records.use(record),
        )
    )
