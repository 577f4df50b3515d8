"""Indexes: built for what changed only, verified, resumed, and never half there."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from core.backends import embedder as embedders
from core.corpus import catalogue, index, manifest
from core.corpus import corpus as corpora
from core.corpus.chunk import Chunking
from core.corpus.corpus import Corpus
from core.corpus.source import slug
from core.domain.errors import BadInput, Cancelled, IndexDamaged, ModelFailed, Unavailable
from core.domain.settings import Settings
from tests.fakes import HashEmbedder

TEXTS = {
    "returns.md": "# Returns\n\nAsk for a Return Merchandise Authorization first. Then send the parcel.",
    "customs.md": "# Customs\n\nDuty is due for textiles and for glass.",
    "sub/labels.txt": "The barcode label is printed by the warehouse.",
}


class Counting(HashEmbedder):
    """Remembers every text it embedded; `stop_after` presses Stop after that many."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[str] = []
        self.stop: threading.Event | None = None
        self.stop_after = 0

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.embedded += texts
        if self.stop is not None and len(self.embedded) >= self.stop_after:
            self.stop.set()
        return super().embed(texts)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes of a source are seen at once."""
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 0.0)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", models_dir=tmp_path / "models", embedder="hash")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    monkeypatch.setattr(index, "load_embedder", lambda _name, *, settings: counting)
    return counting


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "Shop Help"
    for name, text in TEXTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def beir(folder: Path, count: int) -> Path:
    folder.mkdir(exist_ok=True)
    lines = (
        json.dumps({"_id": f"d{n:04}", "title": f"title {n}", "text": f"word{n} common"})
        for n in range(count)
    )
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    return folder


def files_of(corpus: Corpus) -> list[Path]:
    return sorted(p for p in corpus.folder.rglob("*") if p.is_file() and p.name != manifest.CHECKED)


def test_build_open_and_search(folder: Path, settings: Settings, model: Counting) -> None:
    stages: list[tuple[str, int, int]] = []
    built = index.build(None, folder, settings=settings, progress=lambda *step: stages.append(step))
    assert built.name == "shop-help"
    assert {stage for stage, _, _ in stages} == {
        "read documents",
        "find languages",
        "index words",
        "embed",
        "weigh dense search",
        "count unread text",
        "check",
    }
    corpus = index.open_corpus("shop-help", settings=settings)
    assert (corpus.size, corpus.info.documents, corpus.info.vector_index) == (3, 3, "flat")
    assert corpus.info.bytes > 0
    assert set(corpus.info.build_ms) == {
        "read documents",
        "cut into passages",
        "find languages",
        "index words",
        "embed",
        "weigh dense search",
        "count unread text",
    }
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


@pytest.mark.parametrize("call", ["row", "document", "passages", "dense", "engine"])
def test_asking_for_what_is_not_there_is_bad_input(
    call: str, folder: Path, settings: Settings, model: Counting
) -> None:
    corpus = index.build(None, folder, settings=settings)
    with pytest.raises(BadInput):
        {
            "row": lambda: corpus.row("x"),
            "document": lambda: corpus.document("x"),
            "passages": lambda: corpus.passages([0, 99]),
            "dense": lambda: corpus.search_dense(np.ones(3, np.float32), 5),
            "engine": lambda: corpus.search_sparse("x", 5, "lucene"),
        }[call]()


def test_unchanged_content_is_not_built_again(folder: Path, settings: Settings, model: Counting) -> None:
    first = index.build(None, folder, settings=settings)
    times = [path.stat().st_mtime_ns for path in files_of(first)]
    model.embedded.clear()
    again = index.build("shop-help", "shop-help", settings=settings)
    assert again.fingerprint == first.fingerprint
    assert [path.stat().st_mtime_ns for path in files_of(again)] == times
    assert model.embedded == []


def test_only_what_changed_is_embedded(tmp_path: Path, settings: Settings, model: Counting) -> None:
    source = beir(tmp_path / "set", 200)
    first = index.build(None, source, settings=settings)
    model.embedded.clear()
    rows = (source / "corpus.jsonl").read_text().splitlines()
    rows[7] = json.dumps({"_id": "d0007", "title": "", "text": "changed"})
    del rows[3]
    (source / "corpus.jsonl").write_text("\n".join(rows))
    second = index.build(None, source, settings=settings)
    assert model.embedded == ["changed"]
    assert second.info.reused == 198
    assert second.fingerprint != first.fingerprint
    assert not first.folder.exists()
    fresh = HashEmbedder().embed([f"{p.title} {p.text}".strip() for p in second.passages(range(199))])
    np.testing.assert_array_equal(second.vectors(range(199)), fresh)


def test_equal_texts_are_embedded_once_and_tie_by_id(
    tmp_path: Path, settings: Settings, model: Counting
) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": name, "text": "the very same words"}))
    corpus = index.build("same", tmp_path, settings=settings)
    assert len(model.embedded) == 1
    assert "2 documents repeat" in corpus.info.notes[0]
    ids = [f"{name}:0-19" for name in "abc"]
    assert [h.passage.id for h in corpus.search_dense(model.embed_query("same words"), 3)] == ids
    assert [h.passage.id for h in corpus.search_sparse("same words", 3)] == ids


DAMAGES: dict[
    str, tuple[Callable[[bytes], bytes], int | None]
] = {  # and how many vectors it costs: all, if None
    "none": (lambda raw: raw, 0),
    "torn end": (lambda raw: raw[:-30], 1),
    "changed byte at the end": (lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), 1),
    "rubbish": (lambda raw: b"x" * 7, None),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_stopped_build_goes_on_where_it_was(
    damage: str, tmp_path: Path, settings: Settings, model: Counting
) -> None:
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


def test_any_changed_byte_is_refused_and_rebuilt(folder: Path, settings: Settings, model: Counting) -> None:
    corpus = index.build(None, folder, settings=settings)
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


def test_a_file_is_read_again_for_its_sha256_only_when_it_has_been_touched(
    folder: Path, settings: Settings, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, read = index.build(None, folder, settings=settings), []
    facts = manifest._facts
    monkeypatch.setattr(manifest, "_facts", lambda file: read.append(file) or facts(file))
    Corpus(corpus.folder)
    assert read == []
    vectors = corpus.folder / "vectors.npy"
    before = vectors.stat()
    with vectors.open("r+b") as file:  # another byte in a file that pretends to be as old as before
        file.seek(-1, os.SEEK_END)
        file.write(b"\x7f")
    os.utime(vectors, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(IndexDamaged, match="does not match its sha256"):
        Corpus(corpus.folder)
    assert read == [vectors]


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"vectors.npy": 7}'])
def test_without_a_record_of_the_last_check_every_file_is_read(
    content: bytes, folder: Path, settings: Settings, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, read = index.build(None, folder, settings=settings), []
    (corpus.folder / manifest.CHECKED).write_bytes(content)
    facts = manifest._facts
    monkeypatch.setattr(manifest, "_facts", lambda file: read.append(file) or facts(file))
    Corpus(corpus.folder)
    assert corpus.folder / "vectors.npy" in read
    assert sorted(read) == [path for path in files_of(corpus) if path.name != manifest.NAME]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"format": 0}', b'{"format": 1, "info": {}, "files": {}}', b"\xff"]
)
def test_a_broken_manifest_is_refused_and_rebuilt(
    content: bytes, folder: Path, settings: Settings, model: Counting
) -> None:
    corpus = index.build(None, folder, settings=settings)
    (corpus.folder / "manifest.json").write_bytes(content)
    with pytest.raises(IndexDamaged):
        Corpus(corpus.folder)
    assert catalogue.describe("shop-help", settings).state == "damaged"
    assert index.open_corpus("shop-help", settings=settings).warnings
    assert catalogue.describe("shop-help", settings).state == "ready"


@pytest.mark.parametrize("when", ["before it is read", "between its check and its opening"])
def test_an_index_replaced_while_it_is_opened_is_not_rebuilt_the_way_it_was(
    when: str, folder: Path, settings: Settings, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.build(None, folder, settings=settings)
    other = Chunking(size=60)

    module, part = (catalogue, "recorded") if when == "before it is read" else (corpora, "BM25Index")
    real = getattr(module, part)

    def late(*given: object) -> object:
        monkeypatch.setattr(module, part, real)
        index.build(None, folder, settings=settings, chunking=other)
        return real(*given)

    monkeypatch.setattr(module, part, late)
    corpus = index.open_corpus("shop-help", settings=settings)
    assert corpus.warnings == ()
    assert corpus.info.chunking == other
    found = catalogue.current("shop-help", settings)
    assert found is not None
    assert found.source.chunking == other


def test_a_corpus_replaced_while_it_is_described_is_not_damaged(
    folder: Path, settings: Settings, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.build(None, folder, settings=settings)
    real = catalogue.recorded

    def late(found: catalogue.Current) -> manifest.CorpusInfo:
        monkeypatch.setattr(catalogue, "recorded", real)
        index.build(None, folder, settings=settings, chunking=Chunking(size=60))
        return real(found)

    monkeypatch.setattr(catalogue, "recorded", late)
    described = catalogue.describe("shop-help", settings)
    assert described.state == "ready"
    assert described.info is not None
    assert described.info.chunking == Chunking(size=60)


def test_sound_vectors_of_a_damaged_index_are_not_embedded_again(
    folder: Path, settings: Settings, model: Counting
) -> None:
    corpus = index.build(None, folder, settings=settings)
    (corpus.folder / "bm25" / "terms.bin").unlink()
    model.embedded.clear()
    index.open_corpus("shop-help", settings=settings)
    assert model.embedded == []


def test_a_damaged_index_whose_source_is_gone_says_so(
    folder: Path, settings: Settings, model: Counting
) -> None:
    corpus = index.build(None, folder, settings=settings)
    (corpus.folder / "vectors.npy").write_bytes(b"")
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(BadInput, match="no such file"):
        index.open_corpus("shop-help", settings=settings)


@pytest.mark.parametrize(
    ("lines", "why"),
    [("", "it contains no documents"), ('{"_id": "a", "text": " "}\n', r"1 empty .*corpus\.jsonl:1")],
)
def test_a_source_without_any_text_gives_no_corpus(
    lines: str, why: str, tmp_path: Path, settings: Settings, model: Counting
) -> None:
    (tmp_path / "corpus.jsonl").write_text(lines)
    with pytest.raises(BadInput, match=f"nothing readable is left: {why}"):
        index.build("none", tmp_path, settings=settings)
    assert catalogue.names(settings) == []


def test_above_the_limit_the_index_is_a_measured_graph(
    tmp_path: Path, settings: Settings, model: Counting
) -> None:
    source = beir(tmp_path / "set", 150)
    corpus = index.build(None, source, settings=settings.model_copy(update={"exact_below": 100}))
    assert corpus.info.vector_index == "hnsw"
    assert 0.5 < corpus.info.recall <= 1
    again = index.open_corpus("set", settings=settings)
    query = model.embed_query("title 17 word17 common")
    assert again.search_dense(query, 1)[0].passage.id == "d0017"
    assert again.search_dense(query, 1, exact=True) == again.search_dense(query, 1)


def test_a_damaged_graph_is_noticed_also_in_its_half_precision_copies(
    tmp_path: Path, settings: Settings, model: Counting
) -> None:
    settings = settings.model_copy(update={"exact_below": 100})
    corpus = index.build(None, beir(tmp_path / "set", 150), settings=settings)
    query = model.embed_query("title 17 word17 common")
    expected, file = corpus.search_dense(query, 10), corpus.folder / manifest.GRAPH
    whole = file.read_bytes()
    last = len(whole) - 5  # the copies stand at the end
    for damaged in (whole[:last], whole[:last] + bytes([whole[last] ^ 4]) + whole[last + 1 :], b""):
        file.unlink()  # a new file: the old one is mapped
        file.write_bytes(damaged)
        with pytest.raises(IndexDamaged, match=f"index file .*{manifest.GRAPH}"):
            Corpus(corpus.folder)
        opened = index.open_corpus("set", settings=settings)
        assert manifest.GRAPH in opened.warnings[0]
        assert opened.search_dense(query, 10) == expected


def test_two_builders_at_once_do_the_work_once(tmp_path: Path, settings: Settings, model: Counting) -> None:
    source, found = beir(tmp_path / "set", 200), []
    threads = [
        threading.Thread(
            target=lambda: found.append(index.build(None, source, settings=settings).fingerprint)
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(set(found)) == 1
    assert len(model.embedded) == 200


def test_the_fingerprint_tells_what_search_depends_on(
    folder: Path, settings: Settings, model: Counting
) -> None:
    seen = set()

    def changed() -> bool:
        fingerprint = catalogue.current_fingerprint("shop-help", settings=settings)
        new = fingerprint not in seen
        seen.add(fingerprint)
        return new

    index.build(None, folder, settings=settings)
    assert changed()
    os.utime(folder / "customs.md", (1, 1))
    index.build(None, folder, settings=settings)
    assert not changed()
    index.build(None, folder, settings=settings, chunking=Chunking(50))
    assert changed()
    index.build(None, folder, settings=settings)
    assert not changed()  # a refresh keeps how it was cut
    index.build(None, folder, settings=settings, language="german")
    assert changed()
    (folder / "customs.md").write_text("other words")
    index.build(None, folder, settings=settings)
    assert changed()
    index.build(None, folder, settings=settings.model_copy(update={"embedder": "other"}))
    assert changed()


def test_a_search_goes_on_in_an_index_that_is_replaced(
    folder: Path, settings: Settings, model: Counting
) -> None:
    old = index.build(None, folder, settings=settings)
    (folder / "customs.md").write_text("other words")
    index.build(None, folder, settings=settings)
    assert [hit.passage.doc_id for hit in old.search_sparse("duty", 3)] == ["customs.md"]
    assert old.search_dense(model.embed_query("duty"), 3)


def test_the_second_bm25_is_made_once_when_first_asked_for(
    tmp_path: Path, settings: Settings, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = index.build(None, beir(tmp_path / "set", 60), settings=settings)
    made: list[object] = []
    real = corpora.RankBM25Index
    monkeypatch.setattr(corpora, "RankBM25Index", lambda *given: made.append(given) or real(*given))
    first = corpus.search_sparse("word7 common", 5)
    assert not made
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: corpus.search_sparse("word7 common", 5, "rank-bm25"), range(8)))
    assert len(made) == 1
    assert all(hits == found[0] for hits in found)
    assert [hit.passage.id for hit in found[0]] == [hit.passage.id for hit in first]
    assert [hit.score for hit in found[0]] == pytest.approx([hit.score for hit in first], abs=1e-4)


def test_threads_share_an_opened_corpus(tmp_path: Path, settings: Settings, model: Counting) -> None:
    corpus = index.build(None, beir(tmp_path / "set", 120), settings=settings)
    expected = [corpus.search_sparse(f"word{n}", 5) for n in range(40)]
    problems: list[object] = []

    def ask() -> None:
        for n in range(40):
            if corpus.search_sparse(f"word{n}", 5) != expected[n]:
                problems.append(n)
            corpus.search_dense(model.embed_query(f"word{n}"), 5)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_an_embedder_that_gives_nonsense_ends_the_build(
    tmp_path: Path, settings: Settings, model: Counting
) -> None:
    model.embed = lambda texts: np.full((len(texts), 64), np.nan, np.float32)  # type: ignore[method-assign]
    with pytest.raises(ModelFailed, match="hash"):
        index.build(None, beir(tmp_path / "set", 3), settings=settings)
    assert catalogue.current_fingerprint("set", settings=settings) is None


def test_a_folder_that_cannot_be_written_is_one_clear_line(
    folder: Path, settings: Settings, model: Counting
) -> None:
    settings.home.mkdir(parents=True)
    (settings.home / "indexes").write_text("a file in the way")
    with pytest.raises(Unavailable, match="cannot be written"):
        index.build(None, folder, settings=settings)


# names and states


def test_a_source_is_not_looked_at_at_each_click(
    folder: Path, settings: Settings, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.build(None, folder, settings=settings)
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 60.0)
    assert catalogue.describe("shop-help", settings).state == "ready"
    (folder / "new.md").write_text("# New\n\nA page that was not there.\n")
    assert catalogue.describe("shop-help", settings).state == "ready"
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 0.0)
    assert catalogue.describe("shop-help", settings).state == "stale"
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 60.0)
    index.build("shop-help", folder, settings=settings)
    assert catalogue.describe("shop-help", settings).state == "ready"


def test_states_from_not_built_to_damaged(folder: Path, settings: Settings, model: Counting) -> None:
    known = {entry.name: entry for entry in catalogue.known(settings)}
    assert list(known) == ["support", "pydocs", "web"]
    assert {entry.state for entry in known.values()} == {"not built"}
    assert [entry.askable for entry in known.values()] == [True, True, False]
    corpus = index.build(None, folder, settings=settings)

    def state() -> str:
        return catalogue.describe("shop-help", settings).state

    assert state() == "ready"
    (folder / "new.md").write_text("more")
    assert state() == "stale"
    index.build(None, folder, settings=settings)
    assert state() == "ready"
    assert catalogue.describe("shop-help", settings.model_copy(update={"embedder": "b"})).state == "stale"
    assert not corpus.folder.exists()
    corpus = index.open_corpus("shop-help", settings=settings)
    (corpus.folder / "keys.npy").write_bytes(b"short")
    assert state() == "damaged"
    folder.rename(folder.with_name("gone"))
    index_only = catalogue.describe("shop-help", settings)
    assert index_only.state == "damaged"


def test_an_index_outlives_its_source(folder: Path, settings: Settings, model: Counting) -> None:
    index.build(None, folder, settings=settings)
    folder.rename(folder.with_name("gone"))
    entry = catalogue.describe("shop-help", settings)
    assert entry.state == "ready"
    assert "can no longer be read" in entry.reason
    assert index.open_corpus("shop-help", settings=settings).size == 3


def test_unknown_and_unbuilt_names_say_what_to_do(settings: Settings) -> None:
    with pytest.raises(BadInput, match="unknown corpus 'nope'; known: support, pydocs, web"):
        index.open_corpus("nope", settings=settings)
    with pytest.raises(Unavailable, match="python -m core index support"):
        index.open_corpus("support", settings=settings)


def test_a_name_means_one_source(folder: Path, tmp_path: Path, settings: Settings, model: Counting) -> None:
    index.build("help", folder, settings=settings)
    other = beir(tmp_path / "other", 3)
    with pytest.raises(BadInput, match="already the corpus of"):
        index.build("help", other, settings=settings)
    with pytest.raises(BadInput, match="built-in"):
        index.build("support", other, settings=settings)
    folder.rename(folder.with_name("gone"))
    assert index.build("help", other, settings=settings).size == 3


def test_removing_a_corpus_leaves_its_source(folder: Path, settings: Settings, model: Counting) -> None:
    index.build(None, folder, settings=settings)
    index.remove("shop-help", settings=settings)
    assert not (settings.home / "indexes" / "shop-help").exists()
    assert (folder / "customs.md").exists()
    with pytest.raises(BadInput, match="no index"):
        index.remove("shop-help", settings=settings)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Shop Help", "shop-help"),
        ("../../etc/passwd", "etc-passwd"),
        ("a_b.C-1", "a_b.c-1"),
        (".hidden", "hidden"),
    ],
)
def test_names_are_slugs(given: str, expected: str) -> None:
    assert slug(given) == expected


@pytest.mark.parametrize("given", ["", "..", "/", "東京"])
def test_a_name_of_nothing_is_refused(given: str) -> None:
    with pytest.raises(BadInput, match="--name"):
        slug(given)


def test_a_changed_model_folder_is_noticed(
    folder: Path, tmp_path: Path, settings: Settings, model: Counting
) -> None:
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
