"""Training examples from labels: what is in them, what is never made up, and the share without the oracle."""

import json

import pytest
from scipy.stats import binomtest

from core.cli import main
from core.corpus import index
from core.domain import settings
from core.domain.errors import BadInput
from core.domain.types import Query, Turn
from core.evaluation.dataset import Evidence, LabelledSet, Question, Written
from core.evaluation.raft import Made, examples, quotes
from tests.fakes import TEXTS, HashEmbedder, MemoryCorpus

CORPUS = MemoryCorpus(TEXTS)
CRUSHED = Question(
    "q1",
    Query("When do I report a crushed box?", (Turn("user", "Hello"),)),
    answers=("within 48 hours", "48 h"),
)
QUOTE = "report it within 48 hours"
GRADES = {"crushed:0-80": 3, "fragile:0-80": 1}


def make(questions=(CRUSHED,), qrels=None, said=None, **how):
    made = Made()
    labelled = LabelledSet("set", tuple(questions), {"q1": GRADES} if qrels is None else qrels, 2)
    options = {"distractors": 3, "p_gold": 1.0, "seed": 0, **how}
    return list(examples(labelled, CORPUS, said or {}, made, **options)), made


def test_an_example_has_the_oracle_among_unlabelled_neighbours():
    [example], made = make(said={"q1": (QUOTE, "never said anywhere")})
    ids = [passage["id"] for passage in example["context"]]
    assert example["oracle"] == ["crushed:0-80"]
    assert "crushed:0-80" in ids
    assert "fragile:0-80" not in ids, "background is no distractor"
    found = [hit.passage.id for hit in CORPUS.search_sparse(CRUSHED.query.text, 9)]
    assert set(ids) - {"crushed:0-80"} <= set(found)
    assert example["quotes"] == [QUOTE]
    assert (made.examples, made.without_oracle, made.short) == (1, 0, int(len(ids) < 4))


def test_what_the_model_is_to_say_is_quotes_and_the_gold_answer_alone():
    [example], _ = make(said={"q1": (QUOTE,)})
    system, turn, asked, said = example["messages"]
    assert (system["role"], turn) == ("system", {"role": "user", "content": "Hello"})
    assert asked["content"].endswith("Question: When do I report a crushed box?")
    assert asked["content"].count("<passage ") == len(example["context"])
    assert said["content"] == f"##begin_quote##{QUOTE}##end_quote##\n##Answer: within 48 hours"
    [bare], _ = make()
    assert bare["messages"][-1]["content"] == "##Answer: within 48 hours"
    [blind], made = make(said={"q1": (QUOTE,)}, p_gold=0.0)
    assert (blind["oracle"], blind["quotes"], made.without_oracle) == (None, [], 1)
    assert "crushed:0-80" not in [passage["id"] for passage in blind["context"]]
    assert "begin_quote" not in blind["messages"][-1]["content"]


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.2, 0.8])
def test_the_share_with_the_oracle_is_p(p):
    questions = [Question(f"q{n}", CRUSHED.query, answers=("48 hours",)) for n in range(1000)]
    made_of, made = make(questions, {q.id: GRADES for q in questions}, p_gold=p)
    kept = [[one["id"] for one in e["context"]] for e in made_of if e["oracle"] is not None]
    assert made.examples == 1000 == len(kept) + made.without_oracle
    assert binomtest(len(kept), 1000, p).pvalue > 0.001
    places = {ids.index("crushed:0-80") for ids in kept}
    assert places == set(range(max(map(len, kept)))), "the oracle stands at any place"


def test_it_repeats_itself_and_a_question_does_not_depend_on_the_others():
    other = Question("q2", Query("How are fragile items packed?"), answers=("in two boxes",))
    qrels = {"q1": GRADES, "q2": {"fragile:0-80": 3}}
    both, _ = make((CRUSHED, other), qrels, p_gold=0.5)
    assert both == make((CRUSHED, other), qrels, p_gold=0.5)[0]
    assert make((other,), qrels, p_gold=0.5)[0] == both[1:]
    assert [make((CRUSHED,), seed=seed)[0] for seed in range(5)].count(make()[0]) < 5


def test_what_cannot_be_an_example_is_counted():
    unanswered = Question("q3", Query("Who?"))
    unlabelled = Question("q4", Query("What?"), answers=("that",))
    gone = Question("q5", Query("Where?"), answers=("there",))
    found, made = make((unanswered, unlabelled, gone), {"q3": GRADES, "q5": {"deleted:0-9": 3}})
    assert found == []
    assert made.skipped == {"no gold answer": 1, "no relevant passage": 2}
    with pytest.raises(BadInput, match="p_gold"):
        make(p_gold=1.5)


def test_quotes_are_those_of_the_labels_that_answer():
    entries = (Evidence("a", 3, "one"), Evidence("a", 1, "two"), Evidence("b", 2, "one"), Evidence("c", 3))
    assert quotes(Written("set", (CRUSHED,), {"q1": entries})) == {"q1": ("one",)}
    assert quotes(LabelledSet("set", (CRUSHED,), {"q1": GRADES})) == {}


@pytest.fixture
def beir(tmp_path, monkeypatch):
    """A BEIR folder with a dev and a test split, and an embedder that needs no model file."""
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": id.split("-")[0].replace(":", ""), "text": text} for id, text in TEXTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = [
        {"_id": "d1", "text": "When is a crushed box reported?", "metadata": {"answer": "within 48 hours"}},
        {"_id": "t1", "text": "How are fragile items packed?", "metadata": {"answer": "in two boxes"}},
    ]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)))
    for split, judged in (("dev", "d1\tcrushed0"), ("test", "t1\tfragile0")):
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}\t1\n")
    now = settings.Settings(home=tmp_path / "home")
    monkeypatch.setattr(settings, "current", lambda: now)
    monkeypatch.setattr(index, "embedder_identity", lambda name, _settings: name)
    index.build("mine", folder, settings=now, embedder=HashEmbedder())
    return folder


@pytest.mark.slow
def test_the_command_trains_on_the_test_split_only_when_told_to(beir, tmp_path, capsys):
    out = tmp_path / "train.jsonl"
    assert main(["raft", "mine", "--out", str(out), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["examples"] == 1
    assert "test questions" not in said.err
    first = out.read_bytes()
    assert [json.loads(line)["id"] for line in first.decode().splitlines()] == ["d1"]
    assert main(["raft", "mine", "--out", str(out)]) == 0
    assert out.read_bytes() == first
    capsys.readouterr()
    assert main(["raft", "mine", "--out", str(out), "--split", "test"]) == 0
    assert "do not evaluate a model on them" in capsys.readouterr().err
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ["t1"]
    assert main(["raft", "mine", "--out", str(tmp_path / "no" / "such.jsonl")]) == 2
    assert main(["raft", "mine", "--out", str(out), "--p-gold", "2"]) == 2
