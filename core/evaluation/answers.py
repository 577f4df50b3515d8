"""Measures of one answer: against gold answers, labelled passages, whether there was one to give, and the
rows of a gold query. None of them is a person's judgement, and none asks a model.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import string
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean

from core.analysis.metrics import ANSWERS
from core.backends.prompting.citations import markers, sentences, unmarked
from core.backends.sql import Database, QueryLimits, SqlError, Value
from core.backends.sql.guard import ordered
from core.corpus import table_files
from core.corpus.load import readable_files
from core.domain.errors import Unavailable
from core.domain.relevance import SUPPORT, NuggetSupport
from core.evaluation.dataset import Evidence, LabelledSet, Nugget, Written
from core.evaluation.outcome import Outcomes
from core.store.labels import MODEL

SHORT = 5  # words of a gold answer that has to stand in the answer as it is
SHARE = 0.5  # of the content words of a longer gold answer that an answer must have
EXPLAINED = tomllib.loads(Path(__file__).with_name("data").joinpath("explained.toml").read_text("utf-8"))
JUDGED_BY = {name: text.format(short=SHORT, share=SHARE) for name, text in EXPLAINED["answers"].items()}

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
    """Every measure of one answer but those of nuggets; `relevant` are the ids of the passages labelled
    relevant.

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


def answer_digest(answer: str) -> str:
    """Return what an answer's nuggets are assigned under: equal for answers that differ in markers alone."""
    return hashlib.sha256(" ".join(unmarked(answer).split()).encode("utf-8", "replace")).hexdigest()[:16]


