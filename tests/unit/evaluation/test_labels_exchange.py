"""Labels out and in: every text comes back, no cell is a formula, and what is broken is named by line."""

import csv
import io
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.domain.errors import BadInput
from core.domain.types import Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import exchange
from core.evaluation.labels.exchange import COLUMNS, bare, shielded
from core.evaluation.labels.final import final, labelled_set
from core.evaluation.outcome import Outcome
from core.evaluation.question_folder import read_qrels
from core.store import Store
from core.store.labels import Judgement, Pooled
from tests.fakes import MemoryCorpus

TINY = MemoryCorpus({"a b:0-9": "One.", "c%20d:0-9": "Two.", "e:0-9": "Three."})
texts = st.text(st.characters(exclude_categories=[]), min_size=1, max_size=8)  # lone surrogates and NUL too
nasty = st.sampled_from(
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "'=1", "''-", " \n+x", "＝1", "\x00=1", "'tis", "'"),
        *("a,b", 'a"b', "a\r\nb", " ", "a b", "a%20b", "a\u3000b", "a\u2028b", "\ufeffa", "%", "score"),
    ]
)
words = texts | nasty
shown = words.filter(lambda text: text.strip() != "")
names = shown.filter(lambda text: not text.split()[0].startswith("model:"))


@st.composite
def sets_of_labels(draw):
    """Questions, passages and judgements with any text in every place."""
    questions = draw(st.lists(words, min_size=1, max_size=3, unique=True))
    pool = {q: draw(st.lists(words, max_size=3, unique=True)) for q in questions}
    pairs = [(q, p) for q, passages in pool.items() for p in passages]
    said = []
    if pairs:
        who = st.one_of(
            st.tuples(names, st.sampled_from(["person", "import", "adjudication"])),
            st.tuples(names.map(lambda name: f"model:{name}"), st.just("model")),
        )
        kinds = st.sampled_from([("grade", 0), ("grade", 3), ("cannot", None), ("later", None)])
        for pair, (name, source), (kind, grade), note in draw(
            st.lists(st.tuples(st.sampled_from(pairs), who, kinds, words), max_size=5)
        ):
            said.append(Judgement(*pair, name, source, kind, grade, note))
    found = {
        q: [
            Pooled(Passage(p, draw(shown), draw(words), draw(shown), 0, draw(st.integers(0, 99))))
            for p in passages
        ]
        for q, passages in pool.items()
    }
    return [Question(q, Query(draw(shown))) for q in questions], found, said


def made(folder, questions, found, said):
    store = Store(folder / "labels.sqlite")
    desks.create(store, "set", "tiny", questions)
    desks.add_to_pool(store, "set", found)
    desks.judge_all(store, "set", said)
    return store


def plain(desk):
    return sorted(
        (j.pair, j.annotator, j.source, j.kind, j.grade or 0, j.note, j.created) for j in desk.current
    )


@pytest.mark.slow
@given(sets_of_labels())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_csv_brings_everything_back_and_judgements_the_grades(tmp_path_factory, given_set):
    questions, found, said = given_set
    store = made(tmp_path_factory.mktemp("a"), questions, found, said)
    desk = desks.load(store, "set")
    content = exchange.table(desk, unjudged=True)
    other = made(tmp_path_factory.mktemp("b"), questions, {}, [])
    brought = exchange.import_table(other, "set", content, "labels.csv")
    back = desks.load(other, "set")
    assert plain(back) == plain(desk)
    ours, theirs = (
        {q: {p: one.passage for p, one in pool.items()} for q, pool in one.pool.items()}
        for one in (desk, back)
    )
    assert theirs == ours
    assert (brought.added, brought.known) == (len(desk.current), 0)
    again = exchange.import_table(other, "set", content, "labels.csv")
    assert (again.added, again.known, again.passages) == (0, len(desk.current), 0)
    grades = {pair: one.grade for pair, one in final(desk).items() if one.grade is not None}
    content = exchange.qrels(desk)
    lines = content.decode("utf-8", "surrogatepass").split("\n")[:-1]
    assert all(len(line.split()) == 4 for line in lines)
    assert len(lines) == len(grades)
    if grades:
        third = made(tmp_path_factory.mktemp("c"), questions, found, [])
        exchange.import_qrels(third, "set", content, "labels.qrels", "import", TINY)
        back = desks.load(third, "set")
        assert {pair: one.grade for pair, one in back.by("import").items()} == grades
        assert {j.source for j in back.current} == {"import"}
        third.close()
    store.close()
    other.close()


