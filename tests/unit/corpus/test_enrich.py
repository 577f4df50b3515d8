"""Enrichments: what is made once for a corpus, kept, resumed, refused when damaged, and searched by keys."""

import json
import re
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.sparse import BM25Index, write_index
from core.backends.terms import analyzer
from core.corpus.build import Stages
from core.corpus.embeddings import Checkpoint, Vectors
from core.corpus.enrichments import store
from core.corpus.enrichments.keys import DOCUMENT, Key, KeyIndex, heading_paths, parts, write
from core.corpus.enrichments.recipe import AT_ONCE, GIVE_UP, Tools, siblings
from core.corpus.enrichments.store import Opened
from core.domain.errors import Cancelled, ModelFailed, Unavailable
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.text import searchable
from core.domain.types import Passage
from core.engine.availability import missing
from core.routes.registry import routes
from tests.fakes import TEXTS, FakeEngine, HashEmbedder, MemoryCorpus, ScriptedLLM

ASKED = "1. How do I return it?\n2. When is it paid?\n- What is the limit?\nAnything else"


def build(tmp_path, name="questions", corpus=None, llm=None, **options):
    corpus = corpus or MemoryCorpus(TEXTS)
    writer = llm or ScriptedLLM({"questions": ASKED, "context": "About returns."})
    how = {"settings": Settings(home=tmp_path), "llm": writer, "embedder": corpus.embedder, **options}
    return store.build(name, corpus, **how), corpus, writer


def keyed(tmp_path, owners, texts, corpus):
    """An index of given keys, made by the function that all recipes use."""
    folder = tmp_path / "keys"
    folder.mkdir()
    keys = [Key(row, f"shown {at}", text) for at, (row, text) in enumerate(zip(owners, texts, strict=True))]
    vectors = Vectors("hash", "hash", HashEmbedder, (), Checkpoint(folder, "hash"))
    tools = Tools(Settings(home=tmp_path), Stages(lambda *_: None, threading.Event()), None, lambda: vectors)
    write(keys, corpus, folder, tools, words=True)
    return KeyIndex(corpus, folder), folder


SOME_WORDS = st.sampled_from(["return", "refund", "box", "photo", "customs", "express", "key", "hour"])
KEYS = st.lists(
    st.tuples(st.integers(0, len(TEXTS) - 1), st.lists(SOME_WORDS, min_size=1, max_size=5).map(" ".join)),
    min_size=1,
    max_size=30,
)


@pytest.mark.slow
@given(KEYS, st.integers(1, 10))
def test_a_passage_scores_what_its_best_key_scores(tmp_path_factory, drawn, k):
    corpus, question = MemoryCorpus(TEXTS), HashEmbedder().embed_query("return photo refund")
    owners, texts = zip(*drawn, strict=True)
    index, folder = keyed(tmp_path_factory.mktemp("keys"), owners, texts, corpus)
    expected, by_row = {}, {}
    for row, text in drawn:
        score = float(HashEmbedder().embed([text])[0] @ question)
        expected[row] = max(expected.get(row, -2.0), score)
    match = index.search_dense(question, k)
    assert [hit.score for hit in match.hits] == pytest.approx(
        sorted(expected.values(), reverse=True)[:k], abs=1e-5
    )
    for hit in match.hits:
        row = corpus.row(hit.passage.id)
        assert hit.score == pytest.approx(expected[row], abs=1e-5)
        assert owners[int(match.keys[hit.passage.id].split()[1])] == row, (
            "the key shown is one of the passage's"
        )
    all_words = BM25Index(folder / "bm25", len(texts)).scores("return photo")
    for place, row in enumerate(sorted(owners)):  # as the index keeps them: by row, else as given
        by_row[row] = max(by_row.get(row, 0.0), float(all_words[place]))
    best = sorted((score for score in by_row.values() if score > 0), reverse=True)[:k]
    assert [hit.score for hit in index.search_words("return photo", k).hits] == pytest.approx(best, abs=1e-5)


def test_keys_are_cleaned_counted_and_lead_back_to_their_passages(tmp_path):
    told = []
    made, corpus, llm = build(tmp_path, progress=lambda stage, done, total: told.append((stage, done, total)))
    assert (made.entries, made.llm, made.spent.calls) == (3 * corpus.size, "scripted", corpus.size)
    assert made.spent.prompt_tokens == 10 * corpus.size
    assert ("write questions", 7, 7) in told
    stages = ["write questions", "count unread text", "embed"]
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == stages
    index = store.load("questions", corpus, Settings(home=tmp_path))
    match = index.search_dense(HashEmbedder().embed_query("When is it paid?"), 3)
    assert set(match.keys.values()) == {"When is it paid?"}
    assert {hit.passage.id for hit in match.hits} <= set(TEXTS)
    assert all("?" not in request.messages[-1].content.split("Passage")[0] for request in llm.requests)
    build(tmp_path, "contexts", corpus, ScriptedLLM({"context": "Zebras in the warehouse."}))
    found = store.load("contexts", corpus, Settings(home=tmp_path)).search_words("zebras", 3)
    assert len(found.hits) == 3
    assert all(hit.passage == corpus.by_ids([hit.passage.id])[hit.passage.id] for hit in found.hits)
    assert set(found.keys.values()) == {"Zebras in the warehouse."}


