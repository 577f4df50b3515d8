"""Options and output shared by all commands: --json and --debug, one JSON document on stdout, progress on
stderr.
"""

from __future__ import annotations

import json
import math
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from core.domain.errors import BadInput

if TYPE_CHECKING:
    from core.evaluation.options import DeclaredOption
    from core.routes.declare import Route

F = TypeVar("F", bound=Callable[..., Any])
EVERY_S = 20.0  # between two lines of progress where stderr is no terminal


def output_options(function: F) -> F:
    """Add --json (given as `as_json`) and --debug (read by `core.cli.main`)."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
    debug = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
    return as_json(debug(function))


def parameter_options(function: F) -> F:
    """Add --parameter ROUTE.NAME=VALUE as the argument `parameters`."""
    given = click.option(
        "--parameter",
        "parameters",
        multiple=True,
        metavar="ROUTE.NAME=VALUE",
        help="Set a parameter of a route; repeatable.",
    )
    return given(function)


def filter_option(function: F) -> F:
    """Add --filter FIELD=VALUE, given as `filters`."""
    return click.option(
        "--filter",
        "filters",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Find only passages whose document's metadata meets this: = != < > <= >= ~ (contains) !~, or "
        '"FIELD in A|B"; repeatable.',
    )(function)


def model_options(
    model: Any, name: str, made: Callable[..., Any] = dict, *, only: Sequence[str] = (), **defaults: Any
) -> Callable[[F], F]:
    """Add an option for each field of `model` that declares one (or for those in `only`), with other defaults
    where `defaults` has them; the command gets `made(**values)` as `name`.
    """
    from core.evaluation.options import options

    known = {field: one for field, one in options(model).items() if not only or field in only}

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **values: Any) -> Any:
            given = {field: values.pop(field) for field in known}
            return function(*args, **{name: made(**given)}, **values)

        wrapped: Callable[..., Any] = call
        for field, (one, own) in reversed(known.items()):
            default, kind = defaults.get(field, one.default), str(one.type)
            switch = isinstance(default, bool)
            wrapped = click.option(
                own.flags,
                field,
                type=None if switch else _type(kind, own),
                is_flag=switch,
                multiple=kind.startswith("tuple"),
                default=default,
                show_default=default is not None and default is not False and default != (),
                metavar=own.metavar,
                help=own.help,
            )(wrapped)
        return cast("F", wrapped)

    return decorate


def _type(kind: str, own: DeclaredOption) -> click.ParamType[Any, Any]:
    if kind.startswith("Literal"):
        return click.Choice(re.findall(r"'([^']+)'", kind))
    if kind.startswith("int"):
        return (
            click.INT
            if own.least is None
            else click.IntRange(int(own.least), None if own.most is None else int(own.most))
        )
    if kind.startswith("float"):
        return click.FLOAT if own.least is None else click.FloatRange(own.least, own.most)
    return click.STRING


def columns_option(function: F) -> F:
    """Add --columns FIELD=COLUMN,..., given as `columns`: field -> column, {} without it."""

    @wraps(function)
    def call(*args: Any, columns: Sequence[str], **options: Any) -> Any:
        from core.evaluation.question_formats import read_columns

        return function(*args, columns=read_columns(columns), **options)

    return click.option(
        "--columns",
        multiple=True,
        metavar="FIELD=COLUMN,...",
        help="Which columns of the questions mean what: question, answer, relevant (ids of documents or "
        "passages, or texts), grade, id, mode, split, history, answerable.",
    )(cast("F", call))


def pipeline_options(function: F) -> F:
    """Add --route NAME=TARGET, --python and --env; the pipelines are routes of this process, passed by name
    as `own`.
    """

    @wraps(function)
    def call(
        *args: Any, own_routes: Sequence[str], python: str | None, env: Sequence[str], **options: Any
    ) -> Any:
        from core.domain.pipelines import from_command
        from core.routes.registry import add

        if (python or env) and not own_routes:
            raise BadInput(f"--{'python' if python else 'env'} needs --route NAME=FILE.py:FUNCTION")
        made = [from_command(given, python or "", env) for given in own_routes]
        for pipeline in made:
            add(pipeline)
        return function(*args, own=tuple(dict.fromkeys(one.name for one in made)), **options)

    given = click.option(
        "--route",
        "own_routes",
        multiple=True,
        metavar="NAME=TARGET",
        help="Your own pipeline as a route, FILE.py:FUNCTION or http://host:port/path; repeatable.",
    )
    python = click.option(
        "--python",
        metavar="PATH",
        help="The interpreter of --route FILE.py:FUNCTION, or its environment's folder.",
    )
    env = click.option(
        "--env",
        multiple=True,
        metavar="VARIABLE",
        help="An environment variable that --route FILE.py:FUNCTION may see, such as an API key; repeatable.",
    )
    return cast("F", given(python(env(call))))


def worker_options(function: F) -> F:
    """Add --workers N and --scheduler URL, given as `workers`, a Place of core.backends.workers, or None."""

    @wraps(function)
    def call(*args: Any, worker_count: int | None, scheduler: str | None, **options: Any) -> Any:
        from core.backends.workers.place import place

        return function(*args, workers=place(worker_count, scheduler), **options)

    count = click.option(
        "--workers", "worker_count", type=int, metavar="N", help="Use N worker processes of this machine."
    )
    scheduler = click.option(
        "--scheduler", metavar="URL", help="Use the workers of a Dask scheduler, tcp://HOST:PORT or tls://."
    )
    return cast("F", count(scheduler(call)))


def with_own(chosen: Sequence[Route], own: Sequence[str]) -> list[Route]:
    """Return the chosen routes and the given pipelines, each once."""
    from core.routes.registry import pick

    return list(dict.fromkeys([*chosen, *(pick(list(own)) if own else [])]))


def preset_option(help: str) -> Callable[[F], F]:
    """Add --preset NAME as the argument `preset`."""
    return click.option("--preset", metavar="NAME", help=help)


def emit(document: Any, text: Callable[[], str], *, as_json: bool) -> None:
    """Write the one result of a command: `document` as JSON, or `text()` for people.

    JSON is ASCII and has null for NaN: any parser reads it, and no terminal is steered by what it says.
    """
    click.echo(json.dumps(finite(document), indent=1, allow_nan=False) if as_json else text())


def finite(value: Any) -> Any:
    """Replace the numbers that JSON cannot represent by null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def write_new(file: Path, content: bytes) -> None:
    """Write a new file; BadInput if it exists or cannot be written."""
    try:
        with file.open("xb") as target:
            target.write(content)
    except FileExistsError:
        raise BadInput(f"{file} already exists; use another --out") from None
    except OSError as error:
        raise BadInput(f"cannot write --out {file}: {error.strerror or error}") from None


