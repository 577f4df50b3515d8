"""Judges the answers of a run and their claims, and traces how far the evidence for each came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.analysis.answers import checked, writing
from core.analysis.label_flow import Reading, read
from core.analysis.passage_trace import PassageTrace
from core.backends.prompting.citations import markers, sentences, unmarked
from core.domain.types import Run
from core.evaluation.answers import Given, against_golds, correct
from core.evaluation.gold import Gold
from core.steps.claims import unknown_numbers

How = Literal["a person", "exact", "contained", "content words", "abstention"]
FAILURES = ("wrong answer", "should have abstained", "should have answered")  # complaints about an answer


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
        found.append(JudgedAnswer(result.route, result.title, given.text, right, how, claims, evidence))
    return sorted(found, key=lambda one: {False: 0, None: 1, True: 2}[one.right])


def _verdict(run: Run, route: str, given: Given, gold: Gold) -> tuple[bool | None, How | None]:
    complaints = (complaint for question in gold.questions for complaint in question.complaints)
    if any((one.run, one.route) == (run.id, route) and one.failure in FAILURES for one in complaints):
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
