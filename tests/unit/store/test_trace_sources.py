"""Exports of other tools become runs: LangSmith, Langfuse, MLflow, OpenLLMetry, Phoenix as parquet."""

from __future__ import annotations

import copy
import csv
import io
import json
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


def plain(text, source):
    return {"page_content": text, "metadata": {"source": source}, "type": "Document"}


PAIR = [plain(FERRY, "ferry.md"), plain(LOST, "lost.md")]
PRINTED = [Document(one["page_content"], one["metadata"]) for one in PAIR]
CONSTRUCTED = [
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "document", "Document"],
        "kwargs": {"page_content": one["page_content"], "metadata": one["metadata"]},
    }
    for one in PAIR
]
SERIALISED = {
    "dicts": PAIR,
    "under documents": {"documents": PAIR},
    "wrapped twice": {"outputs": {"output": {"documents": PAIR}}},
    "in javascript": [{"pageContent": one["page_content"], "metadata": one["metadata"]} for one in PAIR],
    "constructors": CONSTRUCTED,
    "as JSON": json.dumps(PAIR),
    "with scores": [[one, 0.5] for one in PAIR],
    "printed": [str(one) for one in PRINTED],
    "printed list": repr(PRINTED),
    "printed with scores": repr([(one, 0.5) for one in PRINTED]),
    "artifact of a tool": {"type": "tool", "content": "Source: ...", "artifact": PAIR},
    "a chain's context": {"question": ASKED, "context": PAIR, "answer": ANSWER},
    "LlamaIndex": [
        {
            "node": {
                "id_": "n",
                "text": one["page_content"],
                "metadata": {"file_name": one["metadata"]["source"]},
            },
            "score": 0.5,
        }
        for one in PAIR
    ],
    "Haystack": {
        "retriever": {},
        "documents": [
            {"id": "h", "content": one["page_content"], "meta": one["metadata"], "score": 0.5} for one in PAIR
        ],
    },
    "Chroma": {
        "ids": [["ferry.md", "lost.md"]],
        "documents": [[FERRY, LOST]],
        "distances": [[0.1, 0.3]],
        "metadatas": [[None, None]],
    },
    "Pinecone": {
        "matches": [
            {"id": one["metadata"]["source"], "score": 0.5, "metadata": {"text": one["page_content"]}}
            for one in PAIR
        ]
    },
    "Qdrant": {"points": [{"id": 7, "score": 0.5, "payload": one} for one in PAIR]},
    "Elasticsearch": {
        "hits": {
            "hits": [
                {"_id": one["metadata"]["source"], "_score": 3.0, "_source": {"text": one["page_content"]}}
                for one in PAIR
            ]
        }
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
    return [
        {
            "id": root,
            "trace_id": root,
            "dotted_order": f"20260302T080000000000Z{root}",
            "name": "RAG",
            "run_type": "chain",
            "start_time": "2026-03-02T08:00:00",
            "end_time": "2026-03-02T08:00:02",
            "parent_run_id": None,
            "inputs": {"query": ASKED},
            "outputs": {"result": ANSWER},
            "error": None,
            **more,
        },
        {
            "id": below,
            "trace_id": root,
            "name": "VectorStoreRetriever",
            "run_type": "retriever",
            "start_time": "2026-03-02T08:00:00.100000",
            "end_time": "2026-03-02T08:00:01",
            "parent_run_id": root,
            "inputs": {"query": ASKED},
            "outputs": documents,
        },
    ]


def langfuse(documents, kind="SPAN", **more):
    return {
        "id": "t",
        "name": "RAG",
        "timestamp": AT.format(0),
        "input": json.dumps({"query": ASKED}),
        "output": json.dumps({"result": ANSWER}),
        "observations": [
            {
                "id": "a",
                "traceId": "t",
                "type": "CHAIN",
                "name": "RAG",
                "startTime": AT.format(0),
                "endTime": AT.format(3),
                "parentObservationId": None,
                "input": {"query": ASKED},
                "output": ANSWER,
            },
            {
                "id": "b",
                "traceId": "t",
                "type": kind,
                "name": "search",
                "startTime": AT.format(1),
                "endTime": AT.format(2),
                "parentObservationId": "a",
                "input": {"query": ASKED},
                "output": documents,
            },
        ],
        **more,
    }


def snake(value):
    names = {
        "traceId": "trace_id",
        "startTime": "start_time",
        "endTime": "end_time",
        "parentObservationId": "parent_observation_id",
    }
    if isinstance(value, list):
        return [snake(one) for one in value]
    return {names.get(k, k): snake(v) for k, v in value.items()} if isinstance(value, dict) else value


def batch(trace):
    """The same as a Langfuse SDK sends it."""
    whole = {k: v for k, v in trace.items() if k not in ("observations", "scores")}
    inside = [{k: v for k, v in one.items() if k not in ("type", "output")} for one in trace["observations"]]
    return {
        "batch": [
            {"type": "trace-create", "body": whole},
            *({"type": "span-create", "body": one} for one in inside),
            *(
                {"type": "span-update", "body": {"id": one["id"], "output": one["output"]}}
                for one in trace["observations"]
            ),
            *({"type": "score-create", "body": {"traceId": "t", **one}} for one in trace.get("scores", ())),
        ]
    }


def mlflow(documents, version=2):
    def span(id, parent, name, kind, output, start, end):
        attributes = {
            "mlflow.spanType": json.dumps(kind),
            "mlflow.spanInputs": json.dumps({"query": ASKED}),
            "mlflow.spanOutputs": json.dumps(output),
        }
        if version == 2:
            return {
                "name": name,
                "context": {"span_id": id, "trace_id": "0xab"},
                "parent_id": parent,
                "start_time": start,
                "end_time": end,
                "status_code": "OK",
                "attributes": attributes,
            }
        return {
            "name": name,
            "span_id": id,
            "trace_id": "q80=",
            "parent_span_id": parent,
            "start_time_unix_nano": start,
            "end_time_unix_nano": end,
            "status": {"code": "STATUS_CODE_OK"},
            "attributes": attributes,
        }

    begun = 1772438400 * 10**9
    return {
        "info": {
            "trace_id" if version == 3 else "request_id": "tr-1",
            "assessments": [
                {
                    "assessment_name": "correctness",
                    "feedback": {"value": False},
                    "rationale": "It left at five.",
                    "source": {"source_type": "HUMAN", "source_id": "ann"},
                },
            ],
        },
        "data": {
            "spans": [
                span("0x1", None, "RAG", "CHAIN", ANSWER, begun, begun + 10**9),
                span("0x2", "0x1", "search", "RETRIEVER", documents, begun + 10**6, begun + 10**8),
            ]
        },
    }


def attributes(values):
    return [
        {"key": key, "value": {"doubleValue" if isinstance(v, float) else "stringValue": v}}
        for key, v in values.items()
    ]


def traceloop(documents=None, events=()):
    """OpenLLMetry's spans: a workflow, a task below it with its output, and the vector store below that."""

    def span(id, parent, name, values, start, events=()):
        return {
            "traceId": "ab" * 16,
            "spanId": id * 8,
            "parentSpanId": parent * 8,
            "name": name,
            "events": events,
            "startTimeUnixNano": str(1772438400 * 10**9 + start),
            "attributes": attributes(values),
            "endTimeUnixNano": str(1772438401 * 10**9 - start),
        }

    task = {"traceloop.span.kind": "task", "traceloop.entity.input": json.dumps({"query": ASKED})}
    if documents is not None:
        task["traceloop.entity.output"] = json.dumps(documents)
    return {
        "resourceSpans": [
            {
                "scopeSpans": [
                    {
                        "spans": [
                            span(
                                "11",
                                "",
                                "RAG.workflow",
                                {
                                    "traceloop.span.kind": "workflow",
                                    "traceloop.entity.input": json.dumps({"inputs": {"query": ASKED}}),
                                    "traceloop.entity.output": json.dumps({"outputs": {"result": ANSWER}}),
                                },
                                0,
                            ),
                            span("22", "11", "search.task", task, 10),
                            span("33", "22", "chroma.query", {"db.system": "chroma"}, 20, list(events)),
                        ]
                    }
                ]
            }
        ]
    }


EVENTS = [
    {"name": "db.query.embeddings", "attributes": attributes({"db.query.embeddings.vector": "[0.1]"})},
    *(
        {
            "name": "db.query.result",
            "attributes": attributes(
                {
                    "db.query.result.id": one["metadata"]["source"],
                    "db.query.result.document": one["page_content"],
                    "db.query.result.distance": 0.1 + at,
                    "db.query.result.metadata": json.dumps(one["metadata"]),
                }
            ),
        }
        for at, one in enumerate(PAIR)
    ),
]


def printed_spans():
    """Spans as OpenTelemetry's console exporter prints them, over many lines, one behind the other."""
    spans = traceloop({"documents": PAIR})["resourceSpans"][0]["scopeSpans"][0]["spans"]
    found = [
        {
            "name": one["name"],
            "context": {"trace_id": "0xab", "span_id": one["spanId"], "trace_state": "[]"},
            "kind": "SpanKind.INTERNAL",
            "parent_id": one["parentSpanId"] or None,
            "start_time": AT.format(at),
            "end_time": AT.format(5 - at),
            "status": {"status_code": "UNSET"},
            "attributes": {a["key"]: next(iter(a["value"].values())) for a in one["attributes"]},
            "resource": {"attributes": {"service.name": "harbour-rag"}},
        }
        for at, one in enumerate(spans)
    ]
    return "\n".join(json.dumps(one, indent=4) for one in found)


EXPORTS = {
    "LangSmith list": langsmith({"documents": PAIR}),
    "LangSmith constructors": langsmith({"output": CONSTRUCTED}),
    "LangSmith nested": {
        **langsmith(PAIR)[0],
        "child_runs": [
            {
                k: v
                for k, v in langsmith({"documents": PAIR})[1].items()
                if k not in ("trace_id", "parent_run_id")
            }
        ],
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


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("name", EXPORTS)
def test_a_trace_of_each_tool_is_a_run(name, lines):
    export = EXPORTS[name]
    if lines:
        export = export if isinstance(export, list) else [export]
        data = "\n".join(map(json.dumps, export)).encode()
    else:
        data = json.dumps(export).encode()
    run, found = run_of(data)
    (result,) = run.results
    assert run.query.text == ASKED
    assert [hit.passage.id for hit in result.hits] == ["ferry.md:0", "lost.md:0"]
    assert all(found.rules)
    assert result.answer == ANSWER
    assert run.created.startswith("2026-03-02T08:00:00")


def test_spans_printed_over_many_lines():
    run, _ = run_of(printed_spans().encode())
    assert run.settings["service"] == "harbour-rag"
    assert [hit.passage.id for hit in run.results[0].hits] == ["ferry.md:0", "lost.md:0"]


def test_a_list_that_was_cut_keeps_its_whole_entries():
    data = json.dumps([*langsmith({"documents": PAIR}), *langsmith({"documents": PAIR}, id="x")], indent=1)
    read_ = read(data[: len(data) * 3 // 4].encode(), "runs.json")
    assert [len(trace.spans) for trace in read_.traces] == [3], "of four, the last one cut"
    assert read_.skipped["entries that are not whole JSON"] == 1


def test_a_trace_of_langfuse_without_observations_has_what_it_returned():
    export = {**langfuse(PAIR), "observations": [], "output": {"answer": ANSWER, "context": PAIR}}
    run, _ = run_of(json.dumps(export).encode())
    assert len(run.results[0].hits) == 2


def test_a_data_frame_by_columns():
    file = Path(__file__).parents[2] / "fixtures" / "traces" / "phoenix-20.26-dataframe.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    frame = {name: {str(at): row.get(name) for at, row in enumerate(rows)} for name in rows[0]}
    assert len(read(json.dumps(frame).encode(), "p.json").traces) == len(read(file.read_bytes(), "p").traces)


def test_a_bulk_export_as_parquet():
    rows = [
        {k: json.dumps(v) if isinstance(v, dict) else v for k, v in one.items()}
        for one in langsmith({"documents": PAIR})
    ]
    run, _ = run_of(parquet(rows), "runs.parquet")
    assert [hit.passage.id for hit in run.results[0].hits] == ["ferry.md:0", "lost.md:0"]


def test_a_data_frame_of_phoenix_as_parquet():
    file = Path(__file__).parents[2] / "fixtures" / "traces" / "phoenix-20.26-dataframe.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    names = dict.fromkeys(name for row in rows for name in row)
    whole = [{name: row.get(name) for name in names} for row in rows]
    kept = [name for name in names if any(row[name] not in (None, {}, []) for row in whole)]
    data = parquet([{name: row[name] for name in kept} for row in whole])
    theirs = imported(read(data, "p.parquet").traces, HARBOUR, "theirs").runs
    ours = imported(read(file.read_bytes(), "p.jsonl").traces, HARBOUR, "theirs").runs
    assert [(one.id, one.query) for one in theirs] == [(one.id, one.query) for one in ours] != []


def parquet(rows):
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def test_what_is_no_parquet_is_named():
    with pytest.raises(BadInput, match=r"x\.parquet"):
        read(b"PAR1" + b"\0" * 40, "x.parquet")


def test_a_line_that_was_cut_is_counted_and_the_others_kept():
    good = json.dumps(traceloop({"documents": PAIR}))
    read_ = read(f"{good}\n\n{good[:90]}".encode(), "collector.json")
    assert len(read_.traces) == 1
    assert dict(read_.skipped) == {"lines that are not JSON": 1}


def test_a_step_above_a_search_has_no_list_of_its_own():
    found = langfuse(PAIR, "RETRIEVER")
    found["observations"][0]["output"] = {"context": PAIR, "answer": ANSWER}
    run, _ = run_of(json.dumps(found).encode())
    assert [span.kind for span in run.results[0].spans if span.hits] == ["RETRIEVER"]


SCORES = [
    {"name": "user-feedback", "value": 0, "source": "API", "comment": "That is the old pier."},
    {"name": "toxicity", "value": 0.0, "source": "EVAL"},
    {"name": "correctness", "stringValue": "incorrect", "value": 0, "source": "ANNOTATION"},
    {"name": "helpfulness", "value": 0.9, "source": "EVAL"},
]


@pytest.mark.parametrize(
    ("export", "of", "whos"),
    [
        (langfuse(PAIR, scores=SCORES), 4, {"Langfuse: API", "Langfuse: ANNOTATION"}),
        (batch(langfuse(PAIR, scores=SCORES)), 4, {"Langfuse: API", "Langfuse: ANNOTATION"}),
        (langsmith(PAIR, feedback_stats={"thumbs": {"n": 1, "avg": 0.0}}), 1, {"LangSmith: thumbs"}),
        (mlflow(PAIR), 1, {"MLflow: ann"}),
        (
            traceloop(
                {"documents": PAIR},
                [
                    {
                        "name": "gen_ai.evaluation.result",
                        "attributes": attributes(
                            {
                                "gen_ai.evaluation.name": "Relevance",
                                "gen_ai.evaluation.score.value": 0.1,
                                "gen_ai.evaluation.explanation": "Another ferry.",
                            }
                        ),
                    }
                ],
            ),
            1,
            {"OpenTelemetry: Relevance"},
        ),
    ],
)
def test_bad_scores_are_complaints_with_their_source(tmp_path, export, of, whos):
    store = Store(tmp_path / "runs.sqlite3")
    _, found = run_of(json.dumps(copy.deepcopy(export)).encode())
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


def test_a_table_exported_as_csv():
    """What pages of other tools offer for download: a row an observation, values as JSON in its cells."""
    rows = langfuse([{"page_content": FERRY}])["observations"]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(key for row in rows for key in row)))
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {key: json.dumps(cell) if isinstance(cell, dict | list) else cell for key, cell in row.items()}
        )
    found = imported(read(out.getvalue().encode(), "x.csv").traces, HARBOUR, "theirs")
    (run,) = found.runs
    assert [hit.passage.id for hit in run.results[0].hits] == ["ferry.md:0"]
