"""Routes measured over several chunkings of one source: labels follow their words; commands."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from core import api
from core.backends import embedder as embedders
from core.corpus import catalogue, index
from core.corpus.source import variants_named
from core.domain import settings as settings_module
from core.domain.errors import BadInput, Unavailable
from core.domain.settings import Settings
from core.domain.types import Passage, Query
from core.engine import engine as engine_module
from core.engine.engine import Engine
from core.evaluation import background, comparison, experiment_store
from core.evaluation.chunkings import measuring, report
from core.evaluation.chunkings.coverage import COVERAGE, METRICS, Area
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.spec import Spec
from core.store import Store
from core.store.labels import Judgement, Pooled
from tests import realistic
from tests.fakes import HashEmbedder

FILL = "Other things are said here that nobody asks about. "
NAMES = ("returns", "refund", "customs", "damage", "gift", "invoice")
RULES = {name: f"The {name} rule is {number} days." for number, name in enumerate(NAMES, 3)}
DOCS = {
    f"{name}.md": f"# {name.title()}\n\n{FILL * 4}\n\n## Rule\n\n{rule} {FILL * 3}"
    for name, rule in RULES.items()
}
QUOTED = [
    {
        "id": f"q-{name}",
        "text": f"What is the {name} rule?",
        "relevant": [{"doc": f"{name}.md", "quote": rule, "grade": 3}],
    }
    for name, rule in RULES.items()
]


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A real engine over a real index, with a small embedder."""
    monkeypatch.setattr(catalogue, "BUILT_IN", {})
    for module in (index, embedders):
        monkeypatch.setattr(module, "load_embedder", lambda *_, **__: HashEmbedder())
    settings = Settings(home=tmp_path / "home", models_dir=tmp_path / "models", embedder="hash")
    made = Engine(settings, Store(tmp_path / "home" / "sessions.sqlite"))
    monkeypatch.setattr(engine_module, "shared_engine", lambda: made)
    monkeypatch.setattr(settings_module, "current", lambda: settings)
    return made


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "shop"
    root.mkdir()
    for name, words in DOCS.items():
        (root / name).write_text(words)
    return root


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, QUOTED)))
    return path


def built(engine, folder, given="100,headings"):
    index.build(None, folder, settings=engine.settings)
    source = catalogue.source("shop", settings=engine.settings)
    list(index.build_each(variants_named(source, given), settings=engine.settings))


def text_of(engine, document):
    """As it was read: a title is not part of it."""
    return engine.corpus("shop").document(document)[0].text


def spec(questions, **more):
    return Spec("shop", ("bm25", "dense"), questions=(str(questions),), chunkings=("100", "headings"), **more)


def test_the_same_labelled_text_is_measured_over_each(engine, folder, questions, tmp_path):
    built(engine, folder)
    group = measuring.prepare(engine, spec(questions))
    start = text_of(engine, "gift.md").index("The gift rule")
    assert group.placed["q-gift"] == (Area("gift.md", start, start + len("The gift rule is 7 days.")),)
    done = []
    figures = measuring.perform(engine, group, out=tmp_path / "out", progress=lambda *at: done.append(at))
    assert done[-1] == (18, 18)
    assert list(figures["chunkings"]) == ["shop", "shop@100", "shop@headings"]
    assert (figures["queries"], figures["labelled"], figures["labels"]) == (6, 6, "6 labelled places")
    assert set(figures["routes"]) == {"bm25", "dense"}
    values, places = report.read_questions(tmp_path / "out")
    for name in figures["chunkings"]:
        by = values[name]["bm25"]
        row = figures["routes"]["bm25"][name]
        assert row[COVERAGE] == pytest.approx(sum(one[COVERAGE] for one in by.values()) / 6)
        assert row["n"] == 6
    assert places["shop"]["q-gift"] == [Area("gift.md", start, start + 24)]
    assert figures["chunkings"]["shop@100"]["passages"] == engine.corpus("shop@100").size
    json.dumps(figures, allow_nan=False)


