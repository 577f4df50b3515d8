"""What a pipeline of one's own may reply, and what is said of everything else."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.errors import BadInput
from core.domain.external import (
    KINDS,
    MAX_HITS,
    MAX_STAGES,
    ForeignHit,
    PipelineUsage,
    parse_reply,
    read_reply,
)

HIT = {"doc_id": "faq", "text": "Returns take 30 days.", "score": 0.5}
NAMES = "hits stages doc_id text score start end name kind from x"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=6)
    ),
    max_leaves=30,
)


def test_all_fields_are_read_and_others_are_named():
    given = {
        "hits": [{**HIT, "id": 7, "start": 0, "end": 21, "title": "FAQ", "metadata": {"page": 3}, "rank": 1}],
        "answer": "30 days.",
        "citations": ["faq"],
        "rewritten": ["return period"],
        "stages": [{"name": "bm25", "kind": "retrieve", "ms": 1.5, "hits": [HIT], "hit": []}],
        "usage": {"prompt": 12, "completion": 3, "calls": 1},
        "took": 3,
    }
    reply = read_reply(given, "x")
    hit = ForeignHit("faq", "Returns take 30 days.", "7", 0, 21, 0.5, "FAQ", {"page": 3})
    assert reply.hits[0] == hit, "numbers are ids in many stores"
    assert (reply.answer, reply.citations, reply.rewritten) == ("30 days.", ("faq",), ("return period",))
    assert (reply.usage, reply.stages[0].ms, reply.scored) == (PipelineUsage(12, 3, 1), 1.5, True)
    assert reply.ignored == ("took", "hits.rank", "stages.hit")
    assert read_reply([HIT], "x") == read_reply({"hits": [HIT]}, "x"), "a bare list is the hits"
    bare = read_reply({"hits": [{**HIT, "score": None, "id": None, "text": None}], "answer": None}, "x")
    assert (bare.hits, bare.scored) == ((ForeignHit("faq"),), False)
    half = read_reply([{"doc_id": "a\ud800", "text": "\udfff", "metadata": {"k": ["\ud800"]}}], "x")
    assert half.hits[0] == ForeignHit("a\ufffd", "\ufffd", metadata={"k": ["\ufffd"]})


def stage(name, kind, **more):
    return {"name": name, "kind": kind, "hits": [HIT], **more}


def test_sources_by_order_or_as_named():
    kinds = {"bm25": "retrieve", "embed": "embed", "dense": "RETRIEVER", "rrf": "fuse", "ce": "reranker"}
    stages = [stage(name, kind) for name, kind in kinds.items()]
    stages[1] = {"name": "embed", "kind": "embed", "ms": 2}
    stages += [stage("cut", "filter"), stage("again", "rerank", **{"from": ["bm25"]})]
    read = read_reply({"hits": [HIT], "stages": stages}, "x").stages
    assert [one.sources for one in read] == [(), (), (), (0, 2), (3,), (4,), (0,)]
    assert read[1].hits is None
    assert [one.kind for one in read][2:5] == ["retrieve", "fuse", "rerank"]
    circle = [stage("a", "fuse", **{"from": ["b"]}), stage("b", "fuse", **{"from": ["a"]})]
    for wrong, said in (
        (circle, r"stages\.0\.from: 'b' is no earlier stage"),
        (circle[1:], "earlier ones: none"),
    ):
        with pytest.raises(BadInput, match=said):
            read_reply({"hits": [HIT], "stages": wrong}, "pipeline mine")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3, "its reply is a number; expected a list of hits, or an object with hits"),
        ({}, "no field hits; it has: nothing"),
        ({"results": []}, "no field hits; it has: results"),
        ([3], "hits.0: expected an object (given: 3)"),
        ([{"text": "a"}], "hits.0.doc_id: is missing"),
        ([HIT, {"doc_id": ""}], "hits.1.doc_id: is empty"),
        ([{"doc_id": "a", "text": 3}], "hits.0.text: expected text (given: 3)"),
        ([{"doc_id": "a", "score": math.nan}], "hits.0.score: expected a finite number (given: nan)"),
        ([{"doc_id": "a", "score": "0.5"}], "hits.0.score: expected a number (given: '0.5')"),
        ([{"doc_id": "a", "start": 3}], "start and end are character offsets and go together"),
        ([{"doc_id": "a", "start": 3, "end": 1}], "start 3 is after end 1"),
        ([{"doc_id": "a", "text": "x" * 100_001}], "at most 100000 characters"),
        ([{"doc_id": "a", "metadata": {"x": math.nan}}], "hits.0.metadata: not plain JSON values"),
        ([{"doc_id": "a", "metadata": {"x": "y" * 20_000}}], "at most 20,000 are allowed"),
        ([HIT] * 100_000, "hits: at most 1,000 are allowed; return fewer"),
        ({"hits": [], "stages": [{"name": "a", "hits": [HIT] * 1001}]}, "stages.0.hits: at most 1,000"),
        ({"hits": [], "stages": [{"name": "a", "hits": [HIT] * MAX_HITS}] * 11}, "11,000 hits together"),
        ({"hits": [], "stages": [{"name": "a"}] * (MAX_STAGES + 1)}, "stages: at most 50 are allowed"),
        ({"hits": [], "stages": [{"name": "a", "kind": "magic"}]}, "allowed: retrieve, fuse, rerank, filter"),
        ({"hits": [], "stages": [{"name": "a", "ms": -1}]}, "stages.0.ms"),
        ({"hits": [], "usage": {"prompt": 1.5}}, "usage.prompt: expected a whole number"),
    ],
)
def test_each_fault_is_one_clear_message(value, said):
    with pytest.raises(BadInput) as raised:
        read_reply(value, "pipeline mine")
    assert str(raised.value).startswith("pipeline mine: ")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<html><body>502</body></html>", "it begins '<html><body>502"),
        (b"", "is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff\xfe", "is not JSON"),
        ('{"hits": [}', "is not JSON"),
    ],
)
def test_what_is_not_json(data, said):
    with pytest.raises(BadInput, match="pipeline mine: its reply is not JSON") as raised:
        parse_reply(data, "pipeline mine")
    assert said in str(raised.value)


@given(JSON)
def test_any_json_gives_a_reply_or_bad_input(value):
    """And a reply's lists are never longer than what was given, its sources always earlier."""
    try:
        reply = read_reply(value, "x")
    except BadInput:
        return
    assert len(reply.hits) == len(value if isinstance(value, list) else value["hits"])
    for at, stage in enumerate(reply.stages):
        assert stage.kind in KINDS
        assert all(source < at for source in stage.sources)
    for hits in reply.lists():
        assert all(hit.score is None or math.isfinite(hit.score) for hit in hits)
        json.dumps([[hit.doc_id, hit.text, hit.metadata] for hit in hits], allow_nan=False).encode()
