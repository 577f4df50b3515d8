"""Routes that fail in a way of their own: Why names that way, by what the steps recorded."""

import random
import re
from collections import Counter

import pytest

from core.analysis.diagnosis import blamed, diagnose, passage_report
from core.analysis.passage_trace import PassageTrace
from core.corpus.enrichments import store
from core.domain.outputs import Fusion, Merging, Search
from core.domain.relevance import FULL, labels_of
from core.domain.types import Query
from core.engine.request import Request
from core.evaluation.dataset import Evidence, Written
from core.evaluation.gold import quoted
from tests.fakes import FakeEngine, ScriptedLLM
from tests.unit.analysis.test_passage_trace import links, span
from tests.unit.analysis.test_passage_trace import route as made
from tests.unit.steps.test_windows import QUESTION as GAMMA
from tests.unit.steps.test_windows import asked as windowed

WORDS = ("parcel", "customs", "duty", "refund", "label", "glass", "box", "photo", "seal", "carrier", "vase")


def corpus(count=90, seed=3):
    draw = random.Random(seed)
    return {f"d{at:03}:0-9": " ".join(draw.choices(WORDS, k=draw.randint(4, 12))) for at in range(count)}


def asked(home, *names, text="customs duty of a vase", texts=None, llm=None, parameters=None):
    engine = FakeEngine(home, texts=texts or corpus(), llm=llm or ScriptedLLM())
    run = engine.ask(Request(Query(text), "tiny", names, parameters or {}))
    assert {(one.status, one.error) for one in run.results} == {("ok", None)}
    return run


def ids(result):
    return [hit.passage.id for hit in result.hits]


def fate(result, id, depth=10):
    return PassageTrace(result).fate(id, depth)


def told(run, route, id, depth=10):
    """What the page blames for a loss, and the line of the passage."""
    funnels = [PassageTrace(result) for result in run.results]
    (one,) = [
        one for one in diagnose(run, funnels, labels_of({id: 3}), {}, depth) if one.result.route == route
    ]
    return blamed(one), "\n".join(passage_report(funnels, id, depth))


# Cuts, noise, codes.


def test_adaptive_k_cut_it_at_the_drop_of_scores(tmp_path):
    run = asked(tmp_path, "dense", "adaptive_k", parameters={"adaptive_k": {"least": 1, "beyond": 0}})
    whole, cut = run.results
    output = cut.spans[-1].output
    assert output.kept < 10
    lost = ids(whole)[output.kept]
    one = fate(cut, lost)
    assert (one.kind, one.rank, one.was) == ("cut at the score drop", None, output.kept + 1)
    assert one.words == (
        f"At rank {output.kept + 1} in “search vectors”; “cut at the largest drop of scores” ended the list"
        f" after rank {output.kept}, as the largest drop of scores, {output.size:.3g}, comes after rank"
        f" {output.drop}."
    )
    blame, page = told(run, "adaptive_k", lost)
    assert blame == ("cut at the largest drop of scores", "cut at the score drop")
    assert "Adaptive k: cut at the score drop" in page
    beyond = fate(cut, ids(whole)[20])
    assert beyond.kind == "found too low", "the cut did not take what was not in the top"


def test_noise_displaced_it_by_unrelated_passages(tmp_path):
    parameters = {"noise": {"count": 4, "top": 3}}
    run = asked(tmp_path, "hybrid_auto", "noise", texts=corpus(200), parameters=parameters)
    plain, noisy = run.results
    drawn = noisy.spans[-1].output.ids
    lost = ids(plain)[4]
    before = sum(id in drawn for id in ids(noisy)[: ids(noisy).index(lost)])
    one = fate(noisy, lost, 5)
    assert (one.kind, one.rank, one.was) == ("displaced", 5 + before, 5)
    assert one.words == (
        "At rank 5 in “fuse by normalised scores”; “put unrelated passages among those found” put "
        f"{before} of 4 unrelated passages before it: it ends at rank {5 + before}."
    )
    assert told(run, "noise", lost, 5)[0] == ("put unrelated passages among those found", "displaced")


def test_quantised_lost_it_in_the_first_pass(tmp_path):
    texts = corpus(150)
    found = None
    for seed in range(40):
        text = " ".join(random.Random(seed).sample(WORDS, 3))
        parameters = {"quantised": {"candidates": 10, "compare": True}}
        run = asked(tmp_path / str(seed), "quantised", text=text, texts=texts, parameters=parameters)
        (result,) = run.results
        exact = next(span for span in result.spans if span.name == "search vectors")
        missing = [id for id, _ in exact.hits[:10] if id not in ids(result)]
        if missing:
            found = missing[0], [id for id, _ in exact.hits].index(missing[0]) + 1
            break
    assert found is not None
    one = fate(result, found[0])
    assert (one.kind, one.rank, one.was) == ("lost in the first pass", None, found[1])
    assert f"At rank {found[1]} in “search vectors”" in one.words
    assert "but not among the 10 passages of “search coded vectors”" in one.words
    assert one.words.endswith("and only these are scored by whole vectors.")
    assert told(run, "quantised", found[0])[0] == ("search coded vectors", "lost in the first pass")
    # Without the comparison nothing is known but that the first pass did not find it.
    alone = asked(
        tmp_path / "alone", "quantised", text=text, texts=texts, parameters={"quantised": {"candidates": 10}}
    )
    one = fate(alone.results[0], found[0])
    assert one.kind == "never retrieved"
    assert one.words.endswith("Only what “search coded vectors” finds is scored by whole vectors.")


