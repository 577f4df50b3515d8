"""The graph of entities: its rule by cases, its walk against networkx and a linear solve, and in a route."""

import json

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.passage_trace import PassageTrace
from core.backends.pagerank import Graph
from core.backends.terms import analyzer
from core.corpus.enrichments import store
from core.corpus.enrichments.graph import in_sentences, read_triples
from core.domain.errors import Unavailable
from core.domain.needs import Need
from core.domain.outputs import Search, Walk, document, from_document
from core.domain.settings import Settings
from core.domain.types import Hit, Link, Passage, Query, RouteResult, Span
from core.engine.availability import why_not
from core.engine.request import Request
from core.routes.registry import routes
from tests.fakes import FakeEngine, HashEmbedder, MemoryCorpus, ScriptedLLM

ENGLISH = analyzer("english")
EDGES = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11), st.floats(0.01, 9)).filter(
        lambda one: one[0] != one[1]
    ),
    max_size=40,
)


def walked(edges, restart, damping):
    ends = np.array([one[:2] for one in edges], np.int32).reshape(-1, 2)
    weights = np.array([one[2] for one in edges], np.float32)
    return Graph(len(restart), ends, weights).walk(np.array(restart, float), damping), ends, weights


@given(
    EDGES,
    st.lists(st.integers(0, 5), min_size=12, max_size=12).filter(any),
    st.sampled_from([0, 0.3, 0.5, 0.85]),
)
def test_a_walk_is_the_solution_of_its_linear_equations_and_what_networkx_finds(edges, restart, damping):
    found, ends, weights = walked(edges, restart, damping)
    size, begin = len(restart), np.array(restart) / sum(restart)
    ties = np.zeros((size, size))
    for (a, b), weight in zip(ends, weights.astype(float), strict=True):
        ties[a, b] += weight
        ties[b, a] += weight
    steps = np.array(
        [ties[:, at] / ties[:, at].sum() if ties[:, at].any() else begin for at in range(size)]
    ).T
    exact = np.linalg.solve(np.eye(size) - damping * steps, (1 - damping) * begin)
    np.testing.assert_allclose(found.scores, exact, atol=1e-7)
    assert found.scores.sum() == pytest.approx(1)
    assert found.change <= 1e-8
    other = nx.Graph()
    other.add_nodes_from(range(size))
    other.add_weighted_edges_from((a, b, ties[a, b]) for a in range(size) for b in range(a) if ties[a, b])
    ranks = nx.pagerank(
        other, alpha=damping, personalization=dict(enumerate(restart)), tol=1e-10, max_iter=500
    )
    np.testing.assert_allclose(found.scores, [ranks[at] for at in range(size)], atol=1e-6)


NAMED = "Call asyncio.gather or max_size for useState in ISO-8601."


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (NAMED, "identifier", ["asyncio.gather", "max_size", "useState", "ISO-8601"]),
        ("In 1994 Tim Burton directed Ed Wood. Refunds take days.", "name", ["Tim Burton", "Ed Wood"]),
        ("The Bank of England met the Duke of York.", "name", ["Bank of England", "Duke of York"]),
        ("Parcels are late. NATO is not.", "name", ["NATO"]),
        ("What do we owe? Our own customs duty of a parcel", "pair", ["customs duty"]),
        ("NATO and Ed Wood met at CoolChain.", "name", ["NATO", "Ed Wood", "CoolChain"]),
        ("Sent by CoolChain.", "identifier", ["CoolChain"]),
        ("a cold-chain parcel", "pair", ["cold chain", "chain parcel"]),
        ("der an 12345", "word", []),
    ],
)
def test_the_rule_by_cases(text, kind, expected):
    assert [one.shown for one in of_kind(text, kind)] == expected


def of_kind(text, kind):
    return [one for line in in_sentences(text, ENGLISH) for one in line if one.kind == kind]


def test_other_forms_have_one_key():
    (a,), (b,) = of_kind("customs duties", "pair"), of_kind("custom duty", "pair")
    assert a.key == b.key


@given(st.text(max_size=200))
def test_any_text_has_entities_with_keys(text):
    for name in ("english", "chinese", "none"):
        for line in in_sentences(text, analyzer(name)):
            assert all(one.key and one.shown for one in line)


