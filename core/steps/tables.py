"""Steps that ask a database: the tables a question is about, the query, its result in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar, cast

import numpy as np

from core.backends.prompting.citations import Draft
from core.backends.prompting.prompts import SQL, SQL_REPAIR, Prompt
from core.backends.prompting.untrusted import between
from core.backends.sparse import RankBM25Index
from core.backends.sql import Database, DatabaseTable, QueryLimits, Result, SqlError, SqlRejected
from core.backends.sql.grammar import grammar
from core.backends.sql.guard import SqlFailed
from core.backends.sql.joins import Join, joins
from core.backends.sql.linking import ValueLinks, connect, known_values, link, schema_text, values_text
from core.backends.sql.mending import about_error, about_given, about_nothing, normalised
from core.backends.terms import analyzer
from core.corpus.table_files import described
from core.domain.errors import ModelFailed, ModelTimedOut
from core.domain.needs import Need
from core.domain.outputs import Attempt, Pass, Selection, TableResult
from core.domain.outputs import Decision as DecisionOutput
from core.domain.types import Answer, Ranking
from core.steps.decisions import Decided
from core.steps.fuse import Fuse
from core.steps.generate import Generate
from core.steps.step import step
from core.steps.table_result import Decision, counted, extract_sql, result_draft, table_hits, table_result

Source = Literal["tables", "csv"]
Side = Literal["both", "tables only", "passages only", "neither"]

EMBEDDED = "embedded"  # the endpoint that a grammar bounds
ANOTHER = 0.7  # temperature at which a query that was repeated is asked for again
NOT_THERE = "the model says that the tables do not contain it"
UNSURE = "The result may not be what the question asks for."
COLUMNS = 60  # of all tables together, up to which all are shown to the model
WRITTEN = 200  # tokens of a query
LOOK_S = 1.5  # seconds for looking up the values that a question names
CHOICES = ("all tables", "some tables", "no tables")
K = 60  # of reciprocal rank fusion, as in `rrf`
L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class Sides(Decided):
    """The choice between tables and passages as the source of the answer."""

    decision: Side

    FIRES = (("both", "passages only"),)


@dataclass(frozen=True, slots=True)
class QueryJudgement(Decided):
    """The decision whether a query stands or another is written, with a hint for the next one."""

    decision: Literal["another", "keep"]
    hint: str

    TEXT = "hint"
    FIRES = (("another", "keep"),)


@dataclass(frozen=True, slots=True)
class WrittenSql:
    """A query in a model's reply. `cut`: the reply ended before it did; `bounded`: a grammar bounded it."""

    sql: str
    cut: bool = False
    bounded: bool = False


