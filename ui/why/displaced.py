"""Documents that displaced a passage since the question was asked of an earlier state of the corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from core.domain.types import Run
from core.evaluation.diff.runs import EarlierState, earlier_state
from ui.app import account, say, state
from ui.app.evaluated import remember
from ui.components import tables
from ui.why.diagnoses import DiagnosisView


def draw(run: Run, passages: Sequence[str], view: DiagnosisView) -> None:
    """Draw a row for each route and passage that new or changed documents displaced; nothing without an
    earlier state.
    """
    store = state.store()
    key = "earlier", str(store.path), account.key(), run.id
    earlier: EarlierState | None = remember(key, lambda: earlier_state(store, run, state.engine().settings))
    if earlier is None or not earlier.documents:
        return
    rows = [
        {
            "Route": route,
            "Passage": view.title(one.passage),
            "Rank then": one.rank_before,
            "Rank now": one.rank_after,
            "Without them": one.rank_without,
            "Displaced by": ", ".join(f"{by.document} ({by.change}, rank {by.rank})" for by in one.by),
        }
        for route, some in earlier.displaced(run, passages, view.depth).items()
        for one in some
    ]
    counts = Counter(earlier.documents.values())
    since = f"Since this question was asked on {earlier.run.created[:16].replace('T', ' ')} UTC"
    changed = ", ".join(f"{count} {change}" for change, count in counts.items())
    ends = ":" if rows else "; none of them displaced these passages."
    say.caption(f"{since} the corpus has changed (documents: {changed}){ends}")
    if rows:
        tables.table(rows, "why_displaced", "Passages that new or changed documents displaced")
        both = {"a": earlier.run.id, "b": run.id}
        st.page_link("sessions.py", label="Compare the two runs", query_params=both)
