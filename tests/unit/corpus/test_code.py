"""Source code is split at functions and classes, by grammars; Python's own parser is the oracle."""

import ast
from pathlib import Path

import pytest

from core.corpus import endings
from core.corpus.chunk import Chunking, spans
from core.corpus.types import Document

SIZE = 900
ROOT = Path(__file__).resolve().parents[3]


def whole(text, cut):
    """Return how many functions that fit into a passage lie in one, and how many there are."""
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    functions = [
        (lines[one.lineno - 1], lines[one.end_lineno] - 1)
        for one in ast.walk(ast.parse(text))
        if isinstance(one, ast.FunctionDef) and lines[one.end_lineno] - lines[one.lineno - 1] < SIZE
    ]
    return sum(any(a <= start and end <= b for a, b in cut) for start, end in functions), len(functions)


def test_most_functions_that_fit_are_whole_in_a_passage_and_more_than_without_the_grammar():
    by_grammar, by_text, there = 0, 0, 0
    for file in sorted((ROOT / "core" / "domain").glob("*.py")):
        text = file.read_text("utf-8")
        if not text.isascii():  # ast counts bytes within a line, these counts are of characters
            continue
        found, count = whole(text, spans(Document("a.py", "", text), Chunking(SIZE)))
        by_grammar, there = by_grammar + found, there + count
        by_text += whole(text, spans(Document("a.txt", "", text), Chunking(SIZE)))[0]
    assert there > 200
    assert by_grammar / there > 0.85
    assert by_grammar > by_text


@pytest.mark.parametrize("ending", endings.GRAMMARS)
def test_passages_of_every_language_hold_the_whole_text(ending):
    text = "".join(f"int f{n}(int a) {{\n  return a + {n};\n}}\n\n" for n in range(60))
    cut = spans(Document(f"x{ending}", "", text), Chunking(200))
    assert all(0 < end - start <= 200 for start, end in cut)
    assert "".join("".join(text[a:b].split()) for a, b in cut) == "".join(text.split())
