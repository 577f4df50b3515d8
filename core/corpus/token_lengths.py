"""How long the passages of an index are, in the tokens that budgets count."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.corpus import manifest
from core.corpus.index_record import current, dsn
from core.corpus.served import passages_of
from core.domain.postgres import Dsn
from core.domain.settings import Settings
from core.domain.text import tokens


def token_lengths(name: str, settings: Settings) -> NDArray[np.int64]:
    """The tokens of each passage of a corpus, in the order of rows; empty where it has no index."""
    found = current(name, settings)
    return _lengths(found.folder, dsn(found, settings)) if found else np.zeros(0, np.int64)


@lru_cache(64)
def _lengths(folder: Path, at: Dsn | None) -> NDArray[np.int64]:
    """An index folder never changes, as it is named by its content."""
    store = passages_of(folder, manifest.read(folder)[0], at)
    try:
        return np.fromiter((tokens(passage.text) for _, passage, _ in store.everything()), np.int64)
    finally:
        store.close()
