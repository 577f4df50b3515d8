"""Conditions on metadata: how they are written, what meets them, and that every search keeps them."""

import json
from datetime import date
from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.loss_evidence import unmet_in
from core.analysis.passage_trace import PassageTrace
from core.corpus import index
from core.corpus.metadata import Metadata, header
from core.domain.errors import BadInput
from core.domain.filters import Filter, described, read_filter, read_filters
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.request import Request, again
from core.routes.registry import routes
from tests.fakes import FakeEngine, HashEmbedder, ScriptedLLM
from tests.unit.routes.test_routes import JUDGED

OWNERS = ("Claims team (Henrike Stahl)", "Logistics", "logistics UK", "Fresh team")
DATES = ("2024-02-12", "2025-09-18", "2026-03-11", "2026-07-28")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("owner=Claims team", Filter("owner", "=", ("Claims team",))),
        (" last_updated >= 2026-01 ", Filter("last_updated", ">=", ("2026-01",))),
        ("owner!~a=b", Filter("owner", "!~", ("a=b",))),
        ("region in UK | IE|", Filter("region", "in", ("UK", "IE"))),
        ("year<2000", Filter("year", "<", ("2000",))),
    ],
)
def test_a_condition_is_read_as_people_write_it(written, meant):
    assert read_filter(written) == meant
    assert read_filter(str(meant)) == meant


@pytest.mark.parametrize("written", ["owner", "=x", "owner=", "", "owner in ", "in a|b", "x" * 501])
def test_what_is_no_condition_says_how_to_write_one(written):
    with pytest.raises(BadInput, match=r"FIELD=VALUE|at least one|characters"):
        read_filter(written)


def test_many_conditions_are_bounded():
    assert len(read_filters([" ", "a=1", "a=1", "b=2"])) == 2
    with pytest.raises(BadInput, match="at most 20"):
        read_filters(f"f{n}=1" for n in range(21))


def test_fields_stand_at_the_top_of_a_document():
    text = "Instruction WI-7\nOwner: Hall lead\nLast updated: 2026-02-26\nlong\n\n## Steps\nNote: no field"
    assert header(text) == {"owner": "Hall lead", "last_updated": "2026-02-26"}
    assert header("---\nauthor: 'Ada'\ntags: [x]\n---\n# Title\nOwner: x") == {"author": "Ada", "tags": "[x]"}
    known = Metadata([("a/1.md", {}, text), ("b/2.md", {"year": "7"}, "Owner: x\nOnly here: y")])
    assert {(one.name, one.kind, one.documents) for one in known.fields} == {
        ("owner", "text", 2),
        ("folder", "text", 2),
        ("year", "number", 1),
    }
    assert known.value(0, "Owner") == "Hall lead"


def test_kinds_compare_as_such():
    rows = [
        ("2025-12-31", "1.10.0", "7", "A  b"),
        ("2026-01-15", "1.9", "-2.5", "B"),
        ("2026-02", "2.0.1", "1e2", "c"),
    ]
    names = ("when", "v", "n", "who")
    known = Metadata((str(at), dict(zip(names, row, strict=True)), "") for at, row in enumerate(rows))
    assert [one.kind for one in known.fields] == ["number", "version", "date", "text"]
    for text, met in (
        ("when=2026-01", "B"),
        ("when=2026", "Bc"),
        ("when<2026", "A"),
        ("when>2026-01", "c"),
        ("when<=2026-01", "AB"),
        ("v>=1.10", "Ac"),
        ("v=v1.9.0", "B"),
        ("n<7", "B"),
        ("who=a B", "A"),
        ("who in b|C", "Bc"),
        ("who!=b", "Ac"),
    ):
        assert known.meeting([read_filter(text)]).tolist() == [name in met for name in "ABc"], text


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("ownr=x", "no metadata 'ownr'; known: n, when, who"),
        ("when>soon", "'soon' cannot be compared; when takes YYYY"),
        ("n=many", "'many' cannot be compared; n takes a number"),
        ("who>a", "who holds text"),
    ],
)
def test_what_cannot_be_compared_is_said(written, said):
    known = Metadata([("1", {"when": "2026-01-01", "n": "1", "who": "x"}, "")])
    with pytest.raises(BadInput, match=said.replace("(", r"\(")):
        known.meeting([read_filter(written)])


