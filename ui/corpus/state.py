"""A corpus' index: its facts, what building it cost, and what can be rebuilt or deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st
from markupsafe import Markup

from core.backends.languages import UNSPACED, Languages
from core.corpus import builds, catalogue, cautions, index, manifest, uploads
from core.corpus.build import CUT, READ
from core.corpus.manifest import CorpusInfo
from core.corpus.unread import Unread
from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds, size
from core.domain.postgres import Dsn
from ui.app import corpora, state
from ui.app.markup import EMPTY, join, md, show, tag
from ui.components import metadata
from ui.corpus import enrichments, own_questions, vectors
from ui.corpus import reading as corpus_reading

KINDS = {"hnsw": "HNSW", "ivfflat": "IVFFlat"}


def draw(name: str) -> None:
    """Draw the state, costs, enrichments and deletion."""
    item = catalogue.describe(name, state.engine().settings)
    corpora.notice(name)
    if item.info is None:
        if item.reason:
            st.caption(md(f"Why: {item.reason}"))
    else:
        st.markdown(md(describe_state(item)))
        own_questions.offer()
        for caution in cautions.of_corpus(item.info):
            st.warning(md(f"{caution.line()}."))
        show(tag("div", _facts(item, item.info), css="rs rs-corpus-two"))
        _rebuild(item)
        _read_otherwise(item)
        heading("Indexing time")
        show(tag("div", costs(item.info), css="rs"))
        corpus_reading.told(item.info)
        _try_again(item)
        if (found := catalogue.current(name, state.engine().settings)) is not None:
            corpus_reading.coverage(manifest.readings(found.folder))
        _metadata(name)
        vectors.offer(item, item.info)
        enrichments.listing(name, item.info.passages)
    _deletion(item)


def _try_again(item: catalogue.Known) -> None:
    """Read the files again that were left out, once their cause is gone."""
    if item.info is not None and item.info.skipped and st.button("Try again", key="try_again"):
        corpora.again(item.name)
        st.rerun()


def _metadata(name: str) -> None:
    """Draw the fields that filters can use."""
    with st.expander("Metadata", key="corpus_metadata", on_change="rerun") as panel:
        if panel.open:
            st.caption("Filters on Compare, `--filter` and the route Self-query search by these fields.")
            metadata.fields(name)


def describe_state(item: catalogue.Known) -> str:
    """Describe a corpus' state with its reason."""
    if item.info is None:
        return f"Corpus {item.name} is {item.state}."
    states = {
        "ready": "is indexed and up to date",
        "stale": "has an outdated index",
        "damaged": "has a damaged index",
        "not built": "is not indexed",
    }
    reason = f": {item.reason}" if item.reason else ""
    return (
        f"Corpus {item.name} {states[item.state]}{reason}. It holds {item.info.passages:,} passages of"
        f" {item.info.documents:,} documents."
    )


def _facts(item: catalogue.Known, info: CorpusInfo) -> Markup:
    exact = info.vector_index == "flat"
    facts = {
        "Source": item.source,
        "Kind": "uploaded files" if _uploaded(item) else item.kind,
        "Documents": f"{info.documents:,}",
        "Passages": f"{info.passages:,}",
        "Chunking": info.chunking.label(),
        "Words": _words(info.language),
        **({"Languages": described} if (described := _languages(info)) else {}),
        "Embedder": f"{info.embedder}, {info.dim} dimensions{_paid(info)}",
        **({"Read by the embedder": _read(info.unread)} if info.unread else {}),
        **{
            f"Vectors of {one.embedder}": f"{one.dim} dimensions, {size(one.bytes)}{_paid(one)}"
            for one in (catalogue.further(info, state.engine().settings) if not info.place else ())
        },
        "Vector index": "flat: exact search"
        if exact
        else f"{KINDS.get(info.vector_index, info.vector_index)}: approximate search,"
        f" recall@10 of {info.recall:.1%} against exact search",
        **(
            {"Kept in": f"{Dsn(info.place)}, searched by pgvector; full text by ts_rank_cd"}
            if info.place
            else {}
        ),
        "On disk": size(info.bytes),
        "Built": f"{info.built_at.replace('T', ' ')[:16]} UTC",
        "Fingerprint": info.fingerprint,
    }
    return rows(facts)


def _paid(info: CorpusInfo) -> str:
    """Describe what an embedding service charged for the vectors; "" if none was used."""
    if not info.tokens:
        return ""
    cost = "" if info.cost is None else f", cost {info.cost:.4f}"
    return f"; {info.tokens:,} tokens{cost}"


def _words(name: str) -> str:
    """Describe how BM25 splits words."""
    usual, _, others = name.partition("/")
    how = " and ".join(map(_cut, usual.split("+")))
    if others:
        how += f"; passages that are clearly in another language as {', '.join(map(_cut, others.split('+')))}"
    return f"{how}: how BM25 cuts words"


def _cut(language: str) -> str:
    how = "n-grams of characters" if language in UNSPACED else "stems and stop words"
    return f"{language.title()} ({how})"


def _languages(info: CorpusInfo) -> str:
    """Describe the languages found and their effect on search."""
    if not info.languages and not info.unclear:
        return ""
    found = Languages(info.languages, info.unclear)
    if info.language == found.name:
        return found.describe()
    counted = [f"{name.title()} {count:,}" for name, count in info.languages.items()]
    return (
        f"passages by language: {', '.join([*counted, f'not clear {info.unclear:,}'])}; how to cut is given"
    )


