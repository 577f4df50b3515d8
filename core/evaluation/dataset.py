"""Labelled questions, as their author wrote them and as tied to the passages of a corpus."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, get_args

from pydantic import TypeAdapter

from core.domain.conversation import turns
from core.domain.errors import BadInput
from core.domain.jsonl import objects, parse
from core.domain.ranked import Ranked
from core.domain.relevance import NuggetSupport
from core.domain.types import Query, Turn
from core.evaluation import counting
from core.evaluation.counting import Place
from core.evaluation.outcome import Outcome
from core.evaluation.question_folder import (
    Conflicts,
    Qrels,
    conflicts_said,
    files_of,
    merge,
    read_qrels,
    texts_beside,
    unknown_said,
)
from core.evaluation.question_formats import NAME_THEM, converted
from core.evaluation.question_rows import rows
from core.evaluation.stored import checked

_TURN = re.compile(r"^\|(user|assistant|agent|system)\|:[ \t]*", re.MULTILINE)
_ROLES = {"human": "user", "agent": "assistant", "system": "assistant", "bot": "assistant", "ai": "assistant"}
_UNANSWERABLE = ("no_answer", "outside_knowledge")  # kinds of question that the documents do not answer
UNDECIDED = ("no_retrieval", "structured")  # kinds that documents are not asked for
IDS = ("id", "_id", "qid")
MEANS = {
    "answers": "answer",
    "texts": "relevant text",
    "docs": "relevant document",
    "source": "document",
    "impossible": "not answerable",
}
_NO_GOLD = ("", "NA", "N/A")  # what annotators write who give none
# The kinds of failure that people report.
OF_RANKINGS = ("not found", "ranked too low", "cut by a step", "wrong passage on top")
OF_ANSWERS = ("wrong answer", "should have abstained", "should have answered", "wrong citation")
FAILURES: Mapping[str, str] = {kind: kind.capitalize() for kind in (*OF_RANKINGS, *OF_ANSWERS, "other")}


@dataclass(frozen=True, slots=True)
class Complaint:
    """A complaint about a route's result for a question: `failure` is one of FAILURES, `who` reported it,
    `run` and `route` returned it, `passage` is the id of the missing passage ("": none was named). `created`
    is ISO 8601, UTC.
    """

    who: str
    failure: str
    run: str
    route: str
    passage: str = ""
    note: str = ""
    created: str = ""


State = Literal["proposed", "accepted", "dropped"]
STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True, slots=True)
class Generated:
    """The origin of a question, answer and labels that a model wrote: how they were checked, and how people
    reviewed them. A dropped question is never asked. `by` is the model, `prompt` the name and version of its
    prompt. `made` and `reviewed` are ISO 8601, UTC. `passages` are the ids of its subject passages. `checks`
    are results by name. `first` is the model's text if a person changed it.
    """

    by: str
    prompt: str = ""
    made: str = ""
    passages: tuple[str, ...] = ()
    checks: Mapping[str, Any] = field(default_factory=dict, hash=False)
    state: State = "proposed"
    reviewer: str = ""
    reviewed: str = ""
    first: str = ""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    @classmethod
    def read(cls, document: Any, where: str) -> Generated:
        """Read a dataset from a file or the store. Raises BadInput if it is damaged."""
        try:
            return checked(TypeAdapter(cls), document)
        except ValueError as error:
            raise BadInput(f"{where}: 'generated' is invalid: {error}") from None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question's place in the random order in which a set is labelled (see core.evaluation.labels.draw)."""

    # its chance to be among the first is proportional to this
    size: float
    # the largest is labelled first
    key: float


