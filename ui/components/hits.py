"""A route's hits: rank, movement against the baseline, score, and text on demand; and lost passages."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from markupsafe import Markup

from core.analysis.passage_trace import PassageTrace
from core.analysis.term_contributions import Marker
from core.domain.rank_changes import Move, Moves, ranks
from core.domain.relevance import UNMATCHED, is_unmatched
from core.domain.types import Hit, Passage, RouteResult, Run
from core.store.labels import GRADES
from ui.app.markup import EMPTY, cut, join, tag
from ui.app.names import named, title_of

_MARKS = re.compile(r"[#*|`]+|-{3,}")  # of markdown: noise in a line or two; the full text keeps them
_HEADINGS = re.compile(r"\A(?:\s*#+ .*\n)+")  # the name of the passage has them
_HIT = Markup(
    '<div class="rs-one"><details class="{}" data-p="{}"><summary><span class="rank">{}</span>'
    '<span class="title" dir="auto">{}</span>{}{}<span class="score">{}{}</span></summary>{}</details>'
    "{}</div>"
)
# One of very many: a browser takes its time by the element, so the style puts rank, movement and score there.
# Filled in as plain text, which is four times as quick: every part of it is Markup, or a number.
_FLAT = '<div class="{}" data-p="{}" data-s="{}"{}>{}{}<span class="snip" data-r="{}">{}</span></div>'
_MOVED = ' data-m="{}"'
_STILL = Markup('<span class="move"></span>')
_MOVE = Markup('<span class="move {}" title="{}">{}</span>')
ORIGINS = {  # of passages that are not in the corpus, by how their ids begin
    "web/": "from outside the corpus · ",
    "memory/": "from the conversation · ",
    "sql/": "rows of a database query · ",
    UNMATCHED: "not in the corpus · ",
}
FLAT_TITLE, FLAT_SNIP = 90, 160  # characters
SEEN, BEFORE = 120, 40  # characters that two lines show, and those of them before the first search word
_BUTTON = Markup('<button type="button" class="grade g{0}{1}" data-press="grade {2} {0}"{3}>{0}</button>')


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
    gradable: bool = False  # whether hits have buttons that grade them
    seen: Counter[str] = field(default_factory=Counter)
    made: dict[Passage, tuple[Markup, Markup]] = field(default_factory=dict)

    def number(self, id: str) -> int:
        """Return a passage's number, the same in every column."""
        self.seen[id] += 1
        return self.numbers.setdefault(id, len(self.numbers))

    def shared(self) -> list[int]:
        """Return the numbers of passages that were drawn more than once."""
        return [number for id, number in self.numbers.items() if self.seen[id] > 1]

    def parts(self, passage: Passage) -> tuple[Markup, Markup]:
        """Return the closed and the opened part of hits on `passage`, made once."""
        if passage not in self.made:
            snip = tag("span", excerpt(passage, self.marker, self.snip), css="snip", dir="auto")
            full = tag("div", marked(passage.text, self.marker), css="full", dir="auto")
            origin = next((words for start, words in ORIGINS.items() if passage.id.startswith(start)), "")
            at = f"characters {passage.start}–{passage.end}"
            where = tag("div", f"{origin}{passage.doc_id}", title=at, css="where")
            self.made[passage] = snip, full + where
        return self.made[passage]

    def flat(self, passage: Passage) -> tuple[Markup, Markup]:
        """Return the title and the beginning of `passage` for hits that do not open, made once."""
        if passage not in self.made:
            title = cut(named(self.run.corpus, passage), FLAT_TITLE)
            self.made[passage] = (
                join([title]),
                join([cut(_MARKS.sub("", passage.text[: 3 * FLAT_SNIP]), FLAT_SNIP)]),
            )
        return self.made[passage]


@lru_cache(1024)
def excerpt(passage: Passage, marker: Marker | None, size: int) -> Markup:
    """Return `size` characters of a passage from where most search words are, which are marked."""
    text = _HEADINGS.sub("", passage.text).strip() or passage.text
    text = " ".join(_MARKS.sub("", text).split())
    if marker is None:
        return join([cut(text, size)])
    at, starts, words = 0, [], []
    for piece, kind in marker.pieces(text):
        if kind == "asked":
            words.append((at, piece.casefold()))
        at += len(piece)
    for begin, _ in words:
        within = {word for place, word in words if begin <= place < begin + SEEN}
        starts.append((-len(within), begin))
    begin = max(0, min(starts, default=(0, 0))[1] - BEFORE)
    if begin:
        begin = text.find(" ", begin) + 1
    return join(["…" if begin else "", marked(cut(text[begin:], size), marker)])


