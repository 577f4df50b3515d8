"""Writes docs/cli.md from the commands themselves; a test fails when the two differ."""

from __future__ import annotations

from collections.abc import Iterator

import click

from core.cli import cli
from core.domain.settings import PROJECT

PAGE = PROJECT / "docs" / "cli.md"
HEAD = """# Command line

Written by `python -m scripts.cli_docs` from the commands' own help.

`--json` writes exactly one JSON document to stdout; progress, warnings and errors go to stderr. A command
exits with 0 on success, 1 on a failed run and 2 on bad input; an error is one line that begins with `error:`.
"""


def page() -> str:
    """The whole page."""
    root = click.Context(cli, info_name="python -m core", **cli.context_settings)
    parts = [HEAD]
    for command, context in commands(cli, root):
        context.max_content_width = context.terminal_width = 100
        parts.append(f"## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """Every command below `group` with its context, in order."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            raise LookupError(f"{name} is listed and not there")
        inner = click.Context(command, info_name=name, parent=context)
        yield command, inner
        if isinstance(command, click.Group):
            yield from commands(command, inner)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
