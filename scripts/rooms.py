"""Draws docs/rooms.svg from the import contracts in pyproject.toml; a test fails when the two differ."""

from __future__ import annotations

import ast
import tomllib
from html import escape

from core.domain.settings import PROJECT

PICTURE = PROJECT / "docs" / "rooms.svg"
WIDTH, ROW, GAP, SIDE = 860, 34, 6, 130  # pixels
COLOURS = {"ui": "#e8f1fb", "core": "#eef6ee"}


def layers() -> dict[str, list[list[str]]]:
    """The rooms of each package, highest layer first; rooms of one layer do not import each other."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    return {
        one["containers"][0]: [[room.strip(" ()") for room in layer.split("|")] for layer in one["layers"]]
        for one in contracts
        if one["type"] == "layers"
    }


def holds(package: str, room: str) -> str:
    """What lives in a room: the first line of its docstring."""
    source = (PROJECT / package / room / "__init__.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").split("\n", 1)[0]


def picture() -> str:
    """The rooms as an SVG: a row for each layer, each importing only rows below it."""
    known, parts, top = layers(), [], 8
    for package in ("ui", "core"):
        for layer in known[package]:
            text = holds(package, layer[0]) if len(layer) == 1 else ", ".join(layer)
            name = f"{package}/{layer[0]}" if len(layer) == 1 else f"{package}/ a page each"
            parts.append(
                f'<rect x="8" y="{top}" width="{WIDTH - 16}" height="{ROW}" rx="5" fill="{COLOURS[package]}"'
                ' stroke="#9aa5ad"/>'
                f'<text x="20" y="{top + 22}" font-weight="600">{escape(name)}</text>'
                f'<text x="{20 + SIDE}" y="{top + 22}" font-size="12">{escape(text)}</text>'
            )
            top += ROW + GAP
        top += 2 * GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}"'
        ' font-family="system-ui, sans-serif" font-size="13" fill="#22262a">'
        f"<title>The rooms: each imports only rows below it</title>{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
