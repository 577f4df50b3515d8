"""Question files of other tools: which columns mean what, and their rows as `dataset.written` reads them.

A format is an entry of data/question_formats.toml: its name, the columns that it is recognised by, and for
each field the columns that may hold it, the first that is not empty. Names are compared without case; a dot
leads into an object.

Sources, as of November 2026: ragas 0.1 to 0.4 (Testset, EvaluationDataset); AutoRAG's data format; DeepEval's
Golden; promptfoo's test cases; LangSmith's examples; MLflow's and Databricks' evaluation sets; Langfuse's
dataset items; Giskard's QATestset; LlamaIndex' LabelledRagDataset; TruLens; Braintrust; Quepid's ratings;
SQuAD (arXiv:1806.03822); MS MARCO (arXiv:1611.09268); HotpotQA (arXiv:1809.09600).
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.domain.errors import BadInput
from core.domain.text import composed
from core.evaluation.question_rows import DATA, Row

NAME_THEM = "name its columns with --columns question=COLUMN,answer=COLUMN,relevant=COLUMN"
LOOKED_AT = 200  # rows whose columns are looked at to recognise a format
MAX_LITERAL = 1_000_000  # characters of a cell that is read as a list
DEPTH = 3  # of objects in each other whose columns can be named
FULL = 3  # the grade of a label without one
Names = tuple[str, ...]

_COLUMNS: Mapping[str, Names] = {name: tuple(columns) for name, columns in DATA["columns"].items()}
OWN = frozenset(_COLUMNS["own"])  # of this project's files


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of question file. `needs`: each of these columns has to be there, or one of those that |
    separates. `columns`: by field, those that may hold it.

    Of the fields, "texts" are of the passages that answer, "docs" ids of documents or passages, "relevant"
    either; "source" is the document of "texts", or a label itself if there is no text; "grade" is of the one
    document of the row, whose question's rows are put together; "impossible" the opposite of "answerable".
    """

    name: str
    needs: Names
    columns: Mapping[str, Names]


def _supporting(row: Mapping[str, Any]) -> list[str]:
    """Return the paragraphs that HotpotQA's supporting facts name."""
    facts, context = row.get("supporting_facts"), row.get("context")
    if isinstance(facts, dict) and isinstance(context, dict):  # as columns
        titles = facts.get("title") or []
        pairs = list(zip(context.get("title") or (), context.get("sentences") or (), strict=False))
    else:
        titles = [one[0] for one in _listed(facts) if isinstance(one, list) and one]
        pairs = [(one[0], one[1]) for one in _listed(context) if isinstance(one, list) and len(one) == 2]
    return ["".join(texts(sentences)) for title, sentences in pairs if title in titles]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _format(row: Mapping[str, Any]) -> Format:
    columns: dict[str, Names] = {}
    for key, names in row.items():
        columns[key] = ()
        for folder, dollar, group in (name.partition("$") for name in names):  # a list of columns
            columns[key] += tuple(f"{folder}{one}" for one in _COLUMNS[group]) if dollar else (folder,)
    del columns["name"]
    usual = {name: _COLUMNS[name] for name in ("id", "history")}
    return Format(row["name"], columns.pop("needs", ()), columns | (usual | columns))


*FORMATS, OTHER = map(_format, DATA["format"])
# Those of --columns, and the fields that they mean.
FIELDS = {"question": "question", "answer": "answers"}
FIELDS |= {name: name for name in ("relevant", "grade", "id", "mode", "split", "history", "answerable")}
_ROLES = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant", "agent": "assistant"}
_HOP = re.compile(r"^\s*<\d+-hop>\s*")  # ragas marks the passages of a question that needs several
_GISKARD = re.compile(r"^Document \d+: ", re.MULTILINE)
_ASSERTION = re.compile(r"(not-)?([a-z-]+)(?:\([^)]*\))?:\s*(.*)", re.DOTALL)  # promptfoo's TYPE: VALUE
_NUMPY = re.compile(r"""(['"])\s+(?=['"])""")  # between the texts of an array as numpy prints it


@dataclass(frozen=True, slots=True)
class Converted:
    """A file's rows as `dataset.written` reads them."""

    rows: Sequence[Row]
    name: str = ""  # of the format; "" for the project's own
    unused: Names = ()  # columns that mean nothing here
    columns: Mapping[str, Names] = field(default_factory=dict)  # field -> the columns it was read from
    remarks: Names = ()


