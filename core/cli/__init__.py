"""The command line, `python -m core` or `routescope`: a module for each command, loaded when asked for.

Every error becomes one line and an exit code. May import all of `core`; nothing imports it.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from core.domain import process_setup
from core.domain.errors import BadInput, RouteScopeError, describe, shortened
from core.domain.program import COMMAND, version

OK, FAILED, BAD_INPUT = 0, 1, 2
# name -> module of core.cli that has it under the same name, with an underscore at its end
OWN = (
    "ask audit calibrate corpora demo diff doctor fit gaps gate hubs labels matrix models module questions "
    "raft routes serve sweep traffic"
)
COMMANDS = {
    **{name: name for name in OWN.split()},
    "audit-access": "audit_access",
    "eval": "evaluate",
    "export": "imports",
    "import": "imports",
    "index": "corpora",
    "mcp": "serve",
    "memory": "store",
    "sessions": "store",
    "store": "store",
    "worker": "serve",
}


class Lazy(click.Group):
    """Loads a command's module when it is asked for, so that the quick commands stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All names, in order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command, or None if it does not exist."""
        if name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(f"core.cli.{COMMANDS[name]}"), f"{name.replace('-', '_')}_")
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with the names that are allowed in the message."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise BadInput(f"unknown command {args[0]!r}; known: {', '.join(sorted(COMMANDS))}")
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
