"""Routes that search with something other than the question: against oracles, by hand, and step by step."""

import itertools
import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core.analysis.searches import rewrites
from core.backends.prompting.replies import reply_lines
from core.domain.errors import BadInput, ModelFailed
from core.domain.fusion import linear
from core.domain.outputs import Fusion
from core.domain.types import Hit, Passage, Query
from core.engine.request import Request
from core.steps import POOL
from core.steps.feedback import mean_vector, overlap, spread
from core.steps.fuse import ranks, union
from core.steps.transform import different, fill_in, quoted_in, references, wording
from tests import asking
from tests.asking import ids, prompts, scores, spans
from tests.fakes import TEXTS, FakeEngine, ScriptedLLM

QUESTION = "How do I report a crushed box?"


def ask(tmp_path, route, replies, text=QUESTION, local=True, texts=TEXTS, **parameters):
    return asking.ask(
        tmp_path, route, text, ScriptedLLM(replies, local=local), options={"texts": texts}, **parameters
    )


def texts_searched(result):
    return [span.args["text"] for span in spans(result, "search BM25")]


def same_hits(one, other):
    assert ids(one) == ids(other)
    assert list(scores(one).values()) == pytest.approx(list(scores(other).values()))


def ranking(*pairs):
    return tuple(Hit(Passage(id, id, id, f"text of {id}"), score) for id, score in pairs)


lists = st.lists(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(-5, 5)), max_size=8).map(
        lambda pairs: ranking(*sorted(pairs, key=lambda p: -p[1]))
    ),
    max_size=4,
)
vectors = (  # of length 1, one to nine of them
    st.integers(1, 9)
    .flatmap(lambda n: arrays.arrays(np.float32, (n, 5), elements=st.floats(-1, 1, width=32)))
    .filter(lambda m: np.linalg.norm(m, axis=1).min() > 0.1)
    .map(lambda m: m / np.linalg.norm(m, axis=1, keepdims=True))
)


# Wording.


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("How do I return it?", "how do i  return it", True),
        ("“How do I return it?”", "How do I return it?!", True),
        ("LP-4092", "lp 4092", True),
        ("C++ or C?", "C or C?", False),
        ("📦?", "💥?", False),
        ("कि", "की", False),
        ("straße", "STRASSE", True),
    ],
)
def test_wording_is_blind_to_case_punctuation_and_space_alone(one, other, same):
    assert (wording(one) == wording(other)) is same


@given(st.text(max_size=30))
def test_wording_settles_at_once(text):
    assert wording(wording(text)) == wording(text)
    assert wording(f"  {text} ?!") == wording(text)


def test_reply_lines_lose_bullets_numbers_quotes_and_headings():
    reply = 'Queries:\n1. one\n- two\n(3) three\n#4: four\n"five"\n\n#1 opens when?\n2.5 kg or more?'
    expected = ("one", "two", "three", "four", "five", "#1 opens when?", "2.5 kg or more?")
    assert reply_lines(reply) == expected


# Step-back.

GENERAL = "What are the rules for damaged parcels?"


def test_step_back_fuses_the_lists_of_both_questions(tmp_path):
    result, _ = ask(tmp_path, "step_back", {"step-back": f"1. {GENERAL}"}, weight=2.5, k=7)
    assert texts_searched(result) == [QUESTION, GENERAL]
    corpus = FakeEngine(tmp_path).fakes["tiny"]
    expected = {}
    for text, weight in ((QUESTION, 1), (GENERAL, 2.5)):
        for found in (
            corpus.search_sparse(text, 100),
            corpus.search_dense(corpus.embedder.embed_query(text), 100),
        ):
            for rank, hit in enumerate(found, 1):
                expected[hit.passage.id] = expected.get(hit.passage.id, 0) + weight / (7 + rank)
    assert scores(result) == pytest.approx(expected)
    assert [(r.before, r.texts) for _, r in rewrites(result)] == [(QUESTION, (GENERAL,))]
    assert result.basis.question == QUESTION, "the general question does not replace the one asked"


