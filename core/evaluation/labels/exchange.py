"""Labels as TREC judgements and as CSV, out and in; what is broken is named by file and line."""

from __future__ import annotations

import csv
import io
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as short
from typing import Any
from urllib.parse import unquote

from core.corpus.corpus import Corpus
from core.domain import people
from core.domain import settings as settings_module
from core.domain.errors import BadInput
from core.domain.text import composed
from core.domain.types import Passage
from core.evaluation import sets
from core.evaluation.dataset import Written
from core.evaluation.labels import csv_format, rows
from core.evaluation.labels import desk as desks
from core.evaluation.labels.final import final
from core.evaluation.labels.types import Desk
from core.evaluation.labels_file import Documents
from core.store import Store
from core.store.codec import to_bytes
from core.store.labels import GRADES, Judgement, LabelStore, Pair, Pooled
from core.store.run_annotations import MAX_NOTE

IMPORTER = "import"  # whose rows are imported on the command line of a server where people have accounts


@dataclass(frozen=True, slots=True)
class Imported:
    """Judgements that were added, those that stood already, and passages that were not in the pool."""

    added: int
    known: int
    passages: int
    left_out: tuple[str, ...] = ()  # what could not be added, in sentences


def qrels(desk: Desk, annotator: str | None = None) -> bytes:
    """TREC judgements (question 0 passage grade): the grades that count, or those of one annotator.

    White space in ids, which separates columns there, is percent-encoded, and so is the percent sign.
    """
    people.require("export")
    people.record("labels exported", desk.set.name)
    if annotator is None:
        grades = {pair: one.grade for pair, one in final(desk).items()}
    else:
        check_annotator(desk, annotator)
        grades = {pair: one.grade for pair, one in desk.by(annotator).items()}
    lines = (
        f"{csv_format.word(question.id)} 0 {csv_format.word(passage)} {grade}\n"
        for question in desk.questions
        for passage in desk.pool.get(question.id, {})
        if (grade := grades.get((question.id, passage))) is not None
    )
    return to_bytes("".join(lines))


def table(desk: Desk, *, unjudged: bool = False) -> bytes:
    """CSV with a line for each judgement that stands, and with `unjudged` one for each passage without any.

    A cell that a spreadsheet would take for a formula begins with an apostrophe, which `import_table` takes
    off again.
    """
    people.require("export")
    people.record("labels exported", desk.set.name)
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(csv_format.COLUMNS)
    judged: dict[Pair, list[Judgement]] = {}
    for one in desk.current():
        judged.setdefault(one.pair, []).append(one)
    for question in desk.questions:
        for id, pooled in desk.pool.get(question.id, {}).items():
            p = pooled.passage
            of = (question.id, question.query.text, id, p.doc_id, p.title, p.text, str(p.start), str(p.end))
            for one in judged.get((question.id, id), ()):
                said = (
                    one.annotator,
                    one.source,
                    one.kind,
                    "" if one.grade is None else str(one.grade),
                    one.note,
                    one.created,
                )
                writer.writerow(map(csv_format.shielded, (*of, *said)))
            if unjudged and (question.id, id) not in judged:
                writer.writerow(map(csv_format.shielded, (*of, *[""] * (len(csv_format.COLUMNS) - len(of)))))
    return to_bytes(out.getvalue())


def import_qrels(
    store: Store, name: str, content: bytes, file: str, annotator: str, corpus: Documents
) -> Imported:
    """Add TREC judgements (or BEIR's three columns with a header) to a set as those of `annotator`, all or
    none. A passage that is not in the pool is taken from `corpus`, and so is a document, to be counted once.

    BadInput names file and line of what is broken, unknown, or graded twice with different grades.
    """
    desk = desks.load(store, name)
    questions = _words(desk.asked)
    pooled = {id: _words(found) for id, found in desk.pool.items()}
    said: dict[Pair, Judgement] = {}
    found: dict[str, list[Pooled]] = {}
    for where, asked, passage, grade in csv_format.graded_lines(csv_format.decoded(content, file), file):
        question = questions.get(asked, questions.get(composed(asked)))
        if question is None:
            raise BadInput(f"{where}: label set {short(desk.set.name)} has no question {short(asked)}")
        id = pooled[question].get(passage, pooled[question].get(composed(passage)))
        if id is None:
            new = _passage(corpus, passage, where)
            id = pooled[question][passage] = new.id
            found.setdefault(question, []).append(Pooled(new))
        one = _checked(Judgement(question, id, annotator, "import", "grade", grade), where)
        if said.setdefault(one.pair, one).grade != grade:
            raise BadInput(f"{where}: passage {short(id)} is graded {said[one.pair].grade} in a line above")
    if not said:
        raise BadInput(f"{file} contains no judgements")
    return _add(store, name, list(said.values()), found)