def read_columns(given: str | Iterable[str]) -> dict[str, str]:
    """Read `question=a,answer=b` (one text, or several) as field -> column; BadInput lists the fields."""
    parts = [given] if isinstance(given, str) else list(given)
    found: dict[str, str] = {}
    for part in (one for text in parts for one in text.split(",") if one.strip()):
        name, equals, column = (one.strip() for one in part.partition("="))
        if not equals or not column or name not in FIELDS:
            raise BadInput(f"--columns {part.strip()!r}: give FIELD=COLUMN, FIELD of {', '.join(FIELDS)}")
        found[name] = composed(column)
    return found


def converted(rows: Sequence[Row], columns: Mapping[str, str] | None = None) -> Converted:
    """Recognise the format of `rows` (or take `columns`, by field) and convert them.

    Raises BadInput if a column of `columns` is not there, or no column can be the question.
    """
    flat = [(where, _flat(row)) for where, row in rows]
    names = {
        key: column for _, row in (flat if columns else flat[:LOOKED_AT]) for key, (column, _) in row.items()
    }
    if columns:
        for name, column in columns.items():
            if _name(column) not in names:
                where = rows[0][0] if rows else ""
                there = ", ".join(column for key, column in names.items() if "." not in key) or "none"
                raise BadInput(f"{where}: no column {column!r} for {name}; it has: {there}")
        fresh = {FIELDS[name]: (_name(column),) for name, column in columns.items()}
        rest = {name: OTHER.columns[name] for name in ("question", "id", "split")}
        return _convert(rows, flat, Format("a file with named columns", (), {**rest, **fresh}))
    found = recognised(names)
    if found is not None:
        return _convert(rows, flat, found)
    unused = [
        row[key][0]
        for _, row in flat
        for key in row
        if key not in OWN and "." not in key and row[key][1] not in (None, "", [], {})
    ]
    own = [(where, {_name(key): value for key, value in row.items()}) for where, row in rows]
    return Converted(own, unused=tuple(dict.fromkeys(unused)))


def column_names(rows: Sequence[Row]) -> list[str]:
    """Return the columns of the first rows as written, those inside objects with dots."""
    found = (column for _, row in rows[:LOOKED_AT] for column, _ in _flat(row).values())
    return list(dict.fromkeys(found))


def recognised(names: Iterable[str]) -> Format | None:
    """Return the format that has these columns; None for the project's own, and if none can be a question."""
    known = set(names)
    asked = known & {"text", "question", "query"}
    if asked and known & {"relevant", "generated", "sql"}:
        return None
    for one in FORMATS:
        if all(known & set(need.split("|")) for need in one.needs):
            return one
    used = [name for values in OTHER.columns.values() for name in values if name in known]
    if asked and set(used) <= OWN:
        return None
    return OTHER if known & set(OTHER.columns["question"]) else None


def _convert(rows: Sequence[Row], flat: Sequence[tuple[str, _Flat]], format: Format) -> Converted:
    used: dict[str, dict[str, None]] = {}
    there = dict(one for _, row in flat for one in row.items() if one[1][1] not in (None, "", [], {}))
    out: list[Row] = []
    remarks: list[str] = []
    fields = format.columns.items()
    theirs = {column for name, columns in fields if name != "answers" for column in columns}
    every = [{name: _found(row, columns, name, used, theirs) for name, columns in fields} for _, row in flat]
    top = max((_number(taken.get("grade")) or 0.0 for taken in every), default=0.0)
    scale = FULL / top if top and (top <= 1 or top > FULL) else 1.0
    if scale != 1.0:
        remarks.append(f"ratings from 0 to {top:g} were read as grades from 0 to {FULL}")
    grouped: dict[str, dict[str, Any]] = {}
    empty = again = 0
    for (where, whole), values in zip(rows, every, strict=True):
        taken = defaultdict[str, Any](lambda: None, values)
        text, history = _asked(taken["question"])
        if not text.strip():
            empty += 1
            continue
        said, impossible = _truth(taken["answerable"]), _truth(taken["impossible"])
        answerable = said if said is not None else None if impossible is None else not impossible
        entries = _labels(taken, format, scale) if answerable is not False else []
        if format.name == "HotpotQA":
            entries += [{"doc": "", "quote": one, "matched": True} for one in _supporting(whole)]
            used |= {name: {name: None} for name in ("supporting_facts", "context")}
        native: dict[str, Any] = {
            "id": _plain(taken["id"]),
            "text": text,
            "history": history or _turns(taken["history"]),
            "answers": (answers := _answers(taken["answers"], format)),
            "answer": next(iter(answers), None),
            "relevant": entries,
            "mode": _plain(taken["mode"]),
            "split": _plain(taken["split"]),
            "answerable": answerable,
        }
        key = native["id"] or f"{text}\0{native['history']}"
        if key in grouped and ("grade" in format.columns or not native["id"]):
            grouped[key]["relevant"] += entries
            again += "grade" not in format.columns
        else:
            grouped[key] = native
            out.append((where, native))
    if not out:
        asked = ", ".join(column for column, _ in there.values() if "." not in column) or "none"
        where = flat[0][0] if flat else "the file"
        raise BadInput(f"{where}: no question in it; {NAME_THEM}; it has: {asked}")
    if again:
        remarks.append(f"{again} rows repeat a question: their labels were put together")
    if empty:
        remarks.append(f"{empty} rows without a question were left out")
    return Converted(
        out, format.name, _unused(there, used), {k: tuple(v) for k, v in used.items()}, tuple(remarks)
    )


