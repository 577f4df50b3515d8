"""The questions that a change broke, fixed or left alone. A relevant passage is found if it is among the
first k of the ranking. A question is broken if the second evaluation finds fewer of its relevant passages
than the first, fixed if it finds more, and unchanged if it finds as many. A route that failed found nothing,
and a passage whose document was deleted is not found.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

from core.analysis.passage_trace import PassageTrace
from core.corpus import states
from core.corpus.corpus import Corpus
from core.corpus.states import DocumentChange
from core.domain.errors import BadInput, RouteScopeError
from core.domain.relevance import is_unmatched
from core.evaluation.counting import document_of
from core.evaluation.experiment_store import Evaluation
from core.evaluation.outcome import Outcome
from core.evaluation.stored import checked, whole_lines


@dataclass(frozen=True, slots=True)
class Displacer:
    """A new or changed document ranked above a relevant passage, with its first `passage` and that one's
    rank.
    """

    document: str
    change: DocumentChange
    passage: str
    rank: int


@dataclass(frozen=True, slots=True)
class DisplacedPassage:
    """A relevant passage that fell, and the documents that displaced it, best rank first."""

    passage: str
    rank_before: int
    rank_after: int | None  # None: not ranked
    rank_without: int  # its rank without these documents' passages; the best it can be if it was not ranked
    by: tuple[Displacer, ...]


def changes(before: Evaluation, after: Evaluation) -> tuple[dict[str, DocumentChange], str]:
    """Return the documents that differ between the corpora, and "" or the reason they are not known."""
    if before.figures.get("fingerprint") == after.figures.get("fingerprint"):
        return {}, ""
    then, now = recorded(before.folder), recorded(after.folder)
    if then is None or now is None:
        lacking = before.name if then is None else after.name
        return {}, (
            f"{lacking} did not record its documents (a corpus of up to {states.MOST:,} is recorded), so the "
            "ones that displaced a passage are not known."
        )
    if not then.items() & now.items():
        return {}, (
            "No document is the same in both corpora (they are different, or were split differently), so "
            "the documents that displaced a passage are not known."
        )
    return states.changes(then, now), ""


def displaced(
    relevant: Iterable[str],
    before: Outcome,
    after: Outcome,
    depth: int,
    changed: Mapping[str, DocumentChange],
) -> tuple[DisplacedPassage, ...]:
    """Return the relevant passages that were among the first `depth`, fell, and have new or changed documents
    above them. A passage fell if it left the first `depth` or its reciprocal rank halved.

    A changed document is blamed only if more of its passages are above than before. A passage that is not
    ranked is left out if its own document changed: it may no longer exist.
    """
    if not changed or (before.status, after.status) != ("ok", "ok"):
        return ()
    then, now = (
        {id: one.documents.get(id) or document_of(id) for id, _ in one.hits} for one in (before, after)
    )
    was, is_ = ({passage: rank for rank, passage in enumerate(ranked, 1)} for ranked in (then, now))
    found = []
    for passage in relevant:
        first, last = was.get(passage), is_.get(passage)
        if first is None or first > depth or (last is None and then[passage] in changed):
            continue
        if last is not None and last < 2 * first and last <= depth:
            continue
        above = list(now.items())[: last - 1 if last is not None else None]
        earlier = Counter(list(then.values())[: first - 1])
        counts = Counter(doc for _, doc in above if changed.get(doc) in ("new", "changed"))
        blamed = {doc for doc, n in counts.items() if n > earlier[doc]}
        by: dict[str, Displacer] = {}
        for rank, (id, doc) in enumerate(above, 1):
            if doc in blamed:
                by.setdefault(doc, Displacer(doc, changed[doc], id, rank))
        if by:
            without = len(above) + 1 - sum(counts[doc] for doc in by)
            found.append(DisplacedPassage(passage, first, last, without, tuple(by.values())))
    return tuple(sorted(found, key=lambda one: (one.rank_before, one.passage)))


FILE = "documents.json"  # in the folder of an evaluation


def record(folder: Path, corpus: Corpus) -> None:
    """Write the documents of `corpus` into the folder of an evaluation; none of a corpus with too many."""
    path = folder / FILE
    if corpus.info.documents > states.MOST:
        path.unlink(missing_ok=True)
        return
    whole_lines(path, [json.dumps(states.hashes(corpus))])


def recorded(folder: Path) -> dict[str, str] | None:
    """Return document id -> hash, or None if the evaluation did not record its documents. Raises BadInput if
    the file is damaged.
    """
    from pydantic import TypeAdapter

    try:
        document = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return checked(TypeAdapter(dict[str, str]), document)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise BadInput(f"{folder / FILE} is damaged: {error}") from None


Change = Literal["fixed", "broken", "unchanged"]
DEPTH = 10  # k of a metric that names none


@dataclass(frozen=True, slots=True)
class PassageChange:
    """A relevant passage that was found in one evaluation only: its ranks (None: not ranked) and `loss`, why
    the other did not find it.
    """

    passage: str
    grade: int
    before: int | None
    after: int | None
    loss: PassageLoss

    @property
    def found_at(self) -> int:
        """Return the better of its two ranks."""
        return min(rank for rank in (self.before, self.after) if rank is not None)


@dataclass(frozen=True, slots=True)
class QuestionDiff:
    """A question in both: `lost` passages were found before alone, `gained` ones after alone. `relabelled`:
    its labels changed, and only those that both evaluations have count. `displaced` passages fell below
    documents that are new or changed.
    """

    id: str
    text: str
    mode: str
    change: Change
    relevant: int
    lost: tuple[PassageChange, ...]
    gained: tuple[PassageChange, ...]
    status: tuple[str, str]
    relabelled: bool = False
    displaced: tuple[DisplacedPassage, ...] = ()

    @property
    def deleted(self) -> tuple[PassageChange, ...]:
        """Return the passages lost with their documents."""
        return tuple(one for one in self.lost if one.loss is DELETED)

    @property
    def decisive(self) -> PassageChange | None:
        """Return the passage that broke or fixed the question, or None if it is unchanged."""
        kept = {"broken": self.lost, "fixed": self.gained}.get(self.change, ())
        return kept[0] if kept else None

    def document(self) -> dict[str, Any]:
        """Return it as JSON values; `passage`, `step` and `why` are of the decisive passage, null if
        unchanged.
        """
        one, values = self.decisive, asdict(self)
        return {
            "question": self.id,
            **{name: values[name] for name in ("text", "mode", "change", "relevant", "lost", "gained")},
            "passage": one and one.passage,
            "rank_before": one and one.before,
            "rank_after": one and one.after,
            "step": one and one.loss.step,
            "why": one and one.loss.kind,
            "told": one and one.loss.words,
            "status_before": self.status[0],
            "status_after": self.status[1],
            "labels_changed": self.relabelled,
            "displaced_by": values["displaced"],
        }


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The numbers of questions that are not compared, by reason; no question is counted twice."""

    only_before: int = 0
    only_after: int = 0
    text_changed: int = 0
    no_label_in_common: int = 0  # labelled in both, but no relevant passage is the same
    unlabelled: int = 0  # no relevant passage in at least one

    @property
    def total(self) -> int:
        """Return the total."""
        return sum(asdict(self).values())


