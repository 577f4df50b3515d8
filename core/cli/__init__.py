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
# The first sentence of each command's help: --help loads no command.
COMMANDS = {
    "ask": "Run QUESTION through several routes and compare their hits.",
    "audit": "Measure what the decisions of routes are worth, by asking again with each of them turned.",
    "audit-access": "Test whether text of documents that GROUP may not see gets into the steps of routes.",
    "calibrate": "Measure what the model's yes-or-no judgements are worth, and choose a threshold for each.",
    "corpora": "List every corpus with its size and the state of its index.",
    "demo": "Measure routes on the bundled questions, and watch the gate stop a bad change.",
    "diff": "Show which questions broke and which were fixed from evaluation A to B, and at which step.",
    "doctor": "Check this installation and show a fix for each problem.",
    "eval": "Measure routes on labelled questions: a BEIR folder, or the name of a corpus with questions.",
    "export": "Write stored runs to a file, or an evaluation to a folder for any web server.",
    "fit": "Fit the weights of the route learned_fusion on labelled questions, and measure them.",
    "gaps": "Sort questions that no route answers into gaps (in no document) and misses (not found).",
    "gate": "Decide which route of an evaluation to ship.",
    "hubs": "List hubs, the passages returned for many questions, and those never returned.",
    "import": "Add runs: of a bundle that `export` wrote, or of traces.",
    "index": "Build or refresh the index of a known corpus, a BEIR folder, a folder of documents or a file.",
    "labels": "Label sets: questions, the passages to judge, and the judgements.",
    "matrix": "Measure each way to search with each retriever on the questions of SET.",
    "mcp": "Serve the tools ask, why and evaluations to a coding agent (Model Context Protocol).",
    "memory": "List the conversations that `ask --session NAME` remembers, or the turns of one.",
    "models": "List the known models and whether they are downloaded; `models pull NAME` downloads one.",
    "module": "Write ROUTE as a small Python module that imports `core`, with the code path of `ask`.",
    "questions": "Questions with labels for documents that have none.",
    "raft": "Write training examples (RAFT) from a labelled set: a BEIR folder, or a corpus with questions.",
    "routes": "List every route with its requirements, availability, parameters and source.",
    "serve": "Open the dashboard.",
    "sessions": "List, permanently delete and copy stored runs, or rescue them from a damaged file.",
    "store": "Copy all that is stored (runs, labels, playlists, presets, memory) into another store.",
    "sweep": "Try other values of one or two parameters of a route on the questions of a saved evaluation.",
    "traffic": "Questions that people asked another program, from its traces.",
    "worker": "Work for the Dask scheduler at tcp://HOST:PORT or tls://HOST:PORT, until interrupted.",
}
# The module of core.cli that has a command under its name with an underscore at its end, if named otherwise.
MODULES = {
    "audit-access": "audit_access",
    "eval": "evaluate",
    "export": "imports",
    "import": "imports",
    "index": "corpora",
    "mcp": "serve",
    "memory": "store",
    "sessions": "store",
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
        module = importlib.import_module(f"core.cli.{MODULES.get(name, name)}")
        command = getattr(module, f"{name.replace('-', '_')}_")
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List all commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

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
