"""Grammars in GBNF that leave a model nothing else to write. Pure.

The form is that of llama.cpp (grammars/README.md there); only the embedded server is sent one.
"""

from __future__ import annotations

from collections.abc import Sequence

_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def literal(text: str) -> str:
    """`text` as a terminal of a grammar."""
    return '"' + "".join(_ESCAPED.get(char, char) for char in text) + '"'


def one_of(texts: Sequence[str]) -> str:
    """Return a grammar of exactly these texts, at least one."""
    return "root ::= " + " | ".join(map(literal, texts))


def questions(least: int, most: int, *, numbered: bool = False) -> str:
    """Return a grammar of `least` to `most` lines, each a question; `numbered` from 1."""
    lines = [f"{literal(f'{n}. ')} question" if numbered else "question" for n in range(1, most + 1)]
    newline = literal("\n")
    rest = ""
    for line in reversed(lines[least:]):
        rest = f" ({newline} {line}{rest})?"
    root = f" {newline} ".join(lines[:least])
    return f'root ::= {root}{rest}\nquestion ::= [A-Z] [^\\n?]{{4,200}} "?"'