def test_the_figures_are_those_of_the_characters_in_the_rankings(engine, folder, questions, tmp_path):
    """Coverage of small budgets, again from the saved run: words counted one by one."""
    built(engine, folder)
    measuring.perform(engine, measuring.prepare(engine, spec(questions)), out=tmp_path / "out")
    values, places = report.read_questions(tmp_path / "out")
    below = experiment_store.opened(tmp_path / "out" / measuring.FOLDER / "100")
    for question in ("q-gift", "q-customs"):
        (place,) = places["shop"][question]
        run = next(r for r in below.run(question).results if r.route == "bm25")
        wanted = {
            place.start + m.start()
            for m in re.finditer(r"\w+|[^\w\s]", text_of(engine, place.doc)[place.start : place.end])
        }
        read = [
            (hit.passage.doc_id, hit.passage.start + m.start())
            for hit in run.hits
            for m in re.finditer(r"\w+|[^\w\s]", hit.passage.text)
        ]
        seen = {at for doc, at in read[:250] if doc == place.doc}
        expected = len(wanted & seen) / len(wanted)
        assert values["shop@100"]["bm25"][question]["coverage@250"] == pytest.approx(expected, abs=1e-6)


def table(**of):
    """Measured values of routes by chunking, which differ in coverage alone: chunking -> route -> values."""
    row = dict.fromkeys(METRICS, 0.0)
    return {
        name.replace("_", "@"): {
            route: {f"q{n}": {**row, COVERAGE: value} for n, value in enumerate(values)}
            for route, values in by.items()
        }
        for name, by in of.items()
    }


def test_differences_are_paired_and_one_holm_family():
    low, high, other = ([base + (n % 3) / 10 for n in range(30)] for base in (0.3, 0.6, 0.2))
    values = table(s={"a": low, "b": other}, s_1={"a": high, "b": other}, s_2={"a": low, "b": other})
    found = report.table(values, "s", COVERAGE)
    better = found["routes"]["a"]["s@1"]["vs_base"]
    assert better["delta"] == pytest.approx(0.3)
    assert better["verdict"] == "better"
    apart = {("a", "s@1"): [0.3] * 30, ("a", "s@2"): [0.0] * 30, ("b", "s@1"): [0.0] * 30}
    family = comparison.family({**apart, ("b", "s@2"): [0.0] * 30})
    assert better["p_holm"] == pytest.approx(family["a", "s@1"]["p_holm"])
    assert found["best"]["a"] == {"chunking": "s@1", "verdict": "better"}
    assert found["best"]["b"]["chunking"] == "s", "of equals the one in use"
    assert found["mean"]["s@1"][COVERAGE] == pytest.approx((0.6 + 0.2) / 2 + 0.1)
    said = report.findings({**found, "budget": 1000})
    assert said[0].startswith("The mean of the routes: s@1 beats s by 0.150")
    assert said[2] == "b: no chunking covers more than s as it is."
    found = report.table(table(s={"a": [0.5, 0.1, 0.9, 0.4]}, s_1={"a": [0.4, 0.9, 0.5, 0.6]}), "s", COVERAGE)
    assert found["mean"] is None
    assert found["best"]["a"] == {"chunking": "s@1", "verdict": "no difference shown"}
    (said,) = report.findings(found)
    assert "a: s@1 covers most, not shown to be better than s: +0.125 coverage by 1,000 tokens" in said


