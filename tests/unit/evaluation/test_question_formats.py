"""Question files of other tools: recognised, read, matched to passages; what is not used is named."""

from __future__ import annotations

import json
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.domain.errors import BadInput
from core.domain.relevance import is_unmatched
from core.evaluation import dataset, sets
from core.evaluation.question_formats import FORMATS, read_columns, recognised
from tests.fakes import CutCorpus

TEXTS = {
    "ferry.md": "The ferry to the island leaves from pier four every forty minutes.",
    "tickets.md": "Season tickets are sold at the kiosk. They are valid for twelve months from a first ride.",
    "lost.md": "Lost property is kept for ninety days at the harbour office.",
}


HARBOUR = CutCorpus(TEXTS)
TWO = [("1", "Where?"), ("2", "When?")]
ASKED = ("From where does the ferry leave?", "How long is a season ticket valid?")
FERRY, TICKETS, LOST = TEXTS.values()

# format -> a row of it with FERRY or ferry.md as the label, and "Pier four." as the answer
Q, A = ASKED[0], "Pier four."
TURNS = [
    {"type": "human", "content": "Hello"},
    {"type": "ai", "content": "Yes?"},
    {"type": "human", "content": Q},
]
ROWS = {
    "a ragas test set": {"user_input": Q, "reference_contexts": [f"<1-hop>\n\n{FERRY}"], "reference": A},
    "a ragas test set of version 0.1": {
        "question": Q,
        "contexts": [FERRY],
        "ground_truth": A,
        "metadata": [{"source": "ferry.md"}],
        "episode_done": True,
    },
    "an AutoRAG dataset": {"qid": "a", "query": Q, "retrieval_gt": [["ferry.md"]], "generation_gt": [A]},
    "Langfuse dataset items": {
        "id": "a",
        "datasetName": "d",
        "input": {"question": Q},
        "expectedOutput": {"answer": A, "reference_contexts": [FERRY]},
    },
    "DeepEval goldens": {"input": Q, "expected_output": A, "context": [FERRY], "source_file": "/kb/ferry.md"},
    "promptfoo tests": {
        "vars": {"question": Q},
        "metadata": {"source": "kb/ferry.md"},
        "assert": [{"type": "contains", "value": A}, {"type": "javascript", "value": "output.length"}],
    },
    "an MLflow evaluation set": {
        "inputs": {"question": Q},
        "expectations": {"expected_response": A, "expected_retrieved_context": [{"content": FERRY}]},
    },
    "a LangSmith dataset": {
        "inputs": {"messages": TURNS},
        "outputs": {"answer": A, "contexts": [FERRY]},
        "metadata": {"dataset_split": ["base"]},
    },
    "a Databricks evaluation set": {
        "request": Q,
        "expected_response": A,
        "expected_retrieved_context": [{"doc_uri": "ferry.md"}],
    },
    "a Giskard test set": {"question": Q, "reference_answer": A, "reference_context": f"Document 7: {FERRY}"},
    "a LlamaIndex dataset": {"query": Q, "reference_contexts": [FERRY], "reference_answer": A, "by": None},
    "a TruLens ground truth": {"query": Q, "expected_response": A, "expected_chunks": [{"text": FERRY}]},
    "MS MARCO": {
        "query": Q,
        "answers": [A],
        "passages": {"is_selected": [0, 1], "passage_text": [LOST, FERRY], "url": ["u", "v"]},
    },
    "HotpotQA": {
        "question": Q,
        "answer": A,
        "supporting_facts": {"title": ["F"], "sent_id": [0]},
        "context": {"title": ["L", "F"], "sentences": [[LOST], [FERRY]]},
    },
    "LongMemEval": {
        "question_id": "a",
        "question_type": "multi-session",
        "question": Q,
        "answer": A,
        "haystack_session_ids": ["ferry.md"],
        "haystack_sessions": [[{"role": "user", "content": FERRY}]],
        "answer_session_ids": ["ferry.md"],
    },
    "BRIGHT": {"id": "a", "query": Q, "excluded_ids": ["N/A"], "gold_ids": ["ferry.md"], "gold_answer": A},
    "a SQuAD file": {
        "id": "a",
        "question": Q,
        "context": FERRY,
        "answers": {"text": [A], "answer_start": [38]},
    },
    "questions with their context": {"question": Q, "context": FERRY, "answer": A},
    "pairs of a query and its passage": {"anchor": Q, "positive": FERRY},
    "a table of questions": {"prompt": Q, "gold_answer": A, "gold_doc_ids": "ferry.md"},
}
# formats whose rows are read in tests of their own, or need no label
ELSEWHERE = {"Quepid ratings", "a table of judgements", "OpenAI evals", "a Braintrust or Phoenix dataset"}
ELSEWHERE |= {"a ragas evaluation set of version 0.1"}


