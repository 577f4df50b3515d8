"""Rankings in little memory, and evaluations that stay small however many questions they ask."""

import tracemalloc
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.ranked import Ids
from core.domain.types import Hit, Passage, Query, RouteResult, Run
from core.evaluation import runner
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import Journal
from core.evaluation.runner import Plan
from core.store import Store

pairs = st.lists(st.tuples(st.text(), st.floats(allow_nan=False))).map(tuple)


@given(st.lists(pairs, max_size=4))
def test_a_packed_ranking_is_the_ranking(rankings):
    ids = Ids()
    packed = [ids.ranked(one) for one in rankings]
    for one, all_of_it in zip(packed, rankings, strict=True):
        assert one == all_of_it
        assert (len(one), list(one), tuple(one)) == (len(all_of_it), list(all_of_it), all_of_it)
        assert one[:3] == all_of_it[:3]
        assert one[-1:] == all_of_it[-1:]
        assert [one[at] for at in range(len(one))] == list(all_of_it)
        assert repr(one) == repr(all_of_it)
    assert len(ids.known) == len({id for one in rankings for id, _ in one})
    assert [[a == b for b in packed] for a in packed] == [[a == b for b in rankings] for a in rankings]
    assert all(one != "ab" for one in packed)


class Asked:
    """Answers with `routes` results of 100 hits each, of ids that are new strings as an index' are."""

    warnings = ()

    def __init__(self, routes):
        self.routes, self.runs = routes, 0

    def start(self, request):
        self.runs += 1
        ids = [f"document-{n * 7 % 5000:05}" for n in range(100)]
        found = [Passage(f"{id}:0-700", id, "t", f"text {n}") for n, id in enumerate(ids)]
        hits = [tuple(Hit(p, 1.0 / (at + n + 1)) for at, p in enumerate(found)) for n in range(self.routes)]
        results = tuple(RouteResult(f"r{n}", "R", "ok", 1.0, hits=some) for n, some in enumerate(hits))
        named = {passage.id: passage for passage in found}
        self.run = Run(f"{self.runs:08}", "2026", request.query, "tiny", "f", {}, results, named)
        return self

    def wait(self, timeout=None):
        return self.run


def labelled(count):
    return LabelledSet("set", tuple(Question(f"q{n}", Query(f"Q {n}?")) for n in range(count)), {}, 2)


@pytest.mark.slow
def test_what_an_evaluation_keeps_of_a_question_is_small(tmp_path):
    count = 15
    plan, engine = Plan("tiny", tuple(f"r{n}" for n in range(25))), Asked(25)
    with Journal.open(tmp_path, {"a": 1}) as journal:
        runner.run(engine, labelled(2), plan)  # what is imported at first
        tracemalloc.start()
        outcomes, whole = runner.run(engine, labelled(count), plan, journal=journal)
        kept = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
    assert whole
    assert len(outcomes) == count
    assert kept < 100_000  # 7,000 questions: 0.7 GB
    tracemalloc.start()
    again = Journal.saved(tmp_path)
    opened, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert again == outcomes
    assert opened / count < 100_000
    assert peak < opened + 2_000_000  # a line at a time


@pytest.mark.slow
def test_runs_that_are_not_written_yet_do_not_pile_up(tmp_path, monkeypatch):
    waiting = []
    with closing(Store(tmp_path / "runs.sqlite")) as store:
        save = store.save

        def look(run):
            save(run)
            waiting.append(len(store._writer._runs))

        monkeypatch.setattr(store, "save", look)
        plan = Plan("tiny", ("r0",))
        runner.run(Asked(25), labelled(60), plan, runs=store)
        assert max(waiting) <= runner.UNWRITTEN
        assert store.flush()
        assert len(store.ids()) == 60
