"""`traces`: an endpoint that other programs send their traces to; and their import from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.cli.common import ProgressBar, emit, note, output_options, stoppable

if TYPE_CHECKING:
    from core.engine.imported import ImportedTraces
    from core.store import Store
    from core.store.traces_in import ForeignTrace

PROTOBUF = (".pb", ".proto", ".binpb")


@click.group("traces")
def traces_() -> None:
    """Traces of other programs: take them as they come. `import` reads them from a file."""


@traces_.command("listen")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=4318,
    show_default=True,
    metavar="PORT",
    help="Port on 127.0.0.1; 0 chooses a free one.",
)
@click.option("--corpus", metavar="NAME", help="The corpus of their passages. Default: one made of them.")
@click.option("--name", metavar="NAME", help="Name of their route. Default: their service's.")
@output_options
def listen_(port: int, corpus: str | None, name: str | None, as_json: bool) -> int:
    """Take OTLP traces at http://127.0.0.1:PORT/v1/traces and store each as a run, until Ctrl-C.

    Only programs of this machine can send: OTLP/HTTP, as JSON or protobuf. A trace is stored 2 seconds after
    its last span once its root has come, or after 60 seconds without it.
    """
    from core.cli.corpora import ensure
    from core.corpus import catalogue
    from core.engine.engine import shared_engine
    from core.engine.trace_collector import Collector
    from core.engine.trace_endpoint import TraceEndpoint
    from core.engine.trace_intake import Intake
    from core.evaluation.labels import feedback

    engine = shared_engine()
    if corpus is not None:
        ensure(catalogue.source(corpus, settings=engine.settings, known_only=True), engine.settings)
    intake = Intake(engine, corpus, name)

    def take(traces: Sequence[ForeignTrace]) -> ImportedTraces:
        found = intake.take(traces)
        if engine.store is not None:
            feedback.from_traces(engine.store, found.feedback)
        return found

    collector = Collector(take, note)
    endpoint = TraceEndpoint(collector, port)
    note(f"listening on {endpoint.address} (Ctrl-C ends it)")
    with stoppable() as stop:
        endpoint.serve(stop)
    document = {"address": endpoint.address, "spans": collector.received, "runs": collector.stored}
    emit(
        document, lambda: f"{collector.received} spans taken, {collector.stored} runs stored", as_json=as_json
    )
    return 0


def import_traces(
    store: Store,
    file: Path,
    data: bytes,
    corpus: str | None,
    name: str | None,
    label_set: str | None,
    sample: int,
    seed: int,
    *,
    as_json: bool,
) -> int:
    """Store the traces of a file as runs, and say what was left out and why."""
    from core.cli.corpora import ensure
    from core.corpus import catalogue
    from core.engine.engine import shared_engine
    from core.engine.trace_intake import Intake
    from core.evaluation.labels import feedback, requests
    from core.store.otlp import from_protobuf
    from core.store.traces_in import read, read_documents

    engine = shared_engine()
    protobuf = file.suffix.lower() in PROTOBUF
    read_ = read_documents([from_protobuf(data)], file.name) if protobuf else read(data, file.name)
    if label_set is not None:
        requests.check_name(store, label_set)
    if corpus is not None:
        ensure(catalogue.source(corpus, settings=engine.settings, known_only=True), engine.settings)
    bar = ProgressBar("")
    with stoppable() as cancel:
        intake = Intake(engine, corpus, name, bar, cancel)
        found = intake.take(read_.traces)
    bar.close()
    found.skipped += read_.skipped
    complaints = feedback.from_traces(store, found.feedback)
    asked = 0
    if label_set is not None:
        asked = requests.from_requests(store, label_set, found.runs, sample=sample, seed=seed)
    document = as_document(found) | ({"label_set": label_set, "questions": asked} if label_set else {})
    document |= {"feedback": len(found.feedback), "complaints": complaints.added}
    emit(
        document,
        lambda: "\n".join(filter(None, [text(found, label_set, asked), complaints.in_words()])),
        as_json=as_json,
    )
    return 0


def as_document(found: ImportedTraces) -> dict[str, Any]:
    """Convert an import's result to JSON values."""
    matched = sum(rule is not None for rule in found.rules)
    return {
        "imported": [run.id for run in found.runs],
        "corpus": found.runs[0].corpus if found.runs else None,
        "routes": sorted({result.route for run in found.runs for result in run.results}),
        "passages": len(found.rules),
        "matched": matched,
        "matching": found.matching,
        "skipped": dict(sorted(found.skipped.items())),
    }


def text(found: ImportedTraces, label_set: str | None = None, asked: int = 0) -> str:
    """Format an import's result."""
    runs = found.runs
    lines = [f"Added {len(runs)} runs" + (f" over corpus {runs[0].corpus}: {_some(found)}" if runs else ".")]
    if runs:
        lines.append(found.matching)
    if found.left_out:
        lines.append(f"Left out or mended: {found.left_out}.")
    if label_set is not None:
        lines.append(f"Label set {label_set}: {asked} questions, with what was found for them.")
    return "\n".join(lines)


def _some(found: ImportedTraces) -> str:
    ids = [run.id for run in found.runs]
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
