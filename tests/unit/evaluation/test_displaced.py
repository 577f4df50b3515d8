"""The new and changed documents that displaced a passage, over real indexes and over rankings by hand."""

import json
from dataclasses import replace

import pytest

from core.cli import main
from core.corpus import index, states
from core.domain.errors import BadInput
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.request import Request
from core.evaluation.diff import evaluations, questions
from core.evaluation.diff.evaluations import evaluations_diff
from core.evaluation.diff.questions import QuestionDiff, changes, displaced
from core.evaluation.diff.runs import earlier_state
from core.evaluation.experiment import perform, prepare
from core.evaluation.experiment_store import opened
from core.evaluation.outcome import Outcome
from core.evaluation.spec import Spec
from core.store import Store
from tests.fakes import FakeEngine, HashEmbedder
from tests.released import evaluation, failed, labelled

SHOP = {
    "returns.md": "Goods can be returned within thirty days of delivery, with the receipt of the shop.",
    "shipping.md": "Parcels leave the warehouse every evening and arrive two days later.",
    "opening.md": "The shop opens at nine and closes at six.",
}
QUESTION = "within how many days can goods be returned"
BETTER = "Goods returned: how many days? Goods can be returned within many days."


@pytest.fixture
def measure(tmp_path):
    """Index a folder of documents, ask the question of it by BM25, and give the evaluation's folder."""

    def run(name, documents):
        source, settings = tmp_path / name / "shop", Settings(home=tmp_path / name / "home")
        source.mkdir(parents=True)
        for file, content in documents.items():
            (source / file).write_text(content, encoding="utf-8")
        corpus = index.build("shop", source, settings=settings, embedder=HashEmbedder())
        engine = FakeEngine(tmp_path / name / "home")
        engine.fakes["shop"] = corpus
        (relevant,) = corpus.document("returns.md")[1]
        questions, qrels = tmp_path / "q.jsonl", tmp_path / "qrels.txt"
        questions.write_text(json.dumps({"id": "q12", "text": QUESTION}))
        qrels.write_text(f"q12 0 {relevant.id} 1")
        spec = Spec("shop", ("bm25",), questions=(str(questions),), qrels=str(qrels))
        perform(engine, prepare(engine, spec), out=tmp_path / name / "out")
        return tmp_path / name / "out", relevant.id

    return run


