"""The Latency page, from stored runs: its figures are the store's, its choices are in the address."""

from dataclasses import replace

import pytest

from core.analysis.critical_path import by_kind, critical, ended
from core.analysis.run_view import reuse
from core.analysis.timeline import by_route, by_step
from core.domain.format import milliseconds
from core.domain.types import Span
from tests.pages.reading import address, html, shown
from tests.runs import make_run

TABS = ["This run", "Where the time goes", "Over all sessions", "Tokens and cost"]
HOSTILE = ("<img", "<script", "<svg", 'onmouseover="alert', "</style></div><svg")


@pytest.fixture
def open_tab(view):
    return lambda run, tab: view("latency.py", tab, run=run)


def test_every_tab_of_every_run_draws(open_tab, stored):
    for run in ("bad", "evil"):
        app = open_tab(run, TABS[0])
        for tab in TABS:
            app.session_state["latency_tab"] = tab
            page = html(app.run())
            assert page
            assert not any(mark in page for mark in HOSTILE)
            assert len(app.get("plotly_chart")) >= (tab in ("This run", "Over all sessions"))
            assert address(app, "tab") == (None if tab == "This run" else tab)


def test_every_route_has_its_times_as_stored(visit, stored):
    page = html(visit("latency.py", run="good"))
    for result in stored["good"].results:
        row = (
            page.split("rs-latency-times")[1]
            .split(f'<td dir="auto">{result.title}</td>', 1)[1]
            .split("</tr>", 1)[0]
        )
        used, longest = reuse(stored["good"], result), critical(result).longest
        for ms in (ended(result), result.wall_ms, used.shared_ms, used.cached_ms, used.recorded_ms):
            assert f">{milliseconds(ms)}<" in row if ms else ">–<" in row
        assert longest.name in row
    assert "CRAG is the slowest route alone, 5.2 s." in page
    assert "No time is estimated." in page


def test_one_route_is_told_with_every_span(visit, stored):
    app = visit("latency.py", run="good")
    assert app.selectbox(key="latency_route").value == "crag"  # the slowest
    page = html(app).split("rs-latency-route", 1)[1].split("</table>", 1)[0]
    crag = next(result for result in stored["good"].results if result.route == "crag")
    assert page.count("<tr>") == 1 + len(crag.spans)
    assert "work done by bm25#1" in page
    app.selectbox(key="latency_route").set_value("rewrite").run()
    assert address(app, "route") == "rewrite"
    page = html(app).split("rs-latency-route", 1)[1]
    assert "from a recording" in page
    assert "“rewrite as a standalone question” takes &gt;99% of 1.4 s." in page


def test_steps_beside_the_critical_path_are_marked_by_a_sign(visit, engine):
    run = make_run(mishaps=False, run_id="forked", corpus="tiny")
    spans = (
        Span(1, None, "slow", "TOOL", 0.0, 60.0),
        Span(2, 1, "inside", "TOOL", 0.0, 50.0),
        Span(3, None, "quick", "RETRIEVER", 0.0, 20.0, error="ValueError: <b>no</b>"),
    )
    engine.store.save(
        replace(run, results=(replace(run.results[0], spans=spans, ms=60.0), *run.results[1:3]))
    )
    assert engine.store.flush()
    page = html(visit("latency.py", run="forked"))
    assert "“slow” takes 100% of 60 ms." in page
    assert page.count("● ") - 1 == 2  # besides the key below the table
    assert page.count("○ ") - 1 == 1
    assert "40 ms to spare" in page
    assert "ValueError: &lt;b&gt;no" in page


def test_choices_are_in_the_address_and_an_address_reopens_them(visit, stored):
    app = visit("latency.py", run="good")
    app.segmented_control(key="latency_show").set_value("retrieval").run()
    app.segmented_control(key="latency_calls").set_value("yes").run()
    chosen = {"show": "retrieval", "calls": "yes"}
    assert {name: address(app, name) for name in chosen} == chosen
    again = visit("latency.py", run="good", tab="This run", **chosen)
    assert again.segmented_control(key="latency_show").value == "retrieval"
    assert again.segmented_control(key="latency_calls").value == "yes"
    assert "rewrite as a standalone question" not in again.get("plotly_chart")[0].proto.spec


def test_what_the_address_cannot_mean_is_as_ever(visit, stored):
    names = ("tab", "show", "calls", "route", "scope", "by", "times", "answers")
    app = visit("latency.py", run="good", **dict.fromkeys(names, "<b>nonsense"))
    assert app.segmented_control(key="latency_show").value == "all"


def test_where_the_time_goes_is_the_runs_own(open_tab, stored):
    page = html(open_tab("good", "Where the time goes"))
    for one in by_kind(stored["good"]):
        earlier = one.ms["cache"] + one.ms["recording"]
        for ms in (one.ms["now"], earlier):
            assert f">{milliseconds(ms) if ms else '–'}<" in page
    assert "language model" in page
    assert "Without the language model: " in page
    app = open_tab("good", "Where the time goes")
    app.segmented_control(key="latency_show").set_value("retrieval").run()
    assert '<td dir="auto">language model</td>' in page
    assert '<td dir="auto">language model</td>' not in html(app)


