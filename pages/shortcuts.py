"""Shortcuts: what the keyboard does, and which page answers which question."""

from __future__ import annotations

import streamlit as st

from ui.app import tour
from ui.app.markup import show, tag

KEYS = (
    ("Ctrl + Enter, ⌘ + Enter", "Compare", "run the question"),
    ("→ or Page down, ← or Page up", "Present", "next and previous question"),
    ("A, S, D, F", "Label", "save grade 0 not relevant, 1 background, 2 partial answer, 3 full answer"),
    ("J, K", "Label", "mark “can't tell”; judge later"),
    ("U", "Label", "undo the last judgement and go back to it"),
    ("H, L, N", "Label", "back, forward, next unjudged"),
    ("Tab, Shift + Tab", "every page", "next and previous control; in the grid from passage to passage"),
    ("Enter or Space", "Compare", "open or close the focused passage and highlight it in every route"),
    ("type in a list", "every page", "filter a list of routes, passages or runs"),
    ("R", "every page", "rerun the page"),
)
QUESTIONS = (
    ("compare.py", "Compare", "What does each route find?"),
    ("why.py", "Why", "Which step lost a passage, and which routes still have it?"),
    ("transform.py", "Transform", "How was the question rewritten, and did it help?"),
    ("fusion.py", "Fusion", "What does each list contribute, and would other weights be better?"),
    ("evaluators.py", "Evaluators", "How were passages graded, and what did the thresholds decide?"),
    ("latency.py", "Latency", "Where do the time and tokens go?"),
    ("sessions.py", "Sessions", "Which runs are stored, and what changed between two of them?"),
    ("present.py", "Present", "How do I present runs to my team?"),
    ("corpus.py", "Corpus", "Which documents are searched, how are they chunked, and which are duplicates?"),
    ("settings.py", "Settings and health", "Which models and services work here?"),
    ("glossary.py", "Glossary", "What does a term mean, and what is its source?"),
)

rows = [
    tag("tr", tag("td", tag("kbd", keys)), tag("td", where), tag("td", does)) for keys, where, does in KEYS
]
head = tag("tr", *(tag("th", name) for name in ("Keys", "Where", "What")))
show(tag("div", tag("table", tag("thead", head), tag("tbody", *rows), css="rs-table"), css="rs rs-keys"))
st.subheader("Which page to use", anchor=False)
for page, name, asks in QUESTIONS:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.page_link(page, label=name, width=190)
        st.caption(asks)
tour.offer()
