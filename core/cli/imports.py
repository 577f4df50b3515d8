"""`import`: runs of a bundle, and traces of other programs, from a file or as they come."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from core.api.site import write_site
from core.cli import corpora
from core.cli.commands import argument, command
from core.cli.common import bytes_of, emit, export, note, stoppable, working
from core.corpus.passage_matching import describe
from core.domain.errors import BadInput, Unavailable
from core.domain.types import Run
from core.engine import engine as engines
from core.engine.imported import ImportedTraces, store_traces
from core.engine.trace_endpoint import Collector, TraceEndpoint
from core.evaluation.labels import desk, pool, run_labels
from core.evaluation.spec import option
from core.evaluation.templating import say
from core.store import Store
from core.store.otlp import from_protobuf, to_otlp, to_protobuf
from core.store.traces_in import MAX_BYTES, ForeignTrace, ReadTraces, in_words, read, read_documents

PROTOBUF = (".pb", ".proto", ".binpb")
LARGEST = 512 * 2**20  # bytes of a bundle that is read to be imported


@command("import")
def import_(
    file: Path | None = argument("[FILE]"),
    corpus: str | None = option(None, "Traces: their passages' corpus. Default: one made of them.", "NAME"),
    name: str | None = option(None, "Traces: name of their route. Default: their service's.", "NAME"),
    label_set: str | None = option(None, "Traces: make a label set of a sample of their questions.", "NAME"),
    sample: int = option(100, "Questions of --label-set.", "N", least=1),
    seed: int = option(13, "Seed of the sample.", least=None),
    listen: bool = option(False, "Take OTLP traces at 127.0.0.1 until Ctrl-C instead of a file."),
    port: int = option(4318, "Port of --listen; 0 chooses a free one.", "PORT", most=65535),
) -> None:
    """Add runs: of a bundle that `export` wrote, or of traces.

    Traces are OTLP JSON with the names of OpenInference, OpenTelemetry or OpenLLMetry, or what Phoenix,
    Langfuse, LangSmith, MLflow or Arize exported as JSON, JSON lines or parquet. Each becomes a run; its
    passages are matched to the corpus by id, offsets and text. Bad scores and thumbs become complaints in
    the label set "regressions CORPUS". What is already stored stays unchanged.

    With --listen, programs of this machine send them to http://127.0.0.1:PORT/v1/traces: OTLP/HTTP, as JSON
    or protobuf. A trace is stored 2 seconds after its last span once its root has come, or after 60 seconds
    without it.
    """

    if listen == (file is not None) or (listen and label_set):
        raise BadInput("give a FILE, or --listen without a file and --label-set")
    read = None
    if file is not None:
        if _begins_as_zip(file):
            if corpus or name or label_set:
                raise BadInput("--corpus, --name and --label-set go with traces; this is a session bundle")
            added = open_store().import_bundle(bytes_of(file, LARGEST, "a session bundle"))
            emit({"imported": added}, f"Added {len(added)} runs: {', '.join(added)}")
            return
        read = traces_of(file)
    store, engine = open_store(), engines.shared_engine()
    if label_set is not None and label_set in {one.name for one in desk.sets(store)}:
        raise BadInput(f"there is a label set {label_set!r} already; choose another name")
    if corpus is not None:
        corpora.ensured(corpus, engine.settings)
    if read is None:
        _listen(port, lambda traces: store_traces(engine, traces, corpus, name), store)
        return
    with working() as (bar, stop):
        found = store_traces(engine, read.traces, corpus, name, bar, stop)
    found.skipped += read.skipped
    complaints = run_labels.from_traces(store, found.feedback)
    asked = 0
    if label_set is not None:
        asked = pool.from_requests(store, label_set, found.runs, sample=sample, seed=seed)
    document = as_document(found) | ({"label_set": label_set, "questions": asked} if label_set else {})
    document |= {"feedback": len(found.feedback), "complaints": complaints.added}
    told = say("commands.imported", document, in_words(found.skipped), label_set)
    emit(document, "\n".join(filter(None, [told, complaints.in_words()])))


def _listen(port: int, keep: Callable[[Sequence[ForeignTrace]], ImportedTraces], store: Store) -> None:
    """Take traces as they come and store each as a run, until Ctrl-C."""

    def take(traces: Sequence[ForeignTrace]) -> ImportedTraces:
        found = keep(traces)
        run_labels.from_traces(store, found.feedback)
        return found

    collector = Collector(take, note)
    endpoint = TraceEndpoint(collector, port)
    note(f"listening on {endpoint.address} (Ctrl-C ends it)")
    with stoppable() as stop:
        endpoint.serve(stop)
    document = {"address": endpoint.address, "spans": collector.received, "runs": collector.stored}
    emit(document, f"{collector.received} spans taken, {collector.stored} runs stored")


def _begins_as_zip(file: Path) -> bool:
    with suppress(OSError), file.open("rb") as opened:
        return opened.read(2) == b"PK"
    return False


def traces_of(file: Path) -> ReadTraces:
    """Read the traces in a file: protobuf by its name, else any other form. Raises BadInput."""
    data, protobuf = bytes_of(file, MAX_BYTES, "a file of traces"), file.suffix.lower() in PROTOBUF
    return read_documents([from_protobuf(data)], file.name, Counter()) if protobuf else read(data, file.name)


def as_document(found: ImportedTraces) -> dict[str, Any]:
    """Convert an import's result to JSON values."""
    matched = sum(rule is not None for rule in found.rules)
    return {
        "imported": [run.id for run in found.runs],
        "known": found.known,
        "corpus": found.corpus,
        "routes": sorted({result.route for run in found.runs for result in run.results}),
        "passages": len(found.rules),
        "matched": matched,
        "matching": describe(found.matches),
        "skipped": dict(sorted(found.skipped.items())),
    }


