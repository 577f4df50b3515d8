"""The rows of a question file: CSV, TSV, JSON, JSON lines, YAML, parquet, Arrow, TREC topics, plain lines."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.domain import safe_yaml
from core.domain.errors import BadInput
from core.domain.jsonl import any_text, parse, utf8_text
from core.domain.parquet import parquet_rows
from core.domain.text import composed_values

Row = tuple[str, dict[str, Any]]  # where it stands, for messages, and its values by column

MAX_BYTES = 512 * 2**20  # of a file; of a parquet file also unpacked
MAX_ROWS = 1_000_000
MAX_YAML = 10 * 2**20  # bytes: PyYAML reads some 200 kB a second
DATA = tomllib.loads(Path(__file__).with_name("data").joinpath("question_formats.toml").read_text("utf-8"))
_SEPARATOR = re.compile(r"sep=(.)\r?\n")  # Excel's first line
_TOPIC = re.compile(r"<top(?:ic)?\b([^>]*)>(.*?)(?:</top(?:ic)?>|(?=<top\b)|\Z)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""(?:number|id)\s*=\s*["']([^"']+)""", re.IGNORECASE)
_TITLE = re.compile(r"<(?:title|query)>\s*(?:Topic:)?\s*([^<]+)", re.IGNORECASE)


def rows(path: Path) -> Iterator[Row]:
    """Yield the rows of one file. Raises BadInput naming the file and line of what cannot be read."""
    if not path.is_file():
        raise BadInput(f"no questions: {path} does not exist")
    if path.stat().st_size > MAX_BYTES:
        raise BadInput(f"{path}: larger than {MAX_BYTES // 2**20} MiB, which is more than is read")
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise BadInput(f"{path}: unknown kind of question file; give one of {', '.join(ENDINGS)}")
    for count, row in enumerate(read(path)):
        if count >= MAX_ROWS:
            raise BadInput(f"{path}: more than {MAX_ROWS:,} rows, which is more than is read")
        yield row[0], composed_values(row[1])


def _delimited(path: Path) -> Iterator[Row]:
    """Yield the rows of CSV or TSV in any encoding, delimited as its first line shows; skip empty rows."""
    text = any_text(path)
    given = _SEPARATOR.match(text)
    if given:
        text = text[given.end() :]
    header = text.split("\n", 1)[0]
    delimiter = given[1] if given else max(",;\t", key=header.count)
    if path.suffix.lower() == ".tsv" and delimiter != "\t":
        delimiter = "\t"
    first = [cell.strip() for cell in header.split("\t")]
    unnamed = path.suffix.lower() == ".tsv" and len(first) == 2 and " " in first[1]  # a topic, not a name
    reader = csv.DictReader(
        io.StringIO(text, newline=""), ("id", "text") if unnamed else None, delimiter=delimiter
    )
    try:
        for row in reader:
            if None in row:
                where = f"{path} line {reader.line_num}"
                raise BadInput(f"{where}: more cells than the header; put a cell with a comma into quotes")
            if any(row.values()):
                yield f"{path} line {reader.line_num}", {str(k).strip(): v for k, v in row.items()}
    except csv.Error as error:
        raise BadInput(f"{path} line {reader.line_num}: not valid CSV: {error}") from None


def _json(path: Path) -> Iterator[Row]:
    """Yield the rows of JSON or JSON lines, whatever the file's name."""
    text = utf8_text(path)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    single = len(lines) == 1 or text.lstrip().startswith("[") or path.suffix.lower() == ".json"
    if single and lines:
        try:
            whole = json.loads(text)
        except (ValueError, RecursionError) as error:
            if len(lines) == 1 or not all(line.lstrip().startswith("{") for _, line in lines):
                raise BadInput(f"{path} line {lines[0][0]}: not valid JSON: {error}") from None
        else:
            entries = _entries(whole)
            for number, item in enumerate(entries, 1):
                where = f"{path} line {lines[0][0]}" if len(lines) == 1 else f"{path} entry {number}"
                yield where, _object(item, where)
            return
    for number, line in lines:
        where = f"{path} line {number}"
        yield where, _object(parse(line, where), where)


