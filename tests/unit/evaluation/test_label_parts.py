"""What the Label page is made of: where to go next, catching up, shares, bands, lines, origins."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.domain.types import Passage, Query, Turn
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import final as listing
from core.evaluation.labels import pool
from core.evaluation.labels.desk import caught_up
from core.evaluation.labels.final import Tied, final, landis_koch
from core.evaluation.labels.label_next import onward
from core.evaluation.labels.pool import Share, shares
from core.store.labels import Judgement, Pooled
from tests.runs import make_run

ORDER = tuple(("q", str(n)) for n in range(8))


def said(pair, kind="later", number=0, grade=None):
    return Judgement(*pair, "me", "person", kind, grade, number=number)


@given(
    st.dictionaries(
        st.integers(0, 7), st.tuples(st.sampled_from(["grade", "cannot", "later"]), st.integers(1, 99))
    ),
    st.none() | st.integers(0, 7),
)
def test_onward_is_what_walking_the_order_by_hand_gives(given_, at):
    judged = {ORDER[n]: said(ORDER[n], kind, number) for n, (kind, number) in given_.items()}
    here = None if at is None else ORDER[at]
    found = onward(ORDER, judged, here)
    start = 0 if at is None else at + 1
    walked = [pair for pair in (*ORDER[start:], *ORDER[:start]) if pair not in judged]
    later = sorted((one for one in judged.values() if one.kind == "later"), key=lambda one: one.number)
    if walked:
        assert found == walked[0]
    elif not later:
        assert found is None
    else:
        others = [one.pair for one in later if one.pair != here]
        assert found in (others or [here])
        assert judged[found].number == min(judged[pair].number for pair in others or [here])


def filled(store, name="one"):
    asked = (Question("a", Query("A?"), split="dev"), Question("b", Query("B?")), Question("c", Query("C?")))
    desks.create(store, name, "tiny", asked)
    found = {
        "a": [
            Pooled(Passage("p1", "d", "T1", "one"), (("x", 1), ("y", 2))),
            Pooled(Passage("p2", "d", "T2", "two"), (("x", 2),)),
            Pooled(Passage("p3", "d", "T3", "three")),
        ],
        "b": [Pooled(Passage("p1", "d", "T1", "one"), (("y", 1),))],
    }
    desks.add_to_pool(store, name, found)


def grade(store, pair, who, value, source="person", name="one"):
    desks.judge(store, name, Judgement(*pair, who, source, "grade", value, f"by {who}"))


def test_a_desk_that_catches_up_is_the_desk_read_anew(store):
    filled(store)
    filled(store, "two")
    before = desks.load(store, "one")
    assert caught_up(store, before) is before
    grade(store, ("a", "p1"), "anna", 3)
    grade(store, ("a", "p1"), "other", 1, name="two")
    once = caught_up(store, before)
    desks.judge(store, "one", Judgement("a", "p2", "ben", "person", "cannot", note="half a \ud800 sentence"))
    desks.undo(store, "one", "anna")
    assert caught_up(store, once) == caught_up(store, before) == desks.load(store, "one")


def test_the_share_of_a_route_counts_what_it_found_alone(store):
    filled(store)
    assert shares(desks.load(store, "one")) == (Share("x", 2, 1), Share("y", 2, 1))


def test_bands_are_those_of_the_paper():
    kappas = (-0.1, 0.0, 0.2, 0.21, 0.4, 0.5, 0.6, 0.75, 0.8, 0.81, 1.0)
    bands = ["poor", *["slight"] * 2, *["fair"] * 2, *["moderate"] * 2, *["substantial"] * 2]
    assert [landis_koch(kappa) for kappa in kappas] == [*bands, *["almost perfect"] * 2]


def test_lines_say_who_said_what_and_what_became_of_it(store):
    filled(store)
    grade(store, ("a", "p1"), "anna", 1)
    grade(store, ("a", "p1"), "ben", 3)
    grade(store, ("a", "p2"), "anna", 3)
    grade(store, ("b", "p1"), "anna", 0)
    grade(store, ("a", "p1"), "carol", 2, "adjudication")
    grade(store, ("a", "p3"), "model:m", 3, "model")
    desk = desks.load(store, "one")
    finals = final(desk)
    tied = Tied(carried={("a", "p2"): ("n1", "n2")}, lost=[("b", "p1")], changed=[("a", "p1")])
    found = listing.lines(desk, finals, tied)
    assert [(one.question, one.passage, one.grade) for one in found] == [
        ("a", "p2", 3),
        ("a", "p1", 2),
        ("a", "p3", None),
        ("b", "p1", 0),
    ]
    assert found[0].now == "carried over by its words to n1, n2"
    assert found[1].how == "adjudicated"
    assert found[1].said == "anna: 1 (by anna); ben: 3 (by ben); carol (final): 2 (by carol)"
    assert found[1].now == "its words have changed since"
    assert (found[2].said, found[2].how) == ("", "unjudged")
    assert found[3].now == "lost: the corpus has no such text"
    moved = replace(tied, moved=[("a", "p2")])
    assert listing.lines(desk, finals, moved)[0].now == "carried over by its place to n1, n2"
    assert all(one.now == "" for one in listing.lines(desk, finals, None))


def test_questions_of_sessions_come_once_each_with_their_conversation(store):
    first = make_run(mishaps=False, run_id="a", corpus="tiny")
    bare = Query(first.query.text)
    told = Query(first.query.text, (Turn("user", "Another beginning."),))
    runs = [
        first,
        replace(first, id="b"),
        replace(first, id="c", query=bare),
        replace(first, id="d", query=told),
        replace(first, id="e", corpus="other", query=Query("Elsewhere?")),
    ]
    for run in runs:
        store.save(run)
    assert store.flush()
    found = pool.of_sessions(store, "tiny")
    assert {one.query for one in found} == {first.query, bare, told}
    assert len({one.id for one in found}) == 3
    store.delete("c")
    again = pool.of_sessions(store, "tiny")
    assert {one.query for one in again} == {first.query, told}
    assert {one.id for one in again} < {one.id for one in found}
    assert pool.of_sessions(store, "nowhere") == ()
