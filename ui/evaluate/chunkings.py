"""Chunkings in an evaluation: routes x chunkings by coverage, and one question under each side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st
from markupsafe import Markup

from core.corpus import catalogue
from core.corpus.source import base_of, key_of
from core.evaluation import background, experiment_store, finding
from core.evaluation.chunkings import report
from core.evaluation.experiment_store import Evaluation
from core.evaluation.spec import Spec
from ui.app import say, state, workers
from ui.app.choice import choice
from ui.app.evaluated import once
from ui.app.help_mark import term
from ui.app.markup import fragment, show
from ui.app.routes import title
from ui.components import tables
from ui.evaluate import chunkings_question
from ui.evaluate.saved import BEGUN
from ui.evaluate.view import Look, sentences

FIGURE = "evaluate_chunkings_figure"
BEST = {
    report.IN_USE: "best, in use",
    "better": "best, shown to be better",
    "no difference shown": "best, not shown to be better",
}


def draw(look: Look) -> None:
    """Draw it."""
    evaluation = look.evaluation
    folder, path = evaluation.folder, evaluation.folder / report.FIGURES
    if not path.is_file():
        _nothing(evaluation)
        return
    key = "chunkings", path.stat().st_mtime
    document, (values, places) = once(
        evaluation, *key, compute=lambda: (report.read(folder) or {}, report.read_questions(folder))
    )
    named, note = {name: label.capitalize() for name, label in report.NAMES.items()}, term("coverage")
    metric = choice("figure", FIGURE, "Figure", named, usual=document["metric"], width=250, help=note)
    figures = document
    if metric != document["metric"]:
        base = document["base"]
        table = once(evaluation, *key, metric, compute=lambda: report.table(values, base, metric))
        figures = {**document, **table}
    if figures["interrupted"]:
        st.warning("This evaluation was stopped before its end. Resume it for all chunkings and questions.")
    show(sentences(report.findings(figures, title)))
    show(heat_table(figures))
    whole = f"{report.WHOLE} " if "whole" in figures["labels"] else ""
    note = (
        f"{figures['labelled']} of {figures['queries']} questions have labelled text: {figures['labels']}. "
        f"{whole}With {figures['budget']:,} tokens a perfect ranking covers {figures['reachable']:.3f}. "
        f"Brackets: 95% interval. Better and worse: against {figures['base']}, Holm-adjusted."
    )
    say.caption(" ".join([note, *(f"{warning}." for warning in figures["warnings"])]))
    _costs(figures)
    chunkings_question.draw(evaluation, figures, values, places)


def heat_table(figures: Mapping[str, Any]) -> Markup:
    """Return a row for each route, after a row of means, and a column for each chunking, darker if higher."""
    rows = [
        (
            "Mean of the routes" if route == report.MEAN else title(route),
            [_cell(by.get(name), figures, route, name) for name in figures["chunkings"]],
        )
        for route, by in report.rows(figures).items()
    ]
    return fragment("evaluate.heat", figures["chunkings"], figures["base"], rows)


def _cell(
    row: Mapping[str, Any] | None, figures: Mapping[str, Any], route: str, name: str
) -> tuple[object, ...] | None:
    """Return a cell's value, interval, note, class and hint, or None if it was not measured."""
    value = row[figures["metric"]] if row else None
    if row is None or value is None:
        return None
    found, best = row["vs_base"], figures["best"][route]
    verdict, hint = "", f"{row['n']} questions"
    if found:
        verdict, metric = found["verdict"], report.NAMES[figures["metric"]]
        told = finding.sentence(finding.compared(found, name, figures["base"], metric))
        hint = f"{told} Better on {found['wins']}, worse on {found['losses']}."
    said = verdict if verdict in ("better", "worse", "no difference shown") else ""
    if best and best["chunking"] == name:
        said = BEST.get(best["verdict"], "best")
    note = ", ".join(part for part in (said, f"{row['failed']} failed" if row.get("failed") else "") if part)
    return value, row["ci95"], note, {"better": "up", "worse": "down"}.get(verdict, "dim"), hint


def _costs(figures: Mapping[str, Any]) -> None:
    """Draw each chunking's size and cost, next to how much of it is read."""
    first = next(iter(report.rows(figures).values()))
    tables.table(
        [
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
        ],
        "evaluate_chunkings_costs",
        "Chunkings with their passages and cost",
    )


def _nothing(evaluation: Evaluation) -> None:
    """Draw how to measure other chunkings if only one was measured."""
    base, engine = base_of(str(evaluation.spec["corpus"])), state.engine()
    st.info("This evaluation measured one chunking.")
    made = catalogue.indexed_variants(base, engine.settings)
    if not made:
        say.caption(f"{base} is indexed in one way only. Index its source in other ways first.")
        st.page_link("corpus.py", label="Add chunkings", query_params={"corpus": base, "tab": "Chunkings"})
        return
    say.caption(f"Measure the same routes and questions over {base} and its chunkings: {', '.join(made)}.")
    by = workers.choose("ev_workers_chunkings")
    if not st.button(f"Measure {1 + len(made)} chunkings", key="evaluate_chunkings_begin", type="primary"):
        return
    keys = tuple(str(key_of(name)) for name in made)
    with say.errors(), st.spinner("Checking the questions and the routes"):
        spec = replace(Spec.read(evaluation.spec), corpus=base, chunkings=keys, audit=())
        catalogue.source(base, settings=engine.settings, known_only=True)
        name = background.free_name(f"{base}-chunkings", experiment_store.names(engine.settings))
        background.begin(engine, name, spec, workers=by)
        st.session_state[BEGUN] = name
        st.rerun()
