"""A corpus built from the results of your own pipelines, for users without documents at hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from core.corpus import index, returned
from core.corpus.build import Progress
from core.domain.errors import RouteScopeError, Unavailable, describe
from core.domain.external import ForeignHit
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.engine import Engine
from core.engine.request import clean
from core.routes.registry import pipelines


def keep(
    settings: Settings,
    corpus: str,
    hits: Iterable[ForeignHit],
    *,
    progress: Progress,
    cancel: threading.Event | None,
) -> int:
    """Add what is new of `hits` to `corpus`, index it, and give the number of new passages. Raises what
    `core.corpus.returned.add` raises.
    """
    added = returned.add(corpus, hits, settings)
    if added or index.current_fingerprint(corpus, settings=settings) is None:
        source = returned.source(corpus, settings)
        index.build(None, source, settings=settings, progress=progress, cancel=cancel).close()
    return added


def grow(
    engine: Engine,
    corpus: str,
    names: Sequence[str],
    query: Query,
    *,
    progress: Progress,
    cancel: threading.Event,
    warn: Callable[[str], None],
) -> int:
    """Call the pipelines `names` with one question, add their passages to `corpus`, and return the number of
    new ones. A pipeline that fails is skipped with a warning. Raises Unavailable if all fail.
    """
    asked, _ = clean(query)
    hits: list[ForeignHit] = []
    failed = 0
    for name in names:
        pipeline = pipelines()[name]
        try:
            given = engine.external(name, "record").ask(asked, pipeline.k, pipeline.timeout_s, cancel)
        except RouteScopeError as error:
            if cancel.is_set():
                raise
            failed += 1
            warn(f"no passages of {name}: {describe(error)}")
            continue
        hits += given.reply.hits
    if failed == len(names):
        raise Unavailable(f"no corpus {corpus} can be made: none of {', '.join(names)} replied")
    return keep(engine.settings, corpus, hits, progress=progress, cancel=cancel)