ENDINGS = {"jsonl": "jsonl", "trec": "run", "bundle": "zip", "otlp": "otlp.json", "otlp-proto": "otlp.pb"}
WRITERS: dict[str, Callable[[Store, Run], bytes]] = {
    "jsonl": lambda store, run: store.export_jsonl(run).encode(),
    "trec": lambda store, run: store.export_trec(run).encode(),
    "otlp": lambda _, run: f"{json.dumps(to_otlp(run), ensure_ascii=False)}\n".encode(),
    "otlp-proto": lambda _, run: to_protobuf(to_otlp(run)),
}


@command("export")
def export_(
    run_ids: Sequence[str] = argument("RUN_ID...|EVALUATION"),
    kind: Literal["bundle", "jsonl", "trec", "otlp", "otlp-proto"] = option(
        "bundle",
        "bundle: for import elsewhere; jsonl: one line per route; trec: a run file; otlp: traces, a line a "
        "run; otlp-proto: the same as one request, as Phoenix and other collectors take it.",
        flags="--format",
    ),
    out: Path | None = option(None, "Output file; - is stdout. Default: a file named after the run.", "FILE"),
    site: Path | None = option(None, "Write an evaluation, by name or folder, as a static site.", "DIR"),
) -> None:
    """Write stored runs to a file, or an evaluation to a folder for any web server."""
    if site is not None:
        if len(run_ids) != 1:
            raise BadInput("--site takes one evaluation, by its name or folder")
        count = write_site(run_ids[0], site)
        index = str(site / "index.html")
        document = {"evaluation": run_ids[0], "path": index, "questions": count}
        emit(document, f"Wrote {count} questions; open {index}")
        return
    store = open_store()
    names = list(dict.fromkeys(run_ids))
    if kind == "bundle":
        content = store.export_bundle(names)
    else:
        content = b"".join(WRITERS[kind](store, store.load(id)) for id in names)
    document = {"format": kind, "runs": list(run_ids)}
    export(content, out, f"{names[0]}.{ENDINGS[kind]}", document, f"Wrote {len(run_ids)} runs to")


def open_store() -> Store:
    """Return the store of this process. Raises Unavailable if there is none."""
    store = engines.shared_engine().store
    if store is None:
        raise Unavailable("run storage is off")
    return store