def read(path, content="", **options):
    if content:
        path.write_text(content, encoding="utf-8")
    return dataset.written([path], name="harbour", **options)


def relevant(labelled, question=0):
    """The documents of what is relevant for a question."""
    found = labelled.qrels.get(labelled.questions[question].id, {})
    return sorted({id.split(":")[0] for id, grade in found.items() if grade >= labelled.relevant_from})


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_each_tool_has_its_question_answer_and_label(tmp_path, name, kind):
    row, path = ROWS[name], tmp_path / f"set.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist([{k: v for k, v in row.items() if v is not None}]), path)
    found = read(path, "" if kind == "parquet" else json.dumps([row] if kind == "json" else row))
    labelled, _ = sets.tie(found, HARBOUR)
    assert (found.format, [one.query.text for one in labelled.questions]) == (name, [Q])
    assert relevant(labelled) == ["ferry.md"]
    assert labelled.questions[0].answers == (() if "positive" in row else (A,))
    assert labelled.reading[0].startswith(f"Read as {name}: 1 questions, ")
    history = [turn.text for turn in labelled.questions[0].query.history]
    assert history == (["Hello", "Yes?"] if name == "a LangSmith dataset" else [])


def test_every_format_is_tried():
    assert {one.name for one in FORMATS} <= {*ROWS, *ELSEWHERE}


def test_lists_in_cells_as_python_json_and_numpy_print_them(tmp_path):
    for cell in (f"['{FERRY}', '{LOST}']", json.dumps([FERRY, LOST]), f"['{FERRY}'\n '{LOST}']"):
        quoted = cell.replace('"', '""')
        found = read(tmp_path / "set.csv", f'user_input,reference_contexts,reference\n{Q},"{quoted}",x\n')
        assert [one.quote for one in found.evidence[found.questions[0].id]] == [FERRY, LOST]


def test_columns_that_mean_nothing_are_named_and_empty_ones_are_not(tmp_path):
    rows = [ROWS["a ragas test set of version 0.1"], ROWS["DeepEval goldens"]]
    assert "metadata, episode_done" in read(tmp_path / "a.jsonl", json.dumps(rows[0])).remarks[-1]
    assert not any("not used" in one for one in read(tmp_path / "b.jsonl", json.dumps(rows[1])).remarks)
    own = read(tmp_path / "c.jsonl", json.dumps({"text": "Why?", "relevant": ["ferry.md"], "source": "x"}))
    assert (own.format, own.remarks) == ("", ("Columns not used: source",))
    langsmith = read(tmp_path / "d.jsonl", json.dumps(ROWS["a LangSmith dataset"]))
    assert langsmith.remarks[-1] == "Columns not used: metadata"


def test_a_context_that_matches_nothing_is_a_label_that_is_not_found(tmp_path):
    gone = "The museum of lighthouses opens at ten and is closed on Mondays in winter."
    rows = [{"user_input": Q, "reference_contexts": [FERRY], "reference": A}]
    rows += [{"user_input": ASKED[1], "reference_contexts": [gone, TICKETS], "reference": "A year."}]
    labelled, _ = sets.tie(read(tmp_path / "set.jsonl", "\n".join(map(json.dumps, rows))), HARBOUR)
    second = labelled.qrels[labelled.questions[1].id]
    assert [is_unmatched(id) for id in second] == [False, True]
    assert set(second.values()) == {3}
    assert "2 with reference contexts, 2 matched to passages by text" in labelled.reading[0]
    assert labelled.reading[-1].startswith("1 of 3 labels match nothing")


def test_squad_has_questions_without_an_answer(tmp_path):
    asked = {"id": "1", "question": Q, "answers": [{"text": "pier four", "answer_start": 38}]}
    unanswerable = {"id": "2", "question": "Who owns it?", "answers": [], "is_impossible": True}
    paragraph = {"context": FERRY, "qas": [asked, unanswerable]}
    document = {"version": "v2.0", "data": [{"title": "Ferry", "paragraphs": [paragraph]}]}
    labelled, _ = sets.tie(read(tmp_path / "set.json", json.dumps(document)), HARBOUR)
    assert [one.answerable for one in labelled.questions] == [True, False]
    assert (relevant(labelled, 0), relevant(labelled, 1)) == (["ferry.md"], [])


