"""Sessions: the list of every run."""

from dataclasses import replace
from datetime import UTC, date, datetime

from core.domain.types import Query
from core.engine.request import Request
from tests.pages.reading import address, shown
from tests.runs import make_run
from ui.sessions import actions


def test_the_empty_list_says_why_and_what_to_do(visit):
    app = visit("sessions.py")
    assert app.subheader[0].value == "No runs yet"


def test_every_run_is_listed_and_searched(visit, engine, stored):
    engine.store.tag("bad", ["peak season"])
    app = visit("sessions.py")
    assert len(app.dataframe[0].value) == 3
    assert "1 to 3 of 3 runs" in shown(app)
    app.text_input(key="session_search").set_value("peak").run()
    assert len(app.dataframe[0].value) == 1
    app.text_input(key="session_search").set_value("nothing like this").run()
    assert "No run matches" in shown(app)
    app.button(key="session_clear").click().run()
    assert len(app.dataframe[0].value) == 3


def test_filters_offer_what_is_stored_and_are_in_the_address(visit, engine, stored):
    engine.store.tag("bad", ["peak season"])
    app = visit("sessions.py")
    assert app.selectbox(key="session_corpus").options == ["All corpora", "tiny"]
    assert app.selectbox(key="session_tag").options == ["Any tag", "peak season"]
    assert app.selectbox(key="session_status").options == ["Any status", "done"]
    assert len(app.selectbox(key="session_route").options) == 9
    app.selectbox(key="session_tag").set_value("peak season").run()
    assert len(app.dataframe[0].value) == 1
    assert address(app, "tag") == "peak season"
    app.date_input(key="session_until").set_value(date(2026, 11, 19)).run()
    assert "No run matches" in shown(app)
    assert address(app, "until") == "2026-11-19"
    app.button(key="session_clear").click().run()
    assert len(app.dataframe[0].value) == 3
    assert "tag" not in app.query_params


def test_the_address_opens_the_filtered_list(visit, engine, stored):
    engine.store.tag("evil", ["x"])
    app = visit("sessions.py", tag="x", route="bm25", since="2026-11-20", until="2026-11-20", status="done")
    assert len(app.dataframe[0].value) == 1
    assert app.date_input(key="session_since").value == date(2026, 11, 20)
    for wrong in ({"tag": "gone"}, {"since": "yesterday"}, {"status": "odd"}):
        assert len(visit("sessions.py", **wrong).dataframe[0].value) == 3


def test_a_filter_whose_last_run_is_deleted_falls_away(visit, engine, stored):
    engine.store.tag("bad", ["one"])
    app = visit("sessions.py", tag="one")
    engine.store.delete("bad")
    app.run()
    assert not app.exception
    assert len(app.dataframe[0].value) == 2


def test_pages_go_back_and_forth_without_a_gap(visit, engine):
    base = make_run(mishaps=False, corpus="tiny")
    for n in range(120):
        created = f"2026-11-{1 + n // 24:02}T{n % 24:02}:00:00.000+00:00"
        engine.store.save(replace(base, id=f"run{n:03}", created=created, results=base.results[:1]))
    assert engine.store.flush()
    app = visit("sessions.py")
    seen = list(app.dataframe[0].value["Asked (UTC)"])
    app.button(key="older").click().run()
    seen += list(app.dataframe[0].value["Asked (UTC)"])
    app.button(key="older").click().run()
    seen += list(app.dataframe[0].value["Asked (UTC)"])
    assert len(seen) == 120
    assert seen == sorted(seen, reverse=True)
    assert "101 to 120 of 120" in shown(app)
    app.button(key="newer").click().run()
    assert "51 to 100 of 120" in shown(app)


def test_a_deletion_is_undone_until_the_runs_are_gone_for_good(visit, engine, stored):
    engine.store.delete("evil")
    app = visit("sessions.py")
    for undone in (True, False):
        app.session_state["outcome:sessions"] = actions.delete(engine.store, ["bad"])
        app.run()
        assert len(app.dataframe[0].value) == 1
        assert "1 run deleted; permanently in 10 minutes." in shown(app)
        if not undone:
            engine.store.deletion.before(datetime(2030, 1, 1, tzinfo=UTC))  # by another process
        app.button(key="undo").click().run()
        assert not undone or len(app.dataframe[0].value) == 2
    assert "there is no run 'bad'" in shown(app)


def test_a_page_whose_place_in_the_list_is_gone_begins_anew(visit, engine):
    base = make_run(mishaps=False, corpus="tiny")
    for n in range(60):
        created = f"2026-11-{1 + n // 24:02}T{n % 24:02}:00:00.000+00:00"
        engine.store.save(replace(base, id=f"run{n:03}", created=created, results=base.results[:1]))
    assert engine.store.flush()
    app = visit("sessions.py")
    app.button(key="older").click().run()
    assert "51 to 60 of 60" in shown(app)
    engine.store.deletion.undo_s = 0
    engine.store.delete("run010")  # the last one of the first page
    app.run()
    assert not app.error
    assert "1 to 50 of 59" in shown(app)


def test_a_deleted_run_cannot_be_opened_though_its_job_was_in_memory(visit, engine):
    job = engine.start(Request(Query("box"), "tiny", ("bm25",)))
    job.wait()
    engine.store.flush()
    app = visit("why.py", run=job.id)
    assert not app.error
    engine.store.delete(job.id)
    engine.forget(job.id)
    app.run()
    assert "was deleted" in app.error[0].value
