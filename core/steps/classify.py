"""Steps that tell what kind of question was asked, and which route is to answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.backends.prompting.citations import Draft
from core.backends.prompting.prompts_agentic import CLASSES as ASK_CLASS
from core.backends.prompting.prompts_agentic import DIRECT
from core.backends.prompting.token_probabilities import odds
from core.domain.errors import BadInput, ModelFailed
from core.domain.outputs import Decision
from core.domain.types import Answer, Query
from core.steps.classes import (
    CANDIDATES,
    CLASSES,
    EXAMPLES,
    NO_SEARCH,
    QuestionClass,
    by_examples,
    by_rules,
)
from core.steps.decisions import Decided
from core.steps.generate import Generate
from core.steps.step import step

Classifier = Literal["rules", "prototypes", "llm"]
NEAREST = 3  # examples of each class that count; chosen on dev questions of `support`
WORDS: Mapping[str, QuestionClass] = {  # what the model says; no two begin alike
    "chat": "no_retrieval", "code": "exact", "fact": "plain", "idea": "conceptual", "several": "complex",
    "rows": "structured",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Classified(Decided):
    """The class of a question; the scores compare only with each other."""

    decision: QuestionClass
    why: str
    scores: Mapping[QuestionClass, float]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The route a question is given to, with what kept it from others, and the routes it was chosen from."""

    decision: str
    why: str
    ways: tuple[str, ...]

    def recorded(self) -> Decision:
        """The outcome as readers take it."""
        return Decision(self.decision, self.ways, self.why)


class Classify(Generate):
    """Choosing a route by the question alone: no document has a say in it."""

    @step("CHAIN", "classify the question")
    def classify(self, text: str, history: bool, by: Classifier) -> Classified:
        """The class of `text`. After a conversation (`history`) it is either no_retrieval or conversational.

        Source: Jeong et al. 2024, "Adaptive-RAG", arXiv:2403.14403, section 3.2; there a trained classifier
        tells three classes of complexity.
        """
        if by == "rules":
            return Classified(*by_rules(text, history))
        scores = self._by_examples(text) if by == "prototypes" else self._by_model(text)
        return decide(scores, history, "mean cosine" if by == "prototypes" else "probability")

    def _by_examples(self, text: str) -> dict[QuestionClass, float]:
        pairs = [(name, example) for name, examples in EXAMPLES.items() for example in examples]
        vectors = self.context.turn_vectors.embed(self.context.embedder, [example for _, example in pairs])
        return by_examples(self.embed(text), vectors, [name for name, _ in pairs], NEAREST)

    def _by_model(self, text: str) -> dict[QuestionClass, float]:
        reply = self._ask(
            ASK_CLASS, max_tokens=2, top_logprobs=20, logprobs_optional=True, question=text,
        )  # fmt: skip
        found = odds(reply, tuple(WORDS))
        if found is None:
            raise ModelFailed(f"the model named no class of {', '.join(WORDS)}: {reply.text[:40]!r}")
        self.span.attributes["by"] = found.by
        return {WORDS[word]: share for word, share in found.of.items()}

    @step("CHAIN", "choose a route")
    def choose_route(self, asked: QuestionClass) -> Dispatch:
        """The first route for the class that can run here; those passed over are named with the reason."""
        passed: list[str] = []
        ways = tuple(CANDIDATES[asked])
        for name in CANDIDATES[asked]:
            if name == NO_SEARCH:
                return Dispatch(name, "the question needs nothing looked up", ways)
            route = self.context.other_route(name)
            reason = "there is no such route" if route is None else route.why_not()
            if reason is None:
                first = "it is the first choice" if not passed else f"not {'; not '.join(passed)}"
                return Dispatch(name, f"for a question of class {asked}: {first}", ways)
            passed.append(f"{name}, because {reason}")
        raise AssertionError(f"the last candidate of class {asked} needs nothing")

    def run_route(self, name: str, query: Query) -> Answer:
        """What the route `name` gives with its defaults; its steps become steps of this route, whose own
        parameters set none of them.
        """
        route = self.context.other_route(name)
        if route is None:
            raise BadInput(f"there is no route {name!r} to run")
        return route.run(query, self)

    def reply(self, query: Query) -> Answer:
        """The outcome without a search: a reply of the model where answers are asked for by model."""
        style = self.context.answering
        if style is None or style.by != "model":
            return self.answer(query.text, ())
        return self.direct(query).over(())

    @step("LLM", "reply without a search")
    def direct(self, query: Query) -> Draft:
        """A reply from the message and the conversation alone."""
        said = "\n".join(f"{turn.role}: {turn.text}" for turn in query.history[-6:])
        talk = f"Conversation:\n{said}\n\n" if said else ""
        reply = self._ask(DIRECT, max_tokens=80, stream=True, conversation=talk, question=query.text)
        return Draft(reply.text.strip(), unaided=True)


def decide(scores: Mapping[QuestionClass, float], history: bool, unit: str) -> Classified:
    """The class of the highest score, ties by the order of `CLASSES`, and how far the next one is behind.

    Without a conversation before it no question is conversational; after one it is, unless no_retrieval
    scores highest of all.
    """
    known = {name: score for name, score in scores.items() if name != "conversational"}
    order = sorted(known, key=lambda name: (-known[name], CLASSES.index(name)))
    best, second = order[0], order[1]
    told = f"{unit} {known[best]:.2f} for {best}, {known[second]:.2f} for {second}"
    if history and best != "no_retrieval":
        return Classified("conversational", f"there is a conversation before it; {told}", scores)
    return Classified(best, told, scores)
