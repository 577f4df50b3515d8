"""`corpora` and `index`: listing corpora and building their indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from core.backends.workers.place import WorkPlace
from core.cli.commands import WORKERS, argument, command
from core.cli.common import attributes, emit, listed, note, table, working
from core.corpus import catalogue, cautions, index
from core.corpus.embeddings import Begin, gate
from core.corpus.enrichments import store
from core.corpus.enrichments.store import Made
from core.corpus.helpers import Helpers, helpers
from core.corpus.index import Corpus, CorpusInfo
from core.corpus.served import remember
from core.corpus.source import Source, key_of, uncut_remark, variant_of, variant_order, variants_named
from core.corpus.types import Reading, columns
from core.domain import settings
from core.domain.errors import BadInput
from core.domain.format import size
from core.domain.settings import Settings
from core.evaluation.spec import option
from core.evaluation.templating import say

OPTIONAL = ("place", "of", "tokens", "cost")  # of what is known of an index, told where there is some


@command("corpora")
def corpora_() -> None:
    """List every corpus with its size and the state of its index."""
    now = settings.current()
    known = [
        {
            **attributes(one, "name title kind state reason source askable fingerprint chunking_of"),
            "size": one.info.passages if one.info else None,
            "index": _info(one.info, now) if one.info else None,
            "enrichments": {  # "ready", or why it cannot be used
                name: store.missing(name, one.name, one.fingerprint, now) or "ready"
                for name in store.RECIPES
                if store.describe(name, one.name, now) is not None
            },
        }
        for one in catalogue.known(now)
    ]
    rows = []
    for one in known:
        cut = f"{one['chunking_of']}: {one['index']['chunking']['label']}" if one["chunking_of"] else None
        held = "-" if one["size"] is None else f"{one['size']:,}"
        about = one["reason"] or cut or one["title"]
        rows.append((one["name"], one["state"], held, one["fingerprint"] or "-", about))
    heads = ("corpus", "index", "passages", "fingerprint", "what it is, or what to do")
    emit({"corpora": known}, table(heads, rows))


@command("index")
def index_(
    target: str = argument("NAME_OR_PATH"),
    name: str | None = option(None, "Name of the corpus. Default: the name of the folder."),
    chunk_size: int | None = option(None, "Characters per passage; 0: whole documents.", "N", least=None),
    chunk_overlap: int | None = option(None, "Characters shared by neighbouring passages.", "N", least=None),
    language: str | None = option(
        None,
        "How BM25 cuts words: auto (default: as found), none, a Snowball stemmer such as german, chinese, "
        "japanese, korean or thai (n-grams), or several joined by +.",
    ),
    text_columns: str | None = option(
        None, "Columns or JSON fields that are the text of rows, or none. Default: found by name.", "A,B"
    ),
    html: Literal["main", "all"] | None = option(
        None, "main (default): HTML pages without navigation, header and footer; all: with them."
    ),
    reader: Literal["pdf=oxide", "pdf=kreuzberg"] | None = option(
        None, "Reader of PDF files. oxide (default): columns one after the other; kreuzberg: more headings."
    ),
    ocr: bool | None = option(
        None, "Read pages of pictures: needs pip install -r requirements-ocr.txt.", flags="--ocr/--no-ocr"
    ),
    enrichments: str | None = option(
        None,
        "Also build enrichments that some routes search (headings, children, ...); all: every one that asks "
        "no language model, tokens too (100 kB a passage), and learned_sparse if sparse_model is set.",
        "A,B",
        flags="--with",
    ),
    chunkings: str | None = option(
        None,
        "Also index the source chunked or read in other ways, each a corpus NAME@KEY: sizes in characters "
        "(256), with overlap (512/64), headings, sentences, whole; pdf=kreuzberg, html=all, ocr.",
        "A,B",
    ),
    removed: str | None = option(
        None, "Delete the indexes of these chunkings, or of all.", "A,B", flags="--remove-chunkings"
    ),
    place: str | None = option(
        None,
        "Keep passages and vectors in PostgreSQL with pgvector, postgresql://USER@HOST/NAME; files: at home.",
        "DSN",
        flags="--in",
    ),
    embedders: Sequence[str] = option(
        (),
        "Embedder of its vectors: a model, or a service of [embedders.NAME]; repeatable. The first is "
        "searched by default; vectors of others that it has are kept.",
        "NAME",
        flags="--embedder",
    ),
    dropped: Sequence[str] = option(
        (), "Delete the vectors of this embedder.", "NAME", flags="--remove-embedder"
    ),
    yes: bool = option(False, "Embed by a service also if that passes a limit of the settings."),
    workers: WorkPlace | None = WORKERS,
) -> None:
    """Build or refresh the index of a known corpus, a BEIR folder, a folder of documents or a file.

    Only what has changed is processed again, and a stopped build continues where it was. How each file was
    read, and why files were left out, is printed on stderr and shown on the page Corpus. The corpus keeps
    --text-columns, --html, --reader and --ocr; --text-columns "" goes back to finding them.

    Embedding by a service stores each batch as it comes: a stopped build continues there. Its cost and time
    are estimated first, and refused above embed_limit_cost and embed_limit_minutes without --yes.

    A source may have several chunkings: see --chunkings, and eval --chunkings. They are refreshed with it.

    The corpus stays where --in put it. Its password is not stored: give it in ~/.pgpass, PGPASSWORD or the
    settings file.
    """

    now = settings.current()
    wanted = enrichment_names(enrichments or "", now)
    source = catalogue.source(target, settings=now, name=name, language=language)
    sizes = {"size": chunk_size, "overlap": chunk_overlap}
    if sizes := {name: value for name, value in sizes.items() if value is not None}:
        source = catalogue.source(source, settings=now, chunking=replace(source.chunking, by="size", **sizes))
    was = source.reading
    reading = Reading(
        was.text_columns if text_columns is None else columns(text_columns),
        html or was.html,
        reader.removeprefix("pdf=") if reader else was.pdf,
        was.ocr if ocr is None else ocr,
    )
    if reading != was:
        source = catalogue.source(source, settings=now, reading=reading)
    if place is not None:
        source = replace(source, place="" if place == "files" else remember(place))
    if embedders or dropped:
        source = with_embedders(source, embedders, dropped, now)
    others = variants_named(source, chunkings) if chunkings is not None else []
    there = catalogue.indexed_variants(source.name, now)
    dropping = () if removed is None else catalogue.chosen_variants(source, now, removed)
    gone = [one.name for one in dropping]
    if removed is not None and not gone:
        raise BadInput(f"{source.name} is cut as {source.chunking.key} itself, which is no other chunking")
    if missing := [name for name in gone if name not in there]:
        raise BadInput(f"no index of {', '.join(missing)}; there are: {', '.join(there) or 'none'}")
    for name in gone:
        index.remove(name, settings=now)
    # all that are left follow a changed source
    kept = {*(one.name for one in others), *catalogue.indexed_variants(source.name, now)}
    cuts = [str(key_of(name)) for name in sorted(kept, key=variant_order)]
    with helpers(workers, now) as helping:
        begin = gate(now, confirmed=yes, told=lambda cost: note(str(cost)))
        sources = [source, *(variant_of(source, one) for one in cuts)]
        every = build(sources, now, helpers=helping, begin=begin)
        made = []
        for one in every:
            for by in dict.fromkeys((one.info.embedder, *embedders)):
                view = one if by == one.info.embedder else index.by_embedder(one, by, settings=now)
                made += _enrich(view, wanted, now, helping, begin)
    document = {
        **_info(every[0].info, now),
        "source": str(source.path) if source.path else "installed packages",
        "enrichments": [asdict(one) for one in made],
        "chunkings": [_info(variant.info, now) for variant in every[1:]],
        "removed": gone,
    }
    infos = [one.info for one in every]
    lines = [say("commands.index", one, size, _seconds, _further(one, now)) for one in infos]
    lines += [say("commands.enriched", one, size, _seconds) for one in made]
    lines += [f"{name}: deleted" for name in gone]
    emit(document, "\n".join(lines))


def with_embedders(
    source: Source, given: Sequence[str], dropped: Sequence[str], settings: Settings
) -> Source:
    """Return the source with the embedders `given`, then those of its index, without those `dropped`.

    Raises BadInput if none remains, or if one to be dropped does not exist.
    """
    known = source.name in catalogue.names(settings)
    info = catalogue.describe(source.name, settings).info if known else None
    there = list(source.embedders or (catalogue.embedders_of(info, settings) if info else ()))
    if missing := [name for name in dropped if name not in (*there, *given)]:
        raise BadInput(f"{source.name} has no vectors of {missing[0]}; it has: {', '.join(there) or 'none'}")
    wanted = [name.strip() for name in (*given, *there) if name.strip() and name not in dropped]
    if not wanted:
        raise BadInput(f"{source.name} would have no vectors left; give another --embedder with it")
    return replace(source, embedders=tuple(dict.fromkeys(wanted)))


def build(sources: Sequence[Source], settings: Settings, **how: Any) -> list[Corpus]:
    """Build corpora in sequence; progress and skipped files go to stderr. Ctrl-C stops at a safe point, and
    those built before stay.
    """
    built = []
    with working() as (bar, cancel):
        for corpus in index.build_each(sources, settings=settings, progress=bar, cancel=cancel, **how):
            built.append(corpus)
            remark = uncut_remark(corpus.info) if key_of(corpus.name) else None
            for said in (*corpus.info.notes, *([remark] if remark else ())):
                note(f"{corpus.name}: {said}")
            for caution in cautions.of_corpus(corpus.info):
                note(f"{corpus.name}: warning: {caution.line()}")
    return built


def ensure(source: Source, settings: Settings) -> None:
    """Build the corpus unless its index is there and current."""
    if source.kind == "table" or catalogue.current(source.name, settings) is not None:
        known = catalogue.describe(source.name, settings)
        if known.state == "ready":
            return
        note(f"{source.name}: {known.reason}; indexing it again")
    build([source], settings)


def ensured(target: str, settings: Settings) -> Source:
    """Return the known corpus called `target`, built unless its index is there and current."""
    source = catalogue.source(target, settings=settings, known_only=True)
    ensure(source, settings)
    return source


def indexed(given: str, settings: Settings) -> str:
    """Return the name of the corpus that a name or path means. That of a path is built unless its index is
    current, and one whose documents come with the program if it was never built.

    An unknown name that is no path is returned unchanged: opening it reports the known ones.
    """
    known = (*catalogue.BUILT_IN, *catalogue.names(settings), *settings.corpora)
    if given in catalogue.SHIPPED and catalogue.current(given, settings) is None:
        build([catalogue.source(given, settings=settings)], settings)
    if given in known:
        return given
    if not Path(given).expanduser().exists():
        return given
    source = catalogue.source(given, settings=settings)
    ensure(source, settings)
    return source.name


def _info(info: CorpusInfo, settings: Settings) -> dict[str, Any]:
    """Return an index's record as JSON; each file that was left out has a path and a reason."""
    told = {name: value for name, value in asdict(info).items() if value or name not in OPTIONAL}
    told["skipped"] = [{"path": name, "reason": one.reason} for one in info.skipped for name in one.names]
    warned = cautions.of_corpus(info)
    told["warnings"] = [*told.pop("notes"), *(caution.line() for caution in warned)]
    embedders = (info, *_further(info, settings))
    return {
        **told,
        "cautions": [asdict(caution) for caution in warned],
        "embedders": [attributes(one, "embedder dim reused tokens cost") for one in embedders],
        "chunking": {**asdict(info.chunking), "key": info.chunking.key, "label": info.chunking.label()},
    }