PROMPTFOO = f"""
prompts: [file://prompt.txt]
tests:
  - vars: {{question: "{Q}"}}
    metadata: {{source: kb/ferry.md}}
    assert: [{{type: contains, value: Pier four.}}, {{type: javascript, value: output.length}}]
  - vars:
      question: When was the pier built?
    assert: [{{type: equals, value: 1911-03-02}}]
"""
PROMPTFOO_CSV = (
    f'\ufeffquestion;__expected;__expected2;__metadata:source\n"{Q}";"icontains: four; pier";'
    "javascript: output.length < 9;ferry.md\n"
)
NAMED = {"question": "q", "relevant": "g"}
LANGFUSE = {"id": "1", "input": {"question": Q}, "expectedOutput": {"contexts": [FERRY]}}
JUDGED = f"query,doc_id,relevance\n{Q},ferry.md,2\n{Q},tickets.md,0\n"


@pytest.mark.parametrize(
    ("name", "content", "columns", "format", "answers"),
    [
        ("p.yaml", PROMPTFOO, None, "promptfoo tests", [(A,), ("1911-03-02",)]),
        ("p.csv", PROMPTFOO_CSV, None, "promptfoo tests", [("four; pier",)]),
        ("j.csv", JUDGED, None, "a table of judgements", [()]),
        ("d.json", {"question": Q, "positive_ctxs": [{"text": FERRY}]}, None, "a table of questions", [()]),
        ("l.json", {"items": [LANGFUSE]}, None, "Langfuse dataset items", [()]),
        ("n.json", {"q": Q, "g": FERRY}, NAMED, "a file with named columns", [()]),
    ],
)
def test_labels_and_answers_that_stand_in_rows_and_in_objects(
    tmp_path, name, content, columns, format, answers
):
    text = content if isinstance(content, str) else json.dumps(content)
    found = read(tmp_path / name, text, columns=columns)
    assert (found.format, [one.answers for one in found.questions]) == (format, answers)
    assert relevant(sets.tie(found, HARBOUR)[0]) == ["ferry.md"]


@pytest.mark.parametrize(("ratings", "grades"), [((3, 0), (3, 0)), ((1, 0), (3, 0)), ((10, 5), (3, 2))])
def test_quepid_ratings_are_put_together_by_query(tmp_path, ratings, grades):
    found = read(
        tmp_path / "case.csv",
        f"query,docid,rating\nferry,ferry.md,{ratings[0]}\nferry,lost.md,{ratings[1]}\ntickets,,\nlost\n",
    )
    assert [one.query.text for one in found.questions] == ["ferry", "tickets", "lost"]
    assert [one.grade for one in found.evidence[found.questions[0].id]] == list(grades)


def test_columns_are_named_by_people(tmp_path):
    path = tmp_path / "set.tsv"
    path.write_text(f"Frage\tAntwort\tQuelle\tNotiz\n{Q}\tPier four.\tferry.md\tx\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"--columns question=COLUMN"):
        read(path)
    columns = read_columns("question=Frage, answer=antwort,relevant=Quelle")
    found = read(path, columns=columns)
    assert found.questions[0].answers == ("Pier four.",)
    assert relevant(sets.tie(found, HARBOUR)[0]) == ["ferry.md"]
    assert found.remarks[-1] == "Columns not used: Notiz"
    with pytest.raises(BadInput, match="no column 'Titel' for answer; it has: Frage, Antwort, Quelle, Notiz"):
        read(path, columns={"question": "Frage", "answer": "Titel"})
    for wrong in ("title=x", "question", "question="):
        with pytest.raises(BadInput, match="question, answer, relevant"):
            read_columns(wrong)


TOPIC = "<top>\n<num> Number: 301\n<title> ferry &amp; pier\n</top>\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("topics.txt", TOPIC, [("301", "ferry & pier")]),
        ("topics.xml", '<topics><topic number="7"><query>ferry</query></topic></topics>', [("7", "ferry")]),
        ("queries.tsv", "19\twhere is it\n20\twhat was\n", [("19", "where is it"), ("20", "what was")]),
        ("mine.txt", "Where?\n\nWhen?\n", [(None, "Where?"), (None, "When?")]),
        ("array.jsonl", '[{"id": "1", "question": "Where?"}]', [("1", "Where?")]),
        ("lines.json", '{"id": "1", "text": "Where?"}\n{"id": "2", "text": "When?"}\n', TWO),
        ("frame.json", '{"id": {"0": "1", "1": "2"}, "text": {"0": "Where?", "1": "When?"}}', TWO),
        ("columns.json", '{"id": ["1", "2"], "question": ["Where?", "When?"]}', TWO),
    ],
)
def test_files_of_other_shapes(tmp_path, name, content, expected):
    found = read(tmp_path / name, content).questions
    known = [id for id, _ in expected if id]
    assert [(one.id if known else None, one.query.text) for one in found] == expected


