"""All routes: the `Route` objects of the modules in this package, and the user's own pipelines."""

from __future__ import annotations

import importlib
import pkgutil
from collections import UserDict
from collections.abc import Mapping, Sequence
from functools import cache

from core.backends.embedder import INT8, MINILM
from core.backends.named_models import named, of_kind
from core.domain.errors import BadInput
from core.domain.models import AT, PARAMETER
from core.domain.models import NAME as NAMED_MODEL
from core.domain.pipelines import NAME, Door, Pipeline, from_settings
from core.domain.settings import Settings, settings_file
from core.routes.declare import EMBEDDER, MODEL, Route

_set: dict[str, tuple[Pipeline, str]] = {}  # of the settings file: by name, with what is wrong with it
_given: dict[str, Pipeline] = {}  # of this process' command line, which go first
_models: set[str] = set()  # of the tables [models.NAME]
_problems: list[str] = []
_embedders: list[str] = []  # of the settings file


@cache
def ours() -> Mapping[str, Route]:
    """Return this project's routes by name: the `Route` objects of the modules in `core.routes`."""
    import core.routes as package

    found: dict[str, Route] = {}
    for module in pkgutil.iter_modules(package.__path__):
        for value in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
            if isinstance(value, Route):
                found[value.name] = value
    return dict(sorted(found.items()))


class Routes(UserDict[str, Route]):
    """Routes by name. `NAME@MODEL` is one, too, for a route that asks a model and a table [models.MODEL];
    so is `NAME@EMBEDDER` for a route that uses vectors.
    """

    def __missing__(self, name: str) -> Route:
        own, at, which = str(name).partition(AT)
        route: Route = self.data[own]
        if at and which in _models and MODEL in route.parameters:
            return route.variant(PARAMETER, which)
        if not at or _no_embedder(route, which):
            raise KeyError(name)
        return route.variant(EMBEDDER, which)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except KeyError:
            return False


def _no_embedder(route: Route, which: str) -> str:
    """Why there is no variant of a route by an embedder called `which`; "" if there is one."""
    if not route.embeds:
        return f"route {route.name} uses no vectors, so it has no embedder"
    if which not in _embedders and named(which, "embedder") is None and which not in (*MINILM, INT8):
        known = ", ".join([*_embedders, MINILM[0], *(model.name for model in of_kind("embedder"))])
        return f"no embedder {which!r}; known: {known}"
    return ""


@cache
def routes() -> Mapping[str, Route]:
    """Every route by name: ours, then the user's own pipelines; see `Routes`."""
    from core.routes.external import route_of

    ours.cache_clear()
    own = {name: route_of(pipeline, broken) for name, (pipeline, broken) in _set.items()}
    own |= {name: route_of(pipeline) for name, pipeline in _given.items()}
    return Routes({**ours(), **dict(sorted(own.items()))})


def pipelines() -> Mapping[str, Pipeline]:
    """Return the user's own pipelines by name, including those that cannot be called."""
    return {**{name: pipeline for name, (pipeline, _) in _set.items()}, **_given}


def problems() -> tuple[str, ...]:
    """Describe the tables of the settings file that cannot become routes, one sentence each."""
    return tuple(_problems)


def use(settings: Settings) -> None:
    """Replace the pipeline routes by those of the settings file. An invalid table becomes a route that
    reports why it cannot run; a table whose name no route can have becomes a problem.
    """
    found: dict[str, tuple[Pipeline, str]] = {}
    wrong = []
    beside = settings_file().parent
    for name, given in settings.external.items():
        if not NAME.fullmatch(name) or name in ours():
            why = "is the name of a route of RouteScope" if name in ours() else "cannot be a route's name"
            wrong.append(f"[external.{name}]: {name!r} {why}; choose another")
            continue
        try:
            found[name] = from_settings(name, given, beside), ""
        except BadInput as error:
            door: Door = "http" if given.url is not None else "function"
            target = given.url or given.function or ""
            found[name] = Pipeline(name, door, target, title=given.title, k=given.k), str(error)
    models = {name for name in settings.models if NAMED_MODEL.fullmatch(name)}
    wrong += [
        f"[models.{name}]: {name!r} cannot be a model's name; use letters, digits, _ and -"
        for name in settings.models.keys() - models
    ]
    services = [*settings.embedders]
    if found != _set or wrong != _problems or models != _models or services != _embedders:
        _models.clear()
        _models.update(models)
        _set.clear()
        _set.update(found)
        _problems[:] = wrong
        _embedders[:] = settings.embedders
        routes.cache_clear()


def add(pipeline: Pipeline) -> None:
    """Register a pipeline as a route for this process. Raises BadInput if its name is taken."""
    if pipeline.name in ours():
        raise BadInput(
            f"--route {pipeline.name}: {pipeline.name!r} is the name of a route of RouteScope; choose another"
        )
    if pipeline.name in _given and _given[pipeline.name] != pipeline:
        raise BadInput(f"--route {pipeline.name} is given twice; give each pipeline a name of its own")
    _given[pipeline.name] = pipeline
    routes.cache_clear()


def forget_given() -> None:
    """Drop the routes that `add` made."""
    _given.clear()
    routes.cache_clear()


def pick(names: str | Sequence[str]) -> list[Route]:
    """Return the named routes ("all", "a,b" or a list) in the order given. Raises BadInput, listing the known
    ones, for an unknown name.
    """
    known = routes()
    wanted = names.split(",") if isinstance(names, str) else list(names)
    wanted = [name.strip() for name in wanted if name.strip()]
    if wanted == ["all"]:
        return list(known.values())
    if not wanted:
        raise BadInput(f"no route given; known: all, {', '.join(known)}")
    for name in wanted:
        own, at, which = name.partition(AT)
        if name not in known and own in known and at:
            route, there = known[own], ", ".join(sorted(_models)) or "none"
            problems = [] if MODEL in route.parameters else [f"route {own} asks no language model"]
            if not problems:
                problems.append(f"the settings file has no table [models.{which}]; it has: {there}")
            problems.append(_no_embedder(route, which))
            raise BadInput(f"{name!r} is not a route: {'; '.join(problems)}")
        if name not in known:
            raise BadInput(f"unknown route {name!r}; known: all, {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(wanted)]
