"""A route is a plain function over traced steps; this turns it into a `Route` others can list and run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
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
    """A retrieval route: its declaration, which decorates a function `(do, parameters) -> Answer`.

    The function's module gives the name, the first line of its docstring the summary.
    """

    title: str
    _: KW_ONLY
    family: Family
    paper: str | None = None
    needs: Sequence[Need] = ()
    # by (parameter, its value): a route is not held back for what it does not use
    needs_if: Mapping[tuple[str, Any], Need] = field(default_factory=dict)
    uses: Sequence[Need] = ()  # what it works without, but better or further with
    decides: Sequence[Decision] = ()  # the model's judgements that it goes by, each calibrated for a model
    first: bool = False  # among those that a first visit runs
    measured: str = ""  # what one has to know before spending on it: its summary ends with that
    prepared: Sequence[Need] = ()  # what it makes while a question waits, where it was not made before
    embeds: bool = True  # whether it uses vectors, and so has the parameter `embedder`
    external: bool = False  # a pipeline that is not ours: only what it replies is known of it
    broken: str = ""  # why it cannot run, whatever there is
    name: str = ""
    summary: str = ""
    parameters: tuple[Parameter, ...] = ()
    function: Callable[..., Answer] = field(default=lambda *_: Answer(()), repr=False)

    def __call__(self, function: Callable[..., Answer]) -> Route:
        """Return the route of a function that was declared so."""
        model = Need.LLM in (*self.every_need, *self.uses)
        further = (*([MODEL] if model else ()), *([WHOSE] if self.embeds else ()))
        return replace(
            self,
            name=function.__module__.rsplit(".", 1)[-1],
            summary=f"{(inspect.getdoc(function) or '').split(chr(10), 1)[0]} {self.measured}".strip(),
            parameters=(*_parameters(function), *further),
            function=function,
        )

    def __hash__(self) -> int:
        return hash(self.name)

    def needed(self, parameters: Mapping[str, Any]) -> tuple[Need, ...]:
        """Return the needs of a run with these parameters."""
        also = (need for (name, value), need in self.needs_if.items() if parameters[name] == value)
        return tuple(dict.fromkeys((*self.needs, *also)))

    @property
    def every_need(self) -> tuple[Need, ...]:
        """Return the needs of any run, whatever its parameters."""
        return tuple(dict.fromkeys((*self.needs, *self.needs_if.values())))

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
        return self.function(do.asking(query), **given)


route = Route  # as a decorator


def _parameters(function: Callable[..., Answer]) -> tuple[Parameter, ...]:
    """Return the arguments of a route's function after its steps. A text in an annotation is the help."""
    hints = get_type_hints(function, include_extras=True, localns={"Steps": object})
    specs = []
    for name, argument in list(inspect.signature(function).parameters.items())[1:]:
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
