"""Traffic sorted by how much labels would decide: its arithmetic by hand, its order, warnings and command."""

import json
import threading
from statistics import fmean

import pytest

from core.cli import main
from core.domain.types import Query
from core.evaluation.labels import desk as desks
from core.evaluation.labels.label_next import order_for
from core.evaluation.triage import Budget, TrafficQuestion, of_traces, triage
from core.store.labels import Judgement
from core.store.traces_in import read
from tests.fakes import FakeEngine, asked_by_commands
from tests.parcels import TEXTS, passages

ASKED = "On which day is parcel number {} sent?"


@pytest.fixture
def engine(tmp_path, store):
    return FakeEngine(tmp_path, texts=TEXTS, store=store)


def attributes(known):
    return [{"key": key, "value": {"stringValue": value}} for key, value in known.items()]


def request(n, text, shown=(), **known):
    """A trace as OTLP has it: a retriever that was asked `text` and returned passages by id."""
    asked = {"openinference.span.kind": "RETRIEVER", "input.value": text}
    asked |= {f"retrieval.documents.{at}.document.id": id for at, id in enumerate(shown)}
    asked |= {name.replace("_", "."): value for name, value in known.items()}
    began = 1_790_000_000_000_000_000 + n
    times = {"startTimeUnixNano": str(began), "endTimeUnixNano": str(began + 1000)}
    ids = {"traceId": f"{n:032x}", "spanId": f"{n:016x}"}
    return {**ids, "name": "search", **times, "attributes": attributes(asked)}


BLAMED = {"gen_ai.evaluation.name": "thumbs", "gen_ai.evaluation.score.label": "bad"}
THUMBS = {"name": "gen_ai.evaluation.result", "attributes": attributes(BLAMED)}


def otlp(*spans):
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}).encode()


def top(engine, text, route="bm25"):
    return [hit.passage.id for hit in engine.corpus("tiny").search_sparse(text, 10)]


def sorted_traffic(engine, *spans, routes=("bm25", "dense"), **given):
    corpus = engine.corpus("tiny")
    return triage(engine, corpus, of_traces(read(otlp(*spans), "x").traces, corpus), routes, **given)