def _labels(taken: Mapping[str, Any], format: Format, scale: float) -> list[dict[str, Any]]:
    """Return the entries of "relevant" that a row has. They may be matched anywhere in the corpus."""
    source = next(iter(texts(taken["source"])), "")
    contexts = taken["texts"]
    if isinstance(contexts, str) and format.name == "DeepEval goldens" and _literal(contexts) is None:
        # save_as joins contexts by "|", and the loader's default is ";"
        contexts = re.split(r"\|" if "|" in contexts else r";(?=\S)", contexts)
    elif isinstance(contexts, str) and format.name == "a Giskard test set":
        contexts = _GISKARD.split(contexts)
    quotes = [_HOP.sub("", text) for text in texts(contexts)]
    found: list[dict[str, Any]] = [{"doc": source, "quote": text, "matched": True} for text in quotes]
    if "grade" in format.columns:
        grade = _number(taken["grade"])
        docs = texts(taken["docs"]) or texts(taken["relevant"])
        if grade is not None and docs:
            found += [{"doc": doc, "grade": max(0, round(scale * grade)), "matched": True} for doc in docs]
        return found
    named = [*texts(taken["docs"]), *texts(taken["relevant"])]
    named += [] if found or named or not source else [source]
    return found + [{"doc": doc, "matched": True} for doc in dict.fromkeys(named)]


