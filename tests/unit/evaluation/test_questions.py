"""Questions written by a model: drawn evenly, checked, kept in a file that people review."""

from __future__ import annotations

import io
import json
import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.base import LLMRequest
from core.corpus import index
from core.domain.errors import BadInput, ModelFailed, Unavailable
from core.domain.types import Query
from core.evaluation import dataset
from core.evaluation.dataset import Generated, Question
from core.evaluation.labels import desk, final
from core.evaluation.questions import label_set, question_file
from core.evaluation.questions.generate import FUTILE, copied, form, generate, passages
from core.store import Store
from tests.fakes import FakeEngine, HashEmbedder, ScriptedLLM

CITIES = ("Lindow", "Marlow", "Ostend", "Padua", "Quedlin", "Riga", "Sintra", "Trier", "Ulm", "Vevey")
TEXTS = {
    f"d{n}:0-200": f"The depot {city} sends parcels with number LK-{4000 + n} every day until {n + 8} o'clock"
    f" in the evening, except on the holidays of {city} and its region."
    for n, city in enumerate(CITIES, 1)
}


def last(request: LLMRequest) -> str:
    return request.messages[-1].content


def city(request: LLMRequest) -> str:
    return re.findall(r"The depot (\w+)", last(request))[0]


def number(request: LLMRequest) -> str:
    return re.findall(r"number (LK-\d+)", last(request))[0]


def says_yes(request: LLMRequest) -> str:
    """Yes where the passage has the city or number that the question names."""
    passages, question = last(request).rsplit("Question:", 1)
    named = re.findall(r"LK-\d+|(?<=in )[A-Z]\w+", question)
    return ".9" if named and all(one in passages for one in named) and "cost" not in question else ".1"


REPLIES = {
    "question-plain": lambda asked: f"Until when are parcels handled in {city(asked)} these days?",
    "question-vocabulary": lambda asked: f"How late may I still hand over my box in {city(asked)} tonight?",
    "question-identifier": lambda asked: f"Which place ships goods marked {number(asked)} daily?",
    "question-comparison": lambda asked: "How do closing hours differ between towns in {} and in {}?".format(
        *re.findall(r"The depot (\w+)", last(asked))
    ),
    "question-unanswerable": lambda asked: f"What does it cost to send a crate in {city(asked)} abroad?",
    "short-answer": lambda asked: re.findall(r"until (\d+ o'clock)", last(asked))[0],
    "evidence": says_yes,
}


def engine(home, texts=TEXTS, **replies):
    return FakeEngine(home, llm=ScriptedLLM({**REPLIES, **replies}), texts=texts)


def test_each_kind_is_written_checked_and_labelled(tmp_path):
    out = tmp_path / "q.jsonl"
    found = generate(engine(tmp_path), "tiny", out, 6)
    lines = question_file.read(out)
    assert found.lines == lines
    assert len(lines) == 6
    assert {line["mode"] for line in lines} >= {"plain", "exact_identifier", "no_answer"}
    for line in lines:
        made = question_file.generated(line)
        assert (made.by, made.state) == ("scripted", "proposed")
        assert made.prompt.startswith("question-")
        if line["mode"] == "no_answer":
            assert line["relevant"] == []
            assert line["answerable"] is False
        else:
            assert all(
                label["quote"] in TEXTS.values() or "until" in label["quote"] for label in line["relevant"]
            )
            assert made.checks["P(yes)"] >= found.threshold
            assert set(made.checks["ranks"]) == {"bm25", "dense", "hybrid"}
        assert made.checks["calls"] > 0
    asked = dataset.written([out], name="q").questions
    assert all(question.generated is not None for question in asked)


def test_the_same_command_goes_on_and_keeps_reviews(tmp_path):
    out = tmp_path / "q.jsonl"
    generate(engine(tmp_path), "tiny", out, 3)
    first = question_file.read(out)
    question_file.decide(out, first[0], "accepted", "Ada", "Is this what I wanted to know?")
    generate(engine(tmp_path), "tiny", out, 5)
    now = question_file.read(out)
    assert len(now) == 5
    assert now[0]["text"] == "Is this what I wanted to know?"
    assert [line["id"] for line in now[:3]] == [line["id"] for line in first]


