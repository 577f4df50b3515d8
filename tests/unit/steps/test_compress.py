"""Contextual compression: what is dropped and kept, what the model is shown, and what is said about it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from semantic_text_splitter import TextSplitter

from core.corpus.enrichments.keys import SIZE
from core.domain.errors import ModelFailed, Unavailable
from core.domain.needs import Need
from core.domain.types import Query
from core.engine.request import Request
from core.evaluation.labels_file import survives
from core.routes.registry import routes
from core.steps.refine import cut, numbers, tokens
from tests import asking
from tests.asking import ids, span
from tests.fakes import FakeEngine, HashEmbedder, ScriptedLLM

LONG = (
    "Crushed boxes are reported within two days by the customer who received the parcel at home.\n\n"
    "The warehouse in the harbour was built of red brick long before any of us had worked there.\n\n"
    "Photos of all six sides of the crushed box have to be attached to the report by the customer."
)
TEXTS = {
    "crushed:0-300": LONG,
    "customs:0-80": "Customs may hold a parcel until the commercial invoice has been supplied.",
    "moon:0-40": "Tides follow lunar phases everywhere.",
}
QUESTION = Query("Who has to report crushed boxes with photos?")


def ask(tmp_path, replies=None, answers="none", **parameters):
    options = {"texts": TEXTS}
    return asking.ask(tmp_path, "compress", QUESTION, replies, answers=answers, options=options, **parameters)


def cosine(text, other):
    first, second = HashEmbedder().embed([text, other])
    return float(first @ second)


def test_passages_below_the_floor_are_dropped_and_told_but_stay_in_the_ranking(tmp_path):
    result, llm = ask(tmp_path, floor=0.2, strip_floor=-1)
    plain = FakeEngine(tmp_path, texts=TEXTS).ask(Request(QUESTION, "tiny", ("hybrid_rrf",))).results[0]
    near = span(result, "drop passages far from the question")
    expected = {id: cosine(text, QUESTION.text) for id, text in TEXTS.items()}
    assert near.output.cosines == pytest.approx(expected, abs=1e-6)
    kept = [id for id in ids(plain) if expected[id] >= 0.2]
    assert 0 < len(kept) < len(TEXTS)
    assert [id for id, _ in near.hits] == kept
    assert ids(result) == kept + [id for id in ids(plain) if id not in kept]
    assert not llm.requests


@pytest.mark.parametrize("made", [True, False], ids=["pieces of the corpus", "embedded now"])
def test_strips_are_kept_from_the_floor_on_and_each_passages_best_always(tmp_path, monkeypatch, made):
    pieces = TextSplitter(SIZE).chunks if made else cut
    embedded = []
    if not made:
        monkeypatch.setattr(FakeEngine, "enrichment", _no_pieces)
    engine = FakeEngine(tmp_path, texts=TEXTS)
    embed = engine.fakes["tiny"].embedder.embed
    engine.ask(Request(QUESTION, "tiny", ("compress",)))  # pieces are made and opened by the first question
    monkeypatch.setattr(
        engine.fakes["tiny"].embedder, "embed", lambda texts: embedded.extend(texts) or embed(texts)
    )
    result = engine.ask(Request(QUESTION, "tiny", ("compress",), {"compress": {"floor": -1}})).results[0]
    told = span(result, "keep the strips that matter")
    assert told.attributes["embedded"].startswith("with the corpus" if made else "now: no pieces")
    assert (set(embedded) == {QUESTION.text}) is made
    assert {strip.id for strip in told.output.sentences} == set(TEXTS)
    for id, text in TEXTS.items():
        own = [strip for strip in told.output.sentences if strip.id == id]
        assert [strip.text for strip in own] == pieces(text)
        scores = [cosine(f"{id.title()} {piece}", QUESTION.text) for piece in pieces(text)]
        assert [strip.score for strip in own] == pytest.approx(scores, abs=1e-6)
        for strip in own:
            best = strip.score == max(other.score for other in own)
            assert strip.kept is (strip.score >= 0.3 or best)
    assert {strip.kept for strip in told.output.sentences} == {True, False}


def _no_pieces(_engine, _corpus, _need):
    raise Unavailable("no pieces")


def test_the_span_tells_what_was_saved(tmp_path):
    result, _ = ask(tmp_path, floor=0.2)
    told = span(result, "write the excerpts")
    kept = told.output.excerpts
    assert "red brick" not in kept["crushed:0-300"]
    before = sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in TEXTS.values())
    after = sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in kept.values())
    assert (told.output.tokens_before, told.output.tokens_after) == (before, after)
    assert told.attributes["counted"] == "words and punctuation marks"
    assert [link.span for link in told.links if link.arg == "strips"] == [
        span(result, "keep the strips that matter").id
    ]


@pytest.mark.parametrize("parameters", [{"floor": 1}, {"how": "llm", "floor": -1}])
def test_where_nothing_is_kept_the_passages_stay_whole_and_it_is_said(tmp_path, parameters):
    result, _ = ask(tmp_path, {"sentences": "None."}, **parameters)
    told = span(result, "write the excerpts")
    assert told.output.excerpts == TEXTS
    assert told.output.tokens_before == told.output.tokens_after
    assert "stay whole" in told.attributes["note"]


def test_the_answer_is_written_from_what_was_kept_and_from_nothing_else(tmp_path):
    result, llm = ask(tmp_path, {"answer": "The customer [1]."}, answers="all", floor=0.2)
    check, request = llm.requests
    sent = request.messages[-1].content
    assert check.messages[-1].content.split("Question:")[0] == sent.split("Question:")[0]
    assert "Photos of all six sides" in sent
    for left_out in ("red brick", "Tides"):
        assert left_out not in sent
    assert (result.answer, result.citations) == ("The customer [1].", ("crushed:0-300",))


def test_an_answer_written_later_is_written_from_the_same_excerpts(tmp_path):
    (tmp_path / "now").mkdir()
    _, at_once = ask(tmp_path / "now", {"answer": "Yes [1]."}, answers="all", floor=0.2)
    llm = ScriptedLLM({"answer": "Yes [1]."})
    engine = FakeEngine(tmp_path, llm=llm, texts=TEXTS)
    run = engine.ask(Request(QUESTION, "tiny", ("compress", "hybrid_rrf"), {"compress": {"floor": 0.2}}))
    assert not llm.requests
    added = engine.add_answer(run, "compress")
    assert added.results[0].answer == "Yes [1]."
    assert llm.requests == at_once.requests
    assert run.results[1].basis.excerpts == {}
    engine.add_answer(run, "hybrid_rrf")
    assert "red brick" in llm.requests[-1].messages[-1].content


# the model chooses


def reply_for(**by_word):
    """A reply by a word of the numbered sentences."""
    return lambda request: next(
        (reply for word, reply in by_word.items() if word in request.messages[-1].content), "none"
    )


def test_the_model_chooses_sentences_by_number_a_passage_at_a_time(tmp_path):
    result, llm = ask(tmp_path, {"sentences": reply_for(Crushed="1, 3.")}, how="llm", floor=-1)
    assert (result.status, result.error) == ("ok", None)
    assert len(llm.requests) == len(TEXTS)
    sent = next(r.messages[-1].content for r in llm.requests if "Crushed" in r.messages[-1].content)
    listed = sent.split("<passage 1>\n")[1].split("\n</passage 1>")[0].splitlines()
    assert listed == [f"{n}. {piece}" for n, piece in enumerate(cut(LONG), 1)]
    assert QUESTION.text in sent
    told = span(result, "write the excerpts").output.excerpts
    assert told == {"crushed:0-300": f"{cut(LONG)[0]} {cut(LONG)[2]}"}
    assert ids(result)[0] == "crushed:0-300"
    assert set(ids(result)) == set(TEXTS)
    strips = span(result, "ask for the sentences that help").output.sentences
    assert [(s.score, s.kept) for s in strips if s.id == "crushed:0-300"] == [
        (None, True),
        (None, False),
        (None, True),
    ]


def test_an_unusable_reply_is_asked_for_again_and_then_the_passage_stays_whole(tmp_path):
    replies = {"sentences": reply_for(Crushed="The first one helps.")}
    result, llm = ask(tmp_path, replies, how="llm", floor=-1)
    firmer = [r for r in llm.requests if r.prompt == "sentences/2/firmer"]
    assert len(firmer) == 1
    assert "numbers from 1 to 3 separated by commas, or none" in firmer[0].messages[0].content
    whole = span(result, "ask for the sentences that help").attributes["kept whole"]
    assert list(whole) == ["crushed:0-300"]
    assert "The first one helps." in whole["crushed:0-300"]
    assert span(result, "write the excerpts").output.excerpts["crushed:0-300"].split() == LONG.split()


def test_a_failed_call_keeps_its_passage_whole_and_all_failed_is_a_failure(tmp_path):
    def some(request):
        if "Crushed" in request.messages[-1].content:
            return "2"
        raise ModelFailed("the endpoint answered HTML")

    result, _ = ask(tmp_path, {"sentences": some}, how="llm", floor=-1)
    assert result.status == "ok"
    whole = span(result, "ask for the sentences that help").attributes["kept whole"]
    assert set(whole) == {"customs:0-80", "moon:0-40"}
    assert set(whole.values()) == {"the endpoint answered HTML"}
    assert span(result, "write the excerpts").output.excerpts["moon:0-40"] == TEXTS["moon:0-40"]
    result, _ = ask(tmp_path, {"sentences": ModelFailed("the endpoint answered HTML")}, how="llm", floor=-1)
    assert result.status == "failed"
    assert "none of 3 passages could be compressed: the endpoint answered HTML" in result.error


def test_without_a_model_only_the_models_way_is_unavailable(tmp_path):
    for how, status in (("embedding", "ok"), ("llm", "unavailable")):
        llm = ScriptedLLM(missing="no model is here; run make setup")
        engine = FakeEngine(tmp_path, llm=llm, texts=TEXTS)
        result = engine.ask(Request(QUESTION, "tiny", ("compress",), {"compress": {"how": how}})).results[0]
        assert result.status == status
        assert (result.error or "") == ("" if how == "embedding" else "no model is here; run make setup")
    route = routes()["compress"]
    assert route.needed(route.settle({})) == (Need.BM25,)
    assert route.needed(route.settle({"how": "llm"})) == (Need.BM25, Need.LLM)


def test_a_route_that_its_parameters_make_ask_the_model_waits_for_those_that_do_not(tmp_path):
    for how, first in (("embedding", "compress"), ("llm", "dense")):
        engine = FakeEngine(tmp_path, texts=TEXTS, llm=ScriptedLLM({"sentences": "1"}))
        run = engine.ask(Request(QUESTION, "tiny", ("compress", "dense"), {"compress": {"how": how}}))
        assert min(run.results, key=lambda result: result.start_ms).route == first


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("none", ()),
        (" None. ", ()),
        ("3, 1", (1, 3)),
        ("1,2 ,3.", (1, 2, 3)),
        ("", None),
        ("4", None),
        ("1, 4", None),
        ("1 and 2", None),
        ("-1", None),
        ("1.5", None),
        ("1,", None),
        ("٣", None),
        ("[1]", None),
        ("9" * 5000, None),
    ],
)
def test_replies_are_read_strictly(reply, expected):
    assert numbers(reply, 3) == expected


@given(st.text(max_size=30), st.integers(0, 12))
def test_any_reply_gives_numbers_in_range_or_nothing(reply, count):
    found = numbers(reply, count)
    assert found is None or all(1 <= number <= count for number in found)


@given(st.sets(st.integers(1, 40)), st.randoms())
def test_a_list_of_numbers_in_any_order_is_read_back(wanted, random):
    listed = random.sample(sorted(wanted), len(wanted))
    assert numbers(", ".join(map(str, listed)) or "none", 40) == tuple(sorted(wanted))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=800))
def test_strips_hold_all_of_a_text_but_white_space(text):
    assert "".join("".join(cut(text)).split()) == "".join(text.split())


def test_tokens_are_words_and_marks():
    assert tokens("Don't pay EUR 15.00!") == 9  # Don ' t pay EUR 15 . 00 !
    assert tokens("  ") == 0


# labels


def test_a_quote_survives_whole_or_by_its_best_sentence():
    quote = f"{cut(LONG)[0]}\n\n{cut(LONG)[1]}\n\n{cut(LONG)[2]}"
    for quotes, text, kept in (
        ([quote], LONG.replace("\n\n", "  "), True),
        ([quote], cut(LONG)[0], False),
        ([quote], "So: " + max(cut(LONG), key=len), True),
        (["six  sides"], "all six\nsides of it", True),
        (["Six sides"], "six sides", False),
        (["", " "], "anything", False),
        ([], "x", False),
    ):
        assert survives(quotes, text) is kept, (quotes, text)


@given(st.lists(st.sampled_from(cut(LONG)), max_size=3), st.sampled_from(cut(LONG)))
def test_single_sentences_survive_where_they_were_kept(quotes, kept):
    assert survives(quotes, kept) is (kept in quotes)
