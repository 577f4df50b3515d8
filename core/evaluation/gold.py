"""The labels of a run's question, of its corpus and of people, and the run's answers judged by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from core.analysis.answers import checked, writing
from core.analysis.diagnosis import held
from core.analysis.label_flow import Reading, read
from core.analysis.metrics import METRICS, Values, by_question
from core.analysis.passage_trace import PassageTrace
from core.backends.prompting.citations import markers, sentences, unmarked
from core.corpus import catalogue
from core.corpus.samples import labelled_files
from core.corpus.source import base_of
from core.domain.errors import BadInput, RouteScopeError
from core.domain.ranked import Ranked
from core.domain.relevance import FULL, NuggetSupport, RelevantLabel, floor, labels_of
from core.domain.types import RouteResult, Run
from core.evaluation import counting, sets
from core.evaluation.answers import Given, against_golds, correct, nugget_levels
from core.evaluation.counting import Place
from core.evaluation.dataset import OF_ANSWERS, Found, LabelledSet, Nugget, Question, Written
from core.evaluation.labels import desk
from core.evaluation.labels.final import of_query
from core.evaluation.labels_file import LossKind, fates, losses
from core.steps.claims import unknown_numbers

if TYPE_CHECKING:
    from core.engine.engine import Engine


DEPTH = 10  # first passages of a ranking that count as shown


def suggested(run: Run, route: str, passage: str | None = None) -> str:
    """Return the kind that the run itself shows of a route, for the passage that should have been there: not
    found by any step, cut by one, or ranked too low. Without a passage: the answer's, if one was written.
    """
    result = next((one for one in run.results if one.route == route), None)
    if result is None:
        return "other"
    if passage is None:
        if result.abstained:
            return "should have answered"
        return "wrong answer" if result.answer else "not found"
    ranks = {hit.passage.id: at for at, hit in enumerate(result.hits, 1)}
    if passage in ranks:
        return "ranked too low" if ranks[passage] > DEPTH else "wrong answer" if result.answer else "other"
    return "cut by a step" if held([PassageTrace(result)], passage) else "not found"


@dataclass(frozen=True, slots=True)
class Gold:
    """The labels and right answers of a question; every field may be empty."""

    # grade (0-3) by passage id
    grades: Mapping[str, int] = field(default_factory=dict)
    # the author's reason that the question is hard
    mode: str | None = None
    # the words, by document, that the author labelled as answering it
    quotes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # the labels lost before the index, by passage id
    before: Mapping[str, tuple[LossKind, str]] = field(default_factory=dict)
    # the labels that are quotes or documents, counted as evaluations count them
    places: tuple[Place, ...] = ()
    # of `grades`, those that people gave on passages
    people: Mapping[str, int] = field(default_factory=dict)
    # the grade from which evaluations call a passage relevant; None: by `floor`
    relevant_from: int | None = None
    # the passage that BEIR's rule drops from the results, as it is the question itself
    own: str | None = None
    # the question with its answers, once for each set that has it; people's sets come last
    questions: tuple[Question, ...] = ()

    def wanted(self) -> tuple[RelevantLabel, ...]:
        """Return the relevant labels, best grade first: what a ranking is expected to show. Quotes that the
        same passages have are one.
        """
        if not self.places:
            return labels_of(self.grades)
        least = floor({place.id: place.grade for place in self.places} | dict(self.people))
        found: dict[tuple[str, ...], RelevantLabel] = {}
        for place in sorted(self.places, key=lambda one: -one.grade):
            if place.grade >= least:
                passages = place.passages or (place.id,)
                name = passages[0] if not place.whole and len(passages) == 1 else place.id
                found.setdefault(passages, RelevantLabel(name, place.grade, passages, place.whole))
        carried = {id for passages in found for id in passages}
        for id, grade in self.people.items():
            if grade >= least and id not in carried:
                found[(id,)] = RelevantLabel(id, grade, (id,))
        return tuple(sorted(found.values(), key=lambda label: (-label.grade, label.id)))

    def measured(self, rankings: Mapping[str, Ranked], metrics: Sequence[str] = METRICS) -> dict[str, Values]:
        """Return the metrics of each ranking, counted as evaluations do; {} without a relevant label."""
        if not any(grade > 0 for grade in self.grades.values()):
            return {}
        counted: dict[str, Ranked] = {}
        for name, hits in rankings.items():
            ranked: dict[str, float] = {}
            for id, score in hits:
                if id != self.own:
                    ranked.setdefault(id, score)
            counted[name] = counting.of_passages(self.places, tuple(ranked.items()))
        judged = dict.fromkeys(counted, counting.grades(self.places, self.grades, self.people))
        least = floor(self.grades) if self.relevant_from is None else self.relevant_from
        return by_question(judged, counted, relevant_from=least, metrics=metrics)

    def ndcg(self, results: Sequence[RouteResult]) -> dict[str, float]:
        """Return nDCG@10 by route, of the routes with a ranking."""
        ranked = {
            one.route: tuple((hit.passage.id, hit.score) for hit in one.hits)
            for one in results
            if one.status == "ok"
        }
        return {route: one["ndcg@10"] for route, one in self.measured(ranked, ("ndcg@10",)).items()}

    @property
    def answers(self) -> tuple[str, ...]:
        """Return the right answers, each once."""
        return tuple(dict.fromkeys(answer for one in self.questions for answer in one.answers))

    @property
    def answerable(self) -> bool | None:
        """Return whether the documents answer the question, as the last to say so said; None: unknown."""
        said = [one.answerable for one in self.questions if one.answerable is not None]
        return said[-1] if said else None


def gold(engine: Engine, run: Run, labels: str | None = None) -> Gold:
    """Return the labels of the run's question for its corpus as indexed now; people's grades take precedence
    over the corpus'. With `labels`, use only that label set: raises BadInput if it does not exist or does not
    have this question.
    """
    corpus = engine.corpus(run.corpus)
    if labels is not None:
        if engine.store is None:
            raise BadInput(f"labels are not stored here, so the set {labels!r} cannot be read")
        found = _with_set(Gold(), of_query(engine.store, labels, corpus, run.query))
        if not found.grades and not found.answers:
            raise BadInput(f"label set {labels!r} has no grade for the question of run {run.id}")
        return found
    found = _with_corpus(engine, run)
    for one in desk.sets(engine.store) if engine.store is not None else ():
        if engine.store is not None and base_of(one.corpus) == base_of(run.corpus):
            found = _with_set(found, of_query(engine.store, one.name, corpus, run.query))
    return found


def _with_corpus(engine: Engine, run: Run) -> Gold:
    """By the questions that lie with the corpus, where there are some."""
    origin = catalogue.source(run.corpus, settings=engine.settings, known_only=True)
    files = labelled_files(origin.name)
    try:
        found = sets.read(origin.name, origin.path, split="all", questions=files)
    except BadInput:
        return Gold()  # it comes without questions, or with some that an evaluation will complain of
    asked = (run.query.text, run.query.history)
    question = next((one for one in found.questions if (one.query.text, one.query.history) == asked), None)
    if question is None:
        return Gold()
    # One question alone: to place the quotes of all takes as long as it did for an evaluation.
    if isinstance(found, Written):
        found = replace(found, questions=(question,), evidence={question.id: found.evidence[question.id]})
    else:
        own = {id: grades for id, grades in found.qrels.items() if id == question.id}
        found = replace(found, questions=(question,), qrels=own)
    try:
        corpus = engine.corpus(run.corpus)
        tied, _ = sets.tie(found, corpus)
        before = fates(list(losses(found, corpus))) if isinstance(found, Written) else {}
    except RouteScopeError:
        # The documents have changed since they were labelled.
        return Gold(mode=question.mode, questions=(question,))
    quotes = quoted(found, question.id, FULL)
    grades = tied.qrels.get(question.id, {})
    return Gold(
        grades,
        question.mode,
        quotes,
        before,
        tied.places.get(question.id, ()),
        relevant_from=tied.relevant_from,
        own=question.id if tied.drop_self and question.id not in grades else None,
        questions=(question,),
    )


def quoted(found: Found, question: str, least: int = 0) -> dict[str, tuple[str, ...]]:
    """Return the words that the author of a question quoted, by document, of grade `least` or better."""
    quotes: dict[str, tuple[str, ...]] = {}
    for one in found.evidence.get(question, ()) if isinstance(found, Written) else ():
        if one.quote and one.grade >= least:
            quotes[one.doc] = (*quotes.get(one.doc, ()), one.quote)
    return quotes


def _with_set(known: Gold, labelled: LabelledSet) -> Gold:
    """Add what a set labelled by people has of one question; its grades take precedence."""
    for one in labelled.questions:
        grades = labelled.qrels.get(one.id, {})
        places = [*labelled.places.get(one.id, ())]
        for place in reversed(known.places):  # the best grade that people gave, if they judged all passages
            given = [grades[id] for id in place.passages if id in grades]
            whole = place.whole or not given or len(given) < len(place.passages)
            places.insert(0, place if whole else replace(place, grade=max(given)))
        known = replace(
            known,
            grades={**known.grades, **grades},
            people={**known.people, **grades},
            places=tuple(places),
            relevant_from=known.relevant_from or labelled.relevant_from,
            questions=(*known.questions, one),
        )
    return known


How = Literal["a person", "exact", "contained", "content words", "abstention"]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A sentence of an answer; `right` is None if it could not be judged."""

    text: str
    right: bool | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A route's answer against what is known of the question."""

    route: str
    title: str
    text: str
    # None: there is nothing to compare it with
    right: bool | None
    how: How | None
    claims: tuple[JudgedClaim, ...]
    # by label, how far it came towards this answer
    evidence: Mapping[str, Reading]
    # the checked nuggets of the question, and how far it contains each; None if nobody assigned that
    nuggets: Sequence[tuple[Nugget, NuggetSupport | None]] = ()