def test_passages_come_from_every_document_before_any_comes_twice(tmp_path):
    texts = {
        f"d{n}:{k}-{k + 9}": f"{city} {k} " + "word " * 20 for n, city in enumerate(CITIES) for k in range(3)
    }
    corpus = FakeEngine(tmp_path, texts=texts).corpus("tiny")
    drawn = [one.passage.doc_id for one in passages(corpus, seed=1)]
    assert len(drawn) == 30
    for start in (0, 10, 20):
        assert len(set(drawn[start : start + 10])) == 10


def test_documents_of_one_line_are_told_and_identical_ones_asked_about_once(tmp_path):
    out = tmp_path / "q.jsonl"
    for texts in ({f"d{n}:0-9": f"Line {n}." for n in range(9)}, {}):
        with pytest.raises(BadInput, match="no passage has 15 words"):
            generate(engine(tmp_path, texts), "tiny", out, 3)
    same = {f"d{n}:0-9": next(iter(TEXTS.values())) for n in range(10)}
    found = generate(engine(tmp_path, same), "tiny", out, 5, kinds=("plain",))
    assert len(found.lines) <= 1
    assert found.ended == "every passage has been asked about"
    texts = {**TEXTS, **{f"e{n}:0-9": f"Also {one}" for n, one in enumerate(TEXTS.values())}}
    said = {"question-plain": "Until when are parcels handled in Lindow these days?"}
    found = generate(engine(tmp_path, texts, **said), "tiny", tmp_path / "p.jsonl", 5, kinds=("plain",))
    assert len(found.lines) <= 1, "the same question each time is kept once"
    assert found.dropped


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("I'm sorry, but I can't help with that.", "the model refused"),
        ("Here are some thoughts on depots without any question", "not a question"),
        ("What does the passage say about it?", "points at the passage"),
        ("Bis wann werden die Pakete in der Stadt und auf dem Land abgeholt?", "another language"),
        ("До какого часа принимают посылки?", "another language"),
    ],
)
def test_a_model_that_is_not_up_to_it_is_told_in_one_message(tmp_path, reply, why):
    texts = {f"d{n}:0-9": f"{one} {n}" for n in range(20) for one in TEXTS.values()}
    made = engine(tmp_path, texts, **{"question-plain": reply})
    found = generate(made, "tiny", tmp_path / "q.jsonl", 5, kinds=("plain",))
    assert not found.lines
    assert sum(found.dropped.values()) == FUTILE
    assert why in found.ended
    assert "scripted may not be up to these documents" in found.ended


def test_a_model_that_fails_ends_it_and_one_that_is_not_there_says_how_to_get_it(tmp_path):
    out, broken = tmp_path / "q.jsonl", engine(tmp_path, **{"question-plain": ModelFailed("broken")})
    with pytest.raises(ModelFailed, match="3 calls in a row"):
        generate(broken, "tiny", out, 3, kinds=("plain",))
    without = FakeEngine(tmp_path, llm=ScriptedLLM(missing="run: models pull default"), texts=TEXTS)
    with pytest.raises(Unavailable, match="models pull default"):
        generate(without, "tiny", out, 3)
    out.write_text('{"id": "a", "text": "Mine?"}\n')
    with pytest.raises(BadInput, match="'a' was not generated"):
        generate(engine(tmp_path), "tiny", out, 3)
    assert out.read_text() == '{"id": "a", "text": "Mine?"}\n'


def test_stopped_it_ends_with_what_there_is(tmp_path):
    stop = threading.Event()

    def then_stop(asked):
        stop.set()
        return REPLIES["short-answer"](asked)

    slow = engine(tmp_path, **{"short-answer": then_stop})
    slow.fake_llm.delay = 0.01
    found = generate(slow, "tiny", tmp_path / "q.jsonl", 5, cancel=stop)
    assert found.ended == "stopped by the user"


# ---- review