def test_judgements_and_labels_that_people_made_hold_for_every_chunking_and_what_is_lost_is_told(
    engine, folder, tmp_path
):
    built(engine, folder)
    passage = engine.corpus("shop").document("gift.md")[1][-1]
    (tmp_path / "q.jsonl").write_text(
        json.dumps({"id": "q1", "text": "gift rule"}) + "\n" + json.dumps({"id": "q2", "text": "refund rule"})
    )
    (tmp_path / "qrels.tsv").write_text(
        f"query-id\tcorpus-id\tscore\nq1\t{passage.id}\t1\nq2\trefund.md\t1\n"
    )
    group = measuring.prepare(engine, spec(tmp_path / "q.jsonl", qrels=str(tmp_path / "qrels.tsv")))
    assert group.placed["q1"] == (Area("gift.md", passage.start, passage.end),)
    assert group.placed["q2"] == (Area("refund.md", 0, len(text_of(engine, "refund.md")), True),)
    for name in ("shop@100", "shop@headings"):
        corpus, labels = engine.corpus(name), group.parts[name].labelled.qrels
        assert set(labels["q2"]) == {one.id for one in corpus.document("refund.md")[1]}
        assert labels["q1"]
        assert set(labels["q1"]) <= {one.id for one in corpus.document("gift.md")[1]}
    figures = measuring.perform(engine, group)
    assert figures["labels"] == "1 labelled place and 1 whole document"
    desks.create(engine.store, "mine", "shop", [Question("q1", Query("gift rule"))])
    gone = Passage("old:0-4", "gift.md", "", "Gone words", 0, 10)
    pool = [Pooled(passage, (("bm25", 1),)), Pooled(gone, (("bm25", 2),))]
    desks.add_to_pool(engine.store, "mine", {"q1": pool})
    for one in (passage, gone):
        desks.judge(engine.store, "mine", Judgement("q1", one.id, "Ann", "person", "grade", 3))
    wanted = replace(spec("x"), questions=(), labels="mine", split="all")
    group = measuring.prepare(engine, wanted)
    (area,) = group.placed["q1"]
    assert (area.doc, area.start, area.end) == ("gift.md", passage.start, passage.end)
    (said,) = group.parts["shop"].warnings
    assert "1 label carried over to other passages" in said


def test_two_readings_of_a_source_are_compared_on_the_same_words(engine, folder, tmp_path, call):
    """Columns that one reader interleaves: its corpus lacks the quotes, and so covers less of them."""
    pdf = next(one for one in realistic.files() if "columns" in one.name and one.name.endswith(".pdf"))
    (folder / "columns.pdf").write_bytes(pdf.content)
    other = "shop@pdf-kreuzberg"
    code, out, err = call("index", folder, "--chunkings", "100,pdf=kreuzberg", "--json")
    assert code == 0, err
    assert [one["name"] for one in json.loads(out)["chunkings"]] == ["shop@100", other]
    read = {name: engine.corpus(name).document("columns.pdf")[0].text for name in ("shop", other)}
    assert read["shop"] != read[other]
    quote = engine.corpus("shop").document("columns.pdf")[1][0].text
    labelled = [{"doc": "columns.pdf", "quote": quote}]
    rows = [{"id": "columns", "text": quote[:60], "relevant": labelled}, QUOTED[0]]
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    wanted = Spec("shop", ("bm25",), split="all", questions=(str(path),), chunkings=("pdf=kreuzberg",))
    group = measuring.prepare(engine, wanted)
    assert not any(area.lost for areas in group.placed.values() for area in areas)
    there = group.readings[other]
    assert any(area.lost for area in there["columns"])
    assert there["q-returns"] == group.placed["q-returns"], "of a file that is read alike"
    for area in (area for area in there["columns"] if not area.lost):
        assert " ".join(read[other][area.start : area.end].split()) in " ".join(quote.split())
    row = measuring.perform(engine, group, out=tmp_path / "out")["routes"]["bm25"]
    assert row[other][COVERAGE] < row["shop"][COVERAGE] == pytest.approx(1.0, abs=0.05)
    assert report.read_questions(tmp_path / "out")[1][other]["columns"] == list(there["columns"])


