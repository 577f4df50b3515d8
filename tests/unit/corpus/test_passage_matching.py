"""Passages of another pipeline, matched to a corpus: against brute force over every passage."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from core.corpus import index
from core.corpus.passage_matching import Matcher, describe, own, words
from core.domain.errors import BadInput
from core.domain.relevance import is_unmatched
from core.domain.types import Passage
from core.engine import returned_corpus
from tests.fakes import HashEmbedder, MemoryCorpus

SAID = (
    "Ask for a return authorization before you send the parcel back to our warehouse",
    "Duty is due for textiles and for glass that come from outside of the customs union",
    "The barcode label is printed by the warehouse and glued to the longest side of the box",
)


@dataclass(frozen=True)
class Returned:
    """What a pipeline gave."""

    doc_id: str = "elsewhere"
    text: str = ""
    id: str | None = None
    start: int | None = None
    end: int | None = None
    title: str | None = None


class Listed(MemoryCorpus):
    """A corpus of given passages, whose offsets are not all 0."""

    def __init__(self, passages):
        super().__init__({})
        self.all = sorted(passages, key=lambda p: p.id)


def chunks(document, *texts):
    """The passages of a document, one behind the other with a space between."""
    at, found = 0, []
    for text in texts:
        found.append(Passage(f"{document}:{at}-{at + len(text)}", document, "", text, at, at + len(text)))
        at += len(text) + 1
    return found


RETURNS = chunks("returns.md", *SAID)
CORPUS = Listed([*RETURNS, *chunks("copy.md", SAID[0])])


def ids(matched):
    return [placed.passage.id for placed in matched.placed]


def test_by_id_then_place_then_text_then_words():
    first, second, third = RETURNS
    asked = [
        Returned("?", first.text, id=first.id),
        Returned("returns.md", second.text[5:], start=second.start + 5, end=second.end),
        Returned("?", f"Labels\n\n{third.text.upper()}!"),
        Returned("returns.md", first.text.replace("parcel", "package").replace("Ask", "Please ask")),
        Returned("?", "Nothing that anybody here has ever written about"),
    ]
    found = Matcher(CORPUS).match(asked)
    assert found.rules == ("id", "offsets", "text", "words", None)
    assert ids(found)[:3] == [first.id, second.id, third.id]
    assert found.repeats == 1, "the fourth is the first again"
    assert is_unmatched(ids(found)[-1])
    assert [placed.at for placed in found.placed] == [0, 1, 2, 4], "at its best rank"
    assert describe([found]) == (
        "4 of 5 passages matched to the corpus: 1 by id, 1 by document and offsets, 1 by text, 1 by shared "
        "words; 1 not in the corpus; 1 returned again, counted at their best rank."
    )


def test_ids_and_offsets_of_other_words_are_not_believed():
    numbered = Listed([Passage("1", "1", "", SAID[0], 0, 9), Passage("2", "2", "", SAID[1], 0, 9)])
    found = Matcher(numbered).match([Returned("1", SAID[1], id="1"), Returned("2", SAID[2], id="2")])
    assert ids(found)[0] == "2", "by its text"
    assert is_unmatched(ids(found)[1])
    assert found.clashes == 2
    assert "2 with an id that the corpus has for other words" in describe([found])
    other = Returned("returns.md", "Something about another matter", start=0, end=RETURNS[0].end)
    assert Matcher(CORPUS).match([other]).rules == (None,), "nor offsets"
    empty = Matcher(CORPUS).match([])
    assert (empty.placed, describe([empty])) == ((), "No passages were returned.")


FIRST, SECOND, _ = RETURNS
WHOLE = Passage("d1", "d1", "", SAID[0], 0, len(SAID[0]))  # a document kept whole
(UNSPACED,) = chunks("jp.md", "返品を送る前に許可番号を申請してください。倉庫の住所は確認メールにあります。")
NO_PLACE = [(None, 5), (5, None), (5, 5), (9, 5), (-3, 5), (10**9, 10**9 + 4)]


@pytest.mark.parametrize(
    ("corpus", "hit", "placed", "rule"),
    [
        (Listed([WHOLE]), Returned("d1", SAID[0][:30], id="d1#chunk-7"), WHOLE.id, "id"),
        (CORPUS, Returned("returns.md", start=FIRST.end - 10, end=SECOND.end), SECOND.id, "offsets"),
        *((CORPUS, Returned("returns.md", SAID[1], start=a, end=b), SECOND.id, "text") for a, b in NO_PLACE),
        (CORPUS, Returned("returns.md", SAID[0]), FIRST.id, "text"),
        (CORPUS, Returned("copy.md", SAID[0]), "copy.md:0-79", "text"),
        (CORPUS, Returned("?", SAID[0]), "copy.md:0-79", "text"),  # the first
        (Listed([UNSPACED]), Returned("?", UNSPACED.text[:20]), UNSPACED.id, "text"),
    ],
)
def test_a_hit_is_placed_by_what_it_says(corpus, hit, placed, rule):
    found = Matcher(corpus).match([hit])
    assert (ids(found), found.rules) == ([placed], (rule,))


def test_a_longer_one_stands_for_each_passage_it_holds():
    whole = " ".join(SAID)
    by_text = Matcher(CORPUS).match([Returned("?", whole)])
    by_place = Matcher(CORPUS).match([Returned("returns.md", start=0, end=len(whole))])
    for found in (by_text, by_place):
        assert ids(found) == [p.id for p in RETURNS]
        assert [p.at for p in found.placed] == [0, 0, 0]
        assert found.spread == 1
        assert "1 longer than a passage" in describe([found])


def test_what_the_corpus_lacks_is_one_passage_whoever_returned_it():
    text = "An offer that is found in no document"
    one, two = own(Returned("web", text, id="7")), own(Returned("web", text.upper(), id="8"))
    assert one.id == two.id != own(Returned("intranet", text)).id
    assert is_unmatched(one.id)
    assert not is_unmatched(RETURNS[0].id)
    assert (one.text, one.doc_id, one.start, one.end) == (text, "web", 0, len(text))


@pytest.mark.parametrize("text", ["", "   ", "—", "\0", "\ud800", "🎉🎉", "a" * 100_000, "ﬁnance ＡＢＣ"])
def test_any_text_is_matched_or_not_without_an_error(text):
    found = Matcher(CORPUS).match([Returned("?", text), Returned("", text, id="", start=-1, end=-1)])
    assert len(found.rules) == 2
    assert all(is_unmatched(id) for id in ids(found))


# What follows is judged by a second implementation, which looks at every passage of the corpus.

vocabulary = st.sampled_from([f"w{n}" for n in range(14)])
texts = st.lists(vocabulary, min_size=1, max_size=14).map(" ".join)
corpora = st.lists(st.lists(texts, min_size=1, max_size=4), min_size=1, max_size=6).map(
    lambda documents: [p for n, own in enumerate(documents) for p in chunks(f"d{n}", *own)]
)


def inside(part, whole):
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


def brute(hit, passages):
    """The passages by the definition: of equal words, of one text in the other, of .8 of the words."""
    theirs, ranked = hit.text.split(), []
    for row, passage in enumerate(passages):
        ours = passage.text.split()
        least = min(len(set(theirs)), len(set(ours)))
        overlap = len(set(theirs) & set(ours)) / least
        equal, same = theirs == ours, passage.doc_id == hit.doc_id
        held = inside(theirs, ours) or inside(ours, theirs)
        if overlap < 0.8 or not (equal or same or least >= 5):
            continue
        long, short = (len(" ".join(side)) + 2 for side in (theirs, ours))
        near = min(long, short) / max(long, short)
        ranked.append(((equal, held, same, 1.0 if held else overlap, near, -row), passage))
    if not ranked:
        return []
    (equal, held, *_), best = max(ranked, key=lambda one: one[0])
    ours = best.text.split()
    if equal or not held or len(" ".join(ours)) > len(hit.text):
        return [best.id]
    least = 1 if best.doc_id == hit.doc_id else 5
    every = [
        p
        for p in passages
        if p.doc_id == best.doc_id and inside(p.text.split(), theirs) and len(set(p.text.split())) >= least
    ]
    return [p.id for p in sorted(every, key=lambda p: (p.start, p.end, p.id))]


@given(corpora, st.lists(st.tuples(st.sampled_from(["d0", "d1", "?"]), texts), min_size=1, max_size=5))
@examples(max_examples=100)
def test_text_is_matched_as_by_looking_at_every_passage(passages, asked):
    corpus = Listed(passages)
    matcher = Matcher(corpus)
    for document, text in asked:
        hit = Returned(document, text)
        found = matcher.match([hit])
        expected = brute(hit, corpus.all)
        assert [id for id in ids(found) if not is_unmatched(id)] == expected
        assert (found.rules[0] is None) == (not expected)


@given(corpora, st.data())
@examples(max_examples=100)
def test_cut_and_changed_texts_are_matched_as_by_looking_at_every_passage(passages, data):
    corpus = Listed(passages)
    found = data.draw(st.sampled_from(corpus.all)).text.split()
    start = data.draw(st.integers(0, len(found) - 1))
    changed = [data.draw(st.sampled_from([word, word, word, "new"])) for word in found[start:]]
    hit = Returned("?", " ".join(changed + data.draw(st.lists(vocabulary, max_size=3))))
    expected = brute(hit, corpus.all)
    assert [id for id in ids(Matcher(corpus).match([hit])) if not is_unmatched(id)] == expected


@given(corpora, st.text(max_size=6))
def test_a_passage_matches_itself(passages, scrap):
    passages = [*passages, Passage("scrap", "scrap", "", scrap, 0, len(scrap))]
    matcher = Matcher(Listed(passages))
    for passage in passages:
        for hit in (
            Returned("?", passage.text, id=passage.id),
            Returned(passage.doc_id, passage.text, start=passage.start, end=passage.end),
            Returned(passage.doc_id, passage.text),
        ):
            if not passage.text.strip() and hit.id is None:
                continue  # it says nothing that could be found
            (placed,) = matcher.match([hit]).placed
            assert placed.rule is not None
            assert words(placed.passage.text) == words(passage.text)


@given(corpora, st.lists(texts, min_size=2, max_size=5), st.randoms())
def test_what_a_hit_is_matched_to_does_not_depend_on_the_others(passages, asked, random):
    corpus = Listed(passages)
    alone = [ids(Matcher(corpus).match([Returned("?", text)])) for text in asked]
    order = list(range(len(asked)))
    random.shuffle(order)
    together = Matcher(corpus).match([Returned("?", asked[at]) for at in order])
    assert ids(together) == list(dict.fromkeys(id for at in order for id in alone[at]))


def built(name, settings):
    return index.build(
        None, returned_corpus.source_of(name, settings), settings=settings, embedder=HashEmbedder()
    )


def test_the_stored_index_gives_the_same(tmp_path, settings):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "returns.txt").write_text("\n\n".join(f"{text}. " * 6 for text in SAID))
    corpus = index.build("shop", folder, settings=settings, embedder=HashEmbedder())
    passages = [passage for _, passage, _ in corpus.everything()]
    assert len(passages) > 1
    by_place = corpus.matcher.match([Returned(p.doc_id, p.text, start=p.start, end=p.end) for p in passages])
    assert [p.passage for p in by_place.placed] == passages
    assert by_place.rules == ("offsets",) * len(passages)
    assert [
        p.passage for p in corpus.matcher.match([Returned("?", p.text) for p in passages]).placed
    ] == passages
    assert corpus.spanning("returns.txt", passages[1].start, passages[1].start + 1) == [passages[1]]
    assert corpus.spanning("no such", 0, 10) == []


def test_passages_of_a_pipeline_make_a_corpus_as_they_come(settings):
    one = Returned("handbook.pdf", SAID[0], id="chunk-1", title="Handbook")
    assert returned_corpus.add("theirs", [one, Returned("faq", SAID[1])], settings) == 2
    corpus = built("theirs", settings)
    assert corpus.by_ids(["chunk-1"])["chunk-1"].title == "Handbook"
    found = corpus.matcher.match([one, Returned("faq", SAID[1])])
    assert found.rules == ("id", "text")
    assert corpus.search_sparse("return authorization", 3)[0].passage.id == "chunk-1"

    assert (
        returned_corpus.add("theirs", [one, Returned("faq", SAID[1]), Returned("faq", SAID[2])], settings)
        == 1
    )
    assert built("theirs", settings).size == 3
    again = Returned("elsewhere", SAID[1], id="1"), Returned("elsewhere", SAID[0], id="1")
    assert returned_corpus.add("other", again, settings) == 2, "one id for two texts is two passages"


def test_what_cannot_make_a_corpus_is_refused(settings, tmp_path):
    with pytest.raises(BadInput, match="built-in"):
        returned_corpus.add("support", [Returned("a", SAID[0])], settings)
    with pytest.raises(BadInput, match="no passage with a text"):
        returned_corpus.add("theirs", [Returned("a", "  ")], settings)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.txt").write_text("mine")
    index.build("mine", tmp_path / "own", settings=settings, embedder=HashEmbedder())
    with pytest.raises(BadInput, match="already the corpus of"):
        returned_corpus.add("mine", [Returned("a", SAID[0])], settings)
