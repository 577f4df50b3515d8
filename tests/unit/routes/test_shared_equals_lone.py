"""A route finds, answers and decides in a run with others what it does alone; only times differ."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.errors import ModelTimedOut
from core.domain.outputs import Reply
from core.domain.types import Answer, AnswerStyle, Passage, Query, RouteResult, Span, Turn
from core.engine.request import Request
from core.engine.resources import Snapshot
from core.routes.declare import route
from core.routes.registry import routes
from core.steps import Steps
from core.steps.trace import Trace
from tests.fakes import FakeEngine, ScriptedLLM

ALL = sorted(routes())
QUESTIONS = (
    Query("My box arrived crushed, what do I do?"),
    Query("And within how many hours?", (Turn("user", "My box arrived crushed."), Turn("assistant", "Oh."))),
    Query("Express shipping to Belgium or customs: which order was paid?"),
)
REPLIES = {
    "look-up": "0.9",
    "relevant": "0.6",
    "segment": "Take photos [1].",
    "supported": {"fully": 1.0},
    "useful": {"4": 1.0},
    "closed-answer": "Photograph it.",
    "confidence": "40",
    "scale": {"2": 1.0},
    "sql": "SELECT name FROM items",
    "rewrite": "what to do when a box arrived crushed",
    "variants": "crushed parcel\ndamaged box\nbroken pack",
    "step-back": "What are the rules for parcels?",
    "decompose": "What photos of a crushed box are needed?\nWithin how many hours is it reported?",
    "grade": lambda request: "0.9" if "crushed" in request.messages[-1].content else "0.4",
    "answer": "Take photos of all six sides [1].",
    "evidence": "0.8",
    "next-sentence": "Customs may hold a parcel.",
    "choose-action": '{"action": "search", "input": "photos"}',
    "reformulate": "crushed parcel photos",
    "critique": '{"claims": [], "feedback": "Shorter.", "good": false}',
    "refine": "Take photos [1].",
}
BY_MODEL = {
    "crag": {"evaluator": "llm"},
    "decompose": {"split_from": 1},
    "rerank": {"reranker": "llm", "candidates": 6},
    "compress": {"how": "llm", "shown": 3},
}
WEB = {"page:0-9": "crushed boxes are photographed", "page:9-20": "the web knows express shipping"}


def in_turn(self: Trace, calls):
    """Branches one after another: which of them meets a spent budget is then no matter of chance."""
    return [call() for call in calls]


def in_words(span: Span) -> Span:
    """A span without what may differ: its times, who did the work, and what a repeat costs."""
    attributes = {name: value for name, value in span.attributes.items() if name != "embedded before"}
    output = replace(span.output, made="") if isinstance(span.output, Reply) else span.output
    return replace(
        span,
        id=0,
        parent=None,
        start_ms=0.0,
        ms=0.0,
        output=output,
        tokens=None,
        calls=0,
        shared_with=None,
        cached=None,
        cost=None,
        attributes=attributes,
        links=tuple(replace(link, span=None) for link in span.links),
    )


def facts(result: RouteResult) -> tuple[object, ...]:
    """What a route came to: all but times. Steps inside a shared one are with the route that did it, so the
    outermost ones are compared, in all they say.
    """
    steps = tuple(in_words(span) for span in result.spans if span.parent is None)
    return (
        result.route,
        result.status,
        result.error,
        result.hits,
        result.answer,
        result.citations,
        result.abstained,
        result.answer_status,
        result.answer_error,
        result.basis,
        steps,
    )


@pytest.mark.slow
@given(
    names=st.lists(st.sampled_from(ALL), min_size=2, max_size=8, unique=True),
    question=st.sampled_from(QUESTIONS),
    answers=st.sampled_from(["none", "selected", "all"]),
    style=st.builds(
        AnswerStyle,
        by=st.sampled_from(["model", "extract"]),
        order=st.sampled_from(["best first", "best at both ends"]),
        evidence=st.sampled_from([0.0, 0.58, 0.9]),
    ),
    calls=st.sampled_from([1, 2, 3, 5, 8, 13, 60]),
    tokens=st.sampled_from([20, 100, 10_000]),
    local=st.booleans(),
    by_model=st.booleans(),
)
def test_each_route_comes_to_the_same_in_a_shared_run_as_alone(
    tmp_path_factory, names, question, answers, style, calls, tokens, local, by_model
):
    engine = FakeEngine(
        tmp_path_factory.mktemp("home"),
        llm=ScriptedLLM(REPLIES, local=local),
        web=WEB,
        route_max_calls=calls,
        route_max_tokens=tokens,
    )
    parameters = {name: BY_MODEL[name] for name in names if name in BY_MODEL and by_model}
    request = Request(
        question, "tiny", tuple(names), parameters, answers=answers, answered=tuple(names[::2]), style=style
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trace, "parallel", in_turn)
        shared = engine.ask(request).results
        alone = [
            engine.ask(
                replace(
                    request,
                    routes=(name,),
                    parameters={name: parameters[name]} if name in parameters else {},
                    answered=tuple({name} & set(names[::2])),
                )
            ).results[0]
            for name in names
        ]
    for together, single in zip(shared, alone, strict=True):
        assert facts(together) == facts(single)


# Routes whose steps lie in each other, so that one pays for a part and another for the whole.


def judges(do: Steps) -> Answer:
    """Grades two passages in one step, then a third alone."""
    hits = do.dense(do.question)[:3]
    do.judge(do.question, hits[:2], 0.2, 0.9)
    do.grade(do.question, hits[2].passage)
    return Answer(hits)


def grades_first(do: Steps) -> Answer:
    """Grades one passage, then two in one step, which costs one call more, then these for nothing, then a
    third.
    """
    hits = do.dense(do.question)[:3]
    do.grade(do.question, hits[0].passage)
    do.judge(do.question, hits[:2], 0.2, 0.9)
    do.judge(do.question, hits[:2], 0.3, 0.9)
    do.grade(do.question, hits[2].passage)
    return Answer(hits)


def judges_then_grades(do: Steps) -> Answer:
    """Grades two passages in one step, then each alone, for nothing, then a third."""
    hits = do.dense(do.question)[:3]
    do.judge(do.question, hits[:2], 0.2, 0.9)
    for hit in hits:
        do.grade(do.question, hit.passage)
    return Answer(hits)


NESTED = (judges, grades_first, judges_then_grades)


def registered(monkeypatch, *functions):
    """Routes of a test in place of all others, run in the order they are asked for."""
    made = {
        function.__name__: replace(route("Test", family="baseline")(function), name=function.__name__)
        for function in functions
    }
    monkeypatch.setattr("core.routes.registry.routes", lambda: made)
    monkeypatch.setattr("core.engine.job.Job._order", lambda self: (list(self._plan.routes), []))


@pytest.mark.slow
@pytest.mark.parametrize(("calls", "tokens"), [(2, 999), (3, 999), (99, 20), (99, 40)])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_parts_of_shared_work_are_paid_once_and_by_each_route(tmp_path, monkeypatch, order, calls, tokens):
    registered(monkeypatch, *NESTED)
    llm = ScriptedLLM({"grade": "0.6"})  # 15 tokens a call
    engine = FakeEngine(tmp_path, llm=llm, route_max_calls=calls, route_max_tokens=tokens)
    names = [NESTED[at].__name__ for at in order]
    shared = engine.ask(Request(QUESTIONS[0], "tiny", tuple(names))).results
    for name, together in zip(names, shared, strict=True):
        single = engine.ask(Request(QUESTIONS[0], "tiny", (name,))).results[0]
        assert facts(together) == facts(single)
        assert (together.status == "ok") is (calls >= 3 and tokens > 30)


def test_the_threshold_of_evidence_is_part_of_what_a_step_is_known_by(tmp_path):
    """Two routes write an answer from the same passages, one with another threshold."""
    engine = FakeEngine(tmp_path, llm=ScriptedLLM({"evidence": "0.7", "answer": "Yes [1]."}))
    style = AnswerStyle(evidence=0.9)
    request = Request(
        QUESTIONS[0],
        "tiny",
        ("hybrid_rrf", "self_correct"),
        answers="selected",
        answered=("hybrid_rrf",),
        style=style,
    )
    asked, own = engine.ask(request).results
    assert (asked.abstained, own.abstained) == (True, False)


def test_a_result_cut_short_by_one_routes_budget_is_nobody_elses(tmp_path):
    """`rerank` by the model may grade half as many as the route has calls; `crag` grades all of its five."""
    llm = ScriptedLLM({"grade": "0.6"})
    engine = FakeEngine(tmp_path, llm=llm, route_max_calls=6)
    parameters = {"rerank": {"reranker": "llm", "candidates": 5}}
    alone = engine.ask(Request(QUESTIONS[0], "tiny", ("rerank",), parameters)).results[0]
    both = engine.ask(Request(QUESTIONS[0], "tiny", ("rerank", "crag"), parameters)).results
    assert facts(both[0]) == facts(alone)
    states = [one.state for s in both[0].spans for one in getattr(s.output, "order", ())]
    assert states.count("scored") == 3


def test_a_route_that_cannot_pay_for_shared_work_ends_in_it(tmp_path):
    """Two grades were paid by another route: a third call of the same route's budget is not free."""
    replies = {"variants": "one way\nanother way\na third way", "grade": "0.6"}
    engine = FakeEngine(tmp_path, llm=ScriptedLLM(replies), route_max_calls=1)
    parameters = {"multi_query": {"n": 3}, "rag_fusion": {"n": 3}}
    request = Request(QUESTIONS[0], "tiny", ("multi_query", "rag_fusion"), parameters, answers="all")
    first, second = engine.ask(request).results
    assert first.answer_error == second.answer_error
    assert "budget of 1 model calls is spent" in first.answer_error
    assert first.hits
    assert second.hits


