"""Exports of other tools as records with OpenInference's names, which `core.store.traces_in` reads.

A tool is a module with `NAME`, `mine(document)` (whether a JSON document is its) and `records(document)`. A
record has trace_id, span_id, parent_id, name, kind, start, end, error, and its attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from core.store.trace_sources import langfuse, langsmith, mlflow

Record = dict[str, Any]


class TraceSource(Protocol):
    """A module of this package."""

    @property
    def NAME(self) -> str: ...  # noqa: N802 - a constant of a module

    def mine(self, document: Mapping[str, Any], /) -> bool: ...

    def records(self, document: Mapping[str, Any], /) -> Iterator[Record]: ...


SOURCES: tuple[TraceSource, ...] = (langfuse, langsmith, mlflow)


def source_of(document: Mapping[str, Any]) -> TraceSource | None:
    """Return the tool that wrote a JSON document; None for OTLP and OpenInference's own."""
    return next((one for one in SOURCES if one.mine(document)), None)
