"""Steps about metadata: conditions read from the question, and the age of documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, create_model

from core.backends.prompting.prompts import CONDITIONS
from core.backends.prompting.replies import read_form, strict_schema
from core.corpus.metadata import Field
from core.domain.errors import BadInput
from core.domain.filters import Filter, Operator, described, operator_of
from core.domain.outputs import FilterRead, FiltersRead, Reranked
from core.domain.outputs import Rerank as Reordered
from core.domain.types import Hit, Ranking
from core.steps.question_filters import Named, dated, read
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
        """Extract the conditions on documents that `text` states. A condition that matches no passage, alone
        or combined with the earlier ones, is dropped with a reason.

        Source: LangChain 2023, SelfQueryRetriever, where a model writes the filters; see `question_filters`
        for the rules.
        """
        corpus = self.context.corpus
        fields = corpus.metadata.fields
        found: list[FilterRead] = []
        held = self.context.where
        if not fields:
            self.span.attributes["note"] = f"the documents of corpus {corpus.name} have no metadata"
        else:
            named = read(text, fields) if by == "rules" else self._asked(text, fields)
            for one in named:
                alone, why = self._usable(one.filter, held)
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
        self.span.output = Reordered(
            f"age by {field.name}",
            tuple(
                Reranked(hits[at].passage.id, at + 1, hits[at].score, score, {"age in days": (age, factor)})
                for score, at, age, factor in weighed
            ),
            scored=len(hits),
        )
        return tuple(Hit(hits[at].passage, score) for score, at, _, _ in weighed)

    def _usable(self, one: Filter, held: tuple[Filter, ...]) -> tuple[int, str]:
        """Return how many passages match a condition, and why it cannot be combined with `held` ("" if it
        can).
        """
        try:
            alone = self._met((one,))
        except BadInput as error:
            return 0, str(error)
        if not alone:
            return 0, "no passage meets it"
        return alone, "" if self._met((*held, one)) else f"none is left together with {described(held)}"

    def _met(self, where: Sequence[Filter]) -> int:
        allowed = self.context.corpus.allowed(where)
        return self.context.corpus.size if allowed is None else int(allowed.sum())

    def _asked(self, text: str, fields: Sequence[Field]) -> list[Named]:
        """Ask the model for conditions, and keep those that name an existing field and value."""
        shown = fields[:FIELDS]
        form = _form([one.name for one in shown])

        def wrong(reply: str) -> str | None:
            read = read_form(WrittenConditions, reply)
            return read if isinstance(read, str) else None

        reply = self._ask(
            CONDITIONS,
            max_tokens=150,
            schema=strict_schema(form),
            unusable=wrong,
            reuse_prefix=True,
            question=text,
            fields="\n".join(map(_in_prompt, shown)),
        )
        read = read_form(WrittenConditions, reply.text)
        if isinstance(read, str):
            self.span.attributes["note"] = f"no filter: {read}"
            return []
        found, refused = [], []
        for one in read.filters[:MAX_CONDITIONS]:
            if not one.field:
                refused.append("a condition without a field")
                continue
            try:
                made = Filter(one.field, operator_of(one.operator), (one.value[:LONGEST_VALUE],))
            except BadInput as error:
                refused.append(str(error))
                continue
            found.append(Named(made, ""))
        if refused:
            self.span.attributes["refused"] = refused
        return found


def _in_prompt(field: Field) -> str:
    values = ", ".join(value[:MAX_VALUE_CHARS] for value in field.values[:VALUES])
    return f"{field.name} ({field.kind}): {values}"


def _form(fields: Sequence[str]) -> type[BaseModel]:
    """Build the reply schema: conditions on some of `fields`."""
    names: Any = Literal[tuple(fields)]
    operators: Any = Literal[tuple(one for one in get_args(Operator) if one != "in")]
    condition: Any = create_model(
        "Condition", field=(names, ...), operator=(operators, ...), value=(str, ...)
    )
    return create_model("Conditions", filters=(list[condition], ...))
