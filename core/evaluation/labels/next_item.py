"""The next pair for an annotator, and the deferred ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.store.labels import Judgement, Pair


def onward(order: Sequence[Pair], said: Mapping[Pair, Judgement], at: Pair | None = None) -> Pair | None:
    """Return the next unlabelled pair of `order` after `at`, wrapping around; then deferred pairs, oldest
    first and `at` last. None when nothing is left.
    """
    fresh = [pair for pair in order if pair not in said]
    if fresh:
        places = {pair: place for place, pair in enumerate(order)}
        here = places.get(at, -1) if at is not None else -1
        return next((pair for pair in fresh if places[pair] > here), fresh[0])
    known = set(order)
    later = [one for one in said.values() if one.kind == "later" and one.pair in known]
    pairs = [one.pair for one in sorted(later, key=lambda one: one.number)]
    return next((pair for pair in pairs if pair != at), next(iter(pairs), None))
