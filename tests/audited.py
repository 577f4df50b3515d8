"""A route that decides by its question's words, and questions of which all is known by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from core.backends.prompting.prompts import Prompt
from core.domain.types import Answer, Query, Ranking
from core.evaluation.dataset import LabelledSet, Question
from core.routes.declare import Route
from core.steps import Steps
from core.steps.base import StepBase
from core.steps.decisions import Decided
from core.steps.step import step
from tests.fakes import FakeEngine, ScriptedLLM

STEP = "doubt the question"
AGAIN = Prompt("again/1", "You search.", "Other words for: {question}")
# By id: the text, what the model says to search with instead, and what is right. The text of a question that
# is doubted begins with "maybe". "zzz" and "qqq" stand in no passage.
ASKED = {
    "better": ("maybe zzz", "keys", "keys:0-80"),
    "worse": ("maybe keys", "zzz", "keys:0-80"),
    "better too": ("maybe qqq", "customs", "customs:0-80"),
    "tied": ("maybe customs", "customs", "customs:0-80"),
    "no label": ("maybe boxed", "boxed", None),
    "missed": ("qqq", "express", "express:0-80"),
    "rightly quiet": ("fragile", "zzz", "fragile:0-80"),
    "quiet and tied": ("crushed", "crushed", "crushed:0-80"),
}
FIRED = [id for id, (text, *_) in ASKED.items() if text.startswith("maybe")]


@dataclass(frozen=True, slots=True)
class Doubt(Decided):
    decision: Literal["search again", "keep", "give up"]
    why: str

    FIRES = (("search again", "keep"),)


class Doubting(StepBase):
    @step("EVALUATOR", STEP, returns=Doubt)
    def doubt(self, text: str) -> Doubt:
        again = text.startswith("maybe")
        return Doubt("search again" if again else "keep", f"{text!r} is {'' if again else 'not '}doubted")

    @step("LLM", "find other words", returns=str)
    def other_words(self, text: str) -> str:
        return self._ask(AGAIN, max_tokens=8, question=text).text


def _search(text: str, steps: Steps) -> Ranking:
    if steps.doubt(text).decision == "search again":
        return steps.sparse(steps.other_words(text))
    return steps.sparse(text)


def _wary(do: Steps) -> Answer:
    return do.answer(do.question, _search(do.question, steps=do))


_DECLARED = Route("Wary", family="query", embeds=False)(_wary)
WARY = replace(_DECLARED, name="wary", summary="Doubts its question.")


def other_words(request) -> str:
    asked = request.messages[-1].content.rpartition(": ")[2]
    return next(reply for text, reply, _ in ASKED.values() if text == asked)


def engine(home, **more) -> FakeEngine:
    return FakeEngine(home, llm=ScriptedLLM({"again": other_words}), **more)


def labelled_set() -> LabelledSet:
    questions = tuple(Question(id, Query(text), split="test") for id, (text, *_) in ASKED.items())
    return LabelledSet("tiny", questions, {id: {gold: 1} for id, (_, _, gold) in ASKED.items() if gold})


def known_to(patch) -> None:
    """Make the route and its steps known; `patch` is pytest's monkeypatch."""
    from core.evaluation.audit import decisions
    from core.routes.registry import routes

    patch.setitem(routes(), "wary", WARY)
    for name in ("doubt", "other_words"):
        patch.setattr(Steps, name, getattr(Doubting, name), raising=False)
    decisions.own.cache_clear()
