"""Steps that ask a database: the tables a question is about, the query, its result in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from core.backends.prompting.citations import Draft
from core.backends.prompting.prompts_tables import SQL, SQL_REPAIR
from core.backends.prompting.untrusted import between
from core.backends.second_bm25 import RankBM25Index
from core.backends.sql import Database, Limits, Rejected, Result, SqlError
from core.backends.sql.linking import Link, connect, link, shown
from core.backends.terms import Analyzer, analyzer
from core.corpus.table_files import described
from core.domain.errors import Cancelled, ModelFailed, RouteScopeError, describe
from core.domain.needs import Need
from core.domain.outputs import Decision as DecisionOutput
from core.domain.outputs import Pass, Selection
from core.domain.types import Answer, Ranking
from core.steps.decisions import Decided
from core.steps.generate import Generate
from core.steps.step import step
from core.steps.table_result import Asked, Attempt, Decision, extract_sql, said, table_hits

Source = Literal["tables", "csv"]
Side = Literal["both", "tables only", "passages only", "neither"]

COLUMNS = 60  # of all tables together, up to which all are shown to the model
WRITTEN = 220  # tokens of a query
LOOK_S = 1.5  # seconds for looking up the values that a question names
CHOICES = ("all tables", "some tables", "no tables")
K = 60  # of reciprocal rank fusion, as in `rrf`


@dataclass(frozen=True, slots=True)
class Sides(Decided):
    """Which of the two sides an answer is made from."""

    decision: Side
    why: str

    FIRES = (("both", "passages only"),)


class AskTables(Generate):
    """SQL over the corpus' database, or over its CSV files."""

    def ask_tables(
        self, question: str, source: Source = "tables", tables: int = 6, repairs: int = 1, rows: int = 200
    ) -> Asked:
        """All of it as one tool: the result of a query, or what it failed at, in `error`.

        A model that fails is such an error too, and shown on the step. Raises Unavailable without tables.
        """
        return self._ask_tables(question, source, tables, repairs, rows)

    @step("TOOL", "ask the tables")
    def _ask_tables(self, question: str, source: Source, tables: int, repairs: int, rows: int) -> Asked:
        try:
            links = self.link_values(question, source)
            chosen = self.choose_tables(question, links, tables, source)
            return self.query_tables(question, chosen, links, repairs, rows, source)
        except ModelFailed as error:
            self.span.error = str(error)
            why = "the model gave no query"
            return Asked("", (), (), "", (), self._database(source).name, "failed", why, str(error))

    @step("RETRIEVER", "look up values")
    def link_values(self, text: str, source: Source) -> tuple[Link, ...]:
        """Stored values that the question names; see `linking.link`."""
        left = self.context.left()
        links, note = link(
            self._database(source),
            text,
            _words(self.context.corpus.info.language).stop_words,
            min(LOOK_S, left),
            self.context.cancel.is_set,
        )
        self.context.left()
        self.span.output = Pass([str(one) for one in links])
        if note:
            self.span.attributes["note"] = note
            if left < LOOK_S:  # looking ended with the route's own time
                self.context.trace.cut_short()
        return links

    @step("RETRIEVER", "choose tables")
    def choose_tables(self, text: str, links: tuple[Link, ...], most: int, source: Source) -> tuple[str, ...]:
        """The tables the model is shown, in the order of the database.

        All of a small schema. Of a large one the `most` best by reciprocal rank of BM25 and cosine of each
        table's description, and besides those with a value the question names word for word, and those that
        foreign keys need to join them.
        """
        database = self._database(source)
        tables = database.tables
        self.span.attributes["database"] = database.name
        columns = sum(len(table.columns) for table in tables)
        if len(tables) <= most and (columns <= COLUMNS or len(tables) <= 1):
            why = f"{len(tables)} tables with {columns} columns: at most {most} with {COLUMNS}"
            self.span.output = DecisionOutput(
                "all tables" if tables else "no tables", CHOICES,
                why if tables else "the database has no table",
                details={"tables": [{"name": table.name} for table in tables]},
            )  # fmt: skip
            return tuple(table.name for table in tables)
        texts = [described(database, table) for table in tables]
        words = RankBM25Index(texts, _words(self.context.corpus.info.language)).scores(text)
        cosines = self.context.embedder.embed(texts) @ self.embed(text)
        fused = sum(
            np.where(scores > floor, 1 / (K + 1 + np.argsort(np.argsort(-scores, kind="stable"))), 0.0)
            for scores, floor in ((words, 0.0), (cosines, -2.0))
        )
        order = np.argsort(-np.asarray(fused), kind="stable")
        best = [tables[at].name for at in order[:most]]
        linked = [one.table for one in links if one.exact and one.table not in best]
        joined = connect(tuple(dict.fromkeys([*best, *linked])), tables)
        self.span.output = DecisionOutput(
            "some tables",
            CHOICES,
            f"the best {most} of {len(tables)} by BM25 and cosine"
            + (f", {', '.join(dict.fromkeys(linked))} for a value of the question" if linked else "")
            + (f", {', '.join(extra)} to join them" if (extra := joined[len({*best, *linked}) :]) else ""),
            details={
                "tables": [
                    {"name": tables[at].name, "bm25": float(words[at]), "cosine": float(cosines[at])}
                    for at in order
                ]
            },
        )
        return tuple(table.name for table in tables if table.name in joined)

    @step("AGENT", "write and run SQL")
    def query_tables(
        self,
        text: str,
        tables: tuple[str, ...],
        links: tuple[Link, ...],
        repairs: int,
        rows: int,
        source: Source,
    ) -> Asked:
        """A query written by the model and run under the guard; after an error it is written anew, at most
        `repairs` times.

        Source: Rajkumar et al. 2022, arXiv:2204.00498 (schema and values in the prompt); Chen et al. 2023,
        "Teaching Large Language Models to Self-Debug", arXiv:2304.05128 (the error given back to the model).
        """
        database = self._database(source)
        if not tables:
            why = "the database has no table"
            return Asked("", (), (), "", (), database.name, "failed", why, why)
        attempts: list[Attempt] = []
        kind: Decision = "failed"
        while len(attempts) <= repairs:
            last = attempts[-1] if attempts else Attempt("")
            sql = self.write_sql(text, tables, links, last, source)
            if not sql:
                why = "the model says that the tables do not contain it"
                done = (*attempts, Attempt("", why))
                return Asked("", (), (), "", tables, database.name, "failed", why, why, done)
            try:
                result = self.run_sql(sql, rows, source)
            except SqlError as error:
                kind = "rejected by the guard" if isinstance(error, Rejected) else "failed"
                attempts.append(Attempt(sql, str(error)))
                continue
            attempts.append(Attempt(sql))
            count = f"{len(result.rows)} {'row' if len(result.rows) == 1 else 'rows'}"
            again = f", after {len(attempts) - 1} that did not run" if len(attempts) > 1 else ""
            nulls = len(result.rows) == 1 and all(value is None for value in result.rows[0])
            if nulls:  # SUM, MAX and the like over no rows
                count = "only NULL, as it met no row"
            kind = "no rows" if nulls or not result.rows else "repaired" if again else "answered"
            return Asked(
                sql, result.columns, () if nulls else result.rows, result.truncated, tables, database.name,
                kind, f"the query returned {count}{again}", "", tuple(attempts),
            )  # fmt: skip
        wrong = attempts[-1].error
        why = f"{len(attempts)} of {repairs + 1} allowed attempts: {wrong}"
        return Asked(attempts[-1].sql, (), (), "", tables, database.name, kind, why, wrong, tuple(attempts))

    @step("LLM", "write SQL")
    def write_sql(
        self, text: str, tables: tuple[str, ...], links: tuple[Link, ...], failed: Attempt, source: Source
    ) -> str:
        """The model's query, as it wrote it; "" where it says that the tables do not hold the answer.

        `failed`: the attempt before, which is to be corrected.
        """
        database = self._database(source)
        known = [table for name in tables if (table := database.table(name)) is not None]
        parts = [
            between(number, table.name, made)
            for number, (table, made) in enumerate(zip(known, shown(database, known), strict=True), 1)
        ]
        named = [str(one) for one in links if one.table in tables]
        values = (
            between(len(parts) + 1, "Values that the question may name", "\n".join(named)) if named else ""
        )
        told = "\n".join(parts)
        values = f"{values}\n\n" if values else ""
        if not failed.sql:
            reply = self._ask(
                SQL, max_tokens=WRITTEN, reuse_prefix=True, tables=told, values=values, question=text
            )
        else:
            reply = self._ask(
                SQL_REPAIR, max_tokens=WRITTEN, reuse_prefix=True, tables=told, values=values, question=text,
                sql=failed.sql[:2_000], error=failed.error[:300],
            )  # fmt: skip
        return extract_sql(reply.text)

    @step("TOOL", "run SQL")
    def run_sql(self, sql: str, rows: int, source: Source) -> Result:
        """The rows of one SELECT; what is wrong with it is raised, and on the step."""
        database = self._database(source)
        with self.context.at_most(Limits().seconds) as seconds:
            limits = Limits(seconds=seconds, rows=rows)
            self.span.attributes |= {"database": database.name, "limits": limits}
            try:
                return database.query(sql, limits=limits, cancelled=self.context.cancel.is_set)
            except SqlError:
                self.context.left()  # the route was stopped: that is what ended the query
                raise

    def answer_tables(self, text: str, asked: Asked) -> Answer:
        """The outcome of a route that asks tables: a sentence about the result, which is cited as a passage.

        The model writes it where answers are asked for by model; without rows there is no answer. Rows that
        a query for the question gave need no check whether they hold the answer.
        """
        hits = self.result_passage(asked)
        style = self.context.answering
        if not hits or style is None or style.by != "model":
            return self.say_result(asked).over(hits)
        found = self.ranked(hits)
        try:
            return self.write_answer(text, hits, {}, style.order, 0.0).over(hits)
        except Cancelled:
            raise
        except RouteScopeError as error:
            return replace(found, error=describe(error))

    @step("CHAIN", "take the result as a passage")
    def result_passage(self, asked: Asked) -> Ranking:
        """See `table_hits`."""
        self.span.output = Selection("named", why="the result of the query")
        return table_hits(asked)

    @step("CHAIN", "say the result")
    def say_result(self, asked: Asked) -> Draft:
        """The result in one sentence without a model, or what there is instead of a result."""
        return said(asked)

    def beside(self, tables: Callable[[], Asked], passages: Callable[[], Ranking]) -> tuple[Asked, Ranking]:
        """`parallel` for the two sides."""
        asked, found = self.parallel(tables, passages)
        return cast("Asked", asked), cast("Ranking", found)

    @step("EVALUATOR", "choose the side")
    def choose_side(self, asked: Asked, hits: Ranking) -> Sides:
        """Which of tables and passages there is to answer from."""
        rows, found = len(asked.rows), len(hits)
        told = f"the tables: {asked.decision} ({asked.why}); search found {found} passages"
        if rows:
            return Sides("both" if found else "tables only", told)
        return Sides("passages only" if found else "neither", told)

    def _database(self, source: Source) -> Database:
        found: Database = self.context.prepared(Need.TABLES if source == "tables" else Need.CSV)
        return found


def _words(language: str) -> Analyzer:
    return analyzer(language)
