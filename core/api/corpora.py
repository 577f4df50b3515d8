"""The corpus that a name or a path means, with an index that is current."""

from __future__ import annotations

from core.api.arguments import File, path
from core.api.progress import Progress
from core.corpus import catalogue, index
from core.corpus.source import Source
from core.domain.settings import Settings


def source(target: File, name: str | None, settings: Settings, *, known: bool) -> Source:
    """Return the corpus called `target` or, unless it must be `known`, the folder or file of that path.
    Raises BadInput if neither exists.
    """
    given = target if isinstance(target, str) else path(target, "corpus")
    return catalogue.source(given, settings=settings, name=name, known_only=known)


def ensure(origin: Source, settings: Settings, report: Progress) -> None:
    """Build its index unless there is one that is current; what was built stays when it is stopped."""
    there = origin.kind == "table" or catalogue.current(origin.name, settings) is not None
    if there and catalogue.describe(origin.name, settings).state == "ready":
        return
    index.build(
        None,
        origin,
        settings=settings,
        progress=lambda stage, done, total: report(f"{origin.name}: {stage}", done, total),
    )