def test_a_set_that_cannot_be_measured_says_why(engine, folder, questions, tmp_path):
    built(engine, folder)
    path = tmp_path / "q.jsonl"
    for entries, told in (
        ([], "none of its 1 questions has labelled text"),
        ([{"doc": "gift.md", "grade": 1}], "none of its 1 questions has labelled text"),
        ([{"doc": "gone.md"}], "gone.md"),
        ([{"doc": "gift.md", "quote": "never written"}], "none of its 1 questions has labelled text"),
    ):
        path.write_text(json.dumps({"id": "q1", "text": "gift rule", "relevant": entries}))
        with pytest.raises(BadInput, match=told):
            measuring.prepare(engine, spec(path))
    with pytest.raises(Unavailable, match=r"parent cannot run over shop: .*--with children"):
        measuring.prepare(engine, replace(spec(questions), routes=("parent",)))


def test_it_goes_on_where_it_was_stopped_and_mixes_nothing(engine, folder, questions, tmp_path):
    built(engine, folder)
    group = measuring.prepare(engine, spec(questions))
    out = experiment_store.place(engine.settings, "both")
    asked = []
    figures = measuring.perform(
        engine, group, out=out, progress=lambda done, _: asked.append(done), ended=lambda: asked[-1:] >= [8]
    )
    assert figures["interrupted"]
    found = background.entry(out)
    assert (found.state, found.total) == ("stopped", 18)
    assert 0 < found.done < 18
    again = []
    whole = measuring.perform(engine, group, out=out, progress=lambda done, _: again.append(done))
    assert not whole["interrupted"]
    assert whole == {**measuring.perform(engine, group, out=out), "machine": whole["machine"]}
    assert background.entry(out).state == "finished"
    other = measuring.prepare(engine, replace(spec(questions), chunkings=("100",)))
    with pytest.raises(BadInput, match="holds another evaluation"):
        measuring.perform(engine, other, out=out)
    assert report.read(out)["chunkings"].keys() == whole["chunkings"].keys()
    assert all(a <= b for a, b in pairwise(again))
    for damaged, read in ((report.FIGURES, report.read), (report.QUESTIONS, report.read_questions)):
        (out / damaged).write_text("{")
        with pytest.raises(BadInput, match="damaged"):
            read(out)


def test_it_runs_in_the_background_and_is_resumed_by_name(engine, folder, questions):
    built(engine, folder)
    job = background.begin(engine, "both", spec(questions))
    assert job.wait(60)
    assert (job.error, job.finished, job.total) == (None, 18, 18)
    assert report.read(job.folder)["labelled"] == 6
    again = background.resume(engine, "both")
    assert again.wait(60)
    assert again.error is None


def test_the_commands_keep_their_contract(engine, folder, questions, call):
    code, out, err = call("index", folder, "--chunkings", "100,headings,120/20", "--json")
    assert code == 0, err
    made = json.loads(out)
    assert [one["name"] for one in made["chunkings"]] == ["shop@100", "shop@120-20", "shop@headings"]
    assert made["chunkings"][0]["chunking"]["key"] == "100"
    assert "shop@100 (2 of 4): " in err
    _, out, _ = call("corpora", "--json")
    listed = {one["name"]: one["chunking_of"] for one in json.loads(out)["corpora"]}
    assert listed == {"shop": None, "shop@100": "shop", "shop@120-20": "shop", "shop@headings": "shop"}
    code, out, err = call(
        "eval", "shop", "--questions", questions, "--routes", "bm25,dense", "--chunkings", "all", "--json"
    )
    assert code == 0, err
    figures = json.loads(out)
    assert list(figures["chunkings"]) == ["shop", "shop@100", "shop@120-20", "shop@headings"]
    assert {"coverage@1000", "ci95", "vs_base", "n"} <= figures["routes"]["bm25"]["shop@100"].keys()
    assert figures["routes"]["bm25"]["shop"]["vs_base"] is None
    saved = experiment_store.place(engine.settings, "shop-chunkings")
    assert figures["saved"] == str(saved)
    assert report.read(saved)["best"] == figures["best"]
    code, out, _ = call(
        "eval", "shop", "--questions", questions, "--routes", "bm25", "--chunkings", "100,700"
    )
    assert code == 0
    assert "Coverage: the share of the labelled text among the first 1,000 tokens" in out
    assert "shop@headings" not in out
    code, out, _ = call("index", "shop", "--remove-chunkings", "100,120-20", "--json")
    assert (code, json.loads(out)["removed"]) == (0, ["shop@100", "shop@120-20"])
    assert catalogue.indexed_variants("shop", engine.settings) == ["shop@headings"]


