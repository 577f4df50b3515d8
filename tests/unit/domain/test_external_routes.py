"""Pipelines of one's own as routes: beside ours in a run, followed as deep as their stages go, replayed."""

import sys
import threading

import pytest

from core.analysis import external
from core.analysis.passage_trace import PassageTrace
from core.backends.external import doors
from core.domain.errors import BadInput
from core.domain.outputs import External, Fusion, Rerank, Search
from core.domain.pipelines import Pipeline, from_command
from core.domain.relevance import is_unmatched
from core.domain.settings import Settings, load
from core.domain.settings_file import listed, write
from core.domain.types import Query
from core.engine.availability import why_not
from core.engine.request import Request
from core.evaluation.release.module import module
from core.routes import registry
from core.store import Store
from tests.fakes import FakeEngine

TEXTS = {f"doc{n}:0": f"passage number {n} about returns and refunds of item {n}" for n in range(12)}
PIPELINE = """
TEXT = "passage number {n} about returns and refunds of item {n}"
def hit(n): return {"doc_id": f"doc{n}", "text": TEXT.format(n=n), "score": 1.0 / (n + 1)}
OTHER = {"doc_id": "elsewhere", "text": "Nothing like this stands in that corpus at all, my friend."}
def plain(query, k): return [hit(3), hit(1), OTHER, hit(3)][:k]
def unscored(query): return [{"doc_id": f"doc{n}", "text": TEXT.format(n=n)} for n in (2, 1)]
def staged(query, k):
    a, b = [hit(n) for n in (0, 1, 2)], [hit(n) for n in (2, 3, 4)]
    fused = [hit(2), hit(0), hit(3), hit(1)]
    return {
        "hits": [hit(3), hit(2)], "rewritten": ["refunds"], "answer": "Yes.", "citations": ["doc3", "gone"],
        "usage": {"prompt": 11, "completion": 2, "calls": 1},
        "stages": [
            {"name": "words", "kind": "retrieve", "ms": 5, "hits": a},
            {"name": "vectors", "kind": "retrieve", "ms": 7, "hits": b},
            {"name": "rrf", "kind": "fuse", "hits": fused},
            {"name": "judge", "kind": "rerank", "ms": 20, "hits": [hit(3), hit(2), hit(0)]},
        ],
    }
def from_nowhere(query, k):
    stage = {"name": "words", "kind": "retrieve", "hits": [hit(1), hit(2)]}
    return {"hits": [hit(1), hit(7)], "stages": [stage]}
def borrowed(query, k):
    words = "A recipe for soup with leeks, potatoes, cream and a little nutmeg."
    return [{"id": "doc5:0", "doc_id": "doc5:0", "text": words}, hit(1)]
def fails(query, k): raise ValueError("no index")
def hangs(query, k):
    import time; time.sleep(600)
"""


@pytest.fixture
def engine(tmp_path):
    made = FakeEngine(tmp_path, texts=TEXTS, store=Store(tmp_path / "runs.sqlite"))
    (tmp_path / "rag.py").write_text(PIPELINE)
    yield made
    registry.forget_given()
    doors.stop_all()
    assert made.store is not None
    made.store.close()


def add(engine, function, name="", **more):
    target = f"{engine.settings.home}/rag.py:{function}"
    registry.add(Pipeline(name or function, "function", target, sys.executable, given="command", **more))


def ask(engine, *names, **more):
    for name in names:
        if name not in registry.routes():
            add(engine, name)
    return engine.ask(Request(Query("refunds of item 3?"), "tiny", ("bm25", *names), **more))


def only(run):
    return run.results[1]


def span(result, name):
    return next(one for one in result.spans if one.name == name)