def nugget_support(nugget: Nugget, given: Given, *, people: bool = False) -> NuggetSupport | None:
    """Return how far an answer contains a nugget: what people assigned, the lower median if they differ, else
    what the model did, unless people's alone are asked for. An abstention contains none.
    """
    if given.abstained:
        return "not_support"
    said = nugget.support.get(answer_digest(given.text), {})
    theirs = [level for level in SUPPORT for who in said if said[who] == level and not who.startswith(MODEL)]
    if theirs or people:
        return theirs[(len(theirs) - 1) // 2] if theirs else None
    return next(iter(said.values()), None)


def nugget_levels(nuggets: Sequence[Nugget], given: Given) -> list[tuple[Nugget, NuggetSupport | None]]:
    """Return each nugget with how far an answer contains it; None if nobody assigned that."""
    return [(one, nugget_support(one, given)) for one in nuggets]


def nugget_scores(given: Given, nuggets: Sequence[Nugget]) -> Measured:
    """Return vital_recall and nugget_score of an answer; {} without nuggets, or if one is not assigned.

    With s = 1 for support, 0.5 for partial support and 0 for none, nugget_score is the sum of s over all
    nuggets / their number ("All"). vital_recall counts full support of vital nuggets alone: vital nuggets
    supported / vital nuggets ("Vital Strict").

    Source: Pradeep et al. 2025, "The Great Nugget Recall", arXiv:2504.15068; used by TREC 2025 RAG,
    arXiv:2603.09891.
    """
    levels = [(one, level) for one, level in nugget_levels(nuggets, given) if level is not None]
    if not levels or len(levels) < len(nuggets):
        return {}
    vital = [level == "support" for one, level in levels if one.vital]
    whole = fmean(SUPPORT[level] for _, level in levels)
    return {"vital_recall": fmean(vital) if vital else None, "nugget_score": whole}


METRIC = "execution_accuracy"
ANSWER = "answer_accuracy"
ROWS_TOLD = 50  # different gold rows whose values an answer has to tell
WORDS_MORE = 30  # words that an answer may have besides twice those of the gold values
TOLD_BY = EXPLAINED["queries"]["rule"].format(told=ROWS_TOLD, more=WORDS_MORE)
NUMBERS_CLOSE = 1e-3  # share by which a number in an answer may differ from one that is not whole
CLOSE = 1e-6  # numbers that differ by less, or by that share, are equal
WHOLE = QueryLimits(seconds=10.0, rows=10_000, value=10_000, result=10_000_000)
PERMUTATIONS = 2_000  # orders of columns that are tried
Row = tuple[Value, ...]
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Executed:
    """The values by route and question: 1 or 0, None if there is nothing to compare. `excluded` are the ids
    of questions whose gold query fails or returns too many rows to compare.
    """

    values: Mapping[str, Mapping[str, Mapping[str, float | None]]]
    excluded: tuple[str, ...] = ()

    def remark(self) -> str | None:
        """Return a remark on the excluded questions, or None if nothing was excluded."""
        if not self.excluded:
            return None
        what = f"{len(self.excluded)} questions are excluded, such as {self.excluded[0]!r}"
        return f"{METRIC} and {ANSWER}: {what}: their gold SQL does not run or returns too much"


def measured(
    labelled: LabelledSet, outcomes: Outcomes, routes: Sequence[str], database: Database
) -> Executed:
    """Measure execution accuracy of the routes that wrote SQL, and answer accuracy of those that answered.

    A question at which a route failed has no value; one that asked no table has no execution accuracy, one
    that wrote no answer no answer accuracy. A query that was given up ("") counts as wrong: both are 0.

    Source: Yu et al. 2018 (Spider), arXiv:1809.08887, section 5, as computed in the test suites of Zhong et
    al. 2020, arXiv:2010.02840: rows as a multiset, in order only if the gold query has ORDER BY at its top;
    the columns may stand in any order, their names do not count, their number does.
    """
    asked = {q.id: q.sql for q in labelled.questions if q.sql and q.id in outcomes}
    results = {id: rows_of(sql, database) for id, sql in asked.items()}
    gold = {id: rows for id, rows in results.items() if rows is not None}
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    for route in routes:
        for id, wanted in gold.items():
            outcome = outcomes[id].get(route)
            if outcome is None or outcome.status != "ok":
                continue
            figures: dict[str, float | None] = {}
            if "sql" in outcome.said:
                rows = rows_of(outcome.said["sql"], database)
                figures[METRIC] = float(rows is not None and same(wanted, rows, in_order=ordered(asked[id])))
            if outcome.answer is not None:
                figures[ANSWER] = float(tells(outcome.answer, outcome.abstained, wanted))
            if figures:
                values.setdefault(route, {})[id] = figures
    return Executed(values, tuple(id for id in asked if id not in gold))


def tells(answer: str, abstained: bool, rows: Sequence[Row]) -> bool:
    """Return whether an answer contains the rows of a gold query, by the rule in `TOLD_BY`. The bound on
    words keeps an answer that lists everything from being right.
    """
    distinct = list(dict.fromkeys(rows))
    wanted = [value for row in distinct[:ROWS_TOLD] for value in row if value is not None]
    if not wanted or abstained:
        return abstained and not wanted
    text = unmarked(answer)
    numbers = [float(one.replace(",", "")) for one in _NUMBER.findall(text)]
    said = _words(text)
    values = list(dict.fromkeys(wanted))
    if len(distinct) > ROWS_TOLD and len(rows) not in numbers and len(distinct) not in numbers:
        return False
    told = [_told(value, said, numbers) for value in values]
    return all(told) and len(said) <= 2 * sum(len(_words(str(value))) for value in wanted) + WORDS_MORE


def _told(value: Value, said: Sequence[str], numbers: Sequence[float]) -> bool:
    """Return whether a value occurs in an answer, given as its words and its numbers."""
    if isinstance(value, int):
        return value in numbers
    if isinstance(value, float):
        close = 0.0 if value.is_integer() else NUMBERS_CLOSE
        return any(math.isclose(value, one, rel_tol=close, abs_tol=CLOSE) for one in numbers)
    wanted = _words(str(value))
    return not wanted or holds(said, wanted)


def _words(text: str) -> list[str]:
    """Words in lower case, accents and all, without what stands around and between them."""
    return _WORD.findall(text.casefold())


def rows_of(sql: str, database: Database) -> Sequence[Row] | None:
    """Return the rows that a query gives, or None if it fails or gives too many to compare."""
    try:
        found = database.query(sql, limits=WHOLE)
    except SqlError:
        return None
    return None if found.truncated else found.rows


def same(wanted: Sequence[Row], given: Sequence[Row], *, in_order: bool) -> bool:
    """Return whether two results are equal except for the order of columns, and of rows unless `in_order`."""
    if len(wanted) != len(given):
        return False
    if not wanted:
        return True
    if len(wanted[0]) != len(given[0]):
        return False
    for order in itertools.islice(_orders(wanted, given), PERMUTATIONS):
        turned = [tuple(row[at] for at in order) for row in given]
        if _equal(wanted, turned) if in_order else _equal(_sorted(wanted), _sorted(turned)):
            return True
    return False


def _orders(wanted: Sequence[Row], given: Sequence[Row]) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the given columns in which each holds what the wanted column there holds."""
    mine, theirs = (
        [_sorted([(row[at],) for row in rows]) for at in range(len(rows[0]))] for rows in (wanted, given)
    )
    fitting = [[n for n, other in enumerate(theirs) if _equal(column, other)] for column in mine]

    def extend(taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(taken) == len(fitting):
            yield taken
            return
        for n in fitting[len(taken)]:
            if n not in taken:
                yield from extend((*taken, n))

    return extend(())


def _equal(wanted: Sequence[Row], given: Sequence[Row]) -> bool:
    """Return whether all values are equal, numbers as far as CLOSE."""
    for mine, theirs in zip(wanted, given, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            numbers = isinstance(a, int | float) and isinstance(b, int | float)
            if a != b and not (numbers and math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE)):  # type: ignore[arg-type]
                return False
    return True


def _sorted(rows: Sequence[Row]) -> list[Row]:
    """NULL, numbers, texts; numbers as far as they count, so that a last digit does not reorder rows."""

    def key(row: Row) -> list[tuple[int, float, str]]:
        return [
            (0, 0.0, "")
            if value is None
            else (1, float(f"{value:.6g}"), "")
            if isinstance(value, int | float)
            else (2, 0.0, value)
            for value in row
        ]

    return sorted(rows, key=key)


def with_tables(written: Written, folder: Path) -> Written:
    """`written` with the tables that each gold query reads as its evidence, where the corpus' documents are
    the tables of its one database: finding them is what a search can do for such a question.
    """
    found = table_files.databases(folder)
    if len(found) != 1 or readable_files(folder) != found:
        return written
    try:
        database = Database(found[0], found[0].name)
    except Unavailable:
        return written  # the corpus reports it when it is asked
    name = found[0].relative_to(folder).as_posix()
    evidence = dict(written.evidence)
    for question in written.questions:
        if question.sql and not evidence.get(question.id):
            try:
                read = database.reads(question.sql)
            except SqlError:
                continue  # its gold query does not run: it has no label
            evidence[question.id] = tuple(Evidence(f"{name}/{table}", 3, where=question.id) for table in read)
    return replace(written, evidence=evidence)
