"""Every route with its steps watched: what readers say of where lists come from and where passages are lost
equals what the steps were really given.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from core.analysis.lineage import Lineage, LossPoint, PassedList
from core.analysis.passage_trace import PassageTrace
from core.domain.outputs import Fusion
from core.domain.types import Query, RouteResult, Span, Turn
from core.engine.request import Request
from core.routes.registry import routes
from tests.added import added
from tests.fakes import FakeEngine, ScriptedLLM
from tests.watched import Call, Given, Watch, watched

WORDS = ("parcel", "seal", "customs", "vase", "refund", "label", "photo", "carrier", "box", "hour", "glass")
SEARCHES = (
    "search",
    "look up",
    "take the whole corpus",
    "read a range",
)  # the names of steps that find begin so
IN_TOP = ("found", "not used", "compressed out", "read in part", "labelled words left out")
IN_TOP += ("brought by a summary",)
BY_A_STEP = ("fused away", "put behind", "reranked away", "walked past", "near-duplicate", "dropped")
BY_A_STEP += ("displaced", "cut at the score drop")
IN_TURN = ("append", "collect", "concat")
NOTHING = 10**9


@dataclass
class Truth:
    """A route's lists as they were really made: by span the passages, and what each was made from."""

    hits: dict[int, list[str]]
    sources: dict[int | None, list[tuple[int | None, int, int]]]


def truth(watch: Watch, result: RouteResult) -> Truth:
    """Where what holds no passage is from is taken as recorded: of no passage can that be wrong."""
    calls = {span: call for (owner, span), call in watch.calls.items() if owner == result.route}
    names = {span.id: span.name for span in result.spans}
    links = {(span.id, link.arg): link for span in result.spans for link in span.links}
    sources: dict[int | None, list[tuple[int | None, int, int]]] = {}
    for id in sorted(calls):
        lists = [] if names[id].startswith(SEARCHES) else taken(calls[id])
        named = [links[id, one.arg] if one.empty else one for one in lists]
        found = [(one.span, one.start, one.size) for one in named]
        if not found and not names[id].startswith(SEARCHES):
            before = sorted({one.span for one in calls[id].given if one.span is not None})
            found = list(dict.fromkeys(source for span in before for source in sources.get(span, [])))
        sources[id] = found
    end = watch.origin(result.route, result.hits)
    sources[None] = [(end.span, end.start, end.size)]
    if result.origin is not None and not result.hits:
        sources[None] = [(result.origin.span, result.origin.start, 0)]
    return Truth({id: call.hits for id, call in calls.items() if call.hits is not None}, sources)


def taken(call: Call) -> list[Given]:
    """The lists that a step took; of rounds the best by its grades, else the last."""
    lists = [one for one in call.given if one.lists]
    if call.name != "best_round":
        return lists
    scores = [one.score for one in call.values["rounds"]]
    known = [score for score in scores if score is not None]
    best = scores.index(max(known)) if known else 0
    return [one for one in lists if one.arg == f"found[{best}]"]


def in_words(source: PassedList) -> tuple[int | None, int, int]:
    return source.span.id if source.span is not None else None, source.start, source.size


def lost(made: Truth, names: dict[int, str], id: str, depth: int, rank: int | None):
    """What a loss is, of what was really given: (step, list, rank there, rank after, cut or not)."""

    def place(span: int) -> int | None:
        return made.hits[span].index(id) + 1 if id in made.hits[span] else None

    def passed(source) -> int | None:
        span, start, size = source
        part = made.hits[span][start : start + size] if span is not None else []
        return part.index(id) + 1 + start if id in part else None

    def placing(step, now):
        """Of lists put one behind another the first with a passage has put it where it is."""
        given = made.sources[step]
        if now is None or step is None or names[step] not in IN_TURN:
            return given
        able = []
        for n, source in enumerate(given):
            if passed(source):
                return [*able, source]
            if source[0] is None and source[2] > 0 and now <= sum(one[2] for one in given[: n + 1]):
                able.append(source)
        return able

    def best(found):
        """By rank; of equal ones the list that was given first."""
        return sorted((one for one in found if one[2]), key=lambda one: one[2])

    def loss(step, now):
        able, given = placing(step, now), made.sources[step]
        known = [one for one in given if one[0] is not None]
        brought = best((step, one[0], passed(one), now, False) for one in able)
        every = best((step, one[0], passed(one), now, False) for one in known)
        missed = best((step, one[0], place(one[0]), now, True) for one in known if not passed(one))
        if brought and brought[0][2] <= depth:
            return brought[0]
        ways = sorted(dict.fromkeys(one[0] for one in known), key=lambda one: place(one) or NOTHING)
        deep = [loss(one, place(one)) for one in ways if (place(one) or NOTHING) > depth]
        deep = [one for one in deep if one]
        for one in (*deep, *missed, *every):
            if one[1] is not None and one[2] <= depth:
                return one
        if any(one[0] is None and one[2] for one in able):
            return (step, None, 0, now, False)
        if unknown := [one for one in deep if one[1] is None]:
            return unknown[0]
        return next(iter((*brought, *missed, *deep)), None) if now is None else None

    return None if rank is not None and rank <= depth else loss(None, rank)


