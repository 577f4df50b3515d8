"""The decision audit: what it asks again, what it counts, and that it goes on where it was."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cli import corpora, main
from core.domain import settings as settings_module
from core.domain.errors import BadInput, Unavailable
from core.domain.settings import PROJECT, Settings
from core.domain.types import Query
from core.engine import engine as engine_module
from core.engine.request import Request
from core.evaluation.audit import audit, decisions
from core.evaluation.audit.decisions import MISSED, OTHER, BothWays, Case, Turned, measured, timed, turned_in
from core.evaluation.audit.decisions import cases as paired
from core.evaluation.dataset import Question
from core.evaluation.experiment_store import opened
from core.evaluation.outcome import Asked, Outcome, Taken
from core.evaluation.spec import Spec
from core.steps.decisions import ways
from core.store import Store
from tests.audited import ASKED, FIRED, STEP, Doubt, engine, known_to, labelled_set
from tests.fakes import TEXTS, FakeEngine, ScriptedLLM

SPEC = Spec("tiny", audit=("wary",), split="test")


@pytest.fixture
def wary(tmp_path, monkeypatch):
    """An engine that knows the route of these tests."""
    known_to(monkeypatch)
    yield engine(tmp_path / "home")
    decisions.own.cache_clear()


def audited(engine, out, spec=SPEC, **more):
    return audit.perform(engine, audit.prepare(engine, spec, labelled_set()), out, **more)


def the_row(figures, step=STEP):
    (row,) = [row for row in figures["decisions"] if row["step"] == step]
    return row


def test_figures_are_those_known_by_hand_and_can_be_made_again_of_the_folder(wary, tmp_path):
    figures = audited(wary, tmp_path / "out")
    row = the_row(figures)
    assert (row["route"], row["n"], row["fired"], row["left_out"]) == ("wary", 8, 5, {})
    assert row["decisions"] == {"search again": 5, "keep": 3}
    found = row["figures"]["recall@10"]
    assert (found["fired"], found["better"], found["tied"], found["worse"]) == (4, 2, 1, 1)
    assert (found["quiet"], found["missed"]) == (3, 1)
    assert found["precision"] == 2 / 4
    assert found["recall"] == 2 / 3
    assert found["gain"]["delta"] == pytest.approx((1 - 1 + 1 + 0) / 4)
    assert found["gain"]["ci95"][0] <= 0.25 <= found["gain"]["ci95"][1]
    assert found["gain_had_it_fired"] == pytest.approx((1 - 1 + 0) / 3)
    assert found["touched"]
    # One call of 10 and 5 tokens more, each made for its question.
    assert {key: row["price"][key] for key in ("n", "calls", "tokens", "timed")} == {
        "n": 5,
        "calls": 1.0,
        "tokens": 15.0,
        "timed": 5,
    }
    assert row["price"]["seconds"] is not None
    assert list(figures["routes"]) == ["hybrid_rrf", "rerank", "wary"]
    row = figures["routes"]["wary"]
    assert row["recall@10"] == pytest.approx(5 / 7)
    assert row["counts"]["recall@10"] == 7
    assert (row["use"]["calls"], row["use"]["tokens"]) == (5 / 8, 75 / 8)
    assert row["claim"] == "recall@10"
    assert row["planned"]["p_holm"] == row["planned"]["p"], "it is alone in its family"
    assert set(row["against"]) == {"hybrid_rrf", "rerank"}
    assert all("claim" not in figures["routes"][name] for name in ("hybrid_rrf", "rerank"))
    assert "p" not in row["against"]["rerank"]["ndcg@10"], "nobody planned it"
    assert audit.read(tmp_path / "out") == json.loads(json.dumps(figures))
    found = audit.read_cases(tmp_path / "out")
    assert decisions.table(found) == figures["decisions"]
    gains = {case.question: case.gain("recall@10") for case in found}
    assert gains == {
        "better": 1,
        "worse": -1,
        "better too": 1,
        "tied": 0,
        "no label": None,
        "missed": 1,
        "rightly quiet": -1,
        "quiet and tied": 0,
    }
    assert [case.question for case in found if case.acted] == FIRED
    rows = [json.loads(line) for line in (tmp_path / "out" / audit.BY_ROUTE).read_text().splitlines()]
    of_route = [row["routes"]["wary"]["recall@10"] for row in rows if row["routes"]["wary"]]
    assert sum(of_route) / len(of_route) == figures["routes"]["wary"]["recall@10"]


def test_the_runs_of_both_ways_are_kept_and_say_what_was_forced(wary, tmp_path):
    audited(wary, tmp_path / "out")
    case = next(one for one in audit.read_cases(tmp_path / "out") if one.question == "missed")
    with closing(Store(tmp_path / "out" / "runs.sqlite")) as store:
        itself, other = (
            next(result for result in store.load(id).results if result.route == "wary") for id in case.runs
        )
    first, second = (next(span for span in result.spans if span.name == STEP) for result in (itself, other))
    assert (first.output.decision, first.attributes) == ("keep", {})
    assert (second.output.decision, second.attributes) == ("search again", {"forced": "keep"})
    outcome = turned_in(tmp_path / "out")["missed"].turned[0].outcome
    assert outcome.decided == (Taken(STEP, "search again", forced="keep"),)
    assert opened(tmp_path / "out").outcomes["missed"]["wary"].decided == (Taken(STEP, "keep"),)


def test_what_every_answer_decides_is_turned_where_a_baseline_is_named(wary, tmp_path):
    wary.fake_llm.replies |= {"evidence": "0.9", "answer": "Said [1]."}
    spec = replace(SPEC, answers=True, queries=2)
    alone = audited(wary, tmp_path / "alone", spec)
    assert {row["route"] for row in alone["decisions"]} == {"wary"}
    named = audited(wary, tmp_path / "named", replace(spec, audit=("hybrid_rrf", "wary")))
    row = the_row(named, "is the answer in the passages")
    assert (row["route"], row["decisions"]) == ("hybrid_rrf", {"answer": 2})
    assert "claim" not in named["routes"]["hybrid_rrf"]
    spec = replace(SPEC, audit=("crag",), parameters={"crag": {"low": 1.0, "high": 1.0}})
    row = audited(wary, tmp_path / "out", spec)["routes"]["crag"]
    assert (row["claim"], row["planned"]["n"]) == ("recall@10", 7)


def test_a_decision_is_turned_to_the_other_of_its_pair_if_it_is_the_loops_own(wary):
    wanted = {"search again": (True, "keep"), "keep": (False, "search again"), "give up": None}
    assert {decision: decisions.other_way(STEP, decision) for decision in ways(Doubt)} == wanted
    assert decisions.fires()["act on the grades"][0] == ("knowledge gap", "go on without the web")
    assert decisions.own("wary") == {STEP}
    assert "is the answer in the passages" in decisions.own("hybrid_rrf")
    assert "act on the grades" in decisions.own("crag")
    names = [route.name for route in decisions.loops()]
    assert "crag" in names
    assert not {"hybrid_rrf", "rerank", "bm25", "dense"} & set(names)
    for route in decisions.loops():
        assert "is the answer in the passages" not in decisions.own(route.name)


@pytest.mark.parametrize("decision", ["replace it by the web", "add the web", "knowledge gap"])
def test_crag_runs_the_way_it_is_forced(tmp_path, decision):
    """Each way that the pairs name is one that the route can go."""
    web = {"w:0-9": "The moon is 384,400 km far away."} if decision != "knowledge gap" else None
    made = engine(tmp_path, web=web, web_search="snapshot" if web else "none")
    low = 0.01 if decision == "add the web" else 0.5  # no passage of the corpus has .1, the page has .8
    seen = {}
    for forced in (decision, dict(decisions.fires()["act on the grades"])[decision]):
        request = Request(
            Query("How far away is the moon?"),
            "tiny",
            ("crag",),
            {"crag": {"low": low, "high": 0.5}},
            "all",
            forced={"act on the grades": forced},
        )
        (result,) = made.ask(request).results
        span = next(span for span in result.spans if span.name == "act on the grades")
        assert (result.status, span.output.decision) == ("ok", forced)
        assert span.attributes["forced"] == decision
        seen[forced] = [*(hit.passage.id for hit in result.hits), result.answer]
    assert len(set(map(tuple, seen.values()))) == 2, "the two ways find or say something else"


@pytest.mark.parametrize(
    ("route", "step"),
    [
        ("hybrid_rrf", "is the answer in the passages"),
        ("hyde_gated", "look for exact terms"),
        ("self_rag", "decide whether to retrieve"),
        ("structured_hybrid", "choose the side"),
    ],
)
def test_a_route_runs_either_way_of_a_pair(tmp_path, route, step):
    replies = {"evidence": "0.9", "answer": "Said [1].", "sql": "SELECT name FROM items", "hyde": "customs"}
    made = FakeEngine(tmp_path, llm=ScriptedLLM(replies))
    ((fired, quiet),) = decisions.fires()[step]
    found = []
    for forced in (fired, quiet):
        request = Request(Query("fragile items"), "tiny", (route,), answers="all", forced={step: forced})
        (result,) = made.ask(request).results
        span = next(span for span in result.spans if span.name == step)
        assert (result.status, span.output.decision) == ("ok", forced), result.error
        found.append((result.answer, [hit.passage.id for hit in result.hits]))
    assert found[0] != found[1]


VALUES = st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0])
A_CASE = st.builds(
    Case,
    question=st.just("q"),
    route=st.sampled_from(["a", "b"]),
    step=st.just("s"),
    decision=st.just("x"),
    turned_to=st.just("y"),
    acted=st.booleans(),
    fired=st.fixed_dictionaries({"recall@10": VALUES}),
    quiet=st.fixed_dictionaries({"recall@10": VALUES}),
    calls=st.integers(-3, 3),
    tokens=st.just(0),
    seconds=st.none() | st.floats(-2, 2),
    runs=st.just(("", "")),
    left_out=st.sampled_from(["", "", "", MISSED]),
)


@given(st.lists(A_CASE, max_size=12))
def test_the_table_is_what_counting_gives(made):
    rows = {row["route"]: row for row in decisions.table(made)}
    assert set(rows) == {case.route for case in made}
    for route, row in rows.items():
        counts = dict.fromkeys(("better", "tied", "worse", "missed", "quiet"), 0)
        gains, calls, seconds = [], [], []
        for case in made:
            if case.route != route or case.left_out:
                continue
            if case.acted:
                calls.append(case.calls)
                seconds += [case.seconds] if case.seconds is not None else []
            fired, quiet = case.fired["recall@10"], case.quiet["recall@10"]
            if fired is None or quiet is None:
                continue
            if case.acted:
                gains.append(Fraction(fired) - Fraction(quiet))
                counts["better" if fired > quiet else "worse" if fired < quiet else "tied"] += 1
            else:
                counts["quiet"] += 1
                counts["missed"] += fired > quiet
        assert row["price"]["calls"] == (sum(calls) / len(calls) if calls else None)
        assert row["price"]["timed"] == len(seconds)
        found = row["figures"].get("recall@10")
        if found is None:
            assert not gains
            assert not counts["quiet"]
            continue
        assert {key: found[key] for key in counts} == counts
        best = counts["better"] + counts["missed"]
        assert found["precision"] == (float(Fraction(counts["better"], len(gains))) if gains else None)
        assert found["recall"] == (float(Fraction(counts["better"], best)) if best else None)
        if gains:
            assert found["gain"]["delta"] == pytest.approx(float(sum(gains) / len(gains)))
            assert found["gain"]["n"] == len(gains)


# --- prices and what cannot be compared

BEGAN = "2026-01-02T00:00:00.250+00:00"
OLD, NEW = "2026-01-01T23:59:59+00:00", "2026-01-02T00:00:00+00:00"


def test_seconds_count_where_what_differs_was_made_now():
    for fired, quiet, wanted in (
        ([], [], True),  # no model was asked
        ([("a", "")], [], True),
        ([("a", OLD)], [], False),
        ([("a", NEW)], [], True),  # by another way of the same question
        ([("a", OLD)], [("a", OLD)], True),  # the same in both cancels
        ([("a", ""), ("b", OLD)], [("a", OLD)], False),
        ([("a", ""), ("b", "")], [("a", OLD), ("c", OLD)], False),
        ([("a", ""), ("a", OLD)], [("a", "")], False),  # twice in one
    ):
        one, other = ([Asked(key, 5.0, made) for key, made in calls] for calls in (fired, quiet))
        assert timed(one, other, BEGAN) is wanted, (fired, quiet)
        assert timed(other, one, BEGAN) is wanted, (fired, quiet)


@pytest.mark.parametrize(
    ("again", "why"),
    [
        (Outcome("timeout", 1.0, decided=(Taken("s", "y", forced="x"),)), "failed when asked again"),
        (Outcome("ok", 1.0), MISSED),
        (Outcome("ok", 1.0, decided=(Taken("s", "y"),)), MISSED),
        (Outcome("ok", 1.0, decided=(Taken("s", "y", forced="z"),)), OTHER),
        (Outcome("ok", 1.0, decided=(Taken("s", "y", forced="x"),)), ""),
    ],
)
def test_what_did_not_come_to_the_same_decision_counts_nowhere(again, why):
    itself = Outcome("ok", 1.0, run="r", decided=(Taken("s", "x"),))
    both = {"q": BothWays("r", (Turned("a", "s", "x", "y", True, again),))}
    values = lambda _outcomes, names: {name: {"q": {"recall@10": float(name == "a")}} for name in names}  # noqa: E731
    (case,) = paired({"q": {"a": itself}}, both, values)
    assert (case.left_out, case.gain("recall@10")) == (why, None if why else 1.0)


def test_what_is_measured_of_database_queries_is_a_figure_too():
    itself = Outcome("ok", 1.0, run="r", decided=(Taken("s", "x"),))
    again = Outcome("ok", 1.0, decided=(Taken("s", "y", forced="x"),))
    both = {"better": BothWays("r", (Turned("a", "s", "x", "y", True, again),))}

    def measure(outcomes, names):
        rows = {name: {id: {"execution_accuracy": float(name == "a")} for id in outcomes} for name in names}
        return measured(labelled_set(), outcomes, names, rows)

    found = paired({"better": {"a": itself}}, both, measure)
    (row,) = decisions.table(found)
    assert row["figures"]["execution_accuracy"]["gain"]["delta"] == 1.0
    assert row["figures"]["recall@10"]["tied"] == 1, "neither found anything"


class Counting:
    """Notes what an engine is asked, and may end the process at one of them."""

    def __init__(self, engine, kill_at=None):
        self.asked, self._start, self._kill_at = [], engine.start, kill_at
        engine.start = self

    def __call__(self, request):
        self.asked.append(dict(request.forced))
        if len(self.asked) == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._start(request)


KILLED = """
import sys, pytest
from pathlib import Path
from tests.audited import engine, known_to
from tests.unit.evaluation.test_audit import Counting, audited
with pytest.MonkeyPatch.context() as patch:
    known_to(patch)
    made = engine(Path(sys.argv[1]) / "home")
    Counting(made, int(sys.argv[3]))
    audited(made, Path(sys.argv[2]))