@dataclass(frozen=True, slots=True)
class Nugget:
    """A short fact of a good answer, after the nuggets of TREC 2025 RAG, arXiv:2603.09891."""

    text: str
    # whether an answer without it is incomplete; otherwise it is okay to have
    vital: bool
    # the person who wrote it or the model that proposed it
    by: str
    # whether a person checked it; others never count
    checked: bool = False
    # digest of an answer -> person or model -> how far the answer contains it
    support: Mapping[str, Mapping[str, NuggetSupport]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Question:
    """One question as asked, with its author's knowledge of it. `answers` are all gold answers, any of which
    is right; `answer` is what the author wrote first, which may be a remark. `answerable`: whether the
    documents answer it, None if that is unknown. `complaints` are people's reports: a question with a
    complaint is a regression test. `generated` is set if a model wrote it, `drawn` if the order of labelling
    is random. `count`: how often it was asked. `nuggets` are the facts of a good answer.
    """

    id: str
    query: Query
    mode: str | None = None
    split: str | None = None
    answer: str | None = None
    sql: str | None = None
    answers: tuple[str, ...] = ()
    answerable: bool | None = None
    complaints: tuple[Complaint, ...] = ()
    generated: Generated | None = None
    drawn: Drawn | None = None
    count: int = 1
    nuggets: tuple[Nugget, ...] = ()

    @property
    def dropped(self) -> bool:
        """Return whether a model wrote it and a person dropped it, so that it is never asked."""
        return self.generated is not None and self.generated.state == "dropped"

    @property
    def checked_nuggets(self) -> tuple[Nugget, ...]:
        """Return the nuggets that count: those that a person checked."""
        return tuple(one for one in self.nuggets if one.checked)


@dataclass(frozen=True, slots=True)
class Evidence:
    """An author's label: a document, or the place in it that `quote` stands at."""

    doc: str
    grade: int
    quote: str | None = None
    where: str = ""  # for messages
    matched: bool = False  # from another tool: a text or an id to be matched to any passage of the corpus


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Questions with graded passages; yes-or-no measures call a passage relevant from grade `relevant_from`.

    `drop_self`: BEIR's rule that a passage with the question's own id is no result (ArguAna asks with its
    passages).
    """

    name: str
    questions: tuple[Question, ...]
    qrels: Qrels
    relevant_from: int = 1
    drop_self: bool = False
    # The labels of questions whose labels are not passages; `qrels` then has the passages that have them.
    places: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)
    reading: tuple[str, ...] = ()  # how a file of another tool was read, in sentences
    warnings: tuple[str, ...] = ()  # on judgements that were ignored or contradict each other

    def __post_init__(self) -> None:
        counted = Counter(question.id for question in self.questions)
        if twice := [id for id, count in counted.items() if count > 1]:
            raise BadInput(f"{self.name}: {len(twice)} ids belong to several questions, such as {twice[0]!r}")

    def labelled(self, question_id: str) -> bool:
        """Return whether some passage is relevant, so that finding it can be measured."""
        return max(self.qrels.get(question_id, {}).values(), default=0) >= self.relevant_from

    def touched(self, question_id: str) -> bool:
        """Return whether some passage is judged."""
        return bool(self.qrels.get(question_id) or self.places.get(question_id))

    def relevant(self, question_id: str) -> list[str]:
        """Return the ids of the relevant passages."""
        grades = self.qrels.get(question_id, {})
        return [id for id, grade in grades.items() if grade >= self.relevant_from]

    def judged(self, question_id: str, more: Mapping[str, int] | None = None) -> Mapping[str, int]:
        """Return the judgements that `ranking` is scored by; `more` are grades of further passages."""
        return counting.grades(self.places.get(question_id, ()), self.qrels.get(question_id, {}), more)

    def ranking(self, question_id: str, outcome: Outcome) -> Ranked:
        """Return a route's ranking in terms of the labels: see core.evaluation.counting."""
        return counting.counted(self.places.get(question_id, ()), self.qrels.get(question_id, {}), outcome)

    def of_passages(self, question_id: str, hits: Ranked) -> Ranked:
        """Return a ranking of the corpus' passages in terms of the labels."""
        return counting.of_passages(self.places.get(question_id, ()), hits)

    def by_document(self, questions: Iterable[str]) -> int:
        """Return the number of `questions` at which documents are ranked, because whole documents are
        labelled.
        """
        return sum(counting.by_document(self.places.get(id, ())) for id in questions)

    def grades(self) -> dict[tuple[str, tuple[Turn, ...]], Mapping[str, int]]:
        """Return the grades by question as asked: its text and the turns before it."""
        return {
            (q.query.text, q.query.history): self.qrels[q.id] for q in self.questions if q.id in self.qrels
        }

    def sample(self, count: int, seed: int) -> LabelledSet:
        """Return `count` questions drawn with `seed`, in their old order; all of them if there are fewer."""
        if count >= len(self.questions):
            return self
        drawn = set(random.Random(seed).sample(sorted(q.id for q in self.questions), count))
        return replace(self, questions=tuple(q for q in self.questions if q.id in drawn))

    def sample_modes(self, count: int, seed: int) -> LabelledSet:
        """`count` questions of each mode that have a relevant passage, drawn with `seed`, in their old order.

        Questions without a mode are one kind; BadInput when no question has a relevant passage.
        """
        kinds: dict[str, list[str]] = {}
        for question in self.questions:
            if self.labelled(question.id):
                kinds.setdefault(question.mode or "", []).append(question.id)
        if not kinds:
            raise BadInput(f"{self.name} has no question with a relevant passage to draw from")
        draw = random.Random(seed)
        drawn = {
            id for _, ids in sorted(kinds.items()) for id in draw.sample(sorted(ids), min(count, len(ids)))
        }
        return replace(self, questions=tuple(q for q in self.questions if q.id in drawn))


@dataclass(frozen=True, slots=True)
class Written:
    """Questions with labels as their author wrote them: places in documents, not yet passages."""

    name: str
    questions: tuple[Question, ...]
    evidence: Mapping[str, tuple[Evidence, ...]] = field(default_factory=dict)
    format: str = ""  # of another tool's file, as a sentence names it
    remarks: tuple[str, ...] = ()  # what else is to be known of how it was read, in sentences
    warnings: tuple[str, ...] = ()  # on judgements that were ignored or contradict each other


Found = LabelledSet | Written
F = TypeVar("F", bound=Found)


def of_mode(found: F, mode: str | None) -> F:
    """Return the questions of one mode; all for None. Raises BadInput listing the modes there are."""
    if mode is None:
        return found
    known = sorted({question.mode for question in found.questions if question.mode})
    if mode not in known:
        there = ", ".join(known) or "none"
        raise BadInput(f"{found.name} has no questions of mode {mode!r}; it has: {there}")
    return replace(found, questions=tuple(q for q in found.questions if q.mode == mode))


def beir(folder: Path, *, split: str = "test") -> LabelledSet:
    """Return the questions of a BEIR folder that have judgements in `split` ("all": every file of qrels/).

    Those whose metadata says "answerable": false have nothing to be judged and are of every split: they count
    for time and answers, and not for rankings.
    Raises BadInput naming the file and line of what cannot be read, or what was looked for and is not there.
    """
    have = {file.stem: file for file in sorted((folder / "qrels").glob("*.tsv"))}
    if not have:
        raise BadInput(f"no relevance judgements: looked for {folder / 'qrels' / f'{split}.tsv'}")
    if split != "all" and split not in have:
        raise BadInput(f"no judgements for split {split!r} in {folder}; there are: {', '.join(have)}, all")
    if not (folder / "queries.jsonl").is_file():
        raise BadInput(f"no questions: looked for {folder / 'queries.jsonl'}")
    qrels: Qrels = {}
    of: dict[str, str] = {}  # question -> split
    conflicts: Conflicts = {}
    for name, file in have.items():
        if split in (name, "all"):
            read, within = read_qrels(file)
            of |= dict.fromkeys(read, name)
            conflicts |= within | merge(qrels, read)
    items = list(objects(folder / "queries.jsonl", needed=("_id", "text")))
    questions = []
    for item in items:
        id, metadata = str(item["_id"]), _metadata(item)
        said, golds = metadata.get("answerable"), _golds(metadata)
        if id in qrels or said is False:
            query = _conversation(item, f"{folder / 'queries.jsonl'}, query {id}")
            answerable = said if isinstance(said, bool) else True if golds else None
            known: dict[str, Any] = {"split": of.get(id, split), "answer": next(iter(golds), None)}
            questions.append(Question(id, query, answers=golds, answerable=answerable, **known))
    if not any(question.id in qrels for question in questions):
        raise BadInput(f"no question of {folder / 'queries.jsonl'} is judged in qrels by its id")
    asked = {question.id for question in questions}
    kept = {qid: labels for qid, labels in qrels.items() if qid in asked}
    warnings = unknown_said(qrels, {str(item["_id"]) for item in items}) + conflicts_said(conflicts)
    return LabelledSet(folder.name, tuple(questions), kept, drop_self=True, warnings=tuple(warnings))


def written(
    paths: Iterable[Path], *, name: str, split: str = "all", columns: Mapping[str, str] | None = None
) -> Written:
    """Read questions from files of this project (text, or question, or query; if known, id, history, mode,
    answer or answers, answerable, relevant, sql, and split, or query_split: no query of one split is in
    another) or of another tool, whose columns `columns` can name by field: see question_formats.

    A question without an id has one made of its text and history, the same wherever it stands. Where no
    question says its split, all are of "test". Raises BadInput with file and line.
    """
    files = [one for path in paths for one in files_of(path)]
    read = [(converted([*rows(path)], columns), part) for path, part in files]
    for (path, _), (one, _) in zip(files, read, strict=True):  # texts of a corpus file, for its passages' ids
        known = texts_beside(path) if "docs" in one.columns else {}
        for label in (label for _, item in one.rows if known for label in item["relevant"]):
            if label["doc"] in known:
                label["doc"], label["quote"] = known[label["doc"]]
    items = [
        (where, {"split": part, **item} if part else item) for one, part in read for where, item in one.rows
    ]
    splits_there = {str(item.get("split") or item.get("query_split") or "") for _, item in items}
    if split == "test" and (
        splits_there <= {""} or ("test" not in splits_there and any(one.name for one, _ in read))
    ):
        split = "all"
    questions: dict[str, Question] = {}
    evidence: dict[str, tuple[Evidence, ...]] = {}
    grades: Conflicts = {}
    splits: set[str] = set()
    for where, item in items:
        question = _question(item, where)
        if question.id in questions:
            if _first(item, *IDS):
                raise BadInput(f"{where}: the id {question.id!r} is taken by an earlier question")
            raise BadInput(f"{where}: this question was asked before; give both an id, or remove one")
        if question.dropped:
            continue
        splits.add(question.split or "none")
        if split not in ("all", question.split):
            continue
        questions[question.id] = question
        evidence[question.id] = tuple(_evidence(one, where) for one in _relevant(item, where))
        for label in evidence[question.id]:
            wanted = label.doc if label.quote is None else f"{label.doc}: {label.quote[:60]}"
            grades.setdefault((question.id, wanted), set()).add(label.grade)
    if not questions:
        there = ", ".join(sorted(splits)) or "none"
        raise BadInput(f"{name}: no questions of split {split!r}; there are: {there}, all")
    said = conflicts_said({pair: several for pair, several in grades.items() if len(several) > 1})
    columns_read = (pair for one, _ in read for pair in one.columns.items())
    used = dict.fromkeys(
        f"{' and '.join(names)} as {MEANS.get(field, field)}" for field, names in columns_read
    )
    unused = dict.fromkeys(column for one, _ in read for column in one.unused)
    told = (("Columns read", used), ("Columns not used", unused))
    remarks = [f"{what}: {', '.join(names)}" for what, names in told if names]
    remarks += [remark for one, _ in read for remark in one.remarks]
    format = " and ".join(dict.fromkeys(one.name for one, _ in read if one.name))
    return Written(name, tuple(questions.values()), evidence, format, tuple(remarks), tuple(said))


def _conversation(item: Mapping[str, Any], where: str) -> Query:
    """BEIR's text, with the turns before it if the metadata has them: `history`, a list of {role, text} (or
    content, or alone: texts, which the user said), or MTRAG's `all_user_turns`, "|user|: ..." lines.
    """
    if (given := _metadata(item).get("history", item.get("history"))) not in (None, "", []):
        return Query(str(item["text"]), _turns(given, where))
    said = _metadata(item).get("all_user_turns")
    parts = _TURN.split(said)[1:] if isinstance(said, str) else []
    spoken = [
        Turn("user" if role == "user" else "assistant", text.strip())
        for role, text in zip(parts[::2], parts[1::2], strict=True)
    ]
    return Query(str(item["text"]), tuple(spoken[:-1]))


def _turns(given: Any, where: str) -> tuple[Turn, ...]:
    """Return the turns of a `history` as sets write it: their words for roles and texts; a text alone is the
    user's. Raises BadInput saying what is wrong with it.
    """
    if isinstance(given, str):
        given = parse(given, f"{where}, history") if given.lstrip().startswith("[") else [given]
    for at, one in enumerate(given if isinstance(given, list) else ()):
        if isinstance(one, str):
            given[at] = {"role": "user", "text": one}
        elif isinstance(one, dict):
            role = one.get("role", one.get("speaker"))
            role = _ROLES.get(str(role).lower(), role)
            given[at] = {"role": role, "text": one.get("text", one.get("content"))}
    return turns(given, where)


def _golds(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the gold answers under "answer" and "answers", each once."""
    several = item.get("answers")
    given = [item.get("answer"), *(several if isinstance(several, list) else ())]
    return tuple(
        dict.fromkeys(gold for gold in given if isinstance(gold, str) and gold.strip() not in _NO_GOLD)
    )


def _metadata(item: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = item.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _question(item: Mapping[str, Any], where: str) -> Question:
    identifier, text = _first(item, *IDS), _first(item, "text", "question", "query")
    if not isinstance(text, str) or not text.strip():
        there = ", ".join(map(str, item)) or "nothing"
        raise BadInput(f"{where}: no 'text', 'question' or 'query'; it has: {there}; {NAME_THEM}")
    history = item.get("history") or []
    if isinstance(history, str):
        history = parse(history, f"{where}, history")
    known: dict[str, Any] = {key: item.get(key) or None for key in ("mode", "split", "answer", "sql")}
    known["split"] = known["split"] or item.get("query_split") or None
    query = Query(text, turns(history, where))
    if identifier is None:
        whole = json.dumps([query.text.split(), *([turn.role, turn.text] for turn in query.history)])
        identifier = "q-" + hashlib.sha256(whole.encode()).hexdigest()[:12]
    golds, mode, answerable = _golds(item), item.get("mode"), item.get("answerable")
    if not isinstance(answerable, bool):
        answerable = False if mode in _UNANSWERABLE else None
        if answerable is None and golds and mode not in UNDECIDED:
            answerable = True
    # Where the documents have no answer the author's is a remark, unless a page on the web has it.
    remark = mode == "no_retrieval" or (answerable is False and not item.get("web"))
    return Question(
        str(identifier),
        query,
        **known,
        answers=() if remark else golds,
        answerable=answerable,
        generated=Generated.read(item["generated"], where) if item.get("generated") else None,
    )


def _relevant(item: Mapping[str, Any], where: str) -> list[Any]:
    """Return the entries under "relevant": a list, one alone, or documents with their grades. Text is the id
    of a document, or in CSV a list as JSON writes it.
    """
    given = item.get("relevant")
    if given in (None, "", [], {}):
        return []
    if isinstance(given, str) and given.lstrip().startswith(("[", "{")):
        given = parse(given, f"{where}, relevant")
    if isinstance(given, dict) and "doc" not in given:
        return [{"doc": doc, "grade": grade} for doc, grade in given.items()]
    return list(given) if isinstance(given, list) else [given]


def _evidence(entry: Any, where: str) -> Evidence:
    if isinstance(entry, str) and entry.strip():
        return Evidence(entry.strip(), 3, where=where)
    doc, grade = (entry.get("doc"), entry.get("grade", 3)) if isinstance(entry, dict) else (None, None)
    if not isinstance(doc, str) or type(grade) is not int or grade < 0:
        wanted = "an id of a document, or {'doc', 'grade': 0 or more, 'quote'}"
        raise BadInput(f"{where}: 'relevant' needs {wanted}, not {entry!r}"[:300])
    return Evidence(doc, grade, entry.get("quote") or None, where, bool(entry.get("matched")))


def _first(item: Mapping[str, Any], *keys: str) -> Any:
    return next((item[key] for key in keys if item.get(key) not in (None, "")), None)
