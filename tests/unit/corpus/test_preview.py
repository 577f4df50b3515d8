"""A document with the edges of its passages: they tile it and are those that indexing makes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpus import browse as module
from core.corpus import passages as stored
from core.corpus.browse import preview
from core.corpus.chunk import WHOLE, Chunking, spans
from core.corpus.types import Cut, Document
from core.domain.types import Passage

TEXT = st.text(st.sampled_from(list("ab é.\n#-!🙂 \t")), max_size=600)
CHUNKING = st.one_of(st.just(WHOLE), st.builds(Chunking, st.integers(50, 120), st.integers(0, 25)))
NAME = st.sampled_from(["a.md", "a.txt"])


@given(TEXT, CHUNKING, NAME)
def test_segments_tile_every_window(text, chunking, name):
    made = preview(Document(name, "", text), chunking)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW", 70)
        drawn = [segment for at in range(made.windows) for segment in made.window(at)]
    assert "".join(text[s.start : s.end] for s in drawn) == text
    assert all(one.end == two.start for one, two in itertools.pairwise(drawn))
    for segment in drawn:
        holding = {
            n for n, p in enumerate(made.passages, 1) if p.start < segment.end and p.end > segment.start
        }
        assert set(segment.passages) == holding  # no edge of a passage lies inside a segment
        if not holding:
            assert not text[segment.start : segment.end].strip()


@given(text=TEXT, chunking=CHUNKING, name=NAME)
def test_the_passages_are_those_of_an_index(tmp_path_factory, text, chunking, name):
    document = Document(name, "Title", text)
    file = tmp_path_factory.mktemp("index") / "passages.sqlite"
    stored.write([Cut(document, spans(document, chunking))], chunking, file)
    store = stored.PassageStore(file)
    try:
        found = store.document(name)
        assert found is not None
        assert sorted(preview(document, chunking).passages, key=lambda p: p.start) == found[1]
        (listed,) = store.documents()
        assert (listed.id, listed.passages) == (name, len(found[1]))
        least, mean, most = store.lengths()
        made = preview(document, chunking)
        assert (least, most) == (made.shortest, made.longest)
        assert mean == pytest.approx(made.mean)
    finally:
        store.close()


def at(text, *spans):
    return [Passage(str(n), "d", "", text[a:b], a, b) for n, (a, b) in enumerate(spans)]


def test_what_is_cut_off_is_counted(monkeypatch):
    text = "# One\nIt begins here and goes\non. He said “no.” Then 3.5 litres\n## Two\nThe rest."
    edges = [0, *(text.index(word) for word in ("goes", "on. ", "Then", "litres", "The rest")), len(text)]
    monkeypatch.setattr(module, "passages", lambda document, _: at(text, *itertools.pairwise(edges)))
    made = preview(Document("a.md", "", text), Chunking())
    # before "goes" and before "litres"; a line break or a full stop ends the others
    assert (made.inside, made.headed) == ((1, 4), (5,))
    assert preview(Document("a.txt", "", text), Chunking()).headed == ()


def test_lengths_and_what_is_shared(monkeypatch):
    text = "x" * 30
    monkeypatch.setattr(module, "passages", lambda document, _: at(text, (0, 12), (8, 20), (20, 30)))
    made = preview(Document("a.txt", "", text), Chunking(50, 4))
    assert (made.mean, made.longest, made.shortest, made.shared) == (pytest.approx(34 / 3), 12, 10, 4)
    monkeypatch.setattr(module, "WINDOW", 10)
    assert (made.windows, made.window(99)) == (3, made.window(2))
