"""A corpus' index: its facts, what building it cost, and what can be rebuilt or deleted."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.backends.languages import UNSPACED, Languages
from core.corpus import builds, catalogue, cautions, index, manifest, uploads
from core.corpus.build import CUT, READ
from core.corpus.manifest import CorpusInfo
from core.corpus.types import Unread
from core.domain.format import milliseconds, size
from core.domain.postgres import Dsn
from ui.app import corpora, say, state
from ui.app.markup import fragment, md, show, tag
from ui.app.plot import plot
from ui.app.routes import on_page
from ui.charts.sweep import weight_curve
from ui.components import metadata
from ui.corpus import enrichments, own_questions
from ui.corpus import reading as corpus_reading

PACED = (CUT, "index words", "send to PostgreSQL", "index words in PostgreSQL", "index vectors")
KINDS = {"hnsw": "HNSW", "ivfflat": "IVFFlat"}


def draw(name: str) -> None:
    """Draw the state, costs, enrichments and deletion."""
    item = catalogue.describe(name, state.engine().settings)
    corpora.notice(name)
    if item.info is not None:
        st.markdown(md(describe_state(item, item.info)))
        own_questions.offer()
        for caution in cautions.of_corpus(item.info):
            say.warning(f"{caution.text}.")
        show(tag("div", fragment("corpus.facts", _facts(item, item.info)), css="rs rs-corpus-two"))
        if item.kind != "table":
            note, busy = "Reads the documents again, embeds what has changed", corpora.under_way(item.name)
            if st.button("Reindex", key="index_again", help=note, disabled=busy):
                corpora.again(item.name)
                if corpora.under_way(item.name):
                    st.rerun()
        _read_otherwise(item)
        if (weight := item.info.dense_weight) is not None:
            heading("Weight of dense in hybrids")
            st.caption(md(f"Weight of dense: {weight.line()}."))
            if weight.found:
                told = "Known items found by weight, best near the dashed line."
                plot(weight_curve(weight), "corpus_dense_weight", told)
        heading("Indexing time")
        show(costs(item.info))
        corpus_reading.told(item.info)
        if (found := catalogue.current(name, state.engine().settings)) is not None:
            corpus_reading.coverage(manifest.readings(found.folder))
        with st.expander("Metadata", key="corpus_metadata", on_change="rerun") as panel:
            if panel.open:
                st.caption("Filters on Compare and the route Self-query search by these fields.")
                metadata.fields(name)
        enrichments.vectors(item, item.info)
        enrichments.listing(name, item.info.passages)
    _deletion(item)


def describe_state(item: catalogue.Known, info: CorpusInfo) -> str:
    """Describe a corpus' state with its reason."""
    how = {"ready": "is indexed and up to date", "not built": "is not indexed"}
    state_ = how.get(item.state) or f"has {'an outdated' if item.state == 'stale' else 'a damaged'} index"
    reason = f": {on_page(item.reason)}" if item.reason else ""
    count = f"{info.passages:,} passages of {info.documents:,} documents"
    return f"Corpus {item.name} {state_}{reason}. It holds {count}."


def _facts(item: catalogue.Known, info: CorpusInfo) -> dict[str, str]:
    """Return what is known of an index, by name."""
    kind = KINDS.get(info.vector_index, info.vector_index)
    how = f"{kind}: approximate search, recall@10 of {info.recall:.1%} against exact search"
    facts = {
        "Source": item.source,
        "Kind": "uploaded files" if uploaded(item) else item.kind,
        "Documents": f"{info.documents:,}",
        "Passages": f"{info.passages:,}",
        "Chunking": info.chunking.label(),
        "Words": _words(info.language),
        "Languages": _languages(info),
        "Embedder": f"{info.embedder}, {info.dim} dimensions{_paid(info)}",
        "Read by the embedder": _read(info.unread) if info.unread else "",
    }
    for one in catalogue.further(info, state.engine().settings) if not info.place else ():
        facts[f"Vectors of {one.embedder}"] = f"{one.dim} dimensions, {size(one.bytes)}{_paid(one)}"
    facts |= {
        "Vector index": "flat: exact search" if info.vector_index == "flat" else how,
        "Kept in": f"{Dsn(info.place)}, searched by pgvector; full text by ts_rank_cd" if info.place else "",
        "On disk": size(info.bytes),
        "Built": f"{info.built_at.replace('T', ' ')[:16]} UTC",
        "Fingerprint": info.fingerprint,
    }
    return {name: value for name, value in facts.items() if value}


