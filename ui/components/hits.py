"""A route's hits: rank, movement against the baseline, score, and text on demand; and its lost passages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from markupsafe import Markup

from core.analysis.passage_trace import PassageTrace
from core.analysis.term_contributions import Marker
from core.domain.rank_changes import Move, Moves, ranks
from core.domain.relevance import UNMATCHED, is_unmatched
from core.domain.types import Hit, Passage, RouteResult, Run
from ui.app.markup import EMPTY, cut, join, tag
from ui.app.names import named, title_of

_MARKS = re.compile(r"[#*|`]+|-{3,}")  # of markdown: noise in a line or two; the full text keeps them
_HIT = Markup(
    '<details class="{}" data-p="{}"><summary><span class="rank">{}</span>'
    '<span class="title" dir="auto">{}</span><span class="score">{}{}</span>{}{}</summary>{}</details>'
)
# One of very many: a browser takes its time by the element, so the style puts rank, movement and score there.
# Filled in as plain text, which is four times as quick: every part of it is Markup, or a number.
_FLAT = '<div class="{}" data-p="{}" data-s="{}"{}>{}{}<span class="snip" data-r="{}">{}</span></div>'
_MOVED = Markup(' data-m="{}"')
_STILL = Markup('<span class="move"></span>')
_MOVE = Markup('<span class="move {}" title="{}">{}</span>')
FLAT_TITLE, FLAT_SNIP = 90, 160  # characters
GRADES = {3: "answers it", 2: "a part of the answer", 1: "on topic", 0: "tempting but wrong"}


@dataclass(slots=True)
class Scene:
    """The data of one drawing of a run. It numbers passages, so that no id has to be made safe for CSS."""

    run: Run
    base: RouteResult | None
    depth: int
    gold: Mapping[str, int]
    snip: int = 420
    whole: bool = True
    marker: Marker | None = None
    numbers: dict[str, int] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    made: dict[Passage, tuple[Markup, Markup]] = field(default_factory=dict)

    def number(self, id: str) -> int:
        """Return a passage's number, the same in every column."""
        self.seen[id] += 1
        return self.numbers.setdefault(id, len(self.numbers))

    def shared(self) -> list[int]:
        """Return the numbers of passages that were drawn more than once."""
        return [number for id, number in self.numbers.items() if self.seen[id] > 1]

    def title(self, id: str) -> str:
        """Return a passage's title, or its id if the run does not contain it."""
        return title_of(self.run, id)

    def parts(self, passage: Passage) -> tuple[Markup, Markup]:
        """Return the closed and the opened part of hits on `passage`, made once."""
        if passage not in self.made:
            snip = tag("span", _short(passage, self.snip), css="snip", dir="auto")
            full = tag("div", marked(passage.text, self.marker), css="full", dir="auto")
            where = tag(
                "div", _where(passage), title=f"characters {passage.start}–{passage.end}", css="where"
            )
            self.made[passage] = snip, full + where
        return self.made[passage]

    def flat(self, passage: Passage) -> tuple[Markup, Markup]:
        """Return the title and the beginning of `passage` for hits that do not open, made once."""
        if passage not in self.made:
            title = cut(named(self.run.corpus, passage), FLAT_TITLE)
            self.made[passage] = join([title]), join([_short(passage, FLAT_SNIP)])
        return self.made[passage]


def _short(passage: Passage, size: int) -> str:
    return cut(_MARKS.sub("", passage.text[: 3 * size]), size)


def marked(text: str, marker: Marker | None) -> Markup:
    """Return `text` with the search words marked, or unchanged without a marker."""
    if marker is None:
        return join([text])
    css = {"asked": "", "written": "other"}
    return join([tag("mark", piece, css=css[kind]) if kind else piece for piece, kind in marker.pieces(text)])


def hits(scene: Scene, result: RouteResult, moved: Moves | None) -> Markup:
    """Return the top of the ranking as elements that open, then the passages lost against the baseline."""
    if not result.hits:
        return tag("div", "No hits: no passage matches the query.", css="rs-note dim")
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
    if is_unmatched(passage.id):
        chips.append(tag("span", "outside", css="chip", title="not in the corpus: returned by a pipeline"))
    # One template for a thousand hits: an element made part by part takes four times as long.
    css, number, score = "rs-hit gold" if grade else "rs-hit", scene.number(passage.id), _score(hit.score)
    if not scene.whole:
        title, snip = scene.flat(passage)
        moved = _moved(_move_text(move)) if move else EMPTY
        return Markup(_FLAT.format(css, number, score, moved, join(chips), title, rank, snip))
    snip, opened = scene.parts(passage)
    title = join([cut(named(scene.run.corpus, passage), 140)])
    return _HIT.format(css, number, rank, title, score, join(chips), _arrow(move), snip, opened)


def _score(score: float) -> str:
    return f"{score:.4f}" if abs(score) < 1 else f"{score:.2f}"


def _where(passage: Passage) -> str:
    origins = {
        "web/": "from outside the corpus · ",
        "memory/": "from the conversation · ",
        "sql/": "rows of a database query · ",
        UNMATCHED: "not in the corpus · ",
    }
    origin = next((origin for start, origin in origins.items() if passage.id.startswith(start)), "")
    return f"{origin}{passage.doc_id}"


def _arrow(move: Move | None) -> Markup:
    if move is None:
        return _STILL
    was = "not found by the baseline" if move.was is None else f"rank {move.was} in the baseline"
    css = {"same": "dim", "new": "new", "better": "up", "worse": "down"}[move.kind]
    return _MOVE.format(css, was, _move_text(move))


@lru_cache(1024)
def _moved(told: str) -> Markup:
    return _MOVED.format(told)


def _move_text(move: Move) -> str:
    return {"same": "=", "new": "new", "better": f"▲{move.by}", "worse": f"▼{move.by}"}[move.kind]


def _lost(scene: Scene, result: RouteResult, moved: Moves | None) -> Markup:
    if scene.base is None or moved is None or not moved.lost:
        return EMPTY
    before, after = ranks(scene.base.hits), ranks(result.hits)
    funnel = PassageTrace(result)
    rows = [
        tag(
            "div",
            tag("span", cut(scene.title(id), 90), css="t", dir="auto"),
            tag(
                "span",
                f"{before[id]} → {after.get(id, 'gone')}",
                css="nowrap",
                title=funnel.fate(id, scene.depth).words,
            ),
            css="rs-gone",
            data_p=scene.number(id),
        )
        for id in moved.lost
    ]
    return tag("div", f"Lost from the top {scene.depth}", *rows, css="rs-lost")
