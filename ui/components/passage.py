"""One passage in full: its rank in each route, its matching words, and their part in its scores."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
from markupsafe import Markup

from core.analysis.passage_trace import PassageTrace
from core.analysis.run_view import worked
from core.analysis.term_contributions import Marker, TokenMatch, expansions, searched_texts, token_matches
from core.backends.terms import Analyzer, analyzer
from core.corpus import catalogue
from core.corpus.catalogue import current_fingerprint
from core.domain.errors import RouteScopeError
from core.domain.rank_changes import ranks as ranks_of
from core.domain.types import Passage, Run
from ui.app import opened, opening, state
from ui.app.markup import cut, join, md, show, tag
from ui.app.names import named
from ui.app.picked import PASSAGE
from ui.app.plot import plot
from ui.charts import describe_match, match_heatmap
from ui.components import term_contributions
from ui.components.grid import View, numbered
from ui.components.hits import buttons, mark, marked


def marker(run: Run) -> Marker:
    """Return a marker for the words that the run's routes searched with, split by the corpus' analyzer."""
    found = current_fingerprint(run.corpus, settings=state.engine().settings)
    others = searched_texts(run) - {run.query.text}
    return Marker(run.query.text, others, _analyzer(run.corpus, found))


def draw(run: Run, view: View, *, ranks: bool = True) -> None:
    """Draw the panel of the selected passage, with its rank in each route if `ranks`; nothing without one."""
    if view.lit is None:
        return
    id, passage = view.lit, _passage(run, view.lit)
    with st.container(border=True, key="passage_panel"):
        st.markdown(f"**{md(cut(named(run.corpus, passage), 160) if passage else id)}**")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            show(tag("div", _grade(run, view, id), css="rs rs-passage-grade"))
            opened.to("why.py", "Why it has this rank", passage=id)
            if st.session_state.get(PASSAGE):
                st.button("Close", key="close_passage", type="tertiary", on_click=_close)
        if ranks:
            show(tag("div", _places(run, view, id), css="rs"))
        if passage is None:
            st.caption("Neither the run nor the current corpus contains its text.")
            return
        _text(run, passage)
        if st.session_state.get(PASSAGE):  # chosen by a person: its words are looked up in the corpus
            term_contributions.draw(run, passage)
        _expansions(run, id)
        _tokens(run, id)


def _grade(run: Run, view: View, id: str) -> Markup:
    """Return the passage's grade, with buttons that change it if the run has the passage."""
    grade = view.gold.get(id)
    return buttons(numbered(run)[id], grade) if view.gradable and id in run.passages else mark(grade)


def _close() -> None:
    st.session_state[PASSAGE] = None


def _passage(run: Run, id: str) -> Passage | None:
    """Return the passage from the run, else from the corpus: a labelled passage may be in no result."""
    if id in run.passages:
        return run.passages[id]
    opening.wait_for(run.corpus)
    try:
        return state.engine().corpus(run.corpus).by_ids([id]).get(id)
    except RouteScopeError:
        return None  # the caller says that there is no text


def _places(run: Run, view: View, id: str) -> Markup:
    """Return the passage's rank in every route, best first; a hint tells why a route lacks it."""
    found = [(ranks_of(result.hits).get(id), result) for result in worked(run)]
    found.sort(key=lambda one: (one[0] is None, one[0] or 0))
    chips = []
    for rank, result in found:
        name = cut(result.title, 40)
        if rank is None:
            chips.append(
                tag(
                    "span", f"{name} –", css="chip out", title=PassageTrace(result).fate(id, view.depth).words
                )
            )
        else:
            shown = tag("b", rank) if rank <= view.depth else rank
            chips.append(tag("span", f"{name} ", shown, css="chip"))
    have = sum(rank is not None and rank <= view.depth for rank, _ in found)
    summary = f"{have} of {len(found)} routes have it in their top {view.depth}. A dash means not ranked."
    return join([tag("div", summary, css="dim"), tag("div", *chips, css="rs-passage-ranks")])


def _text(run: Run, passage: Passage) -> None:
    one = marker(run)
    legend = [join([tag("mark", "marked"), ": term in the question"])]
    if "written" in one.kinds.values():
        legend.append(join([tag("mark", "underlined", css="other"), ": term only in a rewrite"]))
    if _known(run) is None:
        legend.append(tag("span", "whole words only, because the corpus is not indexed here"))
    characters = f"characters {passage.start}–{passage.end}"
    body = tag("div", marked(passage.text, one), css="rs-passage-text", dir="auto")
    show(
        tag(
            "div",
            tag("div", join(legend, " · "), css="dim"),
            body,
            tag("div", passage.doc_id, css="dim", title=characters),
            css="rs",
        )
    )


def _expansions(run: Run, id: str) -> None:
    """Draw what each term or pattern adds, if a step of the run recorded it for this passage."""
    blocks: list[Markup] = []
    for result in run.results:
        for span, one in expansions(result):
            parts = one.matched.get(id)
            if parts:
                chips = [
                    tag("span", tag("bdi", cut(term, 60)), f" {share:.2f}", css="chip")
                    for term, share in parts
                ]
                head = tag("b", f"{cut(one.model, 60) or span.name}: {sum(share for _, share in parts):.2f}")
                block = tag("div", head, " ", join(chips, " "))
                if block not in blocks:
                    blocks.append(block)
    if blocks:
        head = tag("div", "Contribution of each term", css="dim")
        show(tag("div", head, *blocks, css="rs"))


def _tokens(run: Run, id: str) -> None:
    """Draw the token heatmaps that the run's steps recorded for this passage, equal ones once."""
    found: list[TokenMatch] = []
    for result in run.results:
        for tokens in token_matches(result):
            found += [one for one in tokens.hits if one.passage.id == id and one not in found]
    if not found:
        return
    with st.expander("Token similarities", key="passage_tokens", on_change="rerun") as panel:
        if not panel.open:
            return
        for number, match in enumerate(found):
            summary = describe_match(match)
            st.caption(md(summary))
            if match.drawable:
                plot(match_heatmap(match), f"passage_tokens-{number}", summary)


def _known(run: Run) -> str | None:
    return current_fingerprint(run.corpus, settings=state.engine().settings)


@st.cache_resource(max_entries=16, show_spinner=False)
def _analyzer(corpus: str, fingerprint: str | None) -> Analyzer:
    """Return the corpus' analyzer; for a corpus without an index, whole words without English stop words."""
    if fingerprint is not None:
        try:
            info = catalogue.describe(corpus, state.engine().settings).info
        except RouteScopeError:
            info = None
        if info is not None:
            return analyzer(info.language)
    return replace(analyzer("english"), language="none")
