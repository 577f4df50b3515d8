"""Finds the labelled set a name or path means, and ties it to its corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from core.corpus.corpus import Corpus
from core.corpus.source import base_of
from core.corpus.table_files import QUESTIONS, databases
from core.domain.errors import BadInput
from core.domain.hub import parts_of
from core.domain.settings import PROJECT
from core.evaluation import dataset
from core.evaluation import question_folder as files
from core.evaluation.answers import with_tables
from core.evaluation.counting import Place
from core.evaluation.dataset import Found, LabelledSet, Written
from core.evaluation.labels_file import losses, notes, place, resolved, with_judgements
from core.evaluation.spec import Spec

BUILT_IN = {"support": "support/questions/*.jsonl", "pydocs": "pydocs/questions.jsonl"}


def read(
    corpus: str,
    folder: Path | None,
    *,
    split: str,
    questions: Sequence[Path] = (),
    qrels: Path | None = None,
    columns: Mapping[str, str] | None = None,
) -> Found:
    """Return the questions of `corpus`, whose documents are in `folder`: those given, built-in ones, BEIR's,
    or those next to a database. With `qrels` the judgements are read from that file instead of the questions;
    `columns` names the columns of the questions by field. Reads no index, so that a broken file is reported
    before an index is built for it.
    """
    corpus = base_of(corpus)  # the questions of a source are those of all its chunkings
    if not questions and corpus in BUILT_IN:
        questions = sorted((PROJECT / "data").glob(BUILT_IN[corpus]))
        if not questions:
            raise BadInput(f"no questions: looked for {PROJECT / 'data' / BUILT_IN[corpus]}")
    if qrels is not None and not questions:
        raise BadInput(f"--qrels {qrels} needs --questions FILE with the questions that it judges")
    if columns and not questions:
        raise BadInput("--columns needs --questions FILE whose columns it names")
    in_hub = folder is not None and folder.is_dir() and not (folder / "queries.jsonl").is_file()
    if not questions and folder is not None and in_hub and parts_of(folder):
        questions = [folder]
    if questions:
        found = dataset.written(questions, name=corpus, split=split, columns=columns)
        judged: files.Qrels = {}
        conflicts: files.Conflicts = {}
        warnings = []
        if qrels:
            judged, conflicts = files.read_qrels(qrels)
            every = dataset.written(questions, name=corpus, split="all", columns=columns)
            warnings = files.unknown_said(judged, {question.id for question in every.questions})
        for path in questions if not qrels else ():
            conflicts |= files.merge(judged, files.judgements(path, split))
        if not judged:
            return found
        reading = [f"Read as {found.format}: {len(found.questions):,} questions"] if found.format else []
        said = ((*reading, *found.remarks), (*warnings, *files.conflicts_said(conflicts)))
        return LabelledSet(found.name, found.questions, judged, reading=said[0], warnings=said[1])
    if folder is not None and folder.is_dir() and (folder / "queries.jsonl").is_file():
        return dataset.beir(folder, split=split)
    if folder is not None and folder.is_dir() and (folder / QUESTIONS).is_file() and databases(folder):
        return with_tables(dataset.written([folder / QUESTIONS], name=corpus, split=split), folder)
    kinds = f"a folder with a database and {QUESTIONS}, {' or '.join(BUILT_IN)}, or --questions FILE"
    raise BadInput(f"{folder or corpus}: no questions; give a BEIR folder, {kinds}")


def of_spec(spec: Spec, folder: Path | None) -> Found:
    """As `read`, of the questions that an evaluation names. Raises BadInput if none is of its mode, too."""
    found = read(
        spec.corpus,
        folder,
        split=spec.split,
        questions=[Path(one) for one in spec.questions],
        qrels=Path(spec.qrels) if spec.qrels else None,
        columns=spec.columns,
    )
    if spec.mode:
        dataset.of_mode(found, spec.mode)
    return found


def tie(found: Found, corpus: Corpus) -> tuple[LabelledSet, list[str]]:
    """`found` with its judgements as passages of `corpus`, and remarks on it.

    Questions with labels of their own are graded 0-3 and count as found from grade 2, others from grade 1.
    """
    if isinstance(found, Written):
        if not found.format and not found.remarks:
            return place(found, corpus), [*found.warnings, *notes(list(losses(found, corpus)))]
        written, unmatched, reading = resolved(found, corpus)
        labelled = place(written, corpus)
        qrels, places = dict(labelled.qrels), dict(labelled.places)
        files.merge(qrels, unmatched)
        for question, grades in unmatched.items():
            missing = (Place(id, grade, id, 0, 0, (id,)) for id, grade in grades.items())
            places[question] = (*places.get(question, ()), *missing)
        lost = [*found.warnings, *notes(list(losses(written, corpus)))]
        return replace(labelled, qrels=qrels, places=places, reading=reading), lost
    labelled, unknown = with_judgements(found, corpus)
    said = list(found.warnings)
    if unknown:
        said.append(f"{len(unknown)} judged ids are not in corpus {corpus.name}, such as {min(unknown)!r}")
    own = corpus.by_ids([question.id for question in labelled.questions]) if labelled.drop_self else {}
    if own := {id: one for id, one in own.items() if id not in labelled.qrels.get(id, {})}:
        some = f"{len(own)} question ids are also ids of passages, for example {next(iter(own))!r}"
        said.append(f"{some}: by BEIR's rule such a passage is no result of its own question")
    return labelled, said
