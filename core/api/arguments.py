"""Plain arguments checked, each error with the argument's name and what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from core.corpus import catalogue, index
from core.corpus.source import Source
from core.domain.conversation import turns
from core.domain.errors import BadInput
from core.domain.filters import Filter, read_filters
from core.domain.format import ProgressBar
from core.domain.pipelines import from_command
from core.domain.settings import Settings
from core.domain.types import Turn
from core.engine.availability import without_model
from core.engine.engine import Engine
from core.routes.registry import add, forget_given, pick, pipelines

Names = str | Sequence[str] | None
Parameters = Mapping[str, Mapping[str, Any]] | None
File = str | PathLike[str]


def text(value: Any, name: str) -> str:
    """Check a non-empty text. Raises BadInput."""
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{name}={value!r}; give a text")
    return value


def conditions(given: Sequence[str]) -> tuple[Filter, ...]:
    """Conditions on metadata, as people write them."""
    if isinstance(given, str) or not all(isinstance(one, str) for one in given):
        raise BadInput(f"filters={given!r}; give a list of texts, such as ['owner~Logistics']")
    return read_filters(given)


def chosen(given: Names, engine: Engine, corpus: str) -> tuple[str, ...]:
    """Return the names of the routes given as "a,b" or a list; for None, those that can run here without a
    language model.
    """
    if given is None:
        return tuple(route.name for route in without_model(engine, corpus))
    return listed(given)


def listed(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the routes given as "a,b" or a list. Raises BadInput for unknown ones."""
    if not isinstance(given, str) and not (
        isinstance(given, Sequence) and all(isinstance(one, str) for one in given)
    ):
        raise BadInput(f"routes={given!r}; give names of routes, as a list or with commas between them")
    return tuple(route.name for route in pick(given))


def own_routes(given: Mapping[str, str] | None, python: File) -> tuple[str, ...]:
    """Register your own pipelines, {name: target}, as routes of this process, and return their names."""
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not all(
        isinstance(one, str) for item in given.items() for one in item
    ):
        raise BadInput(f"own={given!r}; give {{name: target}}, such as {{'my_rag': 'my_rag.py:search'}}")
    interpreter = str(path(python, "python")) if python else ""
    made = [from_command(f"{name}={target}", interpreter) for name, target in given.items()]
    known = pipelines()
    if any(known.get(one.name, one) != one for one in made):
        forget_given()  # a name was given another target, in a notebook's next cell
    for one in made:
        add(one)
    return tuple(one.name for one in made)


def of_routes(given: Parameters) -> dict[str, Mapping[str, Any]]:
    """Parameters by route and name."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(one, Mapping) for one in given.values()):
        raise BadInput(
            f'parameters={given!r}; give {{route: {{name: value}}}}, such as {{"hyde": {{"n": 3}}}}'
        )
    return dict(given)


def conversation(given: Sequence[Turn | Mapping[str, str]]) -> tuple[Turn, ...]:
    """Read the turns before a question, oldest first: Turn objects, or {"role", "text"}."""
    items = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else given
    if isinstance(items, list) and all(isinstance(one, Turn) for one in items):
        return tuple(one for one in items if isinstance(one, Turn))
    return turns(items, "history")


def flag(value: Any, name: str) -> bool:
    """Check True or False. Raises BadInput."""
    if not isinstance(value, bool):
        raise BadInput(f"{name}={value!r}; give True or False")
    return value


def count(value: Any, name: str, *, least: int = 1, most: int | None = None) -> int:
    """Check a whole number within limits. Raises BadInput."""
    if type(value) is not int or value < least or (most is not None and value > most):
        to = f" to {most}" if most is not None else " or more"
        raise BadInput(f"{name}={value!r}; give a whole number, {least}{to}")
    return value


def path(value: Any, name: str) -> Path:
    """Read a path of a file or folder. Raises BadInput."""
    try:
        return Path(fspath(value))
    except TypeError:
        raise BadInput(f"{name}={value!r}; give a path") from None


def paths(value: Any, name: str) -> tuple[Path, ...]:
    """One path or several."""
    several = value if isinstance(value, list | tuple) else (value,)
    return tuple(path(one, name) for one in several)


Progress = Callable[[str, int, int], None]
"""Called with what is done, how many of it are done, and of how many (0: not known)."""


@contextmanager
def reporting(progress: Progress | bool) -> Iterator[Progress]:
    """Whom to tell: the function given, stderr for True, nobody for False; BadInput for others."""
    if progress is True:
        bar = ProgressBar()
        try:
            yield bar
        finally:
            bar.close()
    elif progress is False:
        yield lambda _what, _done, _total: None
    elif callable(progress):
        yield progress
    else:
        raise BadInput(f"progress={progress!r}; give True, False or a function of (what, done, total)")


def source(target: File, name: str | None, settings: Settings, *, known: bool) -> Source:
    """Return the corpus called `target` or, unless it must be `known`, the folder or file of that path.
    Raises BadInput if neither exists.
    """
    given = target if isinstance(target, str) else path(target, "corpus")
    return catalogue.source(given, settings=settings, name=name, known_only=known)


def ensure(origin: Source, settings: Settings, report: Progress) -> None:
    """Build its index unless there is one that is current; what was built stays when it is stopped."""
    there = origin.kind == "table" or catalogue.current(origin.name, settings) is not None
    if there and catalogue.describe(origin.name, settings).state == "ready":
        return
    index.build(
        None,
        origin,
        settings=settings,
        progress=lambda stage, done, total: report(f"{origin.name}: {stage}", done, total),
    )
