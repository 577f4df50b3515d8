"""How matches are read out of stored spans and drawn, also where a stored run is not as a step wrote it."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.analysis.term_contributions import TokenMatch, expansions, token_matches
from core.domain.outputs import MatchedPassage, Rerank, Search, TokenMatches
from core.domain.types import Query, RouteResult, Span
from core.engine.request import Request
from core.store.codec import from_document, to_document
from tests.fakes import FakeEngine
from tests.runs import HOSTILE
from ui.charts.heatmaps import NAMED_TOKENS, describe_match, match_heatmap


def result(*outputs):
    spans = (Span(n, None, "search", "RERANKER", 0, 1, {}, one) for n, one in enumerate(outputs, 1))
    return RouteResult("any", "Any", "ok", 1.0, spans=tuple(spans))


def test_what_the_steps_wrote_is_read_back_from_a_stored_run(tmp_path):
    routes = ("late_interaction", "splade")
    run = FakeEngine(tmp_path).ask(Request(Query("How do I send a fragile item back?"), "tiny", routes))
    late, sparse = from_document(json.loads(json.dumps(to_document(run)))).results
    (tokens,) = token_matches(late)
    assert tokens.model == "hash tokens"
    assert [match.passage.id for match in tokens.hits] == [hit.passage.id for hit in late.hits[:5]]
    assert [match.drawable for match in tokens.hits] == [True] * 3 + [False] * 2
    for match in tokens.hits[:3]:
        one = match.passage
        for row, (token, cosine) in zip(one.cosines, one.best, strict=True):
            at = row.index(max(row))
            assert abs(max(row) - cosine) <= 0.005 + 1e-9
            assert one.passage[at] == token or row.count(max(row)) > 1
    ((span, terms),) = expansions(sparse)
    assert span in sparse.spans
    assert terms.model == "hash terms"
    assert terms.terms == len(terms.expansion)
    assert list(terms.matched) == [hit.passage.id for hit in sparse.hits[:5]]
    assert (token_matches(sparse), expansions(late)) == ([], [])


def test_steps_that_matched_nothing_tell_of_no_tokens_and_no_terms():
    none = result(Search(), Rerank(), Search(tokens=TokenMatches(("q",), ())), Search(terms=3))
    assert (token_matches(none), expansions(none)) == ([], [])


pairs = st.lists(st.tuples(st.text(max_size=3), st.floats()), max_size=3).map(tuple)
rows = st.lists(st.lists(st.floats(), max_size=3).map(tuple), max_size=3).map(tuple)
words = st.lists(st.text(max_size=3), max_size=3).map(tuple)
matched = st.builds(MatchedPassage, st.just("p"), pairs, words, st.integers(-1, 9), rows)


@given(words, st.lists(matched, max_size=3).map(tuple))
def test_an_imported_match_of_any_shape_is_told_and_drawn_only_where_it_fits(query, hits):
    for found in token_matches(result(Rerank("model", tokens=TokenMatches(query, hits)))):
        for each in found.hits:
            assert describe_match(each)
            if each.drawable:
                assert match_heatmap(each).layout.height > 0


MATCH = TokenMatch(
    ("keys", "kept"),
    MatchedPassage(
        "p", (("key", 0.9), ("stored", 0.6)), ("a", "key", "stored"), 3, ((0.1, 0.9, 0.2), (0.0, 0.3, 0.6))
    ),
)


def changed(**fields):
    return replace(MATCH, passage=replace(MATCH.passage, **fields))


def test_the_heatmap_shows_the_matrix_and_rings_each_rows_best():
    figure = match_heatmap(MATCH)
    heat, rings = figure.data
    assert [list(row) for row in heat.z] == [list(row) for row in MATCH.passage.cosines]
    assert list(zip(rings.y, rings.x, strict=True)) == [(0, 1), (1, 2)]
    assert list(figure.layout.yaxis.ticktext) == ["keys", "kept"]
    assert list(figure.layout.xaxis.ticktext) == ["a", "key", "stored"]
    assert list(heat.customdata[1][2]) == ["kept", "stored"]
    columns = tuple(f"t{at}" for at in range(NAMED_TOKENS + 1))
    figure = match_heatmap(changed(passage=columns, cosines=((0.5,) * len(columns),)))
    assert list(figure.layout.xaxis.ticktext) == []
    assert list(figure.data[0].customdata[0][NAMED_TOKENS]) == ["keys", f"t{NAMED_TOKENS}"]
    told = describe_match(changed(best=(("key", 0.6), ("stored", 0.9))))
    assert told.index("kept and stored, cosine 0.90") < told.index("keys and key, cosine 0.60")
    assert MATCH.drawable
    for wrong in (((0.1, 0.9),), ((),), (), MATCH.passage.cosines * 2):
        assert not changed(cosines=wrong).drawable


def test_hostile_tokens_bring_no_markup_into_the_heatmap():
    tokens = (*HOSTILE, "</style><b>")
    best, rows = tuple((token, 0.5) for token in tokens), ((0.5,) * len(tokens),) * len(tokens)
    match = TokenMatch(tokens, MatchedPassage("p", best, tokens, 5, rows))
    assert match.drawable
    drawn = match_heatmap(match).to_json()
    for mark in ("<img", "<script", "<svg", "</style", "<b>"):
        assert mark not in drawn
        assert mark.replace("<", "\\u003c") not in drawn
