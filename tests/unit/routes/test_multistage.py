"""The multi-stage route: what it makes of a question, and that each stage works on the one before."""

import pytest

from core.domain.types import Query, Turn
from core.steps.gate import STRANGE, choose
from tests import asking
from tests.asking import ids, prompts, span

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
    result, llm = asking.ask(tmp_path, "multistage", query, REPLIES, **parameters)
    return result, [prompt.split("/")[0] for prompt in prompts(llm)]


@pytest.mark.parametrize("chosen", ["none", "rewrite", "decompose", "hyde", "variants"])
def test_each_transformation_is_searched_and_goes_through_all_stages(tmp_path, chosen):
    query = Query("My box arrived crushed", (Turn("user", "Hello"),) if chosen == "rewrite" else ())
    result, asked = ask(tmp_path, query, transformation=chosen)
    assert (result.status, result.error) == ("ok", None)
    assert asked == ([] if chosen == "none" else [chosen])
    top = [one.name for one in result.spans if one.parent is None]
    assert [name for name in top if name in STAGES] == STAGES
    assert result.hits[0].passage.id == "crushed:0-80"


def test_automatic_says_what_it_chose_and_why(tmp_path):
    result, asked = ask(tmp_path, Query("What does error PX-4021 mean?"))
    analysis = span(result, "analyse the question")
    assert analysis.output.decision == "none"
    assert "PX-4021" in analysis.output.why
    assert asked == []


def test_diversity_reorders_by_place_and_lambda_one_changes_nothing(tmp_path):
    asked = Query("How long does express shipping take to Germany?")  # reranked otherwise than by cosine
    straight, diverse = (
        ask(tmp_path / str(lam), asked, transformation="none", lam=lam)[0] for lam in (1.0, 0.5)
    )
    before = [id for id, _ in span(straight, "drop near-duplicates").hits]
    assert ids(straight) == before
    after = ids(diverse)
    assert after[0] == before[0], "the best has nothing before it to be like"
    assert after != before
    assert sorted(after) == sorted(before)
