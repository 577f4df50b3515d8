"""`questions` and `raft`: questions for documents that have none, and training examples of labelled ones."""

from __future__ import annotations

import getpass
import json
import sys
from collections import Counter
from dataclasses import MISSING, asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from core.cli import corpora
from core.cli.commands import argument, command, json_asked
from core.cli.common import attributes, emit, listed, note, table, warn, working
from core.corpus import catalogue, index
from core.domain import settings, system
from core.domain.errors import BadInput
from core.domain.program import COMMAND
from core.engine import engine as engines
from core.evaluation import raft, sets
from core.evaluation.questions import question_file, stress
from core.evaluation.questions.agreement import Agreement, between
from core.evaluation.questions.generate import KINDS, generate
from core.evaluation.questions.question_file import decide_all, review
from core.evaluation.release.measured import find_evaluation
from core.evaluation.spec import option
from core.evaluation.templating import say


@click.group("questions")
def questions_() -> None:
    """Questions with labels for documents that have none.

    The language model writes questions about passages and checks them; people review them; `eval CORPUS
    --questions FILE` measures routes on them and says what they are.
    """


@command("generate", questions_)
def generate_(
    corpus: str,
    count: int = option(MISSING, "Questions to write.", "N", least=1, most=1000),
    out: Path = option(MISSING, "Questions file; what is in it stays, and counts.", "FILE.jsonl"),
    kinds: str | None = option(
        None, "plain, vocabulary_mismatch, comparison, exact_identifier, no_answer. Default: all.", "A,B"
    ),
    seed: int = option(0, "Seed of the passages drawn.", least=None),
) -> int:
    """Write N questions about CORPUS with the language model, each with its label and its checks.

    Passages are drawn evenly over documents. A question is kept if the model's P(yes) that its passage
    answers it is high enough, if some route finds the passage, and if no other question is the same. One
    that every cheap route answers at rank 1 is marked easy. A stopped command goes on where it was.
    """
    wanted = listed(kinds) or KINDS
    if out.suffix != ".jsonl":
        raise BadInput(f"--out {out}: give a name that ends in .jsonl")
    name = corpora.indexed(corpus, settings.current())
    with working("questions") as (bar, cancel):
        found = generate(
            engines.shared_engine(),
            name,
            out,
            count,
            seed=seed,
            kinds=wanted,  # type: ignore[arg-type]
            progress=partial(bar, "write questions"),
            cancel=cancel,
        )
    warn(found.notes)
    if found.ended:
        note(f"warning: ended with {len(found.lines)} of {count}: {found.ended}")
    document = {
        "corpus": corpus,
        "file": str(out),
        "questions": len(found.lines),
        "kinds": dict(Counter(str(line.get("mode")) for line in found.lines)),
        "easy": sum(bool(line["generated"]["checks"].get("easy")) for line in found.lines),
        "dropped": dict(found.dropped),
        "model_seconds": round(found.seconds, 1),
        "model_calls": found.calls,
        "seconds_per_question": found.per_question,
        **attributes(found, "threshold ended notes"),
    }
    rows = [(why, n) for why, n in found.dropped.most_common()]
    dropped = table(("dropped, as", "questions"), rows) if rows else ""
    emit(document, say("commands.generated", document, dropped, COMMAND))
    if found.ended == "stopped by the user":
        return 130
    return 0 if len(found.lines) >= count else 1


@command("stress", questions_)
def stress_(
    folder: Path,
    documents: int = option(46, "Documents whose pairs are asked, 3 to 90.", "N"),
    others: int = option(0, "Further documents, which answer nothing.", "N", least=0, most=1_000_000),
    seed: int = option(0, "Seed of the words.", least=None),
) -> None:
    """Write a dataset that embeddings cannot rank (as LIMIT, arXiv:2508.21038) into FOLDER.

    Each pair of N documents likes one thing that nobody else likes: "Who likes X?". Measure routes on it with
    `eval FOLDER`.
    """
    written, asked = stress.write(folder, documents, others, seed)
    emit(
        {"folder": str(folder), "documents": written, "questions": asked},
        f"{written} documents and {asked} questions in {folder}\nMeasure routes: {COMMAND} eval {folder}",
    )


@command("review", questions_)
def review_(
    file: Path,
    who: str | None = option(None, "Reviewer. Default: the name of your account.", "NAME", flags="--as"),
    accept: str | None = option(None, "Accept these questions and ask nothing.", "ID,ID"),
    drop: str | None = option(None, "Drop these questions and ask nothing.", "ID,ID"),
    accept_all: bool = option(False, "Accept every question that nobody has reviewed."),
) -> None:
    """Review the generated questions of FILE: accept, edit, drop.

    Shows one question after the other with its passage and its checks. Keys: a accept, e edit, d drop, s
    skip, u undo, q quit; without a terminal, a line each on stdin. Each decision is saved at once. With
    --json, or --accept, --drop or --accept-all, it asks nothing and prints the state.
    """
    if not file.is_file():
        raise BadInput(f"{file} is not there; write it by: questions generate CORPUS --count N --out {file}")
    name = who or getpass.getuser()
    if accept or drop or accept_all:
        decide_all(file, name, listed(accept), listed(drop), every=accept_all)
    elif not json_asked():
        review(file, name, sys.stdin, sys.stdout)
    found = question_file.read(file)
    counted = question_file.states(found)
    document = {
        "file": str(file),
        "states": counted,
        "questions": [
            {"id": line["id"], "text": line["text"], "kind": line.get("mode"), **line["generated"]}
            for line in found
        ],
    }
    emit(document, ", ".join(f"{count} {name}" for name, count in counted.items()))


@command("agreement", questions_)
def agreement_(
    real: str, generated: str, metric: str = option("ndcg@10", "Metric that orders the routes.")
) -> None:
    """Show whether generated questions order routes as real ones do: Kendall's tau and what it can reach.

    REAL and GENERATED are two evaluations of the same routes: names of saved ones, or folders of `eval
    --out`.
    """
    first, second = (find_evaluation(settings.current(), one) for one in (real, generated))
    found = between(first, second, metric)
    emit(asdict(found), _agreement(found))


def _agreement(found: Agreement) -> str:
    """Format the routes' scores by both kinds of question, and the correlation of the two orders."""
    order = sorted(range(len(found.routes)), key=lambda at: -found.real[at])
    ranks = sorted(range(len(found.routes)), key=lambda at: -found.generated[at])
    rows = [
        (found.routes[at], f"{found.real[at]:.3f}", place, f"{found.generated[at]:.3f}", ranks.index(at) + 1)
        for place, at in enumerate(order, 1)
    ]
    first, second = found.questions
    heads = ("route", f"{found.metric}, {first} real", "rank", f"{second} generated", "rank")
    return say("commands.agreement", found, table(heads, rows))


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
