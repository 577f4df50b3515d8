"""Late chunking: vectors of passages read within their documents, against windows written out by hand."""

import json

import numpy as np
import pytest

from core.backends import late
from core.backends.embedder import MINILM
from core.corpus import index
from core.corpus.chunk import Chunking
from core.corpus.enrichments import store
from core.corpus.enrichments.recipe import siblings
from core.corpus.enrichments.within import Late, whole
from core.domain.errors import Unavailable
from core.domain.settings import Settings

_WORDS = "[PAD] [CLS] [SEP] [UNK] depot opens at six return the box within days and ask for a label"
WORDS = _WORDS.split()
TABLE = np.random.default_rng(5).normal(size=(len(WORDS), 8)).astype(np.float32)
READ, SIDE = 16, 3  # tokens that the model reads, and of an overlap on each side
TEXT = " ".join(np.random.default_rng(6).choice(WORDS[4:], 60))

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
mean (int64[n, t] input_ids, int64[n, t] attention_mask) => (float[n, t, 8] out)
<float[{words}, 8] table, int64[1] last = {{2}}, int64[1] middle = {{1}}>
{{
    x = Gather (table, input_ids)
    mask = Cast <to = 1> (attention_mask)
    wide = Unsqueeze (mask, last)
    seen = Mul (x, wide)
    total = ReduceSum (seen, middle)
    count = ReduceSum (wide, middle)
    around = Div (total, count)
    out = Add (x, around)
}}
"""


@pytest.fixture
def tokens(tmp_path, monkeypatch):
    """A model whose state of a token is its row of TABLE and the mean row of all that it reads."""
    import onnx
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    made = onnx.parser.parse_model(MODEL.format(words=len(WORDS)))
    made.graph.initializer.append(onnx.numpy_helper.from_array(TABLE, "table"))
    onnx.save(made, str(tmp_path / "model.onnx"))
    words = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = [("[CLS]", 1), ("[SEP]", 2)]
    words.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    words.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": READ}))
    monkeypatch.setattr(late, "FOLDER", tmp_path)
    monkeypatch.setattr(late, "CONTEXT", SIDE)
    return late.MiniLMTokens(tmp_path / "model.onnx")


def unit(rows):
    mean = np.mean(rows, axis=0)
    return mean / np.linalg.norm(mean)


def rows_of(text):
    return [TABLE[WORDS.index(word) if word in WORDS else 3] for word in text.split()]


def states(text):
    """The state of each word: from the first window in which SIDE words follow it, or the last."""
    rows, size = rows_of(text), READ - 2
    starts = [0]
    while starts[-1] + size < len(rows):
        starts.append(starts[-1] + size - 2 * SIDE)
    found = []
    for at, row in enumerate(rows):
        start = next(one for one in starts if at < one + size - SIDE or one == starts[-1])
        found.append(row + np.mean([TABLE[1], *rows[start : start + size], TABLE[2]], axis=0))
    return found


def part(text, start, end):
    """The vector of the words that begin in a part of a text."""
    first, count = len(text[:start].split()), len(text[start:end].split())
    return unit(states(text)[first : first + count])


class Words:
    """An embedder by TABLE that has MiniLM's name."""

    name, dim = MINILM[0], 8

    def embed_query(self, text):
        return unit(rows_of(text)).astype(np.float32)

    def embed(self, texts):
        return np.stack([self.embed_query(text) for text in texts])


@pytest.mark.parametrize("count", [3, 14, 15, 60])
def test_parts_are_means_of_states_in_overlapping_windows(tokens, count):
    text = " ".join(TEXT.split()[:count])
    cuts = [at + 1 for at, sign in enumerate(text) if sign == " "]
    spans = [(0, len(text)), (0, cuts[0]), (cuts[len(cuts) // 2], len(text)), (len(text), len(text))]
    found, again = tokens.embed_parts([(text, spans), ("", [(0, 0)])])
    for one, span in zip(found[:-1], spans, strict=False):
        np.testing.assert_allclose(one, part(text, *span), atol=1e-5)
    assert not found[-1].any(), "no word is in it"
    assert not again.any()


def test_a_passage_scores_the_mean_of_both_vectors_similarity(tokens, tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "long.txt").write_text(TEXT)
    (docs / "short.txt").write_text("ask for a label")
    settings = Settings(home=tmp_path / "home")
    corpus = index.build(None, docs, settings=settings, chunking=Chunking(60, 12), embedder=Words())
    assert corpus.size > 5
    question, expected = Words().embed_query("return the box"), {}
    for group in siblings(corpus):
        text, spans = whole(group)
        title, _, body = text.partition("\n\n")
        assert title == group[0][1].title
        assert body in (TEXT, "ask for a label"), "what passages share is there once"
        for (row, passage), (start, end) in zip(group, spans, strict=True):
            assert text[start:end] == passage.text
            both = corpus.vectors([row])[0] @ question, part(text, start, end) @ question
            expected[passage.id] = sum(both) / 2
    monkeypatch.setitem(store.RECIPES, "late", Late(lambda _name, *, settings: tokens))
    made = store.build("late", corpus, settings=settings)
    hits = store.load("late", corpus, settings).search_dense(question, corpus.size).hits
    assert made.entries == corpus.size
    assert {hit.passage.id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-5)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_an_embedder_without_token_vectors_is_refused(tmp_path):
    docs, settings = tmp_path / "a.txt", Settings(home=tmp_path / "home")
    docs.write_text("ask for a label")
    other = Words()
    other.name = "hosted"
    corpus = index.build(None, docs, settings=settings, embedder=other)
    with pytest.raises(Unavailable, match="hosted gives no vectors of tokens"):
        store.build("late", corpus, settings=settings)
