"""Commands made from functions: an option for each parameter that declares one, then --json and --debug."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.evaluation.spec import KEY, DeclaredOption, option, options

if TYPE_CHECKING:
    from core.backends.workers.place import WorkPlace

METAVAR = "metavar"  # in the metadata of an argument
JSON = "core.cli.json"  # in a context's meta


def _columns(given: Sequence[str]) -> dict[str, str]:
    from core.evaluation.question_formats import read_columns

    return read_columns(given)


PARAMETERS = option((), "Set a parameter of a route; repeatable.", "ROUTE.NAME=VALUE", "--parameter")
PRESET = option(None, "A preset; --parameter overrides it.", "NAME")
ROUTES = option(None, "Names from `routes`, or all. Default: all that ask no model.", "A,B")
QUESTIONS = option((), "As of `eval`; repeatable.", "FILE")
COLUMNS = option(
    (),
    "Which columns of the questions mean what: question, answer, relevant (ids of documents or passages, or "
    "texts), grade, id, mode, split, history, answerable.",
    "FIELD=COLUMN,...",
    read=_columns,
)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of the fields of a model, as one parameter of a command: `made(**values)`."""

    fields: Mapping[str, tuple[Field[Any], DeclaredOption]]
    made: Callable[..., Any]
    defaults: Mapping[str, Any]


def declared(
    model: Any, made: Callable[..., Any] = dict, *, only: Sequence[str] = (), **defaults: Any
) -> Any:
    """Declare an option for each field of `model` that has one (or for those in `only`), as the default of a
    parameter; `defaults` replace those of the fields.
    """
    known = {name: one for name, one in options(model).items() if not only or name in only}
    return ModelOptions(known, made, defaults)


@dataclass(frozen=True, slots=True)
class _Workers:
    workers: int | None = option(None, "Use N worker processes of this machine.", "N", least=None)
    scheduler: str | None = option(
        None, "Use the workers of a Dask scheduler, tcp://HOST:PORT or tls://.", "URL"
    )


def _place(**given: Any) -> WorkPlace | None:
    from core.backends.workers.place import place

    return place(**given)


WORKERS = declared(_Workers, _place)  # where to work; None: in this process


def argument(metavar: str) -> Any:
    """Declare an argument, as the default of a parameter that is shown as `metavar`."""
    return field(metadata={METAVAR: metavar})


def command(
    name: str, group: click.Group | None = None
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a command of a function, with its docstring as help. A parameter without a default is an argument;
    one with several values is a Sequence.
    """

    def decorate(function: Callable[..., int | None]) -> click.Command:
        params: list[click.Parameter] = []
        models: dict[str, ModelOptions] = {}
        for one in signature(function).parameters.values():
            if isinstance(one.default, ModelOptions):
                models[one.name] = one.default
                for at, (known, own) in one.default.fields.items():
                    default = one.default.defaults.get(at, known.default)
                    params.append(_option(at, str(known.type), default, own))
            elif one.default is Parameter.empty or METAVAR in one.default.metadata:
                params.append(_argument(one))
            else:
                own = one.default.metadata[KEY].named(one.name)
                params.append(_option(one.name, str(one.annotation), one.default.default, own))

        @wraps(function)
        def call(**values: Any) -> int | None:
            for at, model in models.items():
                values[at] = model.made(**{known: values.pop(known) for known in model.fields})
            return function(**values)

        made = click.command(name, params=[*params, *output()])(call)
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def output() -> list[click.Parameter]:
    """Return --json, for `json_asked`, and --debug, which `core.cli.main` reads."""

    def keep(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[JSON] = value

    switch: dict[str, Any] = {"is_flag": True, "expose_value": False}
    return [
        click.Option(["--json"], **switch, callback=keep, help="Write one JSON document to stdout."),
        click.Option(["--debug"], **switch, help="Show the traceback of an error."),
    ]


def json_asked() -> bool:
    """Return True if the command that runs was given --json."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(JSON))


def _argument(one: Parameter) -> click.Argument:
    kind = str(one.annotation)
    return click.Argument(
        [one.name],
        type=_type(kind, DeclaredOption("", least=None)),
        nargs=-1 if kind.startswith("Sequence") else 1,
        required="None" not in kind,
        metavar=None if one.default is Parameter.empty else one.default.metadata[METAVAR],
    )


def _option(name: str, kind: str, default: Any, own: DeclaredOption) -> click.Option:
    """Make the option of a field or a parameter whose annotation is `kind`."""
    switch = kind.startswith("bool")
    read = own.read
    more: dict[str, Any] = {"required": True} if default is MISSING else {"default": default}
    return click.Option(
        [own.flags, name],
        type=None if switch else _type(kind, own),
        is_flag=switch or None,
        multiple=kind.startswith(("tuple", "Sequence", "Mapping")),
        show_default=default is not None and default is not False and default not in (MISSING, "", ()),
        metavar=own.metavar,
        help=own.help,
        callback=None if read is None else lambda _context, _option, value: read(value),
        **more,
    )


def _type(kind: str, own: DeclaredOption) -> click.ParamType[Any, Any]:
    kind = re.sub(r"^(Sequence|tuple)\[", "", kind)
    if kind.startswith("Literal"):
        return click.Choice(re.findall(r"'([^']+)'", kind))
    if kind.startswith("Path"):
        return click.Path(path_type=Path)
    least, most = own.least, own.most
    if kind.startswith("int"):
        return click.INT if least is None else click.IntRange(int(least), most if most is None else int(most))
    if kind.startswith("float"):
        return click.FLOAT if least is None else click.FloatRange(least, most)
    return click.STRING