def test_percentiles_are_those_of_the_stored_runs(open_tab, engine, stored):
    app = open_tab("good", "Over all sessions")
    runs = [run.results for run in stored.values()]
    every = by_route(runs)
    now = [one for one in every if one.source == "now"]
    assert now != every
    assert "From the newest 3 of 3 runs." in html(app)
    assert "Rows from the cache or recordings, with the original times: 2, not shown here." in html(app)
    assert "too few for p95" in html(app)
    for expected in (now, every):
        table = app.dataframe[0].value
        assert list(table["Name"]) == [one.title for one in expected]
        assert list(table["n"]) == [one.n for one in expected]
        assert list(table["p50"]) == [milliseconds(one.at[50]) for one in expected]
        assert list(table["Largest"]) == [milliseconds(one.largest) for one in expected]
        assert set(table["p95"]) == {"–"}
        app.segmented_control(key="latency_times").set_value("all").run()
    assert address(app, "times") == "all"
    app.segmented_control(key="latency_by").set_value("steps").run()
    assert address(app, "by") == "steps"
    assert list(app.dataframe[0].value["n"]) == [one.n for one in by_step(runs)]


def test_runs_with_an_answer_are_told_apart_and_come_first_for_one_of_them(open_tab, engine, stored):
    run = make_run(mishaps=False, run_id="answered", corpus="tiny")
    results = (replace(run.results[0], answer="Yes.", ms=900.0), *run.results[1:])
    engine.store.save(replace(run, results=results))
    assert engine.store.flush()
    app = open_tab("answered", "Over all sessions")
    assert list(app.dataframe[0].value["Name"]) == ["BM25"]
    assert list(app.dataframe[0].value["Largest"]) == ["900 ms"]
    app.segmented_control(key="latency_answers").set_value("no").run()
    assert address(app, "answers") == "no"
    bm25 = app.dataframe[0].value.set_index("Name").loc["BM25"]
    assert (bm25["n"], bm25["Largest"]) == (3, "1.4 ms")


def test_a_choice_without_any_measurement_says_so(open_tab, stored):
    app = open_tab("good", "Over all sessions")
    app.segmented_control(key="latency_answers").set_value("yes").run()
    assert "No measurement matches" in shown(app)
    assert not app.get("plotly_chart")


def test_another_corpus_counts_only_where_all_are_asked_for(open_tab, engine, stored):
    engine.store.save(make_run(mishaps=False, run_id="elsewhere", corpus="other"))
    assert engine.store.flush()
    app = open_tab("good", "Over all sessions")
    assert "From the newest 3 of 3 runs." in html(app)
    app.segmented_control(key="latency_scope").set_value("all").run()
    assert address(app, "scope") == "all"
    assert "From the newest 4 of 4 runs." in html(app)


def test_tokens_are_those_of_the_run_and_on_average(open_tab, stored):
    app = open_tab("good", "Tokens and cost")
    page = html(app)
    # Five passages graded at 181 tokens each; in one run of three, where it went well.
    assert "CRAG uses the most: 905 tokens per run in 5.0 calls, averaged over 1 run." in page
    assert "From 3 of 3 runs" in page
    row = page.rsplit('<td dir="auto">CRAG</td>', 1)[1].split("</tr>", 1)[0]
    assert [row.count(f">{number}<") for number in ("1", "5.0", "900", "5")] == [1, 1, 1, 1]


def test_a_price_is_shown_where_prices_are_told(open_tab, engine, stored):
    engine.settings = engine.settings.model_copy(
        update={"llm_price_prompt": 1000.0, "llm_price_completion": 2000.0}
    )
    page = html(open_tab("good", "Tokens and cost"))
    assert "Price per run" in page
    assert ">0.91<" in page  # 900 prompt tokens and 5 of completion


def test_a_running_run_shows_what_has_ended(visit, engine):
    run = make_run(mishaps=False, run_id="growing", corpus="tiny")
    engine.store.save(replace(run, status="running", results=run.results[:2]))
    assert "Dense is the slowest route alone" in html(visit("latency.py", run="growing"))
    engine.store.save(replace(run, id="none yet", status="running", results=()))
    assert "No route of this run has ended yet" in html(visit("latency.py", run="none yet"))


def test_times_that_no_clock_gives_do_not_break_the_page(visit, engine):
    run = make_run(mishaps=False, run_id="odd", corpus="tiny")
    odd = Span(9, None, "odd", "LLM", float("inf"), float("nan"))
    broken = replace(
        run.results[0], spans=(*run.results[0].spans, odd), ms=float("inf"), wall_ms=float("nan")
    )
    engine.store.save(replace(run, results=(broken,), wall_ms=float("nan")))
    assert engine.store.flush()
    app = visit("latency.py", run="odd")
    for tab in TABS:
        app.session_state["latency_tab"] = tab
        app.run()
        assert not app.exception, (tab, app.exception)
