"""The bench: parts by name, figures that stay, ratios that are compared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench import results, run
from bench.traffic import CANDIDATE, by_passages, by_questions, differences, needed
from core.evaluation.labels.settled import SHOWN, Contest


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"cold": {"ratios": {"ours / theirs": 1.2}}, "other": {"ms": 7}}))
    monkeypatch.setattr(results, "OUT", path)
    monkeypatch.setattr(run, "OUT", path)
    monkeypatch.setattr(run, "PROJECT", tmp_path)
    return path


def asked(monkeypatch: pytest.MonkeyPatch, *arguments: str, ratio: float = 1.0) -> int:
    monkeypatch.setattr(run, "figures", lambda part: {"ratios": {"ours / theirs": ratio}, "part": part})
    monkeypatch.setattr("sys.argv", ["bench", *arguments])
    return run.main()


def test_a_part_takes_the_place_of_its_last_figures_and_the_others_stay(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(monkeypatch, "cold", ratio=9.0) == 0
    assert json.loads(kept.read_text(encoding="utf-8")) == {
        "cold": {"ratios": {"ours / theirs": 9.0}, "part": "cold"},
        "other": {"ms": 7},
    }


@pytest.mark.parametrize(("ratio", "code"), [(1.0, 0), (1.59, 0), (1.61, 1)])
def test_a_ratio_that_grew_by_more_than_a_third_fails_the_check_and_nothing_is_kept(
    ratio: float, code: int, kept: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = kept.read_text(encoding="utf-8")
    assert asked(monkeypatch, "--check", "cold", ratio=ratio) == code
    assert kept.read_text(encoding="utf-8") == before
    assert ("WORSE cold: ours / theirs is 1.61, kept is 1.20" in caplog.text) == bool(code)


def test_a_ratio_that_is_no_longer_measured_fails_the_check() -> None:
    assert run.worse("cold", {"ratios": {}}, {"ratios": {"a / b": 1.0}}) == [
        "cold: a / b is no longer measured"
    ]
    assert run.worse("cold", {"ratios": {"a / b": 5.0}}, {}) == []


def test_an_unknown_part_is_named_with_the_known_ones(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        asked(monkeypatch, "warm")
    assert "unknown part warm; known: cold, sharing, search" in capsys.readouterr().err


def test_every_part_can_be_found() -> None:
    for place in run.PARTS.values():
        module, name = place.split(":")
        text = (Path(run.__file__).parent / f"{module.removeprefix('bench.')}.py").read_text()
        assert f"\ndef {name}(" in text


def test_the_sample_of_traffic_and_random_questions_agree_with_what_all_grades_show() -> None:
    """The candidate is better on every question, by the one passage that it alone found at its first rank."""
    both = {("q", f"p{at}"): {SHOWN: at + 1, CANDIDATE: at + 2} for at in range(9)}
    pool = {(f"q{n}", id): ranks for n in range(12) for (_, id), ranks in both.items()}
    pool |= {(f"q{n}", "new"): {CANDIDATE: 1} for n in range(12)}
    grades = np.array([3 if id == "new" else 0 for _, id in pool])
    values = differences(contest := Contest(pool), grades)
    assert values == pytest.approx(np.ones(12)), "a passage of the highest grade at the first rank"
    random, sample = by_questions(contest, values, 5), by_passages(pool, grades, 5)
    assert needed(random, len(pool)) == 20, "two questions of ten passages, without any spread"
    assert (random(19), sample(len(pool)), sample(1)) == (0.0, 1.0, 0.0)
    few = needed(sample, len(pool))
    assert 1 < few < len(pool)
    assert sample(few) >= 0.8 > sample(few - 1)
