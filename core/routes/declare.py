"""A route is a plain function over traced steps; this turns it into a `Route` others can list and run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from core.backends.calibrations import Decision
from core.domain.errors import BadInput
from core.domain.models import AT, PARAMETER
from core.domain.needs import Family, Need
from core.domain.parameters import named
from core.domain.types import Answer, Query

if TYPE_CHECKING:
    from core.steps import Steps

EMBEDDER = "embedder"  # the parameter that says whose vectors a route uses
OF_ENGINE = (EMBEDDER, PARAMETER)  # parameters that the engine reads, not the function


@dataclass(frozen=True, slots=True)
class Parameter:
    """A keyword argument of a route: bounds and help are in its annotation, the rest in the signature."""

    low: float | None = None
    high: float | None = None
    help: str = ""
    # the argument of a step that it sets ("k", "weights", "low", "floor"), or "alpha": the second weight of
    # two, of which the first is 1 - alpha; which parameter set what of a stored step is in `Span.set_by`
    tunes: str = ""
    cosine: bool = False  # a limit on cosines: another embedder needs another value
    name: str = ""
    type: type = str
    default: Any = ""
    choices: tuple[str, ...] = ()  # of a Literal

    def read(self, value: Any, owner: str) -> Any:
        """Convert `value` (text or typed) to this parameter's type. Raises BadInput with what is allowed."""
        if self.choices:
            allowed = "one of " + ", ".join(self.choices)
            if value in self.choices:
                return value
        elif self.type is bool:
            allowed, said = "true or false", str(value).lower()
            if said in ("true", "1", "yes", "on", "false", "0", "no", "off"):
                return said in ("true", "1", "yes", "on")
        else:
            allowed = "a whole number" if self.type is int else "a number"
            if self.low is not None and self.high is not None:
                allowed += f" from {self.low:g} to {self.high:g}"
            with suppress(ValueError):
                found = self.type(str(value))
                if self.low is None or self.high is None or self.low <= found <= self.high:
                    return found
        raise BadInput(f"parameter {owner}.{self.name}: {value!r} is not allowed; expected {allowed}")


Share = Annotated[float, Parameter(0, 1)]
MODEL = Parameter(
    name=PARAMETER, help="chat model: NAME of a table [models.NAME] of the settings file; empty: the default"
)
WHOSE = Parameter(
    name=EMBEDDER, help="embedder whose vectors it uses, one that the corpus has; empty: the corpus' own"
)