def import_table(
    store: Store, name: str, content: bytes, file: str, annotator: str | None = None
) -> Imported:
    """Add the judgements of a CSV file as `table` writes it to a set, all or none. Lines without an annotator
    are those of `annotator`, lines without kind and grade only bring a passage; without a source they are
    imported ones.

    BadInput names file and line of what is broken or unknown.
    """
    desk = desks.load(store, name)
    said: dict[tuple[Pair, str, bool], Judgement] = {}
    found: dict[str, list[Pooled]] = {}
    for where, row in csv_format.table_lines(csv_format.decoded(content, file), file):
        question = _same(row["question_id"], desk.asked)
        id = _same(row["passage_id"], desk.pool.get(question, ()))
        if question not in desk.asked:
            raise BadInput(f"{where}: label set {short(desk.set.name)} has no question {short(question)}")
        if id not in desk.pool[question]:
            found.setdefault(question, []).append(Pooled(_passage_of(row, where)))
        kind = row["kind"].strip() or ("grade" if row["grade"].strip() else "")
        if not kind:
            continue
        if kind == "withdrawn":
            raise BadInput(f"{where}: kind 'withdrawn'; give grade, cannot or later")
        who = row["annotator"].strip() or annotator
        if not who:
            raise BadInput(f"{where}: no annotator; give the annotator of these judgements")
        one = _checked(
            Judgement(
                question,
                id,
                who,
                row["source"].strip() or "import",  # type: ignore[arg-type]
                kind,  # type: ignore[arg-type]
                csv_format.grade(row["grade"], where),
                row["note"],
                0,
                csv_format.moment(row["created"].strip(), where),
            ),
            where,
        )
        key = one.pair, one.annotator, one.source == "adjudication"
        if _content(said.setdefault(key, one)) != _content(one):
            raise BadInput(f"{where}: {short(one.annotator)} judged passage {short(id)} in a line above")
    return _add(store, name, list(said.values()), found)


def import_questions(store: Store, name: str, written: Written, annotator: str, corpus: Corpus) -> Imported:
    """Add the labels of a question file to the questions of a set with the same id or text, as judgements of
    `annotator`, all or none. Labels and questions that the corpus or the set do not have are counted.

    Raises BadInput if nothing can be added.
    """
    desk = desks.load(store, name)
    known = {_spoken(one.query.text): id for id, one in desk.asked.items()} | {id: id for id in desk.asked}
    labelled, _ = sets.tie(written, corpus)
    said: list[Judgement] = []
    found: dict[str, list[Pooled]] = {}
    strangers: list[str] = []
    lost = 0
    for asked in labelled.questions:
        grades = labelled.qrels.get(asked.id, {})
        question = known.get(asked.id) or known.get(_spoken(asked.query.text))
        if question is None:
            strangers += [asked.query.text] if grades else []
            continue
        passages = corpus.by_ids(list(grades))
        lost += len(grades.keys() - passages.keys())
        for id, passage in passages.items():
            if id not in desk.pool.get(question, {}):
                found.setdefault(question, []).append(Pooled(passage))
            grade = min(grades[id], max(GRADES))
            said.append(_checked(Judgement(question, id, annotator, "import", "grade", grade), asked.id))
    left = [f"{lost} labels match nothing in corpus {corpus.name}"] if lost else []
    if strangers:
        left.append(f"{len(strangers)} questions are not in the set, for example {short(strangers[0])}")
    if not said:
        raise BadInput(f"{written.name}: no label to add; {'; '.join(left) or 'it has no labels'}")
    return replace(_add(store, name, said, found), left_out=tuple(left))


def _spoken(text: str) -> str:
    return " ".join(text.split()).casefold()


