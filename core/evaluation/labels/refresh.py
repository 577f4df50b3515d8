"""A desk brought up to date with what was judged since, without reading its passages again."""

from __future__ import annotations

from dataclasses import replace

from core.evaluation.labels.types import Desk
from core.store import Store


def caught_up(store: Store, desk: Desk) -> Desk:
    """Return `desk` with the judgements added since it was read, by any process. Judgements never change or
    go.
    """
    last = desk.judgements[-1].number if desk.judgements else 0
    with store.labels() as labels:
        new = tuple(labels.judgements(desk.set.name, last))
    return replace(desk, judgements=desk.judgements + new) if new else desk
