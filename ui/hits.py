"""One route's hits: rank, movement against the baseline, score, text to open; and what it lost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from core.moves import Move, Moves, fate, ranks
from core.types import Hit, Passage, RouteResult, Run
from ui.markup import EMPTY, cut, join, tag

_MARKS = re.compile(r"[#*|`]+|-{3,}")  # of markdown: noise in a line or two; the full text keeps them
GRADES = {3: "answers it", 2: "a part of the answer", 1: "on topic", 0: "tempting but wrong"}


@dataclass(slots=True)
class Scene:
    """What a drawing of a run needs; it numbers passages, so that no id has to be made safe for CSS."""

    run: Run
    base: RouteResult | None
    depth: int
    gold: Mapping[str, int]
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, id: str) -> int:
        """The same number for the same passage in every column."""
        return self.numbers.setdefault(id, len(self.numbers))

    def title(self, id: str) -> str:
        """A passage's title, or its id where the run does not hold it."""
        passage = self.run.passages.get(id)
        return passage.title or passage.doc_id if passage else id


def hits(scene: Scene, result: RouteResult, moved: Moves | None) -> Markup:
    """The top of the ranking as elements that open, then what it lost against the baseline."""
    if not result.hits:
        return tag("div", "Nothing was found: no passage matches what was searched for.", css="rs-note dim")
    rows = []
    for rank, hit in enumerate(result.hits[: scene.depth], 1):
        move = moved.of.get(hit.passage.id) if moved else None
        rows.append(_hit(scene, hit, rank, move, cited=hit.passage.id in result.citations))
    return join([*rows, _lost(scene, result, moved)])


def _hit(scene: Scene, hit: Hit, rank: int, move: Move | None, *, cited: bool) -> Markup:
    passage, grade = hit.passage, scene.gold.get(hit.passage.id)
    chips = []
    if grade is not None:
        chips.append(
            tag("span", f"◆ {grade}", css="chip accent", title=f"labelled: {GRADES.get(grade, grade)}")
        )
    if cited:
        chips.append(tag("span", "cited", css="chip"))
    return tag(
        "details",
        tag(
            "summary",
            tag("span", rank, css="rank"),
            tag("span", cut(passage.title or passage.doc_id, 140), css="title", dir="auto"),
            tag("span", _score(hit.score), *chips, css="score"),
            _arrow(move),
            tag("span", cut(_MARKS.sub("", passage.text), 420), css="snip", dir="auto"),
        ),
        tag("div", passage.text, css="full", dir="auto"),
        tag("div", _where(passage), css="where"),
        css="rs-hit gold" if grade else "rs-hit",
        data_p=scene.number(passage.id),
    )


def _score(score: float) -> str:
    return f"{score:.4f}" if abs(score) < 1 else f"{score:.2f}"


def _where(passage: Passage) -> str:
    origins = {
        "web/": "from outside the corpus · ",
        "memory/": "from the conversation · ",
        "sql/": "rows of a query · ",
    }
    origin = next((said for start, said in origins.items() if passage.id.startswith(start)), "")
    return f"{origin}{passage.doc_id} · characters {passage.start}–{passage.end}"


def _arrow(move: Move | None) -> Markup:
    if move is None:
        return tag("span", css="move")
    was = "not found by the baseline" if move.was is None else f"at {move.was} in the baseline"
    if move.kind == "same":
        return tag("span", "=", css="move dim", title=was)
    if move.kind == "new":
        return tag("span", "new", css="move new", title=was)
    css, arrow = ("up", "▲") if move.kind == "better" else ("down", "▼")
    return tag("span", f"{arrow}{move.by}", css=f"move {css}", title=was)


def _lost(scene: Scene, result: RouteResult, moved: Moves | None) -> Markup:
    if scene.base is None or moved is None or not moved.lost:
        return EMPTY
    before, after = ranks(scene.base.hits), ranks(result.hits)
    rows = [
        tag(
            "div",
            tag("span", cut(scene.title(id), 90), css="t", dir="auto"),
            tag("span", f"{before[id]} → {after.get(id, 'gone')}", css="nowrap", title=fate(result, id)),
            css="rs-gone",
            data_p=scene.number(id),
        )
        for id in moved.lost
    ]
    return tag("div", f"Lost from the top {scene.depth}", *rows, css="rs-lost")
