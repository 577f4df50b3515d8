"""The embedded server answers a prompt from that prompt alone, whatever was asked before."""

import threading

import pytest

from core.backends.base import LLMRequest
from core.backends.llm import load_llm, stop_server
from core.backends.prompting.prompts import GRADE, REWRITE
from core.domain import settings

pytestmark = pytest.mark.model


def test_an_answer_does_not_depend_on_what_was_asked_before(tmp_path):
    now = settings.load(home=tmp_path, llm="smollm2-135m", llm_timeout_s=120)
    text = LLMRequest(
        "rewrite",
        REWRITE.fill({"history": "user: My box arrived crushed.", "question": "What do I do now?"}),
        40,
    )
    passage = "Express shipping delivers the next business day in Germany. " * 4
    grade = LLMRequest(
        "grade", GRADE.fill({"passage": passage, "question": "How do I send it back?"}), 1, top_logprobs=5
    )

    def ask(request, number):
        fresh = settings.load(**{**now.model_dump(), "home": tmp_path / str(number)})  # a cache of its own
        return load_llm(fresh).complete(request, timeout=120, cancel=threading.Event())

    try:
        alone = ask(text, 1).text
        first = ask(grade, 2).logprobs
        assert ask(text, 3).text == alone
        assert ask(grade, 4).logprobs[0].logprob == pytest.approx(first[0].logprob, abs=1e-3)
    finally:
        stop_server(now)
