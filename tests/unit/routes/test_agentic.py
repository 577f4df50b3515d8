"""The agent: what it chooses by, its tools, each reason to stop, and that documents choose nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.errors import Unavailable
from core.domain.types import Passage
from core.steps.agent import Did, holding, in_words, outcome, read_choice
from tests import asking
from tests.asking import spans
from tests.fakes import TEXTS, FakeEngine, ScriptedLLM

QUESTION = "How long is the crushed box claim open?"
DONE = (Did("search", "When?", 90, 3, 0.456, "no"), Did("look_up", "x", 0, 0, None, "unknown"))
REPEATS = "an input that repeats the list of what was done"
PAIRS = {
    "hotel:0-40": "The spring conference takes place in the Harbour Hotel.",
    "bus:0-40": "Bus 12 stops at the Harbour Hotel.",
    "bus:40-80": "Tickets are sold by the driver.",
}


def ask(tmp_path, replies, question=QUESTION, texts=TEXTS, limits=None, answers="none", **parameters):
    llm = ScriptedLLM({"evidence": "0.10", **replies})
    engine = FakeEngine(tmp_path, llm=llm, texts=texts, **(limits or {}))
    result, _ = asking.ask(tmp_path, "agentic", question, engine=engine, answers=answers, **parameters)
    return result, llm, engine


def choices(*given):
    """Choices one after another; the last one stays."""
    left = [one if isinstance(one, str) else json.dumps({"action": one[0], "input": one[1]}) for one in given]
    return {"choose-action": lambda _: left.pop(0) if len(left) > 1 else left[0]}


def decisions(result):
    names = ("choose again or stop", "choose an action", "was it asked before")
    return [span.output.decision for span in result.spans if span.name in names]


@pytest.mark.parametrize(
    ("replies", "parameters", "limits", "texts", "reason"),
    [
        ([("answer", "")], {}, {}, TEXTS, "answered"),
        ([("search", "customs"), ("search", "keys")], {"steps": 2}, {}, TEXTS, "steps used up"),
        ([("search", "customs"), ("search", "Customs!"), ("search", "customs")], {}, {}, TEXTS, "repeated"),
        ([("search", QUESTION.upper()), ("search", f"{QUESTION} please")], {}, {}, TEXTS, "repeated"),
        ([("search", "customs")], {}, {"route_max_calls": 7}, TEXTS, "budget spent"),
        ([("search", "customs")], {}, {"route_max_tokens": 100}, TEXTS, "budget spent"),
        (["no JSON at all"], {}, {}, TEXTS, "unusable choice"),
        ([("fly", "to the moon")], {}, {}, TEXTS, "unusable choice"),
        ([("search", " ?")], {}, {}, TEXTS, "unusable choice"),
        ([("search", "customs")], {}, {}, {}, "nothing to do"),
        ([("search", "customs")], {"each": 10}, {}, TEXTS, "nothing new"),
    ],
)
def test_each_reason_to_stop(tmp_path, replies, parameters, limits, texts, reason):
    result, _, _ = ask(tmp_path, choices(*replies), limits=limits, texts=texts, **parameters)
    assert (result.status, result.error) == ("ok", None)
    assert decisions(result)[-1] == reason
    assert decisions(result).count(reason) == 1
    assert bool(result.hits) is bool(texts)


def test_the_chooser_is_told_of_a_repeat_once_and_may_do_better(tmp_path):
    replies = choices(("search", "customs"), ("search", "customs"), ("look_up", "invoice"), ("answer", ""))
    result, llm, engine = ask(tmp_path, replies)
    assert engine.fakes["tiny"].searches == [QUESTION, "customs"]
    assert decisions(result)[-1] == "answered"
    last = [r for r in llm.requests if r.prompt == "choose-action/2"][-1].messages[-1].content
    assert "3. search (not done: asked before, choose another): customs" in last
    assert "4. look_up (1 passages" in last


def test_a_variable_is_put_in_after_the_choice_from_words_that_stand_in_a_passage(tmp_path):
    replies = choices(("search", "Which bus goes to #1?"), ("answer", "")) | {"copy-words": "Harbour Hotel"}
    result, llm, engine = ask(tmp_path, replies, "Which bus goes to the spring conference?", PAIRS, each=1)
    assert engine.fakes["tiny"].searches[-1] == "Which bus goes to Harbour Hotel?"
    chosen = [r for r in llm.requests if r.prompt == "choose-action/2"]
    assert all("Harbour" not in m.content for r in chosen for m in r.messages[-1:])
    assert "answered: no): Which bus goes to #1?" in chosen[-1].messages[-1].content
    assert {"hotel:0-40", "bus:0-40"} == {hit.passage.id for hit in result.hits[:2]}
    assert spans(result, "copy words from the passages")[0].output.source == "hotel:0-40"


@pytest.mark.parametrize(
    "copied",
    ["not stated", "the Moon Hotel", "the spring conference takes place in the Harbour Hotel of course"],
)
def test_words_that_stand_nowhere_or_are_many_are_left_out(tmp_path, copied):
    replies = choices(("search", "Which bus goes to #1?"), ("answer", "")) | {"copy-words": copied}
    result, _, engine = ask(tmp_path, replies, "Which bus goes to the spring conference?", PAIRS)
    assert engine.fakes["tiny"].searches[-1] == "Which bus goes to?"
    assert "left out" in spans(result, "copy words from the passages")[0].attributes["note"]


def test_look_up_finds_what_holds_all_words_in_the_documents_found(tmp_path):
    replies = choices(("look_up", "tickets driver"), ("answer", ""))
    result, _, engine = ask(tmp_path, replies, "Which bus stops at the hotel?", PAIRS, each=1)
    (span,) = spans(result, "look up words")
    assert span.attributes["documents"] == ["bus"]
    assert [id for id, _ in span.hits] == ["bus:40-80"]
    assert [hit.passage.id for hit in result.hits[:2]] == ["bus:0-40", "bus:40-80"]
    assert len(engine.fakes["tiny"].searches) == 1


def no_tables(engine, corpus, need):
    raise Unavailable(f"corpus {corpus} has no tables")


@pytest.mark.parametrize("there", [True, False])
def test_sql_is_offered_only_where_there_are_tables(tmp_path, monkeypatch, there):
    if not there:
        monkeypatch.setattr(FakeEngine, "tables", no_tables)
    _, llm, _ = ask(tmp_path, choices(("answer", "")))
    asked = next(r for r in llm.requests if r.prompt == "choose-action/2")
    assert ("sql" in asked.schema["properties"]["action"]["enum"]) is there


def test_the_rows_of_a_query_are_passages_that_can_be_looked_through(tmp_path):
    replies = choices(("sql", "How many orders are there?"), ("look_up", "7331"), ("answer", ""))
    result, llm, _ = ask(tmp_path, replies | {"sql": "SELECT 7331 AS orders"})
    assert decisions(result)[-1] == "answered"
    assert spans(result, "ask the tables")[0].output.decision == "answered"
    (found,) = spans(result, "look up words")[0].hits
    assert found[0].startswith("sql/")
    assert found[0] in [hit.passage.id for hit in result.hits]
    told_of = [r for r in llm.requests if r.prompt == "choose-action/2"][1].messages[-1].content
    assert "2. sql (1 passages, 1 of them new" in told_of
    assert "7331" not in told_of


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            st.text(max_size=20),
            st.tuples(st.sampled_from(["search", "look_up", "answer", "sql"]), st.text(max_size=20)),
        ),
        min_size=1,
        max_size=10,
    ),
    st.integers(1, 8),
)
def test_no_reply_makes_it_choose_beyond_its_cap(tmp_path_factory, replies, steps):
    result, llm, _ = ask(tmp_path_factory.mktemp("cap"), choices(*replies), steps=steps)
    assert (result.status, result.error) == ("ok", None)
    assert len([r for r in llm.requests if r.prompt == "choose-action/2"]) <= steps


@pytest.mark.parametrize(("odds", "word"), [("0.20", "no"), ("Perhaps so", "unknown"), ("No.", "no")])
def test_the_chooser_is_told_one_of_two_words_of_the_reader(tmp_path, odds, word):
    _, llm, _ = ask(tmp_path, {"evidence": odds} | choices(("answer", "")))
    chooser = next(r for r in llm.requests if r.prompt == "choose-action/2").messages[-1].content
    assert f"answered: {word})" in chooser


def test_nothing_is_chosen_where_what_was_collected_answers_the_question(tmp_path):
    result, llm, _ = ask(tmp_path, {"evidence": "0.80"} | choices(("search", "customs")))
    assert spans(result, "do the passages answer the question")[0].output.decision == "yes"
    assert decisions(result) == ["enough"]
    assert [r.prompt for r in llm.requests] == ["evidence/1"]
    result, _, _ = ask(tmp_path, {"evidence": "0.80"} | choices(("answer", "")), threshold=0.9)
    assert decisions(result) == ["choose", "answered"]
    later = {"evidence": lambda one: "0.90" if "customs" in one.messages[-1].content.lower() else "0.10"}
    result, _, engine = ask(tmp_path, choices(("search", "customs")) | later, each=1)
    assert (engine.fakes["tiny"].searches, decisions(result)[-1]) == ([QUESTION, "customs"], "enough")


def test_the_answer_is_written_from_what_was_collected(tmp_path):
    replies = choices(("search", "customs"), ("answer", "")) | {
        "answer": "Within 48 hours [1].",
        "evidence": "0.90",
    }
    result, llm, _ = ask(tmp_path, replies, answers="all", each=1, threshold=1)
    assert (result.answer, result.citations) == ("Within 48 hours [1].", (result.hits[0].passage.id,))
    assert llm.requests[-1].messages[-1].content.count("<passage ") == 2


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ('{"action": "search", "input": " a  b "}', ("search", "a b")),
        (json.dumps({"action": "search", "input": outcome(DONE[0])}), REPEATS),
        (json.dumps({"action": "search", "input": in_words(DONE)}), REPEATS),
        ('{"action": "search", "input": "When?"}', ("search", "When?")),
        ('{"action": "answer", "input": ""}', ("answer", "")),
        ('{"action": "sql", "input": "x"}', "the action 'sql', which is none of search, answer"),
        ('{"action": "search", "input": 3}', "the action search without an input"),
        ("[1]", "the action None, which is none of search, answer"),
        ("{", "no JSON"),
    ],
)
def test_what_a_choice_says(reply, read):
    assert read_choice(reply, ("search", "answer"), DONE) == read


def test_passages_holding_words_one_after_another_come_first():
    texts = ["A box, crushed.", "The crushed box.", "A crushed lid.", "boxes crushed"]
    found = holding("Crushed box", [Passage(str(n), "d", "", text) for n, text in enumerate(texts)])
    assert [(hit.passage.id, hit.score) for hit in found] == [("1", 1.0), ("0", 0.5)]
    assert holding("?!", [Passage("0", "d", "", "x")]) == ()


def test_the_chooser_reads_counts_only():
    assert in_words(DONE) == (
        "1. search (90 passages, 3 of them new, nearest 0.46, answered: no): When?\n"
        "2. look_up (0 passages, 0 of them new, answered: unknown): x"
    )
