"""What is warned of: languages that the embedder was not trained for, and text that it does not read."""

import json

import pytest

from core.backends import reading_limits
from core.backends.embedder import load_embedder
from core.cli import corpora
from core.corpus import cautions, index, manifest
from core.corpus.enrichments import store
from core.corpus.types import Unread
from core.domain import settings as settings_module
from core.domain.settings import Settings
from core.engine import engine as engine_module
from core.engine.doctor import examine
from core.store import Store

pytestmark = pytest.mark.slow  # corpora by a real embedder
MINILM, E5 = "all-MiniLM-L6-v2", "multilingual-e5-small-q4"
QUESTIONS = {
    "arabic": "كيف أعيد المنتج بعد ثلاثين يومًا؟",
    "chinese": "如何在三十天后退货？",
    "russian": "Как вернуть товар и получить деньги, если уже прошло тридцать дней?",
}
TEXTS = {
    "arabic": [
        "يمكنك إعادة أي منتج خلال ثلاثين يومًا من تاريخ الاستلام.",
        "تصل الشحنات إلى المدن الكبرى في يومي عمل.",
        "لا نشحن البطاريات جوًا.",
    ],
    "chinese": ["商品可以在收货后三十天内退货。", "大城市的包裹两个工作日送达。", "电池不能空运。"],
    "russian": [
        "Вы можете вернуть товар в течение тридцати дней, если он не был в употреблении.",
        "Посылки в большие города приходят за два дня, но не в выходные.",
        "Мы не отправляем батареи самолётом, потому что это запрещено.",
    ],
    "english": [
        "You can return the goods within 30 days if they are in the box that we sent to you.",
        "The parcels to the large cities are there in two days, but not on a weekend.",
    ],
}


def built(folder, texts, embedder=MINILM, **options):
    source = folder / "documents"
    source.mkdir()
    for n, text in enumerate(texts):
        (source / f"{n}.txt").write_text(text, encoding="utf-8")
    return index.build("mine", source, settings=Settings(home=folder / "home", embedder=embedder), **options)


@pytest.mark.parametrize(
    ("embedder", "language", "known"),
    [
        (MINILM, "english", True),
        (MINILM, "arabic", False),
        ("all-MiniLM-L6-v2-int8", "german", False),
        ("intfloat/multilingual-e5-base", "russian", None),
        (E5, "chinese", True),
        ("jina-v5-nano", "german", None),  # its card lists fifteen languages, which are not known here
        ("some/model", "german", None),
    ],
)
def test_which_languages_an_embedder_was_trained_for(embedder, language, known):
    assert reading_limits.reads(embedder, language) is known


@pytest.mark.parametrize("language", QUESTIONS)
def test_a_corpus_in_a_language_that_minilm_lacks_is_warned_of_with_a_model_that_has_it(tmp_path, language):
    info = built(tmp_path, TEXTS[language]).info
    (caution,) = cautions.of_corpus(info)
    assert (caution.id, caution.share) == ("embedder-language", 1.0)
    assert E5 in caution.fix
    assert "index mine" in caution.fix
    (asked,) = cautions.of_questions([QUESTIONS[language]], info)
    assert asked.id == "question-language"
    assert language.title() in asked.text


def test_english_documents_and_a_few_others_are_not_warned_of(tmp_path):
    info = built(tmp_path, [*TEXTS["english"] * 20, TEXTS["russian"][0], "42"]).info
    assert manifest.read(tmp_path / "home" / "indexes" / "mine" / info.fingerprint)[0] == info
    assert (dict(info.languages), info.unclear) == ({"english": 40, "russian": 1}, 1)
    assert cautions.of_corpus(info) == ()
    assert cautions.of_questions(["how do I return the goods?"], info) == ()
    assert cautions.of_questions(["parcel"], info) == ()
    assert [one.id for one in cautions.of_questions([QUESTIONS["russian"]], info)] == ["question-language"]


@pytest.mark.model
def test_the_model_that_is_named_finds_what_minilm_is_warned_of(tmp_path):
    """The first passage answers the question."""
    language = "chinese"
    embedder = load_embedder(E5, settings=Settings(home=tmp_path))
    corpus = built(tmp_path, TEXTS[language], E5)
    assert cautions.of_corpus(corpus.info) == ()
    found = corpus.search_dense(embedder.embed_query(QUESTIONS[language]), 1)
    assert found[0].passage.doc_id == "0.txt"


def test_text_behind_what_the_embedder_reads_is_counted(tmp_path):
    """Against the tokenizer of transformers: 254 tokens of a text and two special ones are read."""
    from transformers import AutoTokenizer

    from core.backends.minilm import weights

    short, long = "One parcel came.", "The parcel came late again. " * 80
    corpus = built(tmp_path, [short, long], chunking=index.Chunking(0))
    tokenizer = AutoTokenizer.from_pretrained(weights(tmp_path).parent)
    counts = [len(tokenizer(text)["input_ids"]) for text in corpus._store.texts()]
    assert corpus.info.unread == Unread(
        256, sum(counts), max(counts) - 256, 1, sum(map(len, corpus._store.texts()))
    )
    (caution,) = cautions.of_corpus(corpus.info)
    assert caution.id == "unread-text"
    assert caution.share == pytest.approx((max(counts) - 256) / sum(counts))


