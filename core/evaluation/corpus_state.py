"""The documents of a corpus when it was evaluated: each document's id with a short hash of its content."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.errors import BadInput
from core.evaluation.report import whole_lines
from core.evaluation.stored import checked

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus

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
