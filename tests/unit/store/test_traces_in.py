"""Traces of other programs become runs: both vocabularies, real exports, and whatever is wrong with them."""

import copy
import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.passage_trace import PassageTrace
from core.cli import corpora
from core.corpus import catalogue, index
from core.corpus.corpus import Corpus
from core.domain.errors import BadInput
from core.domain.relevance import is_unmatched
from core.domain.settings import Settings
from core.engine import engine as engine_module
from core.engine.imported import imported, question, run_id
from core.evaluation.labels import desk
from core.store import Store, traces_in
from core.store.codec import to_document
from core.store.otlp import to_otlp
from core.store.traces_in import read
from tests.fakes import HashEmbedder, MemoryCorpus
from tests.runs import make_run
from tests.strategies import some_runs

FIXTURES = Path(__file__).parents[2] / "fixtures" / "traces"
DAMAGED = "Parcels that are damaged are photographed from all sides first."
RETURN = "To start a return, ask for a return merchandise authorization in your account."
DUTY = "Duty is due for textiles and for glass, and the customer pays it."
SHOP = MemoryCorpus({"damage:0": DAMAGED, "returns:0": RETURN, "customs:0": DUTY}, "shop")


def otlp():
    return json.loads((FIXTURES / "otlp.json").read_text())


def spans_of(document):
    return document["resourceSpans"][0]["scopeSpans"][0]["spans"]


def parsed(document):
    return read(json.dumps(document).encode(), "x.json")


def runs(document, corpus=SHOP, route="theirs"):
    return imported(parsed(document).traces, corpus, route)


def ids(result):
    return [hit.passage.id for hit in result.hits]


def test_openinference_with_a_reranker():
    run = runs(otlp()).runs[0]
    (result,) = run.results
    assert run.query.text == "How do I start a return?", "what the JSON of the root's input asks"
    assert run.created == "2026-09-21T14:13:20.000+00:00"
    assert (result.route, result.title, result.status, result.ms) == ("theirs", "shop-rag", "ok", 1500.0)
    assert result.answer == "Ask for an RMA first."
    assert ids(result) == ["returns:0"], "what the reranker returned, matched by its text"
    search, rerank, call = result.spans
    assert (search.kind, rerank.kind, call.kind) == ("RETRIEVER", "RERANKER", "LLM")
    assert search.hits == (("damage:0", 0.9), ("returns:0", 0.8))
    assert [(link.span, link.size) for link in rerank.links] == [(search.id, 2)]
    assert rerank.output.reranker == "bge"
    assert (call.tokens.prompt, call.tokens.completion, call.calls) == (120, 9, 1)
    assert (search.start_ms, search.ms) == (10.0, 40.0)
    fate = PassageTrace(result).fate("damage:0", 1)
    assert fate.words == "At rank 1 in “vector search”; “rerank” dropped it."


def test_opentelemetry_without_scores():
    run = runs(otlp()).runs[1]
    (result,) = run.results
    assert run.query.text == "Who pays the duty?"
    assert ids(result)[0] == "customs:0"
    assert is_unmatched(ids(result)[1]), "an id without a text, which this corpus does not have"
    assert [hit.score for hit in result.hits] == [1.0, 0.5]
    assert "1/rank" in result.spans[0].attributes["scores"]
    assert result.answer is None


@pytest.mark.parametrize("form", ["text", "structured"])
def test_documents_of_opentelemetry_as_text_and_structured(form):
    found = otlp()
    value = spans_of(found)[4]["attributes"][2]["value"]
    if form == "text":
        value["stringValue"] = json.dumps([{"id": "customs:0", "score": 0.5}, {"id": "returns:0"}])
        del value["arrayValue"]
    else:
        second = value["arrayValue"]["values"][1]["kvlistValue"]["values"][0]
        second["value"] = {"stringValue": "returns:0"}
    assert ids(runs(found).runs[1].results[0]) == ["customs:0", "returns:0"]


def told(run):
    (result,) = run.results
    spans = [(span.name, span.kind, span.hits, span.links) for span in result.spans]
    return run.query, result.answer, ids(result), spans


@pytest.mark.parametrize("file", ["phoenix-20.26-spans.json", "phoenix-20.26-dataframe.jsonl"])
def test_what_phoenix_exports_gives_the_same_runs(file):
    """Phoenix was sent otlp.json, and asked for it over its API and through its client."""
    theirs = imported(read((FIXTURES / file).read_bytes(), file).traces, SHOP, "theirs").runs
    ours = runs(otlp()).runs
    assert [run.id for run in theirs] == [run.id for run in ours]
    assert [told(run) for run in theirs] == [told(run) for run in ours]


