"""Near-duplicate passages of a corpus: how many, which, and what differs."""

from __future__ import annotations

import math
import threading

import streamlit as st

from core.corpus import near_duplicates
from core.corpus.build import Progress
from core.corpus.corpus import Corpus
from core.corpus.near_duplicates import By, Near
from core.domain.errors import Cancelled
from core.domain.once import Recent
from core.domain.types import Passage
from ui.app import corpora, say, state
from ui.app.choice import choice, slider, switch
from ui.app.markup import cut, fragment, show
from ui.components import tables
from ui.components.rewrites import word_diff

BY, ACROSS, PAIR = "near_by", "near_across", "near_pair"
WAYS: dict[By, str] = {"words": "Words (3-word shingles)", "embedding": "Meaning (vectors)"}
FOREGROUND_PASSAGES = 3_000  # passages compared while the page waits; more are compared in the background
MAX_PAIRS = 500  # pairs in the table
GROUPS = 8  # groups and sets of copies that are listed
_found: Recent[tuple[str, str, By], Near] = Recent(8)  # by corpus and its state


def draw(name: str) -> None:
    """Draw the finding, the pairs, the diff of one pair, and the groups."""
    corpus = state.engine().corpus(name)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        by: By = choice("near", BY, "Compared by", WAYS, segmented=True)
        found = compared(corpus, by)
        if found is None:
            return
        threshold = _threshold(found)
        across = switch("across", ACROSS, "Only between documents")
    say.text(found.in_words(threshold))
    if found.sampled:
        graph = f"The HNSW graph finds {corpus.info.recall:.1%} of the exact 10 nearest"
        say.caption(f"{graph}, so a few pairs may be missing.")
    if found.complete > near_duplicates.LEAST[by]:
        pairs = f"There are over {near_duplicates.MOST:,} pairs"
        say.warning(f"{pairs}. The list is complete from a similarity of {found.complete:.4f}.")
    _pairs(corpus, found, threshold, across=across)
    groups = found.groups(threshold)
    copies = sorted(found.copies, key=lambda rows: (-len(rows), rows))
    inside = f"{sum(map(len, groups)):,} of {corpus.size:,} passages are in"
    sets = near_duplicates.count(len(groups), "group", "groups")
    repeats = near_duplicates.count(found.repeats, "passage repeats", "passages repeat")
    parts = [
        (f"{inside} {sets} of near-duplicates and copies", _listed(corpus, groups), len(groups)),
        (f"{repeats} another word for word", _listed(corpus, copies), len(copies)),
    ]
    show(fragment("corpus.groups", parts, GROUPS))


def compared(corpus: Corpus, by: By) -> Near | None:
    """Return the near duplicates, or None until the background work for a large corpus ends."""
    key = corpus.name, corpus.fingerprint, by
    if key in _found:
        return _found[key]
    if corpus.size <= FOREGROUND_PASSAGES:
        with st.spinner("Comparing the passages"):
            _found[key] = near_duplicates.find(corpus, by)
        return _found[key]
    graph = corpus.info.vector_index == "hnsw"
    if why := near_duplicates.refused(by, corpus.size, graph):
        say.info(f"{why}.")
        return None

    def work(progress: Progress, cancel: threading.Event) -> None:
        def tick(done: int, total: int) -> None:
            if cancel.is_set():
                raise Cancelled("the comparison was stopped")
            progress("compare passages", done, total)

        _found[key] = near_duplicates.find(corpus, by, tick, graph=graph)

    doing = f"Comparing {corpus.size:,} passages"
    called = f"{corpus.name} near-duplicates by {by}"
    corpora.background(called, doing, "Compare passages", "near_start", work)
    return None


def usual(found: Near) -> float:
    """Return the initial threshold: the default, or a lower one if that would show nothing."""
    begin, best = near_duplicates.USUAL[found.by], float(found.similarity[0]) if len(found.pairs) else 1.0
    return begin if best >= begin else math.floor(best * 100) / 100


def _threshold(found: Near) -> float:
    key, least = f"near_least:{found.fingerprint}:{found.by}", near_duplicates.LEAST[found.by]
    label = f"Minimum similarity ({'Jaccard' if found.by == 'words' else 'cosine'})"
    return slider("alike", key, label, least, 1.0, usual(found), step=0.01, width=260, format="%.2f")


def _pairs(corpus: Corpus, found: Near, threshold: float, *, across: bool) -> None:
    places = found.above(threshold, across=across)
    if not len(places):
        return
    shown = places[:MAX_PAIRS]
    pairs = found.pairs[shown].tolist()
    passages = _passages(corpus, [row for pair in pairs for row in pair])
    rows = [
        {
            "Similarity": float(found.similarity[at]),
            "First": passages[one].id,
            "Second": passages[two].id,
            "Documents": "same" if passages[one].doc_id == passages[two].doc_id else "two",
            "Text": cut(passages[one].text, 200),
        }
        for at, (one, two) in zip(shown, pairs, strict=True)
    ]
    key = f"pairs:{corpus.fingerprint}:{found.by}:{threshold}:{across}"
    names = [f"{row['First']}|{row['Second']}" for row in rows]
    picked = tables.pick(rows, names, key, "Pairs of passages, most similar first")
    if len(places) > MAX_PAIRS:
        st.caption(f"The {MAX_PAIRS:,} most similar of {len(places):,} pairs.")
    at = names.index(tables.keep_pick(picked, "pair", PAIR, names, names[0]) or names[0])
    one, two = pairs[at]
    first, second = passages[one], passages[two]
    diff, similarity = word_diff(first.text, second.text), float(found.similarity[shown[at]])
    show(fragment("corpus.difference", first, second, similarity, diff))
    with st.container(horizontal=True):
        for label, row in (("Open the first passage", one), ("Open the second passage", two)):
            to = {"corpus": corpus.name, "tab": "Passages", "passage": passages[row].id}
            st.page_link("corpus.py", label=label, query_params=to)


def _listed(corpus: Corpus, sets: list[tuple[int, ...]]) -> list[tuple[int, list[str], str]]:
    """Return the largest groups, each with its size, its first passages and the text of the first."""
    passages = _passages(corpus, [row for rows in sets[:GROUPS] for row in rows[:4]])
    return [
        (len(rows), [passages[row].id for row in rows[:4]], passages[rows[0]].text) for rows in sets[:GROUPS]
    ]


def _passages(corpus: Corpus, rows: list[int]) -> dict[int, Passage]:
    wanted = list(dict.fromkeys(rows))
    return dict(zip(wanted, corpus.passages(wanted), strict=True))