def _yaml(path: Path) -> Iterator[Row]:
    """Yield the rows of a YAML document, such as promptfoo's `tests:`. No tag makes an object."""
    if path.stat().st_size > MAX_YAML:
        raise BadInput(f"{path}: larger than {MAX_YAML // 2**20} MiB, which is more than is read of YAML")
    try:
        whole = safe_yaml.load(utf8_text(path), MAX_ROWS)
    except ValueError as error:
        raise BadInput(f"{path}: not valid YAML: {error}") from None
    tests = whole.get("tests") if isinstance(whole, dict) else None
    files = isinstance(tests, list) and bool(tests) and all(isinstance(one, str) for one in tests)
    if files or isinstance(tests, str):  # promptfoo's, which may name files
        raise BadInput(f"{path}: its tests are in other files; give one of these: {tests}")
    for number, item in enumerate(_entries(whole) if whole is not None else (), 1):
        where = f"{path} entry {number}"
        yield where, _object(item, where)


def _object(item: Any, where: str) -> dict[str, Any]:
    if isinstance(item, str):
        return {"text": item}
    if not isinstance(item, dict):
        raise BadInput(f"{where}: expected a JSON object, not {type(item).__name__}")
    return item


def _entries(value: Any) -> Sequence[Any]:
    """Return the rows in a JSON document: a list, a list under a usual name, columns, or one row alone."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return [value]
    if isinstance(value.get("data"), list) and any(
        isinstance(a, dict) and "paragraphs" in a for a in value["data"]
    ):
        # SQuAD's articles. Source: Rajpurkar et al. 2018, arXiv:1806.03822.
        return [
            {"title": article.get("title"), "context": paragraph.get("context"), **one}
            for article in value["data"]
            for paragraph in article.get("paragraphs") or ()
            for one in paragraph.get("qas") or ()
        ]
    if all(isinstance(value.get(name), dict) for name in ("queries", "corpus", "relevant_docs")):
        # LlamaIndex' EmbeddingQAFinetuneDataset, with the texts of its documents
        texts, docs = value["corpus"], value["relevant_docs"]
        return [
            {
                "id": id,
                "query": query,
                "reference_contexts": [texts[d] for d in docs.get(id) or [] if d in texts],
            }
            for id, query in value["queries"].items()
        ]
    for name in DATA["lists"]:
        inner = value.get(name)
        if isinstance(inner, list) and inner and all(isinstance(one, dict) for one in inner):
            return [one["row"] if isinstance(one.get("row"), dict) else one for one in inner]
    columns = list(value.values())
    if len(columns) > 1 and all(isinstance(one, list) and len(one) == len(columns[0]) for one in columns):
        return [dict(zip(value, cells, strict=True)) for cells in zip(*columns, strict=True)]
    if len(columns) > 1 and all(isinstance(one, dict) and one.keys() == columns[0].keys() for one in columns):
        return [{name: column[key] for name, column in value.items()} for key in columns[0]]
    return [value]


def _parquet(path: Path) -> Iterator[Row]:
    found = parquet_rows(path, str(path), most_bytes=4 * MAX_BYTES, most_rows=MAX_ROWS)
    yield from ((f"{path} row {at}", row) for at, row in enumerate(found, 1))


def _arrow(path: Path) -> Iterator[Row]:
    """Rows of an Arrow file, as a data set saved to disk has them."""
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as source:
            try:
                batches = list(pa.ipc.open_stream(source))
            except pa.ArrowInvalid:
                file = pa.ipc.open_file(source)
                batches = [file.get_batch(at) for at in range(file.num_record_batches)]
            found = [row for batch in batches for row in batch.to_pylist()]
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path}: not an Arrow file that can be read: {error}") from None
    yield from ((f"{path} row {number}", row) for number, row in enumerate(found, 1))


def _lines(path: Path) -> Iterator[Row]:
    """TREC topics (number and title), or one question a line."""
    text = any_text(path)
    if not re.search(r"<top(ic)?\b", text[:5_000], re.IGNORECASE):
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield f"{path} line {number}", {"text": line.strip()}
        return
    for topic in _TOPIC.finditer(text):
        where = f"{path} line {text.count(chr(10), 0, topic.start()) + 1}"
        id, title = _NUMBER.search(topic[2]) or _ATTRIBUTE.search(topic[1]), _TITLE.search(topic[2])
        if id is None or title is None:
            raise BadInput(f"{where}: a topic needs a number and a title")
        yield where, {"id": id[1], "text": " ".join(html.unescape(title[1]).split())}


_READERS: Mapping[str, Callable[[Path], Iterator[Row]]] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _json),
    **dict.fromkeys((".yaml", ".yml"), _yaml),
    **dict.fromkeys((".csv", ".tsv"), _delimited),
    ".parquet": _parquet,
    ".arrow": _arrow,
    **dict.fromkeys((".txt", ".xml", ".topics"), _lines),
}
ENDINGS = tuple(_READERS)
