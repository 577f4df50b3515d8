"""Strips and grades of stored runs: what was kept and dropped, by which grade, and nothing but text."""

import pytest
from bs4 import BeautifulSoup

from core.analysis.run_view import gradings, strippings
from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import ScriptedLLM
from ui.evaluators.grades import table
from ui.evaluators.sentence_filter import filtered, steps


class Seen:
    """The tags and texts of a page."""

    def __init__(self, html):
        page = BeautifulSoup(html, "html.parser")
        self.tags, self.texts = {one.name for one in page.find_all()}, list(page.strings)
        assert not [name for one in page.find_all() for name in one.attrs if name.startswith("on")]


LONG = (
    "If the box arrived crushed take photos of all six sides and report it within 48 hours to the depot. "
    "The bakery next door opens at seven and sells rolls, cakes and coffee to everyone who comes by. "
) * 2


def strips(run):
    """Every filter of a run as the page shows it, with the threshold of the run."""
    return "".join(
        filtered(run, result, step.span, step.output, step.output.floor, {}, {})
        for result, step in steps(run).values()
    )


def corrected(engine, texts, question="My box arrived crushed", **parameters):
    """A run of the corrective route, as the store gives it back."""
    engine.fakes["tiny"] = type(engine.fakes["tiny"])(texts)
    engine.fake_llm = ScriptedLLM({"grade": "0.95"})
    run = engine.ask(Request(Query(question), "tiny", ("crag",), {"crag": parameters}))
    assert run.results[0].status == "ok", run.results[0].error
    return engine.store.load(run.id)


def test_strips_kept_and_dropped_are_shown_under_their_passage(engine):
    run = corrected(engine, {"crushed:0-400": LONG}, evaluator="llm", strip_floor=0.3)
    step = strippings(run.results[0])[0].output
    count = len(step.sentences)
    assert 0 < step.kept < count
    seen = Seen(strips(run))
    text = " ".join(seen.texts)
    assert f"{step.kept} of {count} sentences passed" in text
    assert "0.3" in text
    assert seen.texts.count("passed") == step.kept
    assert seen.texts.count("dropped") == count - step.kept
    assert "Crushed:0-400" in text


@pytest.mark.parametrize("evaluator", ["lightweight", "llm"])
def test_the_table_of_grades_shows_each_with_where_it_lies(engine, evaluator):
    run = corrected(engine, {"crushed:0-400": LONG, "keys:0-80": "Keys are kept."}, evaluator=evaluator)
    grading = gradings(run.results[0])[0].output
    seen = Seen(table(run, {}, grading, grading.low, grading.high))
    for grade in grading.grades:
        assert f"{grade.grade:.3f}" in " ".join(seen.texts)
    above = sum(grade.grade >= grading.high for grade in grading.grades)
    assert seen.texts.count("trusted") == above
    moved = Seen(table(run, {}, grading, 0.0, 0.0))
    assert moved.texts.count("trusted") == len(grading.grades)