def test_expanded_passages_are_found_by_their_text_and_by_their_questions(tmp_path):
    """As BM25 over the same texts joined by hand finds them."""
    corpus = MemoryCorpus(TEXTS)
    made, _, llm = build(tmp_path, "expanded", corpus)
    assert (made.entries, made.spent.calls) == (corpus.size, corpus.size)
    index = store.load("expanded", corpus, Settings(home=tmp_path))
    asked = "How do I return it? When is it paid? What is the limit?"
    joined = [f"{searchable(one.title, one.text)} {asked}" for one in corpus.all]
    write_index(joined, tmp_path / "by-hand", analyzer("english"))
    by_hand = BM25Index(tmp_path / "by-hand", corpus.size)
    for text in ("paid", "fragile", "when is it paid"):
        found = index.search_words(text, 3).hits
        expected = by_hand.search(text, 3)
        assert [hit.passage.id for hit in found] == [corpus.all[row].id for row, _ in expected]
        assert [hit.score for hit in found] == pytest.approx([score for _, score in expected])
    _, _, other = build(tmp_path, "questions", corpus)
    assert other.requests == llm.requests  # the same calls, so that those of one are recalled for the other


@pytest.mark.parametrize("name", store.RECIPES)
def test_every_recipe_tells_about_how_much_room_it_takes(name):
    """More for more text, and for free ones within a third of what they took for `support`."""
    took = {"tokens": 87_005_687, "children": 6_594_481, "headings": 2_083_854}  # 818 passages, MiniLM
    told = store.recipe(name).about_bytes(457_333, 818, 384, Settings())
    assert told > 0
    ten_times = store.recipe(name).about_bytes(4_573_330, 8_180, 384, Settings())
    if name in ("summaries", "extracts"):  # whose trees have a level more
        assert 10 * told < ten_times < 14 * told
    else:
        assert ten_times == pytest.approx(10 * told, rel=0.01)
    if name in took:
        assert 0.66 * took[name] < told < 1.34 * took[name]


def test_a_passage_the_model_failed_at_is_counted_and_tried_again(tmp_path):
    broken = {"fragile:0-80"}

    def reply(request):
        if any(TEXTS[id] in request.messages[-1].content.split("one part")[1] for id in broken):
            raise ModelFailed("no answer")
        return "About returns."

    made, corpus, _ = build(tmp_path, "contexts", llm=ScriptedLLM({"context": reply}))
    assert made.spent.failed == 1
    assert any("1 of 7 passages have no context" in note for note in made.notes)
    assert any("no answer" in note for note in made.notes)
    broken.clear()
    again, _, _ = build(tmp_path, "contexts", corpus, ScriptedLLM({"context": reply}))
    assert again.spent.failed == 0


def test_a_broken_endpoint_ends_the_build_and_leaves_what_was_there(tmp_path):
    before, corpus, _ = build(tmp_path)
    bad = ScriptedLLM({"questions": ModelFailed("the endpoint answered HTML")}, model="another")
    with pytest.raises(ModelFailed, match="HTML"):
        build(tmp_path, corpus=corpus, llm=bad)
    assert len(bad.requests) == GIVE_UP
    assert store.describe("questions", corpus.name, Settings(home=tmp_path)) == before
    assert not list((tmp_path / "enrichments" / corpus.name).glob(".new-*"))


@pytest.mark.parametrize(("local", "slots"), [(False, None), (True, 2)], ids=["remote", "here, two slots"])
def test_a_slow_reply_holds_up_no_other(tmp_path, local, slots):
    """The first reply comes once all others were asked for, more than are asked at once; order is kept."""
    texts = {f"p{at:02}:0-9": f"passage number {at}" for at in range(2 * (slots or AT_ONCE))}
    others, seen = threading.Event(), []

    def reply(request):
        number = re.search(r"number (\d+)", request.messages[-1].content).group(1)
        seen.append(number)
        if len(seen) == len(texts):
            others.set()
        if number == "0":
            assert others.wait(20)
        return f"What is number {number}?"

    corpus, settings = MemoryCorpus(texts), Settings(home=tmp_path, llm_slots=slots)
    llm = ScriptedLLM({"questions": reply}, local=local)
    store.build("questions", corpus, settings=settings, llm=llm, embedder=corpus.embedder)
    index = store.load("questions", corpus, settings)
    match = index.search_dense(HashEmbedder().embed_query("number"), len(texts))
    assert match.keys == {id: f"What is number {at}?" for at, id in enumerate(texts)}