def test_a_route_that_failed_too_often_over_a_chunking_is_said_first(
    engine, folder, questions, call, tmp_path
):
    built(engine, folder, "100")
    own = tmp_path / "own.py"
    own.write_text("def search(query, k):\n    raise RuntimeError('no such service')\n")
    asked = ("eval", "shop", "--questions", questions, "--routes", "bm25", "--route", f"mine={own}:search")
    asked += ("--chunkings", "100", "--out", tmp_path / "out")
    code, out, err = call(*asked)
    assert code == 1, err
    assert out.startswith("FAILED: mine over shop failed on 6 of 6 questions")
    assert "mine over shop@100" in out.splitlines()[0]
    code, out, err = call(*asked, "--json")
    assert (code, json.loads(out)["routes"]["mine"]["shop@100"]["failed"]) == (1, 6)
    assert "FAILED" in err
    assert call(*asked, "--max-failed", "1")[0] == 0


def test_from_python_it_is_a_table(engine, folder, questions):
    built(engine, folder)
    made = api.evaluate(
        "shop", ["bm25", "dense"], questions=questions, chunkings="all", keep="py", progress=False
    )
    table = made.chunkings
    assert set(table.index.get_level_values("corpus")) == {"shop", "shop@100", "shop@headings"}
    row = report.read(made.folder)["routes"]["bm25"]["shop@100"]
    assert table.loc[("bm25", "shop@100"), "coverage"] == row[COVERAGE]
    assert table.loc[("bm25", "shop@100"), "p"] == row["vs_base"]["p_holm"]
    assert set(made.routes) == {"bm25", "dense"}
    one = api.evaluate("shop", ["bm25"], questions=questions, keep="one", progress=False)
    with pytest.raises(BadInput, match="measured one chunking"):
        _ = one.chunkings
    with pytest.raises(BadInput, match="chunkings need out or keep"):
        api.evaluate("shop", ["bm25"], questions=questions, chunkings=["100"], progress=False)


def test_a_refresh_of_the_source_refreshes_its_chunkings(engine, folder, call):
    call("index", folder, "--chunkings", "100")
    (folder / "new.md").write_text("# New\n\nSomething new is said.")
    code, out, _ = call("index", "shop", "--json")
    assert code == 0
    assert [one["documents"] for one in json.loads(out)["chunkings"]] == [7]
    assert {one.state for one in catalogue.known(engine.settings)} == {"ready"}


def test_what_cannot_be_is_one_clear_error(engine, folder, call):
    index.build(None, folder, settings=engine.settings)
    for args, told in (
        (("index", "shop", "--chunkings", "100,colour"), "unknown chunking 'colour'; give a size"),
        (("index", "shop", "--chunkings", "10"), "chunk size 10 must be from 50"),
        (("index", "shop", "--remove-chunkings", "300"), "no index of shop@300; there are: none"),
        (("index", "shop", "--remove-chunkings", "700"), "is cut as 700 itself"),
        (("index", "shop", "--remove-chunkings", "all"), "has no other chunking"),
        (("eval", "shop", "--chunkings", "all"), "has no other chunking to compare; make some"),
        (("eval", "shop", "--chunkings", "colour"), "unknown chunking 'colour'"),
        (("eval", "shop", "--chunkings", "700"), "is cut as 700 itself"),
        (("eval", "gone", "--chunkings", "all"), "unknown corpus 'gone'"),
        (("eval", "shop", "--chunkings", "100", "--run", "a=b.run"), "cannot be combined with --chunkings"),
    ):
        code, out, err = call(*args)
        assert (code, out) == (2, "")
        assert told in err.splitlines()[-1]
