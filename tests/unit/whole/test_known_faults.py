"""Faults seen in other tools of this kind: none of them may come in here."""

import itertools
import math

import pytest

from core.backends.sql import QueryLimits, SqlRejected
from core.domain.errors import BadInput, ModelFailed
from core.domain.fusion import linear, rrf
from core.domain.needs import Need
from core.domain.outputs import PassageGrade
from core.domain.types import Hit, Passage, Query
from core.engine.request import Request
from core.evaluation import outcome, runner, summary
from core.evaluation.dataset import LabelledSet, Question
from core.routes.registry import routes
from core.steps import Steps
from core.steps.fuse import union
from tests.fakes import TEXTS, FakeEngine, ScriptedLLM
from tests.reflecting import ScriptedReflection, by_default, segment

NORMS = ("min_max", "dbsf")


def ranking(*entries):
    return tuple(Hit(Passage(id, id, id, f"text of {id}"), float(score)) for id, score in entries)


A, B = ranking(("x", 9), ("y", 5)), ranking(("y", 0.9), ("z", 0.2))


def scores(hits):
    return {hit.passage.id: hit.score for hit in hits}


def test_rrf_uses_its_weights_and_counts_ranks_from_one():
    assert scores(rrf([A, B], k=60, weights=[3, 1])) == {
        "x": pytest.approx(3 / 61),
        "y": pytest.approx(3 / 62 + 1 / 61),
        "z": pytest.approx(1 / 62),
    }


@pytest.mark.parametrize(
    "fuse",
    [rrf, linear, lambda lists: linear(lists, norm="dbsf"), union],
    ids=("rrf", *NORMS, "union"),
)
def test_a_repeat_inside_one_list_counts_once(fuse):
    twice = ranking(("x", 9), ("y", 8), ("y", 7), ("y", 6), ("z", 1))
    once = ranking(("x", 9), ("y", 8), ("z", 1))
    other = ranking(("z", 3), ("x", 2))
    assert scores(fuse([twice, other])) == scores(fuse([once, other]))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("single", [ranking(("x", 7)), ranking(("x", 7), ("y", 7)), ranking(("x", -3))])
def test_a_single_hit_and_ties_have_a_defined_score_and_empty_lists_are_allowed(norm, single):
    found = linear([single, ()], norm=norm)
    assert {hit.score for hit in found} == {1.0 if norm == "min_max" else 0.5}
    assert linear([(), ()], norm=norm) == ()


@pytest.mark.parametrize(
    "fuse", [rrf, linear, lambda lists, **given: linear(lists, norm="dbsf", **given)], ids=("rrf", *NORMS)
)
def test_weights_are_used_in_every_mode_or_refused(fuse):
    assert scores(fuse([A, B], weights=[1, 4])) != scores(fuse([A, B], weights=[4, 1]))
    with pytest.raises(BadInput, match="3 weights for 2 lists"):
        fuse([A, B], weights=[1, 2, 3])


@pytest.mark.parametrize("fuse", [rrf, linear], ids=("rrf", "linear"))
def test_what_a_list_does_not_have_gets_nothing_from_it(fuse):
    assert scores(fuse([A, B]))["x"] == scores(fuse([A, ()]))["x"]


@pytest.mark.parametrize("fuse", [rrf, linear, union])
def test_a_merged_passage_is_one_object_whatever_the_order_of_lists(fuse):
    for lists in itertools.permutations([A, B, ranking(("z", 1))]):
        assert {hit.passage.id: hit.passage.text for hit in fuse(list(lists))} == {
            id: f"text of {id}" for id in "xyz"
        }


def test_the_hyde_prompt_given_is_the_prompt_sent(tmp_path):
    llm = ScriptedLLM()
    request = Request(Query("a box"), "tiny", ("hyde",), {"hyde": {"instruction": "Answer in Latin."}})
    FakeEngine(tmp_path, llm=llm).ask(request)
    assert [m.content for m in llm.requests[0].messages if m.role == "system"] == ["Answer in Latin."]


@pytest.mark.parametrize(
    ("grade", "decision", "searches"),
    [("0.95", "correct", 0), ("0.75", "ambiguous", 1), ("0.1", "incorrect", 1)],
)
def test_crag_reaches_each_action_and_its_web_search_fires(tmp_path, grade, decision, searches):
    engine = FakeEngine(
        tmp_path, llm=ScriptedLLM({"grade": grade}), web={"page:0-9": "a crushed box on the web"}
    )
    request = Request(Query("My box arrived crushed"), "tiny", ("crag",), {"crag": {"evaluator": "llm"}})
    spans = engine.ask(request).results[0].spans
    assert next(s for s in spans if s.name == "grade and decide").output.decision == decision
    assert sum(span.name == "search the web" and bool(span.hits) for span in spans) == searches