META = {"owner": st.sampled_from(OWNERS), "when": st.sampled_from(DATES), "n": st.integers(0, 9)}
documents = st.lists(st.fixed_dictionaries({}, optional=META), min_size=1, max_size=12)
COMPARING = st.sampled_from(["=", "<", ">", "<=", ">=", "!="])
OWNED, SOUGHT = st.sampled_from(["=", "!=", "~", "!~"]), st.sampled_from([*OWNERS, "team"])
conditions = st.lists(
    st.tuples(st.just("owner"), OWNED, SOUGHT)
    | st.tuples(st.just("when"), COMPARING, st.sampled_from(DATES))
    | st.tuples(st.just("n"), COMPARING, st.integers(0, 9)),
    max_size=3,
)


COMPARED = dict(zip(("=", "!=", "<", ">", "<=", ">="), (eq, ne, lt, gt, le, ge), strict=True))


def meets(meta, field, by, value):
    """The oracle: one document, one condition, the plainest way."""
    own = meta.get(field)
    if own is None:
        return by in ("!=", "!~")
    if field == "owner":
        own, value = own.lower(), value.lower()
        found = value in own if "~" in by else own == value
        return found != by.startswith("!")
    if field == "when":
        own, value = date.fromisoformat(own), date.fromisoformat(value)
    return COMPARED[by](own, value)


@given(documents, conditions)
def test_what_meets_conditions_is_what_each_says_of_each_document(metas, wanted):
    fields = {name for meta in metas for name in meta}
    wanted = [one for one in wanted if one[0] in fields]
    known = Metadata((str(n), {k: str(v) for k, v in meta.items()}, "") for n, meta in enumerate(metas))
    where = [Filter(field, by, (str(value),)) for field, by, value in wanted]
    assert known.meeting(where).tolist() == [all(meets(meta, *one) for one in wanted) for meta in metas]


@pytest.fixture(scope="module", params=[1_000_000, 50], ids=["flat", "graph"])
def corpus(request, tmp_path_factory):
    """240 short documents, 3 to a word; searched exactly, or by a graph."""
    home, rng = tmp_path_factory.mktemp("filters"), np.random.default_rng(5)
    words = [f"word{n}" for n in range(30)]
    metas = [{"owner": OWNERS[n % 4], "when": DATES[n % 3], "n": n} for n in range(240)]
    lines = [
        json.dumps({"_id": f"d{n:03}", "text": " ".join(rng.choice(words, 12)), "metadata": meta})
        for n, meta in enumerate(metas)
    ]
    (home / "set").mkdir()
    (home / "set" / "corpus.jsonl").write_text("\n".join(lines))
    made = Settings(home=home, embedder="hash", exact_below=request.param)
    return index.build("set", home / "set", settings=made, embedder=HashEmbedder())


def ranked(hits):
    return [(hit.passage.id, pytest.approx(hit.score, abs=1e-6)) for hit in hits]


WHERE = (
    (Filter("owner", "~", ("logistics",)),),
    (Filter("when", ">", ("2025",)), Filter("n", "<", ("40",))),
    (Filter("n", "in", ("3", "77")),),
    (Filter("owner", "=", ("nobody",)),),
)


@pytest.mark.parametrize("where", WHERE, ids=described)
def test_a_filtered_search_is_the_whole_ranking_without_the_others(corpus, where):
    """The oracle is the search itself, exact and over everything."""
    met = {passage.id for row, passage, _ in corpus.everything() if corpus.allowed(where)[row]}
    text, every = "word1 word2 word2 word17", corpus.size
    vector = HashEmbedder().embed_query(text)

    def without(hits):
        return [(hit.passage.id, hit.score) for hit in hits if hit.passage.id in met][:7]

    assert len(met) == {"owner~logistics": 120, "n in 3|77": 2, "owner=nobody": 0}.get(described(where), 13)
    for engine in ("bm25s", "rank-bm25"):
        found = corpus.search_sparse(text, 7, engine, where)
        assert without(corpus.search_sparse(text, every, engine)) == ranked(found)
    exact = without(corpus.search_dense(vector, every, exact=True))
    assert exact == ranked(corpus.search_dense(vector, 7, where))
    assert exact == ranked(corpus.search_dense_many(vector[None, :], 7, where)[0])
    assert exact == ranked(corpus.search_dense(vector, 7, exact=True, where=where))
    terms = {"word1": 0.7, "word17": 0.3}
    assert without(corpus.search_terms(terms, every)[0]) == ranked(corpus.search_terms(terms, 7, 0, where)[0])
    for kind in ("binary", "int8"):
        assert without(corpus.search_coded(vector, kind, every)[0]) == ranked(
            corpus.search_coded(vector, kind, 7, where)[0]
        )
    assert corpus.allowed(()) is None


