"""Exports of other tools become runs: LangSmith, Langfuse, MLflow, OpenLLMetry, Phoenix as parquet."""

import csv
import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.errors import BadInput
from core.engine.imported import imported
from core.evaluation.labels import desk, run_labels
from core.store import Store
from core.store.trace_sources.documents import document, listed
from core.store.trace_sources.values import feedback_of
from core.store.traces_in import read
from tests.fakes import MemoryCorpus

FERRY = "The ferry to the island leaves from pier four every forty minutes."
LOST = "Lost property is kept for ninety days at the harbour office."
HARBOUR = MemoryCorpus({"ferry.md:0": FERRY, "lost.md:0": LOST}, "harbour")
ASKED, ANSWER = "From where does the ferry leave?", "From pier four."
AT = "2026-03-02T08:00:0{}.000Z"


class Document:
    """Prints itself as LangChain's Document does."""

    def __init__(self, page_content, metadata):
        self.page_content, self.metadata = page_content, metadata

    def __repr__(self):
        return f"Document(metadata={self.metadata!r}, page_content={self.page_content!r})"

    def __str__(self):
        return f"page_content={self.page_content!r} metadata={self.metadata!r}"


def each(made):
    """What `made` gives of each of two passages and its source."""
    return [made(text, source) for text, source in ((FERRY, "ferry.md"), (LOST, "lost.md"))]


PAIR = each(lambda text, source: {"page_content": text, "metadata": {"source": source}, "type": "Document"})
PRINTED = each(lambda text, source: Document(text, {"source": source}))
CLASS = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "document", "Document"]}
CONSTRUCTED = each(
    lambda text, source: {**CLASS, "kwargs": {"page_content": text, "metadata": {"source": source}}}
)
SERIALISED = {
    "dicts": PAIR,
    "under documents": {"documents": PAIR},
    "wrapped twice": {"outputs": {"output": {"documents": PAIR}}},
    "in javascript": each(lambda text, source: {"pageContent": text, "metadata": {"source": source}}),
    "constructors": CONSTRUCTED,
    "as JSON": json.dumps(PAIR),
    "with scores": [[one, 0.5] for one in PAIR],
    "printed": [str(one) for one in PRINTED],
    "printed list": repr(PRINTED),
    "printed with scores": repr([(one, 0.5) for one in PRINTED]),
    "artifact of a tool": {"type": "tool", "content": "Source: ...", "artifact": PAIR},
    "a chain's context": {"question": ASKED, "context": PAIR, "answer": ANSWER},
    "LlamaIndex": each(
        lambda text, source: {
            "node": {"id_": "n", "text": text, "metadata": {"file_name": source}},
            "score": 0.5,
        }
    ),
    "Haystack": {
        "retriever": {},
        "documents": each(lambda text, source: {"id": "h", "content": text, "meta": {"source": source}}),
    },
    "Chroma": {"ids": [["ferry.md", "lost.md"]], "documents": [[FERRY, LOST]], "metadatas": [[None, None]]},
    "Pinecone": {
        "matches": each(lambda text, source: {"id": source, "score": 0.5, "metadata": {"text": text}})
    },
    "Qdrant": {"points": [{"id": 7, "score": 0.5, "payload": one} for one in PAIR]},
    "Elasticsearch": {
        "hits": {"hits": each(lambda text, source: {"_id": source, "_score": 3.0, "_source": {"text": text}})}
    },
}
NO_DOCUMENTS = (
    "text",
    "",
    None,
    7,
    [],
    {},
    [1, 2],
    {"answer": "text"},
    {"messages": [{"role": "user", "content": "x"}]},
    [{"type": "human", "content": "x", "additional_kwargs": {}, "id": "m"}],
    "page_content=",
    "Document(",
    [{"content": "x", "role": "user", "id": "m"}],
)


