"""Each passage with its document's headings and neighbours: context without a language model."""

from __future__ import annotations

import re

from core.corpus.corpus import Corpus
from core.corpus.enrichments.keys import Key, KeyRecipe
from core.corpus.enrichments.recipe import Tools, siblings
from core.domain.text import searchable
from core.domain.types import Passage

# A line is looked at once: text is anybody's, and must not take time with its square.
_HEADING = re.compile(r"^(#{1,6})[^\S\n]+(?=\S)(.*)$", re.MULTILINE)
NEAR = 160  # characters of each neighbour


class Headings(KeyRecipe):
    """The heading path down to a passage, the end of the one before it and the beginning of the next."""

    name, version = "headings", 1
    title = "headings and neighbours of the passages"
    cost = "one more embedding per passage"
    uses_llm = False

    def keys(self, corpus: Corpus, _tools: Tools, /) -> list[Key]:
        """Return one key per passage."""
        keys = []
        for group in siblings(corpus):
            passages = [passage for _, passage in group]
            paths = heading_paths(passages)
            for at, (row, passage) in enumerate(group):
                before = passages[at - 1].text[-NEAR:] if at else ""
                after = passages[at + 1].text[:NEAR] if at + 1 < len(passages) else ""
                context = " ".join(" > ".join(paths[at]).split())
                around = " ".join(f"{before} {after}".split())
                shown = " … ".join(part for part in (context, around) if part)
                keys.append(
                    Key(row, shown, f"{context} {searchable(passage.title, passage.text)} {around}".strip())
                )
        return keys


def heading_paths(passages: list[Passage]) -> list[list[str]]:
    """Return the Markdown headings above the start of each passage, outermost first.

    `passages` are those of one document in reading order. A heading inside a passage is part of its text
    already.
    """
    path: dict[int, str] = {}
    found = []
    for passage in passages:
        found.append([path[level] for level in sorted(path)])
        for mark, line in _HEADING.findall(passage.text):
            if not (text := line.rstrip().rstrip("#").rstrip()):
                continue
            path = {level: name for level, name in path.items() if level < len(mark)}
            path[len(mark)] = text
    return found
