"""A desk brought up to date with what was judged since, without reading its passages again."""

from __future__ import annotations

from dataclasses import replace

from core.evaluation.labels.types import Desk, Judgement
from core.store import Store
from core.store.files import reading
from core.store.rows import bind, text

_SINCE = (
    "SELECT question, passage, annotator, source, kind, grade, note, number, created FROM judgements "
    "WHERE label_set = ? AND number > ? ORDER BY number"
)


def caught_up(store: Store, desk: Desk) -> Desk:
    """Return `desk` with the judgements added since it was read, by any process. Judgements never change or
    go.
    """
    last = desk.judgements[-1].number if desk.judgements else 0
    with reading(store.path) as connection:
        rows = connection.execute(_SINCE, (bind(desk.set.name), last)).fetchall()
    new = tuple(Judgement(*(text(value) for value in row)) for row in rows)
    return replace(desk, judgements=desk.judgements + new) if new else desk
