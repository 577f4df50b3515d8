"""Steps that classify a question and choose the route that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from core.backends.prompting.citations import Draft
from core.backends.prompting.prompts import DIRECT
from core.backends.question_classifier import (
    CLASSES,
    DEFAULT,
    DEFAULT_ROUTE,
    NO_SEARCH,
    ClassRoute,
    QuestionClass,
    QuestionClassifier,
)
from core.backends.sql.database import DatabaseTable
from core.backends.sql.linking import ValueLink
from core.domain.errors import BadInput, Unavailable
from core.domain.outputs import Decision, Weighed
from core.domain.types import Answer, Query, Ranking
from core.steps.decisions import ANY, Decided
from core.steps.question_features import MAX_QUESTION_CHARS, FirstSearch, Schema, features
from core.steps.step import step
from core.steps.tables import AskTables

MAX_NAMED_FEATURES = 3  # features that a reason names


@dataclass(frozen=True, slots=True)
class Classified(Decided):
    """The kind of a question. `scores`: the probability of each class; `weighed`: what each feature adds to
    the logit of the likelier of the two classes `between`; `trained`: the file with the coefficients.
    """

    decision: QuestionClass
    scores: Mapping[str, float]
    weighed: tuple[Weighed, ...]
    between: tuple[str, str]
    trained: str

    def recorded(self) -> Decision:
        """With the features in a place of their own."""
        own = replace(super(Classified, self).recorded(), details={"trained": self.trained})
        return replace(own, weighed=self.weighed, between=self.between)


@dataclass(frozen=True, slots=True)
class Dispatch(Decided):
    """The route chosen for a question, and why other routes were passed over."""

    # the available routes, the default last; they depend on the classifier and on what can run here
    ways: tuple[str, ...]

    FIRES = ((ANY, DEFAULT_ROUTE),)


@dataclass(frozen=True, slots=True)
class FallbackDecision(Decided):
    """The decision whether the chosen route's result stands or the default route searches after all."""

    decision: Literal["keep", "fall back"]
    FIRES = (("fall back", "keep"),)


