"""What the sample questions say of routes without a language model is so on the index of `support`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from core.corpus.samples import samples
from core.domain import settings as settings_module
from core.domain.outputs import FiltersRead, Inserted, Merging, Rewrite, ScoreCut
from core.engine.engine import Engine
from core.engine.request import Request

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
LIABILITY = ("damage/carrier-liability-eu.md:0-655", "damage/carrier-liability-eu.md:1295-1901")
SUPPLIERS = "runbooks/carrier-api-down.md:282-720"
ADDRESS = "runbooks/label-printer-offline.md:405-837"
SPOILED = "perishables/claims.md:0-687"
RACK = "warehouse/wi-110-bin-label.md:1074-1426"
PARCEL = "shipping/parcel-not-received-eu.md:0-677"
OUTAGE = "runbooks/gateway-outage.md:786-1477"
BREAKER = "payments/dd-019-circuit-breaker.md:895-1534"
FRAGILE = "warehouse/wi-131-pick-pack-fragile.md:634-1220"
CASES = "payments/merchant-onboarding.md:1436-2095"
RETIRED, VALID = "perishables/claims-2024.md:0-582", "perishables/claims.md:689-1212"
LIFETIME = "payments/dd-014-idempotency-keys.md:503-1170"
DRIVE, PALLET = "carriers/norrland-profile.md:653-1215", "carriers/norrland-profile.md:0-651"
SURCHARGES, OWN_SURCHARGE = "peak/surcharges.md:90-788", "carriers/norrland-profile.md:1217-1884"
CHILLED = "carriers/coolchain-profile.md:660-1172"
POSTAGE = "returns/return-shipping-costs.md:275-847"
SEASON, STEPS = "peak/seasonal-volume.md:579-1227", "returns/rma-process.md:584-1206"
BOOKS = "payments/dd-021-ledger-double-entry.md:0-333"
PEAK, LEDGER = "carriers/lane-peak-sla-2026.md:400-925", "payments/dd-021-ledger-double-entry.md:1836-2500"
CUSTOMS = ("customs/origin-declarations.md:982-1627", "customs/ddp-dap-2024.md:0-645")
RANKS = [  # sample, passage, its rank by each route; None: not in the list. Some are from recordings
    ("s-shop-54", LIABILITY[0], {"bm25": 9, "prf_rm3": 2}),
    ("s-shop-54", LIABILITY[1], {"bm25": 11, "prf_rm3": 7}),
    ("s-platform-25", SUPPLIERS, {"bm25": 2, "prf_rm3": 8, "grep": 1, "hybrid_rrf": 20}),
    ("s-platform-63", ADDRESS, {"bm25": 1, "grep": 10}),
    ("s-shop-34", SPOILED, {"dense": 18, "prf_rocchio": 4}),
    ("s-platform-12", RACK, {"dense": 7, "adaptive_k": None, "prf_rocchio": 15, "raptor_extracts": 3}),
    ("s-shop-29", PARCEL, {"dense": 3, "raptor_extracts": 12, "sentence_window": 1}),
    (
        "s-platform-18",
        OUTAGE,
        {"dense": 34, "sentence_window": 1, "quantised": None, "rerank": 52, "rerank_proximity": 9},
    ),
    ("s-platform-18", BREAKER, {"dense": 27, "quantised": None}),
    ("s-shop-03", SEASON, {"dense": 6, "bm25": 16, "query2doc": 65}),
    ("s-shop-06", STEPS, {"bm25": None, "query2doc": 39, "hyde": 8}),
    ("s-platform-08", FRAGILE, {"hybrid_rrf": 4, "noise": 6}),
    ("s-platform-06", CASES, {"auto_merge": 1, "hybrid_linear": 8, "listwise": 1, "setwise": 10}),
    ("s-loop-01", DRIVE, {"agentic": 10, "hybrid_auto": 5, "iterative": 4}),
    ("s-filter-07", SPOILED, {"self_query": 1, "hybrid_rrf": 2}),
    ("s-filter-07", RETIRED, {"hybrid_rrf": 1}),
    ("s-shop-05", RETIRED, {"hybrid_rrf": 1, "recency": 8}),
    ("s-shop-05", VALID, {"hybrid_rrf": 5, "recency": 2}),
    ("s-loop-02", SURCHARGES, {"hybrid_auto": 12, "iterative": 12}),
    ("s-loop-02", OWN_SURCHARGE, {"hybrid_auto": 14, "iterative": 14}),
    ("s-loop-03", PALLET, {"hybrid_auto": 5, "iterative": 6}),
    ("s-loop-04", CHILLED, {"hybrid_rrf": 8, "decompose": 6}),
    ("s-loop-05", POSTAGE, {"hybrid_rrf": 9, "decompose": 12}),
    ("s-loop-05", CUSTOMS[0], {"decompose": 5}),
    ("s-loop-05", CUSTOMS[1], {"decompose": 6}),
    ("s-platform-45", PEAK, {"hybrid_linear": 6, "hybrid_questions": 1}),
    ("s-platform-20", LEDGER, {"bm25": 4, "doc2query": 17}),
    ("s-platform-20", BOOKS, {"dense": 12, "raptor": 3}),
    ("s-platform-73", LIFETIME, {"hybrid_rrf": 1, "dense": 1, "raptor": 85}),  # RRF: self_route's search
]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The result of a route on a sample."""
    home = tmp_path_factory.mktemp("home")
    extras = "children,tokens,sentences,extracts,questions,expanded,summaries"
    command = [sys.executable, "-m", "core", "index", "support", "--with", extras]
    env = {**os.environ, "ROUTESCOPE_HOME": str(home), "ROUTESCOPE_LLM_MODE": "replay"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr
    engine = Engine(settings_module.load(home=home))
    known = {sample.id: sample for sample in samples("support")}
    results = {}

    def result(id, route):
        if id not in results:
            sample = known[id]
            named = (name for of, _, by in RANKS if of == id for name in by)
            routes = tuple(dict.fromkeys((*named, "sentence_window", *sample.answered)))
            more = {"answers": "selected", "answered": sample.answered, "stored": False}
            run = engine.ask(Request(sample.query, "support", routes, **more))
            results[id] = {one.route: one for one in run.results}
        found = results[id][route]
        assert (found.status, found.error) == ("ok", None)
        return found

    return result


def outputs(result, kind):
    return [span.output for span in result.spans if isinstance(span.output, kind)]


@pytest.mark.parametrize(("sample", "passage", "ranks"), RANKS)
def test_a_passage_is_where_the_sample_says(asked, sample, passage, ranks):
    lists = {route: [hit.passage.id for hit in asked(sample, route).hits] for route in ranks}
    found = {route: ids.index(passage) + 1 if passage in ids else None for route, ids in lists.items()}
    assert found == ranks


@pytest.mark.parametrize(
    ("sample", "route", "has"),  # None: no answer is given
    [
        ("s-platform-65", "hybrid_rrf", "raw body with your endpoint secret). [1]"),
        ("s-platform-65", "self_correct", "raw body with your endpoint secret). [4]"),
        ("s-platform-65", "critique_loop", None),
        ("s-shop-13", "hybrid_rrf", "4,000 points"),
        ("s-shop-13", "self_correct", None),
        ("s-shop-13", "critique_loop", "4,000 points"),
        ("s-shop-72", "hybrid_rrf", "Yes, you have to pay"),
        ("s-shop-72", "critique_loop", None),
    ],
)
def test_an_answer_is_as_the_sample_says(asked, sample, route, has):
    found = asked(sample, route)
    assert found.abstained is (has is None)
    assert has is None or has in found.answer


OTHERS = {"s-platform-12": {6}, "s-platform-08": {2, 3}, "s-filter-07": {2026}, "s-shop-06": {100}}


def test_every_rank_that_a_sample_states_is_checked():
    texts = {sample.id: sample.shows for sample in samples("support")}
    for id in {id for id, _, _ in RANKS}:
        stated = {int(number) for number in re.findall(r"\b(\d+)\b", texts[id].replace("BM25", ""))}
        checked = {rank for sample, _, by in RANKS if sample == id for rank in by.values()}
        others = OTHERS.get(id, set())
        assert stated <= checked | others, id


def test_what_is_older_is_left_out(asked):
    (read,) = outputs(asked("s-filter-07", "self_query"), FiltersRead)
    assert list(map(str, read.kept)) == ["last_updated>=2026"]


def test_feedback_adds_the_words_that_the_sample_names(asked):
    (expanded,) = outputs(asked("s-platform-25", "prf_rm3"), Rewrite)
    assert {"paid", "address", "price"} <= set(expanded.added)
    (expanded,) = outputs(asked("s-shop-54", "prf_rm3"), Rewrite)
    assert {"price", "heron", "norrland"} <= set(expanded.added)
    first = [hit.passage.doc_id for hit in asked("s-shop-34", "dense").hits[:3]]
    assert first.count("perishables/claims.md") == 1


def test_the_list_ends_and_noise_stands_where_the_sample_says(asked):
    (cut,) = outputs(asked("s-platform-12", "adaptive_k"), ScoreCut)
    assert cut.kept == 6
    noisy = asked("s-platform-08", "noise")
    (inserted,) = outputs(noisy, Inserted)
    ids = [hit.passage.id for hit in noisy.hits]
    assert sorted(ids.index(id) + 1 for id in inserted.ids) == [2, 3]


def test_a_summary_brings_what_the_sample_says(asked):
    assert RACK in asked("s-platform-12", "raptor_extracts").spans[-1].output.keys
    summaries = asked("s-shop-29", "raptor_extracts")
    before = {hit.passage.id for hit in summaries.hits[:11]}
    assert before & set(summaries.spans[-1].output.keys)


def test_what_is_read_is_what_the_sample_says(asked):
    merged = asked("s-platform-06", "auto_merge")
    (merging,) = outputs(merged, Merging)
    assert (merging.passages[0].found, merging.passages[0].pieces) == (1, 5)
    assert merging.excerpts[CASES] == "## Certification"
    window = asked("s-platform-06", "sentence_window").basis.excerpts[CASES]
    assert "The 22 cases include: repeat of a charge after a cut connection" in window
    runbook = asked("s-platform-18", "sentence_window")
    answers, read = "Authorisations move to Stellapay by themselves.", runbook.basis.excerpts[OUTAGE]
    assert answers in runbook.hits[0].passage.text
    assert answers not in read
