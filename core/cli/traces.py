"""Traces of other programs: imported from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cli.common import Bar, emit, stoppable

if TYPE_CHECKING:
    from core.engine.imported import Imported
    from core.store import Store


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
    from core.evaluation.labels import requests
    from core.store.traces_in import read

    engine = shared_engine()
    read_ = read(data, file.name)
    if label_set is not None:
        requests.check_name(store, label_set)
    if corpus is not None:
        ensure(catalogue.source(corpus, settings=engine.settings, known_only=True), engine.settings)
    bar = Bar("")
    with stoppable() as cancel:
        intake = Intake(engine, corpus, name, bar, cancel)
        found = intake.take(read_.traces)
    bar.close()
    found.skipped += read_.skipped
    asked = 0
    if label_set is not None:
        asked = requests.from_requests(store, label_set, found.runs, sample=sample, seed=seed)
    document = as_document(found) | ({"label_set": label_set, "questions": asked} if label_set else {})
    emit(document, lambda: text(found, label_set, asked), as_json=as_json)
    return 0


def as_document(found: Imported) -> dict[str, Any]:
    """What was imported as JSON values."""
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


def text(found: Imported, label_set: str | None = None, asked: int = 0) -> str:
    """The same for people."""
    runs = found.runs
    lines = [f"Added {len(runs)} runs" + (f" over corpus {runs[0].corpus}: {_some(found)}" if runs else ".")]
    if runs:
        lines.append(found.matching)
    if found.left_out:
        lines.append(f"Left out or mended: {found.left_out}.")
    if label_set is not None:
        lines.append(f"Label set {label_set}: {asked} questions, with what was found for them.")
    return "\n".join(lines)


def _some(found: Imported) -> str:
    ids = [run.id for run in found.runs]
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
