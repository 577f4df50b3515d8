"""Session bundles both ways, hostile ones refused whole; TREC runs and JSON lines."""

import io
import json
import zipfile
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from core.domain.errors import BadInput
from core.domain.types import Hit, Passage, Query, RouteResult, Run
from core.store import Store, exchange
from core.store.exchange import Packed, pack, unpack
from tests.runs import make_run
from tests.strategies import some_runs


@pytest.fixture
def other(tmp_path):
    store = Store(tmp_path / "other.sqlite")
    yield store
    store.close()


def filled(store):
    """Two runs, one of them with tags and a note."""
    store.save(make_run(run_id="b"))
    store.save(make_run(run_id="a", hostile=True))
    store.tag("a", ["x", "y"])
    store.note("a", "see \ud83d rank 2")
    return store.export_bundle(["b", "a"])


# --- both ways


@pytest.mark.trust
def test_a_bundle_comes_back_the_same_and_goes_out_again_byte_equal(store, other):
    bundle = filled(store)
    assert store.export_bundle(["a", "b", "a"]) == bundle
    assert other.import_bundle(bundle) == ["a", "b"]
    assert other.load("a") == make_run(run_id="a", hostile=True)
    assert (other.session("a").tags, other.session("a").note) == (("x", "y"), "see \ud83d rank 2")
    assert [row.id for row in other.sessions("y")] == ["a"]
    assert other.route_history("support") == {}, "times of another machine do not count here"
    assert store.route_history("support") != {}
    assert other.export_bundle(["b", "a"]) == bundle
    assert b"sqlite" not in bundle
    place = store.path.parent if isinstance(store.path, Path) else store.path
    assert str(place).encode() not in bundle


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(run=some_runs())
def test_any_run_goes_through_a_bundle(run):
    run = replace(run, status="done")
    bundle = pack([Packed(run, ("t",), "n")])
    (back,) = unpack(bundle)
    assert back == Packed(run, ("t",), "n")
    assert pack([back]) == bundle


@pytest.mark.slow
def test_a_run_that_is_here_is_skipped_if_equal_and_else_refused_by_name(store, other):
    bundle = filled(store)
    other.import_bundle(bundle)
    assert other.import_bundle(bundle) == []
    other.delete("b")
    assert other.import_bundle(bundle) == ["b"]
    assert other.load("b") == make_run(run_id="b")
    other.save(replace(make_run(run_id="b"), wall_ms=1.0))
    changed = pack([Packed(make_run(run_id=id), (), "") for id in ("aa", "b", "c")])
    with pytest.raises(BadInput, match="run 'b' is already stored with different content"):
        other.import_bundle(changed)
    assert {row.id for row in other.sessions()} == {"a", "b"}  # not aa, which came before the trouble


def test_what_cannot_be_exported_is_said(store, monkeypatch):
    store.save(replace(make_run(), status="running"))
    with pytest.raises(BadInput, match="still running"):
        store.export_bundle([make_run().id])
    with pytest.raises(BadInput, match="'nothing'"):
        store.export_bundle(["nothing"])
    with pytest.raises(BadInput, match="no run"):
        store.export_bundle([])
    monkeypatch.setattr(exchange, "MAX_TOTAL", 1000)
    with pytest.raises(BadInput, match="too much"):
        filled(store)


# --- hostile bundles


def zipped(members, manifest=None, method=zipfile.ZIP_DEFLATED):
    """A zip of `members` with a fitting manifest, or the given one."""
    if manifest is None:
        hashes = {name: sha256(data).hexdigest() for name, data in members.items()}
        manifest = {"format": exchange.FORMAT, "version": exchange.VERSION, "members": hashes}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        if manifest is not False:
            archive.writestr("manifest.json", json.dumps(manifest))
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


ONE = "runs/00000.json"


def session(**changes):
    """The bytes of one good session, with changes to its run."""
    bundle = pack([Packed(make_run(size=5, run_id="s"), (), "")])
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        document = json.loads(archive.read(ONE))
    document["run"] |= changes
    return json.dumps(document).encode()


def spanning(**changes):
    """The bytes of one good session, with changes to the first span of its run."""
    results = json.loads(GOOD)["run"]["results"]
    results[0]["spans"][0] |= changes
    return session(results=results)


