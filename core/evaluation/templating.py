"""Text from Jinja templates: documents, of which HTML is escaped, and the sentences that they share."""

from __future__ import annotations

import re
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.analysis.metrics import titled
from core.domain.format import between, brief, milliseconds, number, p_value
from core.domain.text import one_line
from core.evaluation import finding, statistics

if TYPE_CHECKING:
    from jinja2 import Environment

# Marks of Markdown and of what is added to it: mentions, formulas, emoji codes, addresses that become links.
_MARKS = re.compile(
    r"([\\`*_{}\[\]<>#|~&$!@^]|(?<!\d):(?=\S)|(?<=www)\.|^[-+=]|^\d+[.)](?=\s|$))", re.IGNORECASE
)


def render(template: str, **values: Any) -> str:
    """Return a file of the folder templates filled with `values`; one that ends in .html escapes them all."""
    return _environment().get_template(template).render(values)


def macros(template: str) -> Any:
    """Return the macros of a template, to be given to another one."""
    return _environment().get_template(template).module


def say(name: str, *values: Any) -> str:
    """Return the text of the macro `name`, "template.macro", of the folder templates. Raises LookupError if
    the values lack what it needs.
    """
    from jinja2 import UndefinedError

    template, _, macro = name.partition(".")
    try:
        return str(getattr(macros(f"{template}.txt"), macro)(*values)).strip()
    except UndefinedError as error:
        raise LookupError(f"{name}: {error}") from error


def sentences(name: str, *values: Any) -> list[str]:
    """Return the lines of a macro that has a sentence on each line; see `say`."""
    return lines(say(name, *values))


def lines(text: str) -> list[str]:
    """Return the lines of a text that are not blank."""
    return [line for line in text.split("\n") if line.strip()]


def flat(text: str) -> str:
    """Return a text of other people on one line, so that it stays one sentence."""
    return " ".join(text.split("\n"))


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
        extensions=["jinja2.ext.do"],
    )
    made.filters |= {"md": markdown, "repr": repr, "lines": lines, "flat": flat, "one_line": one_line}
    made.filters["each"] = lambda values, function: list(map(function, values))
    made.globals |= {
        "between": partial(between, signed=True),
        "brief": brief,
        "count": finding.count,
        "ends": finding.ends,
        "listed": finding.listed,
        "milliseconds": milliseconds,
        "number": number,
        "p_value": p_value,
        "percent": "{:.0%}".format,
        "quantity": finding.quantity,
        "rounded": statistics.rounded,
        "share": finding.share,
        "signed": partial(number, signed=True),
        "titled": titled,
    }
    return made
