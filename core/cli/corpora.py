"""`corpora` and `index`: listing corpora and building their indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.cli.common import ProgressBar, emit, note, output_options, stoppable, worker_options
from core.cli.text import table
from core.corpus.types import PDF
from core.domain.errors import BadInput
from core.domain.format import size

OPTIONAL = ("place", "of", "tokens", "cost")  # of what is known of an index, told where there is some

if TYPE_CHECKING:
    from core.backends.workers.place import WorkPlace
    from core.corpus.embedding_cost import Begin
    from core.corpus.helpers import Helpers
    from core.corpus.index import Corpus, CorpusInfo
    from core.corpus.source import Source
    from core.domain.settings import Settings


@click.command("corpora")
@output_options
def corpora_(as_json: bool) -> int:
    """List every corpus with its size and the state of its index."""
    from core.cli import enriching
    from core.corpus import catalogue
    from core.domain import settings

    listed = [
        {
            "name": one.name,
            "title": one.title,
            "kind": one.kind,
            "state": one.state,
            "reason": one.reason,
            "source": one.source,
            "askable": one.askable,
            "fingerprint": one.fingerprint,
            "chunking_of": one.chunking_of,
            "size": one.info.passages if one.info else None,
            "index": _info(one.info, settings.current()) if one.info else None,
            "enrichments": enriching.states(one, settings.current()),
        }
        for one in catalogue.known(settings.current())
    ]
    emit({"corpora": listed}, lambda: _text(listed), as_json=as_json)
    return 0


@click.command("index")
@click.argument("target", metavar="NAME_OR_PATH")
@click.option("--name", help="Name of the corpus. Default: the name of the folder.")
@click.option("--chunk-size", type=int, metavar="N", help="Characters per passage; 0 keeps documents whole.")
@click.option("--chunk-overlap", type=int, metavar="N", help="Characters shared by neighbouring passages.")
@click.option(
    "--language",
    help="Language that BM25 cuts words by: auto (found in the documents, as for new corpora), none, a "
    "Snowball stemmer such as german, chinese, japanese, korean or thai (n-grams), or several joined by +.",
)
@click.option(
    "--text-columns",
    metavar="A,B",
    help="Columns (or JSON fields) that are the text of rows in CSV, JSONL and workbooks. Default: found by "
    "their names and lengths. none: no rows are documents.",
)
@click.option(
    "--html",
    type=click.Choice(["main", "all"]),
    help="main: HTML pages without navigation, header and footer, as new corpora are read; all: with them.",
)
@click.option(
    "--reader",
    type=click.Choice([f"pdf={name}" for name in PDF]),
    help="Reader of PDF files. oxide (default): columns one after the other; kreuzberg: more headings.",
)
@click.option(
    "--ocr/--no-ocr",
    default=None,
    help="Read pages that hold only pictures by OCR: needs pip install -r requirements-ocr.txt.",
)
@click.option(
    "--with",
    "enrichments",
    metavar="A,B",
    help="Also build enrichments that some routes search (headings, children, ...); all: every one that asks "
    "no language model, tokens too (100 kB a passage), and learned_sparse if sparse_model is set.",
)
@click.option(
    "--chunkings",
    metavar="A,B",
    help="Also index the source chunked or read in other ways, each a corpus NAME@KEY: sizes in characters "
    "(256), with overlap (512/64), headings, sentences, whole; pdf=kreuzberg, html=all, ocr.",
)
@click.option(
    "--remove-chunkings", "removed", metavar="A,B", help="Delete the indexes of these chunkings, or of all."
)
@click.option(
    "--in",
    "place",
    metavar="DSN",
    help="Keep passages and vectors in a PostgreSQL database with pgvector, postgresql://USER@HOST/NAME; "
    "files: in the home folder again.",
)
@click.option(
    "--embedder",
    "embedders",
    multiple=True,
    metavar="NAME",
    help="Embedder of its vectors: a model, or a service of [embedders.NAME]; repeatable. The first is "
    "searched by default; vectors of others that it has are kept.",
)
@click.option(
    "--remove-embedder", "dropped", multiple=True, metavar="NAME", help="Delete the vectors of this embedder."
)
@click.option("--yes", is_flag=True, help="Embed by a service also if that passes a limit of the settings.")
@worker_options
@output_options
def index_(
    target: str,
    name: str | None,
    chunk_size: int | None,
    chunk_overlap: int | None,
    language: str | None,
    text_columns: str | None,
    html: str | None,
    reader: str | None,
    ocr: bool | None,
    enrichments: str | None,
    chunkings: str | None,
    removed: str | None,
    place: str | None,
    embedders: Sequence[str],
    dropped: Sequence[str],
    yes: bool,
    workers: WorkPlace | None,
    as_json: bool,
) -> int:
    """Build or refresh the index of a corpus: a known name, a BEIR folder, a folder of documents or one file.

    Only what has changed is processed again, and a stopped build continues where it was. How each file was
    read, and why files were left out, is printed on stderr and shown on the page Corpus. The corpus keeps
    --text-columns, --html, --reader and --ocr; --text-columns "" goes back to finding them.

    Embedding by a service stores each batch as it comes: a stopped build continues there. Its cost and time
    are estimated first, and refused above embed_limit_cost and embed_limit_minutes without --yes.

    A source may have several chunkings: see --chunkings, and eval --chunkings. They are refreshed with it.

    The corpus stays where --in put it. Its password is not stored: give it in ~/.pgpass, PGPASSWORD or the
    settings file.
    """
    from core.cli import enriching
    from core.corpus import catalogue, variants
    from core.corpus.chunk import Chunking
    from core.corpus.embedding_cost import gate
    from core.corpus.helpers import helpers
    from core.corpus.index import by_embedder
    from core.corpus.served import remember
    from core.corpus.types import Reading, columns
    from core.domain import settings

    now = settings.current()
    wanted = enriching.names(enrichments or "", now)
    source = catalogue.source(target, settings=now, name=name, language=language)
    if chunk_size is not None or chunk_overlap is not None:
        usual = source.chunking
        chunking = Chunking(
            usual.size if chunk_size is None else chunk_size,
            usual.overlap if chunk_overlap is None else chunk_overlap,
        )
        source = catalogue.source(source, settings=now, chunking=chunking)
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
    others = variants.wanted(source, chunkings) if chunkings is not None else []
    gone = _remove(source, removed, now) if removed is not None else []
    following = catalogue.indexed_variants(source.name, now)  # all of them follow a changed source
    kept = {*(one.name for one in others), *following}
    cuts = [str(variants.key_of(name)) for name in sorted(kept, key=variants.in_order)]
    with helpers(workers, now) as helping:
        begin = gate(now, confirmed=yes, told=lambda cost: note(str(cost)))
        corpus = build(source, now, helping, begin)
        built = build_each([variants.of_source(source, one) for one in cuts], now, helping, begin)
        made = []
        for one in (corpus, *built):
            for by in dict.fromkeys((one.info.embedder, *embedders)):
                view = one if by == one.info.embedder else by_embedder(one, by, settings=now)
                made += enriching.make(view, wanted, now, helping, begin)
    document = {
        **_info(corpus.info, now),
        "source": str(source.path) if source.path else "installed packages",
        "enrichments": [asdict(one) for one in made],
        "chunkings": [_info(variant.info, now) for variant in built],
        "removed": gone,
    }
    lines = [line for one in (corpus, *built) for line in _built(one.info, now)]
    lines += [*map(enriching.in_words, made)]
    lines += [f"{name}: deleted" for name in gone]
    emit(document, lambda: "\n".join(lines), as_json=as_json)
    return 0


def _remove(source: Source, given: str, settings: Settings) -> list[str]:
    """Delete chunkings of a source; the names of those that were there. BadInput where one is not."""
    from core.corpus import catalogue, index

    there = catalogue.indexed_variants(source.name, settings)
    names = [one.name for one in catalogue.chosen_variants(source, settings, given)]
    if not names:
        raise BadInput(f"{source.name} is cut as {source.chunking.key} itself, which is no other chunking")
    if missing := [name for name in names if name not in there]:
        raise BadInput(f"no index of {', '.join(missing)}; there are: {', '.join(there) or 'none'}")
    for name in names:
        index.remove(name, settings=settings)
    return names


def with_embedders(
    source: Source, given: Sequence[str], dropped: Sequence[str], settings: Settings
) -> Source:
    """Return the source with the embedders `given`, then those of its index, without those `dropped`.

    Raises BadInput if none remains, or if one to be dropped does not exist.
    """
    from core.corpus import catalogue

    info = catalogue.describe(source.name, settings).info if source.name in _indexed(settings) else None
    there = list(source.embedders or (catalogue.embedders_of(info, settings) if info else ()))
    if missing := [name for name in dropped if name not in (*there, *given)]:
        known = ", ".join(there) or "none"
        raise BadInput(f"{source.name} has no vectors of {missing[0]}; it has those of: {known}")
    wanted = [name.strip() for name in (*given, *there) if name.strip() and name not in dropped]
    if not wanted:
        raise BadInput(f"{source.name} would have no vectors left; give another --embedder with it")
    return replace(source, embedders=tuple(dict.fromkeys(wanted)))


def _indexed(settings: Settings) -> list[str]:
    from core.corpus import catalogue

    return catalogue.names(settings)


def build(
    source: Source, settings: Settings, helping: Helpers | None = None, begin: Begin | None = None
) -> Corpus:
    """Build a corpus; progress and skipped files go to stderr, Ctrl-C stops at a safe point."""
    return build_each([source], settings, helping, begin)[0]


def build_each(
    sources: Sequence[Source],
    settings: Settings,
    helping: Helpers | None = None,
    begin: Begin | None = None,
) -> list[Corpus]:
    """Build several corpora in sequence; those built before a stop stay."""
    from core.corpus import cautions, index, variants

    bar, built = ProgressBar(""), []
    with stoppable() as cancel:
        for corpus in index.build_each(
            sources, settings=settings, progress=bar, cancel=cancel, helpers=helping, begin=begin
        ):
            bar.close()
            built.append(corpus)
            remark = variants.remark(corpus.info) if variants.key_of(corpus.name) else None
            for said in (*corpus.info.notes, *([remark] if remark else ())):
                note(f"{corpus.name}: {said}")
            for caution in cautions.of_corpus(corpus.info):
                note(f"{corpus.name}: warning: {caution.line()}")
    return built


def ensure(source: Source, settings: Settings) -> None:
    """Build the corpus unless its index is there and current."""
    from core.corpus import catalogue

    if source.kind == "table" or catalogue.current(source.name, settings) is not None:
        known = catalogue.describe(source.name, settings)
        if known.state == "ready":
            return
        note(f"{source.name}: {known.reason}; indexing it again")
    build(source, settings)


def indexed(given: str, settings: Settings) -> str:
    """Return the name of the corpus that a name or path means. That of a path is built unless its index is
    current, and one whose documents come with the program if it was never built.

    An unknown name that is no path is returned unchanged: opening it reports the known ones.
    """
    from core.corpus import catalogue

    known = (*catalogue.BUILT_IN, *catalogue.names(settings), *settings.corpora)
    if given in catalogue.SHIPPED and catalogue.current(given, settings) is None:
        build(catalogue.source(given, settings=settings), settings)
    if given in known:
        return given
    if not Path(given).expanduser().exists():
        return given
    source = catalogue.source(given, settings=settings)
    ensure(source, settings)
    return source.name


def _info(info: CorpusInfo, settings: Settings) -> dict[str, Any]:
    """Return an index's record as JSON; each file that was left out has a path and a reason."""
    from core.corpus import catalogue, cautions

    told = {name: value for name, value in asdict(info).items() if value or name not in OPTIONAL}
    told["skipped"] = [{"path": name, "reason": one.reason} for one in info.skipped for name in one.names]
    warned = cautions.of_corpus(info)
    told["warnings"] = [*told.pop("notes"), *(caution.line() for caution in warned)]
    embedders = [
        {name: getattr(one, name) for name in ("embedder", "dim", "reused", "tokens", "cost")}
        for one in (info, *(catalogue.further(info, settings) if not info.place else ()))
    ]
    return {
        **told,
        "cautions": [asdict(caution) for caution in warned],
        "embedders": embedders,
        "chunking": {**asdict(info.chunking), "key": info.chunking.key, "label": info.chunking.label()},
    }


