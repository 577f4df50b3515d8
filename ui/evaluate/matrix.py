"""Matrix: how one searches (once, iteratively, as an agent) and what with, on an evaluation's questions."""

from __future__ import annotations

import threading
from typing import Any

import streamlit as st

from core.corpus.build import Progress
from core.domain.needs import Need
from core.engine.availability import missing
from core.evaluation.matrix import HARNESSES, ONE_SHOT, SEEN, measure
from ui.app import corpora, say, state
from ui.app.choice import switch
from ui.app.plot import plot
from ui.charts.heatmaps import shares
from ui.components import tables
from ui.evaluate.view import Look


def draw(look: Look) -> None:
    """Draw the button, and of the last measurement the figure and the table."""
    corpus = str(look.evaluation.spec["corpus"])
    st.caption(f"Each harness sees {SEEN} passages of a question. Scripted agents ask no model.")
    asks = False
    if not missing(state.engine()).get(Need.LLM):
        asks = switch("model", "matrix_model", "Let the model choose the agents' actions (slow)")

    def work(progress: Progress, cancel: threading.Event) -> list[dict[str, Any]]:
        engine, labelled = state.engine(), look.evaluation.labelled
        return measure(engine, labelled, corpus, scripted=not asks, progress=progress, cancel=cancel)

    called = f"{look.evaluation.name} matrix{' by the model' if asks else ''}"
    build = corpora.background(called, "The matrix is measured", "Measure", "matrix_start", work)
    if build is not None:
        _drawn(build.result)


def _drawn(rows: list[dict[str, Any]]) -> None:
    by = {(row["harness"], row["retriever"]): row for row in rows}
    values = [[by[harness, retriever]["recall"] for retriever in ONE_SHOT] for harness in HARNESSES]
    if not rows[0]["n"]:
        say.info("None of the questions has a relevant passage.")
        return
    best = max(rows, key=lambda row: float(row["recall"]["mean"]))
    low, high = best["recall"]["ci95"]
    said = (
        f"Highest recall: {best['harness'].replace('_', ' ')} with {best['retriever']}, "
        f"{best['recall']['mean']:.3f} (95% interval {low:.3f} to {high:.3f}, {best['n']} questions)."
    )
    say.text(said)
    plot(shares(list(HARNESSES), list(ONE_SHOT), values), "matrix", said)
    st.caption(
        "Recall of the labelled passages seen, with 95% intervals. Overlapping intervals are no ranking."
    )
    tables.table(
        [
            {"Harness": row["harness"], "Retriever": row["retriever"], "Failed": row["failed"]}
            | {"All seen": row["complete"]["mean"]}
            | {f"Hop {n}": hop["mean"] for n, hop in enumerate(row["per_hop"][:4], 1)}
            | {name.title(): row[name]["mean"] for name in ("tokens", "calls", "steps", "seconds")}
            for row in rows
        ],
        "matrix_rows",
        "The matrix as a table",
    )
