"""The rank matrix: its rows against the run, its colours, and picking in it."""

import re
from dataclasses import replace

import streamlit as st

from core.analysis.rank_overlap import contenders, rank_rows, strength
from core.analysis.run_view import worked
from core.domain.rank_changes import ranks
from tests.runs import HOSTILE, make_run
from ui.compare import ranks as page
from ui.compare import results
from ui.components.grid import View, Waiting, numbered

RUN = make_run(mishaps=False)


def test_the_rows_are_the_runs_ranks_and_higher_is_stronger():
    rows = rank_rows(RUN, depth=10)
    assert [row.id for row in rows] == contenders(RUN, depth=10, limit=40)
    assert {row.id for row in rows} == {h.passage.id for r in RUN.results for h in r.hits[:10]}
    for row in rows:
        assert row.name == RUN.passages[row.id].title
        assert list(row.ranks) == [ranks(result.hits).get(row.id) for result in worked(RUN)]
    values = [strength(rank, 10) for rank in range(1, 12)]
    assert values == sorted(values, reverse=True)
    assert values[0] == 1.0
    assert values[-2:] == [0.25, 0.0]


def test_rows_are_cut_to_their_limit_best_first_and_a_passage_below_gets_the_last():
    best = contenders(RUN, depth=20, limit=40)
    rows = rank_rows(RUN, depth=20, limit=7, gold={best[0]: 3})
    assert [row.id for row in rows] == best[:7]
    assert [row.grade for row in rows] == [3, 0, 0, 0, 0, 0, 0]
    low = next(id for id in RUN.passages if id not in contenders(RUN, depth=10, limit=12))
    rows = rank_rows(RUN, depth=10, limit=12, lit=low)
    assert len(rows) == 12
    assert rows[-1].id == low
    assert rank_rows(RUN, depth=10, limit=12, lit=rows[3].id) == rank_rows(RUN, depth=10, limit=12)
    assert all(row.name == row.id for row in rank_rows(replace(RUN, passages={}), depth=10))


def test_the_matrix_shows_names_grades_ranks_and_waiting_routes():
    first, second = (hit.passage.id for hit in RUN.results[0].hits[:2])
    view = View("bm25", 10, gold={first: 3, second: 0})
    waiting = [Waiting("Late <route>", running=True, step="rerank")]
    html = page.matrix(RUN, view, rank_rows(RUN, depth=10, gold=view.gold), None, waiting)
    assert html.count("<tr") == 1 + len(rank_rows(RUN, depth=10))
    assert html.count('scope="col"') == 1 + len(worked(RUN)) + 1
    assert 'title="running: rerank"' in html
    assert "Late &lt;route&gt;" in html
    assert 'class="grade on g3"' in html
    assert 'class="grade on g0"' in html
    numbers = numbered(RUN)
    row = re.search(rf'<tr[^>]*data-p="{numbers[first]}".*?</tr>', html)
    cells = re.findall(r"<td[^>]*>(\d*)</td>", row.group())
    known = [ranks(result.hits).get(first) for result in worked(RUN)]
    assert cells == [str(rank or "") for rank in known] + [""]
    assert 'style="--v:1.00">1</td>' in html
    assert "--v" not in "".join(re.findall(r"<td[^>]*>1[1-9]</td>", html)), "below the top: no colour"


def test_hostile_names_are_text_in_the_matrix_and_no_results_make_an_empty_one():
    evil = make_run(hostile=True)
    html = page.matrix(evil, View(), rank_rows(evil, depth=10), None)
    assert "<img" not in html
    assert HOSTILE[0].split()[0].replace("<", "&lt;") in html
    assert rank_rows(replace(RUN, results=(), passages={}), depth=10) == []
    empty = page.matrix(replace(RUN, results=(), passages={}), View(), [], None)
    assert "<tbody></tbody>" in empty


def test_rows_are_sorted_by_the_route_that_was_pressed(monkeypatch):
    state = {}
    monkeypatch.setattr(st, "session_state", state)
    route = worked(RUN)[1]
    results.pressed(RUN, f"sort {route.route}")
    rows = page.rows_of(RUN, View())
    own = ranks(route.hits)
    found = [own.get(row.id, 10_000) for row in rows]
    assert found == sorted(found)
    results.pressed(RUN, f"sort {route.route}")
    assert state[page.SORT] is None


def test_a_press_on_a_row_selects_its_passage_and_one_that_makes_no_sense_changes_nothing(monkeypatch):
    state = {}
    monkeypatch.setattr(st, "session_state", state)
    for told in ("", "passage", "passage x", "passage 99999", "passage -1", "grade 0", "grade 1 x"):
        results.pressed(RUN, told)
        assert state == {}
    results.pressed(RUN, "passage 1")
    assert state == {"passage": list(RUN.passages)[1]}