@pytest.mark.parametrize("reply", [QUESTION, "how do I report a crushed BOX", f'"{QUESTION}"', " \n "])
def test_step_back_says_when_there_is_nothing_more_general(tmp_path, reply):
    result, _ = ask(tmp_path, "step_back", {"step-back": reply})
    unweighted, _ = ask(tmp_path, "step_back", {"step-back": GENERAL}, weight=0)
    written = spans(result, "write a more general question")[0]
    assert "nothing more general is searched" in written.attributes["note"]
    assert written.output.texts == (QUESTION,)
    for one in (result, unweighted):
        assert texts_searched(one) == [QUESTION]
        same_hits(one, ask(tmp_path, "hybrid_rrf", {})[0])


# Union of variants.


def test_union_by_hand():
    first, second = ranking(("a", 9), ("b", 8), ("c", 7)), ranking(("d", 1), ("c", 0.5), ("b", 0.4))
    united = union([first, second])
    # a and d lead one list each; b and c are second in one and third in the other
    assert [(h.passage.id, h.score) for h in united] == [
        ("a", 1 / 1.5),
        ("d", 1 / 1.5),
        ("b", 1 / 2),
        ("c", 1 / 2),
    ]
    assert union([first, ranking(("c", 1))])[0].passage.id == "c", "first in one and third in the other"
    assert union([]) == union([(), ()]) == ()


@given(lists)
def test_union_is_ordered_by_best_rank_then_number_of_lists_then_id(found):
    keys = {}
    for one in found:
        distinct = list(dict.fromkeys(hit.passage.id for hit in one))
        for id in distinct:
            keys.setdefault(id, []).append(distinct.index(id) + 1)
    expected = sorted(keys, key=lambda id: (min(keys[id]), -len(keys[id]), id))
    united = union(found)
    assert [h.passage.id for h in united] == expected
    assert all(0 < h.score <= 1 for h in united)
    for one, other in itertools.pairwise(united):
        a, b = keys[one.passage.id], keys[other.passage.id]
        assert (one.score == other.score) is ((min(a), len(a)) == (min(b), len(b)))
    assert union(found[::-1]) == united, "the order of the variants means nothing"


@pytest.mark.parametrize("norm", ["z", "min_max", "dbsf"])
def test_scores_are_normalised_as_the_route_says(tmp_path, norm):
    result, _ = ask(tmp_path, "hybrid_linear", {}, norm=norm)
    lists = [ranking(*spans(result, f"score by {one}")[0].hits) for one in ("BM25", "cosine")]
    expected = linear(lists, weights=(0.5, 0.5), norm=norm)
    assert scores(result) == {hit.passage.id: pytest.approx(hit.score) for hit in expected}
    assert spans(result, "fuse by normalised scores")[0].output == Fusion("linear")


def test_texts_and_lists_must_pair(tmp_path):
    engine = FakeEngine(tmp_path)
    with pytest.raises(BadInput, match="2 texts for 1 lists"):
        engine.steps(engine.corpus("tiny")).union((ranking(("a", 1)),), ("one", "two"))


VARIANTS = "crushed parcel photos\nrefund inspected\nexpress shipping"


@pytest.mark.parametrize(
    ("search", "steps"),
    [
        ("dense", {"search BM25": 0, "search vectors": 4, "fuse by reciprocal rank": 0}),
        ("bm25", {"search BM25": 4, "search vectors": 0, "fuse by reciprocal rank": 0}),
        ("hybrid", {"search BM25": 4, "search vectors": 4, "fuse by reciprocal rank": 4}),
    ],
)
def test_multi_query_unites_what_each_text_finds(tmp_path, search, steps):
    result, _ = ask(tmp_path, "multi_query", {"variants": VARIANTS}, search=search)
    assert {name: len(spans(result, name)) for name in steps} == steps
    united = spans(result, "unite the lists")[0]
    texts = [QUESTION, *VARIANTS.splitlines()]
    assert united.args["texts"] == texts
    by_id = {span.id: {id for id, _ in span.hits} for span in result.spans if span.hits is not None}
    found = [by_id.get(link.span, set()) for link in united.links]
    only = {text: found[i] - set().union(*(found[:i] + found[i + 1 :])) for i, text in enumerate(texts)}
    assert {text: set(ids) for text, ids in united.output.only.items()} == only
    assert {h.passage.id for h in result.hits} == set().union(*found)
    if search == "bm25":
        assert only["refund inspected"] == {"returns:90-180"}