@pytest.mark.trust
@given(words | st.from_regex(r"[A-Za-z0-9 ,.']{1,9}", fullmatch=True))
def test_no_cell_is_a_formula_and_every_cell_comes_back(text):
    assert bare(shielded(text)) == text
    assert shielded(text).lstrip(string.whitespace + "\x00\ufeff")[:1] not in tuple("=+-@")
    if text[0].isascii() and text[0].isalnum():
        assert shielded(text) == text, "usual cells are left as they are"


@pytest.fixture
def store(tmp_path):
    questions = [Question("q 1", Query("=How?")), Question("q2", Query("Why?"))]
    found = {"q 1": [Pooled(p) for p in TINY.all[:2]], "q2": [Pooled(TINY.all[0])]}
    said = [
        Judgement("q 1", "a b:0-9", "Ann", "person", "grade", 3, "-note"),
        Judgement("q 1", "a b:0-9", "Bob", "person", "grade", 1),
        Judgement("q2", "a b:0-9", "Bob", "person", "cannot"),
        Judgement("q 1", "c%20d:0-9", "model:m", "model", "grade", 2),
    ]
    store = made(tmp_path, questions, found, said)
    yield store
    store.close()


def test_documents_are_imported_whole_and_counted_once(store):
    corpus = MemoryCorpus({"long:0-9": "One.", "long:9-18": "Two.", "other": "Three."})
    added = exchange.import_qrels(store, "set", b"q%201 0 long 2.0\n", "a.qrels", "Ann", corpus)
    assert (added.added, added.passages) == (1, 1)
    labelled, _ = labelled_set(store, "set", corpus)
    assert labelled.judged("q 1") == {"long": 2}
    both = Outcome("ok", 1.0, (("other", 3.0), ("long:9-18", 2.0), ("long:0-9", 1.0)))
    assert labelled.ranking("q 1", both) == (("other", 3.0), ("long", 2.0))


def test_what_the_files_hold(store, tmp_path):
    desk = desks.load(store, "set")
    assert exchange.qrels(desk) == b"q%201 0 a%20b:0-9 1\n"
    assert exchange.qrels(desk, "Ann") == b"q%201 0 a%20b:0-9 3\n"
    assert exchange.qrels(desk, "model:m") == b"q%201 0 c%2520d:0-9 2\n"
    with pytest.raises(BadInput, match="no annotator 'Eve'; there are: Ann, Bob, model:m"):
        exchange.qrels(desk, "Eve")
    (tmp_path / "a.qrels").write_bytes(exchange.qrels(desk))
    assert read_qrels(tmp_path / "a.qrels") == ({"q%201": {"a%20b:0-9": 1}}, {})
    rows = list(csv.DictReader(io.StringIO(exchange.table(desk).decode(), newline="")))
    assert list(rows[0]) == list(COLUMNS)
    assert len(rows) == 4
    assert [rows[0][c] for c in ("question", "annotator", "kind", "grade", "note", "source", "text")] == [
        "'=How?",
        "Ann",
        "grade",
        "3",
        "'-note",
        "person",
        "One.",
    ]


def test_judgements_of_others_are_taken_as_they_are_written(store):
    """TREC with spaces, ids as they are; BEIR with tabs and a header; a passage from the corpus."""
    content = b"q2 0 c%20d:0-9 2\nq2 Q0 e:0-9 0\n"
    brought = exchange.import_qrels(store, "set", content, "x.qrels", "NIST", TINY)
    assert (brought.added, brought.known, brought.passages) == (2, 0, 2)
    beir = b"query-id\tcorpus-id\tscore\nq 1\ta b:0-9\t2\n"
    assert exchange.import_qrels(store, "set", beir, "x.tsv", "NIST", TINY).added == 1
    desk = desks.load(store, "set")
    assert {pair: one.grade for pair, one in desk.by("NIST").items()} == {
        ("q2", "c%20d:0-9"): 2,
        ("q2", "e:0-9"): 0,
        ("q 1", "a b:0-9"): 2,
    }
    assert desk.pool["q2"]["e:0-9"] == Pooled(TINY.by_ids(["e:0-9"])["e:0-9"])


