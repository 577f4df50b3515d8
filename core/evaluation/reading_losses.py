"""Labels lost before the index (their words were not read, damaged in reading, or split by the chunking), and
quotes that remain after passages were compressed.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from core.corpus.manifest import CorpusInfo
from core.corpus.types import Document, FileRecord, Span
from core.domain.errors import BadInput, shortened
from core.domain.text import composed
from core.domain.types import Passage
from core.evaluation.dataset import Evidence, Written
from core.steps.refine import cut

LossKind = Literal["not read", "damaged in reading", "split"]
DAMAGED = 0.5  # the share of a quote's words that stand together; with fewer the text was not read
_ID = "#unread-"
_WORD = re.compile(r"\w+")
_BETWEEN = r"[\s|*_`#>]+"  # white space and the marks of Markdown


@dataclass(frozen=True, slots=True)
class ReadingLoss:
    """A label whose words no passage can have as a whole."""

    ids: tuple[str, ...]  # in judgements: of the passages that have a part, or one that no ranking has
    kind: LossKind
    doc: str
    quote: str
    why: str  # a sentence
    nearest: str = ""  # the text of the document that is most like the quote


class ReadCorpus(Protocol):
    """The corpus methods this module uses."""

    info: CorpusInfo

    def document(self, id: str, /) -> tuple[Document, list[Passage]]: ...

    @property
    def readings(self) -> Sequence[FileRecord]: ...


def lost_id(entry: Evidence) -> str:
    """Return the id that stands for a label whose words are not in the corpus; no passage has it."""
    return f"{entry.doc}{_ID}{hashlib.sha256((entry.quote or '').encode()).hexdigest()[:8]}"


def is_lost(id: str) -> bool:
    """Return whether an id stands for a label whose words are not in the corpus."""
    return _ID in id


def find(quote: str, text: str) -> Span | None:
    """Return where a quote stands in a text, composed characters and white space not compared."""
    words = [re.escape(word) for word in composed(quote).split()]
    found = re.search(r"\s+".join(words), text) or re.search(_BETWEEN.join(words), text)
    return found.span() if found else None


def losses(found: Written, corpus: ReadCorpus, question: str | None = None) -> Iterator[ReadingLoss]:
    """Yield the labels of all questions, or of one, that were lost before the index."""
    for id, entries in found.evidence.items():
        for entry in entries if question in (None, id) else ():
            if (loss := _loss(entry, corpus)) is not None:
                yield loss


def _loss(entry: Evidence, corpus: ReadCorpus) -> ReadingLoss | None:
    doc, quote, ids = entry.doc, entry.quote or "", (lost_id(entry),)
    try:
        document, passages = corpus.document(doc)
    except BadInput:
        why = _unread(doc, quote, corpus) or f"{doc} is not in the corpus."
        return ReadingLoss(ids, "not read", doc, quote, why)
    if not quote:
        return None
    if (span := find(quote, document.text)) is not None:
        start, end = span
        parts = [one for one in passages if one.start < end and one.end > start]
        if any(one.start <= start and end <= one.end for one in parts):
            return None
        why = f"The chunking split it: {len(parts)} passages have a part of it, none all of it."
        return ReadingLoss(tuple(one.id for one in parts), "split", doc, quote, why)
    share, nearest = _nearest(quote, document.text)
    if share >= DAMAGED:
        why = f"{doc} has {share:.0%} of its words together, incomplete or in another order."
        return ReadingLoss(ids, "damaged in reading", doc, quote, why, nearest)
    why = _unread(doc, quote, corpus) or f"{doc} as read does not hold it."
    return ReadingLoss(ids, "not read", doc, quote, why, nearest)


def _unread(doc: str, quote: str, corpus: ReadCorpus) -> str:
    """Explain from the record of reading why words are missing; "" if it does not show why."""
    for skipped in corpus.info.skipped:
        if doc in skipped.names:
            return f"{doc} was not read: {skipped.reason}."
    record = next((one for one in corpus.readings if doc == one.file or doc.startswith(f"{one.file}/")), None)
    if record is None:
        return ""
    if record.skipped:
        return f"{doc} was not read: {record.skipped}."
    wanted = " ".join(quote.split())
    for why, text in record.dropped.items():
        if wanted and wanted in " ".join(composed(text).split()):
            return f"It is in what was left out of {record.file}: {why}."
    if record.unread_pages:
        pages = ", ".join(map(str, record.unread_pages[:20]))
        of = f"{pages} of {record.pages}"
        return f"{record.file} has pages of pictures without text that were not read: {of}."
    return ""


def _nearest(quote: str, text: str) -> tuple[float, str]:
    """Return the share of a quote's words in the stretch of text that has most of them, and that stretch."""
    wanted = Counter(word.lower() for word in _WORD.findall(quote))
    size = sum(wanted.values())
    places = [(match.start(), match.end(), match[0].lower()) for match in _WORD.finditer(text)]
    here: Counter[str] = Counter()
    most = at = shared = 0
    for number, (_, _, word) in enumerate(places):
        here[word] += 1
        shared += here[word] <= wanted[word]
        if number >= size:
            gone = places[number - size][2]
            shared -= here[gone] <= wanted[gone]
            here[gone] -= 1
        if shared > most:
            most, at = shared, max(0, number - size + 1)
    if not size or not most:
        return 0.0, ""
    begin, end = places[at][0], places[min(len(places) - 1, at + size - 1)][1]
    return most / size, shortened(" ".join(text[begin:end].split()), 400)


def notes(found: Sequence[ReadingLoss]) -> list[str]:
    """Return one line on the labels lost before the index; none without any."""
    found = [one for one in found if one.kind != "split"]  # the passages that have half of it count
    if not found:
        return []
    counts = Counter(one.kind for one in found)
    first = found[0]
    named = f" “{shortened(first.quote, 60)}”" if first.quote else ""
    lost = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    return [f"{len(found)} labels were lost before the index: {lost}. {first.doc}{named}: {first.why}"]


def fates(found: Sequence[ReadingLoss]) -> Mapping[str, tuple[LossKind, str]]:
    """Return the kind and the explanation of each lost label by its ids."""
    return {
        id: (one.kind, f"{one.why} Nearest text: “{one.nearest}”" if one.nearest else one.why)
        for one in found
        for id in one.ids
    }


def survived(quotes: Sequence[str], kept: Iterable[str]) -> tuple[bool, ...]:
    """Return for each quote whether one of the `kept` texts still contains it.

    A text contains a quote if it has the whole quote or, of a quote of several sentences, its longest, as
    `cut` splits it. White space is ignored, case is not. An empty quote did not survive.
    """
    texts = [_plain(text) for text in kept]
    return tuple(
        any(part in text for part in {_plain(quote), best_sentence(quote)} - {""} for text in texts)
        for quote in quotes
    )


def best_sentence(quote: str) -> str:
    """Return the longest strip of a quote, the first of equally long ones; "" of an empty one."""
    return max(map(_plain, cut(quote)), key=len, default="")


def _plain(text: str) -> str:
    return " ".join(text.split())
