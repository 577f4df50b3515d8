"""`export`: stored runs as a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from core.cli.commands import argument, command
from core.cli.common import emit, export
from core.domain.errors import BadInput, Unavailable
from core.evaluation.spec import option
from core.store.otlp import to_otlp, to_protobuf

if TYPE_CHECKING:
    from core.store import Store

ENDINGS = {"jsonl": "jsonl", "trec": "run", "bundle": "zip", "otlp": "otlp.json", "otlp-proto": "otlp.pb"}


@command("export")
def export_(
    run_ids: Sequence[str] = argument("RUN_ID...|EVALUATION"),
    kind: Literal["bundle", "jsonl", "trec", "otlp", "otlp-proto"] = option(
        "bundle",
        "bundle: for import elsewhere; jsonl: one line per route; trec: a run file; otlp: traces "
        "with OpenInference and OpenTelemetry names, a line a run; otlp-proto: the same as one "
        "request, as Phoenix and other collectors take it.",
        flags="--format",
    ),
    out: Path | None = option(None, "Output file; - is stdout. Default: a file named after the run.", "FILE"),
    site: Path | None = option(
        None,
        "Write an evaluation, by name or folder, as a site that needs no server: its leaderboard, "
        "questions, runs and Why.",
        "DIR",
    ),
) -> None:
    """Write stored runs to a file, or an evaluation to a folder for any web server."""
    from core.api.site import write_site

    if site is not None:
        if len(run_ids) != 1:
            raise BadInput("--site takes one evaluation, by its name or folder")
        count = write_site(run_ids[0], site)
        index = site / "index.html"
        document = {"evaluation": run_ids[0], "path": str(index), "questions": count}
        emit(document, lambda: f"Wrote {count} questions; open {index}")
        return
    store = open_store()
    names = list(dict.fromkeys(run_ids))
    if kind == "bundle":
        content = store.export_bundle(names)
    elif kind in ("otlp", "otlp-proto"):
        documents = [to_otlp(store.load(id)) for id in names]
        content = (
            b"".join(map(to_protobuf, documents))
            if kind == "otlp-proto"
            else "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in documents).encode()
        )
    else:
        write = store.export_jsonl if kind == "jsonl" else store.export_trec
        content = "".join(write(store.load(id)) for id in names).encode()
    document = {"format": kind, "runs": list(run_ids)}
    export(content, out, f"{names[0]}.{ENDINGS[kind]}", document, f"Wrote {len(run_ids)} runs to")


def open_store() -> Store:
    """Return the store of this process. Raises Unavailable if there is none."""
    from core.engine.engine import shared_engine

    store = shared_engine().store
    if store is None:
        raise Unavailable("run storage is off")
    return store
