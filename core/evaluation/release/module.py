"""A chosen route as a Python module, which answers questions with the code that was measured."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from pprint import pformat
from typing import TYPE_CHECKING, Any

from core.domain import people
from core.domain.errors import BadInput
from core.routes.registry import pick

if TYPE_CHECKING:
    from core.engine.engine import Engine

_TEMPLATE = '''"""{title}, on corpus {corpus}: {purpose}.

Written by RouteScope. Keep it beside a checkout of RouteScope, or put the checkout on PYTHONPATH: it imports
`core` and asks the same engine that the pages, `ask` and `eval` ask.

    python {file} "a question"
"""

from __future__ import annotations

import json
import logging
import sys
from functools import cache

from core.engine.engine import Engine
from core.engine.request import Request
from core.domain.errors import Unavailable
from core.domain.settings import current
from core.domain.types import AnswerStyle, Query, RouteResult, Turn

CORPUS = {corpus!r}
FINGERPRINT = {fingerprint!r}  # the state of the corpus that the route was measured on
ROUTE = {route!r}
PARAMETERS = {parameters}
EVIDENCE = {evidence!r}  # P(Yes) of evidence below which no answer is written; None: as the settings say


@cache
def engine() -> Engine:
    """The engine of this process, with models and indexes as the settings name them."""
    opened = Engine(current())
    now = opened.corpus(CORPUS).fingerprint
    if now != FINGERPRINT:
        logging.getLogger(__name__).warning(
            "corpus %s has changed since this route was measured: %s then, %s now", CORPUS, FINGERPRINT, now
        )
    return opened


def ask(question: str, history: tuple[Turn, ...] = (), *, answer: bool = False) -> RouteResult:
    """The route's hits, best first, and with `answer` its text and citations.

    Raises Unavailable with the reason where the route cannot run or did not end well.
    """
    settings = current()
    style = AnswerStyle(
        settings.answer_by, settings.answer_order, settings.answer_evidence if EVIDENCE is None else EVIDENCE
    )
    run = engine().ask(
        Request(
            Query(question, history), CORPUS, (ROUTE,), {{ROUTE: PARAMETERS}}, answers="all" if answer else
            "none", timing="isolated", style=style, stored=False,
        )
    )
    result = run.results[0]
    if result.status != "ok":
        raise Unavailable(f"{{ROUTE}}: {{result.status}}: {{result.error}}")
    return result


if __name__ == "__main__":
    found = ask(" ".join(sys.argv[1:]))
    json.dump(
        [{{"id": hit.passage.id, "title": hit.passage.title, "score": hit.score}} for hit in found.hits],
        sys.stdout,
        indent=1,
    )
'''
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
    return _TEMPLATE.format(
        title=_PLAIN.sub(" ", chosen.title),
        purpose=_PLAIN.sub(" ", purpose),
        file=f"{stem}.py",
        corpus=opened.name,
        fingerprint=opened.fingerprint,
        route=chosen.name,
        parameters=pformat(dict(chosen.settle(parameters or {})), width=100),
        evidence=evidence,
    )
