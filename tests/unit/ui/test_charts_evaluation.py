"""Charts of evaluations: what they draw, what they leave out, and that no text of theirs is markup."""

import json

import pytest

from core.evaluation import comparison, finding
from tests.runs import HOSTILE
from ui.charts.heatmaps import cell, confusion, mode_heatmap, scored
from ui.charts.intervals import of_findings
from ui.charts.tradeoff import tradeoff

NAMES = {"a": "Route A", "b": "Route B", "c": "Route C", "d": "Route D"}


def compared():
    """One better, one worse, one not told apart, of 40 questions each."""
    wobble = [0.01 * (n % 5 - 2) for n in range(40)]
    return comparison.family(
        {"b": [0.2 + w for w in wobble], "c": [-0.2 + w for w in wobble], "d": [5 * w for w in wobble]}
    )


def test_a_forest_has_a_line_each_with_its_interval_the_best_on_top():
    found = compared()
    rows = [finding.compared(one, NAMES[route], "Route A", "nDCG@10") for route, one in found.items()]
    figure = of_findings(rows)
    drawn = {trace.name: trace for trace in figure.data}
    assert set(drawn) == {"shown better", "shown worse", "no difference shown"}
    better = drawn["shown better"]
    assert better.x[0] == pytest.approx(found["b"]["delta"])
    assert better.y[0] == 0
    assert better.x[0] - better.error_x.arrayminus[0] == pytest.approx(found["b"]["ci95"][0])
    assert better.x[0] + better.error_x.array[0] == pytest.approx(found["b"]["ci95"][1])
    assert len({trace.marker.symbol for trace in figure.data}) == 3  # not told by colour alone
    assert figure.layout.yaxis.ticktext == ("Route B", "Route D", "Route C")


BY_MODE = {
    "plain": {
        "a": {"ndcg@10": 0.5, "n": 12},
        "b": {
            "ndcg@10": 0.8,
            "n": 11,
            "vs_baseline": {"ndcg@10": {"verdict": "better", "delta": 0.3, "p_holm": 0.01}},
        },
    },
    "abstract": {"a": {"ndcg@10": 0.25, "n": 3}, "b": {"ndcg@10": None, "n": 0, "vs_baseline": {}}},
    "no_answer": {"a": {"ndcg@10": None, "n": 0}, "b": {"ndcg@10": None, "n": 0}},
}


def test_modes_by_routes_have_the_value_in_the_cell_and_a_mark_where_a_difference_is_shown():
    assert scored(BY_MODE) == {"plain": 12, "abstract": 3}
    figure = mode_heatmap(BY_MODE, ["b", "a"], NAMES, "ndcg@10")
    heat = figure.data[0]
    assert [list(row) for row in heat.text] == [["0.80▲", "–"], ["0.50", "0.25"]]
    assert [list(row) for row in heat.z] == [[0.8, None], [0.5, 0.25]]
    assert figure.layout.xaxis.ticktext == ("plain (12)", "abstract (3)")
    assert "+0.300: better (p = 0.010 after Holm)" in heat.customdata[0][0]
    worse = {"ndcg@10": 0.1, "n": 9, "vs_baseline": {"ndcg@10": {"verdict": "worse"}}}
    assert cell(worse, "ndcg@10") == ("0.10▼", "0.100 over 9")


def test_only_the_front_and_the_baseline_carry_names():
    points = {"a": (0.4, 2.0), "b": (0.6, 20.0), "c": (0.3, 30.0), "d": (None, 1.0)}
    figure = tradeoff(points, NAMES, "a", metric="nDCG@10", cost="Median time", time=True)
    texts = [text for trace in figure.data for text in trace.text or ()]
    assert sorted(texts) == ["Route A", "Route B"]
    step = figure.data[0]
    assert (list(step.x), list(step.y), step.line.shape) == ([2.0, 20.0], [0.4, 0.6], "hv")
    rest = next(trace for trace in figure.data if trace.name == "beaten by one on the front")
    assert (list(rest.x), rest.text) == ([30.0], None)
    assert figure.layout.xaxis.type == "log"
    tokens = tradeoff(points, NAMES, "c", metric="nDCG@10", cost="Tokens", time=False)
    assert tokens.layout.xaxis.type is None
    assert "Route C" in [text for trace in tokens.data for text in trace.text or ()]


def test_limits_are_a_region_of_the_chart():
    points = {"a": (0.4, 2.0), "b": (0.6, 20.0)}
    made = tradeoff(points, NAMES, "a", metric="m", cost="c", time=True, region=(0.5, 10.0))
    (region,) = made.layout.shapes
    assert (region.y0, region.x1, region.xref) == (0.5, 10.0, "x")
    (region,) = tradeoff(
        points, NAMES, "a", metric="m", cost="c", time=True, region=(0.5, None)
    ).layout.shapes
    assert (region.x1, region.xref) == (1, "paper")
    assert not tradeoff(points, NAMES, "a", metric="m", cost="c", time=True).layout.shapes


def test_names_of_points_at_one_height_do_not_stand_at_one_place():
    points = {"a": (0.2, 1.0), "b": (0.600, 10.0), "c": (0.605, 14.0)}
    figure = tradeoff(points, NAMES, "a", metric="m", cost="Median time", time=True)
    front = next(trace for trace in figure.data if trace.name == "on the front")
    assert dict(zip(front.text, front.textposition, strict=True)) == {
        "Route B": "bottom right",
        "Route C": "top left",
    }


def test_no_point_with_a_place_draws_an_empty_chart():
    figure = tradeoff({"a": (None, None)}, NAMES, "a", metric="m", cost="c", time=True)
    assert not any(trace.text for trace in figure.data)


def test_a_confusion_leaves_out_classes_that_nothing_is():
    figure = confusion(["plain", "exact", "complex"], [[3, 1, 0], [0, 4, 0], [0, 0, 0]])
    heat = figure.data[0]
    assert [list(row) for row in heat.text] == [[3, 1], [0, 4]]
    assert list(heat.z[0]) == [0.75, 0.25]
    assert figure.layout.xaxis.ticktext == ("plain", "exact")


@pytest.mark.slow
@pytest.mark.parametrize("evil", HOSTILE)
def test_no_name_is_markup(evil):
    names = dict.fromkeys("abcd", evil)
    by_mode = {evil: BY_MODE["plain"]}
    figures = [
        of_findings([finding.compared(one, evil, evil, evil) for one in compared().values()]),
        mode_heatmap(by_mode, ["a", "b"], names, "ndcg@10"),
        tradeoff({"a": (0.1, 1.0), "b": (0.2, 2.0)}, names, "a", metric=evil, cost=evil, time=True),
        confusion([evil, "exact"], [[1, 0], [0, 1]]),
    ]
    for figure in figures:
        drawn = json.dumps(figure.to_dict(), default=str)
        assert not any(mark in drawn for mark in ("<img", "<script", "<svg", "</style"))
