"""The numbers of a chart as a table: by hand, and every kind of chart gives its own."""

import plotly.graph_objects as go
import pytest

from core.evaluation.comparison import pair
from core.evaluation.verdict import Verdict
from tests.runs import HOSTILE, make_run
from ui.app.plot import MAX_ROWS, as_table
from ui.charts.heatmaps import confusion
from ui.charts.intervals import of_verdict
from ui.charts.numbers import numbers
from ui.charts.tradeoff import tradeoff
from ui.charts.waterfall import waterfall


def test_points_bars_and_cells_by_hand():
    figure = go.Figure()
    figure.add_scatter(
        x=[1.0, 2.5, None],
        y=[0.25, 1 / 3, 1],
        name="a",
        customdata=[["one", 4], ["<b>two</b>", "<br>1 &lt; 2<br>three"]],
    )
    figure.add_bar(x=[10], y=[7], base=[5], orientation="h", name="b")
    figure.add_scatter(x=[0, 1], y=[0, 1], hoverinfo="skip")  # decorates
    figure.update_layout(xaxis={"title": "ms"}, yaxis={"tickvals": [7], "ticktext": ["seven"]})
    assert numbers(figure) == [
        {"series": "a", "y": "0.25", "ms": "1", "details": "one · 4"},
        {"series": "a", "y": "0.3333", "ms": "2.5", "details": "two · 1 < 2 · three"},
        {"series": "b", "y": "seven", "ms": "10", "from": "5"},
    ]
    cells = go.Figure(go.Heatmap(z=[[1.0, None], [float("nan"), 0.5]], x=["p", "q"], y=["r", "s"]))
    assert numbers(cells) == [{"y": "r", "x": "p", "value": "1"}, {"y": "s", "x": "q", "value": "0.5"}]
    assert numbers(go.Figure()) == []


def test_real_charts_tell_what_they_were_made_of():
    against = pair("one", "two", [0.5, 0.25, 0.0])
    found = Verdict("undecided", None, (), None, 0.05, 25, 60, 3, (against,), (), (), ())
    assert [row["y"] for row in numbers(of_verdict(found, str.title, "m"))] == ["Two"]
    points = {"one": (0.5, 10.0), "two": (0.6, 90.0), "three": (0.4, 80.0)}
    rows = numbers(tradeoff(points, dict.fromkeys(points, "x"), "one", metric="m", cost="c", time=True))
    assert {(row["m"], row["c"]) for row in rows} == {("0.5", "10"), ("0.6", "90"), ("0.4", "80")}
    rows = numbers(confusion(["a", "b"], [[3, 1], [0, 2]]))
    assert {"true class": "a", "classified as": "b", "value": "0.25", "details": "1"} in rows
    run = make_run(mishaps=False)
    assert len(numbers(waterfall(run))) >= len(run.results)


@pytest.mark.parametrize("evil", HOSTILE)
def test_text_of_a_chart_stays_text_in_its_table(evil):
    table = as_table([{"series": evil, evil: "1"}])
    assert "<img" not in table
    assert "<script" not in table
    assert "<svg" not in table
    assert "Show numbers" in table
    assert "Show" in as_table([{"a": "1"}] * (MAX_ROWS + 1))
    assert f"Showing the first {MAX_ROWS} of {MAX_ROWS + 1}." in as_table([{"a": "1"}] * (MAX_ROWS + 1))