@dataclass(frozen=True, slots=True)
class QuestionsDiff:
    """All questions that both have, in the second's order, and how many are left out."""

    questions: tuple[QuestionDiff, ...]
    left_out: LeftOut
    # questions with a label that is gone, with its document or alone: the documents are not recorded
    undetermined: int = 0

    def of(self, change: Change) -> tuple[QuestionDiff, ...]:
        """Return the questions of one kind."""
        return tuple(one for one in self.questions if one.change == change)

    @property
    def exchanged(self) -> int:
        """Return the unchanged questions that lost as many relevant passages as they gained."""
        return sum(bool(one.lost) for one in self.of("unchanged"))

    @property
    def relabelled(self) -> int:
        """Return the questions that are compared by the labels that both have."""
        return sum(one.relabelled for one in self.questions)


def depth_of(metric: str) -> int:
    """Return the k of a metric: 10 for ndcg@10, and for one that names none."""
    found = re.search(r"@(\d+)$", metric)
    return int(found[1]) if found else DEPTH


def common_labels(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return the judgements that both have: same passage, same grade."""
    return {id: grade for id, grade in after.items() if before.get(id) == grade}


def questions_diff(before: Side, after: Side, depth: int) -> QuestionsDiff:
    """Compare two routes question by question.

    Compared are questions of the same id and text with a relevant passage in common, or with one that was
    found before and whose document was deleted.
    """
    counts = Counter({"only_before": len(before.questions.keys() - after.questions.keys())})
    deleted, undetermined = _deleted(before, after, depth)
    found = []
    for id, now in after.questions.items():
        then, gone = before.questions.get(id), deleted.get(id, {})
        if then is None:
            counts["only_after"] += 1
        elif then.text != now.text:
            counts["text_changed"] += 1
        elif wanted := relevant_in_both(then, now, max(before.relevant_from, after.relevant_from)) | gone:
            found.append(_one(id, before, after, depth, wanted, gone.keys()))
        elif relevant(then.labels, before.relevant_from) and relevant(now.labels, after.relevant_from):
            counts["no_label_in_common"] += 1
        else:
            counts["unlabelled"] += 1
    return QuestionsDiff(tuple(found), LeftOut(**counts), undetermined)


def _deleted(before: Side, after: Side, depth: int) -> tuple[dict[str, dict[str, int]], int]:
    """Return by question the labels of the relevant passages found before whose document was deleted, and how
    many questions lost labels if the documents are not known.
    """
    if before.fingerprint == after.fingerprint:
        return {}, 0
    lost: dict[str, dict[str, int]] = {}
    for id, now in after.questions.items():
        if (then := before.questions.get(id)) is not None and then.text == now.text:
            labels = relevant(then.labels, before.relevant_from)
            ranked = {one: grade for one, grade in labels.items() if then.ranks.get(one, depth + 1) <= depth}
            lost[id] = {
                one: grade for one, grade in ranked.items() if one not in now.labels and not is_unmatched(one)
            }
    there = after.documents
    if there is None:
        return {}, sum(map(bool, lost.values()))
    known = {document for one in before.questions.values() for document in one.documents.values()}
    if before.corpus != after.corpus and not known & there:  # a different corpus: nothing was deleted
        return {}, 0
    return {
        id: {one: grade for one, grade in labels.items() if before.questions[id].documents[one] not in there}
        for id, labels in lost.items()
    }, 0


def relevant_in_both(then: Asked, now: Asked, least: int) -> dict[str, int]:
    """Return the passages that both judged the same, with a grade of `least` or more."""
    return relevant(common_labels(then.labels, now.labels), least)


def relevant(labels: Mapping[str, int], least: int) -> dict[str, int]:
    """Return the labels with a grade of `least` or more."""
    return {id: grade for id, grade in labels.items() if grade >= least}


def _one(
    id: str, before: Side, after: Side, depth: int, wanted: Mapping[str, int], gone: Collection[str]
) -> QuestionDiff:
    then, now = before.questions[id], after.questions[id]
    was, is_ = ({one for one in wanted if asked.ranks.get(one, depth + 1) <= depth} for asked in (then, now))

    def changes(passages: Iterable[str], missing_in: Side) -> tuple[PassageChange, ...]:
        found = []
        for one in passages:
            loss = DELETED if one in gone else missing_in.loss(id, one, depth)
            found.append(PassageChange(one, wanted[one], then.ranks.get(one), now.ranks.get(one), loss))
        return tuple(sorted(found, key=lambda one: (-one.grade, one.found_at, one.passage)))

    change: Change = "unchanged"
    if len(was) != len(is_):
        change = "fixed" if len(is_) > len(was) else "broken"
    labels = {one: grade for one, grade in then.labels.items() if one not in gone}
    relabelled = relevant(labels, before.relevant_from) != relevant(now.labels, after.relevant_from)
    status, lost, gained = (then.status, now.status), changes(was - is_, after), changes(is_ - was, before)
    return QuestionDiff(id, now.text, now.mode, change, len(wanted), lost, gained, status, relabelled)


NOT_RECORDED = "not recorded"
TRACES_KEPT = 4  # questions whose trace is held: the passages of one question are asked for in a row


@dataclass(frozen=True, slots=True)
class PassageLoss:
    """Why a passage was not among the first k: `kind` as in core.analysis.passage_trace, the name of the
    `step` that lost it (None where the trace names none), its rank before that step, and a sentence.
    """

    kind: str
    step: str | None
    was: int | None
    words: str


DELETED = PassageLoss("document deleted", None, None, "Its document is no longer in the corpus.")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as a route was asked it. `labels`: passage -> grade. `ranks`: the labelled passages that the
    route ranked, from 1; `documents`: the documents of these. `status`: how the route ended. `losses` are
    recorded by a snapshot alone.
    """

    text: str
    mode: str
    labels: Mapping[str, int]
    ranks: Mapping[str, int]
    status: str
    documents: Mapping[str, str]
    losses: Mapping[str, PassageLoss] = field(default_factory=dict)


class Side(Protocol):
    """A route of an evaluation, or of a release snapshot."""

    # the grade from which a passage is relevant
    relevant_from: int
    corpus: str
    fingerprint: str

    @property
    def documents(self) -> Set[str] | None:
        """Return the ids of the corpus' documents, or None if they are not recorded."""

    @property
    def questions(self) -> Mapping[str, Asked]: ...

    def loss(self, question: str, passage: str, depth: int) -> PassageLoss:
        """Return the recorded reason a passage is not among the first `depth`."""


class EvaluationSide:
    """A route of a saved evaluation; losses are read from the traces it keeps."""

    def __init__(self, evaluation: Evaluation, route: str) -> None:
        if route not in evaluation.routes:
            there = ", ".join(evaluation.routes)
            raise BadInput(f"evaluation {evaluation.name} did not measure route {route!r}; it has: {there}")
        self.evaluation = evaluation
        self.name, self.route = evaluation.name, route
        self.relevant_from = evaluation.labelled.relevant_from
        self.corpus, self.fingerprint = (str(evaluation.figures.get(n)) for n in ("corpus", "fingerprint"))
        self._trace = lru_cache(maxsize=TRACES_KEPT)(self._read)

    @cached_property
    def documents(self) -> Set[str] | None:
        """See Side."""
        found = recorded(self.evaluation.folder)
        return None if found is None else found.keys()

    @cached_property
    def questions(self) -> Mapping[str, Asked]:
        """See Side."""
        found = {}
        for id, asked in self.evaluation.questions.items():
            outcome = self.evaluation.outcomes.get(id, {}).get(self.route)
            if outcome is not None:
                labels = self.evaluation.labelled.qrels.get(id, {})
                hits = outcome.hits if outcome.status == "ok" else ()
                ranks = {passage: at for at, (passage, _) in enumerate(hits, 1) if passage in labels}
                documents = {one: outcome.documents.get(one) or document_of(one) for one in ranks}
                found[id] = Asked(
                    asked.query.text, asked.mode or "", labels, ranks, outcome.status, documents
                )
        return found

    def losses(self, question: str, depth: int) -> dict[str, PassageLoss]:
        """Return the losses of the relevant passages that are not among the first `depth`."""
        asked = self.questions[question]
        wanted = relevant(asked.labels, self.relevant_from)
        return {
            one: self.loss(question, one, depth) for one in wanted if asked.ranks.get(one, depth + 1) > depth
        }

    def loss(self, question: str, passage: str, depth: int) -> PassageLoss:
        """See Side; where no trace was kept or it cannot be read, the kind is "not recorded"."""
        try:
            trace = self._trace(question)
        except RouteScopeError as error:
            told = str(error).rstrip(".")
            return PassageLoss(NOT_RECORDED, None, None, f"The step is not known: {told}.")
        fate = trace.fate(passage, depth)
        step = fate.step.name if fate.step is not None else None
        if step is None and fate.kind == "never retrieved":
            step = ", ".join(dict.fromkeys(span.name for span in trace.searches)) or None
        return PassageLoss(fate.kind, step, fate.was, fate.words)

    def _read(self, question: str) -> PassageTrace:
        """Return the route's trace of a question. Raises RouteScopeError with the reason it is missing."""
        for one in self.evaluation.run(question).results:
            if one.route == self.route:
                return PassageTrace(one)
        raise BadInput(f"the saved run of question {question!r} has no route {self.route}")