def marked(text: str, marker: Marker | None) -> Markup:
    """Return `text` with the search words marked, or unchanged without a marker."""
    if marker is None:
        return join([text])
    css = {"asked": "", "written": "other"}
    return join([tag("mark", piece, css=css[kind]) if kind else piece for piece, kind in marker.pieces(text)])


def hits(scene: Scene, result: RouteResult, moved: Moves | None) -> Markup:
    """Return the top of the ranking as elements that open."""
    if not result.hits:
        return tag("div", "No hits: no passage matches the query.", css="rs-note dim")
    ranks_alone, rows = only_ranks(result.hits[: scene.depth]), []
    for rank, hit in enumerate(result.hits[: scene.depth], 1):
        move = moved.of.get(hit.passage.id) if moved else None
        score = "" if ranks_alone else score_text(hit.score)
        rows.append(_hit(scene, hit, rank, move, score, cited=hit.passage.id in result.citations))
    return join(rows)


def _hit(scene: Scene, hit: Hit, rank: int, move: Move | None, score: str, *, cited: bool) -> Markup:
    passage, grade = hit.passage, scene.gold.get(hit.passage.id)
    chips = tag("span", "cited", css="chip") if cited else EMPTY
    if is_unmatched(passage.id):
        chips += tag("span", "outside", css="chip", title="not in the corpus: returned by a pipeline")
    # One template for a thousand hits: an element made part by part takes four times as long.
    css, number = "rs-hit gold" if grade else "rs-hit", scene.number(passage.id)
    if not scene.whole:
        title, snip = scene.flat(passage)
        at = Markup(_MOVED.format(_move_text(move))) if move else EMPTY
        return Markup(_FLAT.format(css, number, score, at, mark(grade) + chips, title, rank, snip))
    snip, opened = scene.parts(passage)
    title = join([cut(named(scene.run.corpus, passage), 140)])
    graded = buttons(number, grade) if scene.gradable else mark(grade)
    return _HIT.format(css, number, rank, title, _arrow(move), snip, score, chips, opened, graded)


def mark(grade: int | None) -> Markup:
    """Return a passage's grade, or nothing without a label."""
    if grade is None:
        return EMPTY
    return tag("span", grade, css=f"grade on g{grade}", title=f"labelled {grade}: {GRADES.get(grade, grade)}")


@lru_cache(4096)
def buttons(number: int, grade: int | None) -> Markup:
    """Return the buttons that grade a passage; the browser shows the others when they are reached for."""
    made = []
    for value in sorted(GRADES):
        again = " Press again to take it back." if value == grade else ""
        words = f' title="{value}: {GRADES[value]}.{again}" aria-pressed="{str(value == grade).lower()}"'
        made.append(_BUTTON.format(value, " on" if value == grade else "", number, Markup(words)))
    return tag("div", *made, css="rs-grades")


def score_text(score: float) -> str:
    """Return a score with three decimals, or more digits for a very small one."""
    text = f"{score:.3f}" if abs(score) >= 0.1 or score == 0 else f"{score:.2g}"
    return text.replace("-", "−")


def only_ranks(hits: Sequence[Hit]) -> bool:
    """Return whether the scores are a constant times 1 / (k + rank): they tell no more than the rank."""
    scores = [hit.score for hit in hits]
    if len(scores) < 3 or min(scores) <= 0:
        return False
    steps = [1 / after - 1 / before for before, after in itertools.pairwise(scores)]
    return min(steps) > 0 and max(steps) - min(steps) < 1e-3 * max(steps)


def _arrow(move: Move | None) -> Markup:
    if move is None:
        return _STILL
    was = "not found by the baseline" if move.was is None else f"rank {move.was} in the baseline"
    css = {"same": "dim", "new": "new", "better": "up", "worse": "down"}[move.kind]
    return _MOVE.format(css, was, _move_text(move))


def _move_text(move: Move) -> str:
    return {"same": "=", "new": "new", "better": f"▲{move.by}", "worse": f"▼{move.by}"}[move.kind]


def lost(scene: Scene, result: RouteResult, moved: Moves | None) -> list[tuple[int, str, str, str]]:
    """Return the passages lost against the baseline: number, title, ranks before and after, and fate."""
    if scene.base is None or moved is None or not moved.lost:
        return []
    before, after, funnel = ranks(scene.base.hits), ranks(result.hits), PassageTrace(result)
    return [
        (
            scene.number(id),
            cut(title_of(scene.run, id), 90),
            f"{before[id]} → {after.get(id, 'gone')}",
            funnel.fate(id, scene.depth).words,
        )
        for id in moved.lost
    ]