@pytest.mark.parametrize("form", SERIALISED)
def test_documents_in_every_serialisation(form):
    found = listed(SERIALISED[form])
    assert [
        next(one[name] for name in ("content", "page_content", "pageContent", "text") if one.get(name))
        for one in found
    ] == [FERRY, LOST]


@pytest.mark.parametrize("value", NO_DOCUMENTS, ids=repr)
def test_what_has_no_documents(value):
    assert listed(value) == []


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=30),
        lambda one: (
            st.lists(one, max_size=3)
            | st.dictionaries(
                st.sampled_from(["documents", "text", "metadata", "node", "kwargs", "ids"]), one
            )
        ),
    )
)
def test_any_value_has_documents_or_none(value):
    assert all(isinstance(one, dict) for one in listed(value))
    assert document(value) is None or isinstance(document(value), dict)


def langsmith(documents, **more):
    root, below = (f"{n}1111111-1111-4111-8111-111111111111" for n in (1, 2))
    asked = {"trace_id": root, "inputs": {"query": ASKED}}
    at = "2026-03-02T08:00:0"
    chain = {"id": root, "name": "RAG", "run_type": "chain", "parent_run_id": None, "error": None}
    search = {"id": below, "name": "VectorStoreRetriever", "run_type": "retriever", "parent_run_id": root}
    times = {"start_time": f"{at}0", "end_time": f"{at}2", "dotted_order": f"20260302T080000000000Z{root}"}
    return [
        {**asked, **chain, **times, "outputs": {"result": ANSWER}, **more},
        {**asked, **search, "start_time": f"{at}0.100000", "end_time": f"{at}1", "outputs": documents},
    ]


def langfuse(documents, kind="SPAN", **more):
    def observation(id, kind, name, start, end, parent, output):
        times = {"startTime": AT.format(start), "endTime": AT.format(end), "parentObservationId": parent}
        return {"id": id, "traceId": "t", "type": kind, "name": name, **times, **asked, "output": output}

    asked = {"input": {"query": ASKED}}
    chain = observation("a", "CHAIN", "RAG", 0, 3, None, ANSWER)
    search = observation("b", kind, "search", 1, 2, "a", documents)
    trace = {"id": "t", "name": "RAG", "timestamp": AT.format(0), "input": json.dumps({"query": ASKED})}
    return {**trace, "output": json.dumps({"result": ANSWER}), "observations": [chain, search], **more}


