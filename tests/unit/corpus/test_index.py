"""Indexes: built for what changed only, verified, resumed, and never half there."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from core.backends import embedder as embedders
from core.corpus import catalogue, index, manifest
from core.corpus import corpus as corpora
from core.corpus.chunk import Chunking
from core.corpus.corpus import Corpus
from core.corpus.source import slug
from core.domain.errors import BadInput, Cancelled, IndexDamaged, ModelFailed, Unavailable
from tests.fakes import HashEmbedder

pytestmark = pytest.mark.usefixtures("at_once")
TEXTS = {
    "returns.md": "# Returns\n\nAsk for a Return Merchandise Authorization first. Then send the parcel.",
    "customs.md": "# Customs\n\nDuty is due for textiles and for glass.",
    "sub/labels.txt": "The barcode label is printed by the warehouse.",
}


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "Shop Help"
    for name, text in TEXTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def beir(folder, count):
    folder.mkdir(exist_ok=True)
    lines = (
        json.dumps({"_id": f"d{n:04}", "title": f"title {n}", "text": f"word{n} common"})
        for n in range(count)
    )
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    return folder


def files_of(corpus):
    return sorted(p for p in corpus.folder.rglob("*") if p.is_file() and p.name != manifest.CHECKED)


def test_build_open_and_search(folder, settings, model):
    stages = []
    built = index.build(None, folder, settings=settings, progress=lambda *step: stages.append(step))
    assert built.name == "shop-help"
    told = {stage for stage, _, _ in stages}
    corpus = index.open_corpus("shop-help", settings=settings)
    assert (corpus.size, corpus.info.documents, corpus.info.vector_index) == (3, 3, "flat")
    assert corpus.info.bytes > 0
    assert set(corpus.info.build_ms) - {"cut into passages"} == told - {"check"}
    assert {"read documents", "index words", "embed"} < told
    ids = [p.id for p in corpus.passages([0, 1, 2])]
    assert ids == sorted(ids)
    assert [corpus.row(id) for id in ids] == [0, 1, 2]
    assert list(corpus.by_ids([ids[2], "nobody"])) == [ids[2]]
    (hit,) = corpus.search_sparse("authorizations", 5)
    assert (hit.passage.doc_id, hit.passage.title) == ("returns.md", "Returns")
    parts = corpus.explain("authorizations warehouse", hit.passage.id)
    assert sum(parts.values()) == pytest.approx(hit.score)
    dense = corpus.search_dense(model.embed_query("warehouse label"), 2)
    assert dense[0].passage.doc_id == "sub/labels.txt"
    assert dense == corpus.search_dense(model.embed_query("warehouse label"), 2, exact=True)
    assert corpus.search_dense_many(np.stack([model.embed_query("warehouse label")] * 6), 2) == [dense] * 6
    assert corpus.vectors([2, 0]).shape == (2, 64)
    document, pieces = corpus.document("returns.md")
    assert [document.text[p.start : p.end] for p in pieces] == [p.text for p in pieces]
    assert catalogue.current_fingerprint("shop-help", settings=settings) == corpus.fingerprint
    for wrong in (
        lambda: corpus.row("x"),
        lambda: corpus.document("x"),
        lambda: corpus.passages([0, 99]),
        lambda: corpus.search_dense(np.ones(3, np.float32), 5),
        lambda: corpus.search_sparse("x", 5, "lucene"),
    ):
        with pytest.raises(BadInput):
            wrong()


def test_only_what_changed_is_built_and_embedded_again(tmp_path, settings, model):
    source = beir(tmp_path / "set", 200)
    (source / "a.txt").write_text("beside it")
    first = index.build(None, source, settings=settings)
    times = [path.stat().st_mtime_ns for path in files_of(first)]
    model.embedded.clear()
    again = index.build("set", "set", settings=settings)
    assert again.fingerprint == first.fingerprint
    assert [path.stat().st_mtime_ns for path in files_of(again)] == times
    rows = (source / "corpus.jsonl").read_text().splitlines()
    rows[7] = json.dumps({"_id": "d0007", "title": "", "text": "changed"})
    rows[8:10] = [json.dumps({"_id": id, "text": "the very same words"}) for id in ("zb", "za")]
    del rows[3]
    (source / "corpus.jsonl").write_text("\n".join(rows))
    second = index.build(None, source, settings=settings)
    assert sorted(model.embedded) == ["changed", "the very same words"], "equal texts are embedded once"
    assert "1 documents repeat" in second.info.notes[0]
    assert second.info.reused == 196
    assert second.fingerprint != first.fingerprint
    assert not first.folder.exists()
    fresh = HashEmbedder().embed([f"{p.title} {p.text}".strip() for p in second.passages(range(199))])
    np.testing.assert_array_equal(second.vectors(range(199)), fresh)
    asked = model.embed_query("very same words")
    for hits in (second.search_dense(asked, 2), second.search_sparse("very same", 2)):
        assert [hit.passage.id for hit in hits] == ["za", "zb"], "they tie by id"


# and how many vectors it costs: all, if None
DAMAGES = {
    "none": (lambda raw: raw, 0),
    "torn end": (lambda raw: raw[:-30], 1),
    "changed byte at the end": (lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), 1),
    "rubbish": (lambda raw: b"x" * 7, None),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_stopped_build_goes_on_where_it_was(damage, tmp_path, settings, model):
    source = beir(tmp_path / "set", 300)
    model.stop, model.stop_after = threading.Event(), 128
    with pytest.raises(Cancelled):
        index.build(None, source, settings=settings, cancel=model.stop)
    assert catalogue.current_fingerprint("set", settings=settings) is None
    done, model.stop = len(model.embedded), None
    assert 0 < done < 300
    change, lost = DAMAGES[damage]
    (part,) = (settings.home / "indexes" / "set").glob("*.part")
    part.write_bytes(change(part.read_bytes()))
    corpus = index.build(None, source, settings=settings)
    assert len(model.embedded) == 300 + (done if lost is None else lost)
    assert not list((settings.home / "indexes" / "set").glob("*.part"))
    texts = [f"{p.title} {p.text}" for p in corpus.passages(range(300))]
    np.testing.assert_array_equal(corpus.vectors(range(300)), HashEmbedder().embed(texts))


def test_any_changed_byte_is_refused_and_rebuilt(folder, settings, model):
    corpus = index.build(None, folder, settings=settings)
    model.embedded.clear()
    for path in files_of(corpus):
        whole = path.read_bytes()
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :])
        with pytest.raises(IndexDamaged):
            Corpus(corpus.folder)
        opened = index.open_corpus("shop-help", settings=settings)
        assert path.name in opened.warnings[0]
        assert "built again" in opened.warnings[0]
        assert opened.search_sparse("authorizations", 1)
        assert index.open_corpus("shop-help", settings=settings).warnings == ()
        assert not (model.embedded and "bm25" in path.parts), "sound vectors are not embedded again"
        model.embedded.clear()


def test_a_file_is_read_again_for_its_sha256_only_when_it_has_been_touched(folder, settings, monkeypatch):
    corpus, read = index.build(None, folder, settings=settings), []
    facts = manifest._facts
    monkeypatch.setattr(manifest, "_facts", lambda file: read.append(file) or facts(file))
    Corpus(corpus.folder)
    assert read == []
    every = [path for path in files_of(corpus) if path.name != manifest.NAME]
    for content in (b"", b"[]", b"\xff", b'{"vectors.npy": 7}'):  # there is no record of the last check
        (corpus.folder / manifest.CHECKED).write_bytes(content)
        Corpus(corpus.folder)
        assert sorted(read) == every
        read.clear()
    vectors = corpus.folder / "vectors.npy"
    before = vectors.stat()
    with vectors.open("r+b") as file:  # another byte in a file that pretends to be as old as before
        file.seek(-1, os.SEEK_END)
        file.write(b"\x7f")
    os.utime(vectors, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(IndexDamaged, match="does not match its sha256"):
        Corpus(corpus.folder)
    assert read == [vectors]


def test_a_broken_manifest_is_refused_and_rebuilt(folder, settings):
    corpus = index.build(None, folder, settings=settings)
    for content in (b"", b"[]", b'{"format": 0}', b'{"format": 1, "info": {}, "files": {}}', b"\xff"):
        (corpus.folder / "manifest.json").write_bytes(content)
        with pytest.raises(IndexDamaged):
            Corpus(corpus.folder)
        assert catalogue.describe("shop-help", settings).state == "damaged"
        assert index.open_corpus("shop-help", settings=settings).warnings
        assert catalogue.describe("shop-help", settings).state == "ready"


@pytest.mark.parametrize(
    "when", ["before it is read", "between its check and its opening", "while described"]
)
def test_an_index_replaced_while_it_is_opened_is_not_rebuilt_the_way_it_was(
    when, folder, settings, model, monkeypatch
):
    old, other = index.build(None, folder, settings=settings), Chunking(size=60)
    module, part = (corpora, "BM25Index") if when.startswith("between") else (catalogue, "recorded")
    real = getattr(module, part)

    def late(*given):
        monkeypatch.setattr(module, part, real)
        index.build(None, folder, settings=settings, chunking=other)
        return real(*given)

    monkeypatch.setattr(module, part, late)
    if when == "while described":
        described = catalogue.describe("shop-help", settings)
        assert (described.state, described.info and described.info.chunking) == ("ready", other)
    else:
        corpus = index.open_corpus("shop-help", settings=settings)
        assert (corpus.warnings, corpus.info.chunking) == ((), other)
    found = catalogue.current("shop-help", settings)
    assert found is not None
    assert found.source.chunking == other
    assert [hit.passage.doc_id for hit in old.search_sparse("duty", 3)] == ["customs.md"], "it is open still"
    assert old.search_dense(model.embed_query("duty"), 3)


@pytest.mark.parametrize(
    ("lines", "why"),
    [("", "it contains no documents"), ('{"_id": "a", "text": " "}\n', r"1 empty .*corpus\.jsonl:1")],
)
def test_a_source_without_any_text_gives_no_corpus(lines, why, tmp_path, settings, model):
    (tmp_path / "corpus.jsonl").write_text(lines)
    with pytest.raises(BadInput, match=f"nothing readable is left: {why}"):
        index.build("none", tmp_path, settings=settings)
    assert catalogue.names(settings) == []


@pytest.mark.slow
def test_above_the_limit_the_index_is_a_measured_graph_and_damage_to_it_is_noticed(tmp_path, settings, model):
    settings = settings.model_copy(update={"exact_below": 100})
    corpus = index.build(None, beir(tmp_path / "set", 150), settings=settings)
    assert corpus.info.vector_index == "hnsw"
    assert 0.5 < corpus.info.recall <= 1
    query = model.embed_query("title 17 word17 common")
    expected, file = corpus.search_dense(query, 10), corpus.folder / manifest.GRAPH
    assert expected[0].passage.id == "d0017"
    assert corpus.search_dense(query, 1, exact=True) == expected[:1]
    whole = file.read_bytes()
    last = len(whole) - 5  # half-precision copies stand at the end
    for damaged in (whole[:last], whole[:last] + bytes([whole[last] ^ 4]) + whole[last + 1 :], b""):
        file.unlink()  # a new file: the old one is mapped
        file.write_bytes(damaged)
        with pytest.raises(IndexDamaged, match=f"index file .*{manifest.GRAPH}"):
            Corpus(corpus.folder)
        opened = index.open_corpus("set", settings=settings)
        assert manifest.GRAPH in opened.warnings[0]
        assert opened.search_dense(query, 10) == expected


def test_builders_at_once_do_the_work_once(tmp_path, settings, model):
    source = beir(tmp_path / "set", 200)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: index.build(None, source, settings=settings).fingerprint, range(3)))
    assert len(set(found)) == 1
    assert len(model.embedded) == 200


def test_the_fingerprint_tells_what_search_depends_on(folder, settings, model):
    other, customs = settings.model_copy(update={"embedder": "other"}), folder / "customs.md"
    seen = []
    for now, change, how, differs in (
        (settings, None, {}, True),
        (settings, lambda: os.utime(customs, (1, 1)), {}, False),
        (settings, None, {"chunking": Chunking(50)}, True),
        (settings, None, {}, False),  # a refresh keeps how it was cut
        (settings, None, {"language": "german"}, True),
        (settings, lambda: customs.write_text("other words"), {}, True),
        (other, None, {}, True),
    ):
        if change is not None:
            change()
        index.build(None, folder, settings=now, **how)
        fingerprint = catalogue.current_fingerprint("shop-help", settings=settings)
        assert (fingerprint not in seen) is differs
        seen.append(fingerprint)


def test_threads_share_an_opened_corpus_and_a_second_bm25_that_is_made_once(
    tmp_path, settings, model, monkeypatch
):
    corpus = index.build(None, beir(tmp_path / "set", 60), settings=settings)
    made = []
    real = corpora.RankBM25Index
    monkeypatch.setattr(corpora, "RankBM25Index", lambda *given: made.append(given) or real(*given))
    expected = [corpus.search_sparse(f"word{n} common", 5) for n in range(40)]
    assert not made
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: corpus.search_sparse(f"word{n} common", 5), range(40)))
        second = list(pool.map(lambda _: corpus.search_sparse("word7 common", 5, "rank-bm25"), range(8)))
    assert found == expected
    assert len(made) == 1
    assert all(hits == second[0] for hits in second)
    assert [hit.passage.id for hit in second[0]] == [hit.passage.id for hit in expected[7]]
    assert [hit.score for hit in second[0]] == pytest.approx([hit.score for hit in expected[7]], abs=1e-4)


def test_an_embedder_that_gives_nonsense_ends_the_build(tmp_path, settings, model):
    model.embed = lambda texts: np.full((len(texts), 64), np.nan, np.float32)
    with pytest.raises(ModelFailed, match="hash"):
        index.build(None, beir(tmp_path / "set", 3), settings=settings)
    assert catalogue.current_fingerprint("set", settings=settings) is None


# names and states


def test_states_from_not_built_to_damaged(folder, settings, model, monkeypatch):
    known = {entry.name: entry for entry in catalogue.known(settings)}
    assert list(known) == ["support", "pydocs", "web"]
    assert {entry.state for entry in known.values()} == {"not built"}
    assert [entry.askable for entry in known.values()] == [True, True, False]
    corpus = index.build(None, folder, settings=settings)

    def state():
        return catalogue.describe("shop-help", settings).state

    assert state() == "ready"
    os.utime(folder / "customs.md", ns=(1, 1))  # written again with the same bytes
    assert state() == "ready"
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 60.0)
    (folder / "new.md").write_text("more")
    assert state() == "ready", "it is not looked at at each click"
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 0.0)
    assert state() == "stale"
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 60.0)
    index.build(None, folder, settings=settings)
    assert state() == "ready"
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 0.0)
    assert catalogue.describe("shop-help", settings.model_copy(update={"embedder": "b"})).state == "stale"
    assert not corpus.folder.exists()
    folder.rename(folder.with_name("gone"))
    entry = catalogue.describe("shop-help", settings)
    assert (entry.state, "can no longer be read" in entry.reason) == ("ready", True)
    corpus = index.open_corpus("shop-help", settings=settings)
    assert corpus.size == 4, "an index outlives its source"
    (corpus.folder / "keys.npy").write_bytes(b"short")
    assert state() == "damaged"
    with pytest.raises(BadInput, match="no such file"):
        index.open_corpus("shop-help", settings=settings)


def test_unknown_and_unbuilt_names_say_what_to_do(settings):
    with pytest.raises(BadInput, match="unknown corpus 'nope'; known: support, pydocs, web"):
        index.open_corpus("nope", settings=settings)
    with pytest.raises(Unavailable, match="python -m core index support"):
        index.open_corpus("support", settings=settings)


def test_a_name_means_one_source(folder, tmp_path, settings, model):
    index.build("help", folder, settings=settings)
    other = beir(tmp_path / "other", 3)
    with pytest.raises(BadInput, match="already the corpus of"):
        index.build("help", other, settings=settings)
    with pytest.raises(BadInput, match="built-in"):
        index.build("support", other, settings=settings)
    folder.rename(folder.with_name("gone"))
    assert index.build("help", other, settings=settings).size == 3
    index.remove("help", settings=settings)
    assert not (settings.home / "indexes" / "help").exists()
    assert (other / "corpus.jsonl").exists(), "its source stays"
    with pytest.raises(BadInput, match="no index"):
        index.remove("help", settings=settings)


def test_a_changed_model_folder_is_noticed(folder, tmp_path, settings, model):
    weights = tmp_path / "own-model"
    weights.mkdir()
    (weights / "weights").write_text("1")
    assert embedders.identity("hub/model") == "hub/model"
    own = settings.model_copy(update={"embedder": str(weights)})
    index.build(None, folder, settings=own)
    index.open_corpus("shop-help", settings=own)
    (weights / "weights").write_text("22")
    assert catalogue.describe("shop-help", own).state == "stale"
    with pytest.raises(Unavailable, match="has changed"):
        index.open_corpus("shop-help", settings=own)


def test_names_are_slugs():
    assert [slug(one) for one in ("Shop Help", "../../etc/passwd", ".h")] == ["shop-help", "etc-passwd", "h"]
    for given in ("", "..", "/", "東京"):
        with pytest.raises(BadInput, match="--name"):
            slug(given)