TEXTS = {
    "ed:0-9": "Ed Wood was directed by Tim Burton. It is a film.",
    "burton:0-9": "Tim Burton was born in Burbank.",
    "burbank:0-9": "Burbank is in California.",
    "other:0-9": "A parcel is late.",
}


def asked(tmp_path, text, texts=TEXTS, **parameters):
    request = Request(Query(text), "tiny", ("graph",), parameters={"graph": parameters})
    (result,) = FakeEngine(tmp_path, texts=texts).ask(request).results
    assert (result.status, result.error) == ("ok", None)
    return result


def test_a_walk_reaches_what_the_question_does_not_name(tmp_path):
    result = asked(tmp_path, "Where was the director of Ed Wood born?", passage_weight=0)
    ids = [hit.passage.id for hit in result.hits]
    assert ids[:3] == ["ed:0-9", "burton:0-9", "burbank:0-9"]  # by Tim Burton, then by Burbank
    linked = next(span.output for span in result.spans if span.output.type == "entities")
    assert [seed.asked for seed in linked.seeds] == ["Ed Wood"]
    assert linked.seeds[0].by == "name"
    told = result.spans[-1].output.walk
    assert [node.name for node in told.nodes if node.kind == "passage"] == ids
    assert sum(node.seed for node in told.nodes) == pytest.approx(1)
    assert {node.name for node in told.nodes} >= {"Ed Wood", "Tim Burton", "Burbank"}
    assert 0 < told.iterations < 200
    assert told.damping == 0.85
    names = [node.name for node in told.nodes]
    assert {frozenset((names[edge.a], names[edge.b])): edge.kind for edge in told.edges}[
        frozenset(("Tim Burton", "burton:0-9"))
    ] == "mention"
    assert from_document(json.loads(json.dumps(document(result.spans[-1].output)))) == result.spans[-1].output


def test_a_question_that_names_nothing_is_searched_by_dense_alone(tmp_path):
    result = asked(tmp_path, "why?")
    dense = FakeEngine(tmp_path, texts=TEXTS).ask(Request(Query("why?"), "tiny", ("dense",))).results[0]
    assert [hit.passage.id for hit in result.hits] == [hit.passage.id for hit in dense.hits]
    linked = next(span for span in result.spans if span.output.type == "entities")
    assert linked.output.seeds == ()
    assert "dense alone" in linked.attributes["note"]


def built(tmp_path, name, llm=None, texts=TEXTS, **options):
    corpus = MemoryCorpus(texts)
    made = store.build(
        name, corpus, settings=Settings(home=tmp_path), llm=llm, embedder=HashEmbedder(), **options
    )
    return made, corpus


def test_triples_are_asked_for_once_and_tie_what_they_state(tmp_path):
    llm = ScriptedLLM({"triples": "Ed Wood | directed by | Tim Burton"})
    made, corpus = built(tmp_path, "graph_triples", llm)
    assert (made.entries, made.spent.calls, made.llm) == (2, 4, "scripted")
    again, _ = built(tmp_path, "graph_triples", llm)
    assert (again, len(llm.requests)) == (made, 4)
    index = store.load("graph_triples", corpus, Settings(home=tmp_path))
    assert index.phrases == ["Ed Wood", "Tim Burton"]
    (fact,) = index.stated(HashEmbedder().embed_query("Ed Wood directed by Tim Burton"), 3)
    assert fact[:3] == ("Ed Wood directed by Tim Burton", 0, 1)
    assert fact[3] == pytest.approx(1)
    assert (0, 1, 4.0, "relation") in index.between([0, 1])


