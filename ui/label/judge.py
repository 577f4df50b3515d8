"""The language model as a judge of relevance: how far it agrees with people, and what that allows."""

from __future__ import annotations

import streamlit as st

from core.evaluation.judge import measure, source
from core.evaluation.judge import record as records
from core.evaluation.judge.measure import Measuring
from core.evaluation.judge.record import JudgeRecord
from core.evaluation.labels.desk import Desk
from ui.app import say, state
from ui.app.help_mark import term
from ui.app.markup import cut, show, tag
from ui.app.plot import plot
from ui.app.progress import follow
from ui.charts.heatmaps import confusion
from ui.label.desk import attempt

OF: source.Of = "label set"


def draw(desk: Desk) -> None:
    """Draw what was measured last for the set, and the button that measures."""
    st.markdown("**The language model as a judge**", help=term("LLM judge"))
    engine, name = state.engine(), desk.set.name
    one = measure.under_way(engine, OF, name)
    if one is not None and not one.done:
        follow(one, lambda: f"{one.finished:,} of {one.total:,} passages judged", key="label_judge_stop")
        return
    if one is not None:
        _ended(one)
    record, model = None, engine.llm().model
    with say.errors():
        record = records.read(engine.settings.home, OF, name, model)
    if record is None:
        say.caption(
            f"{model} has not been measured on this set yet. A judge that agrees with people may grade "
            "what nobody labelled. One half of the questions sets its thresholds, the other tests them."
        )
    else:
        _result(record, records.out_of_date(record, model, desk.set.guidelines))
    label = "Measure the judge" if record is None else "Measure the judge again"
    if st.button(label, key="label_judge", help=f"Judges up to {measure.COUNT} passages with a final grade."):
        with st.spinner("Reading the labels"):
            begun = attempt(lambda: measure.begin(engine, source.of_set(engine, name)))
        if begun:
            st.rerun()


def _ended(one: Measuring) -> None:
    if one.error:
        say.error(f"Measuring the judge failed: {one.error}")
    elif one.cancelled:
        say.caption(
            f"Stopped after {one.finished:,} passages. Their replies are saved: measure again to go on."
        )
    elif one.unscored:
        say.warning(f"{one.unscored:,} passages got no score: {cut(one.why, 200)}")


def _result(record: JudgeRecord, why: str | None) -> None:
    """Draw what was measured and what it allows; `why` tells why it is no longer valid."""
    if why:
        say.warning(f"Not calibrated for these guidelines: {why}. Measure the judge again.")
    said = [
        records.agreement(record),
        records.leaves_open(record),
        *([] if why else [records.use(record)]),
    ]
    show(tag("div", *(tag("p", one, css="rs-label-line") for one in said), css="rs"))
    grades = [str(grade) for grade in range(len(record.confusion))]
    plot(
        confusion(grades, record.confusion, true="people", taken="judge"),
        "label_judge_confusion",
        f"Grades of people and of the judge. {said[0]}",
    )
    bounds = ", ".join(
        f"{grade} from {'never' if bound is None else f'{bound:.2f}'}"
        for grade, bound in enumerate(record.bounds, 1)
    )
    say.caption(
        f"Rows: grades of people. Columns: grades of the judge, from its P(Yes): {bounds}. Model: "
        f"{record.model}, prompt {record.prompt}, guidelines {record.policy_hash[:12]}; measured "
        f"{record.made[:10]}."
    )
    with st.expander("Guidelines the judge was shown"):
        show(tag("div", record.policy or "None.", css="rs rs-label-guide", dir="auto"))
