"""The documents of a corpus as an evaluation records them, and the new and changed ones that displaced a
relevant passage.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from core.domain.errors import BadInput
from core.evaluation.counting import document_of
from core.evaluation.experiment_store import Evaluation
from core.evaluation.outcome import Outcome
from core.evaluation.report import whole_lines
from core.evaluation.stored import checked

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus

DocumentChange = Literal["new", "changed", "gone"]


@dataclass(frozen=True, slots=True)
class Displacer:
    """A new or changed document ranked above a relevant passage, with its first `passage` and that one's
    rank.
    """

    document: str
    change: DocumentChange
    passage: str
    rank: int


@dataclass(frozen=True, slots=True)
class DisplacedPassage:
    """A relevant passage that fell, and the documents that displaced it, best rank first."""

    passage: str
    rank_before: int
    rank_after: int | None  # None: not ranked
    rank_without: int  # its rank without these documents' passages; the best it can be if it was not ranked
    by: tuple[Displacer, ...]


def changes(before: Evaluation, after: Evaluation) -> tuple[dict[str, DocumentChange], str]:
    """Return the documents that differ between the corpora, and "" or the reason they are not known."""
    if before.figures.get("fingerprint") == after.figures.get("fingerprint"):
        return {}, ""
    then, now = recorded(before.folder), recorded(after.folder)
    if then is None or now is None:
        lacking = before.name if then is None else after.name
        return {}, (
            f"{lacking} did not record its documents (a corpus of up to {MOST:,} is recorded), so the ones "
            "that displaced a passage are not known."
        )
    if not then.items() & now.items():
        return {}, (
            "No document is the same in both corpora (they are different, or were split differently), so "
            "the documents that displaced a passage are not known."
        )
    found: dict[str, DocumentChange] = dict.fromkeys(then.keys() - now.keys(), "gone")
    for id, digest in now.items():
        if then.get(id) != digest:
            found[id] = "changed" if id in then else "new"
    return found, ""


def displaced(
    relevant: Iterable[str],
    before: Outcome,
    after: Outcome,
    depth: int,
    changed: Mapping[str, DocumentChange],
) -> tuple[DisplacedPassage, ...]:
    """Return the relevant passages that were among the first `depth`, fell, and have new or changed documents
    above them. A passage fell if it left the first `depth` or its reciprocal rank halved.

    A changed document is blamed only if more of its passages are above than before. A passage that is not
    ranked is left out if its own document changed: it may no longer exist.
    """
    if not changed or (before.status, after.status) != ("ok", "ok"):
        return ()
    then, now = (
        {id: one.documents.get(id) or document_of(id) for id, _ in one.hits} for one in (before, after)
    )
    was, is_ = ({passage: rank for rank, passage in enumerate(ranked, 1)} for ranked in (then, now))
    found = []
    for passage in relevant:
        first, last = was.get(passage), is_.get(passage)
        if first is None or first > depth or (last is None and then[passage] in changed):
            continue
        if last is not None and last < 2 * first and last <= depth:
            continue
        above = list(now.items())[: last - 1 if last is not None else None]
        earlier = Counter(list(then.values())[: first - 1])
        counts = Counter(doc for _, doc in above if changed.get(doc) in ("new", "changed"))
        blamed = {doc for doc, n in counts.items() if n > earlier[doc]}
        by: dict[str, Displacer] = {}
        for rank, (id, doc) in enumerate(above, 1):
            if doc in blamed:
                by.setdefault(doc, Displacer(doc, changed[doc], id, rank))
        if by:
            without = len(above) + 1 - sum(counts[doc] for doc in by)
            found.append(DisplacedPassage(passage, first, last, without, tuple(by.values())))
    return tuple(sorted(found, key=lambda one: (one.rank_before, one.passage)))


FILE = "documents.json"  # in the folder of an evaluation
MOST = 100_000  # documents that are recorded, some 5 MB; nothing is recorded of a larger corpus


def record(folder: Path, corpus: Corpus) -> None:
    """Write the documents of `corpus` into the folder of an evaluation; none of a corpus with more than MOST.

    A hash covers the title, and the text and place of each passage.
    """
    path = folder / FILE
    if corpus.info.documents > MOST:
        path.unlink(missing_ok=True)
        return
    hashes: dict[str, blake2b] = {}
    for _, passage, _ in corpus.everything():
        content = json.dumps([passage.title, passage.start, passage.end, passage.text])
        hashes.setdefault(passage.doc_id, blake2b(digest_size=8)).update(content.encode())
    whole_lines(path, [json.dumps({id: one.hexdigest() for id, one in hashes.items()})])


def recorded(folder: Path) -> dict[str, str] | None:
    """Return document id -> hash, or None if the evaluation did not record its documents. Raises BadInput if
    the file is damaged.
    """
    from pydantic import TypeAdapter

    try:
        document = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return checked(TypeAdapter(dict[str, str]), document)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise BadInput(f"{folder / FILE} is damaged: {error}") from None
