"""A run as OTLP: what the published schema and the published names say is right."""

from __future__ import annotations

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
from core.domain.types import Query, Run, Turn
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


def parsed(run: Run) -> TracesData:
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


def spans(run: Run) -> list:
    return list(parsed(run).resource_spans[0].scope_spans[0].spans)


def values(span) -> dict[str, object]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    engine = FakeEngine(tmp_path_factory.mktemp("home"), llm=ScriptedLLM(REPLIES), web=WEB)
    question = Query("Is a crushed box refunded?", (Turn("user", "It was express."),))
    parameters = {"rerank": {"reranker": "llm", "candidates": 5}}
    return engine.ask(Request(question, "tiny", tuple(routes()), parameters, answers="all"))


@pytest.mark.slow
def test_every_route_is_accepted_by_the_published_schema(run):
    found = spans(run)
    assert len(found) == 1 + len(run.results) + sum(len(result.spans) for result in run.results)
    ids = [span.span_id for span in found]
    assert len(set(ids)) == len(ids)
    assert len({span.trace_id for span in found}) == 1
    parents = {span.parent_span_id for span in found} - {b""}
    assert parents <= set(ids)
    assert [span.name for span in found if not span.parent_span_id] == ["ask"]
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 0 for span in found)


@pytest.mark.slow
def test_attributes_have_published_names(run):
    unknown = set()
    for span in spans(run):
        named = values(span)
        assert named["openinference.span.kind"] in KINDS
        for name in named:
            listed = next((prefix for prefix in LISTS if name.startswith(f"{prefix}.")), None)
            if listed is not None:
                assert listed in NAMES
                assert re.fullmatch(r"\d+", name[len(listed) + 1 :].split(".")[0])
                name = name[len(listed) + 1 :].partition(".")[2]
            if name not in NAMES and name not in GEN_AI:
                unknown.add(name)
    assert unknown == set()


@pytest.mark.slow
def test_attributes_agree_with_the_schema(run):
    schema = json.loads((PROJECT / "docs" / "schemas" / "otlp.json").read_text(encoding="utf-8"))
    check = Draft202012Validator(schema | {"additionalProperties": False})
    operations = set()
    for span in spans(run):
        check.validate(values(span))
        operations.add(values(span).get("gen_ai.operation.name"))
    assert operations - {None} == {"chat", "embeddings", "plan", "retrieval", "search_memory"}


@pytest.mark.slow
def test_links_name_the_steps_that_a_step_was_given(run):
    found = {span.span_id: span for span in spans(run)}
    shown = 0
    of_route = {}
    for result in run.results:
        top = next(span for span in found.values() if span.name == result.title and values(span)["metadata"])
        own = [span for span in found.values() if span.parent_span_id == top.span_id]
        of_route[result.route] = {span.name: span for span in own}
    fused = of_route["hybrid_rrf"]["fuse by reciprocal rank"]
    named = {
        found[link.span_id].name: {one.key: one.value for one in link.attributes} for link in fused.links
    }
    assert list(named) == ["search BM25", "search vectors"]
    assert named["search BM25"]["routescope.arg"].string_value == "lists[0]"
    for span in found.values():
        for link in span.links:
            assert link.span_id in found
            shown += 1
    assert shown > 100


@pytest.mark.slow
def test_what_a_search_found_and_what_a_model_took_is_told(run):
    by_name = {}
    for span in spans(run):
        by_name.setdefault(span.name, values(span))
    search = by_name["search BM25"]
    first = next(result for result in run.results if result.route == "bm25")
    assert search["retrieval.documents.0.document.id"] == first.hits[0].passage.id
    assert search["retrieval.documents.0.document.content"] == first.hits[0].passage.text
    assert search["gen_ai.retrieval.query.text"] == run.query.text
    assert json.loads(search["gen_ai.retrieval.documents"])[0] == {
        "id": first.hits[0].passage.id,
        "score": first.hits[0].score,
    }
    call = by_name["ask scripted"]
    assert (call["openinference.span.kind"], call["llm.model_name"]) == ("LLM", "scripted")
    assert (call["llm.token_count.prompt"], call["llm.token_count.completion"]) == (10, 5)
    reranked = by_name["rerank by the model's grades"]
    assert reranked["reranker.query"] == run.query.text
    assert "reranker.input_documents.4.document.id" in reranked
    assert "reranker.input_documents.5.document.id" not in reranked


@pytest.mark.slow
def test_decisions_by_score_are_evaluation_events_and_no_feedback_when_they_come_back(run):
    scored = [
        (span, span.output)
        for result in run.results
        for span in result.spans
        if isinstance(span.output, Decision) and span.output.score is not None
    ]
    assert scored
    names = [(event.name, values(event)) for span in spans(run) for event in span.events]
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


def test_tokens_are_told_once(run):
    asked = sum(values(span).get("llm.token_count.total", 0) for span in spans(run))
    recorded = sum(
        span.tokens.prompt + span.tokens.completion
        for result in run.results
        for span in result.spans
        if span.tokens and isinstance(span.output, Reply)
    )
    assert asked == recorded


def test_mishaps_are_errors(run):
    found = [span for span in spans(make_run()) if span.status.code == 2]
    assert any("time is up" in span.status.message for span in found)


@pytest.mark.slow
@given(some_runs())
def test_any_stored_run_is_accepted(run):
    assert parsed(replace(run, created="2026-11-20T10:15:30.250+00:00"))


def test_a_run_without_a_time_is_refused():
    with pytest.raises(BadInput, match="'yesterday'"):
        to_otlp(replace(make_run(), created="yesterday"))


def test_in_protobuf_it_is_what_the_schema_reads_of_the_json():
    runs = [make_run(), make_run(run_id="other")]
    request = TracesData.FromString(b"".join(to_protobuf(to_otlp(run)) for run in runs))
    assert list(request.resource_spans) == [parsed(run).resource_spans[0] for run in runs]


@given(some_runs())
def test_protobuf_comes_back_as_the_document_it_was(run):
    try:
        document = to_otlp(run)
    except BadInput:
        return  # it has no time
    back = from_protobuf(to_protobuf(document))
    sent, came = (one["resourceSpans"][0]["scopeSpans"][0]["spans"] for one in (document, back))
    for name in ("traceId", "spanId", "parentSpanId", "startTimeUnixNano"):
        assert [span.get(name) for span in came] == [span.get(name) for span in sent]


@pytest.mark.parametrize("data", [b"\xff\xff", b"\x0a\xff", b"PK\x03\x04"])
def test_bytes_that_are_no_request_are_one_message(data):
    with pytest.raises(BadInput, match="no OTLP protobuf"):
        from_protobuf(data)