def snake(value):
    if isinstance(value, list):
        return [snake(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", k): snake(v) for k, v in value.items()}


def batch(trace):
    """The same as a Langfuse SDK sends it."""
    whole = {k: v for k, v in trace.items() if k not in ("observations", "scores")}
    inside = [{k: v for k, v in one.items() if k not in ("type", "output")} for one in trace["observations"]]
    later = [{"id": one["id"], "output": one["output"]} for one in trace["observations"]]
    scores = [{"traceId": "t", **one} for one in trace.get("scores", ())]
    bodies = {"trace-create": [whole], "span-create": inside, "span-update": later, "score-create": scores}
    return {"batch": [{"type": kind, "body": one} for kind, some in bodies.items() for one in some]}


def mlflow(documents, version=2):
    def span(id, parent, name, kind, output, start, end):
        told = {"spanType": kind, "spanInputs": {"query": ASKED}, "spanOutputs": output}
        attributes = {f"mlflow.{key}": json.dumps(value) for key, value in told.items()}
        if version == 2:
            own = {"context": {"span_id": id, "trace_id": "0xab"}, "parent_id": parent, "status_code": "OK"}
            return {**own, "name": name, "start_time": start, "end_time": end, "attributes": attributes}
        own = {
            "span_id": id,
            "trace_id": "q80=",
            "parent_span_id": parent,
            "status": {"code": "STATUS_CODE_OK"},
        }
        times = {"start_time_unix_nano": start, "end_time_unix_nano": end}
        return {**own, **times, "name": name, "attributes": attributes}

    begun = 1772438400 * 10**9
    root = span("0x1", None, "RAG", "CHAIN", ANSWER, begun, begun + 10**9)
    search = span("0x2", "0x1", "search", "RETRIEVER", documents, begun + 10**6, begun + 10**8)
    judged = {
        "assessment_name": "correctness",
        "feedback": {"value": False},
        "rationale": "It left at five.",
        "source": {"source_type": "HUMAN", "source_id": "ann"},
    }
    info = {"trace_id" if version == 3 else "request_id": "tr-1", "assessments": [judged]}
    return {"info": info, "data": {"spans": [root, search]}}


def attributes(values):
    return [
        {"key": key, "value": {"doubleValue" if isinstance(v, float) else "stringValue": v}}
        for key, v in values.items()
    ]


def traceloop(documents=None, events=()):
    """OpenLLMetry's spans: a workflow, a task below it with its output, and the vector store below that."""

    def span(id, parent, name, values, start, events=()):
        own = {
            "traceId": "ab" * 16,
            "spanId": id * 8,
            "parentSpanId": parent * 8,
            "name": name,
            "events": events,
        }
        times = {
            "startTimeUnixNano": str(1772438400 * 10**9 + start),
            "endTimeUnixNano": str(1772438401 * 10**9 - start),
        }
        return {**own, **times, "attributes": attributes(values)}

    def entity(kind, asked, output):
        told = {"input": json.dumps(asked)} | ({} if output is None else {"output": json.dumps(output)})
        return {"traceloop.span.kind": kind} | {
            f"traceloop.entity.{key}": value for key, value in told.items()
        }

    flow = entity("workflow", {"inputs": {"query": ASKED}}, {"outputs": {"result": ANSWER}})
    spans = [
        span("11", "", "RAG.workflow", flow, 0),
        span("22", "11", "search.task", entity("task", {"query": ASKED}, documents), 10),
        span("33", "22", "chroma.query", {"db.system": "chroma"}, 20, list(events)),
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


EVENTS = [
    {"name": "db.query.embeddings", "attributes": attributes({"db.query.embeddings.vector": "[0.1]"})},
    *(
        {
            "name": "db.query.result",
            "attributes": attributes({f"db.query.result.{k}": v for k, v in one.items()}),
        }
        for one in each(
            lambda text, source: {
                "id": source,
                "document": text,
                "distance": 0.1,
                "metadata": json.dumps({"source": source}),
            }
        )
    ),
]


def test_spans_printed_over_many_lines():
    """As OpenTelemetry's console exporter prints them, one behind the other."""
    spans = traceloop({"documents": PAIR})["resourceSpans"][0]["scopeSpans"][0]["spans"]
    printed = [
        {
            "name": one["name"],
            "context": {"trace_id": "0xab", "span_id": one["spanId"], "trace_state": "[]"},
            "parent_id": one["parentSpanId"] or None,
            "start_time": AT.format(at),
            "end_time": AT.format(5 - at),
            "status": {"status_code": "UNSET"},
            "attributes": {a["key"]: next(iter(a["value"].values())) for a in one["attributes"]},
            "resource": {"attributes": {"service.name": "harbour-rag"}},
        }
        for at, one in enumerate(spans)
    ]
    run, _ = run_of("\n".join(json.dumps(one, indent=4) for one in printed).encode())
    assert run.settings["service"] == "harbour-rag"
    assert [hit.passage.id for hit in run.results[0].hits] == ["ferry.md:0", "lost.md:0"]


EXPORTS = {
    "LangSmith list": langsmith({"documents": PAIR}),
    "LangSmith constructors": langsmith({"output": CONSTRUCTED}),
    "LangSmith nested": {
        **langsmith(PAIR)[0],
        "child_runs": [{**langsmith({"documents": PAIR})[1], "trace_id": None, "parent_run_id": None}],
    },
    "LangSmith tool": [langsmith([])[0], {**langsmith(PAIR)[1], "run_type": "tool"}],
    "LangSmith page of the API": {"runs": langsmith({"documents": PAIR})},
    "Langfuse span": langfuse(PAIR),
    "Langfuse span, as text": langfuse(json.dumps(PAIR)),
    "Langfuse tool": langfuse({"content": "...", "artifact": PAIR}, "TOOL"),
    "Langfuse retriever": langfuse([str(one) for one in PRINTED], "RETRIEVER"),
    "Langfuse page": {"trace": langfuse(PAIR), "observations": langfuse(PAIR)["observations"]},
    "Langfuse observations": langfuse(PAIR)["observations"],
    "Langfuse page of the API": {"data": [langfuse(PAIR)], "meta": {"page": 1}},
    "Langfuse SDK objects": snake(langfuse(PAIR)),
    "Langfuse SDK events": batch(langfuse(PAIR)),
    "MLflow 2": mlflow(PAIR),
    "MLflow 3": mlflow([{"page_content": FERRY, "metadata": {}, "id": "1"}, PAIR[1]], 3),
    "OpenLLMetry output": traceloop({"documents": PAIR}),
    "OpenLLMetry events": traceloop(events=EVENTS),
    "OpenLLMetry both": traceloop({"documents": PAIR}, EVENTS),
}


def run_of(data, name="x.json"):
    found = imported(read(data, name).traces, HARBOUR, "theirs")
    assert not found.skipped
    (run,) = found.runs
    return run, found


@pytest.mark.parametrize("name", EXPORTS)
def test_a_trace_of_each_tool_is_a_run(name):
    export = EXPORTS[name]
    lines = "\n".join(map(json.dumps, export if isinstance(export, list) else [export]))
    for data in (json.dumps(export), lines):
        run, found = run_of(data.encode())
        (result,) = run.results
        assert run.query.text == ASKED
        assert [hit.passage.id for hit in result.hits] == ["ferry.md:0", "lost.md:0"]
        assert all(found.rules)
        assert result.answer == ANSWER
        assert run.created.startswith("2026-03-02T08:00:00")


def test_what_was_cut_keeps_its_whole_entries():
    data = json.dumps([*langsmith({"documents": PAIR}), *langsmith({"documents": PAIR}, id="x")], indent=1)
    found = read(data[: len(data) * 3 // 4].encode(), "runs.json")
    assert [len(trace.spans) for trace in found.traces] == [3], "of four, the last one cut"
    assert found.skipped["entries that are not whole JSON"] == 1
    good = json.dumps(traceloop({"documents": PAIR}))
    found = read(f"{good}\n\n{good[:90]}".encode(), "collector.json")
    assert (len(found.traces), dict(found.skipped)) == (1, {"lines that are not JSON": 1})


def test_what_else_a_trace_of_langfuse_says():
    """Its session, a model's tokens, and what it returned if it has no observations."""
    export = langfuse(PAIR, "RETRIEVER", sessionId="s1")
    export["observations"][0]["output"] = {"context": PAIR, "answer": ANSWER}
    call = {**export["observations"][1], "id": "c", "type": "GENERATION", "output": ANSWER}
    call |= {"model": "m", "usageDetails": {"input": 5, "output": 2}}
    event = {"id": "e", "traceId": "t", "type": "EVENT", "name": "seen", "startTime": AT.format(2)}
    run, _ = run_of(json.dumps({**export, "observations": [*export["observations"], call, event]}).encode())
    assert (run.settings["conversation"], run.results[0].ms) == ("s1", 3000.0)
    assert [span.tokens.prompt for span in run.results[0].spans if span.tokens] == [5]
    assert [span.kind for span in run.results[0].spans if span.hits] == ["RETRIEVER"], "none above a search"
    export = {**export, "observations": [], "output": {"answer": ANSWER, "context": PAIR}}
    assert len(run_of(json.dumps(export).encode())[0].results[0].hits) == 2


def parquet(rows):
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def as_csv(rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(key for row in rows for key in row)))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


@pytest.mark.parametrize(("write", "name"), [(parquet, "x.parquet"), (as_csv, "x.csv")])
@pytest.mark.parametrize("rows", [langsmith({"documents": PAIR}), langfuse(PAIR)["observations"]])
def test_a_table_with_json_in_its_cells(write, name, rows):
    """A row an observation: bulk exports, and what pages of other tools offer for download."""
    flat = [{k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()} for row in rows]
    run, _ = run_of(write(flat), name)
    assert [hit.passage.id for hit in run.results[0].hits] == ["ferry.md:0", "lost.md:0"]


def test_a_data_frame_of_phoenix_as_parquet_and_by_columns():
    file = Path(__file__).parents[2] / "fixtures" / "traces" / "phoenix-20.26-dataframe.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    names = dict.fromkeys(name for row in rows for name in row)
    kept = [name for name in names if any(row.get(name) not in (None, {}, []) for row in rows)]
    table = parquet([{name: row.get(name) for name in kept} for row in rows])
    by_columns = json.dumps(
        {name: {str(at): row.get(name) for at, row in enumerate(rows)} for name in rows[0]}
    )
    ours, *theirs = (
        [(one.id, one.query) for one in imported(read(data, name).traces, HARBOUR, "theirs").runs]
        for data, name in (
            (file.read_bytes(), "p.jsonl"),
            (table, "p.parquet"),
            (by_columns.encode(), "p.json"),
        )
    )
    assert theirs == [ours, ours]
    assert ours
    with pytest.raises(BadInput, match=r"x\.parquet"):
        read(b"PAR1" + b"\0" * 40, "x.parquet")


SCORES = [
    {"name": "user-feedback", "value": 0, "source": "API", "comment": "That is the old pier."},
    {"name": "toxicity", "value": 0.0, "source": "EVAL"},
    {"name": "correctness", "stringValue": "incorrect", "value": 0, "source": "ANNOTATION"},
    {"name": "helpfulness", "value": 0.9, "source": "EVAL"},
]


JUDGED = {
    "gen_ai.evaluation.name": "Relevance",
    "gen_ai.evaluation.score.value": 0.1,
    "gen_ai.evaluation.explanation": "Another ferry.",
}
EVALUATED = [{"name": "gen_ai.evaluation.result", "attributes": attributes(JUDGED)}]


@pytest.mark.parametrize(
    ("export", "of", "whos"),
    [
        (langfuse(PAIR, scores=SCORES), 4, {"Langfuse: API", "Langfuse: ANNOTATION"}),
        (batch(langfuse(PAIR, scores=SCORES)), 4, {"Langfuse: API", "Langfuse: ANNOTATION"}),
        (langsmith(PAIR, feedback_stats={"thumbs": {"n": 1, "avg": 0.0}}), 1, {"LangSmith: thumbs"}),
        (mlflow(PAIR), 1, {"MLflow: ann"}),
        (traceloop({"documents": PAIR}, EVALUATED), 1, {"OpenTelemetry: Relevance"}),
    ],
)
def test_bad_scores_are_complaints_with_their_source(tmp_path, export, of, whos):
    store = Store(tmp_path / "runs.sqlite3")
    _, found = run_of(json.dumps(export).encode())
    store.add_runs(found.runs)
    kept = run_labels.from_traces(store, found.feedback)
    assert (kept.added, kept.of) == (len(whos), of)
    (question,) = desk.load(store, kept.sets[0]).questions
    assert {one.who for one in question.complaints} == whos


@pytest.mark.parametrize(
    ("score", "bad"),
    [
        (("thumbs", 0), True),
        (("thumbs", 1), False),
        (("user_rating", -1), True),
        (("faithfulness", 0.2), True),
        (("faithfulness", 0.7), False),
        (("latency", 0.0), False),
        (("x", "thumbs_down"), True),
        (("x", "good"), False),
        (("hallucination", 0.0), False),
        (("x", None), False),
    ],
)
def test_what_is_bad(score, bad):
    assert run_labels.negative(feedback_of("tool", *score)) is bad