def test_a_list_alone_is_matched_to_the_corpus_and_says_nothing_of_the_inside(engine):
    run = ask(engine, "plain")
    result = only(run)
    assert (result.status, result.error) == ("ok", None)
    assert [hit.passage.id for hit in result.hits][:2] == ["doc3:0", "doc1:0"]
    assert len(result.hits) == 3  # one was returned twice
    stranger = result.hits[2].passage
    assert is_unmatched(stranger.id)
    assert stranger.text.startswith("Nothing like this")
    made = external.call(result)
    assert made is not None
    assert (made.output.hits, made.output.matched, made.output.unmatched) == (4, 3, (stranger.id,))
    assert made.output.rules == {"text": 3}
    assert external.facts(result) == ["measured from outside", "3 of 4 passages matched to the corpus"]
    trace = PassageTrace(result)
    assert trace.fate("doc3:0", 10).kind == "found"
    lost = trace.fate("doc9:0", 10)
    assert lost.kind == "never retrieved"
    assert lost.words.endswith("The pipeline reported no stages, so what happened inside is not known.")
    assert "its final list only" in (external.depth(result) or "")
    assert engine.store is not None
    engine.store.flush()
    assert engine.store.load(run.id) == run


def test_stages_tell_which_step_lost_a_passage_and_when(engine):
    result = only(ask(engine, "staged"))
    stages = [span(result, name) for name in ("words", "vectors", "rrf", "judge")]
    words, vectors, rrf, judge = stages
    assert [type(one.output) for one in stages] == [Search, Search, Fusion, Rerank]
    call = span(result, "call staged")
    assert isinstance(call.output, External)
    assert {one.parent for one in stages} == {call.id}
    trace = PassageTrace(result)
    for doc, kind, step in (
        ("doc3:0", "found", ""),
        ("doc1:0", "dropped", "“judge”"),
        ("doc4:0", "fused away", "“rrf”"),
        ("doc0:0", "dropped", "“result of staged”"),  # after the last stage
        ("doc9:0", "never retrieved", "“words” (3 passages), “vectors” (3 passages)"),
    ):
        fate = trace.fate(doc, 10)
        assert (fate.kind, step in fate.words) == (kind, True)
    assert "followed no deeper" in (external.depth(result) or "")
    assert (judge.ms, judge.attributes["time"]) == (20.0, "reported by the pipeline")
    assert (rrf.ms, rrf.attributes["time"]) == (0.0, "not reported")
    assert vectors.start_ms == pytest.approx(words.start_ms + 5, abs=2)
    # The matching and what else is done here with the reply is no time of the route's.
    assert result.ms - call.ms < 60
    assert (call.tokens.prompt, call.tokens.completion, call.calls) == (11, 2, 1)
    assert (result.answer, result.citations) == ("Yes.", ("doc3:0",))
    assert span(result, "answer of staged").attributes["citations of no hit"] == ["gone"]


def test_odd_lists_are_taken_as_far_as_they_go(engine):
    _, nowhere, unscored, borrowed = ask(engine, "from_nowhere", "unscored", "borrowed").results
    trace = PassageTrace(nowhere)
    assert trace.fate("doc7:0", 10).kind == "found"
    assert trace.flow.unknown, "no stage had that passage"
    assert trace.fate("doc2:0", 10).kind in ("not recorded", "dropped", "fused away")
    assert [(hit.passage.id, hit.score) for hit in unscored.hits] == [("doc2:0", 1.0), ("doc1:0", 0.5)]
    assert "none reported" in span(unscored, "result of unscored").attributes["scores"]
    assert is_unmatched(borrowed.hits[0].passage.id)
    assert borrowed.hits[0].passage.text.startswith("A recipe for soup")
    assert [hit.passage.id for hit in borrowed.hits[1:]] == ["doc1:0"]
    made = external.call(borrowed)
    assert made is not None
    assert "1 with an id that the corpus has for other words" in made.output.matching


def test_one_that_fails_takes_nothing_from_the_others(engine):
    add(engine, "hangs", timeout_s=0.4)
    run = ask(engine, "fails", "hangs", "plain")
    told = {result.route: (result.status, result.error) for result in run.results}
    assert told["bm25"][0] == told["plain"][0] == "ok"
    assert told["fails"] == ("failed", "pipeline fails failed: ValueError: no index")
    assert told["hangs"][0] == "timeout"
    assert "gave no reply within 0.4 s" in (told["hangs"][1] or "")


def test_work_is_never_shared(engine):
    add(engine, "plain")
    add(engine, "plain", "twin")
    run = ask(engine, "plain", "twin")
    assert all(span.shared_with is None for result in run.results[1:] for span in result.spans)
    assert doors.known("plain").calls == doors.known("twin").calls == 1


