"""The one renderer of findings: every sentence it can say, and how numbers are written."""

from dataclasses import replace

import pytest

from core.domain.format import number, p_value
from core.evaluation.finding import NONE, SAME, Finding, compared, count, figures, listed, mean, sentence

ROW = {"delta": 0.0421, "ci95": [0.011, 0.0731], "p": 0.002, "p_holm": 0.004, "n": 96, "ties": 40}
ROW |= {"wins": 41, "losses": 15, "verdict": "better", "detectable": 0.03, "detectable_holm": 0.05}
BETTER = compared(ROW, "Hybrid search", "BM25", "nDCG@10")
OPEN = replace(BETTER, estimate=-0.01, interval=(-0.04, 0.02), p=1.0, verdict=NONE)


BEHIND = replace(BETTER, estimate=-0.0421, interval=(-0.0731, -0.011), verdict="worse")
FEW = replace(OPEN, interval=None, p=None, detectable=None, n=1, unit="held-out questions")
ONE_TIE = compared({**ROW, "n": 1, "ties": 1}, "A", "B", "MAP")
NEARLY_THE_SAME = replace(BETTER, subject="the chosen threshold", estimate=1e-17, verdict=SAME, n=3)
MEASURED = "by 0.042 nDCG@10 (95% interval 0.011 to 0.073, p = 0.004, 96 questions)."
NO_DIFFERENCE = "No difference found between Hybrid search and BM25: −0.010 nDCG@10"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (BETTER, f"Hybrid search beats BM25 {MEASURED}"),
        (BEHIND, f"Hybrid search trails BM25 {MEASURED}"),
        (
            OPEN,
            f"{NO_DIFFERENCE} (95% interval −0.040 to +0.020, p = 1.000, 96 questions); "
            "differences below 0.050 could not have been detected reliably.",
        ),
        (FEW, f"{NO_DIFFERENCE} (1 held-out question)."),
        (compared({**ROW, "ties": 96}, "A", "B", "MAP"), "A and B have the same MAP on all 96 questions."),
        (ONE_TIE, "A and B have the same MAP on 1 question."),
        (compared(None, "A", "B", "MAP"), "A and B have no scored question in common."),
        (
            mean("BM25", "MAP", 0.5, [0.4, 0.6], 12),
            "BM25 has a mean of 0.500 MAP (95% interval 0.400 to 0.600, 12 questions).",
        ),
        (NEARLY_THE_SAME, "The chosen threshold and BM25 have the same nDCG@10 on all 3 questions."),
        (mean("BM25", "MAP", None), "BM25 has no MAP: it was scored on no question."),
    ],
)
def test_a_finding_in_one_sentence(found, said):
    assert sentence(found) == said


def test_a_comparison_keeps_what_was_measured():
    measured = (0.0421, (0.011, 0.0731), 0.004, 96, 0.05, "BM25", "better", None, 41, 15)
    assert Finding("Hybrid search", "nDCG@10", *measured) == BETTER
    assert (BETTER.shown, OPEN.shown) == (True, False)
    assert compared({"delta": 0.1, "p_holm": 0.3, "n": 4, "verdict": NONE}, "A", "B", "m", 0.5).before == 0.5


def test_the_numbers_alone():
    assert figures(BETTER) == "+0.042 nDCG@10 (95% interval +0.011 to +0.073, p = 0.004, 96 questions)"
    assert figures(replace(mean("", "", 0.25), n=3)) == "0.250 (3 questions)"
    assert figures(mean("A", "MAP", None)) == "not measured"


@pytest.mark.parametrize(
    ("value", "plain", "signed"),
    [
        (0.0421, "0.042", "+0.042"),
        (-0.0421, "−0.042", "−0.042"),
        (0.0, "0.000", "+0.000"),
        (-0.0, "0.000", "+0.000"),
        (1.0, "1.000", "+1.000"),
        (-1.25, "−1.250", "−1.250"),
        (-2.8e-17, "0.000", "+0.000"),
        (0.00012, "0.00012", "+0.00012"),
        (-0.000012, "−1.2e−05", "−1.2e−05"),
        (0.9996, "1.000", "+1.000"),
        (10.5, "10.500", "+10.500"),
    ],
)
def test_how_numbers_are_written(value, plain, signed):
    assert (number(value), number(value, signed=True)) == (plain, signed)


def test_p_counts_and_lists():
    shown = ["p < 0.001", "p = 0.001", "p = 0.045", "p = 1.000"]
    assert [p_value(p) for p in (0.0002, 0.001, 0.0449, 1.0)] == shown
    shown = ["0 questions", "1 question", "2 questions", "1,000 questions"]
    assert [count(n) for n in (0, 1, 2, 1000)] == shown
    assert count(1, "routes") == "1 route"
    assert [listed(["A", "B", "C"][:n]) for n in (1, 2, 3)] == ["A", "A and B", "A, B and C"]
