"""Filters that a question names, by rules and by the model, and scores weighed by age."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.analysis.remarks import remarks
from core.corpus.metadata import Metadata
from core.domain.filters import Filter
from core.domain.outputs import FiltersRead
from core.domain.settings import PROJECT
from core.domain.types import Query
from core.engine.request import Request
from core.steps.conditions import UNDATED, iso, read
from tests.asking import scores, span
from tests.fakes import FakeEngine, ScriptedLLM
from tests.unit.domain.test_filters import TEXTS

HEADS = (
    (
        "carriers/a.md",
        "Owner: Claims team (Henrike Stahl)\nLast updated: 2024-02-12\nStatus: superseded by b\nRegion: UK",
    ),
    ("runbooks/b.md", "Owner: Logistics\nLast updated: 2026-03-01\nStatus: in force\nRegion: EU"),
    ("runbooks/c.md", "Owner: Fresh team, Femke Roos\nLast updated: 2025-09-18\nVersion: 2.1.0"),
    ("peak/d.md", "Owner: Logistics\nPublished: 2025-01-01\nVersion: 1.10"),
    ("peak/e.md", "Published: 2025-02-01"),
)
FIELDS = Metadata((id, {}, text) for id, text in HEADS).fields


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("What do the documents of the Claims team say about boxes?", ["owner~Claims team"]),
        ("Who is Henrike Stahl?", []),
        ("According to Femke Roos, how cold is it?", ["owner~Femke Roos"]),
        ("What does the Claims team pay?", []),
        ("What do the Claims team's rules say?", ["owner~Claims team"]),
        ("How does logistics work?", []),
        ("owner:Logistics how do pallets travel", ["owner~Logistics"]),
        ('owner="Fresh team" last_updated>=2025-01', ["owner=Fresh team", "last_updated>=2025-01"]),
        ("Which rules apply, region UK?", ["region~UK"]),
        ("What was the limit in the superseded table?", ["status~superseded"]),
        ("What is the current limit in the rules?", []),
        ("What do the current rules say?", ["status!~superseded"]),
        ("What do rules that are still in force say?", ["status!~superseded"]),
        ("Is the old van for sale?", []),
        ("Pages updated since May 2025 and before 2026?", ["last_updated>=2025-05"]),
        ("documents from 18 September 2025", ["last_updated=2025-09-18"]),
        ("notes written before March 3, 2026", ["last_updated<2026-03-03"]),
        ("policies updated until 2024-12-31", ["last_updated<=2024-12-31"]),
        ("rules updated in Febtober 2025", []),
        ("What happened in May 2025?", []),
        ("What do the runbooks in version 2.1.0 say?", ["version=2.1.0"]),
        ("How is it restarted, in the runbooks?", ["folder~runbooks"]),
        ("records of runbooks nobody:knows a=b", ["folder~runbooks"]),
    ],
)
def test_a_condition_needs_a_cue_that_it_is_about_documents(question, meant):
    found = read(question, FIELDS)
    assert [str(one.filter) for one in found] == meant
    assert all(one.words in question for one in found)


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("2026", "2026"),
        ("May 2026", "2026-05"),
        ("Sept. 2025", "2025-09"),
        ("3 Dec 2024", "2024-12-03"),
        ("December 24, 2024", "2024-12-24"),
        ("2024-02", "2024-02"),
    ],
)
def test_a_date_is_read_as_it_is_written(written, date):
    assert iso(written) == date


def test_the_filters_of_the_labelled_questions_are_read():
    """By rules, of those that the rules were chosen on; the others are for measuring."""
    lines = (PROJECT / "data/support/filter_questions.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [one for line in lines if (one := json.loads(line))["split"] == "dev"]
    documents = sorted((PROJECT / "data/support/documents").rglob("*.md"))
    root = PROJECT / "data/support/documents"
    heads = ((str(path.relative_to(root)), {}, _below_title(path)) for path in documents)
    fields = Metadata(heads).fields
    wrong = [
        one["id"] for one in asked if [str(n.filter) for n in read(one["text"], fields)] != one["filters"]
    ]
    assert len(asked) == 10
    assert len(wrong) <= 1, wrong


def _below_title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[2]


def run(tmp_path, question, by="rules", where=(), **replies):
    llm = ScriptedLLM(replies)
    request = Request(Query(question), "tiny", ("self_query",), {"self_query": {"by": by}}, where=where)
    [result] = FakeEngine(tmp_path, texts=TEXTS, llm=llm).ask(request).results
    assert (result.status, result.error) == ("ok", None)
    return result, llm


def read_of(result):
    return next(span.output for span in result.spans if isinstance(span.output, FiltersRead))


def test_a_filter_that_leaves_nothing_is_dropped_and_says_so(tmp_path):
    result, _ = run(tmp_path, "items in documents of the Warehouse updated since 2030 owner=Nobody")
    assert [(str(one.filter), one.passages, one.dropped) for one in read_of(result).found] == [
        ("owner~Warehouse", 1, ""),
        ("last_updated>=2030", 0, "no passage meets it"),
    ]
    assert {hit.passage.id for hit in result.hits} == {"box:0-9"}
    assert remarks(result, "tiny") == [
        "Filters read from the question: owner~Warehouse (1 of 4 passages)",
        "Filter last_updated>=2030 is dropped: no passage meets it",
    ]


def test_a_filter_that_leaves_nothing_together_with_others_is_dropped(tmp_path):
    where = (Filter("last_updated", "<", ("2022",)),)
    result, _ = run(tmp_path, "items in documents of the Warehouse", where=where)
    [one] = read_of(result).found
    assert one.dropped == "none is left together with last_updated<2022"
    assert {hit.passage.id for hit in result.hits} == {"old:0-9"}


def test_without_a_condition_everything_is_searched(tmp_path):
    result, _ = run(tmp_path, "send a fragile item back")
    assert read_of(result) == FiltersRead((), 4, 4)
    assert len(result.hits) == 4
    assert remarks(result, "tiny") == ["Searched without a filter: the question names none"]


def test_the_model_names_fields_and_values_that_there_are(tmp_path):
    def reply(request):
        assert request.schema["$defs"]["Condition"]["properties"]["field"]["enum"] == [
            "last_updated",
            "owner",
            "status",
        ]
        assert "owner (text): Returns desk" in request.messages[-1].content
        found = [
            {"field": "owner", "operator": "~", "value": "returns"},
            {"field": "last_updated", "operator": ">", "value": "soon"},
            {"field": "nothing", "operator": "=", "value": "x"},
            {"field": "owner", "operator": "like", "value": "x"},
            {"operator": "="},
        ]
        return json.dumps({"filters": found})

    result, llm = run(tmp_path, "what does the returns desk say about items", "model", conditions=reply)
    found = read_of(result)
    assert (found.by, [str(one) for one in found.kept], found.left) == ("model", ["owner~returns"], 2)
    reasons = {str(one.filter): one.dropped for one in found.found if one.dropped}
    assert "cannot be compared" in reasons["last_updated>soon"]
    assert "no metadata 'nothing'" in reasons["nothing=x"]
    refused = next(s for s in result.spans if "refused" in s.attributes).attributes["refused"]
    assert len(refused) == 2
    assert len(llm.requests) == 1


@pytest.mark.parametrize("text", ["no JSON", '{"filters": "all"}', "[]", '{"filters": [1]}'])
def test_a_reply_that_is_no_list_of_filters_filters_nothing(tmp_path, text):
    result, llm = run(tmp_path, "items of the returns desk", "model", conditions=text)
    assert read_of(result).found == ()
    assert any("no filter" in str(span.attributes.get("note")) for span in result.spans)
    assert len(llm.requests) == 2


def recent(tmp_path, texts):
    names = ("recency", "hybrid_rrf")
    request = Request(Query("send fragile item"), "tiny", names, {"recency": {"half_life": 365}})
    return FakeEngine(tmp_path, texts=texts).ask(request).results


def test_scores_are_halved_for_each_half_life(tmp_path):
    """Worked by hand: ages are 0, 2,192, 1,096 and 214 days before 2026-01-01."""
    weighed, plain = recent(tmp_path, TEXTS)
    ages = {"send:0-9": 0, "old:0-9": 2192, "box:0-9": 1096, "fee:0-9": 214}
    wanted = {id: score * 0.5 ** (ages[id] / 365) for id, score in scores(plain).items()}
    assert scores(weighed) == pytest.approx(wanted)
    moved = span(weighed, "weigh by age").output
    assert {one.id: one.parts["age in days"][0] for one in moved.order} == ages


def test_a_document_without_a_date_is_as_old_as_the_median(tmp_path):
    texts = {**TEXTS, "none:0-9": "Owner: Nobody\nSend a fragile item."}
    weighed, _ = recent(tmp_path, texts)
    moved = span(weighed, "weigh by age").output
    age = {one.id: one.parts["age in days"][0] for one in moved.order}
    assert age["none:0-9"] == pytest.approx((1096 + 214) / 2)


def test_without_dates_nothing_changes_and_that_is_said(tmp_path):
    weighed, plain = recent(tmp_path, {"a:0-9": "Send a fragile item.", "b:0-9": "A fragile vase."})
    assert list(scores(weighed).items()) == list(scores(plain).items())
    assert remarks(weighed, "tiny") == [f"Not reordered: {UNDATED}"]