def judge_answers(run: Run, gold: Gold, funnels: Sequence[PassageTrace]) -> list[JudgedAnswer]:
    """Return every answer of a run, the wrong ones first. A person's complaint about an answer takes
    precedence, then comes the comparison with the right answers: equal to one, containing one, or sharing
    enough of its content words (core.evaluation.answers.JUDGED_BY).
    """
    wanted = gold.wanted()
    found = []
    for funnel in funnels:
        result, said = funnel.result, checked(funnel.result)
        if said is None:
            continue
        given = Given(said.written.text, result.citations, result.abstained, said.written.wrong)
        right, how = _verdict(run, result.route, given, gold)
        evidence = {label.id: read(funnel, label) for label in wanted}
        claims = () if given.abstained else tuple(_claims(run, funnel, gold))
        facts = nugget_levels([one for asked in gold.questions for one in asked.checked_nuggets], given)
        answer = result.route, result.title, given.text
        found.append(JudgedAnswer(*answer, right, how, claims, evidence, facts))
    return sorted(found, key=lambda one: {False: 0, None: 1, True: 2}[one.right])


def _verdict(run: Run, route: str, given: Given, gold: Gold) -> tuple[bool | None, How | None]:
    complaints = (complaint for question in gold.questions for complaint in question.complaints)
    if any((one.run, one.route) == (run.id, route) and one.failure in OF_ANSWERS[:3] for one in complaints):
        return False, "a person"
    right = correct(given, gold.answers, gold.answerable)
    if right is None:
        return None, None
    if given.abstained or not gold.answers:
        return right, "abstention"
    same = against_golds(given.text, gold.answers)
    return right, "exact" if same["exact"] else "contained" if same["contains"] else "content words"