def as_told(found: LossPoint | None):
    if found is None:
        return None
    ids = (one.id if one is not None else None for one in (found.step, found.before))
    return *ids, found.was, found.now, found.cut is not None


def check_links(result: RouteResult, span: Span, call: Call) -> None:
    """Each link of a list, a vector or an object names what made it."""
    links = {link.arg: link for link in span.links}
    for one in call.given:
        link = links.pop(one.arg)
        where = f"{result.route}: {span.name}, {one.arg}"
        if one.empty:
            assert link.size == 0, where
        else:
            assert (link.span, link.start, link.size) == (one.span, one.start, one.size), where
    made_texts = {arg for arg in links if all(isinstance(text, str) for text in _texts(call, arg))}
    assert set(links) == made_texts, f"{result.route}: {span.name} has links of what it was not given"


def _texts(call: Call, arg: str):
    value = call.values[arg.partition("[")[0]]
    return value if isinstance(value, tuple) else (value,)


def check_fates(result: RouteResult, made: Truth, names: dict[int, str], ids: list[str], depth: int) -> None:
    """What is said of a passage is so."""
    funnel = PassageTrace(result)
    reached, todo = set(), [None]
    while todo:
        step = todo.pop()
        for span, _, _ in made.sources[step]:
            if span is not None and span not in reached:
                reached.add(span)
                todo.append(span)
    own = {
        step or NOTHING
        for step in (None, *reached)
        for span, _, size in made.sources[step]
        if span is None and size
    }
    unknown = bool(own)
    for span in funnel.flow.lists:
        unsaid = None if any(span.id < step for step in own) else False  # it may be in a later list
        expected = True if span.id in reached else unsaid
        assert funnel.flow.used(span) is expected, f"{result.route}: {span.name}"
    for id in ids:
        where = f"{result.route}: {id} in the top {depth}"
        final = [hit.passage.id for hit in result.hits]
        rank = final.index(id) + 1 if id in final else None
        expected = lost(made, names, id, depth, rank)
        assert as_told(funnel.flow.loss(id, depth)) == expected, where
        fate = funnel.fate(id, depth)
        assert fate.rank == rank, where
        in_top = rank is not None and rank <= depth
        assert in_top == (fate.kind in IN_TOP and rank is not None), where
        if in_top:
            continue
        having = {span: list_.index(id) + 1 for span, list_ in made.hits.items() if id in list_}
        step, was = fate.step.id if fate.step is not None else None, fate.was
        sources = [one for one in made.sources.get(step, []) if one[0] is not None]
        cut = [
            made.hits[span][start : start + size] for span, start, size in sources if having.get(span) == was
        ]
        unused = any(place == was and span not in reached for span, place in having.items())
        holds = {
            "cut by the route": any(id not in part for part in cut),
            "never retrieved": not having,
            "found, not opened": was in having.values() and all(names[one] != "read_range" for one in having),
            "not recorded": unknown,
            "list not used": having.get(step) == was and step not in reached,
            "found too low": having.get(step) == was,
            "behind summaries": having.get(step) == was,
            "query drift": step not in made.hits and unused,
            "lost in the first pass": id not in made.hits.get(step, [id]) and step in reached and unused,
            **dict.fromkeys(BY_A_STEP, was in [having.get(span) for span, _, _ in sources]),
            **dict.fromkeys(("dropped by grade", "compressed out", "not used", "not searched"), True),
        }
        assert holds[fate.kind], f"{where}: {fate.kind}"


def check(watch: Watch, result: RouteResult, ids: list[str], depth: int) -> int:
    """All that readers say of a route; how many steps were compared."""
    spans = {span.id: span for span in result.spans}
    calls = {span: call for (owner, span), call in watch.calls.items() if owner == result.route}
    for id, call in calls.items():
        check_links(result, spans[id], call)
    made = truth(watch, result)
    flow = Lineage(result)
    assert {span.id: [id for id, _ in span.hits] for span in flow.lists} == made.hits, result.route
    for span in flow.lists:
        found = [in_words(one) for one in flow.sources(span)]
        assert found == made.sources[span.id], f"{result.route}: {span.name}"
    if result.status == "ok":
        returned = [in_words(one) for one in flow.sources(None) if one.size]
        assert returned == [one for one in made.sources[None] if one[2]], result.route
        names = {id: call.name for id, call in calls.items()}
        check_fates(result, made, names, ids, depth)
    in_turn = {id for id, span in spans.items() if isinstance(span.output, Fusion) and span.output.in_turn}
    assert in_turn == {id for id, call in calls.items() if call.name in IN_TURN and call.hits is not None}
    return len(calls)