def test_multi_query_and_rag_fusion_share_the_variants(tmp_path):
    llm = ScriptedLLM({"variants": VARIANTS})
    run = FakeEngine(tmp_path, llm=llm).ask(Request(Query(QUESTION), "tiny", ("rag_fusion", "multi_query")))
    assert len(llm.requests) == 1
    assert spans(run.results[1], "write query variants")[0].shared_with.startswith("rag_fusion#")


def test_no_route_gives_more_than_two_pools(tmp_path):
    many = {f"p{i:03}:0-9": f"box {'crushed ' * (i % 7)}{'parcel ' * (i % 11)}word{i}" for i in range(600)}
    replies = {
        "variants": "\n".join(" ".join(f"word{i}" for i in range(n * 120, n * 120 + 120)) for n in range(5)),
        "step-back": " ".join(f"word{i}" for i in range(300, 600)),
    }
    for route in ("multi_query", "step_back"):
        result, _ = ask(tmp_path, route, replies, texts=many)
        assert len(result.hits) == 2 * POOL, route


# Decomposition.


@given(lists)
def test_ranks_are_the_places_among_the_distinct_passages_of_each_list(found):
    for id, places in ranks(found).items():
        for one, place in zip(found, places, strict=True):
            distinct = list(dict.fromkeys(hit.passage.id for hit in one))
            assert place == (distinct.index(id) + 1 if id in distinct else None)


PARTS = "What photos of a crushed box are needed?\nWithin how many hours is it reported?"


def test_the_best_of_each_sub_question_follows_the_questions_own_first_hits(tmp_path):
    result, _ = ask(tmp_path, "decompose", {"decompose": PARTS}, split_from=1, look_up=False, lead=1)
    assert texts_searched(result) == [QUESTION, *PARTS.splitlines()]
    own, *parts = (
        ids(ask(tmp_path, "hybrid_rrf", {}, text=text)[0]) for text in (QUESTION, *PARTS.splitlines())
    )
    expected = list(dict.fromkeys((own[0], *(part[0] for part in parts), *own)))
    assert ids(result) == expected
    assert [r.texts for _, r in rewrites(result)] == [tuple(PARTS.splitlines())]
    assert result.basis.question == QUESTION


@pytest.mark.parametrize(("threshold", "decision"), [(1, "split"), (3, "split"), (4, "keep"), (30, "keep")])
def test_a_question_is_split_by_how_many_terms_it_has(tmp_path, threshold, decision):
    text = "A crushed, crushed box: report?"
    result, llm = ask(tmp_path, "decompose", {"decompose": PARTS}, text, split_from=threshold)
    terms = set(FakeEngine(tmp_path).fakes["tiny"].analyzer.terms(text))
    outcome = spans(result, "split or keep")[0].output
    assert (outcome.decision, outcome.score, outcome.threshold) == (decision, len(terms), threshold)
    assert bool(llm.requests) is (decision == "split")
    if decision == "keep":
        same_hits(result, ask(tmp_path, "hybrid_rrf", {}, text)[0])


NAMED = {
    "hotel:0-90": "The spring conference takes place in the Grand Quay, opened by the mayor of Lindow.",
    "bus:0-90": "Grand Quay: bus number 12 stops there every hour.",
    **{f"other{n}:0-90": f"The spring sale number {n} takes place." for n in range(8)},
}


