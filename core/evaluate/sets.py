"""Finds the labelled set a name or path means, and ties it to its corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import BadInput
from core.evaluate import dataset
from core.evaluate.dataset import LabelledSet
from core.evaluate.files import read_qrels
from core.evaluate.labels import place, with_judgements
from core.settings import PROJECT

if TYPE_CHECKING:
    from core.corpus.index import Corpus

BUILT_IN = {"support": "support/questions/*.jsonl", "pydocs": "pydocs/questions.jsonl"}
NO_QUESTIONS = (
    "no questions: give a BEIR folder (corpus.jsonl, queries.jsonl, qrels/test.tsv), one of "
    f"{', '.join(BUILT_IN)}, or the name of a corpus with --questions FILE"
)


@dataclass(frozen=True, slots=True)
class Source:
    """Where questions and judgements come from; `qrels`, if given, in place of the questions' own labels."""

    beir: Path | None = None
    questions: tuple[Path, ...] = ()
    qrels: Path | None = None


def find(
    corpus: str, folder: Path | None, *, questions: Sequence[Path] = (), qrels: Path | None = None
) -> Source:
    """The questions of `corpus`, whose documents are in `folder`: those given, built-in ones, or BEIR's."""
    if questions:
        return Source(questions=tuple(questions), qrels=qrels)
    if qrels is not None:
        raise BadInput(f"--qrels {qrels} needs --questions FILE with the questions that it judges")
    if corpus in BUILT_IN:
        files = tuple(sorted((PROJECT / "data").glob(BUILT_IN[corpus])))
        if not files:
            raise BadInput(f"no questions: looked for {PROJECT / 'data' / BUILT_IN[corpus]}")
        return Source(questions=files)
    if folder is not None and folder.is_dir() and (folder / "queries.jsonl").is_file():
        return Source(beir=folder)
    raise BadInput(f"{folder or corpus}: {NO_QUESTIONS}")


def load(
    source: Source, corpus: Corpus, *, split: str, mode: str | None = None
) -> tuple[LabelledSet, list[str]]:
    """The labelled set with its judgements as passages of `corpus`, and what is to be said about it."""
    if source.beir is not None:
        labelled, unknown = with_judgements(dataset.beir(source.beir, split=split), corpus)
    else:
        written = dataset.written(source.questions, name=corpus.name, split=split)
        if source.qrels is None:
            return place(written, corpus).of_mode(mode), []
        judged = LabelledSet(written.name, written.questions, read_qrels(source.qrels))
        labelled, unknown = with_judgements(judged, corpus)
    example = (
        f"{len(unknown)} judged ids are not in corpus {corpus.name}, for example {min(unknown, default='')!r}"
    )
    return labelled.of_mode(mode), [example] if unknown else []
