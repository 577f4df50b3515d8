"""Ids, names and texts in decomposed characters (NFD) meet their composed ones."""

from __future__ import annotations

import json
import tempfile
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.backends.external import run_files
from core.corpus import load
from core.corpus.corpus import Corpus
from core.corpus.types import LoadReport, Reading
from core.domain.external import ForeignHit, parse_reply
from core.domain.filters import read_filter
from core.domain.types import Passage, Query
from core.evaluation import dataset
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import exchange
from core.evaluation.question_folder import read_qrels
from core.evaluation.question_formats import read_columns
from core.store import Store, traces_in
from core.store.labels import Pooled

LETTERS = "äéîõůñçşåžaeouﬁ가각ぱ-"
WORDS = st.text(LETTERS, min_size=1, max_size=12).map(lambda text: f"x{text}.md")


def _file(name: str, text: str) -> Path:
    path = Path(tempfile.mkdtemp()) / name
    path.write_text(text, encoding="utf-8")
    return path


def _lines(*rows: object) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _trec(id: str) -> list[str]:
    return list(read_qrels(_file("q.qrels", f"{id} 0 {id} 1\n"))[0][unicodedata.normalize("NFC", id)])


def _beir_folder(id: str) -> list[str]:
    queries = _file("queries.jsonl", _lines({"_id": id, "text": id}))
    (queries.parent / "qrels").mkdir()
    (queries.parent / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{id}\t{id}\t1\n")
    found = dataset.beir(queries.parent)
    return [question.id for question in found.questions] + [*next(iter(found.qrels.values()))]


def _corpus(id: str) -> list[str]:
    file = _file("corpus.jsonl", _lines({"_id": id, "title": id, "text": id}))
    found = load.documents_of(file, file.parent, Reading(), LoadReport())
    return [text for document, _ in found for text in (document.id, document.title, document.text)]


def _file_name(id: str) -> list[str]:
    file = _file(id, "Words\n")
    return [document.id for document, _ in load.documents_of(file, file.parent, Reading(), LoadReport())]


def _questions(name: str, text: Callable[[str], str]) -> Callable[[str], list[str]]:
    def read(id: str) -> list[str]:
        found = dataset.written([_file(name, text(id))], name="q", columns=read_columns(f"relevant={id}"))
        (question,) = found.questions
        return [question.query.text, *(entry.doc for entry in found.evidence[question.id])]

    return read


def _run_file(name: str, text: Callable[[str], str]) -> Callable[[str], list[str]]:
    def read(id: str) -> list[str]:
        composed = unicodedata.normalize("NFC", id)
        found = run_files.read(_file(name, text(id)), {composed: Query(id)}, "set")
        return [hit["doc_id"] for one in found.answered.values() for hit in one.reply["hits"]]

    return read


def _reply(id: str) -> list[str]:
    reply = parse_reply(json.dumps({"hits": [{"doc_id": id, "id": id, "text": id}], "citations": [id]}), "p")
    (hit,) = reply.hits
    return [hit.doc_id, str(hit.id), hit.text, *reply.citations]


def _trace(id: str) -> list[str]:
    document = {"page_content": id, "metadata": {"source": id}, "id": id}
    run: dict[str, Any] = {"id": "1" * 32, "trace_id": "1" * 32, "name": "Retriever", "run_type": "retriever"}
    run |= {"start_time": "2026-03-02T08:00:00", "end_time": "2026-03-02T08:00:01"}
    run |= {"inputs": {"query": id}, "outputs": {"documents": [document]}}
    (trace,) = traces_in.read(json.dumps(run).encode(), "x").traces
    (span,) = trace.spans
    hits = span.hits or ()
    return [text for hit in hits for text in (hit.doc_id, str(hit.id), hit.text)]


def _filter(id: str) -> list[str]:
    found = read_filter(f"{id}={id}")
    return [found.field, *found.values]


def _hit(id: str) -> list[str]:
    return [ForeignHit(id).doc_id, Query(id).text]


IMPORTERS: dict[str, Callable[[str], list[str]]] = {
    "TREC judgements": _trec,
    "BEIR questions": _beir_folder,
    "BEIR documents": _corpus,
    "file names": _file_name,
    "questions as JSON lines": _questions("q.jsonl", lambda id: _lines({"question": id, id: id})),
    "questions as CSV": _questions("q.csv", lambda id: f"question,{id}\n{id},{id}\n"),
    "a TREC run": _run_file("r.run", lambda id: f"{id} Q0 {id} 1 1.0 x\n"),
    "replies with escapes": _run_file(
        "r.jsonl", lambda id: json.dumps({"question": id, "hits": [{"doc_id": id, "text": id}]}) + "\n"
    ),
    "a pipeline's reply": _reply,
    "a trace": _trace,
    "a filter": _filter,
    "a hit and a question": _hit,
}


@pytest.mark.parametrize("name", IMPORTERS)
@settings(max_examples=15, deadline=None)
@given(word=WORDS)
def test_a_decomposed_id_is_its_composed_one(name: str, word: str) -> None:
    read = IMPORTERS[name]
    composed = unicodedata.normalize("NFC", word.replace("ﬁ", "fi"))
    found = read(unicodedata.normalize("NFD", word.replace("ﬁ", "fi")))
    assert found
    assert set(found) == {composed}
    if name != "file names" and "TREC" not in name and "run" not in name and "BEIR" not in name:
        assert read(word) == found, "a ligature is its letters"


def test_a_corpus_finds_a_decomposed_id() -> None:
    class Ids:
        def row(self, id: str) -> int | None:
            return 7 if id == "Über.md:0-4" else None

        def by_ids(self, ids: list[str]) -> dict[str, str]:
            return {id: "passage" for id in ids if id == "Über.md:0-4"}

    corpus = SimpleNamespace(_store=Ids(), name="c")
    asked = unicodedata.normalize("NFD", "Über.md:0-4")
    assert Corpus.row(corpus, asked) == 7  # type: ignore[arg-type]
    assert Corpus.by_ids(corpus, [asked, "gone"]) == {asked: "passage"}  # type: ignore[arg-type]


def test_labels_with_decomposed_ids_are_those_of_the_pool(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    passage = Passage("Über.md:0-4", "Über.md", "", "Text", 0, 4)
    desks.create(store, "mine", "c", [Question("Ü1", Query("Wie?"))])
    desks.add_to_pool(store, "mine", {"Ü1": [Pooled(passage, ())]})
    corpus: Any = SimpleNamespace(name="c")
    qrels, table = (
        unicodedata.normalize("NFD", content).encode()
        for content in ("Ü1 0 Über.md:0-4 2\n", "question_id,passage_id,kind,grade\nÜ1,Über.md:0-4,grade,2\n")
    )
    exchange.import_qrels(store, "mine", qrels, "f", "one", corpus)
    exchange.import_table(store, "mine", table, "f", "two")
    found = desks.load(store, "mine")
    assert {(one.question, one.passage, one.annotator) for one in found.current} == {
        ("Ü1", passage.id, "one"),
        ("Ü1", passage.id, "two"),
    }
    assert list(found.pool["Ü1"]) == [passage.id]
