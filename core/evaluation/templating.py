"""Reports by Jinja templates: HTML with every text escaped, Markdown by one filter."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

# Marks of Markdown and of what is added to it: mentions, formulas, emoji codes, addresses that become links.
_MARKS = re.compile(
    r"([\\`*_{}\[\]<>#|~&$!@^]|(?<!\d):(?=\S)|(?<=www)\.|^[-+=]|^\d+[.)](?=\s|$))", re.IGNORECASE
)


def render(template: str, **values: Any) -> str:
    """Return a file of the folder templates filled with `values`; one that ends in .html escapes them all."""
    return _environment().get_template(template).render(values)


def markdown(text: str) -> str:
    """`text` on one line with a backslash before what Markdown could take for markup."""
    line = " ".join(text.split())
    return _MARKS.sub(lambda found: f"{found[1][:-1]}\\{found[1][-1]}", line)  # of "1." the dot


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"md": markdown, "repr": repr}
    return made