def test_a_name_that_a_sub_question_leads_to_is_looked_up(tmp_path):
    """The passage on the bus shares no word with "where": only the first one names the place."""
    replies = {"decompose": "Which bus goes to the spring conference?\nWhich sale is there?"}
    options = {"texts": NAMED, "titles": {"bus": "Grand Quay (Lindow)", "hotel": "Spring conference"}}
    text = "Which bus goes where the spring conference takes place?"
    result, _ = asking.ask(tmp_path, "decompose", text, replies, options=options, split_from=1, lead=1)
    looked_up = spans(result, "find a name to look up")[0].output
    assert looked_up.decision == "look up"
    assert "Grand Quay" in looked_up.text
    assert looked_up.text in texts_searched(result)
    assert "bus:0-90" in ids(result)[:3]


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (QUESTION, "no two questions that differ"),
        ("1. how do I report a CRUSHED box", "no two questions that differ"),
        (f"{QUESTION}\n{QUESTION.upper()}", "no two questions that differ"),
        ("\n", "no question"),
    ],
)
def test_a_decomposition_that_changes_nothing_is_said_and_is_plain_hybrid(tmp_path, reply, told, sequential):
    replies = {"decompose": reply, "decompose-steps": reply}
    result, _ = ask(tmp_path, "decompose", replies, sequential=sequential, split_from=1)
    split = spans(result, "split into simpler questions")[0]
    assert told in split.attributes["note"]
    assert split.output.texts == (QUESTION,)
    same_hits(result, ask(tmp_path, "hybrid_rrf", {})[0])


def test_sub_questions_differ_from_the_question_and_from_each_other_and_are_at_most_n(tmp_path):
    reply = f"{QUESTION}\n1. one thing\n2. One thing?\n3. two things\n4. three things\n5. four things"
    result, _ = ask(tmp_path, "decompose", {"decompose": reply}, n=2, split_from=1, look_up=False)
    split = spans(result, "split into simpler questions")[0]
    assert split.output.texts == ("one thing", "two things")
    assert split.attributes["note"] == "the model gave 4; only the first 2 are searched"
    assert texts_searched(result) == [QUESTION, "one thing", "two things"]


@given(st.lists(st.text("ab c?", max_size=12), max_size=6), st.text("ab c?", max_size=12))
def test_no_two_parts_share_most_of_their_words(parts, question):
    kept = different(parts, question)
    words = [set(wording(one).split()) for one in (question, *kept)]
    for one, other in itertools.combinations(words, 2):
        assert len(one & other) < 0.8 * len(one | other) or not one | other
    assert set(kept) <= set(parts)


STEPS = "1. What photos of a crushed box are needed?\n2. Who pays for #1?\n3. Is express better than #2?"


def test_steps_are_filled_in_with_the_answers_to_earlier_ones(tmp_path):
    replies = {
        "decompose-steps": STEPS,
        "short-answer": lambda r: "six sides" if "What photos" in r.messages[-1].content else "not stated",
    }
    result, llm = ask(tmp_path, "decompose", replies, sequential=True, split_from=1, look_up=False)
    assert texts_searched(result) == [
        QUESTION,
        "What photos of a crushed box are needed?",
        "Who pays for six sides?",
        "Is express better than?",
    ]
    first, second = spans(result, "look for a short answer")
    assert (first.output.text, first.output.source) == ("six sides", "crushed:0-80")
    assert second.output.text == ""
    assert second.attributes["note"] == "left out: not stated"
    filled = spans(result, "fill in earlier answers")
    assert [span.attributes.get("note") for span in filled] == [None, "no answer to #2: left out"]
    assert [(r.before, r.texts) for _, r in rewrites(result)][1:] == [
        ("Who pays for #1?", ("Who pays for six sides?",)),
        ("Is express better than #2?", ("Is express better than?",)),
    ]
    assert prompts(llm) == ["decompose-steps/2", "short-answer/2", "short-answer/2"], (
        "the last needs no answer"
    )


def test_an_answer_that_no_passage_has_is_asked_for_again_and_left_out(tmp_path):
    replies = {"decompose-steps": "1. Who is it?\n2. #1", "short-answer": "The moon."}
    result, llm = ask(tmp_path, "decompose", replies, sequential=True, split_from=1, look_up=False)
    assert prompts(llm)[1:] == ["short-answer/2", "short-answer/2/firmer"]
    assert "in none of the passages" in spans(result, "look for a short answer")[0].attributes["note"]
    note = spans(result, "fill in earlier answers")[0].attributes["note"]
    assert note == "no answer to #1: left out; nothing remains to search with"
    assert texts_searched(result) == [QUESTION, "Who is it?"]


