"""The whole trace of every route: each step with what went in and what came out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from core.analysis.run_view import depths, describe, facts
from core.domain.types import RouteResult, Run, Span
from ui.app.markup import render
from ui.components.citations import thoughts

VALUE_CHARACTERS = 1500  # characters of a value that are shown


def steps(run: Run) -> Markup:
    """Return a folded table of steps for each route."""
    return render("trace", routes=[(result, list(_rows(result))) for result in run.results])


def _rows(result: RouteResult) -> Iterator[tuple[Any, ...]]:
    """Yield each span with its depth, short facts, named values and reasoning."""
    depth = depths(result.spans)
    for span in result.spans:
        marks = [span.cached, f"shared with {span.shared_with}" if span.shared_with else ""]
        if span.tokens:
            marks.append(f"{span.tokens.prompt} + {span.tokens.completion} tokens")
            marks.append(f"{span.tokens.reasoning} of them reasoning" if span.tokens.reasoning else "")
        marks.append(f"{len(span.hits)} hits" if span.hits is not None else "")
        yield span, depth[span.id], marks, _values(span, result.spans), thoughts([span])


def _values(span: Span, spans: Sequence[Span]) -> list[tuple[str, str]]:
    """Return what went in and what came out, by name."""
    sources = (describe(link, spans) for link in span.links)
    set_by = ", ".join(f"parameter {parameter} sets {name}" for name, parameter in span.set_by.items())
    values: list[tuple[str, Any]] = [(f"{label}:", where) for label, where in sources]
    values += [*span.args.items(), *([("", set_by)] if set_by else []), *span.attributes.items()]
    values += [(f"→ {name}", value) for name, value in facts(span.output).items() if name != "reasoning"]
    texts = ((name, v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) for name, v in values)
    more = "… ({:,} characters in total)".format
    return [
        (name, text if len(text) <= VALUE_CHARACTERS else text[:VALUE_CHARACTERS] + more(len(text)))
        for name, text in texts
    ]
