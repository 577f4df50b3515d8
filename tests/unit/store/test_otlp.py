"""A run as OTLP: what the published schema and the published names say is right."""

import base64
import json
import re
from collections import Counter
from dataclasses import replace

import pytest
from google.protobuf import json_format
from hypothesis import given
from jsonschema import Draft202012Validator
from openinference.semconv import trace as openinference
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from core.domain.errors import BadInput
from core.domain.outputs import Decision, Reply
from core.domain.settings import PROJECT
from core.domain.types import Query, Turn
from core.engine.request import Request
from core.routes.registry import routes
from core.store.otlp import from_protobuf, to_otlp, to_protobuf
from core.store.trace_sources.values import FEEDBACK
from core.store.traces_in import spans_of
from tests.fakes import FakeEngine, ScriptedLLM
from tests.runs import make_run
from tests.strategies import some_runs
from tests.unit.routes.test_shared_equals_lone import REPLIES, WEB

NAMES = {
    value
    for holder in vars(openinference).values()
    if isinstance(holder, type) and holder.__name__.endswith("Attributes")
    for name, value in vars(holder).items()
    if name.isupper() and isinstance(value, str)
}
LISTS = (
    "retrieval.documents",
    "reranker.input_documents",
    "reranker.output_documents",
    "embedding.embeddings",
    "llm.output_messages",
)
GEN_AI = {  # of the registry's retrieval, embeddings and chat spans
    "gen_ai.operation.name",
    "gen_ai.data_source.id",
    "gen_ai.retrieval.documents",
    "gen_ai.retrieval.query.text",
    "gen_ai.retrieval.top_k",
    "gen_ai.request.model",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
}
KINDS = {kind.value for kind in openinference.OpenInferenceSpanKindValues}


def parsed(run):
    """The document read by the schema, which refuses unknown fields and values of another type.

    OTLP's JSON has ids in hexadecimal, where protobuf's own JSON has base64.
    """
    document = json.loads(json.dumps(to_otlp(run)))
    for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for holder in (span, *span.get("links", ())):
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in holder:
                    digits = 32 if name == "traceId" else 16
                    assert re.fullmatch(rf"[0-9a-f]{{{digits}}}", holder[name])
                    holder[name] = base64.b64encode(bytes.fromhex(holder[name])).decode()
    return json_format.ParseDict(document, TracesData())


def spans_in(run):
    return list(parsed(run).resource_spans[0].scope_spans[0].spans)


def values(span):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    engine = FakeEngine(tmp_path_factory.mktemp("home"), llm=ScriptedLLM(REPLIES), web=WEB)
    question = Query("Is a crushed box refunded?", (Turn("user", "It was express."),))
    parameters = {"rerank": {"reranker": "llm", "candidates": 5}}
    return engine.ask(Request(question, "tiny", tuple(routes()), parameters, answers="all"))


@pytest.fixture(scope="module")
def spans(run):
    return spans_in(run)


@pytest.mark.slow
def test_every_route_is_accepted_by_the_published_schema(run, spans):
    found = spans
    assert len(found) == 1 + len(run.results) + sum(len(result.spans) for result in run.results)
    ids = [span.span_id for span in found]
    assert len(set(ids)) == len(ids)
    assert len({span.trace_id for span in found}) == 1
    parents = {span.parent_span_id for span in found} - {b""}
    assert parents <= set(ids)
    assert [span.name for span in found if not span.parent_span_id] == ["ask"]
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 0 for span in found)


@pytest.mark.slow
def test_attributes_have_published_names_and_agree_with_the_schema(spans):
    schema = json.loads((PROJECT / "docs" / "schemas" / "otlp.json").read_text(encoding="utf-8"))
    check = Draft202012Validator(schema | {"additionalProperties": False})
    unknown, operations = set(), set()
    for named in map(values, spans):
        check.validate(named)
        operations.add(named.get("gen_ai.operation.name"))
        assert named["openinference.span.kind"] in KINDS
        for name in named:
            listed = next((prefix for prefix in LISTS if name.startswith(f"{prefix}.")), None)
            if listed is not None:
                assert listed in NAMES
                number, _, name = name[len(listed) + 1 :].partition(".")
                assert number.isdecimal()
            if name not in NAMES and name not in GEN_AI:
                unknown.add(name)
    assert unknown == set()
    assert operations - {None} == {"chat", "embeddings", "plan", "retrieval", "search_memory"}


