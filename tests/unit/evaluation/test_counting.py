"""What rankings are scored by, against a second implementation that looks at every character."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis.metrics import by_question
from core.corpus.passage_matching import Matcher
from core.domain.outputs import ReturnedHit
from core.domain.types import Query
from core.evaluation.dataset import Evidence, LabelledSet, Question, Written
from core.evaluation.labels_file import place, with_judgements
from core.evaluation.outcome import Outcome
from tests.fakes import CutCorpus


@dataclass(frozen=True)
class Hit:
    doc_id: str
    text: str = ""
    id: str | None = None
    start: int | None = None
    end: int | None = None
    title: str | None = None


def returned(corpus: CutCorpus, hits: list[Hit]) -> Outcome:
    """The outcome of a pipeline that returned `hits`."""
    matched = Matcher(corpus).match(hits)
    made = [
        ReturnedHit(
            f"hit {n}", 1 / n, s.doc, *(s.span or (None, None)), s.ids, "" if s.span else hits[n - 1].text
        )
        for n, s in enumerate(matched.standing, 1)
    ]
    return Outcome("ok", 1.0, returned=tuple(made))


def asked(corpus: CutCorpus, *labels: Evidence) -> LabelledSet:
    return place(Written("set", (Question("q", Query("?")),), {"q": labels}), corpus)


def metrics(labelled: LabelledSet, outcome: Outcome) -> dict[str, float]:
    ranked = {"q": labelled.ranking("q", outcome)}
    return by_question({"q": labelled.judged("q")}, ranked, relevant_from=labelled.relevant_from)["q"]


# Documents of numbered words, so that every quote stands in one place.
TEXTS = {
    doc: " ".join(f"{doc}{n}{'x' * (n * seed % 7)}" for n in range(30)) for doc, seed in (("a", 3), ("b", 5))
}
spans = st.tuples(st.integers(0, 200), st.integers(1, 120))


def clipped(doc: str, span: tuple[int, int]) -> tuple[int, int]:
    start = min(span[0], len(TEXTS[doc]) - 1)
    return start, min(start + span[1], len(TEXTS[doc]))


@st.composite
def chunking(draw: st.DrawFn, doc: str) -> list[tuple[int, int]]:
    """A document cut anywhere, perhaps with overlapping pieces."""
    ends = sorted(draw(st.sets(st.integers(1, len(TEXTS[doc]) - 1), max_size=9)))
    overlap = draw(st.integers(0, 15))
    bounds = [0, *ends, len(TEXTS[doc])]
    pairs = itertools.pairwise(bounds)
    return list(dict.fromkeys((max(0, start - overlap), end) for start, end in pairs))


@st.composite
def labels(draw: st.DrawFn) -> list[tuple[str, int, int, int]]:
    """Quotes that begin and end with a letter, each once, with their grades."""
    found = {}
    for _ in range(draw(st.integers(1, 4))):
        doc = draw(st.sampled_from("ab"))
        start, end = clipped(doc, draw(spans))
        quote = TEXTS[doc][start:end].strip()
        at = TEXTS[doc].find(quote)
        if quote:
            found[doc, at, at + len(quote)] = draw(st.sampled_from([2, 3]))
    return [(*key, grade) for key, grade in found.items()] or [("a", 0, 5, 2)]


def characters(start: int, end: int) -> set[int]:
    return set(range(start, end))


def oracle(
    wanted: list[tuple[str, int, int, int]],
    ranking: list[tuple[str, int, int]],
    corpus: list[tuple[str, int, int]],
) -> dict[str, float]:
    """Recall, MRR and nDCG@10 from sets of characters."""

    def has(hit: tuple[str, int, int], label: tuple[str, int, int, int]) -> bool:
        held = characters(*hit[1:]) & characters(*label[1:3]) if hit[0] == label[0] else set()
        size = label[2] - label[1]
        most = max(
            (len(characters(*p[1:]) & characters(*label[1:3])) for p in corpus if p[0] == label[0]),
            default=0,
        )
        enough = len(held) >= max(1, min(size / 2, most))
        return bool(held) and (enough or held == characters(*hit[1:]))

    gains: list[int] = []
    left = sorted(wanted, key=lambda one: -one[3])
    for hit in dict.fromkeys(ranking):
        new = [label for label in left if has(hit, label)]
        left = [label for label in left if label not in new]
        gains += [label[3] for label in new] or [0]
    ideal = sorted((label[3] for label in wanted), reverse=True)

    def dcg(values: list[int]) -> float:
        return sum(value / math.log2(at + 2) for at, value in enumerate(values[:10]))

    first = next((at for at, gain in enumerate(gains[:10], 1) if gain), 0)
    return {
        "ndcg@10": dcg(gains) / dcg(ideal),
        "recall@10": sum(gain > 0 for gain in gains[:10]) / len(wanted),
        "recall@100": sum(gain > 0 for gain in gains) / len(wanted),
        "mrr@10": 1 / first if first else 0.0,
    }


def close(found: dict[str, float], expected: dict[str, float]) -> None:
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-9)


@given(st.data(), labels())
@settings(max_examples=60, deadline=None)
def test_any_chunking_of_ours_and_of_others_is_counted_by_characters(data, wanted):
    pieces = {doc: data.draw(chunking(doc)) for doc in TEXTS}
    corpus = CutCorpus(TEXTS, pieces)
    evidence = [Evidence(doc, grade, TEXTS[doc][start:end]) for doc, start, end, grade in wanted]
    labelled = asked(corpus, *evidence)
    every = [(doc, *span) for doc, own in pieces.items() for span in own]

    ours = data.draw(st.permutations(every))[: data.draw(st.integers(0, 12))]
    hits = tuple((f"{doc}:{start}-{end}", 1.0 / n) for n, (doc, start, end) in enumerate(ours, 1))
    close(metrics(labelled, Outcome("ok", 1.0, hits)), oracle(wanted, ours, every))

    others = [(doc, *span) for doc in TEXTS for span in data.draw(chunking(doc))]
    theirs = data.draw(st.permutations(others))[: data.draw(st.integers(0, 12))]
    by_offsets = [Hit(doc, TEXTS[doc][start:end], start=start, end=end) for doc, start, end in theirs]
    expected = oracle(wanted, theirs, every)
    close(metrics(labelled, returned(corpus, by_offsets)), expected)
    bare = [Hit(doc, start=start, end=end) for doc, start, end in theirs]
    close(metrics(labelled, returned(corpus, bare)), expected)


TICKETS = (
    "The hut opens early in summer and late in winter; its staff answer calls within a day or two. "
    "Group tickets for the hut cost 20 euros a head. "
    "Children under six travel free of charge, and dogs stay outside the hut at all times of the year."
)
QUOTE = "Group tickets for the hut cost 20 euros a head."
AT = TICKETS.index(QUOTE)
HUT = CutCorpus(
    {"hut.txt": TICKETS}, {"hut.txt": [(0, AT + len(QUOTE)), (AT + len(QUOTE) + 1, len(TICKETS))]}
)


@pytest.mark.parametrize(
    ("hit", "relevant"),
    [
        (Hit("hut.txt", TICKETS[AT : AT + 130], start=AT, end=AT + 130), 1.0),
        (Hit("hut.txt", TICKETS[AT : AT + 130]), 1.0),
        (
            Hit("elsewhere", f"FAQ\n\n{QUOTE.upper()}\nWritten by somebody else, whose words are nowhere."),
            1.0,
        ),
        (Hit("hut.txt", TICKETS[AT + 20 : AT + 140], start=AT + 20, end=AT + 140), 1.0),
        (Hit("hut.txt"), 1.0),
        (Hit("", id=f"hut.txt:{AT}-{AT + 40}"), 1.0),
        (Hit("hut.txt", TICKETS[:AT], start=0, end=AT), 0.0),  # of the passage with the quote, without it
        (Hit("hut.txt", TICKETS[AT + 30 :], start=AT + 30, end=len(TICKETS)), 0.0),
        (Hit("elsewhere", "Group tickets for the castle are sold at the gate on Sundays and Mondays."), 0.0),
    ],
)
def test_a_hit_that_holds_half_of_the_quote_is_relevant_wherever_it_was_cut(hit, relevant):
    found = metrics(asked(HUT, Evidence("hut.txt", 2, QUOTE)), returned(HUT, [hit]))
    assert (found["recall@10"], found["ndcg@10"]) == (relevant, relevant)


def test_a_long_hit_takes_one_rank_where_passages_are_labelled():
    corpus = CutCorpus(TEXTS, {doc: [(at, at + 20) for at in range(0, 200, 20)] for doc in TEXTS})
    labelled = LabelledSet("set", (Question("q", Query("?")),), {"q": {"b:20-40": 1}})
    hits = [Hit("a", start=0, end=100), Hit("a", start=100, end=200), Hit("b", start=0, end=100)]
    found = metrics(labelled, returned(corpus, hits))
    assert found["mrr@10"] == pytest.approx(1 / 3)
    assert found["recall@10"] == 1.0


PARTS = {doc: [(at, at + 20) for at in range(0, 200, 20)] for doc in TEXTS}


def hits_of(*passages: tuple[str, int]) -> Outcome:
    ranked = ((f"{doc}:{at}-{at + 20}", 1.0 / n) for n, (doc, at) in enumerate(passages, 1))
    return Outcome("ok", 1.0, tuple(ranked))


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(range(0, 200, 20))), max_size=12, unique=True),
    st.booleans(),
)
def test_rankings_of_passages_are_scored_as_the_ranking_of_their_documents(passages, by_qrels):
    corpus = CutCorpus(TEXTS, PARTS)
    labelled = asked(corpus, Evidence("b", 2))
    if by_qrels:
        judged = LabelledSet("set", (Question("q", Query("?")),), {"q": {"b": 2}}, 2)
        labelled, _ = with_judgements(judged, corpus)
    documents = list(dict.fromkeys(doc for doc, _ in passages))
    rank = documents.index("b") + 1 if "b" in documents else 0
    found = metrics(labelled, hits_of(*passages))
    assert found["mrr@10"] == (pytest.approx(1 / rank) if rank else 0.0)
    assert found["recall@10"] == float(rank > 0)
    theirs = [Hit(doc, TEXTS[doc][at : at + 20], start=at, end=at + 20) for doc, at in passages]
    assert metrics(labelled, returned(corpus, theirs)) == found
