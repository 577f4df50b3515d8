"""The outcome of querying a database: the SQL in a reply, and the result as a passage and as a sentence."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

from core.backends.prompting.citations import Draft
from core.backends.sql import Value
from core.domain.outputs import TableResult
from core.domain.types import Hit, Passage, Ranking

Decision = Literal["answered", "repaired", "no rows", "rejected by the guard", "failed"]
PREFIX = "sql/"  # ids of results, which are no passages of the corpus
TEXT = 2_000  # characters of a result as a passage
QUERY = 600  # characters of the query before it
MAX_LISTED_ROWS = 50  # different rows in the sentence
MAX_SENTENCE_CHARS = 1_500  # characters of it
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n?(.*?)(?:```|\Z)", re.DOTALL)
_BEGIN = re.compile(r"\b(?:SELECT|WITH)\b", re.IGNORECASE)
_PREAMBLE = re.compile(
    r"[\w\s,.!'’]*[:\n]\s*"
)  # words before the query, on a line of their own or with a colon
_WORDS = {"COUNT": "count of", "SUM": "total", "AVG": "average", "MIN": "lowest", "MAX": "highest"}
_PART = r'(?:\w+|"[^"]+")'
_NAME = re.compile(rf"(?:{_PART}\.)?{_PART}")
_AGGREGATE = re.compile(rf"(COUNT|SUM|AVG|MIN|MAX)\((?:DISTINCT )?({_NAME.pattern}|\*)\)", re.IGNORECASE)
_LABEL = re.compile(r"^\s*(?:SQL|sql|Answer|Query)\s*:\s*")


def table_result(database: str, decision: Decision, why: str, **more: Any) -> TableResult:
    """Return the outcome of querying a database; `more` are its other fields, empty by default."""
    fields = {"sql": "", "columns": (), "rows": (), "tables": (), **more}
    return TableResult(database=database, decision=decision, ways=get_args(Decision), why=why, **fields)


def extract_sql(reply: str) -> str:
    """Generate the query from a model's reply: a fenced block, else from the first SELECT or WITH to a blank
    line. Any other text is returned unchanged, for the guard to reject; "" if the model says that there is no
    query.
    """
    text = reply.strip()
    fenced = _FENCE.search(text)
    if fenced and fenced[1].strip():
        return fenced[1].strip()
    text = _LABEL.sub("", text).strip("` \n")
    if text.rstrip(".").lower() == "none":
        return ""
    block = re.split(r"\n\s*\n", text)[0]
    begin = _BEGIN.search(block)
    if begin and _PREAMBLE.fullmatch(block[: begin.start()]):
        return block[begin.start() :].strip()
    return block.strip()


def table_text(asked: TableResult) -> str:
    """Format the query, which explains the values, and its result as lines with " | " between the values; a
    longer one is truncated with a note.
    """
    lines = [" ".join(asked.sql.split())[:QUERY], "", " | ".join(map(_cell, asked.columns))]
    lines += [" | ".join(map(_cell, row)) for row in asked.rows]
    text = "\n".join(lines)
    if len(text) > TEXT:
        text = f"{text[:TEXT].rsplit(chr(10), 1)[0]}\n... ({len(asked.rows)} rows in all)"
    return f"{text}\n({asked.truncated})" if asked.truncated else text


def table_hits(asked: TableResult) -> Ranking:
    """Return the result as one passage, or () if there are no rows."""
    if not asked.rows:
        return ()
    text = table_text(asked)
    key = hashlib.sha256(f"{asked.database}\0{asked.sql}\0{text}".encode("utf-8", "replace")).hexdigest()[:12]
    return (Hit(Passage(f"{PREFIX}{key}", asked.database, "Result of the query", text, 0, len(text)), 1.0),)


def result_draft(asked: TableResult) -> Draft:
    """Describe the result in a sentence, or why there is none. Every column is included; rows up to
    `MAX_LISTED_ROWS` and `MAX_SENTENCE_CHARS` characters, then the number of the remaining rows.
    """
    if asked.error:
        return Draft(f"No query over the tables answered this: {asked.why}.", abstained=True)
    if not asked.rows:
        return Draft("The query found no rows in the tables.", abstained=True)
    (hit,) = table_hits(asked)
    names = [label(name) for name in asked.columns]
    if len(asked.rows) == 1:
        told = ", ".join(f"{name}: {_value(v)}" for name, v in zip(names, asked.rows[0], strict=True))
        return Draft(f"{told[:MAX_SENTENCE_CHARS]} [1]", (hit.passage.id,))
    parts: list[str] = []
    size = shown = 0
    for row, times in _distinct(asked.rows):
        part = ", ".join(map(_value, row)) + (f" ({times} rows)" if times > 1 else "")
        size += len(part)
        if parts and (len(parts) >= MAX_LISTED_ROWS or size > MAX_SENTENCE_CHARS):
            break
        parts.append(part[:MAX_SENTENCE_CHARS])
        shown += times
    left = len(asked.rows) - shown
    more = f"; {left} more {'row' if left == 1 else 'rows'} of {len(asked.rows)}" if left else ""
    between = ", " if len(names) == 1 else "; "
    joined = (
        between.join(parts) if left or len(parts) == 1 else between.join(parts[:-1]) + f" and {parts[-1]}"
    )
    cut = f" ({asked.truncated})" if asked.truncated else ""
    return Draft(f"{', '.join(names)[:MAX_SENTENCE_CHARS]}: {joined}{more}{cut} [1]", (hit.passage.id,))


def counted(rows: int) -> str:
    """Format a number of rows."""
    return f"{rows} {'row' if rows == 1 else 'rows'}"


def label(column: str) -> str:
    """Return the readable name of a result column: "COUNT(DISTINCT city.name)" becomes "count of name"."""
    found = _AGGREGATE.fullmatch(column.strip())
    if not found:
        return _cell(column.rpartition(".")[2].strip('"') if _NAME.fullmatch(column) else column)
    what = found[2].rpartition(".")[2].strip('"')
    word = _WORDS[found[1].upper()]
    return "count" if what == "*" else f"{word} {what}"


def _distinct(rows: Sequence[tuple[Value, ...]]) -> list[tuple[tuple[Value, ...], int]]:
    """Equal rows once, in order of first mention, with how often they are there."""
    times: dict[tuple[Value, ...], int] = {}
    for row in rows:
        times[row] = times.get(row, 0) + 1
    return list(times.items())


def _value(value: Value) -> str:
    """Format a value for an answer, numbers with ten digits."""
    return f"{value:.10g}" if isinstance(value, float) else _cell(value)


def _cell(value: Value) -> str:
    return "NULL" if value is None else " ".join(str(value).split()).replace("|", "¦")