# Feedback and expansion.


@pytest.mark.parametrize(("route", "plain"), [("prf_rm3", "bm25"), ("prf_rocchio", "dense")])
def test_feedback_pulled_it_down(tmp_path, route, plain):
    parameters = {"prf_rm3": {"original": 0.1}, "prf_rocchio": {"feedback": 0.9, "passages": 5}}
    texts = corpus(120) | {f"z{at}:0-9": f"customs birch{at} elm{at} oak" for at in range(6)}
    run = asked(
        tmp_path, plain, route, text="customs duty", texts=texts, parameters={route: parameters[route]}
    )
    first, moved = map(ids, run.results)
    lost = next(id for id in first[:10] if id not in moved[:10])
    one = fate(run.results[1], lost)
    was, now = first.index(lost) + 1, moved.index(lost) + 1 if lost in moved else None
    assert (one.kind, one.rank, one.was) == ("query drift", now, was)
    assert one.words.startswith(f"At rank {was} in “search")
    assert one.words.endswith(f"put it at rank {now}." if now else "left it out.")
    feedback = next(span for span in run.results[1].spans if "RM3" in span.name or "Rocchio" in span.name)
    assert one.step == feedback
    if route == "prf_rm3":
        (named,) = re.findall(r"added “(.*?)”", one.words)
        assert named.split(", ") == list(feedback.output.added[:4])
        assert "from the first 10 passages" in one.words
    else:
        assert "took the first 5 passages for relevant" in one.words
    assert told(run, route, lost)[0] == (feedback.name, "query drift")


def test_query2doc_names_the_text_that_missed_it_or_put_it_low(tmp_path):
    texts = {
        "a:0-9": f"duty {'parcel ' * 60}",
        **{f"b{at:02}:0-9": "glass vase seal" for at in range(12)},
        **{f"c{at:02}:0-9": "refund label" for at in range(60)},
    }
    llm = ScriptedLLM({"hyde": "glass vase seal"})
    parameters = {"query2doc": {"times": 1}}
    run = asked(tmp_path, "bm25", "query2doc", text="duty", texts=texts, llm=llm, parameters=parameters)
    plain, result = run.results
    (wrote,) = result.spans[0].output.texts
    assert result.spans[-1].output.texts == (f"duty {wrote}",)
    named = f"“search BM25” for “duty {wrote}”"
    assert (ids(plain), ids(result)[-1]) == (["a:0-9"], "a:0-9")
    low = fate(result, "a:0-9")
    assert (low.kind, low.step) == ("found too low", result.spans[-1])
    assert low.words == f"Found too low: at rank 13 in {named}, its best search rank."
    assert fate(result, "nowhere:0-9").words == f"Not found by {named} (13 passages)."


# What is read.


@pytest.mark.parametrize("route", ["sentence_window", "auto_merge"])
def test_a_passage_that_is_read_in_part_says_how_much_of_it_and_quotes_labelled_words_left_out(
    tmp_path, route
):
    text = "Sentence 3 tells of vase 3 and parcel 3 in some more words."
    parameters = {"sentence_window": {"window": 0}, "auto_merge": {"pieces": 1, "share": 0.5}}
    result, _, _ = windowed(tmp_path, route, text, **parameters[route])
    hit = next(hit for hit in result.hits if hit.passage.doc_id == "long")
    excerpt = result.basis.excerpts[hit.passage.id]
    one = fate(result, hit.passage.id)
    assert (one.kind, one.was) == ("read in part", one.rank)
    size = f"an excerpt of {len(excerpt)} characters in place of its {len(hit.passage.text)}"
    assert size in one.words
    if route == "auto_merge":
        merging = next(span for span in result.spans if isinstance(span.output, Merging))
        merged = next(known for known in merging.output.passages if known.id == hit.passage.id)
        assert f"as 1 of its {merged.pieces} pieces was found" in one.words
        assert one.step == merging
    else:
        assert one.step.name == "take the sentences around"
    read = " ".join(excerpt.split())
    sentences = [one.strip() + "." for one in hit.passage.text.split(".") if one.strip()]
    inside = next(one for one in sentences if one in read)
    outside = next(one for one in sentences if one not in read)
    for quotes, kind in (
        ((inside,), "read in part"),
        ((inside, outside), "labelled words left out"),
        (("Nowhere.",), "read in part"),
    ):
        one = PassageTrace(result, {"long": quotes, "other": ("Nothing",)}).fate(hit.passage.id, 10)
        assert one.kind == kind
        left_out = f"; it leaves out “{outside}”, which is labelled." in one.words
        assert left_out == (kind == "labelled words left out")


