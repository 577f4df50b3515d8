"""Listwise and setwise reranking: with models that know the answer, that do not, and that look at places."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from core.domain.types import Query
from core.engine.engine import Request
from core.steps.listwise import SWAYED, permutation_grammar, read_order, windows
from tests.fakes import FakeEngine
from tests.gbnf import Grammar

TEXTS = {f"p{at:02}:0-9": f"parcel weighs {at} kilos" for at in range(24)}
WEIGHT = re.compile(r"\[(\w+)\] [^\[]*?weighs (\d+) kilos")


def shown(request):
    """The passages of a prompt: what they are called, and how heavy they are."""
    return [(name, int(kilos)) for name, kilos in WEIGHT.findall(request.messages[-1].content)]


def heaviest_first(request):
    return " > ".join(name for name, _ in sorted(shown(request), key=lambda one: -one[1]))


def heaviest(request):
    names = dict(shown(request))
    best = max(names, key=names.__getitem__)
    return {name: 0.9 if name == best else 0.1 / len(names) for name in names}


def asked(tmp_path, route, replies, **parameters):
    engine = FakeEngine(tmp_path, texts=TEXTS)
    engine.fake_llm.replies = replies
    (result,) = engine.ask(Request(Query("parcel"), "tiny", (route,), parameters={route: parameters})).results
    return result, engine.fake_llm


def kilos(result):
    return [int(hit.passage.text.split()[2]) for hit in result.hits]


def test_windows_slide_from_the_last_place_to_the_first():
    assert windows(20, 8, 4) == [(12, 20), (8, 16), (4, 12), (0, 8)]
    assert windows(10, 4, 3) == [(6, 10), (3, 7), (0, 4)]
    assert windows(3, 8, 4) == [(0, 3)]
    assert windows(1, 8, 4) == windows(0, 8, 4) == []


@given(st.integers(2, 60), st.integers(2, 20), st.integers(1, 19))
def test_windows_reach_the_first_place_and_leave_none_out(count, window, stride):
    found = windows(count, window, stride)
    assert found[0][1] == count
    assert found[-1][0] == 0
    assert all(stop - start <= window for start, stop in found)
    assert all(start <= stop for (start, _), (_, stop) in pairwise(found))


@given(st.text(max_size=60), st.integers(1, 9))
def test_any_reply_is_an_order(reply, count):
    order, _ = read_order(reply, count)
    assert sorted(order) == list(range(count))


def test_replies_by_hand():
    assert read_order("[2] > [1] > [3]", 3) == ([1, 0, 2], True)
    assert read_order("3 > 3 > 9", 3) == ([2, 0, 1], False)
    assert read_order("I cannot", 2) == ([0, 1], False)


def test_the_grammar_allows_an_order_and_no_more():
    grammar = Grammar(permutation_grammar(3))
    assert grammar.allows("2 > 3 > 1")
    for wrong in ("2 > 3", "4 > 1 > 2", "1 > 2 > 3 > 1", "one"):
        assert not grammar.allows(wrong)


def test_a_model_that_knows_brings_the_best_to_the_front(tmp_path):
    result, llm = asked(tmp_path, "listwise", {"listwise": heaviest_first}, candidates=24, check_order=True)
    assert (result.status, result.error) == ("ok", None)
    assert kilos(result)[:4] == [23, 22, 21, 20]  # half a window moves to the front each time
    step = next(span for span in result.spans if span.name == "order windows of passages")
    assert step.attributes["windows"] == len(windows(24, 8, 4))
    assert step.attributes["windows with numbers missing"] == 0
    assert all(request.grammar for request in llm.requests)


def test_a_model_that_looks_at_places_is_found_out(tmp_path):
    """It always says the order given: the reverse comes back reversed."""

    def as_given(request):
        return " > ".join(name for name, _ in shown(request))

    result, _ = asked(tmp_path, "listwise", {"listwise": as_given}, candidates=8, check_order=True)
    compare = next(span for span in result.spans if SWAYED in span.attributes)
    assert compare.attributes[SWAYED] == -1
    assert "Kendall's tau of -1.00" in compare.attributes["note"]
    knows, _ = asked(tmp_path, "listwise", {"listwise": heaviest_first}, candidates=8, check_order=True)
    assert next(s for s in knows.spans if SWAYED in s.attributes).attributes[SWAYED] == 1


def test_nonsense_keeps_the_order_and_is_counted(tmp_path):
    plain, _ = asked(tmp_path, "hybrid_linear", {})
    result, _ = asked(tmp_path, "listwise", {"listwise": "best ones first"}, candidates=8)
    assert kilos(result) == kilos(plain)
    step = next(span for span in result.spans if span.name == "order windows of passages")
    assert step.attributes["windows with numbers missing"] == 1


def test_choices_among_sets_fill_the_first_places(tmp_path):
    result, llm = asked(tmp_path, "setwise", {"setwise": heaviest}, candidates=24, size=4, top=3)
    assert (result.status, result.error) == ("ok", None)
    assert kilos(result)[:3] == [23, 22, 21]
    assert len({hit.passage.id for hit in result.hits}) == 24
    assert len(llm.requests) == sum(len(windows(24 - at, 4, 3)) for at in range(3))
    assert all(request.top_logprobs and request.max_tokens == 1 for request in llm.requests)


def test_a_budget_that_ends_keeps_what_was_chosen(tmp_path):
    engine = FakeEngine(tmp_path, texts=TEXTS, route_max_calls=9)
    engine.fake_llm.replies = {"setwise": heaviest}
    request = Request(Query("parcel"), "tiny", ("setwise",), parameters={"setwise": {"candidates": 24}})
    (result,) = engine.ask(request).results
    assert kilos(result)[0] == 23
    step = next(span for span in result.spans if span.name == "choose the best of sets")
    assert "keep their order" in step.attributes["note"]


def test_a_letter_that_is_none_is_an_error_that_says_so(tmp_path):
    result, _ = asked(tmp_path, "setwise", {"setwise": {"Q": 1.0}})
    assert result.status == "failed"
    assert "gave no letter" in result.error
