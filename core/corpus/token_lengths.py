"""The lengths of an index' passages in the tokens that budgets count."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.corpus import manifest
from core.corpus.catalogue import current, dsn
from core.corpus.served import passages_of
from core.domain.postgres import Dsn
from core.domain.settings import Settings
from core.domain.text import tokens


def token_lengths(name: str, settings: Settings) -> NDArray[np.int64]:
    """Return the tokens of each passage of a corpus, in the order of rows; empty without an index."""
    found = current(name, settings)
    return _lengths(found.folder, dsn(found, settings)) if found else np.zeros(0, np.int64)


@lru_cache(64)
def _lengths(folder: Path, at: Dsn | None) -> NDArray[np.int64]:
    """Count the tokens of an index folder's passages; the folder never changes, as its name is its content's
    hash.
    """
    store = passages_of(folder, manifest.read(folder)[0], at)
    try:
        return np.fromiter((tokens(passage.text) for _, passage, _ in store.everything()), np.int64)
    finally:
        store.close()
