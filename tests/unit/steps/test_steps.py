"""What the steps send, make of the reply, and record; the golden step sequence of each route."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.base import Completion, TokenLogprob
from core.backends.prompting.prompts import GRADE, HYDE
from core.backends.prompting.replies import odds
from core.domain.errors import BadInput, ModelFailed
from core.domain.outputs import PassageGrade, Sentence
from core.domain.types import Query, Turn
from core.engine.request import Request
from core.steps.grade import decide
from core.steps.refine import recompose
from tests import asking
from tests.asking import prompts, span, spans
from tests.fakes import FakeEngine

CRUSHED = Query(
    "What do I do now?", (Turn("user", "My box arrived crushed."), Turn("assistant", "I am sorry."))
)
WEB = {"duty:0-50": "Customs duties on textiles depend on the HS chapter."}


def ask(tmp_path, route, replies, query=CRUSHED, **parameters):
    return asking.ask(tmp_path, route, query, replies, options={"web": WEB}, **parameters)


def names(result):
    """The steps in order, those inside a step after a > for each step around them."""
    depth = {None: -1}
    lines = []
    for one in result.spans:
        depth[one.id] = depth[one.parent] + 1
        lines.append(f"{'>' * depth[one.id]} {one.name}".strip())
    return "; ".join(lines)


BOTH = "search BM25; embed; search vectors"
RRF = f"{BOTH}; fuse by reciprocal rank"
LINEAR = f"{BOTH}; fuse by normalised scores"
SCORED = "embed; search BM25; search vectors; score by BM25; score by cosine; fuse by normalised scores"
BLEND = "rerank by BM25, cosine and MaxSim; > embed; > embed tokens"
MEASURED = "> measure the passages; >> embed; >> embed tokens"
RECALL = (
    "search the conversation; > embed; does the question stand alone; put recalled turns before the "
    "question; mean with recalled turns; > embed; search vectors; search BM25"
)
TABLES = (
    "look up values; choose tables; find joins; write and run SQL; > write SQL; >> ask scripted; > run "
    "SQL; > decide on another query; say the result; take the result as a passage"
)
IMAGINED = "write hypothetical passages; > ask scripted; mean of embeddings; > embed; > embed; search vectors"
JUDGED = "answer from one passage and judge it" + "; > ask scripted" * 4
GOLDEN = {  # steps inside a step after >
    "self_reflective": (
        f"check the calibration; {RRF}; reflect on the round; > is the answer in the passages; >> ask "
        "scripted; keep the best round"
    ),
    "self_correct": (
        f"{RRF}; check the calibration; write answer; > is the answer in the passages; >> ask scripted; > "
        "ask scripted; check the claims; > check a claim; >> ask scripted; revise or keep; keep what is "
        "supported"
    ),
    "critique_loop": (
        f"check the calibration; check the calibration; {RRF}; {JUDGED}; {JUDGED}; {JUDGED}; "
        "order by the segments written; append the rest; choose the best segment"
    ),
    "self_rag": (
        f"decide whether to retrieve; > ask reflecting; {RRF}; write a segment for each passage; > ask "
        "reflecting; > ask reflecting; > ask reflecting; > ask reflecting; > ask reflecting; keep the best "
        "paths; order by the segments written; append the rest; choose the best path"
    ),
    "confidence": (
        f"check the calibration; {RRF}; write answer; > is the answer in the passages; >> ask scripted; > "
        "ask scripted"
    ),
    "memory": f"{BOTH}; {RECALL}; fuse by reciprocal rank",
    "bm25": "search BM25",
    "dense": "embed; search vectors",
    "hybrid_rrf": RRF,
    "hybrid_linear": SCORED,
    "late_interaction": f"embed tokens; {BOTH}; score by matching tokens",
    "splade": "search learned term weights",
    "compress": (
        f"{SCORED}; drop passages far from the question; > embed; keep the strips that matter; > embed; "
        "write the excerpts; take the passages with excerpts; append the rest"
    ),
    "mmr": "embed; search vectors; order by marginal relevance",
    "rerank": f"{LINEAR}; {BLEND}",
    "cag": "take the whole corpus; answer from the whole corpus; > ask scripted; list the cited passages",
    "fid": f"{LINEAR}; read the passages together",
    "dedupe": f"{SCORED}; drop near-duplicates",
    "rewrite": f"rewrite as a standalone question; > ask scripted; {BOTH}; {RRF}",
    "rag_fusion": f"write query variants; > ask scripted; {BOTH}; {BOTH}; {BOTH}; {RRF}",
    "multistage": (
        f"{BOTH}; analyse the question; rewrite as a standalone question; > ask scripted; {RRF}; {BLEND}; "
        "drop near-duplicates; order by marginal relevance; > embed"
    ),
    "contextual_headings": "search BM25 of keys; embed; search vectors of keys; fuse by normalised scores",
    "contextual": "search BM25 of keys; embed; search vectors of keys; fuse by normalised scores",
    "parent": "embed; search vectors of keys",
    "hype": "embed; search vectors of keys",
    "hype_hyde": f"embed; search vectors of keys; {IMAGINED}; fuse by reciprocal rank",
    "hyde": (
        "write hypothetical passages; > ask scripted; search with each sample; > embed; mean of embeddings; "
        "> embed; > embed; search vectors"
    ),
    "hyde_gated": f"look for exact terms; {IMAGINED}",
    "step_back": f"{BOTH}; write a more general question; > ask scripted; {RRF}",
    "multi_query": f"write query variants; > ask scripted; {RRF}; {RRF}; {RRF}; {RRF}; unite the lists",
    "decompose": f"{RRF}; split or keep",
    "text_to_sql": TABLES,
    "table_qa": TABLES,
    "structured_hybrid": (
        "ask the tables; > look up values; > choose tables; > find joins; > write and run SQL; >> write "
        f"SQL; >>> ask scripted; >> run SQL; >> decide on another query; {LINEAR}; choose the side; take the "
        "result as a passage; append the rest; say the result; put the result first"
    ),
    "iterative": (
        f"{SCORED}; collect what is new; collect what is new; go on or stop; find a name to look up; append "
        "the rest"
    ),
    "agentic": (
        f"check the calibration; {RRF}; count what was found; > embed; collect what is new; do the passages "
        "answer the question; > ask scripted; choose again or stop; choose an action; > ask scripted; fuse "
        "by reciprocal rank; append the rest"
    ),
    "adaptive": (
        f"{BOTH}; look up values; classify by features; choose the route; {LINEAR}; {BLEND}; {RECALL}; "
        f"fuse by normalised scores; {BLEND}; fuse by reciprocal rank; keep what it found"
    ),
    "crag": (
        f"{SCORED}; grade and decide; {MEASURED}; write web search keywords; > ask scripted; search the web; "
        f"grade the web results; {MEASURED}; act on the grades; order by grade; put lists one behind "
        "another; keep the sentences that matter; > embed"
    ),
}
REPLIES = {
    "scale": {"2": 1.0},
    "reformulate": "report photos of a crushed box",
    "critique": '{"claims": [{"claim": "five words", "passage": null, "supported": false}], '
    '"feedback": "Say more.", "good": false}',
    "refine": "Photograph all six sides within 48 hours [1].",
    "relevant": "0.8",
    "segment": "Take photos.",
    "supported": {"fully": 1.0},
    "useful": {"4": 1.0},
    "closed-answer": "Photograph it and report it.",
    "confidence": "40",
    "sql": "SELECT name FROM items",
    "rewrite": "what to do when a box arrived crushed",
    "variants": "crushed parcel\ndamaged box\nbroken pack",
    "step-back": "What are the rules for damaged parcels?",
    "decompose": "What photos of a crushed box are needed?\nWithin how many hours is it reported?",
    "grade": "0.95",
    "answer": "Take photos of all six sides [1].",
    "next-sentence": "So the answer is: report it.",
    "choose-action": '{"action": "answer", "input": ""}',
}


@pytest.mark.parametrize("route", GOLDEN)
def test_golden_steps(tmp_path, route):
    result, _ = ask(tmp_path, route, REPLIES)
    assert (result.status, result.error) == ("ok", None)
    assert names(result) == GOLDEN[route]
    assert bool(result.hits) is (route != "bm25")  # the question as it stands shares no word with any passage


def test_bm25_shares_its_search_unless_another_engine_is_chosen(tmp_path):
    question = Query("My box arrived crushed")
    routes = ("bm25", "hybrid_rrf")
    for parameters, searches in (({}, 1), ({"bm25": {"engine": "rank-bm25"}}, 2)):
        engine = FakeEngine(tmp_path)
        run = engine.ask(Request(question, "tiny", routes, parameters))
        assert engine.fakes["tiny"].searches == [question.text] * searches
        assert sum(s.shared_with is not None for r in run.results for s in r.spans) == 2 - searches


def test_rewrite_searches_with_the_standalone_question(tmp_path):
    result, llm = ask(tmp_path, "rewrite", REPLIES)
    sent = llm.requests[0].messages[-1].content
    assert "user: My box arrived crushed." in sent
    assert "Last message: What do I do now?" in sent
    assert result.spans[0].output.texts == (REPLIES["rewrite"],)
    assert result.spans[0].output.before == "What do I do now?"
    assert result.hits[0].passage.id == "crushed:0-80"


def test_rewrite_without_a_conversation_asks_no_model(tmp_path):
    result, llm = ask(tmp_path, "rewrite", {}, query=Query("What do I do now?"))
    assert not llm.requests
    assert result.spans[0].output.texts == ("What do I do now?",)
    assert "no earlier conversation" in result.spans[0].attributes["note"]


def test_variants_drop_bullets_repeats_and_the_question_itself(tmp_path):
    reply = "1. crushed parcel\n- crushed parcel\nWhat do I do now?\n* damaged box\n\nMore:\n3) broken pack"
    result, _ = ask(tmp_path, "rag_fusion", {"variants": reply})
    assert result.spans[0].output.texts == ("crushed parcel", "damaged box", "broken pack")


def test_too_few_variants_are_asked_for_again_once_and_said(tmp_path):
    result, llm = ask(tmp_path, "rag_fusion", {"variants": "crushed parcel"})
    assert prompts(llm) == ["variants/2", "variants/2/firmer"]
    assert "1 of 3 queries" in llm.requests[1].messages[0].content
    assert result.spans[0].output.texts == ("crushed parcel",)
    assert "1 of 3 variants, even after a retry" in result.spans[0].attributes["note"]


def test_a_refusal_is_retried_once_and_shown(tmp_path):
    replies = {
        "hyde/2": "As an AI language model, I cannot help with that.",
        "hyde/2/firmer": "Crushed boxes are refunded in full.",
    }
    result, _ = ask(tmp_path, "hyde", replies)
    asked = [(one.args["prompt"], one.args["attempt"]) for one in spans(result, "ask")]
    assert asked == [("hyde/2", 1), ("hyde/2/firmer", 2)]
    assert result.spans[0].output.texts == ("Crushed boxes are refunded in full.",)
    twice, _ = ask(tmp_path, "hyde", {"hyde": replies["hyde/2"]})
    assert twice.status == "failed"
    assert "refused twice" in twice.error


def test_the_instruction_given_is_the_instruction_sent(tmp_path):
    _, llm = ask(tmp_path, "hyde", {}, instruction="Write it as a pirate would.")
    assert llm.requests[0].messages[0].content == "Write it as a pirate would."
    assert llm.requests[0].prompt == "hyde/2/custom"


def test_a_prompt_takes_braces_in_documents_literally():
    sent = GRADE.fill({"passage": "see {question} and {0} {{x}}", "question": "why {passage}?"})[-1].content
    assert "see {question} and {0} {{x}}" in sent
    assert "why {passage}?" in sent
    assert HYDE.fill({"question": "q"})[-1].content.startswith("Question: q")


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=6), st.floats(0, 1), st.floats(0, 1))
def test_decide_by_its_definition(values, low, high):
    grades = [PassageGrade(str(i), v, "not scored" if v is None else "scored") for i, v in enumerate(values)]
    if low > high:
        with pytest.raises(BadInput):
            decide(grades, low, high)
        return
    known = [v for v in values if v is not None]
    if any(v >= high for v in known):
        assert decide(grades, low, high) == "correct"
    elif all(v < low for v in known):
        assert decide(grades, low, high) == "incorrect"
    else:
        assert decide(grades, low, high) == "ambiguous"


def test_a_graders_failure_is_neither_pass_nor_fail(tmp_path):
    def grade(request):
        if "six sides" in request.messages[-1].content:
            return "0.99"
        raise ModelFailed("the endpoint answered HTML")

    result, _ = ask(tmp_path, "crag", {"grade": grade}, Query("My box arrived crushed"), evaluator="llm")
    grades = span(result, "grade and decide").output.grades
    assert sorted(g.state for g in grades) == ["error"] * 4 + ["scored"]
    assert result.hits[0].passage.id == "crushed:0-80"


def test_yes_or_no_adds_spellings_and_ignores_other_words():
    top = (("Yes", math.log(0.4)), (" yes", math.log(0.2)), ("No", math.log(0.2)), ("Maybe", math.log(0.2)))
    answer = Completion("Yes", "m", "stop", 1.0, 1, 1, 0, (TokenLogprob("Yes", math.log(0.4), top),))
    assert odds(answer, ("yes", "no")).of["yes"] == pytest.approx(0.75)
    other = Completion("Hm", "m", "stop", 1.0, 1, 1, 0, (TokenLogprob("Hm", 0.0, (("Hm", 0.0),)),))
    assert odds(other, ("yes", "no")) is None


def test_kept_sentences_of_a_passage_are_joined_in_their_order():
    sentences = [Sentence("a", text, 1, kept) for text, kept in (("x", True), ("y", False), ("z", True))]
    assert recompose(tuple(sentences)) == {"a": "x z"}
