"""The multi-stage route: what it makes of a question, and that each stage works on the one before."""

import pytest

from core.domain.types import Query, Turn
from core.engine.request import Request
from core.steps.gate import STRANGE, choose
from tests.fakes import FakeEngine, ScriptedLLM

REPLIES = {
    "rewrite": "what to do when a box arrived crushed",
    "variants": "crushed parcel\ndamaged box\nbroken pack",
    "decompose": "How is a fragile item packed?\nHow is it returned?",
    "hyde": "Photos of all six sides are reported within 48 hours.",
}
STAGES = [
    "fuse by reciprocal rank",
    "rerank by BM25, cosine and MaxSim",
    "drop near-duplicates",
    "order by marginal relevance",
]


@pytest.mark.parametrize(
    ("text", "history", "nearest", "transformation"),
    [
        ("And then?", (Turn("user", "My box is crushed."),), 0.9, "rewrite"),
        ("What does error PX-4021 mean?", (), 0.2, "none"),
        ("How do returns differ between Germany and Belgium?", (), 0.2, "decompose"),
        ("What is the fee and how is it paid?", (), 0.8, "decompose"),
        ("Why did my thing not come?", (), STRANGE - 0.01, "hyde"),
        ("Why did my thing not come?", (), STRANGE, "variants"),
        ("Why did my thing not come?", (), None, "variants"),
    ],
)
def test_the_first_rule_that_holds_chooses(text, history, nearest, transformation):
    found = choose(Query(text, history), nearest, STRANGE)
    assert found.transformation == transformation
    assert found.reason


def ask(tmp_path, query, **parameters):
    llm = ScriptedLLM(REPLIES)
    run = FakeEngine(tmp_path, llm=llm).ask(
        Request(query, "tiny", ("multistage",), {"multistage": parameters})
    )
    return run.results[0], [request.prompt.split("/")[0] for request in llm.requests]


@pytest.mark.parametrize(
    ("chosen", "prompts"),
    [
        ("none", []),
        ("rewrite", ["rewrite"]),
        ("decompose", ["decompose"]),
        ("hyde", ["hyde"]),
        ("variants", ["variants"]),
    ],
)
def test_each_transformation_is_searched_and_goes_through_all_stages(tmp_path, chosen, prompts):
    query = Query("My box arrived crushed", (Turn("user", "Hello"),) if chosen == "rewrite" else ())
    result, asked = ask(tmp_path, query, transformation=chosen)
    assert (result.status, result.error) == ("ok", None)
    assert asked == prompts
    top = [span.name for span in result.spans if span.parent is None]
    assert [name for name in top if name in STAGES] == STAGES
    assert result.hits[0].passage.id == "crushed:0-80"


def test_automatic_says_what_it_chose_and_why(tmp_path):
    result, asked = ask(tmp_path, Query("What does error PX-4021 mean?"))
    analysis = next(span for span in result.spans if span.name == "analyse the question")
    assert analysis.output.decision == "none"
    assert "PX-4021" in analysis.output.why
    assert asked == []


def test_diversity_reorders_by_place_and_lambda_one_changes_nothing(tmp_path):
    asked = Query("How long does express shipping take to Germany?")  # reranked otherwise than by cosine
    straight, diverse = (
        ask(tmp_path / str(lam), asked, transformation="none", lam=lam)[0] for lam in (1.0, 0.5)
    )
    kept = next(span for span in straight.spans if span.name == "drop near-duplicates")
    before = [id for id, _ in kept.hits]
    assert [hit.passage.id for hit in straight.hits] == before
    after = [hit.passage.id for hit in diverse.hits]
    assert after[0] == before[0], "the best has nothing before it to be like"
    assert after != before
    assert sorted(after) == sorted(before)