@pytest.mark.parametrize("bad", [ModelFailed("HTML"), "Maybe."], ids=("failure", "unparsable"))
@pytest.mark.parametrize("route", ["crag", "rerank"])
def test_a_grade_that_could_not_be_had_is_no_pass_and_is_counted(tmp_path, bad, route):
    from core.backends.base import Completion

    class Half(ScriptedLLM):
        """Grades every other passage."""

        def complete(self, request, *, timeout, cancel, written=None):
            if len(self.requests) % 2:
                if isinstance(bad, Exception):
                    self.requests.append(request)
                    raise bad
                self.requests.append(request)
                return Completion(bad, self.model, "stop", 1.0, 1, 1)
            return super().complete(request, timeout=timeout, cancel=cancel)

    engine = FakeEngine(tmp_path, llm=Half({"grade": "0.9"}), web={"page:0-9": "web"})
    parameters = {route: {"reranker" if route == "rerank" else "evaluator": "llm"}}
    result = engine.ask(Request(Query("My box arrived crushed"), "tiny", (route,), parameters)).results[0]
    assert result.error is None
    told = [
        g
        for s in result.spans
        if s.name == "grade passage" and isinstance(s.output, PassageGrade)
        for g in [s.output]
    ]
    failed = [s for s in result.spans if s.name == "grade passage" and s.error]
    lost = [grade for grade in told if grade.state != "scored"]
    assert lost or failed
    assert all(grade.grade is None for grade in lost), "it is neither a pass nor a zero"
    assert any(grade.state == "scored" for grade in told)


def test_failed_questions_are_left_out_of_the_mean_and_counted(tmp_path):
    questions = (Question("1", Query("a")), Question("2", Query("b")))
    labelled = LabelledSet("two", questions, {"1": {"p": 1}, "2": {"p": 1}})
    outcomes = {
        "1": {"r": outcome.Outcome("ok", 1.0, (("p", 1.0),))},
        "2": {"r": outcome.Outcome("failed", 1.0, error="broken")},
    }
    row = summary.summarise(labelled, outcomes, ["r"])["routes"]["r"]
    assert (row["ndcg@10"], row["failed"], row["n"]) == (1.0, 1, 1)
    assert not any(isinstance(value, float) and math.isnan(value) for value in row.values())


def test_page_command_line_evaluation_and_import_run_one_function(tmp_path):
    """The engine's run, an evaluation's, and a direct call of the route agree hit by hit."""
    from threading import Event

    from core.steps import Memo
    from core.steps.trace import Trace

    engine = FakeEngine(tmp_path, web={"page:0-9": "web"})
    query = Query("How long is the refund?")
    labelled = LabelledSet("one", (Question("1", query),), {"1": {"returns:90-180": 1}})
    for name in ("bm25", "hybrid_rrf", "hybrid_linear", "rerank", "mmr", "parent"):
        asked = engine.ask(Request(query, "tiny", (name,))).results[0].hits
        outcomes, _ = runner.run(engine, labelled, runner.Plan("tiny", (name,)))
        context = engine.context(engine.corpus("tiny"), None, Trace(), Memo(), Event())
        direct = routes()[name].run(query, Steps(context), routes()[name].settle({})).hits
        assert asked == direct
        assert outcomes["1"][name].hits == tuple((hit.passage.id, hit.score) for hit in direct)


def test_labels_hang_on_passages_that_keep_their_ids(tmp_path):
    first, second = (FakeEngine(tmp_path / str(n)) for n in range(2))
    ids = [
        {h.passage.id for h in e.ask(Request(Query("box"), "tiny", ("dense",))).results[0].hits}
        for e in (first, second)
    ]
    assert ids[0] == ids[1] == set(TEXTS)


def test_no_rank_is_made_up_for_a_passage_that_no_list_has():
    """Ranks of a sparse list stop where its hits stop: nothing beyond is ranked."""
    assert {hit.passage.id for hit in rrf([A, (), B])} == {"x", "y", "z"}
    assert scores(rrf([A, ()])) == scores(rrf([A]))


def test_partial_support_and_none_do_not_tie(tmp_path):
    """Half of P(partially) counts, so a partly supported segment leads one that is not supported at all."""
    supports = {"aa": (0.0, 0.0, 1.0), "bb": (0.0, 1.0, 0.0), "cc": (0.0, 0.0, 1.0)}
    texts = {f"{name}:0-9": f"a box, as {name} says" for name in supports}

    def script(prompt):
        if "<paragraph>" not in prompt:
            return by_default(prompt)
        name = next(name for name in supports if f"as {name} says" in prompt)
        return segment(f"So says {name}.", support=supports[name])

    engine = FakeEngine(tmp_path, texts=texts)
    engine.fake_reflection = ScriptedReflection(script)
    result = engine.ask(Request(Query("a box"), "tiny", ("self_rag",))).results[0]
    assert result.citations == ("bb:0-9",)
    tree = next(span.output for span in result.spans if span.name == "choose the best path")
    scored = {branch.passage: branch.score for branch in tree.branches}
    assert scored["bb:0-9"] == pytest.approx(scored["aa:0-9"] + 0.5)
    assert scored["aa:0-9"] == pytest.approx(scored["cc:0-9"])


@pytest.mark.process
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM orders",
        "DROP TABLE orders",
        "UPDATE orders SET total = 0",
        "SELECT 1; DELETE FROM orders",
        "WITH x AS (SELECT 1) DELETE FROM orders",
        "PRAGMA query_only = OFF",
        "ATTACH 'other.sqlite' AS other",
        "SELECT load_extension('other')",
        "SELECT sql FROM sqlite_master",
        "VACUUM INTO 'other.sqlite'",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    ],
)
def test_sql_of_a_model_is_held_by_a_guard_not_by_advice(tmp_path, sql):
    tables = FakeEngine(tmp_path).tables("tiny", Need.TABLES)
    with pytest.raises(SqlRejected):
        tables.query(sql, limits=QueryLimits(seconds=0.2))
    assert len(tables.query("SELECT * FROM orders").rows) == 3
    assert len(tables.query("SELECT 1 FROM orders a, orders b, orders c, orders d, orders e").rows) == 200
