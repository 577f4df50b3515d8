"""`labels export` and `labels import`: labels as files, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from core.cli.commands import COLUMNS, command
from core.cli.common import emit, export
from core.cli.sessions import open_store
from core.domain.errors import BadInput
from core.evaluation.spec import option

LARGEST = 512 * 2**20  # bytes of a file that is read to be imported


@command("export")
def export_(
    name: str,
    kind: Literal["qrels", "csv", "hub"] = option(
        "qrels",
        "qrels: final grades in TREC format; csv: every judgement; hub: a dataset folder with the passages, "
        "as Hugging Face's datasets, MTEB and BEIR read it.",
        flags="--format",
    ),
    annotator: str | None = option(None, "With qrels: only the grades of this annotator.", "WHO"),
    unjudged: bool = option(False, "With csv: include unjudged passages."),
    out: Path | None = option(
        None, "Output file or folder, or - for stdout. Default: named after the set.", "FILE"
    ),
) -> None:
    """Write the labels of a set to a file."""
    from core.evaluation.labels import desk, exchange

    if annotator is not None and kind != "qrels":
        raise BadInput("--annotator needs --format qrels; a CSV file has every annotator")
    if unjudged and kind != "csv":
        raise BadInput("--unjudged needs --format csv; qrels have only graded passages")
    opened = desk.load(open_store(), name)
    if kind == "hub":
        from core.engine.engine import shared_engine

        folder = out or Path(_safe(opened.set.name))
        count = exchange.hub(opened, shared_engine().corpus(opened.set.corpus), folder)
        document = {"set": opened.set.name, "format": kind, "judgements": count}
        emit({**document, "path": str(folder)}, lambda: f"Wrote {folder}")
        return
    csv = kind == "csv"
    content = exchange.table(opened, unjudged=unjudged) if csv else exchange.qrels(opened, annotator)
    lines = None if csv else content.count(b"\n")
    document = {"set": opened.set.name, "format": kind, "judgements": lines}
    export(content, out, f"{_safe(opened.set.name)}.{kind}", document, "Wrote")


def _safe(name: str) -> str:
    return "".join(char if char.isalnum() or char in "._-" else "-" for char in name)


@command("import")
def import_(
    name: str,
    file: Path,
    annotator: str | None = option(None, "Annotator of the judgements; required for TREC qrels.", "WHO"),
    columns: Mapping[str, str] = COLUMNS,
) -> None:
    """Add the judgements of a file to a set, all or none: CSV of `labels export`, TREC or BEIR qrels, or a
    file with questions and labels of another tool (Quepid ratings, ragas ...; see `eval --questions`).
    """
    from core.engine.engine import shared_engine
    from core.evaluation import dataset
    from core.evaluation.labels import desk, exchange

    store = open_store()
    try:
        if file.stat().st_size > LARGEST:
            raise BadInput(f"{file} is larger than {LARGEST // 2**20} MiB and cannot be a file of labels")
        content = file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or error}") from None
    if file.suffix.lower() == ".csv" and not columns and exchange.is_own(content):
        added = exchange.import_table(store, name, content, str(file), annotator)
    elif annotator is None:
        raise BadInput(f"{file} does not name an annotator; give --annotator WHO")
    else:
        corpus = shared_engine().corpus(desk.load(store, name).set.corpus)
        if columns or file.suffix.lower() in (".csv", ".json", ".jsonl", ".parquet", ".yaml", ".yml"):
            written = dataset.written([file], name=file.name, columns=columns)
            added = exchange.import_questions(store, name, written, annotator, corpus)
        else:
            added = exchange.import_qrels(store, name, content, str(file), annotator, corpus)
    emit(
        {"set": name, **asdict(added)},
        lambda: (
            f"Added {added.added} judgements and {added.passages} passages; {added.known} existed already"
            + "".join(f"\nLeft out: {why}" for why in added.left_out)
        ),
    )