def test_an_added_document_is_named_and_without_it_the_passage_is_where_it_was(measure, capsys):
    before, relevant = measure("a", SHOP)
    after, _ = measure("b", {**SHOP, "new-policy.md": BETTER})
    assert main(["diff", str(before), str(after), "--json"]) == 0
    (question,) = json.loads(capsys.readouterr().out)["questions"]
    (found,) = question["displaced_by"]
    assert [(by["document"], by["change"], by["rank"]) for by in found["by"]] == [("new-policy.md", "new", 1)]
    ranks = ("rank_before", "rank_after", "rank_without")
    assert (found["passage"], *(found[rank] for rank in ranks)) == (relevant, 1, 2, 1)
    assert main(["diff", str(before), str(after)]) == 0
    line = f"q12: {relevant} fell from 1 to 2, below new-policy.md (new); 1 without it."
    assert line in capsys.readouterr().out.splitlines()
    # the other way round the document is gone, and nothing fell
    assert main(["diff", str(after), str(before), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["questions"][0]["displaced_by"] == []


def test_a_changed_document_is_named(measure):
    before, relevant = measure("a", SHOP)
    after, _ = measure("b", {**SHOP, "opening.md": BETTER})
    (question,) = evaluations_diff(opened(before), opened(after)).routes[0].questions.questions
    (found,) = question.displaced
    assert [(by.document, by.change) for by in found.by] == [("opening.md", "changed")]
    assert (found.passage, found.rank_before, found.rank_after, found.rank_without) == (relevant, 1, 2, 1)


def test_the_same_corpus_blames_nobody(measure):
    before, after = (opened(measure(name, SHOP)[0]) for name in "ab")
    assert changes(before, after) == ({}, "")
    assert questions.recorded(before.folder) == questions.recorded(after.folder)
    assert sorted(questions.recorded(before.folder)) == sorted(SHOP)


def ranked(*ids, documents=None):
    return Outcome("ok", 1.0, tuple((id, 1.0 / n) for n, id in enumerate(ids, 1)), documents=documents or {})


def blamed(before, after, changed, depth=10):
    return [
        (one.rank_before, one.rank_after, one.rank_without, [(by.document, by.rank) for by in one.by])
        for one in displaced(["r:0-9"], before, after, depth, changed)
    ]


def test_only_documents_that_came_above_are_blamed():
    before = ranked("c:0-5", "r:0-9", "u:0-4")
    changed = {"c": "changed", "n": "new", "m": "new", "x": "gone"}
    # c was above already; the unchanged u is not to blame, and stays above without n
    after = ranked("c:0-6", "n:0-5", "u:0-4", "n:5-9", "r:0-9", "m:0-4")
    assert blamed(before, after, changed) == [(2, 5, 3, [("n", 2)])]
    # with one passage more than before c is to blame, too
    after = ranked("c:0-6", "n:0-5", "c:6-9", "r:0-9")
    assert blamed(before, after, changed) == [(2, 4, 1, [("c", 1), ("n", 2)])]
    # from 2 to 3 is no clear fall, unless it leaves the first k
    after = ranked("c:0-6", "n:0-5", "r:0-9")
    assert blamed(before, after, changed) == []
    assert blamed(before, after, changed, depth=2) == [(2, 3, 2, [("n", 2)])]
    # not ranked: at best it follows the rest; if its own document changed, it may no longer exist
    after = ranked("n:0-5", "u:0-4", "m:0-4")
    assert blamed(before, after, changed) == [(2, None, 2, [("n", 1), ("m", 3)])]
    assert blamed(before, after, {**changed, "r": "changed"}) == []
    assert blamed(before, after, {**changed, "r": "gone"}) == []
    assert blamed(before, failed(), changed) == []


HOSTILE = "a\n\x1b[31m<b>{{ 7 * 7 }}\u202e:0-3"


def test_hostile_ids_stay_one_line_and_keep_their_document(tmp_path, capsys):
    asked = replace(labelled(1), qrels={"q0": {"gold": 1}})
    documents = {"gold": "1", "kept": "2"}
    folders = []
    for name, hits, more in (
        ("a", ranked("gold", "kept"), {}),
        ("b", ranked(HOSTILE, "gold", "kept", documents={HOSTILE: HOSTILE}), {HOSTILE: "3"}),
    ):
        fingerprint = {"fingerprint": name * 16}
        evaluation(tmp_path / name, {"bm25": [hits]}, asked=asked, alike=True, more=fingerprint)
        (tmp_path / name / questions.FILE).write_text(json.dumps({**documents, **more}))
        folders.append(str(tmp_path / name))
    assert main(["diff", *folders, "--json"]) == 0
    (question,) = json.loads(capsys.readouterr().out)["questions"]
    assert question["displaced_by"][0]["by"][0]["document"] == HOSTILE
    assert main(["diff", *folders]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    (line,) = [line for line in out.splitlines() if "{{ 7 * 7 }}" in line]
    assert line.startswith("q0: gold fell from 1 to 2, below ")


def test_why_documents_are_not_known_is_one_note(tmp_path):
    before, after = (
        evaluation(tmp_path / name, {"bm25": [ranked("gold")]}, alike=True, more={"fingerprint": name * 16})
        for name in "ab"
    )

    def notes():
        found = evaluations_diff(before, after)
        assert found.routes[0].questions.questions[0].displaced == ()
        return [note for note in found.notes if "not known" in note]

    (before.folder / questions.FILE).write_text('{"gold": "1"}')
    assert [note.split()[0] for note in notes()] == ["b"]  # the one that did not record them
    (after.folder / questions.FILE).write_text('{"gold": "2"}')
    assert len(notes()) == 1  # nothing in common
    for damaged in ('{"gold": 1}', "[]", "no json"):
        (after.folder / questions.FILE).write_text(damaged)
        with pytest.raises(BadInput, match=questions.FILE):
            evaluations_diff(before, after)


def test_of_a_large_corpus_nothing_is_recorded(measure, tmp_path, monkeypatch):
    folder, _ = measure("a", SHOP)
    assert (folder / questions.FILE).is_file()
    monkeypatch.setattr(questions.states, "MOST", 2)
    questions.record(folder, index.open_corpus("shop", settings=Settings(home=tmp_path / "a" / "home")))
    assert questions.recorded(folder) is None


def test_at_most_three_documents_are_named():
    changed = dict.fromkeys("abcde", "new")
    (one,) = displaced(["r"], ranked("r"), ranked(*"abcder"), 10, changed)
    assert [by.document for by in one.by] == list("abcde")
    question = QuestionDiff("q", "", "", "unchanged", 1, (), (), ("ok", "ok"), displaced=(one,))
    (line,) = evaluations.displacements(question)
    assert "a (new), b (new), c (new) and 2 more" in line


def test_between_two_runs_the_documents_of_both_states_are_compared(tmp_path):
    source, settings = tmp_path / "shop", Settings(home=tmp_path / "home")
    source.mkdir()
    for file, content in SHOP.items():
        (source / file).write_text(content, encoding="utf-8")
    engine = FakeEngine(tmp_path / "home", store=Store(tmp_path / "sessions.sqlite"))

    def ask():
        engine.fakes["shop"] = index.build("shop", source, settings=settings, embedder=HashEmbedder())
        return engine.ask(Request(Query(QUESTION), "shop", ("bm25", "dense")))

    first = ask()
    engine.store.flush()
    assert earlier_state(engine.store, first, settings) is None
    (source / "new-policy.md").write_text(BETTER)
    (source / "opening.md").unlink()
    second = ask()
    engine.store.flush()
    found = earlier_state(engine.store, second, settings)
    assert (found.run.id, found.documents) == (first.id, {"new-policy.md": "new", "opening.md": "gone"})
    (relevant,) = engine.fakes["shop"].document("returns.md")[1]
    (one,) = found.displaced(second, [relevant.id], 10)["bm25"]
    assert (one.rank_before, one.rank_after, one.rank_without) == (1, 2, 1)
    assert [by.document for by in one.by] == ["new-policy.md"]
    # proven by taking the document out again
    (source / "new-policy.md").unlink()
    third = ask()
    assert third.results[0].hits[0].passage.id == relevant.id


def test_the_last_states_of_a_corpus_are_kept_and_a_damaged_one_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setattr(states, "STATES", 2)
    source, settings = tmp_path / "shop", Settings(home=tmp_path / "home")
    source.mkdir()
    prints = []
    for content in SHOP.values():
        (source / "a.md").write_text(content)
        prints.append(index.build("shop", source, settings=settings, embedder=HashEmbedder()).fingerprint)
    assert [states.kept("shop", one, settings) is None for one in prints] == [True, False, False]
    (settings.home / "indexes" / "shop" / f"documents-{prints[2]}.json").write_text("{")
    assert states.kept("shop", prints[2], settings) is None
