"""`labels export` and `labels import`: labels as files, both ways."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from core.cli.common import columns_option, emit, output_options, write_new
from core.cli.sessions import open_store
from core.domain.errors import BadInput

Format = Literal["qrels", "csv"]
LARGEST = 512 * 2**20  # bytes of a file that is read to be imported
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("export")
@click.argument("name")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["qrels", "csv"]),
    default="qrels",
    show_default=True,
    help="qrels: final grades in TREC format; csv: every judgement.",
)
@click.option("--annotator", metavar="WHO", help="With qrels: only the grades of this annotator.")
@click.option("--unjudged", is_flag=True, help="With csv: include unjudged passages.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Output file, or - for stdout. Default: a file named after the set.",
)
@output_options
def export_(
    name: str, kind: Format, annotator: str | None, unjudged: bool, out: Path | None, as_json: bool
) -> int:
    """Write the labels of a set to a file."""
    from core.evaluation.labels import desk, exchange

    if annotator is not None and kind != "qrels":
        raise BadInput("--annotator needs --format qrels; a CSV file has every annotator")
    if unjudged and kind != "csv":
        raise BadInput("--unjudged needs --format csv; qrels have only graded passages")
    if str(out) == "-" and as_json:
        raise BadInput("--json and --out - both write to stdout; give --out FILE")
    opened = desk.load(open_store(), name)
    content = (
        exchange.qrels(opened, annotator) if kind == "qrels" else exchange.table(opened, unjudged=unjudged)
    )
    if str(out) == "-":
        sys.stdout.buffer.write(content)
        return 0
    file = out or Path(f"{_file_name(opened.set.name)}.{kind}")
    write_new(file, content)
    lines = content.count(b"\n") if kind == "qrels" else None
    emit(
        {
            "set": opened.set.name,
            "format": kind,
            "path": str(file),
            "bytes": len(content),
            "judgements": lines,
        },
        lambda: f"Wrote {file}",
        as_json=as_json,
    )
    return 0


@click.command("import")
@click.argument("name")
@click.argument("file", type=_FILE, metavar="FILE")
@click.option("--annotator", metavar="WHO", help="Annotator of the judgements; required for TREC qrels.")
@columns_option
@output_options
def import_(name: str, file: Path, annotator: str | None, columns: Mapping[str, str], as_json: bool) -> int:
    """Add the judgements of a file to a set, all or none: CSV of `labels export`, TREC or BEIR qrels, or a
    file with questions and labels of another tool (Quepid ratings, ragas ...; see `eval --questions`).
    """
    from core.engine.engine import shared_engine
    from core.evaluation import dataset
    from core.evaluation.labels import csv_format, desk, exchange

    store = open_store()
    try:
        if file.stat().st_size > LARGEST:
            raise BadInput(f"{file} is larger than {LARGEST // 2**20} MiB and cannot be a file of labels")
        content = file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or error}") from None
    if file.suffix.lower() == ".csv" and not columns and csv_format.is_own(content):
        added = exchange.import_table(store, name, content, str(file), annotator)
    elif annotator is None:
        raise BadInput(f"{file} does not name an annotator; give --annotator WHO")
    elif columns or file.suffix.lower() in (".csv", ".json", ".jsonl", ".parquet", ".yaml", ".yml"):
        corpus = shared_engine().corpus(desk.load(store, name).set.corpus)
        written = dataset.written([file], name=file.name, columns=columns)
        added = exchange.import_questions(store, name, written, annotator, corpus)
    else:
        corpus = shared_engine().corpus(desk.load(store, name).set.corpus)
        added = exchange.import_qrels(store, name, content, str(file), annotator, corpus)
    emit(
        {"set": name, **asdict(added)},
        lambda: (
            f"Added {added.added} judgements and {added.passages} passages; {added.known} existed already"
            + "".join(f"\nLeft out: {why}" for why in added.left_out)
        ),
        as_json=as_json,
    )
    return 0


def _file_name(name: str) -> str:
    return "".join(char if char.isalnum() or char in "._-" else "-" for char in name)