def test_only_words_that_answer_are_held_against_what_is_read():
    evidence = (Evidence("a", 3, "one"), Evidence("a", 2, "two"), Evidence("a", 1, "three"), Evidence("b", 3))
    written = Written("mine", (), {"q": evidence})
    found = [quoted(written, *asked) for asked in (("q", FULL), ("q",), ("other",))]
    assert found == [{"a": ("one", "two")}, {"a": ("one", "two", "three")}, {}]


def test_a_passage_that_is_read_whole_is_simply_found(tmp_path):
    result, _, _ = windowed(tmp_path / "a", "sentence_window", GAMMA, window=20)
    assert fate(result, result.hits[0].passage.id).kind == "found"
    result, _, _ = windowed(tmp_path / "b", "auto_merge", GAMMA, pieces=50)
    assert {fate(result, hit.passage.id).kind for hit in result.hits[:3]} == {"found"}


# Summaries.


def summarised(home, texts):
    """Summaries by a model that says the words it read most."""

    def summary(request):
        read = Counter(word for word in request.messages[-1].content.split() if word in WORDS)
        return " ".join(word for word, _ in read.most_common(4))

    engine = FakeEngine(home, texts=texts)
    tiny = engine.fakes["tiny"]
    llm = ScriptedLLM({"summary": summary})
    store.build("summaries", tiny, settings=engine.settings, llm=llm, embedder=tiny.embedder)


@pytest.mark.parametrize("route", ["raptor", "raptor_extracts"])
def test_a_summary_brought_it_or_summaries_of_others_came_before_it(tmp_path, route):
    kinds = set()
    for seed in range(3):
        text = " ".join(random.Random(seed).sample(WORDS, 4))
        home = tmp_path / str(seed)
        if route == "raptor":
            summarised(home, corpus(120))
        run = asked(home, "dense", route, text=text, texts=corpus(120))
        dense, tree = run.results
        search = tree.spans[-1].output
        assert isinstance(search, Search)
        assert list(search.alone) == ids(dense)[: len(search.alone)]
        for id in dict.fromkeys([*ids(dense)[:10], *ids(tree)[:10]]):
            own, now = ids(dense).index(id) + 1 if id in ids(dense) else None, ids(tree).index(id) + 1
            one = fate(tree, id)
            kinds.add(one.kind)
            if now <= 10:
                assert one.kind == ("brought by a summary" if id in search.keys else "found")
                if id in search.keys and own is not None and own <= 20:
                    assert f"at rank {own} by its own vector" in one.words
                continue
            before = ids(tree)[: now - 1]
            brought = sum(other in search.keys for other in before[:20])
            of = f"the {len(before)}" if len(before) <= 20 else "the first 20"
            assert (one.kind, one.rank, one.was) == ("behind summaries", now, now)
            assert one.words == (
                f"At rank {own} by its own vector; “search the collapsed tree” has it at rank {now}: "
                f"summaries brought {brought} of {of} before it."
            )
            assert told(run, route, id)[0] == ("search the collapsed tree", "behind summaries")
    assert kinds >= {"brought by a summary", "behind summaries", "found"}


TREE = Search(keys={"b": "a summary", "c": "a summary"}, alone=("a", "z", "b", "c"))


def test_summaries_that_left_it_out_are_counted_and_a_later_loss_counts_before_them():
    tree = span(1, "search the tree", "RETRIEVER", "bcda", output=TREE)
    one = fate(made([tree], "bcda"), "z", 2)
    assert (one.kind, one.rank, one.was, one.step) == ("behind summaries", None, None, tree)
    assert one.words == (
        "At rank 2 by its own vector; “search the tree” left it out: summaries brought 2 of the 4 before it."
    )
    words = span(2, "search BM25", "RETRIEVER", "adefgh", output=Search(("why",)))
    fused = span(3, "fuse", "CHAIN", "bdcaefgh", output=Fusion("rrf"), links=links((1, 4), (2, 6)))
    assert fate(made([tree, words, fused], "bdcaefgh"), "a", 2).kind == "fused away"


# A model's order, a model's no.


def test_self_route_gave_no_answer_though_it_was_found(tmp_path):
    texts = {f"long{n:02}:0-9": f"box vase{n} " + "glass " * 400 for n in range(20)}
    llm = ScriptedLLM({"evidence": "0.1"})
    (result,) = asked(tmp_path, "self_route", text="box vase7", texts=texts, llm=llm).results
    assert result.abstained
    one = fate(result, result.hits[0].passage.id)
    assert (one.kind, one.rank, one.step.name) == ("not used", 1, "is what was found enough")
    assert one.words.startswith(
        "At rank 1 of the top 10, but “is what was found enough” decided to abstain: P(Yes) 0.10"
    )