class AskTables(Generate, Fuse):
    """SQL over the corpus' database, or over its CSV files."""

    @step("TOOL", "ask the tables", returns=TableResult)
    def ask_tables(
        self, question: str, source: Source = "tables", tables: int = 10, repairs: int = 1, rows: int = 200
    ) -> TableResult:
        """All of it as one tool: the result of a query, or what it failed at, in `error`.

        A model that fails is such an error too, and shown on the step. Raises Unavailable without tables.
        """
        try:
            return self.query_database(question, tables, repairs, rows, source)
        except ModelFailed as error:
            self.span.error = str(error)
            why = "the model gave no query"
            return table_result(self._database(source).name, "failed", why, error=str(error))

    def query_database(
        self, question: str, tables: int, repairs: int, rows: int, source: Source
    ) -> TableResult:
        """Query a database with the pipeline all routes share: link values, choose tables, find joins,
        query.
        """
        links = self.link_values(question, source)
        chosen = self.choose_tables(question, links, tables, source)
        joins = self.find_joins(chosen, source)
        return self.query_tables(question, chosen, links, joins, repairs, rows, source)

    @step("RETRIEVER", "look up values", returns=ValueLinks)
    def link_values(self, text: str, source: Source) -> ValueLinks:
        """Find stored values that the question names; see `linking.link`."""
        stop_words = analyzer(self.context.corpus.info.language).stop_words
        found, complete = self._looked(partial(link, self._database(source), text, stop_words))
        return ValueLinks(found, complete)

    @step("RETRIEVER", "find joins", returns=tuple[Join, ...])
    def find_joins(self, tables: tuple[str, ...], source: Source) -> tuple[Join, ...]:
        """Find the join conditions between the tables: foreign keys, or inferred ones; see `joins.joins`."""
        return self._looked(partial(joins, self._database(source), self._known(source, tables)))[0]

    def _looked(self, look: Callable[..., tuple[tuple[L, ...], str]]) -> tuple[tuple[L, ...], bool]:
        """Return what `look` finds in LOOK_S seconds, and whether it looked at everything."""
        left = self.context.left()
        found, note = look(min(LOOK_S, left), self.context.cancel.is_set)
        self.context.left()
        self.span.output = Pass([str(one) for one in found])
        if note:
            self.note(note)
            if left < LOOK_S:  # looking ended with the route's own time
                self.context.trace.cut_short()
        return found, not note

    @step("RETRIEVER", "choose tables", returns=tuple[str, ...])
    def choose_tables(self, text: str, links: ValueLinks, most: int, source: Source) -> tuple[str, ...]:
        """Choose the tables the model sees, in the order of the database.

        A small schema is shown whole. Of a large one, the `most` best tables by reciprocal rank of BM25 and
        cosine of their descriptions are shown, plus those with a value that the question names exactly, and
        those that foreign keys need to join them.
        """
        database = self._database(source)
        tables = database.tables
        self.span.attributes["database"] = database.name
        columns = sum(len(table.columns) for table in tables)
        if len(tables) <= most and (columns <= COLUMNS or len(tables) <= 1):
            why = f"{len(tables)} tables with {columns} columns: at most {most} with {COLUMNS}"
            chosen, why = ("all tables", why) if tables else ("no tables", "the database has no table")
            details = {"tables": [{"name": table.name} for table in tables]}
            self.span.output = DecisionOutput(chosen, CHOICES, why, details=details)
            return tuple(table.name for table in tables)
        texts = [described(database, table) for table in tables]
        words = RankBM25Index(texts, analyzer(self.context.corpus.info.language)).scores(text)
        cosines = self.context.embedder.embed(texts) @ self.embed(text)
        fused = sum(
            np.where(scores > floor, 1 / (K + 1 + np.argsort(np.argsort(-scores, kind="stable"))), 0.0)
            for scores, floor in ((words, 0.0), (cosines, -2.0))
        )
        order = np.argsort(-np.asarray(fused), kind="stable")
        best = [tables[at].name for at in order[:most]]
        linked = [one.table for one in links.found if one.exact and one.table not in best]
        joined = connect(tuple(dict.fromkeys([*best, *linked])), tables)
        why = f"the best {most} of {len(tables)} by BM25 and cosine"
        why += f", {', '.join(dict.fromkeys(linked))} for a value of the question" if linked else ""
        extra = joined[len({*best, *linked}) :]
        why += f", {', '.join(extra)} to join them" if extra else ""
        scored = [
            {"name": tables[at].name, "bm25": float(words[at]), "cosine": float(cosines[at])} for at in order
        ]
        self.span.output = DecisionOutput("some tables", CHOICES, why, details={"tables": scored})
        return tuple(table.name for table in tables if table.name in joined)

    @step("AGENT", "write and run SQL", returns=TableResult)
    def query_tables(
        self,
        text: str,
        tables: tuple[str, ...],
        links: ValueLinks,
        joins: tuple[Join, ...],
        repairs: int,
        rows: int,
        source: Source,
    ) -> TableResult:
        """Let the model write a query and run it under the guard. A query that fails, or finds nothing
        without using the stored values the question names, is followed by another, at most `repairs` times.

        Source: Rajkumar et al. 2022, arXiv:2204.00498 (schema and values in the prompt); Chen et al. 2023,
        "Teaching Large Language Models to Self-Debug", arXiv:2304.05128 (returning the error to the model).
        Here a hint for the repair is added, and a query already tried is not run again.
        """
        database = self._database(source)
        if not tables:
            why = "the database has no table"
            return table_result(database.name, "failed", why, error=why)
        named = links.among(tables)
        bounded = False
        attempts: list[Attempt] = []
        ran: list[Result | SqlError] = []
        mend = ""
        why = ""
        while True:
            failed = Attempt(attempts[-1].sql, mend) if attempts else Attempt("")
            about = text, tables, links, joins, failed, source
            written = self.afford(self.write_sql, *about) if attempts else self.write_sql(*about)
            if written is None:
                why = "the budget was spent before another query"
                break
            if not written.sql or any(normalised(written.sql) == normalised(one.sql) for one in attempts):
                why = "the model wrote no other query" if attempts else NOT_THERE
                break
            bounded = written.bounded
            found: Result | SqlError
            if written.cut:  # the beginning of a query may be valid but means something else
                found = SqlFailed(f"the query was cut off after {WRITTEN} tokens")
            else:
                try:
                    found = self.run_sql(written.sql, rows, source)
                except SqlError as error:
                    found = error
            ran.append(found)
            attempts.append(Attempt(written.sql, str(found) if isinstance(found, SqlError) else "", mend))
            if len(attempts) > repairs:
                break
            judged = self.judge_query(written.sql, found, tables, links, joins, source)
            if judged.decision == "keep":
                break
            mend = judged.hint
        shown = {
            "tables": tables,
            "attempts": tuple(attempts),
            "links": tuple(values_text(named, joins).splitlines()),
            "joins": tuple(map(str, joins)),
            "bounded": bounded,
        }
        return _asked(database.name, attempts, ran, why, repairs, shown)

    @step("EVALUATOR", "decide on another query", returns=QueryJudgement)
    def judge_query(
        self,
        sql: str,
        found: Result | SqlError,
        tables: tuple[str, ...],
        links: ValueLinks,
        joins: tuple[Join, ...],
        source: Source,
    ) -> QueryJudgement:
        """Decide whether another query is written, and with which hint; see `mending`."""
        database, known = self._database(source), self._known(source, tables)
        if isinstance(found, SqlError):
            return QueryJudgement("another", str(found), about_error(str(found), known))
        given = about_given(sql, known)
        if found.rows and not _only_null(found):
            if given:
                return QueryJudgement("another", "it gives back what the question names", given)
            return QueryJudgement("keep", counted(len(found.rows)), UNSURE)
        seconds, stopped = min(LOOK_S, self.context.left()), self.context.cancel.is_set
        nothing = about_nothing(database, sql, known, links.among(tables), joins, seconds, stopped)
        self.context.left()
        if hint := nothing or given:
            return QueryJudgement("another", "no rows, and not for want of the values", hint)
        why = "no rows, and each value stands in the column it is compared with"
        return QueryJudgement("keep", why, UNSURE)

    @step("LLM", "write SQL", returns=WrittenSql)
    def write_sql(
        self,
        text: str,
        tables: tuple[str, ...],
        links: ValueLinks,
        joins: tuple[Join, ...],
        failed: Attempt,
        source: Source,
    ) -> WrittenSql:
        """Return the model's query as written, or "" if it says that the tables do not contain the answer.

        `failed` is the attempt before with the error to report; if the model repeats that query, it is asked
        once more at a higher temperature. The embedded server can write only what the grammar of the tables
        allows (see `sql.grammar`); if it rejects the grammar, the query is written without.
        """
        database, known = self._database(source), self._known(source, tables)
        bound = values = ""
        if self.context.llm.endpoint == EMBEDDED:
            bound = grammar(known, joins, known_values(database, known, links, joins))
        if named := links.among(tables):
            shown = between(2, "Stored values that the question names", values_text(named, joins))
            values = f"{shown}\n\n"
        schema = between(1, "", schema_text(database, known, joins))
        filled, prompt = {"tables": schema, "values": values, "question": text}, SQL
        if failed.sql:
            prompt = SQL_REPAIR
            filled |= {"sql": failed.sql[:2_000], "error": failed.error[:600]}
        self.span.attributes["grammar"] = len(bound)
        written = self._written(prompt, bound, 0.0, filled)
        if failed.sql and normalised(written.sql) == normalised(failed.sql):
            written = self._written(prompt, bound, ANOTHER, filled)
        return written

    def _written(
        self, prompt: Prompt, bound: str, temperature: float, filled: Mapping[str, Any]
    ) -> WrittenSql:
        """Ask for a query, without the grammar if the server rejects it."""
        ask = partial(
            self._ask, prompt, max_tokens=WRITTEN, temperature=temperature, reuse_prefix=True, **filled
        )
        try:
            reply = ask(grammar=bound)
        except ModelTimedOut:
            raise
        except ModelFailed as error:
            if not bound:
                raise
            self.note(f"written without the grammar: {error}")
            bound = ""
            reply = ask()
        return WrittenSql(extract_sql(reply.text), reply.finish == "length", bool(bound))

    @step("TOOL", "run SQL", returns=Result)
    def run_sql(self, sql: str, rows: int, source: Source) -> Result:
        """Run one SELECT and return its rows. Raises SqlError, which the step shows."""
        database = self._database(source)
        with self.context.at_most(QueryLimits().seconds) as seconds:
            limits = QueryLimits(seconds=seconds, rows=rows)
            self.span.attributes |= {"database": database.name, "limits": limits}
            try:
                return database.query(sql, limits=limits, cancelled=self.context.cancel.is_set)
            except SqlError:
                self.context.left()  # the route was stopped: that is what ended the query
                raise

    def answer_tables(self, asked: TableResult) -> Answer:
        """Return the route's answer: the result formatted by a template, so that no column or count is lost,
        and cited as a passage. Without rows there is no answer.
        """
        return self.say_result(asked).over(self.result_passage(asked))

    def answer_both(self, text: str, asked: TableResult, hits: Ranking, shown: int) -> Answer:
        """Return the result in the template's words, followed by the model's text from the result and the
        passages if answers are requested; the result is the first passage.
        """
        ranking = self.append(self.result_passage(asked), hits)
        result = self.say_result(asked)
        written = self.answer(text, ranking, None, shown)
        return self.put_first(result, written).over(ranking)

    @step("CHAIN", "put the result first", returns=Draft)
    def put_first(self, result: Draft, written: Answer) -> Draft:
        """Append the written text to `result`, unless it abstains or failed."""
        if written.text is None or written.abstained:
            self.note(written.error or "nothing was written besides")
            return result
        more = written.source if isinstance(written.source, Draft) else Draft(written.text, written.citations)
        cited = tuple(dict.fromkeys((*result.citations, *more.citations)))
        return replace(more, text=f"{result.text} {more.text}", citations=cited, abstained=False)

    @step("CHAIN", "take the result as a passage", returns=Ranking)
    def result_passage(self, asked: TableResult) -> Ranking:
        """See `table_hits`."""
        self.span.output = Selection("named", why="the result of the query")
        return table_hits(asked)

    @step("CHAIN", "say the result", returns=Draft)
    def say_result(self, asked: TableResult) -> Draft:
        """Describe the result in one sentence without a model, or why there is none."""
        return result_draft(asked)

    def beside(
        self, tables: Callable[[], TableResult], passages: Callable[[], Ranking]
    ) -> tuple[TableResult, Ranking]:
        """`parallel` for the two sides."""
        asked, found = self.parallel(tables, passages)
        return cast("TableResult", asked), cast("Ranking", found)

    @step("EVALUATOR", "choose the side", returns=Sides)
    def choose_side(self, asked: TableResult, hits: Ranking) -> Sides:
        """Choose whether tables, passages or both provide the answer."""
        rows, found = len(asked.rows), len(hits)
        told = f"the tables: {asked.decision} ({asked.why}); search found {found} passages"
        if rows:
            return Sides("both" if found else "tables only", told)
        return Sides("passages only" if found else "neither", told)

    def _database(self, source: Source) -> Database:
        found: Database = self.context.prepared(Need.TABLES if source == "tables" else Need.CSV)
        return found

    def _known(self, source: Source, tables: Sequence[str]) -> list[DatabaseTable]:
        database = self._database(source)
        return [table for name in tables if (table := database.table(name)) is not None]