@dataclass(frozen=True, slots=True)
class Route:
    """A retrieval route: its function with its declaration."""

    name: str
    title: str
    family: Family
    summary: str
    paper: str | None
    needs: tuple[Need, ...]
    parameters: tuple[Parameter, ...]
    function: Callable[..., Answer]
    needs_if: tuple[tuple[tuple[str, Any], Need], ...] = ()  # ((parameter, its value), need)
    first: bool = False  # among those that a first visit runs
    uses: tuple[Need, ...] = ()  # what it makes use of where it is there, and does without where it is not
    decides: tuple[Decision, ...] = ()  # the model's judgements that it goes by, each calibrated for a model
    external: bool = False  # a pipeline that is not ours: only what it replies is known of it
    broken: str = ""  # why it cannot run, whatever there is
    prepared: tuple[Need, ...] = ()  # what it embeds while a question waits, where it was not made before
    embeds: bool = False  # whether it uses vectors, and so has the parameter `embedder`

    def needed(self, parameters: Mapping[str, Any]) -> tuple[Need, ...]:
        """Return the needs of a run with these parameters."""
        also = (need for (name, value), need in self.needs_if if parameters[name] == value)
        return tuple(dict.fromkeys((*self.needs, *also)))

    @property
    def every_need(self) -> tuple[Need, ...]:
        """Return the needs of any run, whatever its parameters."""
        return tuple(dict.fromkeys((*self.needs, *(need for _, need in self.needs_if))))

    def asks(self, parameters: Mapping[str, Any] | None = None) -> bool:
        """Return True if a model may be called with these parameters (None: the defaults), apart from
        answers.
        """
        wanted = {*self.needed(self.settle({}) if parameters is None else parameters), *self.uses}
        return not wanted.isdisjoint((Need.LLM, Need.SELF_RAG))

    def variant(self, parameter: str, value: str) -> Route:
        """Return this route, ROUTE@VALUE, with another default of `parameter`: its model or embedder."""
        own = tuple(replace(one, default=value) if one.name == parameter else one for one in self.parameters)
        return replace(self, name=f"{self.name}{AT}{value}", title=f"{self.title} ({value})", parameters=own)

    def settle(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters with `given` over the defaults, checked; an unknown parameter is BadInput."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                names = ", ".join(known) or "none"
                raise BadInput(f"route {self.name} has no parameter {name!r}; it has: {names}")
        return {
            name: parameter.read(given.get(name, parameter.default), self.name)
            for name, parameter in known.items()
        }

    def run(self, query: Query, do: Steps, parameters: Mapping[str, Any]) -> Answer:
        """Call the function; its parameters' values know their names (see `core.domain.parameters`)."""
        given = {name: named(value, name) for name, value in parameters.items() if name not in OF_ENGINE}
        return self.function(query, do, **given)


def route(
    title: str,
    *,
    family: Family,
    paper: str | None = None,
    needs: Sequence[Need] = (),
    needs_if: Mapping[tuple[str, Any], Need] | None = None,
    uses: Sequence[Need] = (),
    decides: Sequence[Decision] = (),
    first: bool = False,
    measured: str = "",
    prepared: Sequence[Need] = (),
    embeds: bool = True,
) -> Callable[[Callable[..., Answer]], Route]:
    """Declare a function `(query, do, *, parameters) -> Answer` a route; its module's name is the route's
    name.

    `needs_if` gives what only a parameter's value needs: a route is not held back for what it does not use.
    `uses` names what it works without, but better or further with; `decides` the judgements of the model
    that it goes by.
    `prepared` names the enrichments that it makes for the found passages while the question waits, where they
    were not made for the corpus. One that `embeds` uses vectors and has the parameter `embedder`.
    `first` puts it among the routes that are chosen until somebody chooses. `measured` is the sentence that
    its summary ends with, where measuring it gave what one has to know before spending on it.
    """

    def declare(function: Callable[..., Answer]) -> Route:
        name = function.__module__.rsplit(".", 1)[-1]
        summary = f"{(inspect.getdoc(function) or '').split(chr(10), 1)[0]} {measured}".strip()
        also = tuple((needs_if or {}).items())
        return Route(
            name,
            title,
            family,
            summary,
            paper,
            tuple(needs),
            (
                *_parameters(function),
                *([MODEL] if {Need.LLM} & {*needs, *(needs_if or {}).values(), *uses} else []),
                *([WHOSE] if embeds else []),
            ),
            function,
            also,
            first,
            tuple(uses),
            tuple(decides),
            prepared=tuple(prepared),
            embeds=embeds,
        )

    return declare


def _parameters(function: Callable[..., Answer]) -> tuple[Parameter, ...]:
    """Return the keyword arguments of a route's function. A text in an annotation is the parameter's help."""
    hints = get_type_hints(function, include_extras=True, localns={"Steps": object})
    specs = []
    for name, argument in inspect.signature(function).parameters.items():
        if argument.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        kind, *notes = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        declared = next((one for one in notes if isinstance(one, Parameter)), Parameter())
        choices = tuple(get_args(kind)) if get_origin(kind) is Literal else ()
        specs.append(
            replace(
                declared,
                name=name,
                help=next((one for one in notes if isinstance(one, str)), declared.help),
                type=str if choices else kind,
                default=argument.default,
                choices=choices,
            )
        )
    return tuple(specs)
