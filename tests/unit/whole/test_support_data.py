"""The data that comes with the program: its questions, quotes, tables and stored web pages."""

import importlib.util
import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from core.corpus import pydocs
from core.routes.registry import routes

DATA = Path(__file__).resolve().parents[3] / "data"
SUPPORT, WEB, PYDOCS = DATA / "support", DATA / "web" / "documents", DATA / "pydocs"
DOCUMENTS = {str(p.relative_to(SUPPORT / "documents")): p for p in (SUPPORT / "documents").rglob("*.md")}
MODES = {
    *("plain", "vocabulary_mismatch", "abstract", "ambiguous_followup", "comparison", "multi_hop"),
    *("exact_identifier", "structured", "no_answer", "no_retrieval", "outside_knowledge"),
}
UNANSWERED = {"structured", "no_answer", "no_retrieval", "outside_knowledge"}
KEYS = {"id", "text", "history", "mode", "answer", "relevant", "split", "sample", "sql", "web"}


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


QUESTIONS = [question for path in sorted((SUPPORT / "questions").glob("*.jsonl")) for question in read(path)]
BESIDE = [question for path in sorted(SUPPORT.glob("*_questions.jsonl")) for question in read(path)]
LOOPS = read(SUPPORT / "loop_questions.jsonl")
DOCSTRING_QUESTIONS = read(PYDOCS / "questions.jsonl")


def check(question):
    assert set(question) <= KEYS, question["id"]
    assert question["text"].strip()
    assert question["answer"].strip()
    assert question["mode"] in MODES
    assert question["split"] in ("dev", "test")
    for turn in question.get("history", ()):
        assert set(turn) == {"role", "text"}
        assert turn["role"] in ("user", "assistant")
    assert bool(question.get("history")) or question["mode"] != "ambiguous_followup" or "sample" in question
    assert all(entry["grade"] in (0, 1, 2, 3) for entry in question["relevant"])
    if question["mode"] not in UNANSWERED:
        assert any(entry["grade"] >= 2 for entry in question["relevant"]), "nothing answers it"


@pytest.mark.parametrize("question", [*QUESTIONS, *LOOPS], ids=lambda question: question["id"])
def test_a_question_is_well_formed_and_its_quotes_are_found_once(question):
    check(question)
    for entry in question["relevant"]:
        assert DOCUMENTS[entry["doc"]].read_text(encoding="utf-8").count(entry["quote"]) == 1, entry
    for entry in question.get("web", ()):
        assert (WEB / entry["doc"]).read_text(encoding="utf-8").count(entry["quote"]) == 1, entry


def test_there_are_enough_documents_and_questions_and_every_mode_is_in_both_splits():
    assert len(DOCUMENTS) >= 120
    assert len(QUESTIONS) >= 150
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS)
    counts = Counter((question["mode"], question["split"]) for question in QUESTIONS)
    assert all(counts[mode, split] >= 5 for mode in MODES for split in ("dev", "test")), counts


def test_the_samples_are_numbered_from_one_and_say_what_they_show():
    samples = [question["sample"] for question in QUESTIONS if "sample" in question]
    samples += [question["sample"] for question in BESIDE if "sample" in question]
    assert sorted(sample["order"] for sample in samples) == list(range(1, len(samples) + 1))
    assert all(sample["shows"].strip() for sample in samples)
    assert {name for sample in samples for name in sample.get("routes", ())} <= routes().keys()
    assert all(question["split"] == "dev" for question in QUESTIONS if "sample" in question)


@pytest.fixture(scope="module")
def tables():
    connection = sqlite3.connect(f"file:{SUPPORT / 'support.sqlite'}?mode=ro", uri=True)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "question", [q for q in QUESTIONS if q["mode"] == "structured"], ids=lambda question: question["id"]
)
def test_the_gold_query_runs_and_its_numbers_are_in_the_answer(question, tables):
    rows = tables.execute(question["sql"]).fetchall()
    assert rows
    said = question["answer"].replace(",", "")
    for cell in (cell for row in rows for cell in row if isinstance(cell, int | float)):
        shown = {str(cell), f"{cell:.2f}"}
        flag = cell in (0, 1) and isinstance(cell, int)  # told in words: "lost", "on time"
        assert flag or any(number in said for number in shown), (cell, question["answer"])


def test_the_tables_are_sound_and_are_what_the_builder_makes(tables, tmp_path):
    assert tables.execute("PRAGMA foreign_key_check").fetchall() == []
    spec = importlib.util.spec_from_file_location("build_tables", SUPPORT / "build_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.build(tmp_path / "again.sqlite")
    again = sqlite3.connect(tmp_path / "again.sqlite")
    assert list(again.iterdump()) == list(tables.iterdump())
    again.close()


def test_the_sample_order_is_held_at_customs_and_in_no_document(tables):
    order = tables.execute(
        "SELECT o.status, o.destination_country, c.name FROM orders o JOIN shipments s USING (order_no)"
        " JOIN carriers c USING (carrier_id) WHERE o.order_no = 48291"
    ).fetchall()
    assert order == [("held_at_customs", "CH", "Brightway Express")]
    assert tables.execute("SELECT COUNT(*) FROM orders WHERE order_no = 48219").fetchone() == (0,)
    assert not [name for name, path in DOCUMENTS.items() if "48291" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", sorted(WEB.glob("*.md")), ids=lambda path: path.stem)
def test_a_stored_page_says_what_it_is(path):
    title, source, date, blank, *rest = path.read_text(encoding="utf-8").split("\n")
    assert title.startswith("# ")
    assert source == "Source: general knowledge, written for this project; not a live web page"
    assert date == "As of: 2026-11"
    assert blank == ""
    assert 150 <= len(" ".join(rest).split()) <= 400


def test_docstring_questions_are_well_formed_and_judge_whole_documents():
    assert len({question["id"] for question in DOCSTRING_QUESTIONS}) == len(DOCSTRING_QUESTIONS) >= 60
    for question in DOCSTRING_QUESTIONS:
        check(question)
        docs = [entry["doc"] for entry in question["relevant"]]
        assert len(set(docs)) == len(docs), question["id"]
        assert all("quote" not in entry for entry in question["relevant"])


@pytest.mark.process
def test_judged_docstrings_of_two_modules_exist():
    known = {document.id for document in pydocs.documents(("contextlib", "shutil"))}
    judged = {entry["doc"] for question in DOCSTRING_QUESTIONS for entry in question["relevant"]}
    mine = {name for name in judged if name.split(".")[0] in ("contextlib", "shutil")}
    assert mine
    assert mine <= known
