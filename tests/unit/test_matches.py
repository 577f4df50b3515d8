"""How matches are read out of stored spans and drawn, also where a stored run is not as a step wrote it."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.charts import match_heatmap, match_told
from core.charts.match import NAMED
from core.engine import Request
from core.matches import TokenMatch, expansions, token_matches
from core.store.codec import from_document, to_document
from core.types import Query, RouteResult, Span
from tests.fakes import FakeEngine
from tests.runs import HOSTILE
from tests.strategies import values


def result(**inputs):
    return RouteResult("any", "Any", "ok", 1.0, spans=(Span(1, None, "search", "RERANKER", 0, 1, inputs),))


def test_what_the_steps_wrote_is_read_back_from_a_stored_run(tmp_path):
    routes = ("late_interaction", "splade")
    run = FakeEngine(tmp_path).ask(Request(Query("How do I send a fragile item back?"), "tiny", routes))
    late, sparse = from_document(json.loads(json.dumps(to_document(run)))).results
    (tokens,) = token_matches(late)
    assert tokens.model == "hash tokens"
    assert [match.id for match in tokens.hits] == [hit.passage.id for hit in late.hits[:5]]
    assert [bool(match.cosines) for match in tokens.hits] == [True] * 3 + [False] * 2
    for match in tokens.hits[:3]:
        for row, (token, cosine) in zip(match.cosines, match.best, strict=True):
            at = row.index(max(row))
            assert abs(max(row) - cosine) <= 0.005 + 1e-9
            assert match.passage[at] == token or row.count(max(row)) > 1
    (terms,) = expansions(sparse)
    assert terms.model == "hash terms"
    assert terms.terms == len(terms.weights)
    assert list(terms.matched) == [hit.passage.id for hit in sparse.hits[:5]]
    assert (token_matches(sparse), expansions(late)) == ([], [])


@given(st.dictionaries(st.sampled_from(["query", "hits"]), values), values, values, values)
def test_whatever_a_span_holds_is_read_without_an_error(match, terms, matched, hit):
    keys = ("id", "best", "passage", "tokens", "cosines")
    hits = [dict.fromkeys(keys, hit), {"passage": ["a"], "cosines": [[hit]], "best": [["a", hit]]}]
    for given_match in (match, {"query": ["q"], "hits": hits}):
        one = result(match=given_match, expansion=terms, terms=matched, matched=matched, model=hit)
        for found in token_matches(one):
            for each in found.hits:
                assert match_told(each)
                if each.cosines:
                    assert match_heatmap(each).layout.height > 0
        expansions(replace(one, spans=(*one.spans, *one.spans)))


def test_a_number_too_large_to_be_one_counts_as_none():
    (found,) = expansions(result(expansion=[["a", 10**400], ["b", float("nan")], ["c", 1]]))
    assert found.weights == (("a", 0.0), ("b", 0.0), ("c", 1.0))


MATCH = TokenMatch(
    "p", ("keys", "kept"), (("key", 0.9), ("stored", 0.6)), ("a", "key", "stored"), 3,
    ((0.1, 0.9, 0.2), (0.0, 0.3, 0.6)),
)  # fmt: skip


def test_the_heatmap_shows_the_matrix_and_rings_each_rows_best():
    figure = match_heatmap(MATCH)
    heat, rings = figure.data
    assert [list(row) for row in heat.z] == [list(row) for row in MATCH.cosines]
    assert list(zip(rings.y, rings.x, strict=True)) == [(0, 1), (1, 2)]
    assert list(figure.layout.yaxis.ticktext) == ["keys", "kept"]
    assert list(figure.layout.xaxis.ticktext) == ["a", "key", "stored"]
    assert list(heat.customdata[1][2]) == ["kept", "stored"]


def test_a_long_passages_tokens_are_named_in_the_hover_alone():
    columns = tuple(f"t{at}" for at in range(NAMED + 1))
    figure = match_heatmap(replace(MATCH, passage=columns, cosines=((0.5,) * len(columns),)))
    assert list(figure.layout.xaxis.ticktext) == []
    assert list(figure.data[0].customdata[0][NAMED]) == ["keys", f"t{NAMED}"]


def test_the_heatmap_is_told_in_words_closest_first():
    told = match_told(replace(MATCH, best=(("key", 0.6), ("stored", 0.9))))
    assert told.index("kept and stored, cosine 0.90") < told.index("keys and key, cosine 0.60")


def test_hostile_tokens_bring_no_markup_into_the_heatmap():
    for dark in (False, True):
        tokens = (*HOSTILE, "</style><b>")
        match = TokenMatch(
            "p",
            tokens,
            tuple((token, 0.5) for token in tokens),
            tokens,
            5,
            tuple((0.5,) * len(tokens) for _ in tokens),
        )
        drawn = match_heatmap(match, dark=dark).to_json()
        for mark in ("<img", "<script", "<svg", "</style", "<b>"):
            assert mark not in drawn
            assert mark.replace("<", "\\u003c") not in drawn