def test_a_failure_by_the_askers_own_time_is_not_shared(tmp_path, monkeypatch):
    """The first route has a moment left for a call and fails by it; the second asks again, and gets it."""
    llm = ScriptedLLM({"variants": "one way\nanother way\na third way"})
    engine = FakeEngine(tmp_path, llm=llm)
    asked = []
    complete = ScriptedLLM.complete

    def slow_at_first(self, request, *, timeout, cancel, written=None):
        asked.append(timeout)
        if len(asked) == 1:
            raise ModelTimedOut("no answer within the route's own time")
        return complete(self, request, timeout=timeout, cancel=cancel, written=written)

    monkeypatch.setattr(ScriptedLLM, "complete", slow_at_first)
    steps = engine.steps

    def short_of_time(*args, **kwargs):
        made = steps(*args, **kwargs)
        if made.context.trace.owner == "multi_query":
            made.context.llm_timeout_s = 10 * engine.settings.route_timeout_s  # more than the route has left
        return made

    monkeypatch.setattr(engine, "steps", short_of_time)
    monkeypatch.setattr("core.engine.job.Job._order", lambda self: (list(self._plan.routes), []))
    first, second = engine.ask(Request(QUESTIONS[0], "tiny", ("multi_query", "rag_fusion"))).results
    assert (first.status, second.status) == ("timeout", "ok")
    assert len(asked) == 2