def retrieval(*documents, **more):
    """A record of one span that returned documents."""
    own = {"context": {"trace_id": "t", "span_id": "s"}, "start_time": 1790000000, "end_time": 1790000001}
    asked = {
        "input.value": "Q?",
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents": list(documents),
    }
    return {**own, "attributes": asked, **more}


def test_what_arize_exports():
    nested = {
        "openinference": {"span": {"kind": "RETRIEVER"}},
        "input": {"value": "Who pays?"},
        "retrieval": {"documents": [{"document": {"content": DUTY, "score": 0.4}}]},
    }
    (run,) = runs([retrieval(attributes=nested)]).runs
    assert (ids(run.results[0]), run.results[0].hits[0].score) == (["customs:0"], 0.4)


def test_a_fusion_of_searches_below_it():
    """A retriever that has retrievers inside, as ensembles do, returns a list made of theirs."""
    found = otlp()
    trace = spans_of(found)[:2]
    outer, inner = copy.deepcopy(trace[1]), copy.deepcopy(trace[1])
    outer |= {"name": "ensemble", "endTimeUnixNano": "1790000000090000000"}
    inner |= {"spanId": "eeee", "parentSpanId": outer["spanId"], "name": "inner"}
    spans_of(found)[:] = [trace[0], outer, inner]
    (result,) = runs(found).runs[0].results
    assert [span.name for span in result.spans] == ["ensemble", "inner", "result of ensemble"]
    assert result.spans[0].hits is None
    assert [link.span for link in result.spans[2].links] == [2]
    assert result.origin.span == 3
    assert PassageTrace(result).fate("nope", 2).kind == "never retrieved"


@given(some_runs())
def test_every_exported_span_is_read(run):
    try:
        document = to_otlp(run)
    except BadInput:
        return  # it has no time
    sent = spans_of(document)
    if min(int(span["startTimeUnixNano"]) for span in sent) <= 0:
        return  # of before 1970
    found = parsed(document)
    kept = sum(len(trace.spans) for trace in found.traces)
    lost = sum(n for why, n in found.skipped.items() if "kept" not in why)
    assert kept + lost == len(sent)


def test_an_import_is_stored_as_it_is_and_once(tmp_path):
    store = Store(tmp_path / "a.sqlite")
    found = runs(otlp())
    assert store.add_runs(found.runs) == [run.id for run in found.runs]
    assert [to_document(store.load(run.id)) for run in found.runs] == [to_document(r) for r in found.runs]
    traces = parsed(otlp()).traces
    known = store.present([run_id(trace, "shop") for trace in traces])
    again = imported(traces, SHOP, "theirs", known)
    assert (again.runs, set(again.known), dict(again.skipped)) == ([], known, {})
    assert store.add_runs(found.runs) == []
    store.delete(found.runs[0].id)
    assert store.add_runs(found.runs) == [found.runs[0].id], "a deleted one comes back"
    store.close()


# What is wrong with traces.


def skipped(document):
    found = parsed(document)
    return found, dict(found.skipped)


def orphaned(spans):
    spans[1]["parentSpanId"] = "ffffffffffffffff"


def repeated(spans):
    spans.extend(copy.deepcopy(spans[1]) for _ in range(9))


def skewed(spans):
    spans[1]["startTimeUnixNano"] = "1789999999000000000"
    spans[2]["endTimeUnixNano"] = "1790000000000000000"


def ring(size):
    def change(spans):
        for at in range(size):
            spans[1 + at]["parentSpanId"] = spans[1 + (at + 1) % size]["spanId"]

    return change


CIRCLE = "spans whose parents go in a circle, kept without one"
SKEW = "spans that begin before their parent (clock skew), kept as they are"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (orphaned, {"spans whose parent is missing, kept without one": 1}),
        (repeated, {"spans with the id of another span of their trace": 9}),
        (skewed, {SKEW: 1, "spans that end before they begin, kept with no duration": 1}),
        *((ring(size), {CIRCLE: 1}) for size in (1, 2, 3)),
    ],
)
def test_spans_that_do_not_fit_are_counted_and_kept(change, why):
    found = otlp()
    change(spans_of(found))
    read_, told = skipped(found)
    assert told.items() >= why.items()
    assert sum(len(trace.spans) for trace in read_.traces) == 5
    made = runs(found).runs
    assert len(made) == 2
    spans = made[0].results[0].spans
    assert all(span.start_ms >= 0 and span.ms >= 0 for span in spans)
    assert change is not orphaned or ids(made[0].results[0]) == ["returns:0"]