TEXTS = {
    "send:0-9": "Owner: Returns desk\nLast updated: 2026-01-01\nStatus: valid\nSend a fragile item back.",
    "old:0-9": "Owner: Returns desk\nLast updated: 2020-01-01\nStatus: superseded\nSend fragile items.",
    "box:0-9": "Owner: Warehouse\nLast updated: 2023-01-01\nFragile items are packed in a double box.",
    "fee:0-9": "Owner: Finance\nLast updated: 2025-06-01\nSending an item back costs nothing.",
}


def engine(tmp_path, **replies):
    llm = ScriptedLLM({"grade": "0.6", **JUDGED, **replies})
    return FakeEngine(tmp_path, texts=TEXTS, llm=llm, web={"w:0-9": "the web"})


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return engine(tmp_path_factory.mktemp("filters"))


@pytest.mark.parametrize("name", list(routes()))
def test_no_route_finds_what_a_filter_excludes(shared, name):
    split = {"decompose": {"split_from": 1}} if name == "decompose" else {}
    where = (Filter("owner", "~", ("returns",)), Filter("status", "!~", ("superseded",)))
    run = shared.ask(
        Request(Query("How do I send a fragile item back?"), "tiny", (name,), split, where=where)
    )
    [result] = run.results
    assert (result.status, result.error) == ("ok", None)
    inside = [hit.passage.id for hit in result.hits if not hit.passage.id.startswith(("web/", "sql/"))]
    assert set(inside) <= {"send:0-9"}
    assert run.settings["filters"] == ["owner~returns", "status!~superseded"]
    assert again(run, routes())[0].where == where


def test_a_filter_on_a_field_that_there_is_not_ends_at_once_and_others_are_not_shared(shared):
    with pytest.raises(BadInput, match="no metadata 'ownr'; known: last_updated, owner, status"):
        shared.start(Request(Query("x"), "tiny", ("bm25",), where=(Filter("ownr", "=", ("x",)),)))
    job = shared.start(Request(Query("item"), "tiny", ("bm25",), where=(Filter("owner", "=", ("x",)),)))
    assert job.wait().results[0].hits == ()
    assert "no passage of corpus tiny meets owner=x" in job.warnings
    asked = Query("fragile items in documents of the Warehouse")
    plain, own = shared.ask(Request(asked, "tiny", ("bm25", "self_query"))).results
    assert {hit.passage.id for hit in own.hits} == {"box:0-9"}
    assert len(plain.hits) > 1


def test_why_says_which_filter_removed_a_passage(shared):
    where = (Filter("owner", "=", ("Warehouse",)), Filter("last_updated", ">=", ("2022",)))
    run = shared.ask(
        Request(Query("send a fragile item back"), "tiny", ("hybrid_rrf", "self_query"), where=where)
    )
    unmet = unmet_in(shared.corpus("tiny"))
    fate = PassageTrace(run.results[0], unmet=unmet).fate("old:0-9", 10)
    assert (fate.kind, fate.rank, fate.step) == ("removed by a filter", None, None)
    assert fate.words == (
        "It does not meet the filters owner=Warehouse (its owner is “Returns desk”) and last_updated>=2022"
        " (its last_updated is “2020-01-01”): no search could find it."
    )
    assert PassageTrace(run.results[0]).fate("old:0-9", 10).kind == "never retrieved"
    assert unmet([Filter("gone", "=", ("1",))], "old:0-9") == []
    assert unmet_in(None)(where, "old:0-9") == []
    run = shared.ask(Request(Query("fragile items in the superseded rules"), "tiny", ("self_query",)))
    fate = PassageTrace(run.results[0], unmet=unmet).fate("box:0-9", 10)
    assert (fate.kind, fate.step.name) == ("removed by a filter", "read filters from the question")
    assert "status~superseded (its document has no status)" in fate.words
