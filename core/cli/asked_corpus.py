"""A corpus and the questions that a command asks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.cli import corpora
from core.cli.common import warn
from core.cli.imports import open_store
from core.corpus import catalogue
from core.corpus.corpus import Corpus
from core.corpus.source import Source
from core.domain import settings
from core.engine import engine as engines
from core.evaluation import access, sets
from core.evaluation.dataset import LabelledSet
from core.evaluation.labels.final import labelled_set


def with_questions(
    target: str, questions: Sequence[Path], columns: Mapping[str, str], labels: str | None = None
) -> tuple[Source, Corpus, LabelledSet | None]:
    """Return a corpus, built if it is not ready, with the questions of the files, or of the label set.
    Without either, with its own labelled ones, or None if it has none.
    """
    now, engine = settings.current(), engines.shared_engine()
    source = catalogue.source(target, settings=now)
    given: dict[str, Any] = {"questions": questions, "columns": columns}
    # before an index is built: an invalid file is reported immediately
    found = sets.read(source.name, source.path, split="all", **given) if questions else None
    corpora.ensure(source, now)
    corpus = engine.corpus(source.name)
    if labels is not None:
        labelled, said = labelled_set(open_store(), labels, corpus, split="all")
    elif found is None:
        return source, corpus, access.own_questions(corpus, source.path)
    else:
        labelled, said = sets.tie(found, corpus)
    warn(said)
    return source, corpus, labelled
