"""Steps about metadata: conditions read from the question, and the age of documents."""

from __future__ import annotations

import re
from calendar import month_name
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, create_model

from core.backends.prompting.prompts import CONDITIONS
from core.backends.prompting.replies import read_form, strict_schema
from core.corpus.metadata import Field, days, field_name
from core.domain.errors import BadInput
from core.domain.filters import Filter, Operator, described, operator_of
from core.domain.outputs import FilterRead, FiltersRead, Reranked
from core.domain.outputs import Rerank as Reordered
from core.domain.program import table
from core.domain.types import Hit, Ranking
from core.steps.retrieve import Retrieve
from core.steps.step import step

By = Literal["rules", "model"]
VALUES, FIELDS = 4, 12  # of a field, and fields, that a prompt names: it is read at 60 tokens a second
MAX_VALUE_CHARS = 40  # characters of a value that a prompt shows
UNDATED = "no document has a date in its metadata"
GAP = 3650  # days
MAX_CONDITIONS = 5  # conditions that the model may give
LONGEST_VALUE = 100  # characters of a value of these


class WrittenCondition(BaseModel):
    """A condition as a model wrote it: each is checked by itself."""

    field: str = ""
    operator: str = ""
    value: str = ""


class WrittenConditions(BaseModel):
    """The minimal schema of a reply with conditions."""

    filters: list[WrittenCondition]


class Conditions(Retrieve):
    """Searching by metadata."""

    @step("CHAIN", "read filters from the question", returns=FiltersRead)
    def read_filters(self, text: str, by: By = "rules") -> FiltersRead:
        """Generate the conditions on documents that `text` states. A condition that matches no passage, alone
        or combined with the earlier ones, is dropped with a reason.

        Source: LangChain 2023, SelfQueryRetriever, where a model writes the filters; see `question_filters`
        for the rules.
        """
        corpus = self.context.corpus
        fields = corpus.metadata.fields
        found: list[FilterRead] = []
        held = self.context.where
        named: Sequence[Named] = ()
        if not fields:
            self.note(f"the documents of corpus {corpus.name} have no metadata")
        else:
            named = read(text, fields) if by == "rules" else self._asked(text, fields)
        for one in named:
            alone, why = 0, ""
            try:
                alone = self._met((one.filter,))
            except BadInput as error:
                why = str(error)
            if not alone:
                why = why or "no passage meets it"
            elif not self._met((*held, one.filter)):
                why = f"none is left together with {described(held)}"
            found.append(FilterRead(one.filter, one.words, alone, why))
            held = held if why else (*held, one.filter)
        return FiltersRead(tuple(found), self._met(held), corpus.size, by)

    @step("RERANKER", "weigh by age", returns=Ranking)
    def by_age(self, hits: Ranking, half_life: float) -> Ranking:
        """`hits` by score times 0.5 to the power of age / `half_life`, both in days; ties by id. The age is
        that before the newest document of the corpus, by the field of dates that most documents have; one
        dated more than GAP days after all others counts as no newer than they are. A document without a date
        counts as old as the median. Where no document has one, `hits` as they are.

        Source: Li & Croft 2003, "Time-Based Language Models", doi:10.1145/956863.956951, an exponential prior
        on the age.
        """
        corpus = self.context.corpus
        field = dated(corpus.metadata.fields)
        if field is None:
            self.span.output = Reordered("age", unmoved=UNDATED)
            return hits
        days = corpus.days(field.name)
        dates = np.unique(days[~np.isnan(days)])
        newest, middle = float(dates[-1]), float(np.nanmedian(days))
        if len(dates) > 2 and newest - dates[-2] > GAP:
            newest = float(dates[-2])
        own = corpus.by_ids([hit.passage.id for hit in hits])
        weighed = []
        for at, hit in enumerate(hits):
            day = float(days[corpus.row(hit.passage.id)]) if hit.passage.id in own else np.nan
            age = max(0.0, newest - (middle if np.isnan(day) else day))
            factor = 0.5 ** (age / half_life)
            weighed.append((hit.score * factor, at, age, factor))
        weighed.sort(key=lambda one: (-one[0], hits[one[1]].passage.id))
        moved = tuple(
            Reranked(hits[at].passage.id, at + 1, hits[at].score, score, {"age in days": (age, factor)})
            for score, at, age, factor in weighed
        )
        self.span.output = Reordered(f"age by {field.name}", moved, scored=len(hits))
        return tuple(Hit(hits[at].passage, score) for score, at, _, _ in weighed)

    def _met(self, where: Sequence[Filter]) -> int:
        allowed = self.context.corpus.allowed(where)
        return self.context.corpus.size if allowed is None else int(allowed.sum())

    def _asked(self, text: str, fields: Sequence[Field]) -> list[Named]:
        """Ask the model for conditions, and keep those that name an existing field and value."""
        lines = []
        for field in fields[:FIELDS]:
            values = ", ".join(value[:MAX_VALUE_CHARS] for value in field.values[:VALUES])
            lines.append(f"{field.name} ({field.kind}): {values}")
        read = self._read(
            CONDITIONS,
            partial(read_form, WrittenConditions),
            max_tokens=150,
            schema=strict_schema(_form([one.name for one in fields[:FIELDS]])),
            reuse_prefix=True,
            question=text,
            fields="\n".join(lines),
        )
        if isinstance(read, str):
            self.note(f"no filter: {read}")
            return []
        found, refused = [], []
        for one in read.filters[:MAX_CONDITIONS]:
            try:
                if not one.field:
                    raise BadInput("a condition without a field")
                made = Filter(one.field, operator_of(one.operator), (one.value[:LONGEST_VALUE],))
                found.append(Named(made, ""))
            except BadInput as error:
                refused.append(str(error))
        if refused:
            self.span.attributes["refused"] = refused
        return found


