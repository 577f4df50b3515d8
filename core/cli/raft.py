"""`raft`: training examples from labelled questions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from core.cli.common import emit, note, output_options
from core.domain.errors import BadInput


@click.command("raft")
@click.argument("target", metavar="PATH_OR_NAME")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="FILE.jsonl", help="Output file."
)
@click.option(
    "--distractors",
    type=click.IntRange(0, 50),
    default=4,
    show_default=True,
    help="Unlabelled passages per example.",
)
@click.option(
    "--p-gold",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="Share of the examples that include the relevant passages.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Random seed of the sampling and the order."
)
@click.option("--split", default="dev", show_default=True, metavar="SPLIT", help="dev, test or all.")
@click.option("--name", help="Name of the corpus for a folder that is not indexed yet.")
@output_options
def raft_(
    target: str,
    out: Path,
    distractors: int,
    p_gold: float,
    seed: int,
    split: str,
    name: str | None,
    as_json: bool,
) -> int:
    """Write training examples (RAFT) from a labelled set: a BEIR folder, or a corpus with questions.

    Each has the question, its relevant passages among BM25's nearest unlabelled ones, quotes from the labels
    and the gold answer, also as chat messages. Questions without gold answer or relevant passage are skipped.
    """
    from core.cli.corpora import ensure
    from core.corpus import catalogue, index
    from core.domain import settings
    from core.evaluation import raft, sets

    now = settings.current()
    source = catalogue.source(target, settings=now, name=name)
    found = sets.read(source.name, source.path, split=split)
    ensure(source, now)
    corpus = index.open_corpus(source.name, settings=now)
    labelled, said = sets.tie(found, corpus)
    for warning in (*corpus.warnings, *said):
        note(f"warning: {warning}")
    if any(question.split == "test" for question in labelled.questions):
        note("warning: these are test questions; do not evaluate a model on them after training it on them")
    made = raft.Made()
    scratch = out.with_name(f".{out.name}.new")
    try:
        with scratch.open("w", encoding="utf-8") as file:
            for example in raft.examples(
                labelled,
                corpus,
                raft.quotes(found),
                made,
                distractors=distractors,
                p_gold=p_gold,
                seed=seed,
            ):
                file.write(json.dumps(example, ensure_ascii=False) + "\n")
        os.replace(scratch, out)
    except OSError as error:
        raise BadInput(f"cannot write {out}: {error.strerror or error}") from None
    finally:
        scratch.unlink(missing_ok=True)
    document = {
        "out": str(out),
        "examples": made.examples,
        "without_oracle": made.without_oracle,
        "short": made.short,
        "skipped": made.skipped,
    }
    skipped = ", ".join(f"{count} with {why}" for why, count in sorted(made.skipped.items()))
    emit(
        document,
        lambda: (
            f"{out}: {made.examples} examples, {made.without_oracle} of them without the relevant passages"
            + (f", {made.short} with fewer distractors" if made.short else "")
            + (f"; skipped: {skipped}" if skipped else "")
        ),
        as_json=as_json,
    )
    return 0 if made.examples else 1
