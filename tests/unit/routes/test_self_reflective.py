"""Rounds of searching: P(Yes) that they hold the answer, each reason to stop, and what is kept."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.searches import rewrites
from core.backends.base import Completion, TokenLogprob
from core.backends.prompting.replies import DIGITS, odds
from core.steps.reflect import next_round
from core.steps.transform import shared
from tests import asking
from tests.asking import outputs, prompts
from tests.fakes import TEXTS

QUESTION = "My box arrived crushed"
GOOD = "photos of all six sides"


def ask(tmp_path, replies, question=QUESTION, texts=TEXTS, answers="none", settings=None, **more):
    replies = {"reformulate": "photos and report within 48 hours", **replies}
    options = {"texts": texts, **(settings or {})}
    return asking.ask(
        tmp_path, "self_reflective", question, replies, options=options, answers=answers, **more
    )


def sure(share):
    return {"Yes": share, "No": 1 - share}


def reply(text, *top):
    tokens = tuple((token, math.log(p)) for token, p in top)
    return Completion(
        text, "m", "stop", 1.0, 1, 1, 0, (TokenLogprob(text, tokens[0][1], tokens),) if top else ()
    )


@pytest.mark.parametrize(
    ("answer", "value", "by"),
    [
        (reply("4", ("4", 0.6), (" 3", 0.2), ("5", 0.2)), 4.0, "probabilities"),
        (reply("4", ("4", 0.3), ("The", 0.4), ("2", 0.1)), 3.5, "probabilities"),
        (reply("Hm", ("Hm", 0.5), ("9", 0.5)), None, None),
        (reply("4"), 4.0, "sampled word"),
        (reply(" **2**/5"), 2.0, "sampled word"),
        (reply("15"), None, None),
        (reply("good"), None, None),
    ],
)
def test_a_grade_is_the_expected_digit_or_the_digit_written(answer, value, by):
    found = odds(answer, DIGITS)
    assert (found.mean(), found.by) == (pytest.approx(value), by) if found else value is None
    assert found is None or sum(found.of.values()) == pytest.approx(1)


def test_a_beginning_of_a_word_counts_for_it_and_an_ambiguous_one_for_none():
    words = ("fully", "partially", "no")
    found = odds(reply("Part", (" Part", 0.5), ("fully", 0.25), ("no", 0.25), ("not", 0.0001)), words)
    assert found.of == {"fully": 0.25, "partially": 0.5, "no": 0.25}
    assert odds(reply("f", ("f", 1.0)), ("fully", "fairly")) is None


@given(
    st.one_of(st.none(), st.floats(0, 1)),
    st.one_of(st.none(), st.floats(0, 1)),
    st.integers(1, 3),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(1, 3),
)
def test_what_follows_a_round_by_its_definition(score, before, number, threshold, gain, rounds):
    decision, reason = next_round(score, before, number, threshold, gain, rounds)
    assert (decision == "try again") is (reason is None)
    if score is None:
        assert reason == "nothing found"
    elif score >= threshold:
        assert (decision, reason) == ("enough", "good enough")
    elif before is not None and score - before < gain:
        assert (decision, reason) == ("stop", "no gain")
    else:
        assert reason == (None if number < rounds else "rounds used up")


def test_a_round_that_holds_the_answer_is_enough_and_stays_as_it_was_found(tmp_path):
    result, llm = ask(tmp_path, {"evidence": sure(0.75)})
    assert (result.status, result.error) == ("ok", None)
    (round_,) = outputs(result, "reflect on the round")
    assert (round_.decision, round_.score) == ("enough", pytest.approx(0.75))
    assert round_.why == "P(Yes) 0.75, enough from 0.58: good enough"
    assert prompts(llm) == ["evidence/1"]
    fused = next(span for span in result.spans if span.name == "fuse by reciprocal rank")
    assert [id for id, _ in fused.hits] == [hit.passage.id for hit in result.hits]


def test_an_answer_does_not_ask_again_what_the_round_asked(tmp_path):
    replies = {"evidence": sure(0.75), "answer": "Take photos [1]."}
    _, llm = ask(tmp_path, replies, answers="all")
    assert len({one.messages for one in llm.requests if one.prompt == "evidence/1"}) == 1


def test_where_the_answer_is_missing_another_query_is_searched_and_the_better_round_leads(tmp_path):
    def evidence(request):
        return sure(0.9) if GOOD in request.messages[-1].content else sure(0.1)

    result, llm = ask(tmp_path, {"evidence": evidence}, "How long does it take", graded=1)
    first, second = outputs(result, "reflect on the round")
    assert (first.decision, second.decision) == ("try again", "enough")
    told = next(r for r in llm.requests if r.prompt == "reformulate/2").messages[-1].content
    assert told.startswith("<passage 1>")
    assert "- How long does it take" in told
    (kept,) = outputs(result, "keep the best round")
    assert kept.decision == "round 2 of 2"
    assert result.hits[0].passage.id == "crushed:0-80"
    assert [one.texts for _, one in rewrites(result)] == [("photos and report within 48 hours",)]


def test_the_first_round_is_kept_where_the_second_is_worse(tmp_path):
    def evidence(request):
        return sure(0.1) if GOOD in request.messages[-1].content else sure(0.2)

    result, _ = ask(tmp_path, {"evidence": evidence}, "Express shipping", graded=1)
    (kept,) = outputs(result, "keep the best round")
    assert (kept.decision, kept.reason) == ("round 1 of 2", "no gain")
    assert result.hits[0].passage.id == "express:0-80"
    assert "crushed:0-80" in [hit.passage.id for hit in result.hits]


def test_only_what_was_judged_leads_and_all_rounds_stand_behind_it_fused(tmp_path):
    def evidence(request):
        return sure(0.9) if GOOD in request.messages[-1].content else sure(0.1)

    result, _ = ask(tmp_path, {"evidence": evidence}, "How long does it take", graded=1)
    fused = [span for span in result.spans if span.name == "fuse by reciprocal rank"]
    assert len(fused) == 3  # each round's two lists, and the rounds
    judged = [id for id, _ in fused[1].hits[:1]]
    behind = [id for id, _ in fused[2].hits if id not in judged]
    assert [hit.passage.id for hit in result.hits] == judged + behind
    assert behind != [id for id, _ in fused[1].hits[1:]]


def test_each_other_reason_to_stop(tmp_path):
    poor = {"evidence": sure(0.2)}
    for reason, given_ in {
        "no gain": ({}, {"rounds": 3}),
        "rounds used up": ({}, {"gain": 0, "rounds": 2}),
        "same question": ({"reformulate": "my BOX, arrived crushed!"}, {}),
    }.items():
        replies, parameters = given_
        replies = {**poor, "reformulate": lambda r: f"round {len(r.messages[-1].content)}", **replies}
        result, _ = ask(tmp_path, replies, **parameters)
        assert outputs(result, "keep the best round")[0].reason == reason
        assert result.hits
    result, llm = ask(tmp_path, poor, texts={})
    assert outputs(result, "keep the best round")[0].reason == "nothing found"
    assert not llm.requests


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_a_spent_budget_stops_the_search_and_keeps_what_was_found(tmp_path, calls):
    result, _ = ask(
        tmp_path,
        {"evidence": sure(0.2), "reformulate": "customs invoice"},
        settings={"route_max_calls": calls},
        answers="all",
    )
    assert result.status == "ok"
    assert result.hits


@pytest.mark.parametrize(("share", "forced", "searches"), [(0.9, "try again", 2), (0.1, "enough", 1)])
def test_a_round_can_be_forced_either_way(tmp_path, share, forced, searches):
    result, _ = ask(tmp_path, {"evidence": sure(share)}, forced={"reflect on the round": forced})
    assert sum(span.name == "fuse by reciprocal rank" for span in result.spans) >= searches
    assert len(outputs(result, "reflect on the round")) == searches
    assert result.hits


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 3))
def test_the_rounds_never_exceed_their_cap(tmp_path_factory, shares, rounds):
    calls = iter(range(10_000))
    result, llm = ask(
        tmp_path_factory.mktemp("cap"),
        {
            "evidence": lambda _: sure(shares[next(calls) % len(shares)]),
            "reformulate": lambda _: f"box number {next(calls)}",
        },
        rounds=rounds,
        gain=0,
        threshold=1,
    )
    assert result.status == "ok"
    assert 1 <= len(outputs(result, "reflect on the round")) <= rounds
    assert sum(request.prompt == "reformulate/2" for request in llm.requests) < rounds


def test_near_equal_queries_share_most_words():
    assert shared({"a", "b"}, "B a!") == 1
    assert shared({"a", "b", "c", "d", "e"}, "a b c d") == 0.8
    assert shared(set(), "") == 0
