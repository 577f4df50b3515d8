"""How long the passages of an index are, in the tokens that budgets count."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.corpus import manifest
from core.corpus.index_record import current
from core.corpus.passages import PassageStore
from core.domain.settings import Settings
from core.domain.text import tokens


def token_lengths(name: str, settings: Settings) -> NDArray[np.int64]:
    """The tokens of each passage of a corpus, in the order of rows; empty where it has no index."""
    found = current(name, settings)
    return _lengths(found.folder) if found else np.zeros(0, np.int64)


@lru_cache(64)
def _lengths(folder: Path) -> NDArray[np.int64]:
    """An index folder never changes, as it is named by its content."""
    store = PassageStore(folder / manifest.PASSAGES)
    try:
        return np.fromiter((tokens(passage.text) for _, passage, _ in store.everything()), np.int64)
    finally:
        store.close()
