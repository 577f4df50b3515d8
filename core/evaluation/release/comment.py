"""A decision as a comment on a pull request: Markdown of bounded length, in which no text is markup."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import partial

from core.evaluation.diff.questions import QuestionDiff
from core.evaluation.finding import count
from core.evaluation.release.gate import Decision
from core.evaluation.release.snapshot import Against, failures
from core.evaluation.templating import markdown, render, say

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
    own = {"safe": safe, "code": code, "cell": partial(safe, most=CUT)}
    text = render("comment.md", decision=decision, against=against, failures=found, most=MOST, **own)
    if decision.regressions is not None:
        broken = [_said(one.question, one.text, one.why) for one in decision.regressions.broken]
        text += _folded("Complaints that broke again", broken, LIMIT - ROOM - len(text), opened=True)
    if against is not None and against.questions is not None:
        for change, title in (("broken", "Broken"), ("fixed", "Fixed")):
            changed = [_question(one) for one in against.questions.questions if one.change == change]
            text += _folded(title, changed, LIMIT - ROOM - len(text), opened=change == "broken")
    return f"{text}{MARKER.format(name=_NOT_NAME.sub('-', decision.name)[:80])}\n"


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


def _folded(title: str, items: Sequence[str], room: int, *, opened: bool) -> str:
    """Return a list that can be folded, of at most about `room` characters; what finds no room is counted."""
    if not items:
        return ""
    text = f"<details{' open' if opened else ''}><summary>{title}: {count(len(items))}</summary>\n\n"
    for place, item in enumerate(items):
        if len(text) + len(item) + 3 > room:
            text += f"- and {len(items) - place} more\n"
            break
        text += f"- {item}\n"
    return f"{text}\n</details>\n\n"


def _question(question: QuestionDiff) -> str:
    one = question.decisive
    if one is None:
        return _said(question.id, question.text, "")
    more = len(question.lost if question.change == "broken" else question.gained) - 1
    others = f"; and {count(more, 'more passages')}" if more else ""
    told = f"{code(one.passage)} {say('diff.moved', one)}; {safe(say('diff.cause', one), CUT)}{others}"
    return f"{code(question.id)} {code(question.text)}: {told}"


def _said(id: str, text: str, why: str) -> str:
    return f"{code(id)} {code(text)}: {safe(why)}" if why else f"{code(id)} {code(text)}"


def _cut(text: str, most: int) -> str:
    line = " ".join("".join(" " if unicodedata.category(c)[0] == "C" else c for c in text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