def note(text: str) -> None:
    """Print a message to stderr."""
    from core.cli.text import one_line

    click.echo(one_line(text), err=True)


@contextmanager
def stoppable() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets, to end work at a safe point; a second Ctrl-C interrupts at
    once.
    """
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()
        note("stopping; finished work is saved")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


class ProgressBar:
    """Progress on stderr: tqdm's bar on a terminal, else a plain line now and then and at the end.

    `unit` "B" counts bytes. A new `label` begins a new bar.
    """

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._label = ""
        self._bar: Any = None

    def __call__(self, label: str, done: int, total: int) -> None:
        """`done` of `total` units of `label` are finished."""
        if label != self._label:
            self.close()
            self._label, self._first = label, done
            self._began = self._said = time.monotonic()
        if sys.stderr.isatty():
            self._draw(done, total)
        elif done >= total > 0 or time.monotonic() - self._said >= EVERY_S:
            self._said = time.monotonic()
            of = f" of {self._count(total)}" if total else ""
            note(f"{label}: {self._count(done)}{of} {self._time(done, total)}")

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _draw(self, done: int, total: int) -> None:
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                initial=done,
                desc=self._label,
                unit=self._unit,
                unit_scale=self._unit == "B",
                file=sys.stderr,
                dynamic_ncols=True,
            )
        self._bar.total = total or None
        self._bar.update(done - self._bar.n)
        if done >= total > 0:
            self.close()

    def _count(self, count: int) -> str:
        from core.domain.format import size

        return size(count) if self._unit == "B" else f"{count:,}"

    def _time(self, done: int, total: int) -> str:
        """Estimate the remaining time from the speed since this bar started, excluding earlier work."""
        passed, new = time.monotonic() - self._began, done - self._first
        if done >= total or not total:
            return f"in {passed:.0f} s"
        return f"about {passed / new * (total - done):.0f} s left" if new > 0 else ""
