"""Labels as TREC judgements and as CSV, out and in; what is broken is named by file and line."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from reprlib import repr as short
from typing import Any, cast
from urllib.parse import quote, unquote

from pydantic import TypeAdapter

from core.corpus.corpus import Corpus
from core.domain import people, program
from core.domain import settings as settings_module
from core.domain.errors import BadInput, Unavailable
from core.domain.relevance import NuggetSupport
from core.domain.text import composed
from core.domain.types import Passage
from core.evaluation import sets
from core.evaluation.dataset import Nugget, Question, Written
from core.evaluation.labels import desk as desks
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.final import final
from core.evaluation.labels.nuggets import LONGEST_NUGGET
from core.evaluation.question_folder import whole_grade
from core.evaluation.stored import checked
from core.store import Store
from core.store.codec import to_bytes
from core.store.labels import GRADES, PREFERENCES, Judgement, LabelStore, Pair, Pooled
from core.store.run_annotations import MAX_NOTE

_SUPPORT = TypeAdapter(dict[str, dict[str, NuggetSupport]])
IMPORTER = "import"  # whose rows are imported on the command line of a server where people have accounts


@dataclass(frozen=True, slots=True)
class Imported:
    """Judgements that were added, those that stood already, and passages that were not in the pool."""

    added: int
    known: int
    passages: int
    left_out: tuple[str, ...] = ()  # what could not be added, in sentences


def qrels(desk: Desk, annotator: str | None = None) -> bytes:
    """TREC judgements (question 0 passage grade): the grades that count, or those of one annotator. Raises
    BadInput for an annotator who judged nothing.

    White space in ids, which separates columns there, is percent-encoded, and so is the percent sign.
    """
    people.require("export")
    people.record("labels exported", desk.set.name)
    known = (*desk.annotators(), *desk.models())
    if annotator is not None and annotator not in known:
        raise BadInput(
            f"label set {short(desk.set.name)} has no annotator {short(annotator)}; "
            f"there are: {', '.join(known) or 'none'}"
        )
    grades: Mapping[Pair, int | None] = {pair: one.grade for pair, one in final(desk).items()}
    if annotator is not None:
        grades = desk.grades(annotator)
    lines = (
        f"{word(question)} 0 {word(passage)} {grade}\n"
        for question, passage in desk.pairs
        if (grade := grades.get((question, passage))) is not None
    )
    return to_bytes("".join(lines))


def table(desk: Desk, *, unjudged: bool = False) -> bytes:
    """CSV with a line for each judgement that stands, and with `unjudged` one for each passage without any.
    Then come the nuggets, of the kinds "vital" and "okay" and from a person if one checked them; the note
    has what people assigned, as JSON.

    A cell that a spreadsheet would take for a formula begins with an apostrophe, which `import_table` takes
    off again.
    """
    people.require("export")
    people.record("labels exported", desk.set.name)
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    judged: dict[Pair, list[Judgement]] = {}
    for one in desk.current:
        judged.setdefault(one.pair, []).append(one)
    for question, id in desk.pairs:
        p, text = desk.pool[question][id].passage, desk.asked[question].query.text
        of = (question, text, id, p.doc_id, p.title, p.text, str(p.start), str(p.end))
        said: list[tuple[str, ...]] = [
            (j.annotator, j.source, j.kind, "" if j.grade is None else str(j.grade), j.note, j.created)
            for j in judged.get((question, id), ())
        ]
        for cells in said or ([("",) * len(_OF_JUDGEMENT)] if unjudged else []):
            writer.writerow(map(shielded, (*of, *cells)))
    for nuggeted, nugget in ((asked, nugget) for asked in desk.questions for nugget in asked.nuggets):
        about = (nuggeted.id, nuggeted.query.text, "", "", "", nugget.text, "", "")
        source, kind = "person" if nugget.checked else "model", "vital" if nugget.vital else "okay"
        support = json.dumps(nugget.support)
        writer.writerow(map(shielded, (*about, nugget.by, source, kind, "", support, "")))
    for one in desk.held:
        if one.kind in PREFERENCES:
            compared = (one.question, desk.asked[one.question].query.text, one.passage, *[""] * 5)
            told = (one.annotator, one.source, one.kind, "", one.note, one.created)
            writer.writerow(map(shielded, (*compared, *told)))
    return to_bytes(out.getvalue())


def hub(desk: Desk, corpus: Corpus, folder: Path) -> int:
    """Write a set with the passages of its corpus to a new folder, as Hugging Face's datasets, MTEB and BEIR
    read it; return the number of judgements. Raises BadInput if the folder exists, an id has white space, or
    nothing is graded; Unavailable if it cannot be written.
    """
    people.require("export")
    people.record("labels exported", desk.set.name)
    grades = {pair: one.grade for pair, one in final(desk).items() if one.grade is not None}
    if not grades:
        raise BadInput(f"label set {short(desk.set.name)} has no grades to export")
    if strange := [id for pair in grades for id in pair if id != "".join(id.split())]:
        raise BadInput(f"{short(strange[0])} has white space, which separates columns of the judgements")
    if folder.exists():
        raise BadInput(f"{folder} already exists; use another folder")
    judged = {id: desk.pool[question][id].passage for question, id in grades}
    indexed = (passage for _, passage, _ in corpus.everything())
    passages = chain((one for one in indexed if judged.pop(one.id, one)), _rest(judged))
    questions = (
        {"_id": id, "text": one.query.text, "metadata": _asked(one)} for id, one in desk.asked.items()
    )
    header = program.table(__file__)["readme"].format(relevant=desk.set.relevant_from)
    try:
        (folder / "qrels").mkdir(parents=True)
        (folder / "README.md").write_text(header, encoding="utf-8")
        _lines(folder / "corpus.jsonl", map(_stored, passages))
        _lines(folder / "queries.jsonl", questions)
        with (folder / "qrels" / "test.tsv").open("w", encoding="utf-8", newline="\n") as file:
            file.write("query-id\tcorpus-id\tscore\n")
            file.writelines(f"{question}\t{id}\t{grade}\n" for (question, id), grade in grades.items())
    except OSError as error:
        raise Unavailable(f"{folder} cannot be written: {error.strerror or error}") from None
    return len(grades)


def _rest(judged: Mapping[str, Passage]) -> Iterator[Passage]:
    """Yield the judged passages that the corpus does not have, once it has been read."""
    yield from judged.values()


def _stored(one: Passage) -> dict[str, Any]:
    about = {"doc_id": one.doc_id, "start": one.start, "end": one.end}
    return {"_id": one.id, "title": one.title, "text": one.text, "metadata": about}


def _asked(one: Question) -> dict[str, Any]:
    turns = [{"role": turn.role, "text": turn.text} for turn in one.query.history]
    facts = [{"text": fact.text, "vital": fact.vital} for fact in one.checked_nuggets]
    return {name: value for name, value in (("history", turns), ("nuggets", facts)) if value}


def _lines(file: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in entries)


class _Import:
    """The judgements and new passages of a file on their way into a set, to be added all or none."""

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.desk = store, desks.load(store, name)
        self.said: dict[tuple[Pair, str, bool], Judgement] = {}
        self.found: dict[str, list[Pooled]] = {}
        self.nuggets: dict[str, dict[str, Nugget]] = {}

    def question(self, id: str, where: str) -> str:
        """Return the id of a question as the set has it: composed if only that is there."""
        id = _same(id, self.desk.asked)
        if id not in self.desk.asked:
            raise BadInput(f"{where}: label set {short(self.desk.set.name)} has no question {short(id)}")
        return id

    def bring(self, question: str, passage: Passage) -> None:
        """Add a passage to the pool."""
        self.found.setdefault(question, []).append(Pooled(passage))

    def nugget(self, question: str, row: Mapping[str, str], where: str) -> None:
        """Add a nugget. Raises BadInput if it is not allowed. With accounts it is the importer's, and what
        others assigned is left out.
        """
        text, who = " ".join(row["text"].split()), _importer()
        try:
            support = {} if who else checked(_SUPPORT, json.loads(row["note"] or "{}"))
        except ValueError as error:
            raise BadInput(f"{where}: {error}") from None
        if not 0 < len(text) <= LONGEST_NUGGET:
            raise BadInput(f"{where}: a nugget has 1 to {LONGEST_NUGGET} characters")
        vital, done = row["kind"].strip() == "vital", row["source"].strip() == "person"
        one = Nugget(text, vital, desks.clean_name(who or row["annotator"], "annotator"), done, support)
        self.nuggets.setdefault(question, {})[text] = one

    def judge(self, one: Judgement, where: str) -> None:
        """Add a judgement. BadInput if it is not allowed, or contradicts one of a line above."""
        try:
            one = desks.clean(one)
        except BadInput as error:
            raise BadInput(f"{where}: {error}") from None
        if _content(self.said.setdefault(_key(one), one)) != _content(one):
            raise BadInput(
                f"{where}: {short(one.annotator)} judged passage {short(one.passage)} in a line above"
            )

    def add(self, left_out: Iterable[str] = ()) -> Imported:
        """Add the passages, then the new judgements, in one transaction. If people have accounts, every
        judgement is credited to the importer, regardless of the name in the file.
        """
        people.require("edit")
        name, said, content = self.desk.set.name, [*self.said.values()], _content
        if importer := _importer():
            said, content = _claimed(said, importer), lambda one: (one.kind, one.grade)

        def work(labels: LabelStore) -> Imported:
            before = {_key(one): content(one) for one in desks.read(labels, name).held}
            fresh = [one for one in said if before.get(_key(one)) != content(one)]
            for id, mine in self.nuggets.items():
                known = desks.stored_question(id, dict(labels.questions(name))[id])
                both = {one.text: one for one in known.nuggets} | mine
                labels.keep_question(name, desks.document(replace(known, nuggets=tuple(both.values()))))
            passages = labels.add_to_pool(name, self.found)
            labels.judge(name, fresh)
            return Imported(len(fresh), len(said) - len(fresh), passages, tuple(left_out))

        return self.store.change_labels(work, deed=("labels imported", name))


def import_qrels(
    store: Store, name: str, content: bytes, file: str, annotator: str, corpus: Corpus
) -> Imported:
    """Add TREC judgements (or BEIR's three columns with a header) to a set as those of `annotator`, all or
    none. A passage that is not in the pool is taken from `corpus`, and so is a document, to be counted once.

    BadInput names file and line of what is broken, unknown, or graded twice with different grades.
    """
    made = _Import(store, name)
    questions = _words(made.desk.asked)
    pooled = {id: _words(found) for id, found in made.desk.pool.items()}
    for where, asked, passage, grade in graded_lines(decoded(content, file), file):
        question = questions.get(asked) or made.question(asked, where)
        id = pooled[question].get(passage, pooled[question].get(composed(passage)))
        if id is None:
            new = _passage(corpus, passage, where)
            id = pooled[question][passage] = new.id
            made.bring(question, new)
        made.judge(Judgement(question, id, annotator, "import", "grade", grade), where)
    if not made.said:
        raise BadInput(f"{file} contains no judgements")
    return made.add()


def import_table(
    store: Store, name: str, content: bytes, file: str, annotator: str | None = None
) -> Imported:
    """Add the judgements of a CSV file as `table` writes it to a set, all or none. Lines without an annotator
    are those of `annotator`, lines without kind and grade only bring a passage; without a source they are
    imported ones.

    BadInput names file and line of what is broken or unknown.
    """
    made = _Import(store, name)
    for where, row in table_lines(decoded(content, file), file):
        question = made.question(row["question_id"], where)
        if (kind := row["kind"].strip()) in ("vital", "okay"):
            made.nugget(question, row, where)
            continue
        pool = made.desk.pool[question]
        id = _same(row["passage_id"], pool)
        if id not in pool and kind not in PREFERENCES:
            made.bring(question, _passage_of(row, where))
        kind = kind or ("grade" if row["grade"].strip() else "")
        if not kind:
            continue
        if kind == "withdrawn":
            raise BadInput(f"{where}: kind 'withdrawn'; give grade, cannot or later")
        who = row["annotator"].strip() or annotator
        if not who:
            raise BadInput(f"{where}: no annotator; give the annotator of these judgements")
        source: Any = row["source"].strip() or "import"
        grade, when = read_grade(row["grade"], where), moment(row["created"].strip(), where)
        judgement = Judgement(question, id, who, source, cast(Any, kind), grade, row["note"], created=when)
        made.judge(judgement, where)
    return made.add()


def import_questions(store: Store, name: str, written: Written, annotator: str, corpus: Corpus) -> Imported:
    """Add the labels of a question file to the questions of a set with the same id or text, as judgements of
    `annotator`, all or none. Labels and questions that the corpus or the set do not have are counted.

    Raises BadInput if nothing can be added.
    """
    made = _Import(store, name)
    desk = made.desk
    known = {_spoken(one.query.text): id for id, one in desk.asked.items()} | {id: id for id in desk.asked}
    labelled, _ = sets.tie(written, corpus)
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
                made.bring(question, passage)
            grade = min(grades[id], max(GRADES))
            made.judge(Judgement(question, id, annotator, "import", "grade", grade), asked.id)
    left = [f"{lost} labels match nothing in corpus {corpus.name}"] if lost else []
    if strangers:
        left.append(f"{len(strangers)} questions are not in the set, for example {short(strangers[0])}")
    if not made.said:
        raise BadInput(f"{written.name}: no label to add; {'; '.join(left) or 'it has no labels'}")
    return made.add(left)


def _spoken(text: str) -> str:
    return " ".join(text.split()).casefold()


def _importer() -> str:
    """Return whom an import is credited to if people have accounts, else ""."""
    account, now = people.current().account, settings_module.current()
    return account or (IMPORTER if now.login or now.team.roles else "")


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
        claims = []
        for one in ones:
            if (one.annotator, one.source) != (importer, "import"):
                grade = one.kind if one.grade is None else f"grade {one.grade}"
                when, note = one.created and f", {one.created}", one.note and f", {one.note}"
                claims.append(f"annotator {one.annotator} ({one.source}{when}): {grade}{note}")
        text = "; ".join(claims) or stands.note
        made.append(replace(stands, annotator=importer, source="import", created="", note=text[:MAX_NOTE]))
    return made


def _key(one: Judgement) -> tuple[Pair, str, bool]:
    return one.pair, one.annotator, one.source == "adjudication"


def _content(one: Judgement) -> tuple[object, ...]:
    return one.source, one.kind, one.grade, one.note


def _words(ids: Iterable[str]) -> dict[str, str]:
    """Map each id as `qrels` writes it, and each id itself, to the id. A written form takes precedence."""
    known = list(ids)
    return {id: id for id in known} | {word(id): id for id in known}


def _same(id: str, known: Container[str]) -> str:
    """Return the id as it is known: composed if only that is."""
    return composed(id) if id not in known and composed(id) in known else id


def _passage(corpus: Corpus, id: str, where: str) -> Passage:
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
    start, end = (whole(row[column], column, where) for column in ("start", "end"))
    return Passage(row["passage_id"], row["doc_id"], row["title"], row["text"], start, end)


_OF_PASSAGE = ("question_id", "question", "passage_id", "doc_id", "title", "text", "start", "end")
_OF_JUDGEMENT = ("annotator", "source", "kind", "grade", "note", "created")
COLUMNS = (*_OF_PASSAGE, *_OF_JUDGEMENT)
LARGEST = 2**31 - 1  # characters of a CSV cell
_NEEDED = ("question_id", "passage_id")
_HEADS = ("score", "relevance", "rel", "grade")  # last columns of the first line of judgements with a header
# what a spreadsheet may run; behind an apostrophe it is text
_FORMULA = re.compile(r"'*[\s\x00-\x1f\ufeff]*[=+\-@＝＋－＠]")


def word(text: str) -> str:
    """Return `text` as one word: white space and the percent sign as percent-encoded UTF-8."""
    return "".join(quote(char, safe="") if char.isspace() or char in "%\ufeff" else char for char in text)


def shielded(cell: str) -> str:
    """`cell` as a spreadsheet takes it for text and not for a formula; `bare` is the opposite."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def bare(cell: str) -> str:
    """Undo `shielded`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def decoded(content: bytes, file: str) -> str:
    """Return a file's text. Raises BadInput if it is not UTF-8."""
    try:
        return content.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: not UTF-8 text (byte {error.start})") from None


def graded_lines(text: str, file: str) -> Iterator[tuple[str, str, str, int]]:
    """Yield (where, question, passage, grade) of each line of TREC or BEIR judgements."""
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{file} line {number}"
        parts = [part.strip() for part in line.split("\t")] if "\t" in line else line.split()
        if not line.strip() or (number == 1 and parts[-1] in _HEADS):
            continue
        if len(parts) not in (3, 4):
            raise BadInput(f"{where}: expected question, 0, passage, grade; got {short(line)}")
        given = read_grade(parts[-1], where)
        if given is None:
            raise BadInput(f"{where}: no grade; give {_allowed()}")
        yield where, parts[0], parts[-2], given


def table_lines(text: str, file: str) -> Iterator[tuple[str, dict[str, str]]]:
    """(where, cells by column) of each line of a CSV file, as they were before they were shielded."""
    csv.field_size_limit(min(LARGEST, sys.maxsize))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [cell.strip() for cell in next(reader, [])]
        if lacking := [column for column in _NEEDED if column not in head]:
            raise BadInput(f"{file} line 1: no column {lacking[0]!r}; it has: {', '.join(head) or 'none'}")
        line = reader.line_num
        for row in reader:
            where, line = f"{file} line {line + 1}", reader.line_num
            if not row:
                continue
            if len(row) != len(head):
                raise BadInput(f"{where}: {len(row)} cells where the first line has {len(head)}")
            named = dict(zip(head, map(bare, row), strict=True))
            yield where, {column: named.get(column, "") for column in COLUMNS}
    except csv.Error as error:
        raise BadInput(f"{file} line {reader.line_num}: not CSV: {error}") from None


def is_own(content: bytes) -> bool:
    """Return whether a CSV file has the columns of `labels export`, or lacks the columns of other tools'
    question files.
    """
    head = content[:10_000].decode("utf-8", "replace").removeprefix("\ufeff").split("\n", 1)[0]
    cells = {cell.strip().strip('"').lower() for cell in re.split("[,;\t]", head)}
    asked = {"query", "question", "user_input", "input", "query text"}
    return bool(cells & {*_NEEDED, "annotator"}) or not cells & asked


def whole(cell: str, column: str, where: str) -> int:
    """Return a number of 0 or more, 0 for an empty cell."""
    if not re.fullmatch(r"[0-9]{0,15}", cell.strip()):
        raise BadInput(f"{where}: {column} {short(cell)}; give a whole number of 0 or more")
    return int(cell.strip() or 0)


def read_grade(cell: str, where: str) -> int | None:
    """Return a grade, or None for an empty cell."""
    said = cell.strip()
    if not said:
        return None
    if (found := whole_grade(said)) not in GRADES:
        raise BadInput(f"{where}: grade {short(said)}; give {_allowed()}")
    return found


def moment(cell: str, where: str) -> str:
    """Return a time in ISO 8601, or "" for an empty cell."""
    try:
        return cell and datetime.fromisoformat(cell).isoformat(timespec="milliseconds")
    except ValueError:
        raise BadInput(f"{where}: created {short(cell)}; give a time as 2026-01-31T12:00:00+00:00") from None


def _allowed() -> str:
    return ", ".join(map(str, sorted(GRADES)))