def test_replies_that_are_no_triples_leave_passages_without_any(tmp_path):
    made, _ = built(tmp_path, "graph_triples", ScriptedLLM({"triples": "no idea"}))
    assert made.entries == 0
    assert made.notes == ("4 of 4 passages have no triple",)
    assert asked(tmp_path / "other", "Ed Wood", relations="triples").hits  # by dense, as there is no phrase


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Bus 12 | stops at | Harbour Hotel", [("Bus 12", "stops at", "Harbour Hotel")]),
        ("1. Bus 12 | stops at | the  Hotel", [("Bus 12", "stops at", "the Hotel")]),
        ("- |a|b|c|", [("a", "b", "c")]),
        ("a | b | c\na | b | c\na | b | d", [("a", "b", "c"), ("a", "b", "d")]),
        ("a | b | c\nd | cut off", [("a", "b", "c")]),
        ("4 November 1953 | is when | she was born", [("4 November 1953", "is when", "she was born")]),
        ("a | | c", [("a", "", "c")]),
        ("a | b | \n | b | c\na | b\na | b | c | d\nnone", []),
        ("", []),
        ("\n".join(f"a{n} | b | c" for n in range(20)), [(f"a{n}", "b", "c") for n in range(8)]),
    ],
)
def test_triples_are_read_line_by_line(reply, expected):
    assert read_triples(reply) == expected


@given(st.text(max_size=300))
def test_any_reply_gives_triples_with_two_ends_or_none(reply):
    found = read_triples(reply)
    assert len(found) == len(set(found)) <= 8
    assert all(a and b for a, _, b in found)


def test_a_phrase_has_every_passage_that_says_it_in_any_spelling(tmp_path):
    texts = {f"p{at}:0-9": f"the burbank number {at}" for at in range(15)}
    _, corpus = built(
        tmp_path,
        "graph",
        texts={**texts, "q:0-9": "We met in Burbank", "w:0-9": "apples"}
        | {f"w{at}:0-9": f"apples {at}" for at in range(180)},
    )
    index = store.load("graph", corpus, Settings(home=tmp_path))
    counts = dict(zip(index.phrases, index.passages, strict=True))
    assert counts["Burbank"] == 16  # of 197: a word by itself would be too common
    assert "apples" not in counts


def test_a_graph_is_made_the_same_twice_of_anything_and_refused_for_another_state(tmp_path):
    for at, texts in enumerate(({}, {"a:0-9": "is"})):
        made, _ = built(tmp_path / str(at), "graph", texts=texts)
        assert made.entries <= 1, "the title, if there is a passage"
    files = []
    for name in ("one", "two"):
        built(tmp_path / name, "graph")
        made = sorted((tmp_path / name / "enrichments/tiny/graph").iterdir())
        files.append([(one.name, one.read_bytes()) for one in made if one.suffix in (".npy", ".jsonl")])
    assert files[0] == files[1] != []
    with pytest.raises(Unavailable, match="--with graph"):
        store.load("graph", MemoryCorpus({"new:0-9": "Tim Burton"}), Settings(home=tmp_path / "one"))
    graph, rules, triples = routes()["graph"], {Need.GRAPH: "no entities"}, {Need.GRAPH_TRIPLES: "no triples"}
    assert [why_not(graph, rules), why_not(graph, triples)] == ["no entities", None]
    by_triples = {"relations": "triples"}
    assert [why_not(graph, rules, by_triples), why_not(graph, triples, by_triples)] == [None, "no triples"]


def test_why_names_the_walk_that_left_a_passage_of_the_dense_search_behind():
    dense, walked = (tuple((id, 1 / rank) for rank, id in enumerate(ids, 1)) for ids in ("abc", "cdba"))
    first = Span(1, None, "search vectors", "RETRIEVER", 0, 1, output=Search(), hits=dense)
    output = Search(walk=Walk((), (), 0.5, 9, 0.0, 1, 2, 4, 8))
    links = (Link("first", 1, 3),)
    walk = Span(2, None, "walk the graph", "RETRIEVER", 1, 1, output=output, hits=walked, links=links)
    hits = tuple(Hit(Passage(id, id, id, id, 0, 1), score) for id, score in walked)
    made = RouteResult("graph", "Graph", "ok", 2.0, hits=hits, spans=(first, walk), origin=Link("hits", 2, 4))
    trace = PassageTrace(made)
    lost = trace.fate("a", 2)
    assert (lost.kind, lost.rank, lost.was, lost.step) == ("walked past", 4, 1, walk)
    assert lost.words.startswith("At rank 1 in “search vectors”; “walk the graph” put it at rank 4")
    assert trace.fate("d", 2).kind == "found"  # by the walk alone
    assert trace.fate("e", 2).kind == "never retrieved"
