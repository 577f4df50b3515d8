"""Near-duplicate passages of a corpus: how many, which, and what differs."""

from __future__ import annotations

import math
import threading

import streamlit as st
from markupsafe import Markup

from core.corpus import builds, near_duplicates
from core.corpus.build import Progress
from core.corpus.corpus import Corpus
from core.corpus.near_duplicates import By, Near
from core.domain.errors import Cancelled
from core.domain.once import Recent
from core.domain.types import Passage
from ui.app import address, state
from ui.app.choice import choice, switch
from ui.app.markup import EMPTY, cut, join, md, show, tag
from ui.components import tables
from ui.components.rewrites import word_diff
from ui.corpus.state import table

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
        by: By = choice(
            "near", BY, "Compared by", list(WAYS), usual="words", segmented=True, format_func=WAYS.__getitem__
        )
        found = compared(corpus, by)
        if found is None:
            return
        threshold = _threshold(found)
        across = switch("across", ACROSS, "Only between documents")
    st.markdown(md(found.in_words(threshold)))
    if usual(found) < near_duplicates.USUAL[by]:
        st.caption(
            f"No pair reaches {near_duplicates.USUAL[by]:.2f}, so the threshold starts at the most similar "
            f"pair."
        )
    if found.sampled:
        st.caption(
            md(
                f"Each passage was compared with {near_duplicates.NEIGHBOURS} neighbours in the HNSW graph."
                f" The graph finds {corpus.info.recall:.1%} of the exact 10 nearest, so a few pairs may be "
                f"missing."
            )
        )
    if found.complete > near_duplicates.LEAST[by]:
        st.warning(
            md(
                f"There are over {near_duplicates.MOST:,} pairs. The list is complete from a similarity of "
                f"{found.complete:.4f}."
            )
        )
    _pairs(corpus, found, threshold, across=across)
    show(tag("div", _groups(corpus, found, threshold), _copies(corpus, found), css="rs rs-corpus-two"))


def compared(corpus: Corpus, by: By) -> Near | None:
    """Return the near duplicates, or None until the background work for a large corpus ends."""
    key = corpus.name, corpus.fingerprint, by
    if key in _found:
        return _found[key]
    if corpus.size <= FOREGROUND_PASSAGES:
        with st.spinner("Comparing the passages"):
            return _keep(key, near_duplicates.find(corpus, by))
    graph = corpus.info.vector_index == "hnsw"
    if why := near_duplicates.refused(by, corpus.size, graph):
        st.info(md(f"{why}."))
        return None
    called = f"{corpus.name} near-duplicates by {by}"
    build = builds.get(called)
    if build is not None and not build.done:
        st.info(f"Comparing {corpus.size:,} passages. Progress and Stop are in the sidebar.")
        return None
    if build is not None and build.error:
        st.error(md(build.error))
    if build is not None and build.cancelled:
        st.caption("The comparison was stopped.")
    others = (
        "every other passage"
        if corpus.size <= near_duplicates.LARGE
        else f"its {near_duplicates.NEIGHBOURS} nearest"
    )
    st.caption(f"Compares {corpus.size:,} passages in the background, each with {others}.")
    if st.button("Compare passages", key="near_start", type="primary"):

        def work(progress: Progress, cancel: threading.Event) -> None:
            def tick(done: int, total: int) -> None:
                if cancel.is_set():
                    raise Cancelled("the comparison was stopped")
                progress("compare passages", done, total)

            _keep(key, near_duplicates.find(corpus, by, tick, graph=graph))

        builds.start_work(called, work)
        st.rerun()
    return None


def _keep(key: tuple[str, str, By], found: Near) -> Near:
    """Remember and return what was found for the corpus' current state."""
    _found[key] = found
    return found


def usual(found: Near) -> float:
    """Return the initial threshold: the default, or a lower one if that would show nothing."""
    begin, best = near_duplicates.USUAL[found.by], float(found.similarity[0]) if len(found.pairs) else 1.0
    return begin if best >= begin else math.floor(best * 100) / 100


def _threshold(found: Near) -> float:
    by, key, least = found.by, f"near_least:{found.fingerprint}:{found.by}", near_duplicates.LEAST[found.by]

    def read(given: str) -> float:
        return min(1.0, max(least, round(float(given), 2)))

    address.take("alike", key, read)
    if st.session_state.get(key) is None:
        st.session_state[key] = usual(found)
    label = "Minimum similarity (Jaccard)" if by == "words" else "Minimum similarity (cosine)"
    value = st.slider(label, least, 1.0, step=0.01, key=key, width=260, persist_state="session")
    address.keep("alike", f"{value:.2f}" if value != usual(found) else None)
    return float(value)