"""


@pytest.mark.process
@pytest.mark.parametrize("at", [5, 6])  # in the third question: asked as it is, and with its decision turned
def test_a_killed_audit_goes_on_where_it_was(wary, tmp_path, at):
    out = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(out), str(at)]
    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert not (out / audit.AUDIT).exists()
    counting = Counting(wary)
    figures = audited(wary, out)
    assert len(counting.asked) == 16 - (at - 1)
    assert [bool(forced) for forced in counting.asked[:2]] == [at == 6, at != 6]
    whole = audited(wary, tmp_path / "whole")
    for key in ("queries", "decisions"):
        assert _without_times(figures[key]) == _without_times(whole[key])


def _without_times(value):
    if isinstance(value, dict):
        return {k: _without_times(v) for k, v in value.items() if k not in ("seconds", "timed")}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


def test_a_stopped_audit_has_the_figures_of_what_was_asked(wary, tmp_path):
    counting = Counting(wary)
    figures = audited(wary, tmp_path / "out", ended=lambda: len(counting.asked) >= 5)
    assert (figures["interrupted"], figures["queries"]) == (True, 3)
    assert the_row(figures)["n"] == 2, "the third was not yet asked the other way"
    assert "Stopped before its end" in (tmp_path / "out" / audit.TABLES).read_text()
    assert the_row(audited(wary, tmp_path / "out"))["n"] == 8
    assert len(counting.asked) == 16
    before = turned_in(tmp_path / "out")  # a question that was asked again since counts once
    journal = tmp_path / "out" / "questions.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if json.loads(line).get("question") != "missed"))
    row = the_row(audited(wary, tmp_path / "out"))
    after = turned_in(tmp_path / "out")
    assert row["n"] == 8
    assert after["missed"].run != before["missed"].run
    assert all(after[id] == before[id] for id in ASKED if id != "missed")


def test_another_audit_is_not_mixed_in(wary, tmp_path):
    audited(wary, tmp_path / "out")
    for spec, told in [
        (replace(SPEC, seed=4), "seed: 13 there, 4 now"),
        (replace(SPEC, queries=3), "queries: None there, 3 now"),
        (replace(SPEC, audit=("wary", "crag")), "routes: "),
    ]:
        with pytest.raises(BadInput, match="holds another audit or evaluation") as error:
            audited(wary, tmp_path / "out", spec)
        assert told in str(error.value)
    stopped = audited(wary, tmp_path / "out", replace(SPEC, seed=4), fresh=True, ended=lambda: True)
    assert (stopped["interrupted"], stopped["queries"], stopped["decisions"]) == (True, 0, [])
    assert the_row(audited(wary, tmp_path / "out", replace(SPEC, seed=4)))["n"] == 8


def test_what_cannot_be_audited_is_told_before_anything_is_asked(wary, tmp_path):
    with pytest.raises(BadInput, match="unknown route 'nope'"):
        audit.prepare(wary, replace(SPEC, audit=("nope",)), labelled_set())
    bare = replace(labelled_set(), qrels={})
    with pytest.raises(BadInput, match="none of the 8 questions drawn has a relevant passage"):
        audit.prepare(wary, SPEC, bare)
    wary.fake_llm.missing = "no model; run this"
    with pytest.raises(Unavailable, match="confidence cannot be audited here: no model; run this"):
        audit.prepare(wary, replace(SPEC, audit=("confidence",)), labelled_set())
    with pytest.raises(Unavailable, match="answers cannot be written by a model"):
        audit.prepare(wary, replace(SPEC, answers=True), labelled_set())
    ready = audit.prepare(wary, replace(SPEC, audit=()), labelled_set())
    assert {"crag", "wary"} <= set(ready.plan.routes)
    assert any(one.startswith("confidence is left out: no model") for one in ready.warnings)
    ready = audit.prepare(wary, replace(SPEC, audit=("bm25", "wary")), labelled_set())
    assert "bm25: no decision of its own to turn" in ready.warnings
    golds = tuple(
        Question(q.id, q.query, answers=("days",), answerable=True) for q in labelled_set().questions
    )
    ready = audit.prepare(wary, SPEC, replace(labelled_set(), questions=golds, qrels={}))
    assert len(ready.labelled.questions) == 8


@pytest.fixture
def call(wary, tmp_path, monkeypatch, capsys):
    """Run one command line in this process over a BEIR folder of the questions: (exit code, out, err)."""
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": id, "text": text} for id, text in TEXTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    rows = [{"_id": id, "text": text} for id, (text, *_) in ASKED.items()]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    golds = [f"{id}\t{gold}\t1" for id, (*_, gold) in ASKED.items() if gold]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *golds, ""]))
    monkeypatch.setattr(engine_module, "shared_engine", lambda: wary)
    monkeypatch.setattr(settings_module, "current", lambda: Settings(home=tmp_path / "home"))
    monkeypatch.setattr(corpora, "ensure", lambda source, settings: None)
    tie = lambda found, corpus: (found, [])  # noqa: E731 - the fake corpus has no documents
    monkeypatch.setattr("core.evaluation.sets.tie", tie)

    def run(*args):
        code = main([str(arg) for arg in ("audit", folder, *args)])
        return code, *capsys.readouterr()

    return run


def test_the_command_writes_figures_on_stdout_and_keeps_them_for_the_page(call, tmp_path):
    out = tmp_path / "out"
    args = ("--routes", "wary", "--queries", "7", "--seed", "3", "--answers", "none", "--out", out, "--json")
    code, told, err = call(*args)
    assert code == 0
    figures = json.loads(told)
    assert {"routes", "decisions", "baseline", "model", "machine", "versions", "spec"} <= set(figures)
    assert (figures["queries"], figures["spec"]["seed"], figures["spec"]["queries"]) == (7, 3, 7)
    assert figures["model"] == {"name": "scripted", "endpoint": "test"}
    assert "questions: 7 of 7 in " in err
    again, told, err = call(*args)
    assert (again, json.loads(told)["decisions"]) == (0, figures["decisions"])
    assert "questions: 7 of 7 in " in err
    code, told, _ = call(*args[:-1])
    assert code == 0
    assert STEP in told
    assert "audit.md" in told
    assert call("--routes", "wary", "--answers", "none", "--json")[0] == 0
    assert (tmp_path / "home" / "evaluations" / "audit-tiny" / audit.AUDIT).is_file()


def test_bad_input_is_one_line(call):
    for args, told in (
        (("--queries", "0"), "--queries"),
        (("--routes", "nope"), "unknown route 'nope'"),
        (("--baseline", "nope"), "unknown route 'nope'"),
        (("--answers", "none", "--answer-by", "extract"), "--answer-by needs --answers all"),
        (("--mode", "plain"), "has no questions of mode 'plain'"),
        (("--split", "dev"), "there are: test, all"),
        (("--parameter", "dense.k=1"), "not one of the chosen routes"),
    ):
        code, out, err = call("--routes", "wary", *args)
        assert (code, out) == (2, "")
        (line,) = err.splitlines()
        assert told in line


@pytest.mark.parametrize(("after", "times"), [(0, 1), (3, 1), (3, 2)])
def test_ctrl_c_ends_the_command_with_130_and_says_how_to_go_on(call, wary, tmp_path, after, times):
    start = wary.start

    def interrupted(request):
        interrupted.left -= 1
        for _ in range(times if interrupted.left == -1 else 0):
            os.kill(os.getpid(), signal.SIGINT)
        return start(request)

    interrupted.left, wary.start = after, interrupted
    args = ("--routes", "wary", "--answers", "none", "--out", tmp_path / "out")
    code, _, err = call(*args, "--json")
    assert code == 130
    assert "the same command resumes" in err
    if times == 1:
        assert json.loads((tmp_path / "out" / audit.AUDIT).read_text())["interrupted"]
    code, told, _ = call(*args, "--json")
    assert (code, json.loads(told)["queries"]) == (0, 7)
