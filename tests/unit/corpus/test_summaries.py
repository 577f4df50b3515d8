"""Trees of summaries: groups, extracted and written summaries, and the search of all levels at once."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.corpus.enrichments import store
from core.corpus.enrichments.summaries import EXTRACT, GROUP, TOP, extract, grouped
from core.domain.errors import ModelFailed
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import FakeEngine, MemoryCorpus, ScriptedLLM

WORDS = ["customs", "parcel", "refund", "invoice", "warranty", "vase", "crushed", "order", "label", "courier"]
TEXTS = {
    f"p{at:03}:0-9": f"The {WORDS[at % 10]} of number {at}. Its {WORDS[at // 10]} counts." for at in range(90)
}


def build(tmp_path, name, texts=TEXTS, llm=None):
    corpus = MemoryCorpus(texts)
    made = store.build(
        name, corpus, settings=Settings(home=tmp_path), llm=llm or ScriptedLLM({}), embedder=corpus.embedder
    )
    return made, corpus, store.load(name, corpus, Settings(home=tmp_path))


@given(st.integers(1, 60), st.integers(0, 5))
@settings(max_examples=10)
def test_groups_take_each_row_once_and_the_same_ones_again(count, seed):
    vectors = np.random.default_rng(seed).standard_normal((count, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    groups = grouped(vectors)
    assert sorted(np.concatenate(groups).tolist()) == list(range(count))
    assert len(groups) <= -(-count // GROUP)
    assert [group.tolist() for group in grouped(vectors)] == [group.tolist() for group in groups]


def test_groups_are_what_lies_together():
    centres = np.eye(4, 16, dtype=np.float32)
    noise = np.random.default_rng(0).standard_normal((28, 16)).astype(np.float32)
    vectors = np.repeat(centres, 7, axis=0) + 0.05 * noise
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert {tuple(group.tolist()) for group in grouped(vectors)} == {
        tuple(range(at, at + 7)) for at in range(0, 28, 7)
    }


def test_an_extract_is_the_sentences_with_most_of_what_counts():
    texts = {
        "a:0-9": "Customs duty is due. Birds sing.",
        "b:0-9": "Customs hold parcels. Duty is due at customs.",
    }
    corpus = MemoryCorpus(texts | {f"z{at}:0-9": "Nothing of it is here." for at in range(9)})
    made = extract(corpus, list(texts.values()))
    assert "customs" in made.lower()
    assert made.index("Duty is due at customs.") > made.index("Customs hold parcels.")  # in their order
    assert "Customs duty is due." not in made  # which says nothing that the last one does not
    assert extract(corpus, ["", "?"]) == ""
    assert len(extract(corpus, ["word " * 30 + f"n{at}." for at in range(40)])) <= EXTRACT


def test_each_passage_has_a_key_on_each_level(tmp_path):
    made, corpus, index = build(tmp_path, "extracts")
    counts = Counter(index._owners.tolist())
    assert set(counts) == set(range(corpus.size))
    assert len(set(counts.values())) == 1
    by_text = {}
    for text, row in zip(index._shown, index._owners.tolist(), strict=True):
        by_text.setdefault(text, set()).add(row)
    assert len(by_text) < corpus.size / 2
    assert made.llm is None
    few, _, none = build(tmp_path / "few", "extracts", dict(list(TEXTS.items())[:TOP]))
    assert (few.entries, none.size) == (0, 0)


def test_a_group_whose_summary_failed_is_counted(tmp_path):
    replies = iter(range(1000))

    def summary(request):
        assert "Passages:" in request.messages[-1].content
        if next(replies) == 1:
            raise ModelFailed("busy")
        return f"Parcels and customs. {len(request.messages[-1].content)}"

    llm = ScriptedLLM({"summary": summary})
    made, corpus, index = build(tmp_path, "summaries", llm=llm)
    assert made.spent.calls == len(llm.requests) >= corpus.size // GROUP
    assert any("1 of" in note and "have no summary" in note for note in made.notes)
    assert 0 < len(set(index._owners.tolist())) < corpus.size
    assert all(text.startswith("Parcels and customs.") for text in index._shown)


def test_the_tree_is_searched_as_by_brute_force(tmp_path):
    _, corpus, index = build(tmp_path, "extracts")
    vector = corpus.embedder.embed_query("customs invoice of number 12")
    own = corpus.vectors(range(corpus.size)) @ vector
    best = own.copy()
    for row, score in zip(index._owners.tolist(), (index._vectors @ vector).tolist(), strict=True):
        best[row] = max(best[row], score)
    engine = FakeEngine(tmp_path / "engine", texts=TEXTS)
    store.build("extracts", engine.fakes["tiny"], settings=engine.settings, embedder=corpus.embedder)
    (result,) = engine.ask(
        Request(Query("customs invoice of number 12"), "tiny", ("raptor_extracts",))
    ).results
    assert (result.status, result.error) == ("ok", None)
    rows = [corpus.row(hit.passage.id) for hit in result.hits]
    wanted = sorted(range(corpus.size), key=lambda row: (-best[row], -own[row], row))
    assert [best[row] for row in rows] == pytest.approx([best[row] for row in wanted], abs=1e-6)
    assert [hit.score for hit in result.hits] == pytest.approx([best[row] for row in rows], abs=1e-6)
    brought = result.spans[-1].output.keys
    assert brought
    assert set(brought) == {
        h.passage.id
        for h in result.hits[:20]
        if best[corpus.row(h.passage.id)] > own[corpus.row(h.passage.id)] + 1e-6
    }