def corpus(count: int, words: int, seed: int) -> dict[str, str]:
    """`count` passages of few words, so that many are as good as others."""
    draw = random.Random(seed)
    return {
        f"d{n // 4}:{n:03}-9": " ".join(draw.choices(WORDS[:words], k=draw.randint(1, 9)))
        for n in range(count)
    }


def replies(seed: int):
    """A model that says something else to every prompt, and the same to the same."""

    def by(request, *options):
        return random.Random(f"{seed} {request.prompt} {request.messages}").choice(options)

    def some(*options):
        return lambda request: by(request, *options)

    text = some(*WORDS, "customs refund photo", "a carrier, the seal of the glass")
    return {
        "look-up": some("0.9", "0.1"),
        "relevant": some("0.6", "0.2"),
        "segment": "Take photos [1].",
        "supported": some({"fully": 1.0}, {"no": 1.0}),
        "useful": some({"4": 1.0}, {"2": 1.0}),
        "closed-answer": "Photograph it.",
        "confidence": some("40", "95"),
        "scale": lambda r: {by(r, "1", "2", "3", "4", "5"): 1.0},
        "grade": some("0.9", "0.4", "0.05"),
        "sql": "SELECT name FROM items",
        "rewrite": text,
        "step-back": text,
        "reformulate": text,
        "variants": "photo of the seal\nlabel, box\nrefund hour",
        "next-sentence": text,
        "decompose": "Who has the seal?\nWhich label is on the box?",
        "decompose-steps": "Who has the seal?\nWhere is #1?",
        "short-answer": some("the carrier", "unknown"),
        "answer": some("It is so [1].", "The passages do not answer this."),
        "evidence": some("0.8", "0.3"),
        "choose-action": some(
            '{"action": "search", "input": "photo of a seal"}',
            '{"action": "look_up", "input": "vase"}',
            '{"action": "look_up", "input": "parcel"}',
            '{"action": "answer", "input": ""}',
        ),
        "critique": '{"claims": [], "feedback": "Shorter.", "good": false}',
        "refine": "It is so [1].",
    }


PARAMETERS = {
    "compress": {"floor": 0.4},
    "crag": {"graded": 3},
    "rerank": {"candidates": 6},
    "parent": {"alpha": 0.5},
    "late_interaction": {"candidates": 8},
    "agentic": {"each": 2},
    "decompose": {"sequential": True, "split_from": 1},
    "multistage": {"candidates": 7},
    "self_reflective": {"rounds": 3, "gain": 0.0},
    "quantised": {"candidates": 10, "compare": True},
    "adaptive_k": {"least": 1, "beyond": 0},
    "noise": {"count": 3},
    "prf_rm3": {"original": 0.2},
    "prf_rocchio": {"feedback": 0.9},
}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(
    max_examples=max(5, settings().max_examples // 5),
    # a smaller corpus is no simpler one, and takes as long
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    count=st.integers(3, 150),
    words=st.integers(2, len(WORDS)),
    seed=st.integers(0, 9999),
    answers=st.sampled_from(["none", "all"]),
    depth=st.sampled_from([1, 2, 5, 10, 30]),
)
def test_what_readers_say_of_every_step_of_every_route_is_so(
    tmp_path_factory, count, words, seed, answers, depth
):
    draw = random.Random(seed)
    some = " ".join(draw.choices((*WORDS[:words], "zyzzyva"), k=draw.randint(1, 4)))
    asked = draw.choice([some, "zyzzyva", f"Which {some} and whose?"])
    history = (Turn("user", "the seal"), Turn("assistant", "a vase")) if draw.random() < 0.3 else ()
    engine = FakeEngine(
        tmp_path_factory.mktemp("home"),
        llm=ScriptedLLM(replies(seed)),
        web={"w:0-9": "a seal", "x:0-9": some},
        texts=corpus(count, words, seed),
    )
    parameters = {**(PARAMETERS if draw.random() < 0.5 else {}), "any_steps": {"seed": seed, "steps": 8}}
    with added():
        names = tuple(routes())
        requests = [Request(Query(asked, history), "tiny", names, parameters, answers=answers)]
        for n in range(1, 9):  # of the random route more than one
            own = {"any_steps": {"seed": seed + 10_000 * n, "steps": n + 3}}
            requests.append(Request(Query(asked), "tiny", ("any_steps",), own))
        for request in requests:
            with watched() as watch:
                run = engine.ask(request)
            assert not watch.twice, "what a step gave tells which step gave it"
            ids = draw.sample(sorted(run.passages), min(12, len(run.passages)))
            compared = sum(check(watch, result, ids, depth) for result in run.results)
            assert compared > (200 if request.routes == names else 2)
            assert sum(result.status == "ok" for result in run.results) > 0.7 * len(request.routes)
