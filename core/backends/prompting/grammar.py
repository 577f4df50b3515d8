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
    """A grammar of exactly these texts, at least one."""
    return "root ::= " + " | ".join(map(literal, texts))
