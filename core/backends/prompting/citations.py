"""The [n] markers of an answer, the passages they cite, and sentences without markers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.domain.outputs import Written
from core.domain.text import ABBREVIATED
from core.domain.types import Answer, Ranking

NOT_ANSWERED = "The passages do not answer this."
_GROUP = re.compile(r"\[\s*(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\s*\]")
# A run of full stops is read once, whole: text is anybody's, and must not take time with its square. No
# sentence begins with an operator or a closing bracket: `t` + "." + body is one.
_MARKERS = r"(?:\s*+(?:and\s++)?\[[\d\s,;]++\][.,;]?+)*+"
_NEXT = r"(?=\s++[^+=&)\]},;:]|\s*+$)"
_SENTENCE = re.compile(rf"\S.*?(?:(?<![.!?…])[.!?…]++[\"'”’)]*+{_MARKERS}{_NEXT}|$)", re.DOTALL)
_ABSTAINS = re.compile(
    r"^\W*(?:the |these |none of the )?(?:given |provided )?(?:passages?|documents?|context|sources?)"
    r"(?: provided| given)? (?:do(?:es)? not|don['’]t|doesn['’]t) "
    r"(?:answer|contain|mention|provide|say|state|specify|include|give)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer's text and what its markers say: `citations` are passage ids in order of first mention.

    `wrong` are numbers that no passage shown has, `uncited` the sentences without any right number. Both are
    empty where the text abstains. `shown` are the passages in the prompt, in its order; `unaided`: there were
    none, nor were any looked for.
    """

    text: str
    citations: tuple[str, ...] = ()
    abstained: bool = False
    wrong: tuple[int, ...] = ()
    uncited: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    unaided: bool = False

    def over(self, hits: Ranking) -> Answer:
        """Return the route's answer with this text and the ranking `hits`."""
        return Answer(hits, self.text, self.citations, self.abstained, source=self)

    def recorded(self) -> Written:
        """Return the output stored on the span."""
        facts = (self.text, self.citations, self.abstained, self.wrong, self.uncited, self.shown)
        return Written(*facts, unaided=self.unaided)


def resolve(text: str, ids: Sequence[str]) -> Draft:
    """`text`, whose markers count the passages `ids` from 1: those the model was shown."""
    said = text.strip()
    if abstains(said):
        return Draft(said, abstained=True, shown=tuple(ids))
    numbers = markers(said)
    wrong = tuple(n for n in numbers if not 1 <= n <= len(ids))
    right = tuple(ids[n - 1] for n in numbers if n not in wrong)
    uncited = tuple(
        sentence for sentence in sentences(said) if not any(1 <= n <= len(ids) for n in markers(sentence))
    )
    return Draft(said, tuple(dict.fromkeys(right)), False, wrong, uncited, tuple(ids))


def abstains(text: str) -> bool:
    """Return True if an answer says only that the passages contain no answer."""
    return bool(_ABSTAINS.match(text)) and not markers(text)


def markers(text: str) -> tuple[int, ...]:
    """Return the distinct numbers in square brackets in order: "[1][3, 2]" contains 1, 3, 2."""
    found = (int(n) for group in _GROUP.findall(text) for n in re.split(r"\s*[,;]\s*", group))
    return tuple(dict.fromkeys(found))


def unmarked(text: str) -> str:
    """Remove the markers from a text."""
    return re.sub(r"\s+([.,;:!?]+)(?!\S)", r"\1", " ".join(_GROUP.sub(" ", text).split()))


def sentences(text: str) -> tuple[str, ...]:
    """Split an answer into sentences, each with the markers after its full stop. A line break ends a
    sentence, a full stop between backticks does not.
    """
    found: list[str] = []
    for line in text.splitlines():
        joined: list[str] = []
        ticks, closed = 0, line.count("`") % 2 == 0
        for part in _SENTENCE.findall(line.strip().lstrip("-*•").strip()):
            joined.append(part)
            ticks += part.count("`")
            if not (closed and ticks % 2) and not ABBREVIATED.search(part[-12:]):  # longer than any of them
                found.append(" ".join(joined))
                joined.clear()
        if joined:
            found.append(" ".join(joined))
    return tuple(sentence for sentence in found if re.search(r"\w", sentence))
