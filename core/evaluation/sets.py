"""Finds the labelled set a name or path means, and ties it to its corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.corpus import variants
from core.corpus.table_files import QUESTIONS, databases
from core.domain.errors import BadInput
from core.domain.settings import PROJECT
from core.evaluation import dataset
from core.evaluation.dataset import Found, LabelledSet, Written
from core.evaluation.execution import with_tables
from core.evaluation.files import read_qrels
from core.evaluation.labels_file import Documents, place, with_judgements

BUILT_IN = {"support": "support/questions/*.jsonl", "pydocs": "pydocs/questions.jsonl"}


def read(
    corpus: str, folder: Path | None, *, split: str, questions: Sequence[Path] = (), qrels: Path | None = None
) -> Found:
    """The questions of `corpus`, whose documents are in `folder`: those given, built-in ones, BEIR's,
    or those beside a database.

    With `qrels` the judgements are those of that file, in place of what the questions say. Reads no index, so
    that a broken file is told before an index is built for it.
    """
    corpus = variants.base_of(corpus)  # the questions of a source are those of all its chunkings
    if not questions and corpus in BUILT_IN:
        questions = sorted((PROJECT / "data").glob(BUILT_IN[corpus]))
        if not questions:
            raise BadInput(f"no questions: looked for {PROJECT / 'data' / BUILT_IN[corpus]}")
    if qrels is not None and not questions:
        raise BadInput(f"--qrels {qrels} needs --questions FILE with the questions that it judges")
    if questions:
        found = dataset.written(questions, name=corpus, split=split)
        return LabelledSet(found.name, found.questions, read_qrels(qrels)) if qrels else found
    if folder is not None and folder.is_dir() and (folder / "queries.jsonl").is_file():
        return dataset.beir(folder, split=split)
    if folder is not None and folder.is_dir() and (folder / QUESTIONS).is_file() and databases(folder):
        return with_tables(dataset.written([folder / QUESTIONS], name=corpus, split=split), folder)
    raise BadInput(
        f"{folder or corpus}: no questions; give a BEIR folder (corpus.jsonl, queries.jsonl, qrels/test.tsv),"
        f" a folder with a database and {QUESTIONS},"
        f" {' or '.join(BUILT_IN)}, or a corpus with --questions FILE"
    )


def tie(found: Found, corpus: Documents) -> tuple[LabelledSet, list[str]]:
    """`found` with its judgements as passages of `corpus`, and what is to be said about it.

    Questions with labels of their own are graded 0-3 and count as found from grade 2, others from grade 1.
    """
    if isinstance(found, Written):
        return place(found, corpus), []
    labelled, unknown = with_judgements(found, corpus)
    said = (
        f"{len(unknown)} judged ids are not in corpus {corpus.name}, for example {min(unknown, default='')!r}"
    )
    return labelled, [said] if unknown else []
