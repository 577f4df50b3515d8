"""Label: a set of questions, the passages to judge for them, the queue, agreement and the labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from core.evaluation.labels.desk import Desk
from ui.app import address, opened, say
from ui.app.tabs import tabs
from ui.label import agreement, generated, labels, pool, queue, sets
from ui.label.desk import held


def draw() -> None:
    """Draw the page for the chosen set, or how to create one."""
    with say.errors():
        name = sets.choose()
        if name is not None:
            _views(held(name).desk)
    opened.link()


def _views(desk: Desk) -> None:
    views: dict[str, Callable[[Desk], None]] = {
        "Label": queue.draw if any(desk.pool.values()) else pool.draw,
        "Generated questions": generated.draw,
        "Pool": pool.draw,
        "Agreement": agreement.draw,
        "Labels": labels.draw,
        "Set": sets.about,
    }
    behind = {name: partial(views[name], desk) for name in ("Pool", "Set") if views["Label"] is queue.draw}
    tabs({name: partial(_view, name, draw_it, desk) for name, draw_it in views.items()}, "label_tab", behind)


def _view(name: str, draw_it: Callable[[Desk], None], desk: Desk) -> None:
    if name not in ("Label", "Agreement"):  # those show one passage, and the address says which
        address.keep("question", None)
        address.keep("passage", None)
    draw_it(desk)
