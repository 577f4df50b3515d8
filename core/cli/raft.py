"""`raft`: training examples from labelled questions."""

from __future__ import annotations

import json
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from core.cli import corpora
from core.cli.commands import argument, command
from core.cli.common import attributes, emit, note, warn
from core.corpus import catalogue, index
from core.domain import settings, system
from core.domain.errors import BadInput
from core.evaluation import raft, sets
from core.evaluation.spec import option


@command("raft")
def raft_(
    target: str = argument("PATH_OR_NAME"),
    out: Path = option(MISSING, "Output file.", "FILE.jsonl"),
    distractors: int = option(4, "Unlabelled passages per example.", most=50),
    p_gold: float = option(0.8, "Share of the examples that include the relevant passages.", most=1),
    seed: int = option(0, "Random seed of the sampling and the order.", least=None),
    split: str = option("dev", "dev, test or all.", "SPLIT"),
    name: str | None = option(None, "Name of the corpus for a folder that is not indexed yet."),
) -> int:
    """Write training examples (RAFT) from a labelled set: a BEIR folder, or a corpus with questions.

    Each has the question, its relevant passages among BM25's nearest unlabelled ones, quotes from the labels
    and the gold answer, also as chat messages. Questions without gold answer or relevant passage are skipped.
    """
    now = settings.current()
    source = catalogue.source(target, settings=now, name=name)
    found = sets.read(source.name, source.path, split=split)
    corpora.ensure(source, now)
    corpus = index.open_corpus(source.name, settings=now)
    labelled, said = sets.tie(found, corpus)
    warn((*corpus.warnings, *said))
    if any(question.split == "test" for question in labelled.questions):
        note("warning: these are test questions; do not evaluate a model on them after training it on them")
    made = raft.Made()
    scratch = out.with_name(f".{out.name}.new")
    try:
        with scratch.open("w", encoding="utf-8") as file:
            how: dict[str, Any] = {"distractors": distractors, "p_gold": p_gold, "seed": seed}
            for example in raft.examples(labelled, corpus, raft.quotes(found), made, **how):
                file.write(json.dumps(example, ensure_ascii=False) + "\n")
        system.replace(scratch, out)
    except OSError as error:
        raise BadInput(f"cannot write {out}: {error.strerror or error}") from None
    finally:
        scratch.unlink(missing_ok=True)
    document = {"out": str(out), **attributes(made, "examples without_oracle short skipped")}
    skipped = ", ".join(f"{count} with {why}" for why, count in sorted(made.skipped.items()))
    less = f"{made.without_oracle} of them without the relevant passages, {made.short} with fewer distractors"
    emit(document, f"{out}: {made.examples} examples, {less}; skipped: {skipped or 'none'}")
    return 0 if made.examples else 1
