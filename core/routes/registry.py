"""Finds every route: the `Route` objects of the modules beside this one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache

from core.domain.errors import BadInput
from core.routes.declare import Route


@cache
def routes() -> Mapping[str, Route]:
    """Every route by name: the `Route` objects of the modules in `core.routes`."""
    import core.routes as package

    found: dict[str, Route] = {}
    for module in pkgutil.iter_modules(package.__path__):
        for value in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
            if isinstance(value, Route):
                found[value.name] = value
    return dict(sorted(found.items()))


def pick(names: str | Sequence[str]) -> list[Route]:
    """The routes named ("all", "a,b" or a list) in the order given; BadInput lists the known ones."""
    known = routes()
    wanted = names.split(",") if isinstance(names, str) else list(names)
    wanted = [name.strip() for name in wanted if name.strip()]
    if wanted == ["all"]:
        return list(known.values())
    if not wanted:
        raise BadInput(f"no route given; known: all, {', '.join(known)}")
    for name in wanted:
        if name not in known:
            raise BadInput(f"unknown route {name!r}; known: all, {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(wanted)]
