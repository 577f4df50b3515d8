"""Matrix: how one searches (once, iteratively, as an agent) and what with, on an evaluation's questions."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import streamlit as st

from core.corpus import catalogue
from core.corpus.build import Progress
from core.corpus.embeddings import Begin
from core.corpus.noise import lacking
from core.domain.needs import Need
from core.engine.availability import missing
from core.evaluation.matrix import HARNESSES, LEVEL, ONE_SHOT, SEEN, measure, planned
from ui.app import corpora, say, state
from ui.app.choice import switch
from ui.app.plot import plot
from ui.charts.heatmaps import shares
from ui.charts.sweep import noise_slope
from ui.components import tables
from ui.evaluate.view import Look

TIMES = (10, 100, 1000)


def draw(look: Look) -> None:
    """Draw the choices, the button, and of the last measurement the figures and the table."""
    engine, corpus = state.engine(), str(look.evaluation.spec["corpus"])
    st.caption(f"Each harness sees {SEEN} passages of a question. Scripted agents ask no model.")
    asks = False
    if not missing(engine).get(Need.LLM):
        asks = switch("model", "matrix_model", "Let the model choose the agents' actions (slow)")
    others = [name for name in catalogue.names(engine.settings) if name != corpus]
    chosen = st.multiselect("Add unrelated passages of", others, key="matrix_noise")
    times = st.pills("Times as many", TIMES, selection_mode="multi", key="matrix_times") if chosen else []
    for one in times:
        made = lacking(engine.corpus(corpus), [engine.corpus(name) for name in chosen], one)
        st.caption(f"{one} times: {made:,} passages are generated and embedded.")

    def work(progress: Progress, cancel: threading.Event, begin: Begin | None = None) -> list[dict[str, Any]]:
        cells = planned(engine, HARNESSES, ONE_SHOT, scripted=not asks)
        how: dict[str, Any] = {"progress": progress, "cancel": cancel, "begin": begin}
        labelled = look.evaluation.labelled
        return measure(engine, labelled, corpus, cells, noise=sorted(times), others=chosen, **how)

    anyway = partial(work, begin=lambda _cost: None)
    what = f" with {chosen} {times}" if times else ""
    called = f"{look.evaluation.name} matrix{' by the model' if asks else ''}{what}"
    build = corpora.background(called, "The matrix is measured", "Measure", "matrix_start", work, anyway)
    if build is not None:
        _drawn(build.result)


def _drawn(every: list[dict[str, Any]]) -> None:
    rows = [row for row in every if not row[LEVEL]]
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
    if len(every) > len(rows):
        slope = "Recall as unrelated passages are added, in multiples of the corpus' own, with 95% intervals."
        plot(noise_slope(every, list(HARNESSES), list(ONE_SHOT)), "matrix_noise_slope", slope)
    tables.table(
        [
            {
                "Noise": row[LEVEL],
                "Harness": row["harness"],
                "Retriever": row["retriever"],
                "Failed": row["failed"],
            }
            | {"All seen": row["complete"]["mean"]}
            | {f"Hop {n}": hop["mean"] for n, hop in enumerate(row["per_hop"][:4], 1)}
            | {name.title(): row[name]["mean"] for name in ("tokens", "calls", "steps", "seconds")}
            for row in every
        ],
        "matrix_rows",
        "The matrix as a table",
    )