def with_web(monkeypatch, engine):
    """Give every route a web search, whether or not it says that it uses one."""
    steps = engine.steps

    def made(*args, **kwargs):
        return steps(*args, **{**kwargs, "web": engine.web()})

    monkeypatch.setattr(engine, "steps", made)


def searches_the_web_for_snow(do: Steps) -> Answer:
    """Keeps sentences of what one query finds."""
    found = do.web("snow")
    do.strips(do.question, found, -1.0)
    return Answer(found)


def searches_the_web_for_rain(do: Steps) -> Answer:
    """Keeps sentences of what another query finds, at the same address."""
    found = do.web("rain")
    do.strips(do.question, found, -1.0)
    return Answer(found)


def test_web_pages_with_other_words_are_other_passages(tmp_path, monkeypatch):
    """One address has other snippets for other queries: what was made of the one is not the other's."""

    def snippets(self, text, k, *, timeout=60.0, cancel=None):
        return [(Passage("web/page", "web", "Page", f"It is about {text}."), 1.0)]

    monkeypatch.setattr(Snapshot, "search", snippets)
    registered(monkeypatch, searches_the_web_for_snow, searches_the_web_for_rain)
    monkeypatch.setattr(FakeEngine, "web", lambda self: Snapshot(self.corpus("web"), self.embedder("web")))
    engine = FakeEngine(tmp_path, web=WEB)
    with_web(monkeypatch, engine)
    names = ("searches_the_web_for_snow", "searches_the_web_for_rain")
    results = engine.ask(Request(QUESTIONS[0], "tiny", names, stored=False)).results
    for result, word in zip(results, ("snow", "rain"), strict=True):
        kept = next(span.output.sentences for span in result.spans if "strips" in span.name)
        assert [sentence.text for sentence in kept] == [f"It is about {word}."]


def test_a_rejected_web_page_keeps_its_text_in_the_run(tmp_path, monkeypatch):
    """A list that no route returned can be checked afterwards."""

    def looks_and_leaves(do: Steps) -> Answer:
        """Searches the web and returns what the corpus has."""
        do.web(do.question)
        return Answer(do.dense(do.question))

    registered(monkeypatch, looks_and_leaves)
    engine = FakeEngine(tmp_path, web=WEB)
    with_web(monkeypatch, engine)
    run = engine.ask(Request(QUESTIONS[0], "tiny", ("looks_and_leaves",), stored=False))
    found = [id for span in run.results[0].spans if span.kind == "TOOL" for id, _ in span.hits]
    assert found
    assert all(run.passages[id].text in WEB.values() for id in found)
    assert not any(hit.passage.id in found for hit in run.results[0].hits)
