"""BM25 over passages with their questions, dense and the questions, added up as by hand."""

import pytest

from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import FakeEngine, ScriptedLLM
from tests.unit.analysis.test_losses_of_routes import corpus


def scaled(ranking):
    scores = {hit.passage.id: hit.score for hit in ranking}
    low, high = min(scores.values()), max(scores.values())
    return {id: (score - low) / (high - low) for id, score in scores.items()}


@pytest.mark.parametrize("weight", [0, 0.75, 2])
def test_three_lists_are_added_up_between_their_lowest_and_highest_score(tmp_path, weight):
    engine = FakeEngine(tmp_path, texts=corpus(), llm=ScriptedLLM())
    names = ("doc2query", "dense", "hype", "hybrid_questions")
    request = Request(Query("customs duty of a vase"), "tiny", names, {names[-1]: {"questions": weight}})
    *lists, fused = (result.hits for result in engine.ask(request).results)
    by_hand = dict.fromkeys((hit.passage.id for hits in lists for hit in hits), 0.0)
    for hits, share in zip(lists, (1, 1, weight), strict=True):
        for id, score in scaled(hits).items():
            by_hand[id] += share * score
    assert {hit.passage.id: hit.score for hit in fused} == pytest.approx(by_hand)
    assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)


def test_the_question_is_embedded_once(tmp_path):
    engine = FakeEngine(tmp_path, texts=corpus(), llm=ScriptedLLM())
    (result,) = engine.ask(Request(Query("customs duty"), "tiny", ("hybrid_questions",))).results
    assert [span.name for span in result.spans].count("embed") == 1
