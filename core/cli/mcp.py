"""`mcp`: tools for coding agents, over stdin and stdout."""

from __future__ import annotations

import click


@click.command("mcp")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def mcp_() -> int:
    """Serve the tools ask, why and evaluations to a coding agent (Model Context Protocol).

    It speaks over stdin and stdout, opens no port, and ends when the agent closes stdin. The tools read what
    is stored here; ask also stores its run. docs/using.md says how to add it to an agent.
    """
    from core.api.mcp_server import server

    server().run("stdio")
    return 0