@pytest.mark.parametrize(
    ("shown", "found", "alike", "differs"),
    [
        # with p 0.9 and two lists of 2: agreements 0 and 1 give 0.1 * 0.9 + 0.81 = 0.9; 0 and 0 give 0
        (["ab"], {"swaps": "ba", "other": "cd", "same": "ab"}, [0.9, 0, 1, 0, 0.9, 0], ["c", "d"]),
        ([], {"one": "ab", "other": "ba"}, [0.9], []),  # nothing shown: the candidates are compared
        ([], {"one": "a", "other": "ac"}, [1], ["c"]),
        ([], {"one": "", "other": ""}, [1], []),
    ],
)
def test_the_disagreement_of_a_question_by_hand(shown, found, alike, differs):
    asked = TrafficQuestion(Query("Q"), count=4, complaints=1, shown=[*map(list, shown)])
    row = asked.compare({route: list(ids) for route, ids in found.items()})
    assert row["decisive"] == pytest.approx(4 * (1 - fmean(alike)))
    assert row["overlap"] == pytest.approx(dict(zip(found, alike, strict=False)) if shown else {})
    assert (row["between"], row["differs"]) == (
        pytest.approx(fmean(alike[-(len(found) - 1) * len(found) // 2 :])),
        differs,
    )
    assert TrafficQuestion(Query("Q")).compare({"one": ["a"]})["decisive"] is None


def test_those_asked_often_go_first_then_those_with_a_complaint_and_equal_ones_are_not_listed(engine):
    same, once, often, blamed = (ASKED.format(n) for n in (1, 2, 3, 4))
    wrong = [passages(engine.corpus("tiny"))[n] for n in (30, 31, 32)]
    bad = request(6, blamed, wrong) | {"events": [THUMBS]}
    found = sorted_traffic(
        engine,
        request(1, same, top(engine, same)),
        request(2, once, wrong),
        *(request(n, text, wrong) for n, text in enumerate((often, often.upper(), f" {often} "), 3)),
        bad,
        routes=["bm25"],
    )
    assert (found["traces"], found["questions"], found["same"]) == (6, 4, 1)
    rows = [(one["question"], one["count"], one["complaints"]) for one in found["to_label"]]
    assert rows == [(often, 3, 0), (blamed, 1, 1), (once, 1, 0)]
    assert set(wrong) & set(found["to_label"][1]["differs"])
    assert found["to_label"][1]["between"] is None


def test_what_traffic_does_not_show_is_a_warning_each(engine):
    known, alike = passages(engine.corpus("tiny"))[1], {"session_id": "s", "user_id": "u"}
    found = sorted_traffic(
        engine,
        request(1, ASKED.format(1), [known, "nowhere"], **alike),
        request(2, ASKED.format(2), **alike),
        request(3, "hello, thanks!", **alike),
    )
    parts = ("one user", "one session", "fewer than 20", "not in corpus tiny", "small talk", "2 traces show")
    assert [sum(part in line for line in found["warnings"]) for part in parts] == [1] * len(parts)
    assert all("hello" not in one["question"] for one in found["to_label"])
    apart = [request(n, ASKED.format(n), user_id=f"u{n}") for n in (1, 2)]
    warnings = sorted_traffic(engine, *apart)["warnings"]
    assert not any("one user" in line or "one session" in line for line in warnings)


def test_what_was_asked_before_a_stop_or_within_the_budget_is_compared_and_the_next_replay_asks_the_rest(
    engine,
):
    stop = threading.Event()

    def progress(what, done, of):
        if what == "ask questions" and done == 2:
            stop.set()

    wrong = [passages(engine.corpus("tiny"))[30]]
    spans = [request(n, ASKED.format(n), wrong) for n in range(1, 6)]
    found = sorted_traffic(engine, *spans, progress=progress, cancel=stop)
    assert (found["questions"], len(found["to_label"])) == (5, 2)
    assert any("2 of 5 questions" in line for line in found["warnings"])
    counts = []
    for _ in range(3):
        found = sorted_traffic(engine, *spans, spans[0], budget=Budget(2), label_set="traffic")
        counts.append((found["replay"]["asked"], found["replay"]["asked_before"], len(found["to_label"])))
    assert counts == [(2, 0, 2), (2, 2, 4), (1, 4, 5)]
    desk = desks.load(engine.store, "traffic")
    assert [one.count for one in desk.questions].count(1) == 5
    assert {route for by in desk.pool.values() for one in by.values() for route, _ in one.found} == {
        *("shown", "bm25", "dense")
    }
    assert len(order_for(desk, "ann")) == len(desk.pairs)
    assert sorted_traffic(engine, *spans, budget=Budget(seconds=1e-9))["to_label"] == []


def test_the_command_lists_what_differs_and_refuses_other_files(engine, monkeypatch, tmp_path, capsys):
    asked_by_commands(monkeypatch, engine)
    file = tmp_path / "traces.json"
    wrong = [passages(engine.corpus("tiny"))[30]]
    file.write_bytes(otlp(*(request(n, ASKED.format(n), wrong) for n in (1, 2))))
    line = ["traffic", "triage", str(file), "--corpus", "tiny", "--routes", "bm25,dense"]
    assert main([*line, "--most", "1", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == {
        *("corpus", "routes", "traces", "questions", "same", "to_label", "replay", "warnings")
    }
    assert (printed["routes"], printed["questions"], len(printed["to_label"])) == (["bm25", "dense"], 2, 1)
    assert set(printed["to_label"][0]["overlap"]) == {"bm25", "dense"}
    assert main(line) == 0
    assert ASKED.format(1) in capsys.readouterr().out
    file.write_bytes(otlp(request(1, ASKED.format(1), wrong) | {"events": [THUMBS]}))
    kept = [*line[:2], "--corpus", "tiny", "--routes", "bm25", "--label-set", "own", "--json"]
    for given, asked in ([str(file)], 1), ([], 0):
        assert main([*kept, *given]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert (printed["replay"]["asked"], printed["to_label"][0]["complaints"]) == (asked, 1)
    assert printed["beyond_shown"] == []
    (known,) = desks.load(engine.store, "regressions tiny").questions
    assert (known.complaints[0].failure, known.complaints[0].who) == ("other", "OpenTelemetry: thumbs")
    passage = order_for(desks.load(engine.store, "own"), "ann")[0]
    desks.judge(engine.store, "own", Judgement(*passage, "ann", "person", "grade", 3))
    assert main(kept[:-1]) == 0
    assert "bm25" in capsys.readouterr().out
    for content in (b"{", b"PK\x05\x06", b"[]"):
        file.write_bytes(content)
        assert main(line) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert main([*line[:2], str(tmp_path / "none.json"), *line[3:]]) == 2