@pytest.mark.parametrize("score", [math.nan, math.inf, "high", None, True, [1]])
def test_a_score_that_is_none_leaves_the_place(score):
    documents = {"document.content": DUTY, "document.score": score}, {"document.content": RETURN}
    (run,) = runs([retrieval(*documents)]).runs
    assert [hit.score for hit in run.results[0].hits] == [1.0, 0.5]


def test_what_is_no_request_with_passages_is_counted():
    found = otlp()
    spans_of(found)[1]["attributes"] = spans_of(found)[2]["attributes"] = []
    spans_of(found)[4]["attributes"] = [
        one for one in spans_of(found)[4]["attributes"] if "query" not in one["key"]
    ]
    taken = runs(found)
    assert taken.runs == []
    assert dict(taken.skipped) == {"traces without a retrieved passage": 1, "traces without a question": 1}


@pytest.mark.parametrize(
    "broken",
    [
        {"traceId": None},
        {"spanId": 5},
        {"startTimeUnixNano": "never"},
        {"startTimeUnixNano": "0"},
        {"startTimeUnixNano": None},
        {"startTimeUnixNano": 1e400},
        {"attributes": [{"key": "a", "value": "deep"}]},
    ],
)
def test_a_span_that_cannot_be_read_is_counted_and_the_others_kept(broken):
    found = otlp()
    spans_of(found)[1] |= broken
    read_, why = skipped(found)
    kept = sum(len(trace.spans) for trace in read_.traces)
    assert kept + sum(n for reason, n in why.items() if "cannot be read" in reason) == 5


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a session bundle, and not JSON"),
        (b"{}\n{\n", "1 lines that are not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"{}", "no traces in it"),
        (b"[1, 2]", "2 spans that cannot be read"),
        (b'{"resourceSpans": []}', "no traces in it"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": ["x"]}]}]}', "1 spans that cannot be read"),
    ],
)
def test_what_is_no_trace_is_one_clear_message(data, message):
    with pytest.raises(BadInput, match=r"x\.json") as refused:
        read(data, "x.json")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_too_large_is_refused_by_its_size(monkeypatch):
    with pytest.raises(BadInput, match="129 MiB of traces; at most 128 MiB"):
        read(bytes(129 * 2**20), "big.json")
    monkeypatch.setattr(traces_in, "MAX_TRACE", 3)
    read_, why = skipped(otlp())
    assert (len(read_.traces), why) == (1, {"traces of more than 3 spans": 1})
    monkeypatch.setattr(traces_in, "MAX_SPANS", 3)
    with pytest.raises(BadInput, match="more than 3 spans"):
        parsed(otlp())


