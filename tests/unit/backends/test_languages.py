"""The language of texts, and how BM25 cuts them: stems, or n-grams where words are not spaced."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.term_contributions import Marker, contributions
from core.backends import languages, terms
from core.backends.sparse import BM25Index, write_index
from core.backends.terms import analyzer, from_record, same_length_lower
from core.corpus import index
from core.domain.errors import BadInput
from core.domain.settings import Settings
from core.domain.types import Passage
from tests.fakes import HashEmbedder

GERMAN = "Sie können Ihr Abonnement zum Ende des Monats kündigen. Die Kündigung ist im Konto möglich."
ENGLISH = "You can return the goods within 30 days if they are in the box that we sent to you."
CHINESE = "您可以随时在账户中取消订阅，取消后不再扣款。"
TEXTS = {
    "german": GERMAN,
    "english": ENGLISH,
    "chinese": CHINESE,
    "japanese": "返品は三十日以内に可能です。領収書を保管してください。",
    "korean": "구독은 언제든지 계정에서 취소할 수 있습니다.",
    "thai": "คุณสามารถยกเลิกการสมัครสมาชิกได้ตลอดเวลา",
    "french": "Vous pouvez annuler votre abonnement à tout moment dans votre compte client.",
    "spanish": "Puede cancelar su suscripción en cualquier momento desde la cuenta de cliente.",
    "portuguese": "Pode cancelar a sua assinatura a qualquer momento na sua conta de cliente.",
    "italian": "Si può annullare il suo abbonamento in qualsiasi momento e non si paga più nulla.",
    "dutch": "U kunt uw abonnement op elk moment opzeggen via uw account en het geld komt terug.",
    "danish": "Du kan til enhver tid opsige dit abonnement på din konto, og pengene bliver betalt af os.",
    "norwegian": "Du kan når som helst si opp abonnementet ditt på kontoen, og pengene blir betalt av oss.",
    "swedish": "Du kan när som helst säga upp ditt abonnemang och det kostar inte något för dig som är kund.",
    "russian": "Вы можете отменить подписку в любое время в своём личном кабинете, и деньги не возвращаются.",
    "turkish": "Aboneliğinizi istediğiniz zaman hesabınızdan iptal edebilirsiniz ve bu işlem için ücret yok.",
    "greek": "Μπορείτε να ακυρώσετε τη συνδρομή σας οποιαδήποτε στιγμή.",
    "arabic": "يمكنك إلغاء اشتراكك في أي وقت من حسابك.",
    "hindi": "आप किसी भी समय अपनी सदस्यता रद्द कर सकते हैं।",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_passage_tells_its_language(name):
    assert languages.language(TEXTS[name]) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "E_CARD_42",
        "for (int i = 0; i < n; i++) { total += a[i]; }",
        "žluťoučký kůň",
        "Hon. Beyersdorf Hon. Campbell Hon. Krieg Hon. Gizzi Hon. Gutierrez Hon. Healy",
        "val a = e + i; val o = a; val al = a(e)",
        "int x = d(n, y); int dis = d(x, ix, y, iy)",
    ],
)
def test_what_is_not_clear_has_no_language(text):
    assert languages.language(text) is None


CODES = [f"ERR_{n} return refund parcel box {n}" for n in range(32)]
ITALIAN = TEXTS["italian"]


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        ([], "english"),
        (["42"], "english"),
        ([GERMAN], "german"),
        ([ENGLISH, ENGLISH, GERMAN], "english+german"),  # each passage by its own: nothing is left to choose
        ([*CODES, ITALIAN], "english/italian"),
        ([*CODES, ITALIAN, ITALIAN], "english/italian"),
        ([*CODES[:10], *[ITALIAN] * 8], "italian+english"),
        ([*CODES[:10], *[ITALIAN] * 10], "italian"),
        ([*CODES[:2], *[ENGLISH] * 60, *[GERMAN] * 30, *[CHINESE] * 2], "english+german/chinese"),
    ],
)
def test_unclear_passages_are_cut_by_languages_with_evidence(texts, name):
    assert languages.of_corpus(texts).name == name


def test_the_languages_of_a_corpus_are_counted():
    found = languages.of_corpus([ENGLISH] * 6 + [GERMAN] * 3 + ["42", "Привет, мир"])
    assert dict(found.passages) == {"english": 6, "german": 3}
    assert (found.unclear, found.foreign) == (2, 1)


@given(
    st.lists(st.sampled_from([*CODES[:3], *TEXTS.values(), "退货政策 42 退货", "Kündigung"]), max_size=40),
    st.sampled_from(list(TEXTS)),
)
def test_a_passage_in_another_language_changes_no_other_passage(texts, other):
    """One passage in a language that no other passage has."""
    texts = [text for text in texts if languages.language(text) != other]
    before = analyzer(languages.of_corpus(texts).name)
    after = analyzer(languages.of_corpus([*texts, TEXTS[other]]).name)
    assert [after.terms(text) for text in texts] == [before.terms(text) for text in texts]


def test_one_sentence_in_another_language_does_not_turn_stemming_off(tmp_path):
    corpus = build(tmp_path, [*CODES, ITALIAN])
    alone = build(tmp_path / "alone", CODES)
    for question in ("returned refunds", "parcels"):
        assert found(corpus, question) == found(alone, question) != []
    assert found(corpus, "annullare abbonamenti") == ["32.txt"]


@pytest.mark.parametrize(
    ("text", "known", "language"),
    [
        ("Wie kündige ich?", ["english", "german"], "german"),
        ("how do I cancel", ["english", "german"], "english"),
        ("Kündigung", ["english", "german"], None),
        ("如何取消订阅？", ["english", "german"], "chinese"),
    ],
)
def test_a_question_is_told_among_the_languages_of_its_corpus(text, known, language):
    assert languages.among(text, known) == language


def test_a_change_of_the_rules_changes_the_record(monkeypatch):
    """The record decides the fingerprint of every index: see `core.corpus.build.read`."""
    before = analyzer("english").record()
    monkeypatch.setattr(terms, "RULES", 0)
    assert analyzer("english").record() != before


@pytest.mark.parametrize("language", ["english", "english+german", "chinese"])
def test_identifiers_are_found_by_their_parts(language):
    made = analyzer(language, identifiers=True)
    text = "Call getUserById with user_id 用户 or X9000 at HTTPServer, FY2022; plain Words stay"
    terms = made.terms(text)
    assert {"getuserbyid", "get", "user", "id", "user_id", "9000", "http", "server", "2022"} <= set(terms)
    assert "words" in terms or "word" in terms
    assert sorted(terms) == sorted(term for _, term in made.words(text))
    assert from_record(json.loads(json.dumps(made.record()))) == made
    assert "user" not in analyzer(language).terms("getUserById")


@pytest.mark.parametrize(
    "name", ["english+german", "english/italian", "chinese", "thai", "none", "english+chinese"]
)
def test_a_record_is_read_as_it_was_written(name):
    made = analyzer(name)
    assert from_record(json.loads(json.dumps(made.record()))) == made


@pytest.mark.parametrize(
    ("language", "text", "terms"),
    [
        ("chinese", "退货政策 ABC-12", "退 退货 货 货政 政 政策 策 abc 12"),
        ("japanese", "返品ポリシー", "返 返品 品 品ポ ポリ リシ シー"),
        ("thai", "ยกเลิก", "ยกเ กเล เลิ ลิก"),
        ("korean", "취소 할", "취소 할"),
        ("english", "our 退货政策 policies", "our 退 退货 货 货政 政 政策 策 polici"),
    ],
)
def test_unspaced_text_becomes_ngrams_in_every_language_and_other_words_stay(language, text, terms):
    assert analyzer(language).terms(text) == terms.split()


def test_hindi_words_are_not_cut_at_their_vowel_signs():
    assert [word for word, _ in analyzer("hindi").words("हिन्दी में")] == ["हिन्दी", "में"]


def test_words_of_a_mixed_corpus_are_cut_by_the_language_of_the_text():
    mixed = analyzer("english+german")
    assert "kundig" in mixed.terms(GERMAN)
    assert mixed.terms("Kündigung") == ["kündigung", "kundig"]  # not clear: by both
    assert analyzer("english/german").terms("Kündigung") == ["kündigung"]


def test_questions_are_cut_by_their_language_and_the_usual_ones():
    mixed = analyzer("english+german").questions
    assert mixed.terms("Wie kündige ich?") == ["kundig"]
    assert mixed.terms("how they returned the goods")[-1] == "good"
    assert mixed.terms("Kündigung") == ["kündigung", "kundig"]
    assert analyzer("english/german").questions.terms("Wie kündige ich?") == ["kundig", "kündige"]


@given(
    st.sampled_from([*TEXTS, "english/german", "english+german", "german+chinese+thai", "chinese+thai"]),
    st.text() | st.sampled_from([*TEXTS.values()]),
)
def test_places_are_where_the_words_stand(name, text):
    cut = analyzer(name)
    places = list(cut.places(text))
    assert all(same_length_lower(text)[start:stop] == word for start, stop, word, _ in places)
    assert [term for *_, terms in places for term in terms] == cut.terms(text)


def test_an_unknown_language_is_refused_with_those_there_are():
    with pytest.raises(BadInput, match=r"klingon.*auto, none.*chinese.*german"):
        analyzer("klingon")
    with pytest.raises(BadInput, match="klingon"):
        analyzer("english+klingon")


def build(tmp_path, texts, **options):
    folder = tmp_path / "documents"
    folder.mkdir(exist_ok=True, parents=True)
    for n, text in enumerate(texts):
        (folder / f"{n}.txt").write_text(text, encoding="utf-8")
    settings = Settings(home=tmp_path / "home", embedder="hash")
    return index.build("mine", folder, settings=settings, embedder=HashEmbedder(), **options)


def found(corpus, text):
    return [hit.passage.doc_id for hit in corpus.search_sparse(text, 10)]


@pytest.mark.parametrize(
    ("language", "other", "question"),
    [
        ("german", "Die Ware ist da und wird mit der Post an Sie geschickt.", "Wie kündige ich?"),
        ("chinese", "您可以在三十天内退货。退货时请保留原包装和收据。", "如何取消订阅？"),
        ("thai", "สินค้าจะถูกส่งทางไปรษณีย์ภายในสามวัน", "ยกเลิกอย่างไร"),
        ("japanese", "配送には三日かかります。", "返品できますか"),
    ],
)
def test_the_language_is_found_when_a_corpus_is_indexed(tmp_path, language, other, question):
    corpus = build(tmp_path, [TEXTS[language], other])
    assert corpus.info.language == language
    assert any(language.title() in note for note in corpus.info.notes)
    assert found(corpus, question)[0] == "0.txt"
    second = [hit.passage.doc_id for hit in corpus.search_sparse(question, 10, "rank-bm25")]
    assert second == found(corpus, question)


def test_a_corpus_of_several_languages_answers_in_each(tmp_path):
    corpus = build(tmp_path, [GERMAN, ENGLISH, CHINESE])
    assert sorted(corpus.info.language.split("+")) == ["chinese", "english", "german"]
    assert found(corpus, "Wie kündige ich?") == ["0.txt"]
    assert found(corpus, "returning goods") == ["1.txt"]
    assert found(corpus, "如何取消订阅？") == ["2.txt"]


def test_english_documents_have_the_index_they_always_had(tmp_path):
    """Found or given, English is English: the same fingerprint, and nothing is said of it."""
    one, other = build(tmp_path, [ENGLISH]), build(tmp_path, [ENGLISH], language="english")
    assert (one.info.language, one.info.notes) == ("english", ())
    assert one.fingerprint == other.fingerprint


def test_why_no_score_is_above_zero(tmp_path):
    corpus = build(tmp_path, [GERMAN])
    why = corpus.why_no_words("how do I cancel")
    assert all(part in why for part in ("cancel", "every BM25 score is 0", "looks English", "German"))
    assert corpus.why_no_words("die der das") == "the question has only stop words of German"
    assert corpus.why_no_words("?") == "the question has no word of two letters or more"


@pytest.mark.parametrize(
    ("name", "question", "text"),
    [("chinese", "取消订阅", CHINESE), ("english+german", "Kündigung", GERMAN)],
)
def test_parts_add_up_and_marks_are_pieces_of_the_text(tmp_path, name, question, text):
    write_index([text, ENGLISH], tmp_path / "bm25", analyzer(name))
    made = BM25Index(tmp_path / "bm25", 2)

    class Words:
        analyzer = made.analyzer
        terms = staticmethod(made.terms)

        @staticmethod
        def explain(asked, _id):
            return made.explain(asked, 0)

    parts = contributions(Words(), question, Passage("0", "d", "", text))
    assert sum(part.part for part in parts) == pytest.approx(float(made.scores(question)[0]), rel=1e-5)
    pieces = list(Marker(question, (), made.analyzer).pieces(text))
    assert "".join(piece for piece, _ in pieces) == text
    assert any(kind == "asked" for _, kind in pieces)