def _paid(info: CorpusInfo) -> str:
    """Describe what an embedding service charged for the vectors; "" if none was used."""
    cost = "" if info.cost is None else f", cost {info.cost:.4f}"
    return f"; {info.tokens:,} tokens{cost}" if info.tokens else ""


def _words(name: str) -> str:
    """Describe how BM25 splits words."""

    def cut(language: str) -> str:
        how = "n-grams of characters" if language in UNSPACED else "stems and stop words"
        return f"{language.title()} ({how})"

    usual, _, others = name.partition("/")
    how = " and ".join(map(cut, usual.split("+")))
    if others:
        how += f"; passages that are clearly in another language as {', '.join(map(cut, others.split('+')))}"
    return f"{how}: how BM25 cuts words"


def _languages(info: CorpusInfo) -> str:
    """Describe the languages found and their effect on search."""
    if not info.languages and not info.unclear:
        return ""
    found = Languages(info.languages, info.unclear)
    if info.language == found.name:
        return found.describe()
    counted = [f"{name.title()} {count:,}" for name, count in info.languages.items()]
    return f"by passages: {', '.join([*counted, f'not clear {info.unclear:,}'])}; how to cut is given"


def _read(unread: Unread) -> str:
    """Describe how much of the text the embedder reads."""
    if not unread.passages:
        return f"all of the text: no passage is longer than {unread.limit:,} tokens"
    read = f"{1 - unread.share:.1%}" if unread.share >= 0.0005 else "almost all"
    return (
        f"{read} of the text; passages longer than {unread.limit:,} tokens, read in part: {unread.passages:,}"
    )


def heading(text: str) -> None:
    """Draw the heading of a part of the page."""
    st.markdown(f"#### {md(text)}")


def costs(info: CorpusInfo) -> Markup:
    """Return the measured time of each build stage, with its rate per second."""
    pace = {READ: (info.documents, "documents"), "embed": (info.passages - info.reused, "passages")}
    stages: list[tuple[str, str, str, float | None, str]] = []
    total = sum(info.build_ms.values())
    for stage, ms in info.build_ms.items():
        count, what = pace.get(stage, (info.passages if stage in PACED else 0, "passages"))
        rate = f"{count / ms * 1000:,.0f} {what} per second" if count and ms >= 1 else ""
        reused = stage == "embed" and info.reused
        note = f"{info.reused:,} of {info.passages:,} vectors were cached and took no time" if reused else ""
        stages.append((stage, note, milliseconds(ms), ms / total if total else 0.0, rate))
    stages.append(("total", "", milliseconds(total), None, ""))
    return fragment("corpus.times", stages)


def uploaded(item: catalogue.Known) -> bool:
    """Return whether a corpus is made of uploaded files."""
    return item.chunking_of is None and uploads.is_uploaded(item.source, state.engine().settings)


def _read_otherwise(item: catalogue.Known) -> None:
    """Draw how to change the way files become documents."""
    found = catalogue.current(item.name, state.engine().settings)
    if found is None or found.source.path is None or item.kind != "indexed":
        return
    if not st.toggle("Change how its files are read", key="read_show"):  # looking may take seconds
        return
    with st.container(border=True):
        reading = corpus_reading.folder(found.source.path, found.source.reading, f"state:{item.name}")
        ready = reading is not None and reading != found.source.reading
        off = not ready or corpora.under_way(item.name)
        if st.button("Reindex this way", key="read_again", disabled=off):
            with say.errors():
                corpora.begin(item.name, item.name, reading=reading)
                st.rerun()


def _deletion(item: catalogue.Known) -> None:
    settings = state.engine().settings
    if item.name not in catalogue.names(settings):
        return
    with st.expander("Delete this index"):
        also = f"but not its source, {item.source}"
        if uploaded(item):
            also = f"and its {len(uploads.kept(item.name, settings))} uploaded files"
        others = catalogue.indexed_variants(item.name, settings)
        with_them = f", its chunkings ({', '.join(others)})" if others else ""
        say.caption(f"Deletes the index{with_them} and its enrichments, {also}. Stored runs stay.")
        sure = st.checkbox(md(f"Delete the index of {item.name}"), key=f"sure:{item.name}")
        busy = any(b.name == item.name or b.name.startswith(f"{item.name} ") for b in builds.under_way())
        if busy:
            st.caption("A build for this corpus is in progress; stop it in the sidebar first.")
        if st.button("Delete", key="delete_corpus", disabled=busy or not sure):
            index.remove(item.name, settings=settings)
            if uploaded(item):
                uploads.delete(item.name, settings)
            st.rerun()