def _only_null(found: Result) -> bool:
    """Return True if the result is a single row of NULLs, as SUM, MAX and the like return over no rows."""
    return len(found.rows) == 1 and all(value is None for value in found.rows[0])


def _asked(
    database: str,
    attempts: Sequence[Attempt],
    ran: Sequence[Result | SqlError],
    why: str,
    repairs: int,
    shown: Mapping[str, Any],
) -> TableResult:
    """Summarise the attempts: the last one that ran, else the last one's error."""
    results = [(at, one) for at, one in enumerate(ran) if isinstance(one, Result)]
    if not results:
        kind: Decision = "rejected by the guard" if ran and isinstance(ran[-1], SqlRejected) else "failed"
        if not attempts:
            return table_result(database, kind, why, error=why, **shown)
        last = attempts[-1]
        why = f"{len(attempts)} of {repairs + 1} allowed attempts: {last.error}"
        return table_result(database, kind, why, sql=last.sql, error=last.error, **shown)
    at, found = results[-1]
    nulls = _only_null(found)
    count = "only NULL, as it met no row" if nulls else counted(len(found.rows))
    again = f", after {at} that did not do" if at else ""
    return table_result(
        database,
        "no rows" if nulls or not found.rows else "repaired" if at else "answered",
        f"the query returned {count}{again}{f'; {why}' if why else ''}",
        sql=attempts[at].sql,
        columns=found.columns,
        rows=() if nulls else found.rows,
        truncated=found.truncated,
        **shown,
    )