def _read(unread: Unread) -> str:
    """Describe how much of the text the embedder reads."""
    if not unread.passages:
        return f"all of the text: no passage is longer than {unread.limit:,} tokens"
    return (
        f"{1 - unread.share:.1%} of the text: {unread.passages:,} passages are longer than {unread.limit:,}"
        " tokens, and their rest is not read"
    )


def heading(text: str) -> None:
    """Draw the heading of a part of the page."""
    st.markdown(f"#### {md(text)}")


def rows(facts: Mapping[str, object]) -> Markup:
    """Return a table of names and values."""
    return tag(
        "table",
        tag(
            "tbody",
            *[tag("tr", tag("th", k, scope="row"), tag("td", v, dir="auto")) for k, v in facts.items()],
        ),
        css="rs-table rs-corpus-facts",
    )


def costs(info: CorpusInfo) -> Markup:
    """Return the measured time of each build stage, with its rate per second."""
    new = info.passages - info.reused
    pace = {
        READ: (info.documents, "documents"),
        CUT: (info.passages, "passages"),
        "index words": (info.passages, "passages"),
        "embed": (new, "passages"),
        "send to PostgreSQL": (info.passages, "passages"),
        "index words in PostgreSQL": (info.passages, "passages"),
        "index vectors": (info.passages, "passages"),
    }
    lines: list[list[object]] = []
    total = sum(info.build_ms.values())
    for stage, ms in info.build_ms.items():
        count, what = pace.get(stage, (0, ""))
        rate = f"{count / ms * 1000:,.0f} {what} per second" if count and ms >= 1 else ""
        note = ""
        if stage == "embed" and info.reused:
            note = f"{info.reused:,} of {info.passages:,} vectors were cached and took no time"
        lines.append([_stage(stage, note), milliseconds(ms), _share(ms, total), rate])
    if CUT not in info.build_ms and READ in info.build_ms:
        note = f"part of “{READ}” in the version that built this index"
        lines.insert(1, [_stage(CUT, note), "not recorded", "", ""])
    lines.append(["total", milliseconds(total), "", ""])
    return table(["Stage", "Took", "Share", "Rate"], lines, numbers=(1,))


def _stage(name: str, note: str) -> Markup:
    return tag("span", name) + (tag("div", note, css="dim") if note else EMPTY)


def _share(ms: float, total: float) -> Markup:
    share = ms / total if total else 0.0
    return tag("div", tag("i", style=f"width:{share:.1%}"), css="rs-meter", title=f"{share:.1%} of the time")


def table(head: Sequence[str], lines: Sequence[Sequence[object]], numbers: Sequence[int] = ()) -> Markup:
    """Return a table with the columns `numbers` aligned to the right."""

    def cells(kind: str, line: Sequence[object]) -> Markup:
        return tag("tr", *[tag(kind, cell, css="num" if n in numbers else "") for n, cell in enumerate(line)])

    body = join([cells("td", line) for line in lines])
    top = tag("thead", cells("th", head)) if any(head) else EMPTY
    return tag("table", top, tag("tbody", body), css="rs-table rs-corpus-table")


def _uploaded(item: catalogue.Known) -> bool:
    return item.chunking_of is None and uploads.is_uploaded(item.source, state.engine().settings)


def _rebuild(item: catalogue.Known) -> None:
    """Draw a button that reindexes the corpus, also one that is up to date."""
    if item.kind == "table":
        return
    if st.button(
        "Reindex",
        key="index_again",
        disabled=corpora.under_way(item.name),
        help="Reads the documents again and embeds only what has changed. The same content gives the"
        " same index.",
    ):
        corpora.again(item.name)
        if corpora.under_way(item.name):
            st.rerun()


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
        if st.button(
            "Reindex this way", key="read_again", disabled=not ready or corpora.under_way(item.name)
        ):
            try:
                corpora.begin(item.name, item.name, reading=reading)
            except RouteScopeError as error:
                st.error(md(str(error)))
            else:
                st.rerun()


def _deletion(item: catalogue.Known) -> None:
    settings = state.engine().settings
    if item.name not in catalogue.names(settings):
        return
    with st.expander("Delete this index"):
        also = (
            f"and its {len(uploads.kept(item.name, settings))} uploaded files"
            if _uploaded(item)
            else f"but not its source, {item.source}"
        )
        others = catalogue.indexed_variants(item.name, settings)
        with_them = f", its chunkings ({', '.join(others)})" if others else ""
        st.caption(
            md(f"Deletes the index{with_them} and its enrichments, {also}. Stored runs are not affected.")
        )
        sure = st.checkbox(md(f"Delete the index of {item.name}"), key=f"sure:{item.name}")
        busy = any(b.name == item.name or b.name.startswith(f"{item.name} ") for b in builds.under_way())
        if busy:
            st.caption("A build for this corpus is in progress; stop it in the sidebar first.")
        if st.button("Delete", key="delete_corpus", disabled=busy or not sure):
            index.remove(item.name, settings=settings)
            if _uploaded(item):
                uploads.delete(item.name, settings)
            st.rerun()