def _form(fields: Sequence[str]) -> type[BaseModel]:
    """Build the reply schema: conditions on some of `fields`."""
    names: Any = Literal[tuple(fields)]
    operators: Any = Literal[tuple(one for one in get_args(Operator) if one != "in")]
    parts: Any = {"field": (names, ...), "operator": (operators, ...), "value": (str, ...)}
    condition: Any = create_model("Condition", **parts)
    return create_model("Conditions", filters=(list[condition], ...))


MAX_FIELD_VALUES = 1_000  # values of a field from which names are no longer looked for in questions
SHORTEST = 2  # characters of a name
_COMPARED: dict[str, Operator] = {"since": ">=", "after": ">", "before": "<", "until": "<="}
_patterns = table(__file__)
OVER: list[str] = _patterns.pop("over")
_FOUND = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _patterns.items()}


@dataclass(frozen=True, slots=True)
class Named:
    """A condition, and the words of the question that it was read from."""

    filter: Filter
    words: str


def read(text: str, fields: Sequence[Field]) -> tuple[Named, ...]:
    """Find the conditions on documents that `text` names, using the available `fields`, in the order of the
    question: one per field, but for dates and numbers one per comparison operator.
    """
    rules = (_explicit, _dates, _states, _versions, _names)
    found = sorted((one for rule in rules for one in rule(text, fields)), key=lambda one: one[0])
    ranged = {field.name for field in fields if field.kind != "text"}  # which may have two bounds
    first: dict[tuple[str, str], Named] = {}
    for _, one in found:
        bound = one.filter.operator if one.filter.field in ranged else ""
        first.setdefault((one.filter.field, bound), one)
    return tuple(first.values())


def _explicit(text: str, fields: Sequence[Field]) -> Iterator[tuple[int, Named]]:
    """Conditions as filters are written, with a colon for "contains" or "is"."""
    known = {field_name(one.name): one for one in fields}
    for match in _FOUND["written_out"].finditer(text):
        field = known.get(field_name(match[1]))
        if field is None:
            continue
        colon: Operator = "~" if field.kind == "text" else "="
        operator = colon if match[2] == ":" else operator_of(match[2])
        value = match[3].strip('"').rstrip(".,;")
        if value:
            yield match.start(), Named(Filter(field.name, operator, (value,)), match[0])


def _dates(text: str, fields: Sequence[Field]) -> Iterator[tuple[int, Named]]:
    """When documents were written or changed."""
    if (field := dated(fields)) is None:
        return
    for match in _FOUND["when"].finditer(text):
        if (value := iso(match[2])) and days(value):
            operator = _COMPARED.get(match[1].lower(), "=")
            yield match.start(), Named(Filter(field.name, operator, (value,)), match[0])