def test_a_folder_of_shards_has_splits_by_their_names(tmp_path):
    for split, text in (("train", "Where?"), ("test", "When?")):
        pq.write_table(pa.table({"question": [text], "answer": ["x"]}), tmp_path / f"{split}-00000.parquet")
    (tmp_path / "dataset_infos.json").write_text("{}")
    assert [one.query.text for one in read(tmp_path, split="test").questions] == ["When?"]
    assert [one.query.text for one in read(tmp_path, split="all").questions] == ["When?", "Where?"]


def test_a_folder_of_queries_and_judgements_is_a_judged_set(tmp_path):
    tables = {
        "corpus": {"_id": list(TEXTS), "text": list(TEXTS.values())},
        "queries": {"_id": ["1", "2"], "text": list(ASKED)},
        "qrels": {"query-id": ["1", "2"], "corpus-id": ["ferry.md", "tickets.md"], "score": [1.0, 1.0]},
    }
    for name, table in tables.items():
        (tmp_path / name).mkdir()
        pq.write_table(pa.table(table), tmp_path / name / "test-00000-of-00001.parquet")
    found = sets.read("harbour", None, split="test", questions=[tmp_path])
    labelled, _ = sets.tie(found, HARBOUR)
    assert (relevant(labelled, 0), relevant(labelled, 1)) == (["ferry.md"], ["tickets.md"])


def test_the_texts_of_a_file_beside_stand_for_ids(tmp_path):
    pq.write_table(
        pa.table({"doc_id": ["u-1", "u-2"], "contents": [FERRY, LOST], "path": ["x/ferry.md", "x/lost.md"]}),
        tmp_path / "corpus.parquet",
    )
    row = {**ROWS["an AutoRAG dataset"], "retrieval_gt": [["u-1"]]}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "qa.parquet")
    assert relevant(sets.tie(read(tmp_path / "qa.parquet"), HARBOUR)[0]) == ["ferry.md"]


def test_rows_that_repeat_a_question_and_rows_without_one(tmp_path):
    asked = [(Q, FERRY), (Q, LOST), ("", LOST)]
    rows = [{"user_input": q, "reference_contexts": [text], "reference": A} for q, text in asked]
    found = read(tmp_path / "set.jsonl", "\n".join(map(json.dumps, rows)))
    assert [len(found.evidence[one.id]) for one in found.questions] == [2]
    assert len(found.remarks) == 3


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in pairwise("abcdefgh")
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("set.parquet", "PAR1 and nothing else"),
        ("set.arrow", "\0\1"),
        ("set.docx", "x"),
        ("cut.json", '{"user_input": '),
        ("cut.jsonl", '{"text": "a"}\n{"te'),
        ("number.jsonl", "3"),
        ("set.txt", "<top><num> 3 </top>"),
        ("deep.json", "[" * 100_000),
        ("object.yaml", "tests: !!python/object/apply:os.system ['true']"),
        ("bomb.yaml", BOMB),
        ("circle.yaml", "tests: &a [*a]"),
        ("unfinished.yaml", "tests: ["),
        ("deep.yaml", "[" * 2_000),
        ("file.yaml", "tests: file://tests.csv"),
        ("files.yaml", "tests: [file://one.yaml, file://two.yaml]"),
    ],
)
def test_what_cannot_be_read_and_what_is_hostile_is_refused_by_name(tmp_path, name, content):
    with pytest.raises(BadInput, match=name):
        read(tmp_path / name, content)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
COLUMNS = sorted({name for one in FORMATS for need in one.needs for name in need.split("|")})


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(COLUMNS), JSON, min_size=1, max_size=4), min_size=1, max_size=3)
)
def test_any_values_are_questions_or_one_error(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("any") / "set.json"
    try:
        found = read(path, json.dumps(rows))
    except BadInput:
        return
    labelled, _ = sets.tie(found, HARBOUR)
    assert all(one.query.text.strip() for one in labelled.questions)


def test_the_own_format_is_no_other(tmp_path):
    assert recognised(["id", "text", "answer", "mode", "split", "relevant", "context", "reference"]) is None
    assert recognised(["question", "answers", "history"]) is None
    assert recognised(["sql", "question", "context"]) is None
