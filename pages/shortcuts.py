"""Shortcuts: what the keyboard does, and which page answers which question."""

from __future__ import annotations

import streamlit as st

from ui.app import tour
from ui.app.markup import show, tag

KEYS = (
    ("Ctrl + Enter, ⌘ + Enter", "Compare", "run the question"),
    ("→ or Page down, ← or Page up", "Present", "next and previous question"),
    ("A, S, D, F", "Label", "grade 0 not relevant, 1 background, 2 answers a part, 3 answers; saved at once"),
    ("J, K", "Label", "can't tell; judge later"),
    ("U", "Label", "take back what was said last, and go there"),
    ("H, L, N", "Label", "back, forward, next unjudged"),
    ("Tab, Shift + Tab", "every page", "next and previous control; in the grid from passage to passage"),
    ("Enter or Space", "Compare", "open or close the passage in focus; it lights up in every route"),
    ("type in a list", "every page", "narrow a list of routes, passages or runs"),
    ("R", "every page", "draw the page again"),
)
QUESTIONS = (
    ("compare.py", "Compare", "Which routes find what, next to each other?"),
    ("why.py", "Why", "Where did a route lose the passage, and which route keeps it?"),
    ("transform.py", "Transform", "What was searched with in place of the question, and did it pay?"),
    ("fusion.py", "Fusion", "What does each list give, and would other weights be better?"),
    ("evaluators.py", "Evaluators", "What was graded, by which threshold, and what was decided?"),
    ("latency.py", "Latency", "Where do the seconds and tokens go?"),
    ("sessions.py", "Sessions", "What was asked before, and what changed between two runs?"),
    ("present.py", "Present", "How do I show this to a team?"),
    ("corpus.py", "Corpus", "What is searched, how is it cut, what is in it twice?"),
    ("settings.py", "Settings and health", "What works here, and what does not?"),
    ("glossary.py", "Glossary", "What does a term mean, and where does it come from?"),
)

rows = [
    tag("tr", tag("td", tag("kbd", keys)), tag("td", where), tag("td", does)) for keys, where, does in KEYS
]
head = tag("tr", *(tag("th", name) for name in ("Keys", "Where", "What")))
show(tag("div", tag("table", tag("thead", head), tag("tbody", *rows), css="rs-table"), css="rs rs-keys"))
st.subheader("Which page answers which question", anchor=False)
for page, name, asks in QUESTIONS:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.page_link(page, label=name, width=190)
        st.caption(asks)
tour.offer()