@pytest.fixture
def file(tmp_path):
    out = tmp_path / "q.jsonl"
    generate(engine(tmp_path), "tiny", out, 4)
    return out


def typed(file, *lines, who="Ada"):
    out = io.StringIO()
    question_file.review(file, who, io.StringIO("\n".join(lines)), out)
    return out.getvalue()


def test_keys_accept_edit_drop_skip_and_undo(file):
    said = typed(file, "a", "e", "What else is there to know?", "d", "u", "s", "q")
    one, two, three, four = question_file.read(file)
    assert (one["generated"]["state"], one["generated"]["reviewer"]) == ("accepted", "Ada")
    assert two["text"] == "What else is there to know?"
    assert two["generated"]["state"] == "accepted"
    assert two["generated"]["first"].endswith("?")
    assert three["generated"]["state"] == "proposed", "undone"
    assert four["generated"]["state"] == "proposed"
    assert "4 left" in said
    assert "a accept" in said
    typed(file, "d")
    assert len(dataset.written([file], name="q").questions) == 3, "a dropped question is never asked"


def test_two_people_at_one_question_lose_nothing(file):
    seen = question_file.read(file)[0]
    question_file.decide(file, seen, "accepted", "Ada")
    with pytest.raises(question_file.Overtaken, match="Ada has accepted this question meanwhile") as told:
        question_file.decide(file, seen, "dropped", "Bo")
    assert told.value.now["generated"]["reviewer"] == "Ada"
    assert question_file.read(file)[0]["generated"]["state"] == "accepted"


