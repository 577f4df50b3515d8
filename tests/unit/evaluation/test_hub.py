"""Datasets of the Hugging Face Hub: a label set written as one and read again, and others' parquet files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.corpus.chunk import WHOLE
from core.corpus.reading import Reader
from core.corpus.source import from_path
from core.corpus.types import LoadReport
from core.domain.errors import BadInput
from core.domain.hub import parts_of
from core.domain.types import Query, Turn
from core.evaluation import sets
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import exchange
from core.store import Store
from core.store.labels import Judgement, Pooled
from tests.fakes import FakeEngine
from tests.loaded import documents

HEADER = """---
configs:
- config_name: corpus
  data_files: {corpus}
- config_name: queries
  data_files:
  - split: queries
    path: {queries}
- config_name: default
  data_files:
  - split: validation
    path: [{qrels}]
- config_name: other
  data_files: more/*
---
"""


@pytest.fixture
def store(tmp_path: Path):
    made = Store(tmp_path / "store.sqlite")
    yield made
    made.close()


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A folder of parquet files whose names do not say what they are."""
    folder = tmp_path / "packed"
    folder.mkdir()
    tables = {
        "a-00000.parquet": [{"id": "d1", "text": "Start a return."}, {"id": "d2", "text": "Refunds."}],
        "b-00000.parquet": [{"_id": "q1", "text": "How to return?"}],
        "c-00000.parquet": [{"query-id": "q1", "corpus-id": "d1", "score": 1.0}],
    }
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / name)
    (folder / "README.md").write_text(
        HEADER.format(corpus="a-*", queries="b-*", qrels="c-*"), encoding="utf-8"
    )
    return folder


def test_a_label_set_comes_back_as_it_was_written(tmp_path: Path, store: Store) -> None:
    corpus = FakeEngine(tmp_path / "engine").corpus("tiny")
    first = next(passage for _, passage, _ in corpus.everything())
    other = Pooled(corpus.document(first.doc_id)[1][0])
    asked = [
        Question("q1", Query("How?", history=(Turn("user", "My box arrived crushed."),))),
        Question("q2", Query("Why?")),
    ]
    desks.create(store, "set", "tiny", asked)
    store.change_labels(lambda labels: labels.add_to_pool("set", {"q1": [other], "q2": [other]}))
    grades = {"q1": {first.id: 3}, "q2": {first.id: 0}}
    said = [
        Judgement(q, id, "Ann", "person", "grade", grade)
        for q, of in grades.items()
        for id, grade in of.items()
    ]
    desks.judge_all(store, "set", said)
    folder = tmp_path / "out"
    assert exchange.hub(desks.load(store, "set"), corpus, folder) == 2
    found = sets.read("out", folder, split="test")
    assert isinstance(found, LabelledSet)
    assert found.qrels == grades
    assert [question.query for question in found.questions] == [one.query for one in asked]
    whole = {document.id: document.text for document in documents(folder)}
    assert whole == {passage.id: passage.text for _, passage, _ in corpus.everything()}
    parts = {file.name: part for file, (part, _) in parts_of(folder).items()}
    assert parts == {"corpus.jsonl": "corpus", "queries.jsonl": "queries", "test.tsv": "qrels"}
    with pytest.raises(BadInput, match="already exists"):
        exchange.hub(desks.load(store, "set"), corpus, folder)


def test_a_set_without_grades_is_not_exported(tmp_path: Path, store: Store) -> None:
    corpus = FakeEngine(tmp_path / "engine").corpus("tiny")
    desks.create(store, "set", "tiny", [Question("q1", Query("How?"))])
    with pytest.raises(BadInput, match="no grades"):
        exchange.hub(desks.load(store, "set"), corpus, tmp_path / "out")


def test_parquet_files_are_what_the_header_says(packed: Path) -> None:
    assert from_path(packed).chunking == WHOLE
    with Reader() as reader:
        cuts = list(reader.documents(packed, WHOLE, LoadReport()))
    assert {cut.document.id: cut.document.text for cut in cuts} == {"d1": "Start a return.", "d2": "Refunds."}
    for split in ("test", "all"):  # the judgements of another split count if there are no others
        found = sets.read("packed", packed, split=split)
        assert isinstance(found, LabelledSet)
        assert (found.qrels, [one.id for one in found.questions]) == ({"q1": {"d1": 1}}, ["q1"])


@pytest.mark.parametrize(
    ("header", "wrong"),
    [
        ("---\nconfigs: [\n---\n", "not valid YAML"),
        (HEADER.format(corpus="../*", queries="b", qrels="c"), "no path within"),
        (HEADER.format(corpus="/etc/*", queries="b", qrels="c"), "no path within"),
    ],
)
def test_a_header_that_leads_elsewhere_is_refused(packed: Path, header: str, wrong: str) -> None:
    (packed / "README.md").write_text(header, encoding="utf-8")
    with pytest.raises(BadInput, match=wrong):
        parts_of(packed)


@pytest.mark.parametrize(
    "text", ["", "# About\n---\nconfigs: []\n---\n", "---\nconfigs: 7\n---\n", "---\n- 7\n"]
)
def test_another_folder_has_no_parts(tmp_path: Path, text: str) -> None:
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    assert parts_of(tmp_path) == {}


def test_a_link_out_of_the_folder_is_not_followed(packed: Path) -> None:
    secret = packed.parent / "secret.jsonl"
    secret.write_text(json.dumps({"_id": "x", "text": "secret"}), encoding="utf-8")
    (packed / "a-1.jsonl").symlink_to(secret)
    assert "a-1.jsonl" not in {file.name for file in parts_of(packed)}