class Classify(AskTables):
    """Choosing a route by the question, a first search and the tables at hand."""

    def classify(self, query: Query) -> Classified:
        """Classify a question after a first search, which the candidate routes share."""
        sparse, dense = self.sparse(query.text), self.dense(query.text)
        links = self.link_values(query.text, "tables").found if self._tables_here() else ()
        return self._classify(query.text, bool(query.history or self.context.memory), sparse, dense, links)

    @step("CHAIN", "classify by features", returns=Classified)
    def _classify(
        self, text: str, conversation: bool, sparse: Ranking, dense: Ranking, links: tuple[ValueLink, ...]
    ) -> Classified:
        """Return the likeliest class by multinomial logistic regression, or the default class if its
        probability is below `QuestionClassifier.least`.

        Source: Jeong et al. 2024, "Adaptive-RAG", arXiv:2403.14403, section 3.2, which trains a T5 to
        distinguish three classes of complexity.
        """
        searched, schema = self.first_search(text, sparse, dense), Schema(self._tables_here(), links)
        found = features(text, conversation, searched, schema, self.context.corpus.analyzer.questions)
        return classify_features(self.context.classifier(), found)

    def schema(self, text: str) -> Schema:
        """Return the database signals of a question, for training."""
        tables = self._tables_here()
        return Schema(tables, self.link_values(text, "tables").found if tables else ())

    def first_search(self, text: str, sparse: Ranking, dense: Ranking) -> FirstSearch:
        """Return the search signals of a question."""
        corpus = self.context.corpus
        parts = corpus.explain(text[:MAX_QUESTION_CHARS], sparse[0].passage.id) if sparse else {}
        weights = corpus.idf(list(parts))
        held = tuple((weight, parts[word] > 0) for word, weight in zip(parts, weights, strict=True))
        return FirstSearch(held, sparse, dense)

    def _tables_here(self) -> tuple[DatabaseTable, ...]:
        """Return the tables of the corpus' database, or () if it has no readable database."""
        try:
            return self._database("tables").tables
        except Unavailable:
            return ()

    @step("CHAIN", "choose the route", returns=Dispatch)
    def choose_route(self, asked: QuestionClass) -> Dispatch:
        """Choose the best available route for the class, else the default route. Routes passed over are
        listed with the reason.
        """
        ways, passed, earned = list[str](), list[str](), ""
        for one in self.context.classifier().routes.get(asked, ()):
            route = self.context.other_route(one.route)
            lacks = "there is no such route" if route is None else route.why_not()
            if one.route != NO_SEARCH and lacks is not None:
                passed.append(f"not {one.route}, because {lacks}")
            else:
                ways.append(one.route)
                earned = earned or in_words(one, asked)
        why = earned or f"the default for a question of class {asked}"
        ways.append(DEFAULT_ROUTE)
        return Dispatch(ways[0], "; ".join([why, *passed]), tuple(ways))

    def run_route(self, name: str, query: Query) -> Answer:
        """Run the route `name` with its default parameters. Its steps become steps of this route."""
        route = self.context.other_route(name)
        if route is None:
            raise BadInput(f"there is no route {name!r} to run")
        return route.run(query, self)

    @step("CHAIN", "keep what it found", returns=FallbackDecision)
    def keep_found(self, name: str, hits: Ranking) -> FallbackDecision:
        """Fall back to the default route if the chosen route found nothing, such as a query without rows."""
        if hits:
            return FallbackDecision("keep", f"{name} found {len(hits)} passages")
        return FallbackDecision("fall back", f"{name} found nothing, so {DEFAULT_ROUTE} searches")

    def reply(self, query: Query) -> Answer:
        """Answer without a search: with the model's reply if answers are written by model, else with no
        text.
        """
        style = self.context.answering
        if style is None or style.by != "model":
            return self.answer(query.text, ())
        return self.direct(query).over(())

    @step("LLM", "reply without a search", returns=Draft)
    def direct(self, query: Query) -> Draft:
        """Reply from the message and the conversation alone."""
        said = "\n".join(f"{turn.role}: {turn.text}" for turn in query.history[-6:])
        talk = f"Conversation:\n{said}\n\n" if said else ""
        reply = self._ask(DIRECT, max_tokens=80, stream=True, conversation=talk, question=query.text)
        return Draft(reply.text.strip(), unaided=True)


def in_words(one: ClassRoute, asked: str) -> str:
    """Describe a route's gain on questions of a class."""
    return (
        f"for questions of class {asked} it gained {one.gain:.3f} [{one.low:.3f}, {one.high:.3f}] of"
        f" {one.metric} over {DEFAULT_ROUTE} ({one.n} questions of {', '.join(one.sets)})"
    )


def classify_features(classifier: QuestionClassifier, given: Mapping[str, float]) -> Classified:
    """Classify a question with these features, and report which features decided."""
    if unknown := [name for name in classifier.features if name not in given]:
        raise Unavailable(f"the classifier {classifier.source} has no such feature: {unknown[0][:40]!r}")
    values = [given[name] for name in classifier.features]
    shares = classifier.probabilities([values])[0]
    scores = {name: float(share) for name, share in zip(classifier.classes, shares, strict=True)}
    likeliest, against = sorted(scores, key=lambda name: (-scores[name], CLASSES.index(name)))[:2]
    parts = classifier.contributions(values, likeliest, against)
    weighed = tuple(Weighed(name, float(given.get(name, 1.0)), part) for name, part in parts.items())
    speak = [f"{one.feature} ({one.part:+.1f})" for one in weighed if one.part > 0 and one.feature in given]
    why = f"P({likeliest}) {scores[likeliest]:.2f}, P({against}) {scores[against]:.2f}"
    if speak:
        why += f"; most for it: {', '.join(speak[:MAX_NAMED_FEATURES])}"
    decision = likeliest
    if scores[likeliest] < classifier.least:
        decision = DEFAULT
        why += f"; below {classifier.least:g} a question counts as {DEFAULT}"
    return Classified(
        cast("QuestionClass", decision), why, scores, weighed, (likeliest, against), classifier.source
    )
