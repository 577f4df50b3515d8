"""The whole corpus as a prompt: what fits, what is cited, what is kept in the model's cache."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpus import catalogue, index
from core.domain.errors import ModelTimedOut
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.availability import missing, why_not
from core.engine.request import Request
from core.routes.registry import routes
from core.steps.full_context import RESERVED, estimate, too_long
from tests.asking import ask
from tests.fakes import TEXTS, FakeEngine, HashEmbedder, ScriptedLLM

QUESTION = Query("What do I do with a crushed box?")


def run(tmp_path, reply="Take photos [3]. Report it within 48 hours [3][1].", **options):
    return ask(tmp_path, "cag", QUESTION, {"answer": reply}, options=options)


def test_every_passage_comes_first_in_order_and_the_question_last(tmp_path):
    _, llm = run(tmp_path)
    [request] = llm.requests
    sent = request.messages[-1].content
    at = [sent.index(text) for _, text in sorted(TEXTS.items())]
    assert at == sorted(at)
    assert at[-1] < sent.index(QUESTION.text)
    assert sent.count("<passage ") == len(TEXTS)
    assert request.reuse_prefix
    _, other = run(tmp_path, "Another [1].")
    assert other.requests[0].messages[-1].content[: at[-1]] == sent[: at[-1]]


def test_it_lists_what_the_answer_cites_and_nothing_else(tmp_path):
    result, _ = run(tmp_path)
    ids = sorted(TEXTS)
    assert [(h.passage.id, h.score) for h in result.hits] == [(ids[2], 1.0), (ids[0], 0.5)]
    assert result.citations == (ids[2], ids[0])
    assert result.answer.startswith("Take photos")
    uncited, _ = run(tmp_path, "Take photos.")
    assert uncited.hits == ()
    assert "cites no passage" in uncited.spans[-1].attributes["note"]
    abstained, _ = run(tmp_path, "The passages do not answer this.")
    assert (abstained.abstained, abstained.hits) == (True, ())


def test_a_corpus_that_does_not_fit_is_unavailable_with_the_numbers(tmp_path):
    texts = {f"long{n}:0-9": "word " * 400 for n in range(20)}
    result, llm = run(tmp_path, texts=texts)
    assert result.status == "unavailable"
    needed = result.spans[0].attributes["tokens, estimated"]
    assert f"about {needed:,} tokens (estimated)" in result.error
    assert f"leaves {8192 - RESERVED:,}" in result.error
    assert f"llm_context above {needed + RESERVED:,}" in result.error
    assert not llm.requests
    fits, _ = run(tmp_path, texts=texts, llm_context=needed + RESERVED)
    assert fits.status == "ok"


def test_more_passages_than_tokens_are_not_even_read(tmp_path, monkeypatch):
    engine = FakeEngine(tmp_path, llm_context=512)
    monkeypatch.setattr(engine.fakes["tiny"], "everything", lambda: pytest.fail("read"))
    result = engine.ask(Request(QUESTION, "tiny", ("cag",))).results[0]
    assert result.status == "unavailable"
    assert "more than" in result.error


def test_the_span_tells_the_first_reading_from_a_later_one(tmp_path):
    class Caching(ScriptedLLM):
        cached = 0

        def complete(self, request, **more):
            from dataclasses import replace

            found = replace(super().complete(request, **more), prompt_tokens=900, cached_tokens=self.cached)
            self.cached = 850
            return found

    engine = FakeEngine(tmp_path, llm=Caching({"answer": "So it is [1]."}))
    first, later = (engine.ask(Request(QUESTION, "tiny", ("cag",))).results[0].spans[1] for _ in range(2))
    assert (first.attributes["prompt tokens"], first.attributes["read before"]) == (900, 0)
    assert "read the whole corpus for this question" in first.attributes["note"]
    assert later.attributes["read before"] == 850
    assert "note" not in later.attributes


def test_reading_that_takes_too_long_says_what_helps(tmp_path):
    result, _ = run(tmp_path, ModelTimedOut("no answer within 60 s"))
    assert result.status == "timeout"
    assert "reads all 7 passages" in result.error
    assert "llm_timeout_s" in result.error


def test_what_does_not_fit_is_known_before_it_is_run(tmp_path):
    source = tmp_path / "texts"
    source.mkdir()
    (source / "one.md").write_text("# One\n\nReturns are free. Grüße aus 東京.\n", encoding="utf-8")
    settings = Settings(home=tmp_path / "home")
    engine = FakeEngine(tmp_path / "home")
    assert "not built" in missing(engine, "mine")[Need.FITS]
    corpus = index.build("mine", source, settings=settings, embedder=HashEmbedder())
    passages = [passage for _, passage, _ in corpus.everything()]
    size = sum(len(f"{p.title}\n{p.text}".encode()) for p in passages)
    assert catalogue.held("mine", settings).text_size() == (len(passages), size)
    assert why_not(routes()["cag"], missing(engine, "mine")) is None
    small = FakeEngine(tmp_path / "home", llm_context=RESERVED + 5)
    assert "llm_context above" in why_not(routes()["cag"], missing(small, "mine"))


@given(st.integers(0, 10**6), st.integers(0, 10**9), st.integers(512, 10**7))
def test_too_long_by_its_definition(passages, size, context):
    fits = estimate(passages, size) <= context - RESERVED
    assert (too_long("c", passages, size, context) is None) is fits
