"""An annotator's progress: overall, in this question, and by question."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.evaluation.labels import queue
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.queue import Progress
from core.store.labels import Pair
from ui.app.markup import join, show, tag
from ui.components import tables
from ui.label.passage import one_line

NAMES = {"judged": "graded", "cannot": "can't tell", "later": "later", "left": "left"}


def draw(desk: Desk, who: str, at: Pair | None) -> None:
    """Draw the overall progress, a line about the current question, and a table of questions on demand."""
    by, whole = queue.progress(desk, who)
    parts = [bar(whole)]
    if at is not None:
        here, place = by[at[0]], list(desk.asked).index(at[0]) + 1
        judged = here.total - here.left - here.later
        line = f"Question {place} of {len(desk.questions)}: {judged} of {here.total} passages judged"
        parts.append(tag("div", line, css="dim"))
    show(tag("div", *parts, css="rs"))
    with st.expander("By question", key="label_by_question", on_change="rerun") as panel:
        if panel.open:
            _table(desk, by)


def bar(one: Progress) -> Markup:
    """Return a bar of graded, undecidable, postponed and remaining passages with their counts."""
    counts = {name: getattr(one, name) for name in NAMES}
    whole = max(1, one.total)
    shares = [
        tag("i", css=name, style=f"width:{100 * count / whole:.2f}%")
        for name, count in counts.items()
        if name != "left"
    ]
    legend = [
        tag("span", tag("i", css=name), f"{counts[name]:,} {label}", css="nowrap")
        for name, label in NAMES.items()
    ]
    numbers = ", ".join(f"{count} {NAMES[name]}" for name, count in counts.items())
    return join(
        [
            tag("div", *shares, css="rs-label-bar", role="img", aria_label=numbers),
            tag("div", *legend, css="rs-label-dots dim"),
        ]
    )


def _table(desk: Desk, by: dict[str, Progress]) -> None:
    import pandas as pd

    rows = [(desk.asked[id], one) for id, one in by.items()]
    frame = pd.DataFrame(
        {
            "Question": [one_line(question, 120) for question, _ in rows],
            "Passages": [one.total for _, one in rows],
            **{said.capitalize(): [getattr(one, name) for _, one in rows] for name, said in NAMES.items()},
        }
    )
    tables.show(
        frame,
        hide_index=True,
        height=min(38 + 35 * len(rows), 320),
        key="label_questions",
        alt=f"Passages judged of each of the {len(rows)} questions",
    )
