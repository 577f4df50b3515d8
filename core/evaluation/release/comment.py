"""A decision as a comment on a pull request: Markdown of bounded length, in which no text is markup."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from core.analysis.metrics import titled
from core.domain.format import number
from core.evaluation.diff.questions import QuestionDiff
from core.evaluation.diff.text import cause, moved
from core.evaluation.finding import count
from core.evaluation.release import text as words
from core.evaluation.release.against import Against, failures
from core.evaluation.release.gate import Decision
from core.evaluation.templating import markdown

LIMIT = 65_536  # characters of a comment on GitHub
ROOM = 1_000  # kept for the end: closing tags, how many are left out, the marker
CUT, SENTENCE = 200, 1_500  # characters of a question, an id or a cell, and of a sentence
MOST = 12  # sentences on the decision, and rows of what became lower
MARKER = "<!-- routescope gate {name} -->"  # by which an earlier comment is found again
_NOT_NAME = re.compile(r"[^A-Za-z0-9._]+")
_TICKS = re.compile(r"`+")
# GitHub makes links of these in the rendered text, where a backslash no longer helps.
_LINKED = re.compile(r"(@|\\#|GH-|://|www\\?\.)", re.IGNORECASE)
_APART = "&#8203;"  # a space without width


def comment(decision: Decision, against: Against | None = None) -> str:
    """Return the comment; its first line is the decision, its last the MARKER of the evaluation.

    Questions are cut to CUT characters, and lists where it would pass LIMIT, with how many are left out.
    """
    found = failures(decision, against)
    verdict = f"**Gate failed: {safe('; '.join(found))}.**" if found else "**Gate passed.**"
    lines = [f"{verdict} {safe(words.headline(decision))}", ""]
    lines += [safe(decision.generated), ""] if decision.generated else []
    lines += [*_changes(against), *_criteria(decision)]
    said = {words.headline(decision), decision.generated}
    reasons = _points([safe(one) for one in words.every(decision)[:MOST] if one not in said])
    lines += ["<details><summary>Why</summary>", "", *reasons, "", "</details>", ""] if reasons else []
    body = _Body(lines, MARKER.format(name=_NOT_NAME.sub("-", decision.name)[:80]))
    if decision.regressions is not None:
        broken = decision.regressions.broken
        body.listed("Complaints that broke again", [_said(one.question, one.text, one.why) for one in broken])
    if against is not None and against.questions is not None:
        for change, title in (("broken", "Broken"), ("fixed", "Fixed")):
            changed = [one for one in against.questions.questions if one.change == change]
            body.listed(title, [_question(one) for one in changed], opened=change == "broken")
    return body.text()


def safe(text: str, most: int = SENTENCE) -> str:
    """Text without Markdown, HTML, mention, reference or link, at most `most` characters as it is written."""
    line = _cut(text, most)
    while len(made := _LINKED.sub(lambda found: f"{found[1]}{_APART}", markdown(line))) > most:
        line = f"{line[: len(line) * 3 // 4 - 1]}…"
    return made


def code(text: str) -> str:
    """Return text as a code span, in which GitHub reads nothing as markup, truncated to CUT characters."""
    line = _cut(text, CUT) or " "
    fence = "`" * (max(map(len, _TICKS.findall(line)), default=0) + 1)
    return f"{fence} {line} {fence}" if line[0] in "` " or line[-1] in "` " else f"{fence}{line}{fence}"


class _Body:
    """Lines of at most LIMIT characters."""

    def __init__(self, lines: Sequence[str], marker: str) -> None:
        self._marker = marker
        self._lines = list(lines)
        self._room = LIMIT - ROOM - sum(len(line) + 1 for line in lines)

    def listed(self, title: str, items: Sequence[str], *, opened: bool = True) -> None:
        """Return a list that can be folded; what finds no room is counted."""
        if not items:
            return
        head = f"<details{' open' if opened else ''}><summary>{title}: {count(len(items))}</summary>"
        self._lines += [head, ""]
        self._room -= len(head) + 2
        for place, item in enumerate(items):
            if len(item) + 3 > self._room:
                self._lines.append(f"- and {len(items) - place} more")
                break
            self._lines.append(f"- {item}")
            self._room -= len(item) + 3
        self._lines += ["", "</details>", ""]
        self._room -= 13

    def text(self) -> str:
        """All of it, with the marker."""
        return "\n".join([*self._lines, self._marker, ""])


def _changes(against: Against | None) -> list[str]:
    """Return the lowered metrics, then remarks on the comparison."""
    if against is None:
        return []
    lines = [f"Against {code(against.name)}: {safe(against.summary)}", ""]
    worse = [one for one in against.changes if one.delta < 0]
    if worse:
        lines += [
            "| became lower | questions | now minus then | interval | result |",
            "| --- | --- | --- | --- | --- |",
        ]
        for one in worse[:MOST]:
            ends = f"{number(one.low, signed=True)} to {number(one.high, signed=True)}"
            cells = (
                f"{titled(one.metric)}, {one.mode}",
                str(one.n),
                number(one.delta, signed=True),
                ends,
                one.verdict,
            )
            lines.append(f"| {' | '.join(safe(cell, CUT) for cell in cells)} |")
        lines.append("")
    return [*lines, *_points([safe(note) for note in against.notes]), ""]


def _criteria(decision: Decision) -> list[str]:
    """Return a table of the route to ship, or the nearest, by criterion."""
    one = decision.of(decision.shown)
    lines = [f"| {safe(one.title, CUT)} | required | figure | |", "| --- | --- | --- | --- |"]
    for check in one.checks:
        cells = (check.name, words.limit(check), words.brief(check), check.state)
        lines.append(f"| {' | '.join(safe(cell, CUT) for cell in cells)} |")
    return [*lines, ""]


def _question(question: QuestionDiff) -> str:
    one = question.decisive
    if one is None:
        return _said(question.id, question.text, "")
    more = len(question.lost if question.change == "broken" else question.gained) - 1
    others = f"; and {count(more, 'more passages')}" if more else ""
    told = f"{code(one.passage)} {moved(one)}; {safe(cause(one), CUT)}{others}"
    return f"{code(question.id)} {code(question.text)}: {told}"


def _said(id: str, text: str, why: str) -> str:
    return f"{code(id)} {code(text)}: {safe(why)}" if why else f"{code(id)} {code(text)}"


def _points(texts: Sequence[str]) -> list[str]:
    return [f"- {text}" for text in texts]


def _cut(text: str, most: int) -> str:
    line = " ".join("".join(" " if unicodedata.category(c)[0] == "C" else c for c in text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