@pytest.mark.slow
def test_what_a_search_found_what_a_model_took_and_which_steps_were_given_is_told(run, spans):
    found = {span.span_id: span for span in spans}
    by_name = {span.name: values(span) for span in reversed(spans)}
    search = by_name["search BM25"]
    first = next(result for result in run.results if result.route == "bm25")
    assert search["retrieval.documents.0.document.id"] == first.hits[0].passage.id
    assert search["retrieval.documents.0.document.content"] == first.hits[0].passage.text
    assert search["gen_ai.retrieval.query.text"] == run.query.text
    best = {"id": first.hits[0].passage.id, "score": first.hits[0].score}
    assert json.loads(search["gen_ai.retrieval.documents"])[0] == best
    call = by_name["ask scripted"]
    assert (call["openinference.span.kind"], call["llm.model_name"]) == ("LLM", "scripted")
    assert (call["llm.token_count.prompt"], call["llm.token_count.completion"]) == (10, 5)
    recorded = [
        span.tokens.prompt + span.tokens.completion
        for result in run.results
        for span in result.spans
        if span.tokens and isinstance(span.output, Reply)
    ]
    assert sum(values(span).get("llm.token_count.total", 0) for span in spans) == sum(recorded)
    reranked = by_name["rerank by the model's grades"]
    assert reranked["reranker.query"] == run.query.text
    assert "reranker.input_documents.4.document.id" in reranked
    assert "reranker.input_documents.5.document.id" not in reranked
    top = next(span for span in spans if span.name == "Hybrid (RRF)")
    own = [span for span in spans if span.parent_span_id == top.span_id]
    (fused,) = [span for span in own if span.name == "fuse by reciprocal rank"]
    linked = [found[link.span_id] for link in fused.links]
    assert [span.name for span in linked] == ["search BM25", "search vectors"]
    assert all(span in own for span in linked)
    assert fused.links[0].attributes[0].value.string_value == "lists[0]"
    links = [link.span_id for span in spans for link in span.links]
    assert set(links) <= found.keys()
    assert len(links) > 100


@pytest.mark.slow
def test_decisions_by_score_are_evaluation_events_and_no_feedback_when_they_come_back(run, spans):
    scored = [
        (span, span.output)
        for result in run.results
        for span in result.spans
        if isinstance(span.output, Decision) and span.output.score is not None
    ]
    assert scored
    names = [(event.name, values(event)) for span in spans for event in span.events]
    assert {name for name, _ in names} == {"gen_ai.evaluation.result"}
    assert [
        (found["gen_ai.evaluation.name"], found["gen_ai.evaluation.score.value"]) for _, found in names
    ] == [(span.name, pytest.approx(one.score)) for span, one in scored]
    assert all(found["gen_ai.evaluation.score.label"] for _, found in names)
    own = to_otlp(run)
    assert all(FEEDBACK not in span.attributes for span in spans_of(own, Counter()))
    own["resourceSpans"][0]["resource"]["attributes"] = []  # of another program
    told = [span.attributes[FEEDBACK] for span in spans_of(own, Counter()) if FEEDBACK in span.attributes]
    assert len(told) == len(scored)


def test_mishaps_are_errors_and_protobuf_is_what_the_schema_reads_of_the_json():
    sent = TracesData.FromString(to_protobuf(to_otlp(make_run())))
    assert list(sent.resource_spans) == list(parsed(make_run()).resource_spans)
    found = [span for span in spans_in(make_run()) if span.status.code == 2]
    assert any("time is up" in span.status.message for span in found)


def test_a_run_without_a_time_is_refused():
    with pytest.raises(BadInput, match="'yesterday'"):
        to_otlp(replace(make_run(), created="yesterday"))


@pytest.mark.slow
@given(some_runs())
def test_any_run_is_accepted_and_comes_back_from_protobuf(run):
    run = replace(run, created="2026-11-20T10:15:30.250+00:00")
    document = to_otlp(run)
    assert parsed(run)
    back = from_protobuf(to_protobuf(document))
    sent, came = (one["resourceSpans"][0]["scopeSpans"][0]["spans"] for one in (document, back))
    for name in ("traceId", "spanId", "parentSpanId", "startTimeUnixNano"):
        assert [span.get(name, "0") for span in came] == [span.get(name, "0") for span in sent]


@pytest.mark.parametrize("data", [b"\xff\xff", b"\x0a\xff", b"PK\x03\x04"])
def test_bytes_that_are_no_request_are_one_message(data):
    with pytest.raises(BadInput, match="no OTLP protobuf"):
        from_protobuf(data)