def texts(value: Any) -> list[str]:
    """Return the texts in a value: a text, a list, an object with a text, or a list written as text."""
    if isinstance(value, str):
        inner = _literal(value)
        return texts(inner) if inner is not None else [value.strip()] * bool(value.strip())
    if isinstance(value, dict):
        if isinstance(value.get("is_selected"), list):  # MS MARCO
            chosen = zip(value["is_selected"], value.get("passage_text") or (), strict=False)
            return [text for selected, text in chosen if selected]
        return next((texts(value[name]) for name in _COLUMNS["text"] if value.get(name)), [])
    if isinstance(value, list | tuple):
        return [text for one in value for text in texts(one)]
    return [str(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def _literal(text: str) -> Any:
    """Return the list or object that a cell holds as JSON or Python prints it, or None for any other text."""
    text = text.strip()
    if text[:1] not in ("[", "{") or len(text) > MAX_LITERAL:
        return None
    for read in (json.loads, lambda given: ast.literal_eval(_NUMPY.sub(r"\1, ", given))):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, list | dict) else None
    return None


def _asked(value: Any) -> tuple[str, list[dict[str, str]]]:
    """Return the question and the turns before it, of a text or of messages."""
    if isinstance(value, str) and value.lstrip().startswith("[{"):
        value = _literal(value) or value
    if isinstance(value, dict):
        value = value.get("messages") or value
    turns = _turns(value)
    while turns and turns[-1]["role"] != "user":
        turns.pop()
    if turns:
        return turns[-1]["text"], turns[:-1]
    found = texts(value) if not isinstance(value, str) else [value]
    return (found[0] if found else ""), []


def _turns(value: Any) -> list[dict[str, str]]:
    """Return messages as turns, in any tool's format; [] if the value is not a list of messages."""
    if isinstance(value, str):
        value = _literal(value)
    found = []
    for one in value if isinstance(value, list) else ():
        if isinstance(one, list | tuple) and len(one) == 2 and all(isinstance(text, str) for text in one):
            found += [{"role": "user", "text": one[0]}, {"role": "assistant", "text": one[1]}]
            continue
        if not isinstance(one, dict):
            return []
        inner = one.get("kwargs") or one.get("data") or one  # LangChain's serialised messages
        role = str(
            one.get("role") or inner.get("type") or one.get("type") or one.get("speaker") or ""
        ).lower()
        role = _ROLES.get(role, role)
        said = texts(inner.get("content") if "content" in inner else inner.get("text"))
        if role in ("user", "assistant") and said:
            found.append({"role": role, "text": said[0]})
    return found


def _answers(value: Any, format: Format) -> list[str]:
    if format.name != "promptfoo tests":
        return texts(value)
    given = value if isinstance(value, list) else [value]
    found = []
    for one in given:
        kind, said = (one.get("type"), one.get("value")) if isinstance(one, dict) else ("", one)
        if isinstance(said, str) and not kind:
            split = _ASSERTION.fullmatch(said.strip())
            kind, said = (f"{split[1] or ''}{split[2]}", split[3]) if split else ("equals", said)
        found += texts(said) if kind in DATA["assertions"] else []
    return [one for one in found if not one.startswith("file://")]


def _truth(value: Any) -> bool | None:
    said = str(value).strip().lower()
    return True if said in ("true", "1", "yes") else False if said in ("false", "0", "no") else None


def _plain(value: Any) -> str | None:
    return str(value).strip() or None if isinstance(value, str | int | float) else None


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, str | int | float) and str(value).strip() else None
    except ValueError:
        return None


# Columns.

_Flat = dict[str, tuple[str, Any]]  # name as compared -> (name as written, value)


def _name(column: Any) -> str:
    """Return a column's name as it is compared: `Query Text`, `queryText` and `query-text` are
    `query_text`.
    """
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(column).strip())
    return re.sub(r"[\s:/-]", "_", split).lower()


def _flat(row: Mapping[str, Any], above: str = "", depth: int = DEPTH) -> _Flat:
    """Return a row's values by name, those of objects in it by their names with dots, too."""
    found: _Flat = {}
    for key, value in row.items():
        written = f"{above}.{key}" if above else str(key)
        if isinstance(value, str) and value.lstrip()[:1] == "{":
            inner = _literal(value)
            value = inner if isinstance(inner, dict) else value
        found[".".join(map(_name, written.split(".")))] = (written, value)
        if isinstance(value, dict) and depth > 0:
            found |= _flat(value, written, depth - 1)
    return found


def _found(
    row: _Flat, columns: Names, name: str, used: dict[str, dict[str, None]], theirs: Collection[str]
) -> Any:
    """Return the value of a field: of the first of its columns that is not empty. Answers are put together.
    `theirs` are the columns of other fields, which are not answers.
    """
    values = []
    for column in columns:
        if column.endswith(".*"):  # the only value of an object, whatever its name
            inside = [key for key in row if key.startswith(column[:-1]) and "." not in key[len(column) - 1 :]]
            column = inside[0] if len(inside) == 1 and inside[0] not in theirs else column
        at = row.get(column)
        if at is None or at[1] in (None, "", [], {}):
            continue
        if (
            isinstance(at[1], dict)
            and name in ("question", "answers")
            and not (texts(at[1]) or _asked(at[1])[0])
        ):
            continue
        used.setdefault(name, {})[at[0]] = None
        values.append(at[1])
        if name != "answers" or not column.startswith("__expected"):
            break
    return values[0] if len(values) == 1 else values or None


def _unused(there: Mapping[str, tuple[str, Any]], used: Mapping[str, Iterable[str]]) -> Names:
    """Return the columns that no field was read from. An object with no used column is listed by its own
    name.
    """

    def above(column: str) -> list[str]:
        return [column.rsplit(".", count)[0] for count in range(1, column.count(".") + 1)]

    taken = {column for columns in used.values() for column in columns}
    inside = {one for column in taken for one in above(column)}
    left = (written for written, _ in there.values() if written not in taken | inside)
    return tuple(dict.fromkeys(one for one in left if inside - taken >= {*above(one)}))