@pytest.mark.parametrize(
    ("text", "answers", "asked", "filled"),
    [
        ("Who manages #1?", ["the Harbour Hotel"], "q", "Who manages the Harbour Hotel?"),
        ("#1 and #2, or #1?", ["A", "B"], "q", "A and B, or A?"),
        ("Who manages #1 ?", [None], "q", "Who manages?"),
        ("#1?", [None], "q", ""),
        ("Where is order #48291 of #1?", ["Ann"], "q", "Where is order #48291 of Ann?"),
        ("Does #3 come after #2?", ["A"], "q", "Does #3 come after #2?"),
        ("Is #1 closed by #2?", ["A", "B"], "Who closed priority #1?", "Is #1 closed by B?"),
        ("#0, C#1 and #1a", ["A"], "q", "#0, C#1 and #1a"),
        (r"What is #1?", [r"\1 and \g<0>"], "q", r"What is \1 and \g<0>?"),
    ],
)
def test_references_by_hand(text, answers, asked, filled):
    assert fill_in(text, answers, asked) == filled


@given(st.text("#123 ab?", max_size=20), st.lists(st.none() | st.sampled_from(["x", "y z"]), max_size=3))
def test_no_reference_with_an_answer_remains(text, answers):
    left = references(fill_in(text, answers, ""), "")
    assert not left & set(range(1, len(answers) + 1))


def test_quoted_words_must_follow_each_other():
    hits = (*ranking(("a", 1)), Hit(Passage("b", "b", "Title here", "Photos of all six sides."), 0.5))
    assert quoted_in("ALL six sides", hits) == "b"
    assert quoted_in("title here", hits) == "b"
    assert quoted_in("six all sides", hits) is None
    assert quoted_in("ide", hits) is None
    assert quoted_in("here photos", hits) is None


# HyDE.


@given(vectors)
def test_the_mean_is_that_of_plain_arithmetic(matrix):
    mean = mean_vector(matrix)
    summed = [math.fsum(float(x) for x in column) / len(matrix) for column in matrix.T]
    length = math.sqrt(math.fsum(x * x for x in summed))
    if length > 1e-5:
        assert mean == pytest.approx([x / length for x in summed], abs=1e-5)
        assert np.linalg.norm(mean) == pytest.approx(1, abs=1e-5)
    assert mean.dtype == np.float32


@given(vectors)
def test_spread_by_its_definition_and_by_the_identity_that_ties_both_together(matrix):
    n = len(matrix)
    found = spread(matrix)
    pairs = [1 - math.fsum(map(float, a * b)) for a, b in itertools.combinations(matrix.astype(float), 2)]
    assert found.pairwise == pytest.approx(sum(pairs) / len(pairs) if pairs else 0, abs=1e-5)
    # |mean|^2 = (n + n (n - 1) mean cosine) / n^2
    assert (1 - found.from_mean) ** 2 == pytest.approx((1 + (n - 1) * (1 - found.pairwise)) / n, abs=1e-4)


def test_overlap_by_hand():
    a, b = ranking(("x", 2), ("y", 1)), ranking(("y", 2), ("z", 1))
    assert overlap([a, b]) == pytest.approx(1 / 3)
    assert overlap([a, b, ()]) == pytest.approx((1 / 3 + 0 + 0) / 3)
    assert overlap([a, a]) == overlap([(), ()]) == 1
    assert overlap([a]) is None


SAMPLES = [
    "take photos of the crushed box",
    "express shipping delivers to Belgium",
    "customs holds without commercial invoice",
]


def sampled(request):
    return SAMPLES[request.seed]