def test_forty_decisions_from_four_threads_are_all_kept(file):
    lines = question_file.read(file)

    def person(line):
        for state in ("accepted", "proposed") * 5:
            now = next(one for one in question_file.read(file) if one["id"] == line["id"])
            question_file.decide(file, now, state, "Ada")
        now = next(one for one in question_file.read(file) if one["id"] == line["id"])
        question_file.decide(file, now, "dropped", "Ada")

    threads = [threading.Thread(target=person, args=(line,)) for line in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert question_file.states(question_file.read(file)) == {"proposed": 0, "accepted": 0, "dropped": 4}


def test_ids_are_decided_without_asking_and_unknown_ones_change_nothing(file):
    ids = [line["id"] for line in question_file.read(file)]
    with pytest.raises(BadInput, match="no question 'nobody'"):
        question_file.decide_all(file, "Ada", [ids[0], "nobody"], [])
    with pytest.raises(BadInput, match="both"):
        question_file.decide_all(file, "Ada", [ids[0]], [ids[0]])
    assert question_file.states(question_file.read(file))["proposed"] == 4
    question_file.decide_all(file, "Ada", [], [ids[1]], every=True)
    assert question_file.states(question_file.read(file)) == {"proposed": 0, "accepted": 3, "dropped": 1}


def test_what_is_shown_holds_no_command_for_the_terminal(tmp_path):
    assert question_file.printable("a\x1b[2Jb\x07") == "a [2Jb "


def test_a_damaged_origin_is_told_with_its_line(tmp_path):
    path = tmp_path / "q.jsonl"
    for generated, why in (
        ({"state": "accepted"}, "by: "),
        ({"by": "m", "x": 1}, "x: "),
        ({"by": "m", "state": "gone"}, "state: "),
    ):
        path.write_text(json.dumps({"id": "a", "text": "Why?", "generated": generated}) + "\n")
        with pytest.raises(BadInput, match=f"line 1.*invalid: {why}"):
            dataset.written([path], name="q")


def test_figures_say_what_they_are_made_of():
    made = [
        Question(str(n), Query("?"), generated=Generated("m", state="accepted" if n else "proposed"))
        for n in range(3)
    ]
    own = Question("own", Query("?"))
    assert question_file.note([own]) == ""
    assert question_file.block([own]) == {}
    assert question_file.note([*made, own]) == (
        "3 of 4 questions were written by m, with their labels; people have accepted 2 of them."
    )
    assert question_file.note(made[1:]).startswith("All 2 questions were written by m")


# ---- checks as such


@given(st.text(st.characters(categories=("L", "N", "P", "Z")), max_size=80))
def test_a_question_of_any_text_is_judged(text):
    assert isinstance(form(text, ["The depot is open."]), str)


def test_a_question_that_is_its_passage_is_copied():
    passage = "The depot in Lindow is open until nine o'clock in the evening."
    assert copied("The depot in Lindow is open until nine?", passage)
    assert not copied("How late is the depot in Lindow open?", passage)


# ---- in a label set


def indexed(made: FakeEngine) -> FakeEngine:
    """The engine over a real index of the same texts: labels are tied to the words of documents."""
    folder = made.settings.home / "documents"
    folder.mkdir(parents=True)
    for id, text in TEXTS.items():
        (folder / f"{id.split(':')[0]}.txt").write_text(text)
    built = index.build("tiny", folder, settings=made.settings, embedder=HashEmbedder())
    built.embedder = HashEmbedder()  # as the engine over memory has it
    made.fakes["tiny"] = built
    return made


@pytest.fixture
def place(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    made, file = indexed(engine(tmp_path / "real")), tmp_path / "q.jsonl"
    generate(made, "tiny", file, 4)
    corpus = made.corpus("tiny")
    assert label_set.add(store, "mine", corpus, question_file.read(file)) == 4
    return store, corpus, file


def test_their_labels_come_with_them_and_nothing_comes_twice(place):
    store, corpus, file = place
    opened = desk.load(store, "mine")
    assert len(opened.questions) == 4
    assert {one.annotator for one in opened.current} == {label_set.BY}
    for question in opened.questions:
        assert bool(opened.pool[question.id]) is (question.answerable is not False)
    assert label_set.add(store, "mine", corpus, question_file.read(file)) == 0
    assert opened.questions == dataset.written([file], name="q").questions, "with how they were made"
    labelled, _ = final.labelled_set(store, "mine", corpus)
    assert all(labelled.labelled(q.id) for q in labelled.questions if q.answerable is not False)


def test_in_a_set_they_are_accepted_changed_dropped_and_put_back(place):
    store, _, _ = place
    first, second, *_ = label_set.questions(store, "mine")
    changed = label_set.decide(store, "mine", first, "accepted", "Ada", "How late is it open?")
    assert desk.load(store, "mine").asked[first.id].query.text == "How late is it open?"
    assert changed.generated.first == first.query.text
    dropped = label_set.decide(store, "mine", second, "dropped", "Ada")
    assert second.id not in desk.load(store, "mine").asked
    assert second.id in {one.id for one in label_set.questions(store, "mine")}
    label_set.decide(store, "mine", dropped, "proposed", "Ada")
    assert second.id in desk.load(store, "mine").asked
    back = label_set.decide(store, "mine", changed, "proposed", "Ada", first.query.text)
    assert back == first


def test_two_people_who_accept_the_same_question_and_sets_of_another_corpus_are_told(place, tmp_path):
    store, _, _ = place
    seen = label_set.questions(store, "mine")[0]
    label_set.decide(store, "mine", seen, "accepted", "Ada")
    with pytest.raises(question_file.Overtaken, match="Ada has changed this question meanwhile") as told:
        label_set.decide(store, "mine", seen, "accepted", "Bo", "Another text?")
    assert told.value.now.generated.reviewer == "Ada"
    store, corpus, file = place
    desk.create(store, "other", "elsewhere", [Question("q", Query("?"))])
    with pytest.raises(BadInput, match="over corpus elsewhere"):
        label_set.add(store, "other", corpus, question_file.read(file))
    assert len(desk.load(store, "other").questions) == 1


def test_a_job_puts_each_question_into_the_set(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    made = indexed(FakeEngine(tmp_path / "real", llm=ScriptedLLM(dict(REPLIES)), texts=TEXTS, store=store))
    running = label_set.begin(made, "mine", "tiny", 3, ("plain",))
    assert running.wait(30)
    assert running.error is None
    assert len(label_set.questions(store, "mine")) == 3
    assert running.found.per_question is not None
