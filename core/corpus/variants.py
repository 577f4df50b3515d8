"""One source indexed in several ways: corpora called SOURCE@CHUNKING, such as support@256.

Each is a corpus of its own, opened like any other. It follows its source: path, language and reading are
those of the corpus that it is named after.
"""

from __future__ import annotations

from dataclasses import replace

from core.corpus import index_record
from core.corpus.chunk import ALLOWED, Chunking, chunking_of, is_key
from core.corpus.load import readable_files
from core.corpus.manifest import CorpusInfo
from core.corpus.source import Source
from core.corpus.table_files import ENDINGS as DATABASES
from core.domain.errors import BadInput
from core.domain.program import COMMAND
from core.domain.settings import Settings

AT = "@"
ALL = "all"


def base_of(name: str) -> str:
    """The corpus that a chunking is of; the name itself for one that is none."""
    base, at, key = name.rpartition(AT)
    return base if at and is_key(key) else name


def key_of(name: str) -> str | None:
    """How a corpus is cut, by its name; None for one that is no chunking of another."""
    return name.rpartition(AT)[2] if base_of(name) != name else None


def named(base: str, chunking: Chunking) -> str:
    """The name of a chunking of the corpus `base`."""
    return f"{base}{AT}{chunking.key}"


def of_source(source: Source, chunking: Chunking) -> Source:
    """The same source cut in another way, under a name of its own."""
    return replace(source, name=named(source.name, chunking), chunking=chunking)


def made(base: str, settings: Settings) -> list[str]:
    """The chunkings of a corpus that are indexed: sizes first, the smallest first."""
    return sorted(
        (name for name in index_record.names(settings) if base_of(name) == base != name), key=in_order
    )


def in_order(name: str) -> tuple[str, bool, list[int], str]:
    """What to sort names of corpora by, so that chunkings stand behind their source."""
    key = key_of(name) or ""
    numbers = [int(part) for part in key.split("-") if part.isdigit()]
    return base_of(name), bool(key) and not numbers, numbers, key


def wanted(source: Source, given: str) -> list[Source]:
    """The sources of "256,512/64,headings", each once; the one that `source` itself is cut by is left out.

    Raises BadInput for an unknown chunking, listing what is allowed, and for a source that is not cut.
    """
    keys = [key for key in given.split(",") if key.strip()]
    if not keys:
        raise BadInput(f"no chunking given; give {ALLOWED}, separated by commas")
    check(source)
    chunkings = dict.fromkeys(map(chunking_of, keys))
    return [of_source(source, one) for one in chunkings if one != source.chunking]


def check(source: Source) -> None:
    """BadInput for a source that has no chunkings."""
    if base_of(source.name) != source.name:
        raise BadInput(
            f"{source.name} is itself a chunking of {base_of(source.name)}; name that corpus instead"
        )
    if source.path is not None and readable_files(source.path)[0].suffix.lower() in DATABASES:
        raise BadInput(
            f"{source.path} is a database: its rows are not cut, so it has no chunkings; give documents"
        )


def existing(source: Source, settings: Settings, given: str = ALL) -> list[Source]:
    """The chunkings of `source` that `given` names, for "all" those that are indexed; BadInput for none."""
    if given.strip().lower() != ALL:
        return wanted(source, given)
    check(source)
    found = made(source.name, settings)
    if not found:
        raise BadInput(
            f"{source.name} has no other chunking to compare; make some: "
            f"{COMMAND} index {source.name} --chunkings 256,512,headings"
        )
    return [of_source(source, chunking_of(str(key_of(name)))) for name in found]


def remark(info: CorpusInfo) -> str | None:
    """What is to be said of a chunking that cuts nothing; None for others."""
    if info.chunking.size and info.passages == info.documents:
        return "no document is long enough to be cut: each is one passage, as if kept whole"
    return None
