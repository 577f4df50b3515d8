"""Names of passages: their document's title and the headings above them."""

from __future__ import annotations

from core.corpus.markdown import name_of
from core.domain.types import Passage, Run
from ui.app import state


def named(corpus: str, passage: Passage) -> str:
    """Return "Returns › How to start a return", or only the document's title while the corpus is not open."""
    opened = state.engine().opened(corpus)
    return name_of(opened, passage) if opened is not None else passage.title or passage.doc_id


def title_of(run: Run, id: str) -> str:
    """Return the name of a run's passage; the id if the run does not have it."""
    passage = run.passages.get(id)
    return named(run.corpus, passage) if passage else id


def tail(name: str, most: int) -> str:
    """Shorten a name to `most` characters from its left: the nearest heading tells passages apart."""
    line = " ".join(name.split())
    return line if len(line) <= most else f"…{line[1 - most :].lstrip()}"
