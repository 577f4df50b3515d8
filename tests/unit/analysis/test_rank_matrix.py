"""The rank matrix: its rows against the run, its colours, and picking in it."""

from dataclasses import replace

import pandas as pd
import pytest

from core.analysis.rank_overlap import Row, contenders, rank_rows, strength
from core.analysis.run_view import worked
from core.domain.rank_changes import ranks
from tests.runs import HOSTILE, make_run
from ui.charts.style import shade
from ui.compare import ranks as page
from ui.components.grid import View

RUN = make_run(mishaps=False)


def test_the_rows_are_the_runs_ranks():
    rows = rank_rows(RUN, depth=10)
    assert [row.id for row in rows] == contenders(RUN, depth=10, limit=40)
    assert {row.id for row in rows} == {h.passage.id for r in RUN.results for h in r.hits[:10]}
    for row in rows:
        assert row.name == RUN.passages[row.id].title
        assert list(row.ranks) == [ranks(result.hits).get(row.id) for result in worked(RUN)]


def test_higher_is_stronger_and_below_the_top_is_nothing():
    values = [strength(rank, 10) for rank in range(1, 12)]
    assert values == sorted(values, reverse=True)
    assert values[0] == 1.0
    assert values[-2:] == [0.25, 0.0]


def test_rows_are_cut_to_their_limit_best_first_and_hold_grades():
    best = contenders(RUN, depth=20, limit=40)
    rows = rank_rows(RUN, depth=20, limit=7, gold={best[0]: 3})
    assert [row.id for row in rows] == best[:7]
    assert [row.grade for row in rows] == [3, 0, 0, 0, 0, 0, 0]


def test_a_passage_below_the_rows_gets_the_last_one():
    low = next(id for id in RUN.passages if id not in contenders(RUN, depth=10, limit=12))
    rows = rank_rows(RUN, depth=10, limit=12, lit=low)
    assert len(rows) == 12
    assert rows[-1].id == low
    assert rank_rows(RUN, depth=10, limit=12, lit=rows[3].id) == rank_rows(RUN, depth=10, limit=12)


def test_a_passage_that_the_run_does_not_hold_is_named_by_its_id():
    assert all(row.name == row.id for row in rank_rows(replace(RUN, passages={}), depth=10))


@pytest.mark.parametrize("dark", [False, True])
def test_the_table_shows_ranks_grades_and_the_row_looked_at(dark):
    rows = [Row("a", HOSTILE[0], 3, (1, None)), Row("b", "B", 0, (None, 11)), Row("c", "C", 0, (11, 1))]
    table = page.styled(rows, 2, View(depth=10, lit="b"), dark=dark)
    assert list(table.data["passage"]) == [f"◆3 {HOSTILE[0]}", "B", "C"]
    assert table.data["0"].tolist() == [1, pd.NA, 11]
    assert table.data["1"].tolist() == [pd.NA, 11, 1]
    css = {at: dict(done) for at, done in table._compute().ctx.items()}
    assert css[0, 0]["background-color"] == page.GOLD[dark]
    assert css[0, 1] == css[2, 2] == {"background-color": shade(1.0, dark=dark), "color": "#ffffff"}
    assert {(0, 2), (2, 1)}.isdisjoint(css)
    assert [css[1, at]["background-color"] for at in (0, 1, 2)] == [page.LIT[dark]] * 3
    assert set(css[2, 0]) == {"color"}


def test_a_run_without_results_makes_an_empty_table():
    assert rank_rows(replace(RUN, results=(), passages={}), depth=10) == []
    assert page.styled([], 0, View(), dark=False).data.shape == (0, 1)


def test_a_click_picks_the_passage_of_its_row_once(monkeypatch):
    state = {"matrix_rows": ["p0", "p1", "p2"]}
    drawn = []
    monkeypatch.setattr(page.st, "session_state", state)
    monkeypatch.setattr(page.st, "rerun", drawn.append)
    for cells in ([], [(7, "0")]):  # taken back, and of rows that are gone
        state["matrix"] = {"selection": {"cells": cells}}
        page._follow("view")
    assert "passage" not in state
    assert not drawn
    state["matrix"] = {"selection": {"cells": [(1, "0")]}}
    page._follow("view")
    assert state["passage"] == "p1"
    assert drawn == ["view"]
