"""Calibrations of a model's decisions: as stored, what they are worth, and what routes make of them."""

import json
from dataclasses import replace

import pytest

from core.backends import calibrations
from core.backends.calibrations import DECISIONS, DecisionCalibration, HeldOut
from core.domain.errors import Unavailable
from core.domain.types import Query
from core.engine.availability import cautions
from core.engine.request import Request
from core.routes.registry import routes
from core.steps.grade import PROMPTS, worth
from tests.fakes import FakeEngine, ScriptedLLM

MADE = DecisionCalibration(
    "evidence",
    "scripted",
    PROMPTS["evidence"],
    0.4,
    0.9,
    (0.8, 0.97),
    40,
    25,
    (HeldOut("one", 20, 12, 0.88, 0.41, 0.8), HeldOut("two", 20, 20, None, 0.39, None)),
    {"one": ("q1", "q2")},
    {"bins": [], "ece": 0.1, "brier": 0.1, "n": 40},
    "2026-11-23",
)


def test_a_calibration_is_read_as_it_was_written_and_that_of_this_place_goes_first(tmp_path):
    assert calibrations.read("evidence", "scripted", tmp_path) is None
    path = calibrations.write(MADE, tmp_path / "calibrations")
    assert path.name == "evidence.scripted.json"
    assert calibrations.read("evidence", "scripted", tmp_path) == MADE
    assert calibrations.read("evidence", "another/model", tmp_path) is None


@pytest.mark.parametrize("text", ["", "[]", '{"decision": "guess"}', '{"decision": "evidence"}'])
def test_a_damaged_calibration_is_refused_by_name(tmp_path, text):
    path = calibrations.write(MADE, tmp_path / "calibrations")
    path.write_text(text)
    with pytest.raises(Unavailable, match=r"evidence\.scripted\.json cannot be used"):
        calibrations.read("evidence", "scripted", tmp_path)


def test_a_models_name_makes_no_path():
    assert calibrations.file_name("claim support", "../../a b/c") == "claim-support.a-b-c.json"


@pytest.mark.parametrize(
    ("found", "state", "says"),
    [
        (None, "not calibrated", "was not calibrated for scripted"),
        (replace(MADE, prompt="evidence/0"), "not calibrated", "for prompt evidence/0"),
        (replace(MADE, auc=0.6), "no signal", "AUC 0.60 [0.80, 0.97] on 40 cases of one, two"),
        (MADE, "calibrated", "AUC 0.90"),
    ],
)
def test_what_a_decision_is_worth(found, state, says):
    told, why = worth("evidence", "scripted", found)
    assert told == state
    assert says in why


def test_every_decision_has_a_prompt_and_routes_name_no_other():
    assert set(PROMPTS) == set(DECISIONS)
    assert {about for route in routes().values() for about in route.decides} <= set(DECISIONS)


@pytest.mark.parametrize(("given", "cut"), [({}, 0.4), ({"threshold": 0.7}, 0.7)])
def test_a_route_decides_by_the_calibrated_threshold_unless_one_is_given(tmp_path, given, cut):
    engine = FakeEngine(tmp_path, llm=ScriptedLLM({"evidence": {"Yes": 0.5, "No": 0.5}}))
    calibrations.write(MADE, engine.settings.home / "calibrations")
    request = Request(
        Query("My box"), "tiny", ("self_reflective",), {"self_reflective": {"rounds": 1, **given}}
    )
    spans = engine.ask(request).results[0].spans
    worth_, round_ = (
        next(span.output for span in spans if span.name == name)
        for name in ("check the calibration", "reflect on the round")
    )
    assert (worth_.decision, worth_.details["cut"]) == ("calibrated", cut)
    assert (round_.threshold, round_.decision) == (cut, "enough" if cut == 0.4 else "stop")


def test_routes_say_what_their_judgements_are_not_worth(tmp_path):
    engine = FakeEngine(tmp_path, llm=ScriptedLLM())
    reflective = routes()["self_reflective"]
    assert cautions(engine, routes()["bm25"]) == ()
    (told,) = cautions(engine, reflective)
    assert "“evidence” was not calibrated for scripted" in told
    calibrations.write(MADE, engine.settings.home / "calibrations")
    assert cautions(engine, reflective) == ()


@pytest.mark.parametrize("path", sorted(calibrations.SHIPPED.glob("*.json")), ids=lambda path: path.stem)
def test_what_comes_with_the_program_is_of_the_prompts_in_use(path):
    """A prompt of another text has another name: its calibration has to be made anew."""
    stored = json.loads(path.read_text())
    found = calibrations.read(stored["decision"], stored["model"])
    assert found is not None
    assert worth(found.decision, found.model, found)[0] in ("calibrated", "no signal")
    assert path.name == calibrations.file_name(found.decision, found.model)