def _further(info: CorpusInfo, settings: Settings) -> Sequence[CorpusInfo]:
    """Return the records of a corpus' further embedders; one in PostgreSQL has none."""
    return () if info.place else catalogue.further(info, settings)


def _seconds(made: CorpusInfo | Made) -> str:
    return f"{sum(made.build_ms.values()) / 1000:.1f} s"


def enrichment_names(given: str, settings: Settings) -> list[str]:
    """Return the enrichments of "a,b"; for "all" those that ask no language model and whose own model is set,
    but for those `apart`.

    Raises BadInput for others.
    """

    wanted = listed(given)
    if wanted == ("all",):
        free = [name for name, recipe in store.RECIPES.items() if not (recipe.uses_llm or recipe.apart)]
        return [name for name in free if store.no_model(name, settings) is None]
    return [store.recipe(name).name for name in dict.fromkeys(wanted)]


def _enrich(
    corpus: Corpus, wanted: Sequence[str], settings: Settings, helping: Helpers | None, begin: Begin
) -> list[Made]:
    """Make enrichments, with progress on stderr; Ctrl-C stops at a safe point."""
    made = []
    for name in wanted:
        label = f"{corpus.name}, {name}"
        note(f"{label}: takes about {size(store.about_bytes(name, corpus, settings))} on disk")
        with working() as (bar, stop):

            def progress(stage: str, done: int, total: int, label: str = label, bar: Any = bar) -> None:
                bar(f"{label}: {stage}", done, total)

            found = store.build(
                name, corpus, settings=settings, cancel=stop, progress=progress, helpers=helping, begin=begin
            )
        for remark in found.notes:
            note(f"{label}: {remark}")
        made.append(found)
    return made