@pytest.mark.parametrize("with_question", [True, False])
def test_hyde_shows_what_each_sample_finds(tmp_path, with_question):
    texts = {f"{id}{n}": f"{text} {n}" for id, text in TEXTS.items() for n in range(3)}
    replies = {"hyde": sampled}
    result, _ = ask(tmp_path, "hyde", replies, texts=texts, n=3, with_question=with_question)
    alone, _ = ask(tmp_path, "hyde", replies, texts=texts, n=3, with_question=with_question, per_sample=False)
    assert not spans(alone, "search with each sample")
    same_hits(alone, result)
    engine = FakeEngine(tmp_path, texts=texts)
    corpus, embedder = engine.fakes["tiny"], engine.fakes["tiny"].embedder
    imagined = list(result.spans[0].output.texts)
    assert imagined == SAMPLES
    each = spans(result, "search with each sample")[0]
    found = []
    for number, text in enumerate(imagined, 1):
        own = each.output.lists[number - 1]
        alone = corpus.search_dense(embedder.embed_query(text), 10)
        assert list(own) == [(h.passage.id, h.score) for h in alone]
        assert len(own) == 10
        found.append({h.passage.id for h in alone})
    shares = [len(a & b) / len(a | b) for a, b in itertools.combinations(found, 2)]
    assert each.output.overlap == pytest.approx(sum(shares) / 3)
    assert each.output.in_all == tuple(sorted(found[0] & found[1] & found[2]))

    matrix = np.stack([embedder.embed_query(text) for text in imagined])
    told = spans(result, "mean of embeddings")[0].output.spread
    assert told.from_mean == pytest.approx(1 - np.linalg.norm(matrix.mean(0)), abs=1e-5)
    assert told.pairwise == pytest.approx(1 - (np.sum(matrix @ matrix.T) - 3) / 6, abs=1e-5)
    if with_question:
        matrix = np.vstack([matrix, embedder.embed_query(QUESTION)])
    mean = matrix.mean(0)
    expected = corpus.search_dense(mean / np.linalg.norm(mean), 100)
    assert ids(result) == [h.passage.id for h in expected]


@pytest.mark.parametrize("local", [True, False])
def test_samples_are_asked_for_at_once_only_of_a_remote_model(tmp_path, local):
    together, most = [], []
    lock, met = threading.Lock(), threading.Event()

    def reply(request):
        with lock:
            together.append(request.seed)
            most.append(len(together))
            if len(together) == 3:
                met.set()
        met.wait(0.05 if local else 5)
        with lock:
            together.remove(request.seed)
        return sampled(request)

    result, _ = ask(tmp_path, "hyde", {"hyde": reply}, n=3, local=local)
    assert max(most) == (1 if local else 3)
    assert result.spans[0].output.texts == tuple(SAMPLES)


def test_a_budget_of_calls_is_kept_by_samples_asked_for_at_once(tmp_path):
    llm = ScriptedLLM({"hyde": "five words make a passage"}, delay=0.02, local=False)
    result, _ = asking.ask(tmp_path, "hyde", QUESTION, llm, options={"route_max_calls": 3}, n=8)
    assert result.status == "timeout"
    assert len(llm.requests) == 3


# Gated HyDE.


def test_gated_hyde_takes_exact_questions_to_hybrid_without_a_model(tmp_path):
    result, llm = ask(tmp_path, "hyde_gated", {"hyde": ModelFailed("no")}, "Is RMA-1234 or #48291 paid?")
    gate = spans(result, "look for exact terms")[0]
    assert gate.kind == "CHAIN"
    assert gate.output.decision == "hybrid"
    assert gate.output.details == {
        "terms": [{"kind": "code", "text": "RMA-1234"}, {"kind": "number", "text": "#48291"}]
    }
    assert not llm.requests
    same_hits(result, ask(tmp_path, "hybrid_auto", {}, "Is RMA-1234 or #48291 paid?")[0])


def test_gated_hyde_is_hyde_for_all_other_questions(tmp_path):
    result, _ = ask(tmp_path, "hyde_gated", {"hyde": sampled}, n=3)
    assert spans(result, "look for exact terms")[0].output.decision == "hyde"
    same_hits(result, ask(tmp_path, "hyde", {"hyde": sampled}, n=3)[0])