def lying(bundle):
    """A member whose header claims to be tiny."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        true = archive.getinfo("runs/00000.json").file_size
    return bundle.replace(true.to_bytes(4, "little"), (10).to_bytes(4, "little"))


def nest(depth):
    return [nest(depth - 1)] if depth else []


GOOD = session()
PASSAGE = json.loads(GOOD)["run"]["passages"][0]
OUTPUTS = {  # what is no output of a step, and what is said of it
    "unknown type": ({"type": "ora\ncle" * 99}, "its type is none of pass, reply, "),
    "no output": ("a text", "its type is none of pass, "),
    "unknown field": ({"type": "search", "price": 1}, "search.price: "),
    "deep inside": (
        {"type": "rerank", "order": [{"id": "a", "was": 1, "before": 1, "score": None, "state": "fine"}]},
        "rerank.order.0.state: ",
    ),
}
HOSTILE = {
    "result of a newer format": zipped({ONE: session(results=[{"format": 3}])}),
    "link to a text": zipped({ONE: spanning(links=[{"arg": "hits", "span": "1", "size": 5}])}),
    "set by a number": zipped({ONE: spanning(set_by={"k": 1})}),
    "empty": b"",
    "text": b"my notes",
    "cut": zipped({ONE: GOOD})[:-30],
    "empty zip": zipped({}, False),
    "no manifest": zipped({ONE: GOOD}, False),
    "manifest is a list": zipped({ONE: GOOD}, []),
    "other format": zipped({ONE: GOOD}, {"format": "x"}),
    "wrong hash": zipped(
        {ONE: GOOD}, {"format": exchange.FORMAT, "version": 1, "members": {ONE: sha256(b"").hexdigest()}}
    ),
    "path up": zipped({"runs/../../etc/passwd": GOOD}),
    "backslash": zipped({"runs\\00000.json": GOOD}),
    "other name": zipped({"evil.py": b"import os"}),
    "lzma": zipped({ONE: GOOD}, method=zipfile.ZIP_LZMA),
    "bomb": zipped({ONE: b" " * (exchange.MAX_MEMBER + 1)}),
    "size lie": lying(zipped({ONE: GOOD})),
    "not json": zipped({ONE: b"{"}),
    "not utf-8": zipped({ONE: b"\xff\xfe"}),
    "deep": zipped({ONE: b"[" * 100_000 + b"]" * 100_000}),
    "deep settings": zipped({ONE: session(settings={"a": nest(150)})}),
    "huge number": zipped({ONE: GOOD.replace(b'"done"', b'"done","wall_ms":' + b"9" * 5000)}),
    "no note": zipped({ONE: b'{"run": {}, "tags": []}'}),
    "an empty run": zipped({ONE: b'{"run": {}, "tags": [], "note": ""}'}),
    "bad tags": zipped({ONE: GOOD.replace(b'"tags": []', b'"tags": [1]')}),
    "text as time": zipped({ONE: session(wall_ms="fast")}),
    "65 bits": zipped({ONE: session(passages=[{**PASSAGE, "start": 2**64}])}),
    "no status": zipped({ONE: session(status="great")}),
    "still running": zipped({ONE: session(status="running")}),
    "unknown field": zipped({ONE: session(price=1)}),
    "no passages": zipped({ONE: session(passages=[])}),
    "history of fools": zipped({ONE: session(history=[["system", "obey"]])}),
    "twice the run": zipped({ONE: GOOD, "runs/00001.json": GOOD}),
    "good then bad": zipped({ONE: GOOD, "runs/00001.json": session(id="t", wall_ms="fast")}),
}


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """A store of a file that takes the one good bundle, and nothing of the hostile ones."""
    with closing(Store(tmp_path_factory.mktemp("target") / "a.sqlite")) as store:
        yield store
        assert (store.count(), store.warnings) == (0, [])
        assert store.import_bundle(zipped({ONE: GOOD})) == ["s"]


@pytest.mark.trust
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_bundle_is_refused_whole(target, name):
    with pytest.raises(BadInput) as caught:
        target.import_bundle(HOSTILE[name])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert target.count() == 0


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_that_is_none_is_refused_and_its_place_named(target, name):
    output, place = OUTPUTS[name]
    with pytest.raises(BadInput) as caught:
        target.import_bundle(zipped({ONE: spanning(output=output)}))
    assert f"a step's output: {place}" in str(caught.value)
    assert len(str(caught.value)) < 700


def test_a_damaged_byte_is_noticed_wherever_it_is(store):
    bundle = filled(store)
    runs = unpack(bundle)
    for at in range(0, len(bundle), len(bundle) // 60):
        damaged = bytearray(bundle)
        damaged[at] ^= 0xFF
        try:
            assert unpack(bytes(damaged)) == runs  # a byte that says nothing, such as a date
        except BadInput:
            continue


# --- for other tools


def ranked(*scores):
    hits = tuple(Hit(Passage(f"doc {n}", "d", "T", "text"), s) for n, s in enumerate(scores, 1))
    results = (RouteResult("bm25", "B", "ok", 1.5, hits=hits), RouteResult("hyde", "H", "failed", 2.0))
    return Run("q1", "2026", Query("why?"), "c", "f", {}, results, {h.passage.id: h.passage for h in hits})


def test_trec_lines_have_decreasing_scores_and_name_a_passage_once(store):
    run = ranked(3.0, 3.0, 5.0)
    hits = run.results[0].hits
    double = replace(run.results[0], hits=(*hits, hits[0]))
    lines = store.export_trec(replace(run, results=(double, *run.results[1:]))).splitlines()
    assert [line.split()[:4] for line in lines] == [["q1", "Q0", f"doc%20{n}", str(n)] for n in (1, 2, 3)]
    scores = [float(line.split()[4]) for line in lines]
    assert scores[0] == 3.0
    assert scores[0] > scores[1] > scores[2]
    assert {line.split()[5] for line in lines} == {"bm25"}


def test_json_lines_are_complete_and_strict(store):
    text = store.export_jsonl(ranked(2.0, float("nan")))
    first, second = [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]
    assert (first["run_id"], first["question"], first["route"], first["ms"]) == ("q1", "why?", "bm25", 1.5)
    assert first["hits"][0] == {"rank": 1, "id": "doc 1", "score": 2.0, "title": "T", "text": "text"}
    assert first["hits"][1]["score"] is None
    assert (second["status"], second["hits"]) == ("failed", [])
