"""Ties labels, those of other tools too, to the passages of a corpus, so that they outlive a change of the
chunking; and says why some were lost before the index.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from core.corpus.corpus import Corpus
from core.corpus.types import Document, Span
from core.domain.errors import BadInput, shortened
from core.domain.external import ForeignHit
from core.domain.relevance import unmatched_id
from core.domain.text import composed
from core.domain.types import Passage
from core.evaluation.counting import HALF, Place, by_document, on_passage
from core.evaluation.counting import place as place_of
from core.evaluation.dataset import Evidence, LabelledSet, Written
from core.evaluation.question_folder import Qrels, merge
from core.steps.refine import cut

LossKind = Literal["not read", "damaged in reading", "split"]
DAMAGED = 0.5  # the share of a quote's words that stand together; with fewer the text was not read
_ID = "#unread-"
_WORD = re.compile(r"\w+")
_SPACE = re.compile(r"\s+")
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


def lost_id(entry: Evidence) -> str:
    """Return the id that stands for a label whose words are not in the corpus; no passage has it."""
    return f"{entry.doc}{_ID}{hashlib.sha256((entry.quote or '').encode()).hexdigest()[:8]}"


def is_lost(id: str) -> bool:
    """Return whether an id stands for a label whose words are not in the corpus."""
    return _ID in id


def find(quote: str, text: str) -> Span | None:
    """Return where a quote stands in a text, composed characters and white space not compared."""
    words = composed(quote).split()
    start = text.find(words[0]) if words else -1
    while start >= 0:  # most quotes stand there as they are, and a pattern takes longer to compile
        at = start + len(words[0])
        for word in words[1:]:
            space = _SPACE.match(text, at)
            if space is None or not text.startswith(word, space.end()):
                break
            at = space.end() + len(word)
        else:
            return start, at
        start = text.find(words[0], start + 1)
    found = re.search(_BETWEEN.join(map(re.escape, words)), text)
    return found.span() if found else None


def losses(found: Written, corpus: Corpus, question: str | None = None) -> Iterator[ReadingLoss]:
    """Yield the labels of all questions, or of one, that were lost before the index."""
    for id, entries in found.evidence.items():
        for entry in entries if question in (None, id) else ():
            if (loss := _loss(entry, corpus)) is not None:
                yield loss


def _loss(entry: Evidence, corpus: Corpus) -> ReadingLoss | None:
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


def _unread(doc: str, quote: str, corpus: Corpus) -> str:
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


def survives(quotes: Sequence[str], text: str) -> bool:
    """Return whether a text still contains one of the quotes: the whole quote or, of several sentences, its
    longest, as `cut` splits it. White space is ignored, case is not. An empty quote did not survive.
    """
    longest = {max(map(_plain, cut(quote)), key=len, default="") for quote in quotes}
    return any(part and part in _plain(text) for part in {*map(_plain, quotes), *longest})


def _plain(text: str) -> str:
    return " ".join(text.split())


PLACED_FROM = 2  # the grade from which a passage of a quote is relevant


def place(written: Written, corpus: Corpus, *, relevant_from: int = PLACED_FROM) -> LabelledSet:
    """`written` with its quotes turned into passages of the corpus; of two grades for one the higher holds.

    Grades are 0-3: 3 answers, 2 answers a part or is a needed hop, 1 is background. Background is worth
    something to nDCG, but is not what a yes-or-no measure should call found: those count from grade 2.
    A label whose document or quote is not in the corpus as indexed stays, as one that nothing finds. Raises
    BadInput with file and line if the corpus has none of the documents.
    """
    opened: dict[str, tuple[Document, list[Passage]] | None] = {}
    unknown = ""
    qrels: Qrels = {}
    places: dict[str, tuple[Place, ...]] = {}
    for question, entries in written.evidence.items():
        for entry in entries:
            if entry.doc not in opened:
                try:
                    opened[entry.doc] = corpus.document(entry.doc)
                except BadInput as error:
                    opened[entry.doc], unknown = None, f"{entry.where}: {error}"
            span, found = None, opened[entry.doc]
            if found is not None:
                text = found[0].text
                span = (0, len(text)) if entry.quote is None else find(entry.quote, text)
            if found is None or span is None:  # one that nothing finds
                id = lost_id(entry)
                label = Place(id, entry.grade, entry.doc, 0, 0, (id,), text=entry.quote or "")
            else:
                text, whole = entry.quote or "", entry.quote is None
                label = place_of(found[0].id, span, entry.grade, found[1], text=text, whole=whole)
            merge(qrels, {question: dict.fromkeys(label.passages, entry.grade)})
            places[question] = (*places.get(question, ()), label)
    if opened and not any(opened.values()):
        raise BadInput(unknown)
    return LabelledSet(written.name, written.questions, qrels, relevant_from, places=places)


def holding(entry: Evidence, text: str, passages: Sequence[Passage]) -> list[str]:
    """Ids of the passages of a document that hold at least half of the quote, else of the one with most.

    Without a quote: every passage of the document. White space is not compared.
    """
    if entry.quote is None:
        return [passage.id for passage in passages]
    start, end = located(entry, text)
    held = {p.id: max(0, min(end, p.end) - max(start, p.start)) / max(1, end - start) for p in passages}
    return [id for id, share in held.items() if share >= HALF] or [max(held, key=lambda id: (held[id], id))]


def located(entry: Evidence, text: str) -> Span:
    """Return the place of the quote in its document's `text`, or all of the text without a quote. White space
    is ignored. Raises BadInput if the quote does not occur.
    """
    if entry.quote is None:
        return 0, len(text)
    found = find(entry.quote, text)
    if found is None:
        raise BadInput(f"{entry.where}: {entry.doc!r} as indexed lacks the quote {entry.quote[:60]!r}")
    return found


def with_judgements(labelled: LabelledSet, corpus: Corpus) -> tuple[LabelledSet, set[str]]:
    """`labelled` with document ids as labels on documents, and the judged ids that the corpus lacks.

    Lacking ids stay: published figures count them as not found. BadInput if the corpus lacks all.
    """
    if labelled.places:
        return labelled, set()
    judged = sorted({name for labels in labelled.qrels.values() for name in labels})
    known = corpus.by_ids(judged)
    documents: dict[str, tuple[Document, list[Passage]]] = {}
    unknown = set()
    for name in judged:
        if name not in known:
            try:
                documents[name] = corpus.document(name)
            except BadInput:
                unknown.add(name)
    if judged and len(unknown) == len(judged):
        none = f"none of the {len(judged)} judged ids, such as {judged[0]!r}, is a passage or document"
        raise BadInput(f"{labelled.name}: {none} of corpus {corpus.name}")
    qrels: Qrels = {}
    places: dict[str, tuple[Place, ...]] = {}
    for question, labels in labelled.qrels.items():
        found = []
        for name, grade in labels.items():
            if name in documents:
                document, passages = documents[name]
                label = place_of(document.id, (0, len(document.text)), grade, passages, whole=True)
            elif name in known:
                label = on_passage(known[name], grade)
            else:
                label = Place(name, grade, name, 0, 0, (name,))
            found.append(label)
            merge(qrels, {question: dict.fromkeys(label.passages, grade)})
        if by_document(found):
            places[question] = tuple(found)
    return replace(labelled, qrels=qrels, places=places), unknown


def resolved(written: Written, corpus: Corpus) -> tuple[Written, dict[str, dict[str, int]], tuple[str, ...]]:
    """Match the labels of `written` that came from another tool to documents and passages of the corpus.

    Return the set with places in documents as labels; the labels that match nothing, as question -> made-up
    id -> grade, which no route can find; and how it was read.
    """
    opened: dict[str, Document | None] = {}
    lost: dict[str, dict[str, int]] = {}
    by_text: set[str] = set()
    evidence: dict[str, tuple[Evidence, ...]] = {}
    labels = missing = 0
    for question, entries in written.evidence.items():
        found: list[Evidence] = []
        for entry in entries:
            own = list(_places(entry, corpus, opened)) if entry.matched else [entry]
            found += own
            labels += entry.matched
            if entry.matched and any(one.quote for one in own):
                by_text.add(question)
            if not own:
                missing += 1
                id = unmatched_id(entry.doc, entry.quote or "")
                lost.setdefault(question, {})[id] = entry.grade
        evidence[question] = tuple(dict.fromkeys(found))
    reading = (*_about(written, by_text), *written.remarks)
    if missing:
        lost_said = f"{missing:,} of {labels:,} labels match nothing in {corpus.name}: not found by any route"
        reading = (*reading, lost_said)
    return replace(written, evidence=evidence), lost, reading


def _about(written: Written, by_text: set[str]) -> Iterator[str]:
    """Describe what was read."""
    if not written.format:
        return
    some = [entries for entries in written.evidence.values() if entries]
    quoted = sum(any(one.quote for one in entries) for entries in some)
    parts = [f"Read as {written.format}: {len(written.questions):,} questions"]
    if quoted:
        parts += [f"{quoted:,} with reference contexts", f"{len(by_text):,} matched to passages by text"]
    if named := len(some) - quoted:
        parts.append(f"{named:,} with relevant documents")
    if not some:
        parts.append("none with labels")
    yield ", ".join(parts)


def _places(entry: Evidence, corpus: Corpus, opened: dict[str, Document | None]) -> Iterator[Evidence]:
    """Yield the places that a label means: a document by its id or path, a passage by its id, or a text."""
    if not entry.quote:
        document = _named(entry.doc, corpus, opened)
        if document is not None:
            yield Evidence(document.id, entry.grade, where=entry.where)
            return
        passage = corpus.by_ids([entry.doc]).get(entry.doc)
        if passage is not None:
            yield Evidence(passage.doc_id, entry.grade, passage.text, entry.where)
            return
    source = _named(entry.doc, corpus, opened) if entry.doc and entry.quote else None
    text = entry.quote or entry.doc
    if source is not None and (span := find(text, source.text)) is not None:
        yield Evidence(source.id, entry.grade, source.text[slice(*span)], entry.where)
        return
    hit = ForeignHit(source.id if source else entry.doc or "unnamed", text)
    matched = [placed.passage for placed in corpus.matcher.match([hit]).placed if placed.rule is not None]
    if not matched:
        if entry.quote and (named := _named(entry.quote, corpus, opened)) is not None:
            yield Evidence(named.id, entry.grade, where=entry.where)  # a file's name where a text should be
        return
    document = _named(matched[0].doc_id, corpus, opened)
    assert document is not None
    span = find(text, document.text) or (min(p.start for p in matched), max(p.end for p in matched))
    yield Evidence(document.id, entry.grade, document.text[slice(*span)], entry.where)


def _named(id: str, corpus: Corpus, opened: dict[str, Document | None]) -> Document | None:
    """Return the document of this id; of a path, the document that its last parts name."""
    if id not in opened:
        opened[id] = None
        parts = re.split(r"[/\\]", id) if len(id) < 1_000 and "\n" not in id else []
        for at in range(len(parts)):
            name = "/".join(parts[at:])
            if corpus.has_document(name):
                opened[id] = corpus.document(name)[0]
                break
    return opened[id]
