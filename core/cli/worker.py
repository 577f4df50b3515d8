"""`worker`: this machine works for a Dask scheduler."""

from __future__ import annotations

import click

from core.cli.common import note, output_options
from core.domain.errors import BadInput, Unavailable


@click.command("worker")
@click.argument("scheduler", metavar="SCHEDULER")
@click.option(
    "--workers",
    "count",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Worker processes; one for every two cores is a good start.",
)
@output_options
def worker_(scheduler: str, count: int, as_json: bool) -> int:  # noqa: ARG001 - it writes no document
    """Work for the Dask scheduler at tcp://HOST:PORT or tls://HOST:PORT, until interrupted.

    The corpora in this machine's home folder are searched, so they must equal those of the evaluating
    machine. A worker that is killed is started again, and a scheduler that goes away is waited for. Anyone
    who can reach the scheduler can run code here: read docs/server.md first.
    """
    from core.backends.workers.place import INSTALL, MAX_WORKERS, checked, installed
    from core.domain import settings

    address = checked(scheduler)
    if not 1 <= count <= MAX_WORKERS:
        raise BadInput(f"--workers {count}; give 1 to {MAX_WORKERS}")
    if not installed():
        raise Unavailable(f"Dask is not installed; run: {INSTALL}")
    from core.backends.workers.serve import serve

    note(f"{count} {'worker' if count == 1 else 'workers'} for {address}; Ctrl-C ends it")
    serve(address, count, settings.current())
    return 0
