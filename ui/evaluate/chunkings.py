"""Chunkings in an evaluation: routes x chunkings by coverage, and one question under each side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from core.backends.workers.place import WorkPlace
from core.corpus import catalogue, variants
from core.domain.errors import RouteScopeError
from core.domain.program import COMMAND
from core.evaluation import background, experiment_index, experiment_store
from core.evaluation.chunkings import report, text
from core.evaluation.chunkings.areas import Area
from core.evaluation.experiment_store import Evaluation
from core.evaluation.spec import Spec
from ui.app import state, workers
from ui.app.choice import choice
from ui.app.help_mark import term
from ui.app.markup import md, show
from ui.app.routes import title
from ui.components import tables
from ui.evaluate import chunkings_question
from ui.evaluate.chunkings_table import heat_table
from ui.evaluate.saved import BEGUN
from ui.evaluate.view import Look, sentences

FIGURE = "evaluate_chunkings_figure"


@dataclass(frozen=True)
class ChunkingFigures:
    """An evaluation's figures about its chunkings."""

    document: Mapping[str, Any]
    values: Mapping[str, report.Values]
    places: Mapping[str, Mapping[str, list[Area]]]


def draw(look: Look) -> None:
    """Draw it."""
    evaluation = look.evaluation
    found = _read(str(evaluation.folder), _stamp(evaluation.folder))
    if found is None:
        _nothing(evaluation)
        return
    usual = found.document["metric"]
    metric = choice(
        "figure",
        FIGURE,
        "Figure",
        list(text.NAMES),
        usual=usual,
        width=250,
        help=term("coverage"),
        format_func=lambda name: text.NAMES[name].capitalize(),
    )
    figures = _figures(str(evaluation.folder), _stamp(evaluation.folder), metric, found)
    if figures["interrupted"]:
        st.warning("This evaluation was stopped before its end. Resume it for all chunkings and questions.")
    show(sentences(text.findings(figures, title)))
    show(heat_table(figures))
    st.caption(md(_about(figures)))
    _costs(figures)
    for warning in figures["warnings"]:
        st.caption(md(f"{warning}."))
    chunkings_question.draw(evaluation, figures, found.values, found.places)


def _stamp(folder: Path) -> float:
    path = folder / report.FIGURES
    return path.stat().st_mtime if path.is_file() else 0.0


@st.cache_resource(max_entries=4, show_spinner="Opening the chunkings")
def _read(folder: str, stamp: float) -> ChunkingFigures | None:  # noqa: ARG001 - part of the cache key
    document = report.read(Path(folder))
    return None if document is None else ChunkingFigures(document, *report.read_questions(Path(folder)))


@st.cache_resource(max_entries=16, show_spinner="Comparing the chunkings")
def _figures(
    folder: str,  # noqa: ARG001 - part of the cache key
    stamp: float,  # noqa: ARG001 - part of the cache key
    metric: str,
    _found: ChunkingFigures,
) -> Mapping[str, Any]:
    document = _found.document
    if metric == document["metric"]:
        return document
    return {**document, **report.table(_found.values, document["base"], metric)}


def _about(figures: Mapping[str, Any]) -> str:
    whole = f"{text.WHOLE} " if "whole" in figures["labels"] else ""
    return (
        f"Over {figures['labelled']} of {figures['queries']} questions, those with labelled text: "
        f"{figures['labels']}. {whole}A token is a word or a punctuation mark. With "
        f"{figures['budget']:,} tokens a perfect ranking covers {figures['reachable']:.3f}. In brackets: 95% "
        "interval. Better and worse are "
        f"against {figures['base']} (paired randomisation test, Holm-adjusted over all routes and chunkings, "
        "and for the mean of the routes by itself)."
    )


def _costs(figures: Mapping[str, Any]) -> None:
    """Draw each chunking's size and cost, next to how much of it is read."""
    first = next(iter(report.rows(figures).values()))
    lines = [
        {
            "Chunking": row["chunking"],
            "Corpus": name,
            "Passages": row["passages"],
            "Tokens a passage": row["tokens"],
            "Passages read": first.get(name, {}).get("passages"),
            "Coverage per token": first.get(name, {}).get("density"),
            "Index MB": row["bytes"] / 1e6,
            "Index seconds": row["seconds"],
            "Vectors reused": 100 * row["reused"],
        }
        for name, row in figures["chunkings"].items()
    ]
    number = st.column_config.NumberColumn
    tables.show(
        lines,
        hide_index=True,
        width="stretch",
        height="content",
        key="evaluate_chunkings_costs",
        column_config={
            "Tokens a passage": number(format="%.0f"),
            "Passages read": number(format="%.1f", help=f"Within {figures['budget']:,} tokens"),
            "Coverage per token": number(format="%.4f", help=term("coverage per token")),
            "Index MB": number(format="%.1f"),
            "Index seconds": number(format="%.1f"),
            "Vectors reused": number(format="%.0f %%"),
        },
        alt="Chunkings with their passages and cost",
    )


def _nothing(evaluation: Evaluation) -> None:
    """Draw how to measure other chunkings if only one was measured."""
    corpus = str(evaluation.spec["corpus"])
    base, settings = variants.base_of(corpus), state.engine().settings
    st.info("This evaluation measured one chunking.")
    made = catalogue.indexed_variants(base, settings)
    if not made:
        st.markdown(
            md(f"{base} is indexed in one way only. Index its source in other ways first, on Corpus or by:")
        )
        st.code(f"{COMMAND} index {base} --chunkings 256,512,headings", language="sh")
        st.page_link("corpus.py", label="Go to Corpus", query_params={"corpus": base, "tab": "Chunkings"})
        return
    st.markdown(
        md(f"Measure the same routes and questions over {base} and its chunkings: {', '.join(made)}.")
    )
    by = workers.choose("ev_workers_chunkings")
    if st.button(f"Measure {1 + len(made)} chunkings", key="evaluate_chunkings_begin", type="primary"):
        _begin(evaluation, base, made, by)
    st.code(f"{COMMAND} eval {base} --chunkings all", language="sh")


def _begin(evaluation: Evaluation, base: str, made: list[str], by: WorkPlace | None) -> None:
    engine = state.engine()
    keys = tuple(str(variants.key_of(name)) for name in made)
    try:
        spec = replace(Spec.read(evaluation.spec), corpus=base, chunkings=keys, audit=())
        catalogue.source(base, settings=engine.settings, known_only=True)
        name = experiment_index.free_name(f"{base}-chunkings", experiment_store.names(engine.settings))
        with st.spinner("Checking the questions and the routes"):
            background.begin(engine, name, spec, workers=by)
    except RouteScopeError as error:
        st.error(md(str(error)))
        return
    st.session_state[BEGUN] = name
    st.rerun()
