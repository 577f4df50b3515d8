"""Labelled sets: what is read, what is refused with which words, and how quotes become passages."""

import json
import random

import pytest

from core.corpus.chunk import Chunking, passages
from core.corpus.types import Document
from core.domain.errors import BadInput
from core.domain.types import Passage, Query, Turn
from core.evaluation import dataset, labels_file, sets
from core.evaluation.dataset import Evidence, LabelledSet, Question, Written
from core.evaluation.question_folder import read_qrels
from tests.fakes import CutCorpus, MemoryCorpus

ASKED = '{"id": "a", "text": "one"}\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "one"}\n{"_id": "d2", "text": "two"}\n')
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "first?", "metadata": {"answer": "one"}}\n'
        '{"_id": "q2", "text": "And that?", '
        '"metadata": {"all_user_turns": "|user|: What is X?\\n|user|: And that?"}}\n'
        '{"_id": "q3", "text": "unjudged"}\n'
    )
    (tmp_path / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\nq2\td2\t1\n"
    )
    return tmp_path


def test_beir_keeps_judged_questions_with_their_conversation(folder):
    found = dataset.beir(folder)
    assert [q.id for q in found.questions] == ["q1", "q2"]
    assert found.questions[0].answer == "one"
    assert found.questions[1].query == Query("And that?", (Turn("user", "What is X?"),))
    assert found.qrels == {"q1": {"d1": 1}, "q2": {"d2": 2}}  # of two grades for one pair the higher holds


@pytest.mark.parametrize(
    ("file", "line", "told"),
    [
        ("queries.jsonl", '{"_id": "q4", "text": "cut off', r"queries\.jsonl line 4: not valid JSON"),
        ("queries.jsonl", "[1, 2]", r"queries\.jsonl line 4: expected a JSON object, not list"),
        ("queries.jsonl", '{"id": "q4"}', r"queries\.jsonl line 4: no text under '_id'; it has: id"),
        ("qrels/test.tsv", "q1\td1", r"test\.tsv line 5: expected query-id"),
        ("qrels/test.tsv", "q1\td1\tgood", r"test\.tsv line 5: grade 'good'"),
        (
            "faq.CSV",
            "question,answer\nWhy?,So\nWhy?,Thus\n",
            "line 3: this question was asked before; give both",
        ),
        ("faq.CSV", "question,answer\nWhy?,So, and more\n", "line 2: more cells than the header"),
        ("faq.CSV", "\x89PNG\r\n", r"faq\.CSV: it is not text but a PNG picture"),
        ("q.jsonl", ASKED + '{"id": "a", "text": "again"}', r"q\.jsonl line 2.*'a' is taken"),
        ("q.jsonl", '{"id": "c"}', r"q\.jsonl line 1.*no 'text'"),
        (
            "q.jsonl",
            '{"text": "t", "history": [{"role": "boss", "text": "x"}]}',
            r"q\.jsonl line 1.*a turn is",
        ),
        *(
            ("q.jsonl", json.dumps({"text": "Why?", "relevant": given}), r"q\.jsonl line 1.*relevant")
            for given in (5, True, [""], [["doc1"]], {"doc1": -1}, {"doc": "d", "grade": "3"}, "[not json")
        ),
    ],
)
def test_what_cannot_be_read_is_named_by_file_and_line(folder, file, line, told):
    with (folder / file).open("a", encoding="latin-1") as out:
        out.write(line + "\n")
    own = file in ("q.jsonl", "faq.CSV")
    with pytest.raises(BadInput, match=told):
        dataset.written([folder / file], name="mine") if own else dataset.beir(folder)


def test_missing_judgements_say_what_was_looked_for(folder):
    with pytest.raises(BadInput, match=r"split 'dev'.*there are: test, all"):
        dataset.beir(folder, split="dev")
    (folder / "qrels" / "test.tsv").unlink()
    with pytest.raises(BadInput, match=r"looked for .*qrels/test\.tsv"):
        dataset.beir(folder)


def test_trec_judgements_and_csv_questions(tmp_path):
    (tmp_path / "q.csv").write_text(
        'id,question,mode,history\n1,"What, now?",plain,\n2,x,,"[{""role"":""user"",""text"":""a""}]"\n'
    )
    (tmp_path / "q.qrels").write_text("1 0 d1 3\n1 0 d2 0\n")
    found = dataset.written([tmp_path / "q.csv"], name="mine")
    assert found.questions[0] == Question("1", Query("What, now?"), "plain")
    assert found.questions[1].query.history == (Turn("user", "a"),)
    assert read_qrels(tmp_path / "q.qrels") == ({"1": {"d1": 3, "d2": 0}}, {})