NAMES = (
    "resourceSpans scopeSpans spans traceId spanId attributes key value context data observations type"
    " startTimeUnixNano stringValue arrayValue values output retrieval.documents.0.document.content"
    " start_time parent_id resource status name"
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(json_values)
def test_any_json_is_traces_or_one_message(value):
    try:
        found = read(json.dumps(value).encode(), "x")
    except BadInput:
        return
    taken = imported(found.traces, SHOP, "theirs")
    assert len(taken.runs) + taken.skipped.total() == len(found.traces)


def test_hostile_text_stays_text():
    found = otlp()
    hostile = "<script>alert(1)</script>\ud800\0"
    for one in spans_of(found)[1]["attributes"]:
        if one["key"].endswith((".id", ".content")):
            one["value"] = {"stringValue": hostile}
    spans_of(found)[0]["name"] = hostile
    run = runs(found).runs[0]
    texts = {passage.text for passage in run.passages.values()}
    assert "<script>alert(1)</script>\ufffd\ufffd\ufffd\0" in texts, "as documents are read"


# The command.


@pytest.fixture
def home(tmp_path, monkeypatch):
    settings = Settings(home=tmp_path / "home", models_dir=tmp_path / "models", embedder="hash")
    settings.home.mkdir()
    store = Store(settings.home / "routescope.sqlite")
    monkeypatch.setattr(index, "load_embedder", lambda _name, *, settings: HashEmbedder())
    open_corpus = lambda name: Corpus(catalogue.current(name, settings).folder)  # noqa: E731
    engine = SimpleNamespace(settings=settings, store=store, corpus=open_corpus)
    monkeypatch.setattr(corpora, "ensure", lambda source, settings: None)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
    yield engine
    store.close()


@pytest.fixture
def call(home, call):
    return call


def test_a_file_becomes_runs_over_a_corpus_of_its_own(call, home, tmp_path):
    code, out, _ = call("import", FIXTURES / "otlp.json", "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["corpus"], document["routes"]) == ("shop-rag-traces", ["shop_rag"])
    assert (document["matched"], document["passages"], document["skipped"]) == (7, 7, {})
    assert set(document["imported"]) == set(home.store.ids())
    corpus = home.corpus("shop-rag-traces")
    assert corpus.search_sparse("merchandise authorization", 1)[0].passage.id == "c2"
    again = json.loads(call("import", FIXTURES / "otlp.json", "--json")[1])
    assert (again["imported"], again["skipped"], again["corpus"]) == ([], {}, "shop-rag-traces")
    assert sorted(again["known"]) == sorted(home.store.ids())
    said = call("import", FIXTURES / "otlp.json")[1]
    assert "Added 0 runs" in said
    assert "unchanged, 2 runs: " in said
    found = otlp()
    orphaned(spans_of(found))
    (tmp_path / "traces.json").write_text(json.dumps(found))
    said = call("import", tmp_path / "traces.json", "--name", "prod")[1]
    assert "Added 2 runs over corpus prod-traces" in said
    assert "Left out or mended: 1 spans whose parent is missing, kept without one." in said


def test_what_is_exported_for_phoenix_is_imported_too(call, tmp_path):
    first = json.loads(call("import", FIXTURES / "otlp.json", "--json")[1])["imported"]
    file = tmp_path / "runs.otlp.pb"
    assert call("export", *first, "--format", "otlp-proto", "--out", file)[0] == 0
    back = json.loads(call("import", file, "--corpus", "shop-rag-traces", "--json")[1])
    assert (len(back["imported"]), back["matched"]) == (2, back["passages"])
    file.write_bytes(b"\xff")
    code, _, err = call("import", file)
    assert (code, "no OTLP protobuf" in err) == (2, True)


def test_a_sample_of_the_questions_becomes_a_label_set(call, home):
    code, out, _ = call("import", FIXTURES / "otlp.json", "--label-set", "asked", "--sample", 1, "--json")
    assert (code, json.loads(out)["questions"]) == (0, 1)
    made = desk.load(home.store, "asked")
    (asked,) = made.questions
    assert asked.query.text in {"How do I start a return?", "Who pays the duty?"}
    assert made.pool[asked.id], "what was found for it is to be judged"
    code, _, err = call("import", FIXTURES / "otlp.json", "--label-set", "asked")
    assert code == 2
    assert "already" in err


def test_what_cannot_be_imported_is_one_line(call, tmp_path):
    large, bundle, nothing = (tmp_path / name for name in ("large.json", "b.zip", "ids.json"))
    with large.open("wb") as file:
        file.truncate(200 * 10**6)
    bundle.write_bytes(b"PK\x05\x06" + bytes(18))
    found = otlp()
    spans_of(found)[:] = spans_of(found)[4:]
    del spans_of(found)[0]["attributes"][2]["value"]["arrayValue"]["values"][0]
    nothing.write_text(json.dumps(found))
    for arguments, said in (
        ([large], "larger than 128 MiB and cannot be a file of traces"),
        ([nothing], "no text of a passage"),
        ([bundle, "--name", "x"], "go with traces"),
        ([], ""),
        ([FIXTURES / "otlp.json", "--listen"], ""),
    ):
        code, _, err = call("import", *arguments)
        assert (code, err.count("\n"), said in err) == (2, 1, True)


TURNS = [{"role": "user", "content": "First?"}, {"role": "user", "content": "Last?"}]
PARTS = [{"role": "user", "parts": [{"type": "text", "content": "Part?"}]}]
SAID = {"llm.input_messages.0.message.content": "S", "llm.input_messages.1.message.content": "U?"}


@pytest.mark.parametrize(
    ("attributes", "asked"),
    [
        ({"input.value": "Plain?"}, "Plain?"),
        ({"input.value": '{"query": {"text": "Inside?"}}'}, "Inside?"),
        ({"input.value": json.dumps(TURNS)}, "Last?"),
        ({"gen_ai.input.messages": json.dumps(PARTS)}, "Part?"),
        (SAID, "U?"),
        ({"traceloop.entity.input": "Loop?"}, "Loop?"),
    ],
)
def test_the_question_is_found_where_programs_put_it(attributes, asked):
    assert question(parsed([retrieval(attributes=attributes)]).traces[0]) == asked


def test_a_run_that_was_exported_comes_back():
    run = make_run()
    corpus = MemoryCorpus({}, run.corpus)
    corpus.all = sorted(run.passages.values(), key=lambda p: p.id)
    (back,) = runs(to_otlp(run), corpus).runs
    assert back.query.text == run.query.text
    told = [[(one.route, ids(one), one.answer) for one in some.results] for some in (back, run)]
    assert told[0] == told[1]
    assert [one.ms for one in back.results] == pytest.approx([one.ms for one in run.results], abs=1e-3)