def _states(text: str, fields: Sequence[Field]) -> Iterator[tuple[int, Named]]:
    """Find conditions on validity, if a field marks which documents no longer apply."""
    marked: list[tuple[int, Field, str]] = []  # documents that no longer apply, the field that says so, how
    for field in (one for one in fields if one.kind == "text"):
        over = {at: w for at, v in enumerate(field.values[:MAX_FIELD_VALUES]) for w in OVER if w in v.lower()}
        if over:
            word = next(w for w in OVER if w in over.values())
            marked.append((sum(field.counts[at] for at in over), field, word))
    if not marked:
        return
    _, field, word = max(marked, key=lambda one: one[0])  # one document's odd value decides nothing
    if match := _FOUND["no_longer"].search(text):
        yield match.start(), Named(Filter(field.name, "~", (word,)), match[0])
    elif match := _FOUND["in_force"].search(text):
        yield match.start(), Named(Filter(field.name, "!~", (word,)), match[0])


def _versions(text: str, fields: Sequence[Field]) -> Iterator[tuple[int, Named]]:
    named = (one for one in fields if one.name.lower() == "version")
    field = next((one for one in fields if one.kind == "version"), next(named, None))
    if field is not None and (match := _FOUND["version"].search(text)):
        yield match.start(), Named(Filter(field.name, "=", (match[1],)), match[0])


def _names(text: str, fields: Sequence[Field]) -> Iterator[tuple[int, Named]]:
    """Find names that are values of a field, or parts of values, with a cue next to them. The longest name of
    a field counts.
    """
    lowered = text.lower()
    for field in fields:
        if field.kind != "text" or len(field.values) > MAX_FIELD_VALUES:
            continue
        called = rf"\b{re.escape(field.name.lower().replace('_', ' '))}(?:\s+(?:is|of)|:)?\s+(?:the\s+)?"
        best: tuple[int, re.Match[str]] | None = None
        for name in sorted(names(field.values)):
            if name not in lowered or (best is not None and len(name) <= best[0]):
                continue
            match = re.search(
                rf"(?:{_patterns['by']}|{called})({re.escape(name)})(?!\w)", text, re.IGNORECASE
            )
            match = match or _before_document(name, text)
            if match:
                best = len(name), match
        if best is not None:
            match = best[1]
            yield match.start(), Named(Filter(field.name, "~", (match[1],)), match[0])


def _before_document(name: str, text: str) -> re.Match[str] | None:
    """Match a name before a word for documents ("the Claims team's notes", "in the runbooks"). It must have
    several words or be capitalised, as single words are often the question's subject.
    """
    if _FOUND["document"].fullmatch(name):
        return re.search(rf"\b(?:in|by)\s+the\s+({re.escape(name)})\b", text, re.IGNORECASE)
    match = re.search(
        rf"(?<!\w)({re.escape(name)})(?:'s)?\s+(?:{_patterns['document']})\b", text, re.IGNORECASE
    )
    as_name = match is not None and match.start() > 0 and match[1][0].isupper()
    return match if " " in name or as_name else None


def names(values: Iterable[str]) -> set[str]:
    """Return the lower-case names in values such as "Claims team (Henrike Stahl)": the whole and its
    parts.
    """
    found = set()
    for value in values:
        parts = re.split(r"\s*[(),;/]\s*|\s+(?:and|with)\s+", value)
        found |= {part.lower() for part in (value, *parts) if len(part) >= SHORTEST}
    return found


def dated(fields: Sequence[Field]) -> Field | None:
    """Return the date field that most documents have, the first of equals, or None."""
    return max((one for one in fields if one.kind == "date"), key=lambda one: one.documents, default=None)


def iso(text: str) -> str | None:
    """Parse a date written in English or in ISO 8601 into YYYY, YYYY-MM or YYYY-MM-DD, or None."""
    if re.fullmatch(r"\d{4}(?:-\d{2}){0,2}", text):
        return text
    year = re.search(r"\d{4}", text)
    month = re.search(r"[A-Za-z]{3,}", text)
    if year is None or month is None:
        return None
    number = [name[:3].lower() for name in month_name].index(month[0][:3].lower())
    day = re.search(r"(?<!\d)\d{1,2}(?!\d)", text)
    return f"{year[0]}-{number:02}" + (f"-{int(day[0]):02}" if day else "")