def test_a_broken_line_of_judgements_is_named_and_nothing_is_imported(store):
    before = desks.version(store, "set")
    for line, told in (
        ("q2 0 e:0-9", "line 2: grade 'e:0-9'"),
        ("q2 e:0-9", "line 2: expected question, 0, passage, grade; got 'q2 e:0-9'"),
        ("q2 0 e:0-9 4", "line 2: grade '4'; give 0, 1, 2, 3"),
        ("q2 0 e:0-9 -1", "line 2: grade '-1'; give"),
        ("q9 0 e:0-9 1", "line 2: label set 'set' has no question 'q9'"),
        ("q2 0 z:0-9 1", "line 2: 'z:0-9' is neither in the pool nor a passage or document"),
        ("q2 0 a%20b:0-9 0", "line 2: 'NIST' judged passage 'a b:0-9' in a line above"),
    ):
        content = f"q2 0 a%20b:0-9 1\n{line}\n".encode()
        with pytest.raises(BadInput, match=f"^x.qrels {told}"):
            exchange.import_qrels(store, "set", content, "x.qrels", "NIST", TINY)
    with pytest.raises(BadInput, match=r"x\.qrels contains no judgements"):
        exchange.import_qrels(store, "set", b"\n", "x.qrels", "NIST", TINY)
    assert desks.version(store, "set") == before


HEAD = "question_id,passage_id,annotator,source,kind,grade,doc_id,text,start,end,created\n"


def test_a_broken_line_of_csv_is_named_and_nothing_is_imported(store):
    before = desks.version(store, "set")
    pair = "q2,a b:0-9,A"
    for lines, told in (
        ("question_id,grade\n", "x.csv line 1: no column 'passage_id'; it has: question_id, grade"),
        (HEAD + 'q2,"a b:0-9\n', "x.csv line 2: not CSV"),
        (HEAD + "q2,a\n", "x.csv line 2: 2 cells where the first line has 11"),
        (HEAD + 'q2,"a\nb",A,,,,d,t,0,1,\nq9,a,A,,,,d,t,0,1,\n', "x.csv line 4: label set 'set' has no"),
        (HEAD + "q2,z,A,,grade,1,,,,,\n", "x.csv line 2: passage 'z' is not in the pool; a line that brings"),
        (HEAD + "q2,z,A,,grade,1,d,t,x,1,\n", "x.csv line 2: start 'x'; give a whole number"),
        (HEAD + f"{pair},,grade,7,,,,,\n", "x.csv line 2: grade '7'; give 0, 1, 2, 3"),
        (HEAD + f"{pair},,grade,,,,,,\n", "x.csv line 2: grade None; give 0, 1, 2, 3"),
        (HEAD + f"{pair},,maybe,,,,,,\n", "x.csv line 2: kind 'maybe'; give"),
        (HEAD + f"{pair},,withdrawn,,,,,,\n", "x.csv line 2: kind 'withdrawn'; give grade"),
        (HEAD + f"{pair},oracle,grade,1,,,,,\n", "x.csv line 2: source 'oracle'; give"),
        (HEAD + "q2,a b:0-9,,,grade,1,,,,,\n", "x.csv line 2: no annotator"),
        (HEAD + f"{pair},,grade,1,,,,,noon\n", "x.csv line 2: created 'noon'"),
        (HEAD + f"{pair},,grade,1,,,,,\n{pair},,grade,2,,,,,\n", "x.csv line 3: 'A' judged"),
    ):
        good = "q2,a b:0-9,Good,,grade,1,,,,,\n" if told.startswith("x.csv line 3") else ""
        with pytest.raises(BadInput, match=told):
            exchange.import_table(store, "set", (lines + good).encode(), "x.csv")
    with pytest.raises(BadInput, match=r"x\.csv: not UTF-8 text \(byte 0\)"):
        exchange.import_table(store, "set", b"\xff\xfe", "x.csv")
    assert desks.version(store, "set") == before


def test_a_sheet_filled_in_by_hand_is_read(store):
    """Only ids and grades, with the importer as the annotator."""
    content = b"\xef\xbb\xbfquestion_id,passage_id,grade\nq2,a b:0-9,3\n\n"
    brought = exchange.import_table(store, "set", content, "x.csv", "Eve")
    assert brought.added == 1
    one = desks.load(store, "set").by("Eve")["q2", "a b:0-9"]
    assert (one.kind, one.grade, one.source) == ("grade", 3, "import")
