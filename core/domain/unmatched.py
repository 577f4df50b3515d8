"""Passages that a pipeline of the user's returned and the corpus does not have: their ids say so."""

from __future__ import annotations

import hashlib

UNMATCHED = "unmatched:"
LONGEST = 200  # characters of a document's id that are repeated in a passage's


def unmatched_id(doc_id: str, content: str) -> str:
    """A passage's id: equal for equal document and `content`, whoever returned it."""
    digest = hashlib.sha256("\0".join((doc_id, content)).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{UNMATCHED}{doc_id[:LONGEST]}#{digest}"


def is_unmatched(passage_id: str) -> bool:
    """Whether the corpus of the run does not have this passage: nobody could have judged it there."""
    return passage_id.startswith(UNMATCHED)