def _pairs(corpus: Corpus, found: Near, threshold: float, *, across: bool) -> None:
    import pandas as pd

    places = found.above(threshold, across=across)
    if not len(places):
        return
    shown = places[:MAX_PAIRS]
    pairs = found.pairs[shown].tolist()
    passages = _passages(corpus, [row for pair in pairs for row in pair])
    frame = pd.DataFrame(
        {
            "Similarity": found.similarity[shown],
            "First": [passages[one].id for one, _ in pairs],
            "Second": [passages[two].id for _, two in pairs],
            "Documents": ["same" if passages[a].doc_id == passages[b].doc_id else "two" for a, b in pairs],
            "Text": [cut(passages[one].text, 200) for one, _ in pairs],
        }
    )
    event = tables.show(
        frame,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"pairs:{corpus.fingerprint}:{found.by}:{threshold}:{across}",
        height=min(38 + 35 * len(frame), 320),
        column_config={
            "Similarity": st.column_config.NumberColumn(width=70, format="%.3f"),
            "First": st.column_config.TextColumn(width=280),
            "Second": st.column_config.TextColumn(width=280),
            "Documents": st.column_config.TextColumn(width=85),
            "Text": st.column_config.TextColumn(width=380),
        },
        alt="Pairs of passages, most similar first",
    )
    if len(places) > MAX_PAIRS:
        st.caption(
            f"The {MAX_PAIRS:,} most similar of {len(places):,} pairs. Raise the threshold to see fewer."
        )
    names = [f"{passages[one].id}|{passages[two].id}" for one, two in pairs]
    address.take("pair", PAIR, str)
    rows = [row for row in event["selection"]["rows"] if row < len(names)]
    if rows:
        st.session_state[PAIR] = names[rows[0]]
    at = names.index(st.session_state[PAIR]) if st.session_state.get(PAIR) in names else 0
    address.keep("pair", names[at] if at else None)
    one, two = pairs[at]
    show(tag("div", difference(passages[one], passages[two], float(found.similarity[shown[at]])), css="rs"))
    with st.container(horizontal=True):
        for label, row in (("Open the first passage", one), ("Open the second passage", two)):
            st.page_link(
                "corpus.py",
                label=label,
                query_params={"corpus": corpus.name, "tab": "Passages", "passage": passages[row].id},
            )


def difference(one: Passage, two: Passage, similarity: float) -> Markup:
    """Return two passages as a diff: only in the first struck out, only in the second marked."""
    same = one.doc_id == two.doc_id
    head = tag(
        "div",
        tag("span", f"similarity {similarity:.3f}", css="chip accent"),
        " ",
        tag("del", "struck out"),
        f" is only in {one.id}, ",
        tag("ins", "marked"),
        f" only in {two.id} ",
        tag("span", "(same document)" if same else "(two documents)", css="dim"),
        dir="auto",
    )
    return tag(
        "div", head, tag("div", word_diff(one.text, two.text), css="rs-quote", dir="auto"), css="rs-block"
    )


def _groups(corpus: Corpus, found: Near, threshold: float) -> Markup:
    groups = found.groups(threshold)
    if not groups:
        return EMPTY
    inside = sum(map(len, groups))
    head = (
        f"{inside:,} of {corpus.size:,} passages are in "
        f"{near_duplicates.count(len(groups), 'group', 'groups')} of near-duplicates"
        " and copies"
    )
    return tag("div", tag("h4", head), _listed(corpus, groups), css="rs-block")


def _copies(corpus: Corpus, found: Near) -> Markup:
    if not found.copies:
        return EMPTY
    repeats = near_duplicates.count(found.repeats, "passage repeats", "passages repeat")
    head = f"{repeats} another word for word"
    ordered = sorted(found.copies, key=lambda rows: (-len(rows), rows))
    return tag("div", tag("h4", head), _listed(corpus, ordered), css="rs-block")


def _listed(corpus: Corpus, sets: list[tuple[int, ...]]) -> Markup:
    """Return the largest groups, each with its first passages."""
    shown = sets[:GROUPS]
    passages = _passages(corpus, [row for rows in shown for row in rows[:4]])
    lines = [
        [
            len(rows),
            join(
                [
                    *[tag("div", passages[row].id, dir="auto") for row in rows[:4]],
                    tag("div", f"and {len(rows) - 4:,} more", css="dim") if len(rows) > 4 else EMPTY,
                ]
            ),
            cut(passages[rows[0]].text, 160),
        ]
        for rows in shown
    ]
    more = (
        tag("div", f"Shows the {GROUPS} largest of {len(sets):,}.", css="dim")
        if len(sets) > GROUPS
        else EMPTY
    )
    return table(["Passages", "Ids", "Text of the first"], lines, numbers=()) + more


def _passages(corpus: Corpus, rows: list[int]) -> dict[int, Passage]:
    wanted = list(dict.fromkeys(rows))
    return dict(zip(wanted, corpus.passages(wanted), strict=True))
