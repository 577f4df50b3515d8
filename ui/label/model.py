"""The language model as an annotator: suggestions, never preselected, and its agreement as a judge."""

from __future__ import annotations

import streamlit as st

from core.evaluation.judge import measure, source
from core.evaluation.judge import record as records
from core.evaluation.judge.record import JudgeRecord
from core.evaluation.labels import suggest
from core.evaluation.labels.desk import Desk
from core.store.labels import GRADES, MODEL, Pair
from ui.app import address, say, state
from ui.app.help_mark import term
from ui.app.markup import cut, fragment, show, tag
from ui.app.plot import plot
from ui.app.progress import ended, follow
from ui.charts.heatmaps import confusion
from ui.label.desk import attempt

SHOW_KEY = "label_suggest"
OF: source.Of = "label set"


def switch(desk: Desk) -> None:
    """Draw the switch, where some model has suggested something."""
    if desk.models():
        note = "Shows the grade a model suggests. Grade first: a suggestion sways you."
        st.toggle("Show suggestions", key=SHOW_KEY, persist_state="session", help=note)
    address.keep("suggest", "1" if desk.models() and st.session_state.get(SHOW_KEY) else None)


def suggestions(desk: Desk, at: Pair) -> None:
    """Draw the suggestions for a passage, if they are switched on."""
    if st.session_state.get(SHOW_KEY):
        models = [(model.removeprefix(MODEL), desk.by(model).get(at)) for model in desk.models()]
        show(fragment("label.suggestions", models, GRADES))


def suggesting(desk: Desk, what: suggest.What, of: str) -> bool:
    """Draw the progress of suggestions for passages or questions, or their result; return whether it runs."""
    one = suggest.under_way(state.engine(), desk.set.name, what)
    if follow(
        one, f"{{0.finished:,}} of {{0.total:,}} {of} sent to the model".format, key="label_suggest_stop"
    ):
        return True
    if one is not None:
        result = f"{one.annotator} suggested {what} for {one.scored:,} of {one.total:,} {of}."
        if ended(one, f"Suggesting {what}", f"Stopped. {result}"):
            say.caption(result)
        if one.unscored:
            say.warning(f"{one.unscored:,} have none: {cut(next(iter(one.why.values()), ''), 200)}")
    return False


def ask(desk: Desk) -> None:
    """Draw the buttons that have the language model suggest grades, the progress and the result."""
    engine, name = state.engine(), desk.set.name
    if suggesting(desk, "grades", "passages"):
        return
    without = suggest.missing(desk, suggest.annotator(engine))
    judged = {each.pair for each in desk.current if each.source != "model"}
    held = [pair for pair in without if pair in judged]
    with st.container(horizontal=True, vertical_alignment="center"):
        for key, pairs, which in (("judged", held, "{:,} judged"), ("all", without, "all {:,}")):
            label = f"Suggest grades for {which.format(len(pairs))} passages"
            asked = st.button(label, key=f"label_suggest_{key}", disabled=not pairs)
            if asked and attempt(lambda pairs=pairs: suggest.begin(engine, name, pairs)):
                st.rerun()


def judge(desk: Desk) -> None:
    """Draw how far the model agreed as a judge when it was measured last, and the button that measures."""
    st.markdown("**The language model as a judge**", help=term("LLM judge"))
    engine, name = state.engine(), desk.set.name
    one = measure.under_way(engine, OF, name)
    if follow(one, "{0.finished:,} of {0.total:,} passages judged".format, key="label_judge_stop"):
        return
    judged = one.finished if one is not None else 0
    stopped = f"Stopped after {judged:,} passages. Their replies are saved: measure again to go on."
    if ended(one, "Measuring the judge", stopped) and one is not None and one.unscored:
        say.warning(f"{one.unscored:,} passages got no score: {cut(one.why, 200)}")
    record, model = None, engine.llm().model
    with say.errors():
        record = records.read(engine.settings.home, OF, name, model)
    if record is None:
        say.caption(
            f"{model} has not been measured on this set yet. A judge that agrees with people may grade "
            "what nobody labelled."
        )
    else:
        _result(record, records.out_of_date(record, model, desk.set.guidelines))
    label = "Measure the judge" if record is None else "Measure the judge again"
    note = (
        f"Judges up to {measure.COUNT} passages with a final grade: half of the questions set its thresholds."
    )
    if st.button(label, key="label_judge", help=note):
        with st.spinner("Reading the labels"):
            begun = attempt(lambda: measure.begin(engine, source.of_set(engine, name)))
        if begun:
            st.rerun()


def _result(record: JudgeRecord, why: str | None) -> None:
    """Draw what was measured and what it allows; `why` tells why it is no longer valid."""
    if why:
        say.warning(f"Not calibrated for these guidelines: {why}. Measure the judge again.")
    said = [records.agreement(record), records.leaves_open(record), *([] if why else [records.use(record)])]
    show(tag("div", *(tag("p", one, css="rs-label-line") for one in said), css="rs"))
    grades = [str(grade) for grade in range(len(record.confusion))]
    figure = confusion(grades, record.confusion, true="people", taken="judge")
    plot(figure, "label_judge_confusion", f"Grades of people and of the judge. {said[0]}")
    bounds = ", ".join(
        f"{grade} from {'never' if bound is None else f'{bound:.2f}'}"
        for grade, bound in enumerate(record.bounds, 1)
    )
    say.caption(
        f"Rows: people. Columns: the judge, from its P(Yes): {bounds}. Model: {record.model}, prompt "
        f"{record.prompt}, guidelines {record.policy_hash[:12]}; measured {record.made[:10]}."
    )
    with st.expander("Guidelines the judge was shown"):
        show(tag("div", record.policy or "None.", css="rs rs-label-guide", dir="auto"))