def check_annotator(desk: Desk, annotator: str) -> None:
    """Raise BadInput, listing the known annotators, unless the annotator is one of them or a model."""
    known = (*desk.annotators(), *desk.models())
    if annotator not in known:
        raise BadInput(
            f"label set {short(desk.set.name)} has no annotator {short(annotator)}; "
            f"there are: {', '.join(known) or 'none'}"
        )


def _add(
    store: Store, name: str, judgements: Sequence[Judgement], found: Mapping[str, Sequence[Pooled]]
) -> Imported:
    """Add the passages, then the new judgements, in one transaction. If people have accounts, every judgement
    is credited to the importer, regardless of the name in the file.
    """
    who = people.require("edit")
    now = settings_module.current()
    content = _content
    if who.account or now.login or now.team.roles:
        judgements, content = _claimed(judgements, who.account or IMPORTER), _judged

    def work(labels: LabelStore) -> Imported:
        before = {
            (one.pair, one.annotator, one.source == "adjudication"): content(one)
            for one in rows.read(labels, name).current()
        }
        fresh = [
            one
            for one in judgements
            if before.get((one.pair, one.annotator, one.source == "adjudication")) != content(one)
        ]
        passages = labels.add_to_pool(name, found)
        labels.judge(name, fresh)
        return Imported(len(fresh), len(judgements) - len(fresh), passages)

    return store.change_labels(work, deed=("labels imported", name))


def _claimed(judgements: Sequence[Judgement], importer: str) -> list[Judgement]:
    """Return one judgement by `importer` for each pair, with the judgements attributed to others as its note.
    Of several for a pair an adjudication counts, else the last.
    """
    by_pair: dict[Pair, list[Judgement]] = {}
    for one in judgements:
        by_pair.setdefault(one.pair, []).append(one)
    made = []
    for ones in by_pair.values():
        stands = next((one for one in ones if one.source == "adjudication"), ones[-1])
        claims = [_claim(one) for one in ones if (one.annotator, one.source) != (importer, "import")]
        note = "; ".join(claims) if claims else stands.note
        made.append(replace(stands, annotator=importer, source="import", created="", note=note[:MAX_NOTE]))
    return made


def _claim(one: Judgement) -> str:
    grade = one.kind if one.grade is None else f"grade {one.grade}"
    when = f", {one.created}" if one.created else ""
    return f"annotator {one.annotator} ({one.source}{when}): {grade}" + (f", {one.note}" if one.note else "")


def _content(one: Judgement) -> tuple[Any, ...]:
    return one.source, one.kind, one.grade, one.note


def _judged(one: Judgement) -> tuple[Any, ...]:
    return one.kind, one.grade


def _words(ids: Iterable[str]) -> dict[str, str]:
    """Map each id as `qrels` writes it, and each id itself, to the id. A written form takes precedence."""
    known = list(ids)
    return {id: id for id in known} | {csv_format.word(id): id for id in known}


def _same(id: str, known: Container[str]) -> str:
    """Return the id as it is known: composed if only that is."""
    return composed(id) if id not in known and composed(id) in known else id


def _passage(corpus: Documents, id: str, where: str) -> Passage:
    """Return the passage of that id, or the document as one. Raises BadInput if the corpus has neither."""
    names = (id, unquote(id))
    found = corpus.by_ids(names)
    if known := found.get(names[0]) or found.get(names[1]):
        return known
    for name in names:
        try:
            document, passages = corpus.document(name)
        except BadInput:
            continue
        if passages:
            return Passage(document.id, document.id, document.title, document.text, 0, len(document.text))
    raise BadInput(
        f"{where}: {short(id)} is neither in the pool nor a passage or document of corpus {corpus.name}"
    )


def _passage_of(row: Mapping[str, str], where: str) -> Passage:
    """Return the passage that a line brings; it has to bring all of it."""
    if not row["passage_id"] or not row["doc_id"] or not row["text"].strip():
        raise BadInput(
            f"{where}: passage {short(row['passage_id'])} is not in the pool; a line that brings it needs "
            "passage_id, doc_id and text"
        )
    start, end = (csv_format.whole(row[column], column, where) for column in ("start", "end"))
    return Passage(row["passage_id"], row["doc_id"], row["title"], row["text"], start, end)


def _checked(one: Judgement, where: str) -> Judgement:
    try:
        return desks.clean(one)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None
