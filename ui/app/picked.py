"""The passage that is looked at: one for all pages, and in the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import streamlit as st

from core.analysis.rank_overlap import contenders
from core.domain.types import Passage, Run
from ui.app import address, names
from ui.app.markup import cut

PASSAGE = "passage"
OFFERED = 300  # passages in the list; any other of the run is reached by its id in the address


def offered(run: Run, gold: Mapping[str, int]) -> list[str]:
    """Return passages by id: labelled ones by grade, then those that routes rank, best first."""
    labelled = sorted((id for id in gold if gold[id] > 0), key=lambda id: (-gold[id], id))
    return list(dict.fromkeys((*labelled, *contenders(run, depth=50, limit=OFFERED))))


def pick(
    run: Run,
    gold: Mapping[str, int],
    *,
    label: str = "Passage",
    width: int = 520,
    none: str = "Type to search titles",
    also: Mapping[str, Passage] | None = None,
    label_visibility: Literal["visible", "collapsed"] = "visible",
) -> str | None:
    """Draw the choice of a passage and return its id; None, shown as `none`, if none is chosen.

    `also` are further passages to choose from that the run does not contain.
    """
    ids = offered(run, gold)
    beyond = also or {}
    known = {*ids, *run.passages, *gold, *beyond}
    address.take("passage", PASSAGE, lambda id: {id: id for id in known}[id])
    now = st.session_state.get(PASSAGE)
    if now is not None and now not in ids:
        if now in known:
            ids.insert(0, now)
        else:  # of another run
            st.session_state[PASSAGE] = None
    chosen: str | None = st.selectbox(
        label,
        ids,
        index=None,
        key=PASSAGE,
        format_func=lambda id: named(run, id, gold, beyond),
        placeholder=none,
        label_visibility=label_visibility,
        width=width,
        persist_state="session",
    )
    address.keep("passage", chosen)
    return chosen


def named(run: Run, id: str, gold: Mapping[str, int], beyond: Mapping[str, Passage] | None = None) -> str:
    """Return a passage's name for a list, with its grade if it is labelled."""
    passage = run.passages.get(id) or (beyond or {}).get(id)
    title = cut(names.named(run.corpus, passage), 100) if passage else id
    return f"{f'◆{gold[id]} ' if gold.get(id) else ''}{title}"