def test_the_chunk_size_that_is_named_leaves_nothing_unread(tmp_path):
    sentences = [
        f"Parcel {n} came to the shop in box {n * 7} on a Monday and was sent back. " for n in range(90)
    ]
    before = built(tmp_path, ["".join(sentences)], chunking=index.Chunking(3000)).info
    (caution,) = cautions.of_corpus(before)
    size = int(caution.fix.partition("--chunk-size ")[2].split(",")[0])
    settings = Settings(home=tmp_path / "home", embedder=MINILM)
    after = index.build("mine", tmp_path / "documents", settings=settings, chunking=index.Chunking(size)).info
    assert after.unread.unread == 0
    assert cautions.of_corpus(after) == ()


def test_a_multilingual_model_counts_by_its_own_tokenizer():
    assert reading_limits.limit("some/model that is not here") is None
    limit = reading_limits.limit(E5)
    assert limit.tokens == 512
    short, long = limit.count(["one parcel", "one parcel " * 400])
    assert short < 20
    assert long > 512


@pytest.fixture
def call(tmp_path, monkeypatch, call):
    """Run a command line in a home of its own."""
    there = Settings(home=tmp_path / "home")
    made = engine_module.Engine(there, Store(tmp_path / "routescope.sqlite"))
    monkeypatch.setattr(settings_module, "current", lambda: there)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: made)
    return call


def test_index_ask_and_doctor_warn(tmp_path, call):
    source = tmp_path / "documents"
    source.mkdir()
    for n, text in enumerate(TEXTS["russian"]):
        (source / f"{n}.txt").write_text(text, encoding="utf-8")
    code, out, err = call("index", source, "--name", "mine", "--json")
    assert code == 0
    assert [one["id"] for one in json.loads(out)["cautions"]] == ["embedder-language"]
    assert E5 in err
    ask = ("ask", QUESTIONS["russian"], "--corpus", "mine", "--json", "--routes")
    code, out, err = call(*ask, "bm25,hybrid_rrf")
    assert code == 0
    told = json.loads(out)
    assert [one["id"] for one in told["cautions"]] == ["question-language"]
    assert E5 in err
    by_route = {one["route"]: one["found_by"] for one in told["results"]}
    assert by_route["bm25"] is None
    found = by_route["hybrid_rrf"]
    assert found["hits"] == found["words"] + found["vectors"] + found["both"] == 3
    assert json.loads(call(*ask, "bm25")[1])["cautions"] == []
    checks = {one.name: one for one in examine(settings_module.current(), quick=True, note=lambda _: None)}
    assert checks["corpus mine: embedder-language"].state == "warning"
    assert E5 in checks["corpus mine: embedder-language"].fix


def test_all_enrichments_are_those_that_ask_no_language_model(tmp_path):
    named = corpora.enrichment_names("all", Settings(home=tmp_path, sparse_model=""))
    assert "tokens" in named
    assert [name for name in named if store.RECIPES[name].uses_llm] == []
    assert "learned_sparse" not in named
    assert "learned_sparse" in corpora.enrichment_names(
        "all", Settings(home=tmp_path, sparse_model="splade-tiny")
    )


def test_an_evaluation_names_the_routes_that_cannot_run_before_it_asks(tmp_path, call):
    """A BEIR folder, indexed without token vectors."""
    folder = tmp_path / "set"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": f"d{n}", "text": text} for n, text in enumerate(TEXTS["english"])]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "how do I return the goods"}))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td0\t1\n")
    evaluate = ("eval", folder, "--routes", "bm25,late_interaction", "--json")
    _, out, err = call(*evaluate)
    why = json.loads(out)["cannot_run"]
    assert list(why) == ["late_interaction"]
    assert "index set --with tokens" in why["late_interaction"]
    assert err.index("index set --with tokens") < err.index("questions")
    call("index", folder, "--with", "tokens")
    _, out, err = call(*evaluate)
    assert json.loads(out)["cannot_run"] == {}
    assert json.loads(out)["routes"]["late_interaction"]["statuses"]["ok"] == 1


def test_an_enrichment_says_what_its_model_does_not_read(tmp_path):
    corpus = built(tmp_path, ["A parcel came late again. " * 100], chunking=index.Chunking(0))
    settings = Settings(home=tmp_path / "home")
    made = [store.build(name, corpus, settings=settings) for name in ("headings", "tokens", "sentences")]
    assert ["not read" in " ".join(one.notes) for one in made] == [True, True, False]
