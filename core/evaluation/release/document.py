"""A document of headings, sentences and tables, as one HTML file that needs nothing else and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from core.evaluation.report import STYLE

# Marks of Markdown and of what is added to it: mentions, formulas, emoji codes, addresses that become links.
_MARKS = re.compile(
    r"([\\`*_{}\[\]<>#|~&$!@^]|(?<!\d):(?=\S)|(?<=www)\.|^[-+=]|^\d+[.)](?=\s|$))", re.IGNORECASE
)
_OWN = """
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2rem}p,li{max-width:60rem}
table{font-size:.93rem}th,td{text-align:left;vertical-align:top;min-width:4rem;overflow-wrap:break-word}
th{color:var(--soft);font-weight:500}.passed{color:var(--good)}.failed{color:var(--bad)}.open{color:var(--soft)}
"""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a part."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell; `kind` is "passed", "failed", "open" or "", which colours it besides its words."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads; the first cell of a row names it."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


Block = Heading | Text | Items | Table


def html(title: str, blocks: Sequence[Block]) -> str:
    """One HTML page without scripts, links or anything from elsewhere; every text in it is escaped."""
    body = "".join(map(_html, blocks))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}{_OWN}</style><body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def markdown(title: str, blocks: Sequence[Block]) -> str:
    """The same as Markdown; what a text holds is shown as it is, never read as markup."""
    return "\n\n".join([f"# {_md(title)}", *map(_markdown, blocks)]) + "\n"


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h2>{escape(block.text)}</h2>"
    if isinstance(block, Text):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in block.texts)}</ul>"
    head = "".join(f"<th>{escape(text)}</th>" for text in block.heads)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in block.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(cell: Cell) -> str:
    kind = f' class="{escape(cell.kind)}"' if cell.kind else ""
    return f"<td{kind}>{escape(cell.text)}</td>"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"## {_md(block.text)}"
    if isinstance(block, Text):
        return _md(block.text)
    if isinstance(block, Items):
        return "\n".join(f"- {_md(text)}" for text in block.texts)
    lines = [block.heads, tuple("---" for _ in block.heads)]
    rows = [" | ".join(map(_md, lines[0])), " | ".join(lines[1])]
    rows += [" | ".join(_md(cell.text) for cell in row) for row in block.rows]
    return "\n".join(f"| {row} |" for row in rows)


def _md(text: str) -> str:
    """`text` on one line with a backslash before what Markdown could take for markup."""
    line = " ".join(text.split())
    return _MARKS.sub(lambda found: _escaped(found[1]), line)


def _escaped(mark: str) -> str:
    return f"{mark[:-1]}\\{mark[-1]}"  # of "1." the dot
