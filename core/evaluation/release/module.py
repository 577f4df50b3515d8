"""A chosen route as a Python module, which answers questions with the code that was measured."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from pprint import pformat
from typing import TYPE_CHECKING, Any

from core.domain import people
from core.domain.errors import BadInput
from core.evaluation.templating import render
from core.routes.registry import pick

if TYPE_CHECKING:
    from core.engine.engine import Engine

_PLAIN = re.compile(r"[^\w .,:;()+@%=-]")  # what could end a docstring or hide in one


def module(
    engine: Engine,
    route: str,
    corpus: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    evidence: float | None = None,
    purpose: str = "the route that was chosen",
    file: str = "route.py",
) -> str:
    """Return the source of the module. Raises BadInput for a route, parameter or file name that is not
    allowed.

    Parameters at their defaults are written too, so that a later default changes nothing.
    """
    people.require("release")
    (chosen,) = pick([route])
    if chosen.external:
        raise BadInput(
            f"{chosen.title} is your own pipeline: its code is yours already, there is none to write"
        )
    stem = file.removesuffix(".py")
    if not stem.isidentifier() or keyword.iskeyword(stem):
        raise BadInput(f"module {file!r}: give a name that Python can import, such as route.py")
    if evidence is not None and not 0 <= evidence <= 1:
        raise BadInput(f"evidence={evidence!r}; give 0 to 1")
    opened = engine.corpus(corpus)
    return render(
        "module.py.jinja",
        title=_PLAIN.sub(" ", chosen.title),
        purpose=_PLAIN.sub(" ", purpose),
        file=f"{stem}.py",
        corpus=opened.name,
        fingerprint=opened.fingerprint,
        route=chosen.name,
        parameters=pformat(dict(chosen.settle(parameters or {})), width=100),
        evidence=evidence,
    )
