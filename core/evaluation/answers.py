"""Measures of one answer against gold answers, labelled passages, and whether there was one to give.

None of them is a person's judgement, and none asks a model.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from core.analysis.metrics import ANSWERS
from core.backends.prompting.citations import markers, sentences, unmarked

SHORT = 5  # words of a gold answer that has to stand in the answer as it is
SHARE = 0.5  # of the content words of a longer gold answer that an answer must have
JUDGED_BY = {
    "gold": "exact, f1, contains and gold_recall: the best over the gold answers, compared as SQuAD does; 0 "
    "where the route abstained",
    "correct": f"a gold answer of at most {SHORT} words stands in the answer (yes or no: begins it), or the "
    f"answer has at least {SHARE:.0%} of the content words (stems) of a longer one; where the documents "
    "hold no answer, abstaining is correct. A right answer far shorter than a long gold one counts as "
    "wrong. A rule, not a person's judgement",
    "support": "against labelled passages, not by reading them: supported_accuracy is correct and at least "
    "one passage cited is labelled relevant and no marker is wrong, or rightly abstained; a passage nobody "
    "judged counts as not relevant",
    "citations": "citation_precision: share of what is cited, wrong markers with it, that is labelled "
    "relevant; citation_recall: share of the answer's sentences that cite a relevant passage",
    "abstention": "precision: share of the abstentions that are on unanswerable questions; recall: share of "
    "the unanswerable questions on which it abstained; false: share of the answerable ones on which it did",
}

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
Measured = dict[str, float | None]  # None: the question does not tell


@dataclass(frozen=True, slots=True)
class Given:
    """An answer as a route gave it: `wrong` are the numbers of markers that no passage shown has."""

    text: str
    citations: tuple[str, ...] = ()
    abstained: bool = False
    wrong: tuple[int, ...] = ()


def measure(
    given: Given, golds: Sequence[str], answerable: bool | None, relevant: frozenset[str] = frozenset()
) -> Measured:
    """Every measure of one answer; `relevant` are the ids of the passages labelled relevant.

    None where a measure does not apply: without a gold answer, a label, or an abstention to be judged.
    """
    right = correct(given, golds, answerable)
    found: Measured = dict.fromkeys(ANSWERS)
    if answerable is not False and golds:
        found |= against_golds("" if given.abstained else given.text, golds)
    found["correct"] = right if right is None else float(right)
    found |= _cited(given, relevant)
    well = supported(given, right, answerable, relevant)
    found["supported_accuracy"] = well if well is None else float(well)
    if answerable is not None:
        if given.abstained:
            found["abstention_precision"] = float(not answerable)
        if answerable:
            found["false_abstention"] = float(given.abstained)
        elif given.abstained or not right:  # a right answer from elsewhere should not have been withheld
            found["abstention_recall"] = float(given.abstained)
    return found


def against_golds(text: str, golds: Sequence[str]) -> dict[str, float]:
    """exact, f1, contains and gold_recall of an answer without its markers, each the best over `golds`."""
    said, best = words(unmarked(text)), dict.fromkeys(("exact", "f1", "contains", "gold_recall"), 0.0)
    for gold in map(words, golds):
        same, exact = (Counter(said) & Counter(gold)).total(), float(said == gold)
        f1 = 2 * same / (len(said) + len(gold)) if said and gold else exact
        values = (exact, f1, float(holds(said, gold)), same / len(gold) if gold else exact)
        best = {name: max(best[name], value) for name, value in zip(best, values, strict=True)}
    return best


def words(text: str) -> list[str]:
    """Return the words SQuAD compares: lower case, without ASCII punctuation and articles.

    Source: Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text",
    arXiv:1606.05250, section 6.1.
    """
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def holds(said: Sequence[str], gold: Sequence[str]) -> bool:
    """Return whether the words of a gold answer occur consecutively in `said`; an empty gold answer never
    does.
    """
    size = len(gold)
    return size > 0 and any(list(said[at : at + size]) == list(gold) for at in range(len(said) - size + 1))


def correct(given: Given, golds: Sequence[str], answerable: bool | None) -> bool | None:
    """Return whether the answer counts as right by the rule in `JUDGED_BY`, or None without anything to
    compare.
    """
    if given.abstained:
        return True if answerable is False else False if golds else None
    if not golds and answerable is not False:
        return None
    said = words(unmarked(given.text))
    for gold in map(words, golds):
        content = _stems(gold)
        if gold in (["yes"], ["no"]):
            met = said[:1] == gold
        elif len(gold) <= SHORT or not content:
            met = holds(said, gold)
        else:
            met = len(content & _stems(said)) >= SHARE * len(content)
        if met:
            return True
    return False


def _stems(text: Iterable[str]) -> set[str]:
    """Return the stems of the content words."""
    stop, stem = _english()
    return {stem(word) for word in text if word not in stop}


@cache
def _english() -> tuple[frozenset[str], Callable[[str], str]]:
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    stop = frozenset(word.translate(_PUNCTUATION) for word in STOPWORDS_EN_PLUS)
    return stop, Stemmer.Stemmer("english").stemWord


def supported(
    given: Given, right: bool | None, answerable: bool | None, relevant: frozenset[str]
) -> bool | None:
    """Return whether the answer is right and cites a labelled passage, or None if no passage is labelled."""
    if answerable is False and (given.abstained or not right):
        return given.abstained
    if not answerable or right is None or not relevant:
        return None
    return right and not given.wrong and not relevant.isdisjoint(given.citations)


def _cited(given: Given, relevant: frozenset[str]) -> Measured:
    """Citation precision and recall against labels.

    After Gao et al. 2023, "Enabling Large Language Models to Generate Text with Citations", arXiv:2305.14627,
    section 3, whose judge is a model that reads the passages; here it is the labels.
    """
    if given.abstained or not relevant:
        return {}
    count = len(given.citations) + len(given.wrong)
    good = sum(id in relevant for id in given.citations)
    found: Measured = {"citation_precision": good / count if count else None}
    # The markers that are not wrong name the citations in order of first mention.
    numbers = [number for number in markers(given.text) if number not in given.wrong]
    parts = sentences(given.text)
    if parts and len(numbers) == len(given.citations):
        ids = dict(zip(numbers, given.citations, strict=True))
        found["citation_recall"] = sum(
            any(ids.get(number) in relevant for number in markers(part)) for part in parts
        ) / len(parts)
    return found