def test_what_is_there_is_not_made_twice_and_is_stale_after_a_change(tmp_path):
    made, corpus, llm = build(tmp_path)
    asked = len(llm.requests)
    assert build(tmp_path, corpus=corpus, llm=llm)[0] == made
    assert len(llm.requests) == asked
    changed = MemoryCorpus({**TEXTS, "new:0-10": "A new passage."})
    reason = store.missing("questions", "tiny", changed.fingerprint, Settings(home=tmp_path))
    assert "earlier state" in reason
    assert "python -m core index tiny --with questions" in reason
    with pytest.raises(Unavailable, match="earlier state"):
        store.load("questions", changed, Settings(home=tmp_path))
    embedded = changed.embedder
    embedded.calls.clear()
    build(tmp_path, corpus=changed)
    assert store.missing("questions", "tiny", changed.fingerprint, Settings(home=tmp_path)) is None


def test_a_stopped_build_says_so_and_asks_no_more(tmp_path):
    stop = threading.Event()

    def reply(_):
        if len(llm.requests) == 3:
            stop.set()
        return ASKED

    llm = ScriptedLLM({"questions": reply})
    with pytest.raises(Cancelled):
        build(tmp_path, llm=llm, cancel=stop)
    assert len(llm.requests) == 3
    assert store.describe("questions", "tiny", Settings(home=tmp_path)) is None


def test_a_damaged_enrichment_is_refused(tmp_path):
    _, corpus, _ = build(tmp_path)
    file = tmp_path / "enrichments" / "tiny" / "questions" / "texts.jsonl"
    data = bytearray(file.read_bytes())
    data[10] ^= 1
    file.write_bytes(data)
    with pytest.raises(Unavailable, match="sha256"):
        store.load("questions", corpus, Settings(home=tmp_path))
    made, _, _ = build(tmp_path, corpus=corpus)
    assert store.load("questions", corpus, Settings(home=tmp_path)).size == made.entries


def test_what_was_opened_for_an_earlier_state_of_a_corpus_is_not_searched_for_a_later_one(tmp_path):
    _, corpus, _ = build(tmp_path)
    opened = Opened(Settings(home=tmp_path))
    index = opened.get(corpus, "questions")
    assert opened.get(corpus, "questions") is index
    changed = MemoryCorpus({**TEXTS, "a:0-10": "A first passage moves every row."})
    with pytest.raises(Unavailable, match="earlier state"):
        opened.get(changed, "questions")
    build(tmp_path, corpus=changed)
    assert opened.get(changed, "questions").size > index.size


def test_each_need_of_a_route_can_be_told(tmp_path):
    gaps = missing(FakeEngine(tmp_path, llm=ScriptedLLM(missing="no model here")), "tiny")
    for route in routes().values():
        for need in set(route.needed(route.settle({}))) - {Need.WEB, Need.BM25}:
            assert need in gaps, f"{route.name} needs {need}, and nothing was made"


def test_headings_in_force_where_a_passage_begins():
    texts = [
        "# A\nintro",
        "## B\none",
        "two",
        "### C\nthree",
        "## D\nfour",
        "five",
        "# E\n## F\nsix",
        "seven",
    ]
    passages = [Passage(str(i), "d", "t", text) for i, text in enumerate(texts)]
    paths = ["", "A", "AB", "AB", "ABC", "AD", "AD", "EF"]
    assert heading_paths(passages) == [list(path) for path in paths]


class Pieces(MemoryCorpus):
    """A corpus whose passages are documents of their own, as sets that come in pieces have them."""

    def everything(self):
        for row, passage in enumerate(self.all):
            doc, index = passage.id.split("/")
            yield row, passage, {"metadata": json.dumps({"doc_id": doc, "index": int(index)})}


def test_pieces_of_one_document_are_put_in_order():
    corpus = Pieces({"a/10": "eleven", "a/2": "three", "a/0": "one", "b/0": "other"})
    assert [[p.text for _, p in group] for group in siblings(corpus)] == [
        ["one", "three", "eleven"],
        ["other"],
    ]


@given(st.lists(st.integers(1, DOCUMENT + 50), min_size=1, max_size=12))
def test_a_long_document_is_read_in_parts_of_whole_passages(lengths):
    corpus = Pieces({f"a/{n:03}": "x" * length for n, length in enumerate(lengths)})
    found = parts(corpus)
    assert [p.id for _, part in found for _, p in part] == [f"a/{n:03}" for n in range(len(lengths))]
    for _, part in found:
        assert len(part) == 1 or len("\n\n".join(p.text for _, p in part)) <= DOCUMENT
    for (_, one), (head, following) in pairwise(found):
        length = sum(len(p.text) + 2 for _, p in one)
        assert length + len(following[0][1].text) > DOCUMENT, "no part is too small"
        assert head == found[0][1][0][1].text[:400]


def test_an_empty_corpus_has_empty_enrichments(tmp_path):
    for name in ("headings", "children", "contexts", "questions"):
        made, corpus, _ = build(tmp_path, name, MemoryCorpus({}))
        assert made.entries == 0
        index = store.load(name, corpus, Settings(home=tmp_path))
        assert index.search_dense(np.zeros(64, np.float32), 5).hits == ()
        assert index.search_words("a", 5).hits == ()
