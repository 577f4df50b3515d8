"""Hubs: passages that a search returns for many questions, and passages that it never returns."""

from __future__ import annotations

import threading
from typing import Any

import streamlit as st

from core.corpus import catalogue
from core.corpus.build import Progress
from core.evaluation import hubs
from core.evaluation.access import own_questions
from ui.app import corpora, say, state
from ui.app.choice import choice
from ui.components import tables


def draw(name: str) -> None:
    """Draw the button, and of one search the finding, its hubs, and what they displace."""
    settings = state.engine().settings

    def work(progress: Progress, cancel: threading.Event) -> dict[str, Any]:
        corpus = state.engine().corpus(name)
        labelled = own_questions(corpus, catalogue.source(name, settings=settings).path)
        return hubs.find(state.engine(), corpus, labelled, progress=progress, cancel=cancel)

    st.caption(f"Asks a sentence of each passage (up to {hubs.MOST:,}) and the labelled questions. No model.")
    build = corpora.background(f"{name} hubs", "Hubs are searched", "Find hubs", "hubs_start", work)
    if build is None:
        return
    by = choice("by", "hubs_by", "Search", list(hubs.SEARCHES), usual=hubs.SEARCHES[0], segmented=True)
    found = build.result["searches"][by]
    say.text(
        f"{found['hub_count']} hubs are returned for more than {found['limit']:.1f} sentences "
        f"(mean {found['mean']:.1f}). {found['never_count']} passages are never returned."
    )
    if effect := found["effect"]:
        low, high = effect["ci95"]
        say.text(
            f"Without hubs nDCG@10 changes by {effect['difference']:+.3f} (95% interval {low:+.3f} to "
            f"{high:+.3f}, {build.result['questions']} questions)."
        )
    hub_rows = [
        {"Returned for": one["returned"], "Displaces": one["displaces"], **_named(one)}
        for one in found["hubs"]
    ]
    displaced = [
        {"Question": one["question"], "Passage": one["passage"], "Rank": one["rank"]}
        | {"Without hubs": one["without"], "Hubs above": ", ".join(one["by"])}
        for one in found["displaced"]
    ]
    for key, title, rows in (
        ("hubs", "Hubs, most returned first", hub_rows),
        ("hubs_displaced", "Relevant passages that hubs keep out of the first ten", displaced),
        ("hubs_never", "Passages never returned", list(map(_named, found["never"]))),
    ):
        if rows:
            say.caption(title)
            tables.table(rows, key, title)


def _named(one: dict[str, Any]) -> dict[str, str]:
    return {"Passage": one["passage"], "Title": one["title"]}
