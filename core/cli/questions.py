"""`questions`: generates labelled questions with a model, for review by people."""

from __future__ import annotations

import getpass
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.cli.commands import command, json_asked
from core.cli.common import attributes, emit, listed, note, warn, working
from core.cli.text import table
from core.domain.errors import BadInput
from core.domain.program import COMMAND
from core.domain.text import one_line
from core.evaluation.spec import option

if TYPE_CHECKING:
    from core.evaluation.questions.agreement import Agreement
    from core.evaluation.questions.generate import Generated


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
        None,
        "Kinds of question: plain, vocabulary_mismatch, comparison, "
        "exact_identifier, no_answer. Default: all, in turn.",
        "A,B",
    ),
    seed: int = option(0, "Seed of the passages drawn.", least=None),
) -> int:
    """Write N questions about CORPUS with the language model, each with its label and its checks.

    Passages are drawn evenly over documents. A question is kept if the model's P(yes) that its passage
    answers it is high enough, if some route finds the passage, and if no other question is the same. One
    that every cheap route answers at rank 1 is marked easy. A stopped command goes on where it was.
    """
    from core.cli.corpora import indexed
    from core.domain import settings
    from core.engine.engine import shared_engine
    from core.evaluation.questions.generate import KINDS, generate

    wanted = listed(kinds) or KINDS
    if out.suffix != ".jsonl":
        raise BadInput(f"--out {out}: give a name that ends in .jsonl")
    name = indexed(corpus, settings.current())
    with working("questions") as (bar, cancel):
        found = generate(
            shared_engine(),
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
    emit(document, lambda: _text(found, document))
    if found.ended == "stopped by the user":
        return 130
    return 0 if len(found.lines) >= count else 1


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
    from core.evaluation.questions import question_file
    from core.evaluation.questions.question_file import decide_all, review

    if not file.is_file():
        raise BadInput(
            f"{file} is not there; make it with: {COMMAND} questions generate CORPUS --count N --out {file}"
        )
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
    emit(document, lambda: ", ".join(f"{count} {name}" for name, count in counted.items()))


@command("agreement", questions_)
def agreement_(
    real: str, generated: str, metric: str = option("ndcg@10", "Metric that orders the routes.")
) -> None:
    """Show whether generated questions order routes as real ones do: Kendall's tau and what it can reach.

    REAL and GENERATED are two evaluations of the same routes: names of saved ones, or folders of `eval
    --out`.
    """
    from core.domain import settings
    from core.evaluation.questions.agreement import between, opened

    found = between(opened(settings.current(), real), opened(settings.current(), generated), metric)
    emit(asdict(found), lambda: _agreement(found))


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
    parts = [
        f"Kendall's tau {found.tau:.2f}, 95% interval {found.ci95[0]:.2f} to {found.ci95[1]:.2f}; 1 is the"
        " same order, 0 none.",
        f"{'The sets disagree' if found.disagree else 'No disagreement shown'}: random re-splits of the same"
        f" questions reach {found.ceiling[1]:.2f} (median), and {found.ceiling[0]:.2f} or more in 95% of"
        " splits.",
        f"Without easy questions: {found.without_easy:.2f}." if found.without_easy is not None else "",
        *(f"By {kind} alone ({n} questions): {tau:.2f}." for kind, (tau, n) in (found.kinds or {}).items()),
        f"Generated questions put {found.best[1]} first, real ones {found.best[0]}: shipping the former loses"
        f" {found.best_lost:.3f} {found.metric}.",
    ]
    return "\n".join([table(heads, rows, right=(1, 2, 3, 4)), "", *filter(None, parts)])


def _text(found: Generated, document: dict[str, Any]) -> str:
    corpus, out = document["corpus"], document["file"]
    easy = f"{document['easy']} of them easy (rank 1 in every cheap route)"
    parts = [
        f"{len(found.lines)} questions in {out}, {easy}",
        ", ".join(f"{count} {kind}" for kind, count in document["kinds"].items()),
    ]
    if found.calls:
        parts.append(f"{found.calls} calls of the model, {found.per_question or 0:.1f} s per question")
    if found.dropped:
        rows: Sequence[tuple[object, ...]] = [(one_line(why), n) for why, n in found.dropped.most_common()]
        parts += ["", table(("dropped, as", "questions"), rows, right=(1,))]
    parts += [
        "",
        f"Review them: {COMMAND} questions review {out}",
        f"Measure routes on them: {COMMAND} eval {corpus} --questions {out}",
    ]
    return "\n".join(parts)