def test_stop_ends_a_pipeline_that_hangs(engine):
    add(engine, "hangs")
    job = engine.start(Request(Query("why?"), "tiny", ("bm25", "hangs")))
    threading.Timer(1.5, job.cancel).start()
    run = job.wait(30)
    assert [result.status for result in run.results] == ["ok", "cancelled"]


def test_replay_reads_what_was_replied(engine):
    first = ask(engine, "staged")
    doors.stop_all()
    (engine.settings.home / "rag.py").write_text("raise SystemExit")
    again = engine.ask(Request(Query("refunds of item 3?"), "tiny", ("staged",), mode="replay"))
    result = again.results[0]
    assert (result.status, result.error) == ("ok", None)
    assert [hit.passage.id for hit in result.hits] == [hit.passage.id for hit in only(first).hits]
    call = span(result, "call staged")
    assert call.cached == "cache"
    assert call.ms == pytest.approx(span(only(first), "call staged").ms, abs=5)
    assert external.facts(result)[0].startswith("replayed, reply of 20")
    other = engine.ask(Request(Query("something else"), "tiny", ("staged",), mode="replay")).results[0]
    assert other.status == "unavailable"
    assert "no reply to this question is stored" in (other.error or "")


def test_number_of_passages_is_a_parameter(engine):
    add(engine, "plain", k=2)
    assert len(ask(engine, "plain").results[1].hits) == 2
    run = engine.ask(Request(Query("refunds"), "tiny", ("plain",), {"plain": {"k": 1}}))
    assert len(run.results[0].hits) == 1
    with pytest.raises(BadInput, match="is your own pipeline"):
        module(engine, "plain", "tiny")
    with pytest.raises(BadInput, match="a whole number from 1 to 1000"):
        registry.routes()["plain"].settle({"k": 0})


def test_names_of_ours_are_not_taken(home):
    with pytest.raises(BadInput, match="'bm25' is the name of a route of RouteScope"):
        registry.add(from_command(f"bm25={home}/rag.py:plain"))
    registry.add(from_command(f"mine={home}/rag.py:plain"))
    with pytest.raises(BadInput, match="given twice"):
        registry.add(from_command(f"mine={home}/rag.py:staged"))


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path))
    (tmp_path / "rag.py").write_text(PIPELINE)
    yield tmp_path
    registry.use(Settings.model_construct(external={}))


def test_settings_file_names_routes(home):
    (home / "routescope.toml").write_text(
        '[external.mine]\nfunction = "rag.py:plain"\ntitle = "My search"\nk = 20\n'
        '[external.absent]\nfunction = "absent.py:plain"\n'
        '[external.bm25]\nurl = "http://127.0.0.1:1/"\n'
        '[external."No Name"]\nurl = "http://127.0.0.1:1/"\n'
    )
    registry.use(load())
    mine, absent = registry.routes()["mine"], registry.routes()["absent"]
    assert (mine.title, mine.external, mine.first, why_not(mine, {})) == ("My search", True, True, None)
    assert registry.pipelines()["mine"].file == home / "rag.py"
    assert "absent.py does not exist" in (why_not(absent, {}) or "")
    assert not registry.routes()["bm25"].external
    assert [one.partition("]")[0] for one in registry.problems()] == ["[external.bm25", "[external.No Name"]
    registry.use(Settings.model_construct(external={}))
    assert "mine" not in registry.routes()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('functoin = "rag.py:plain"', "external.mine.functoin"),
        ("url = 3", "external.mine.url"),
        ('url = "http://x/"\nk = 0', "external.mine.k"),
        ('url = "http://x/"\nheaders = { Host = "x" }', "header 'Host' cannot be set"),
    ],
)
def test_table_that_cannot_be_read(home, table, said):
    (home / "routescope.toml").write_text(f"[external.mine]\n{table}\n")
    with pytest.raises(BadInput, match=f"setting.*{said}"):
        load()


@pytest.mark.trust
def test_environment_names_no_pipeline(home, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_EXTERNAL", '{"mine": {"function": "rag.py:plain"}}')
    monkeypatch.setenv("ROUTESCOPE_EXTERNAL__MINE__FUNCTION", "rag.py:plain")
    assert load().external == {}
    with pytest.raises(BadInput, match="setting external cannot be changed here"):
        write({"external": {"mine": {"function": "rag.py:plain"}}}, home)
    assert "external" not in {one.name for one in listed(load())}
