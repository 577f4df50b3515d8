"""`export`: stored runs as a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from core.cli.common import emit, output_options, write_new
from core.domain.errors import BadInput, Unavailable
from core.store.otlp import to_otlp, to_protobuf

if TYPE_CHECKING:
    from core.domain.types import Run
    from core.store import Store

Format = Literal["bundle", "jsonl", "trec", "otlp", "otlp-proto"]
ENDINGS = {
    "bundle": "zip",
    "jsonl": "jsonl",
    "trec": "run",
    "otlp": "otlp.json",
    "otlp-proto": "otlp.pb",
}


@click.command("export")
@click.argument("run_ids", metavar="RUN_ID...|EVALUATION", nargs=-1, required=True)
@click.option(
    "--format",
    "kind",
    type=click.Choice(list(ENDINGS)),
    default="bundle",
    show_default=True,
    help="bundle: for import elsewhere; jsonl: one line per route; trec: a run file; otlp: traces "
    "with OpenInference and OpenTelemetry names, a line a run; otlp-proto: the same as one "
    "request, as Phoenix and other collectors take it.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Output file; - is stdout. Default: a file named after the run.",
)
@click.option(
    "--site",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write an evaluation, by name or folder, as a site that needs no server: its leaderboard, "
    "questions, runs and Why.",
)
@output_options
def export_(run_ids: Sequence[str], kind: Format, out: Path | None, site: Path | None, as_json: bool) -> int:
    """Write stored runs to a file, or an evaluation to a folder for any web server."""
    if site is not None:
        return _site(run_ids, site, as_json=as_json)
    to_stdout = out is not None and str(out) == "-"
    if to_stdout and as_json:
        raise BadInput("--json and --out - both write to stdout; use --out FILE")
    store = open_store()
    content = _content(store, list(dict.fromkeys(run_ids)), kind)
    if to_stdout:
        sys.stdout.buffer.write(content)
        return 0
    file = out or Path(f"{store.load(run_ids[0]).id}.{ENDINGS[kind]}")
    write_new(file, content)
    document = {"format": kind, "runs": list(run_ids), "path": str(file), "bytes": len(content)}
    emit(document, lambda: f"Wrote {len(run_ids)} runs to {file}", as_json=as_json)
    return 0


def _site(names: Sequence[str], folder: Path, *, as_json: bool) -> int:
    from core.api.site import write_site

    if len(names) != 1:
        raise BadInput("--site takes one evaluation, by its name or folder")
    count = write_site(names[0], folder)
    index = folder / "index.html"
    document = {"evaluation": names[0], "path": str(index), "questions": count}
    emit(document, lambda: f"Wrote {count} questions; open {index}", as_json=as_json)
    return 0


def _content(store: Store, run_ids: list[str], kind: Format) -> bytes:
    if kind == "bundle":
        return store.export_bundle(run_ids)
    documents = (to_otlp(store.load(id)) for id in run_ids)
    if kind == "otlp-proto":
        return b"".join(map(to_protobuf, documents))
    if kind == "otlp":
        return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in documents).encode()
    write: Callable[[Run], str] = store.export_jsonl if kind == "jsonl" else store.export_trec
    return "".join(write(store.load(run_id)) for run_id in run_ids).encode()


def open_store() -> Store:
    """Return the store of this process. Raises Unavailable if there is none."""
    from core.engine.engine import shared_engine

    store = shared_engine().store
    if store is None:
        raise Unavailable("run storage is off")
    return store