def test_grades_with_a_point_and_conflicting_ones(tmp_path):
    (tmp_path / "q.qrels").write_text("1 0 d1 1.0\n1 0 d2 2.00\n1 0 d1 3\n1 0 d1 2\n9 0 d1 1\n")
    qrels, conflicts = read_qrels(tmp_path / "q.qrels")
    assert qrels == {"1": {"d1": 3, "d2": 2}, "9": {"d1": 1}}
    assert conflicts == {("1", "d1"): {1, 2, 3}}
    (tmp_path / "half.qrels").write_text("1 0 d1 0.5\n")
    with pytest.raises(BadInput, match=r"line 1: grade '0\.5' is not a whole number"):
        read_qrels(tmp_path / "half.qrels")


def test_ignored_and_conflicting_judgements_are_counted_and_named(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"id": "1", "text": "a"}\n{"id": "2", "text": "b", "split": "dev"}\n')
    (tmp_path / "q.qrels").write_text("1 0 keys 1\n1 0 keys 2\n2 0 keys 1\n8 0 keys 1\n9 0 keys 1\n")
    found = sets.read("tiny", None, split="dev", questions=[tmp_path / "q.jsonl"], qrels=tmp_path / "q.qrels")
    unknown, several = found.warnings
    assert "2 judgements of 2 unknown questions" in unknown, "a question of another split is known"
    assert "'8'" in unknown
    assert "1 judgements have several grades" in several
    assert "question '1' and 'keys': 1, 2" in several
    (tmp_path / "w.jsonl").write_text(
        '{"id": "1", "text": "a", "relevant": [{"doc": "d", "grade": 1}, {"doc": "d", "grade": 3}]}\n'
    )
    assert "question '1' and 'd': 1, 3" in dataset.written([tmp_path / "w.jsonl"], name="w").warnings[0]


def test_question_ids_that_passages_have_are_named(tmp_path):
    corpus = MemoryCorpus({"1": "One.", "2": "Two."})
    questions = (Question("1", Query("a")), Question("2", Query("b")), Question("3", Query("c")))
    qrels = {"1": {"2": 1}, "2": {"2": 1}, "3": {"1": 1}}
    _, said = sets.tie(dataset.LabelledSet("set", questions, qrels, drop_self=True), corpus)
    assert len(said) == 1
    assert "1 question ids are also ids of passages, for example '1'" in said[0]


def test_questions_of_a_spreadsheet_need_no_id(tmp_path):
    file = tmp_path / "faq.CSV"
    file.write_bytes("Question;Answer\r\nWo ist die Küche?;Unten, links\r\nWhy?;So\r\n".encode("cp1252"))
    first, second = dataset.written([file], name="mine", split="test").questions
    assert (first.query.text, first.answers) == ("Wo ist die Küche?", ("Unten, links",))
    assert first.answerable is True
    (tmp_path / "other.jsonl").write_text(json.dumps({"query": "Why?"}))
    assert dataset.written([tmp_path / "other.jsonl"], name="mine").questions[0].id == second.id
    assert second.id.startswith("q-")
    with pytest.raises(BadInput, match=r"no questions of split 'dev'; there are: none, all"):
        dataset.written([file], name="mine", split="dev")


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("doc1", [("doc1", 3)]),
        (["doc1", "doc2"], [("doc1", 3), ("doc2", 3)]),
        ({"doc": "doc1", "grade": 2}, [("doc1", 2)]),
        ({"doc1": 2, "doc2": 0}, [("doc1", 2), ("doc2", 0)]),
        ([{"doc": "doc1"}, "doc2"], [("doc1", 3), ("doc2", 3)]),
        ("", []),
        (None, []),
    ],
)
def test_one_relevant_document_is_one_document(tmp_path, given, made):
    cell = (given if isinstance(given, str) else json.dumps(given or "")).replace('"', '""')
    (tmp_path / "q.jsonl").write_text(json.dumps({"id": "a", "text": "Why?", "relevant": given}))
    (tmp_path / "q.csv").write_text(f'id,text,relevant\na,Why?,"{cell if given else ""}"\n')
    for name in ("q.jsonl", "q.csv"):
        (found,) = dataset.written([tmp_path / name], name="mine").evidence.values()
        assert [(one.doc, one.grade) for one in found] == made


