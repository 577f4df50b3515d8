"""A random order in which people label things, and the chance with which each was labelled.

Each thing has a size s and the key s / u with u uniform in 0..1. If the n largest keys are labelled, each was
drawn with the chance min(1, s / t), where t is the next largest key. Weights of one over the chance keep sums
unbiased (Duffield, Lund & Thorup 2007, "Priority sampling for estimation of arbitrary subset sums"), wherever
the labelling stops, unless the labels decide where.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from core.store.codec import to_bytes

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def uniform(*names: str) -> float:
    """Return a number above 0 and up to 1 that looks random, the same for the same names."""
    drawn = hashlib.sha256(to_bytes("\0".join(names))).digest()
    return (int.from_bytes(drawn[:6]) + 1) / 2**48


def chances(sizes: Floats, keys: Floats, labelled: Bools) -> tuple[Bools, Floats]:
    """Return which things are in the sample, those labelled before the first unlabelled one, and the chance
    of each thing to be in it if it is labelled. Arrays of one length.
    """
    limit = float(keys[~labelled].max(initial=0.0))
    return labelled & (keys > limit), np.minimum(1.0, sizes / limit) if limit else np.ones(len(sizes))
