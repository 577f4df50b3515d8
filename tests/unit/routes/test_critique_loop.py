"""The prompted imitation of Self-RAG: whether to search, a judged segment a passage, and the choice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.errors import ModelFailed
from core.domain.types import Query
from core.engine.request import Request
from core.steps.beam import rescore, trees
from tests.asking import span
from tests.fakes import TEXTS, FakeEngine, ScriptedLLM

FINE = {
    "look-up": {"Yes": 0.9, "No": 0.1},
    "relevant": {"Yes": 0.8, " no": 0.2},
    "segment": "Report it within 48 hours [1].",
    "supported": {"fully": 0.5, "part": 0.3, "No": 0.2},
    "useful": {"4": 0.5, "5": 0.5},
    "unaided": "Hello to you too [3].",
}
QUESTION = "My box arrived crushed"


def run(tmp_path, replies, texts=None, settings=None, **parameters):
    llm = ScriptedLLM({**FINE, **replies})
    engine = FakeEngine(tmp_path, llm=llm, texts=TEXTS if texts is None else texts, **(settings or {}))
    chosen = {"critique_loop": {"search_from": 0.5, **parameters}}
    request = Request(Query(QUESTION), "tiny", ("critique_loop",), chosen)
    return engine.ask(request), llm


def output(run_, name):
    return span(run_.results[0], name).output


def by_passage(value, other, word="six sides"):
    return lambda request: value if word in request.messages[-1].content else other


def test_a_model_whose_judgement_was_not_measured_is_not_asked_whether_to_search(tmp_path):
    made, llm = run(tmp_path, {"look-up": {"No": 1.0}}, search_from=0.0)
    assert made.results[0].hits
    assert "look-up" not in [request.prompt.split("/")[0] for request in llm.requests]


def test_all_three_scores_of_each_branch_are_kept_and_the_best_is_the_answer(tmp_path):
    made, llm = run(tmp_path, {"useful": by_passage({"5": 1.0}, {"1": 1.0})})
    result = made.results[0]
    assert (result.status, result.error) == ("ok", None)
    tree = output(made, "choose the best segment")
    assert len(tree.branches) == 3
    best = next(branch for branch in tree.branches if branch.chosen)
    assert best.passage == "crushed:0-80" == result.hits[0].passage.id
    assert best.relevance == pytest.approx(0.8)
    assert best.support == {
        word: pytest.approx(p) for word, p in zip(("fully", "partially", "no"), (0.5, 0.3, 0.2), strict=True)
    }
    assert best.utility == 1
    assert best.score == pytest.approx(0.8 + 0.5 + 0.5 * 0.3 + 0.5 * 1)
    assert tree.why == "its weighted score 1.95 is the highest of 3"
    assert (result.answer, result.citations) == ("Report it within 48 hours. [1]", ("crushed:0-80",))
    assert [request.prompt.split("/")[0] for request in llm.requests] == [
        "look-up",
        *["relevant", "segment", "supported", "useful"] * 3,
    ]
    assert len(trees(made)) == 1


def test_what_is_asked_of_a_passage_begins_alike(tmp_path):
    _, llm = run(tmp_path, {}, passages=1)
    asked = [request for request in llm.requests if request.prompt != "look-up/1"]
    start = asked[0].messages[-1].content.split("Is the answer")[0]
    assert start.startswith("<passage 1>")
    for request in asked:
        assert request.messages[0] == asked[0].messages[0]
        assert request.messages[-1].content.startswith(start)
        assert request.reuse_prefix


ALL = {"relevant_from": 1e-9, "supported_from": 0.0}  # every segment is written and may be chosen


@pytest.mark.slow
@given(st.floats(0, 5), st.floats(0, 5), st.floats(0, 5))
def test_the_weights_choose_as_the_page_ranks_anew(tmp_path_factory, w_rel, w_sup, w_use):
    replies = {
        "relevant": by_passage({"yes": 0.9, "no": 0.1}, {"yes": 0.2, "no": 0.8}),
        "supported": by_passage({"no": 1.0}, {"fully": 0.5, "no": 0.5}),
        "useful": by_passage({"2": 1.0}, {"3": 0.5, "4": 0.5}),
    }
    made, _ = run(tmp_path_factory.mktemp("w"), replies, w_rel=w_rel, w_sup=w_sup, w_use=w_use, **ALL)
    tree = output(made, "choose the best segment")
    scores = [branch.score for branch in tree.branches]
    assert tree.branches[scores.index(max(scores))].chosen
    again, _ = rescore(tree, tree.weights)
    assert [branch.chosen for branch in again.branches] == [b.chosen for b in tree.branches]
    assert [branch.score for branch in again.branches] == scores


@pytest.mark.parametrize(
    ("reply", "threshold", "decision", "why"),
    [
        ({"Yes": 0.9, "No": 0.1}, 0.5, "retrieve", "P(Yes) 0.90 is at least 0.5"),
        ({"Yes": 0.3, "No": 0.7}, 0.5, "no retrieval", "P(Yes) 0.30 is below 0.5"),
        ({"Yes": 0.3, "No": 0.7}, 0.2, "retrieve", "at least 0.2"),
        ("no.", 0.5, "no retrieval", "from the word, as the endpoint gives no probabilities"),
        ("Yes", 0.5, "retrieve", "from the word"),
        ("perhaps", 0.5, "retrieve", "neither Yes nor No but 'perhaps'"),
    ],
)
def test_whether_to_search_is_decided_by_the_model(tmp_path, reply, threshold, decision, why):
    made, _ = run(tmp_path, {"look-up": reply}, search_from=threshold)
    told = output(made, "decide whether to look it up")
    assert told.decision == decision
    assert why in told.why
    result = made.results[0]
    assert bool(result.hits) is (decision == "retrieve")
    if decision != "retrieve":
        assert (result.answer, result.citations, result.abstained) == ("Hello to you too.", (), False)


def test_without_probabilities_the_words_count(tmp_path):
    replies = {"relevant": "Yes", "supported": "Partially.", "useful": "4"}
    made, _ = run(tmp_path, replies, passages=1)
    (branch,) = output(made, "choose the best segment").branches
    assert (branch.relevance, branch.utility) == (1, 0.5)
    assert branch.support == {"fully": 0, "partially": 1, "no": 0}
    assert branch.score == pytest.approx(1 + 0.5 + 0.25)
    assert set(branch.by) == {"sampled word"}


@pytest.mark.parametrize("bad", ["maybe", ModelFailed("the endpoint answered HTML")])
def test_a_segment_that_could_not_be_judged_is_never_chosen_and_kept_apart(tmp_path, bad):
    def supported(request):
        if "six sides" not in request.messages[-1].content:
            return {"no": 1.0}
        if isinstance(bad, Exception):
            raise bad
        return bad

    made, _ = run(tmp_path, {"supported": supported, "useful": {"1": 1.0}}, **ALL)
    tree = output(made, "choose the best segment")
    assert [one.passage for one in tree.unjudged] == ["crushed:0-80"]
    assert tree.unjudged[0].why
    assert len(tree.branches) == 2
    assert made.results[0].hits[2].passage.id == "crushed:0-80"
    made, _ = run(tmp_path, {"supported": bad})
    assert made.results[0].status == "failed"
    assert "none of 3 segments could be judged" in made.results[0].error


def test_an_answer_is_kept_back_where_every_segment_keeps_it_back(tmp_path):
    made, _ = run(tmp_path, {"segment": "The passage does not mention it."})
    result = made.results[0]
    assert (result.answer, result.abstained) == ("The passages do not answer this.", True)
    assert output(made, "choose the best segment").decision == "abstain"
    made, llm = run(tmp_path, {}, texts={})
    assert made.results[0].abstained
    assert output(made, "choose the best segment").why == "no passage was found to write from"
    assert len(llm.requests) == 1


@pytest.mark.parametrize(("calls", "written"), [(5, 1), (8, 1), (9, 2)])
def test_a_spent_budget_keeps_the_segments_that_were_judged(tmp_path, calls, written):
    made, _ = run(tmp_path, {}, settings={"route_max_calls": calls})
    tree = output(made, "choose the best segment")
    assert len(tree.branches) == written
    assert f"the budget was spent before {3 - written} more" in tree.why
    none, _ = run(tmp_path, {}, settings={"route_max_calls": 3})
    assert none.results[0].status == "timeout"
    assert "before any segment" in none.results[0].error


def test_nothing_is_written_from_a_passage_that_does_not_state_the_answer(tmp_path):
    made, llm = run(tmp_path, {"relevant": {"yes": 0.2, "no": 0.8}})
    result = made.results[0]
    assert (result.abstained, result.citations) == (True, ())
    assert [r.prompt for r in llm.requests] == ["look-up/1", *["relevant/2"] * 3]
    unjudged = output(made, "choose the best segment").unjudged
    assert {one.why for one in unjudged} == {"P(Yes) 0.20 that it states the answer is below 0.50"}
    assert result.hits


def test_a_segment_that_its_passage_does_not_support_is_no_answer(tmp_path):
    made, _ = run(tmp_path, {"supported": {"no": 0.9, "fully": 0.1}})
    result = made.results[0]
    assert (result.abstained, result.citations) == (True, ())
    tree = output(made, "choose the best segment")
    assert not tree.branches
    assert "none of 3 passages supports an answer" in tree.why
