"""The command line, `python -m core` or `routescope`: modules of commands, loaded when asked for.

Every error becomes one line and an exit code. May import all of `core`; nothing imports it.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import click

from core.domain import process_setup
from core.domain.errors import BadInput, RouteScopeError, describe, shortened
from core.domain.program import COMMAND, version

OK, FAILED, BAD_INPUT = 0, 1, 2
# A command or group of commands as its module declares it: name, and the first sentence of its help.
_DECLARED = re.compile(
    r'^@(?:command|click\.group)\("([a-z-]+)"(?:, [a-z_]+=[^\n]*)?\)$.*?"""(.+?\.)(?:\s|""")',
    re.MULTILINE | re.DOTALL,
)


@cache
def declared_commands() -> dict[str, tuple[str, str]]:
    """Return each command's module and the first sentence of its help. --help loads no command."""
    found = {}
    for file in sorted(Path(__file__).parent.glob("*.py")):
        for one in _DECLARED.finditer(file.read_text(encoding="utf-8")):
            found[one[1]] = f"{__name__}.{file.stem}", " ".join(one[2].split())
    return dict(sorted(found.items()))


class Lazy(click.Group):
    """Loads a command's module when it is asked for, so that the quick commands stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All names, in order."""
        return list(declared_commands())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command, or None if it does not exist."""
        if name not in declared_commands():
            return None
        command = getattr(importlib.import_module(declared_commands()[name][0]), f"{name.replace('-', '_')}_")
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List all commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in declared_commands().items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with the names that are allowed in the message."""
        if args and args[0] not in declared_commands() and not args[0].startswith("-"):
            raise BadInput(f"unknown command {args[0]!r}; known: {', '.join(declared_commands())}")
        return super().resolve_command(ctx, args)


@click.version_option(version(), message="RouteScope %(version)s")
@click.command(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def cli() -> None:
    """Every retrieval route on one question, side by side.

    Every command takes --json (one JSON document on stdout; progress and logs on stderr) and --debug. It
    exits with 0 on success, 1 on a failed run and 2 on bad input, with one line on stderr that says what is
    wrong.
    """


def main(args: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; an error prints one line."""
    given = list(sys.argv[1:] if args is None else args)
    debug = "--debug" in given
    process_setup.settle()
    try:
        code = cli.main(given, prog_name=COMMAND, standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        return _fail("stopped by the user", FAILED, debug=debug)
    except click.UsageError as error:
        where = f"{error.ctx.command_path} --help" if error.ctx else f"{COMMAND} --help"
        return _fail(f"{error.format_message()} (see {where})", BAD_INPUT, debug=debug)
    except (click.ClickException, RouteScopeError) as error:
        code = BAD_INPUT if isinstance(error, click.ClickException | BadInput) else FAILED
        return _fail(str(error), code, debug=debug)
    except BrokenPipeError:
        # Whoever read stdout has gone; without this the interpreter complains again on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # noqa: BLE001 - shown as one line; --debug shows all of it
        hint = "" if debug else " (add --debug for the traceback)"
        return _fail(f"{describe(error)}{hint}", FAILED, debug=debug)
    return code if isinstance(code, int) else OK


def _fail(message: str, code: int, *, debug: bool) -> int:
    from core.domain.text import one_line

    if debug:
        click.echo(traceback.format_exc(), err=True)
    click.echo(f"error: {one_line(shortened(message))}", err=True)
    return code
