"""Passages that a pipeline of the user's returned and the corpus does not have: their ids say so."""

from __future__ import annotations

import hashlib

UNMATCHED = "unmatched:"
MAX_DOCUMENT_ID_CHARS = 200  # characters of a document's id that are repeated in a passage's


def unmatched_id(doc_id: str, content: str) -> str:
    """Return a passage's id, equal for equal document and `content`, whichever pipeline returned it."""
    digest = hashlib.sha256("\0".join((doc_id, content)).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{UNMATCHED}{doc_id[:MAX_DOCUMENT_ID_CHARS]}#{digest}"


def is_unmatched(passage_id: str) -> bool:
    """Return True if the run's corpus does not contain this passage, so that it cannot have been labelled."""
    return passage_id.startswith(UNMATCHED)
