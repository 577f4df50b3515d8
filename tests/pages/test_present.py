"""Present: playlists are made, put in order, and shown one question at a time."""

from core.domain.types import Query
from core.engine.request import Request
from core.store import PlaylistEntry
from tests.pages.reading import html, shown
from ui.present import playlists, slide


def entries(engine, name="Demo"):
    return next(one.entries for one in engine.store.playlists() if one.name == name)


def fill(engine, stored, name="Demo"):
    engine.store.save_playlist(name, [playlists.of(run) for run in stored.values()])


def test_without_a_playlist_it_says_what_to_do(visit):
    app = visit("present.py")
    assert app.subheader[0].value == "No playlist yet"
    assert "add runs to it" in shown(app)


def test_a_playlist_is_made_and_the_open_run_added(visit, stored, engine):
    app = visit(run="good")
    app.switch_page("present.py").run()
    app.text_input(key="playlist_new").set_value("Friday  demo")
    next(button for button in app.button if button.proto.form_id == "new_playlist").click().run()
    assert app.session_state["playlist"] == "Friday demo"
    app.button(key="add_run").click().run()
    (one,) = entries(engine, "Friday demo")
    assert (one.run, one.question) == ("good", stored["good"].query.text)
    app.text_input(key="playlist_new").set_value("Friday demo")
    next(button for button in app.button if button.proto.form_id == "new_playlist").click().run()
    assert "already" in shown(app)
    assert len(entries(engine, "Friday demo")) == 1


def test_forward_and_back(visit, stored, engine):
    fill(engine, stored)
    app = visit("present.py", playlist="Demo", play="1", at="1")
    assert "1 of 3" in shown(app)
    assert stored["good"].query.text in html(app)
    app.button(key="slide_next").click().run()
    assert "2 of 3" in shown(app)
    app.button(key="slide_down").click().run()
    assert app.button(key="slide_next").disabled
    assert app.query_params["at"] == "3"
    app.button(key="slide_up").click().run()
    app.button(key="slide_back").click().run()
    assert app.button(key="slide_back").disabled
    app.button(key="slide_leave").click().run()
    assert "at" not in app.query_params
    assert app.selectbox(key="playlist").value == "Demo"


def test_a_link_reopens_the_slide_and_a_wrong_place_is_the_nearest(visit, stored, engine):
    fill(engine, stored)
    assert "3 of 3" in shown(visit("present.py", playlist="Demo", play="1", at="3"))
    assert "3 of 3" in shown(visit("present.py", playlist="Demo", play="1", at="99"))
    assert "Playlist" in [one.label for one in visit("present.py", playlist="Gone", play="0").selectbox]


def test_an_entry_whose_run_is_gone_says_so_and_the_others_play(visit, stored, engine):
    fill(engine, stored)
    engine.store.delete("good")
    app = visit("present.py", playlist="Demo", play="1", at="1")
    assert app.error
    app.button(key="slide_next").click().run()
    assert not app.error


def replays(engine):
    return [job for key, job in slide.begun().items() if key[0] == engine.settings.home]


def test_a_question_without_a_run_is_replayed_once_and_adds_no_session(visit, engine):
    engine.store.save_playlist(
        "Demo", [playlists.PlaylistEntry("What about damage?", "tiny", routes=("bm25", "dense"))]
    )
    for _ in range(3):
        app = visit("present.py", playlist="Demo", play="1", at="1")
        (job,) = replays(engine)
        run = job.wait(20)
        app.run()
    assert "What about damage?" in html(app)
    assert run.settings["llm mode"] == "replay"
    assert engine.store.flush()
    assert engine.store.count() == 0
    assert entries(engine)[0].run is None


def test_a_stored_run_of_the_question_is_shown_and_nothing_is_run(visit, engine):
    run = engine.ask(Request(Query("What about damage?"), "tiny", ("bm25", "dense")))
    assert engine.store.flush()
    engine.store.save_playlist("Demo", [PlaylistEntry("What about damage?", "tiny", routes=("dense",))])
    app = visit("present.py", playlist="Demo", play="1", at="1")
    assert replays(engine) == []
    assert engine.store.count() == 1
    assert any(run.id in link.proto.query_string for link in app.main.get("page_link"))


def test_the_replays_of_shown_questions_are_not_held_without_end(visit, engine, monkeypatch):
    monkeypatch.setattr(slide, "BEGUN", 2)
    slide.begun.clear()
    for n in range(4):
        engine.store.save_playlist("Demo", [PlaylistEntry(f"question {n}", "tiny", routes=("bm25",))])
        visit("present.py", playlist="Demo", play="1", at="1")
    assert [key[3][0] for key in slide.begun()] == ["question 2", "question 3"]
    for job in replays(engine):
        job.wait(20)
    slide.begun.clear()


def test_entries_are_moved_noted_and_taken_out(visit, stored, engine):
    from streamlit.testing.v1 import AppTest

    fill(engine, stored)

    def script():
        from ui.present import playlists

        playlists.edit("Demo", playlists.known()["Demo"], 1)

    visit("present.py")
    app = AppTest.from_function(script)
    app.session_state["corpus"] = "tiny"
    app.run()
    app.button(key="entry_up").click().run()
    assert [one.run for one in entries(engine)] == ["bad", "good", "evil"]
    app.text_input(key="entry_note:Demo:1").set_value("look at the second column")
    app.button(key="entry_save").click().run()
    assert entries(engine)[1].note == "look at the second column"
    app.button(key="entry_out").click().run()
    assert [one.run for one in entries(engine)] == ["bad", "evil"]


def test_a_deleted_playlist_can_be_had_back(visit, stored, engine):
    fill(engine, stored)
    app = visit("present.py")
    app.button(key="delete_playlist").click().run()
    assert engine.store.playlists() == ()
    app.button(key="undo_playlist").click().run()
    assert len(entries(engine)) == 3