def test_written_questions_are_chosen_by_split(tmp_path):
    path = tmp_path / "q.jsonl"
    label = {"doc": "d", "quote": "x", "grade": 2}
    lines = [
        {"id": "a", "text": "1", "split": "dev"},
        {"id": "b", "text": "2", "relevant": [label], "split": "test"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    found = dataset.written([path], name="mine", split="test")
    assert [q.id for q in found.questions] == ["b"]
    assert found.evidence["b"] == (Evidence("d", 2, "x", f"{path} line 2"),)
    with pytest.raises(BadInput, match="no questions of split 'train'; there are: dev, test, all"):
        dataset.written([path], name="mine", split="train")


def test_a_sample_of_each_mode_repeats_and_takes_labelled_questions_only():
    questions = tuple(Question(f"{mode}{n}", Query("q"), mode=mode) for mode in "ab" for n in range(9))
    labelled = LabelledSet("many", questions, {q.id: {"p": int(q.id[1] != "0")} for q in questions})
    drawn = labelled.sample_modes(3, 1)
    assert drawn == labelled.sample_modes(3, 1)
    assert [q.mode for q in drawn.questions] == ["a"] * 3 + ["b"] * 3
    assert all(drawn.labelled(q.id) for q in drawn.questions)
    assert len(labelled.sample_modes(100, 1).questions) == 16
    with pytest.raises(BadInput, match="no question with a relevant passage"):
        LabelledSet("none", questions, {}).sample_modes(1, 1)


def test_a_sample_repeats_and_keeps_the_order():
    full = LabelledSet("s", tuple(Question(f"q{n}", Query("x")) for n in range(50)), {})
    one, again, other = full.sample(10, 1), full.sample(10, 1), full.sample(10, 2)
    assert one == again
    assert one != other
    assert len(one.questions) == 10
    assert [q for q in full.questions if q in one.questions] == list(one.questions)
    assert full.sample(500, 1) is full


def piece(start, text, doc="d"):
    return Passage(f"{doc}:{start}-{start + len(text)}", doc, "", text, start, start + len(text))


TEXT, MANY = "alpha beta gamma delta", "aa bb cc dd e ff gg"
CUT = [piece(0, "alpha beta"), piece(11, "gamma delta")]
SHELF = CutCorpus({"d": TEXT}, {"d": [(0, 10), (11, 22)]})


@pytest.mark.parametrize(
    ("quote", "text", "cut", "carriers"),
    [
        ("alpha beta", TEXT, CUT, [0]),
        ("beta gamma", TEXT, CUT, [1]),  # [6,16): 4 of 10 in the first, 5 in the second just enough
        ("alpha beta gam", TEXT, CUT, [0]),
        ("ta gamma  delta", TEXT, CUT, [1]),  # white space is not compared
        ("beta gamma", TEXT, [piece(0, "alpha beta gamma"), piece(6, "beta gamma delta")], [0, 1]),
        (MANY, MANY, [piece(0, "aa bb"), piece(6, "cc dd e"), piece(14, "ff gg")], [1]),  # which has most
    ],
)
def test_a_quote_labels_the_passages_that_hold_half_of_it(quote, text, cut, carriers):
    assert labels_file.holding(Evidence("d", 3, quote), text, cut) == [cut[n].id for n in carriers]


def test_labels_need_the_corpus_and_the_highest_grade_wins():
    evidence = {"q": (Evidence("d", 1), Evidence("d", 3, "gamma"), Evidence("d", 2, "delta"))}
    placed = labels_file.place(Written("s", (Question("q", Query("x")),), evidence), SHELF)
    assert placed.qrels == {"q": {CUT[0].id: 1, CUT[1].id: 3}}
    assert placed.relevant_from == 2
    lost = labels_file.place(Written("s", (), {"q": (Evidence("d", 3, "omega", "f line 1"),)}), SHELF)
    assert [(labels_file.is_lost(id), grade) for id, grade in lost.qrels["q"].items()] == [(True, 3)]
    with pytest.raises(BadInput, match="f line 2: corpus cut has no document 'e'"):
        labels_file.place(Written("s", (), {"q": (Evidence("e", 1, None, "f line 2"),)}), SHELF)


def test_labels_are_found_again_whatever_the_chunking():
    rng = random.Random(3)
    words = [f"w{n}" for n in range(400)]
    text = " ".join(words)
    document = Document("doc.txt", "t", text)
    for size in (60, 150, 700, 0):
        cut = passages(document, Chunking(size))
        for _ in range(20):
            first = rng.randrange(380)
            quote = " ".join(words[first : first + rng.randrange(1, 12)])
            at = text.index(quote)
            share = {p.id: max(0, min(p.end, at + len(quote)) - max(p.start, at)) / len(quote) for p in cut}
            wanted = {id for id, part in share.items() if part >= 0.5} or {max(share, key=share.__getitem__)}
            found = set(labels_file.holding(Evidence("doc.txt", 3, quote), text, cut))
            assert found == wanted or max(share.values()) < 0.5  # then a tie may go either way


def test_document_ids_are_spread_over_passages_and_strangers_are_told():
    judged = LabelledSet("s", (), {"q": {"d": 2, CUT[0].id: 1, "gone": 1}})
    settled, unknown = labels_file.with_judgements(judged, SHELF)
    assert settled.qrels == {"q": {CUT[0].id: 2, CUT[1].id: 2, "gone": 1}}
    assert unknown == {"gone"}
    with pytest.raises(BadInput, match="none of the 1 judged ids"):
        labels_file.with_judgements(LabelledSet("s", (), {"q": {"gone": 1}}), SHELF)
