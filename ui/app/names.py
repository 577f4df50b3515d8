"""How pages name passages: by their document's title and the headings above them."""

from __future__ import annotations

from core.corpus.markdown import name_of
from core.domain.types import Passage
from ui.app import state


def named(corpus: str, passage: Passage) -> str:
    """Return "Returns › How to start a return"; the document's title alone while the corpus is not open."""
    opened = state.engine().opened(corpus)
    return name_of(opened, passage) if opened is not None else passage.title or passage.doc_id