def _claims(run: Run, funnel: PassageTrace, gold: Gold) -> list[JudgedClaim]:
    """Return a verdict on each sentence: the route's own calibrated check if it made one; else a number that
    stands in nothing the route read, or in nothing that is right.
    """
    result, said = funnel.result, checked(funnel.result)
    if said is None:
        return []
    own = writing(result)
    drafted = own.drafts[(own.kept or len(own.drafts)) - 1].output.claims if own is not None else ()
    known = {one.claim: one for one in drafted}
    shown = funnel.shown[0] if funnel.shown is not None else result.citations
    texts = [run.passages[id] for id in shown if id in run.passages]
    was_read = " ".join((run.query.text, *(f"{one.title} {one.text}" for one in texts)))
    relevant = {id for label in gold.wanted() for id in label.passages}
    truth = [one.text for id, one in run.passages.items() if id in relevant]
    truth += [*gold.answers, *(quote for some in gold.quotes.values() for quote in some)]
    found = []
    for sentence in sentences(said.written.text):
        claim = unmarked(sentence)
        if (judged := known.get(claim)) is not None and judged.supported is not None:
            found.append(JudgedClaim(claim, judged.supported, judged.why))
        elif made_up := unknown_numbers(claim, was_read):
            found.append(JudgedClaim(claim, False, f"{', '.join(made_up)} is in no passage that it read"))
        elif truth and (other := unknown_numbers(claim, " ".join((run.query.text, *truth)))):
            why = f"{', '.join(other)} is in no relevant passage or right answer"
            found.append(JudgedClaim(claim, False, why))
        else:
            cited = [said.cited[number] for number in markers(sentence) if number in said.cited]
            off = bool(relevant and cited) and relevant.isdisjoint(cited)
            why = "it cites only passages that are not labelled relevant" if off else ""
            found.append(JudgedClaim(claim, None, why))
    return found