def _built(info: CorpusInfo, settings: Settings) -> list[str]:
    """Return a line for the index, and one for each further embedder."""
    from core.corpus import catalogue

    more = catalogue.further(info, settings) if not info.place else ()
    return [_line(info), *(f"{info.name}, vectors of {one.embedder}: {_vectors(one)}" for one in more)]


def _vectors(info: CorpusInfo) -> str:
    cost = "" if info.cost is None else f", cost {info.cost:.4f}"
    tokens = f", {info.tokens:,} tokens{cost}" if info.tokens else ""
    took = sum(info.build_ms.values()) / 1000
    return f"{info.dim} dimensions, {size(info.bytes)}, {took:.1f} s{tokens}"


def _line(info: CorpusInfo) -> str:
    took = sum(info.build_ms.values()) / 1000
    share = info.reused / info.passages if info.passages else 0.0
    return (
        f"{info.name}: {info.passages:,} passages of {info.documents:,} documents ({info.chunking.label()}), "
        f"{size(info.bytes)}, {took:.1f} s, {share:.0%} of vectors reused, fingerprint {info.fingerprint}"
    )


def _what(one: dict[str, Any]) -> str:
    """Describe a corpus, or the chunking of a chunked variant."""
    return (
        f"{one['chunking_of']}: {one['index']['chunking']['label']}" if one["chunking_of"] else one["title"]
    )


def _text(listed: list[dict[str, Any]]) -> str:
    rows = [
        (
            one["name"],
            one["state"],
            "-" if one["size"] is None else f"{one['size']:,}",
            one["fingerprint"] or "-",
            one["reason"] or _what(one),
        )
        for one in listed
    ]
    return table(
        ("corpus", "index", "passages", "fingerprint", "what it is, or what to do"), rows, right=(2,)
    )
