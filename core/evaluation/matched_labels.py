"""Labels of other tools tied to a corpus: their texts and ids as places in its documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from core.corpus.passage_matching import Matcher
from core.corpus.types import Document
from core.domain.external import ForeignHit
from core.domain.relevance import unmatched_id
from core.domain.types import Passage
from core.evaluation.dataset import Evidence, Written


class MatchedCorpus(Protocol):
    """The corpus methods this module uses."""

    @property
    def name(self) -> str: ...

    @property
    def matcher(self) -> Matcher: ...

    def by_ids(self, ids: Sequence[str], /) -> dict[str, Passage]: ...

    def document(self, id: str, /) -> tuple[Document, list[Passage]]: ...

    def has_document(self, id: str, /) -> bool: ...


@dataclass(slots=True)
class Resolved:
    """A set whose labels are places in documents, and the labels that match nothing, by question."""

    written: Written
    lost: dict[str, dict[str, int]] = field(default_factory=dict)  # question -> made-up id -> grade
    reading: tuple[str, ...] = ()


def resolved(written: Written, corpus: MatchedCorpus) -> Resolved:
    """Match the labels of `written` that came from another tool to documents and passages of the corpus.

    A label that matches nothing stays: as one that no route can find.
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
    return Resolved(replace(written, evidence=evidence), lost, reading)


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


def _places(entry: Evidence, corpus: MatchedCorpus, opened: dict[str, Document | None]) -> Iterator[Evidence]:
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
    if source is not None and (stands := _standing(text, source.text)):
        yield Evidence(source.id, entry.grade, stands, entry.where)
        return
    hit = ForeignHit(source.id if source else entry.doc or "unnamed", text)
    matched = [placed.passage for placed in corpus.matcher.match([hit]).placed if placed.rule is not None]
    if not matched:
        if entry.quote and (named := _named(entry.quote, corpus, opened)) is not None:
            yield Evidence(named.id, entry.grade, where=entry.where)  # a file's name where a text should be
        return
    document = _named(matched[0].doc_id, corpus, opened)
    assert document is not None
    span = document.text[min(one.start for one in matched) : max(one.end for one in matched)]
    yield Evidence(document.id, entry.grade, _standing(text, document.text) or span, entry.where)


def _standing(text: str, document: str) -> str:
    """Return the text as it stands in a document, white space not compared; "" if it does not."""
    found = re.search(r"\s+".join(map(re.escape, text.split())), document) if text.strip() else None
    return found.group() if found else ""


def _named(id: str, corpus: MatchedCorpus, opened: dict[str, Document | None]) -> Document | None:
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
