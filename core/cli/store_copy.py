"""`store`: where runs and labels are kept, as a whole."""

from __future__ import annotations

from dataclasses import asdict

import click

from core.cli.common import emit, note, output_options
from core.cli.text import table


@click.group("store")
def store_() -> None:
    """Copy all that is stored (runs, labels, playlists, presets, memory) into another store."""


@store_.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--replace", is_flag=True, help="Delete what TO holds first.")
@output_options
def copy_(source: str, target: str, replace: bool, as_json: bool) -> int:
    """Copy the store FROM into TO. Each is a file or the address of a PostgreSQL database.

    An address is postgresql://USER@HOST/NAME. Afterwards the rows of both are counted and their checksums
    compared. A copy that was interrupted goes on where it stopped. A store TO that has other data is refused.
    Stop the dashboard before.
    """
    from core.store.copying import copy
    from core.store.files import place_of

    one, two = place_of(source), place_of(target)

    def progress(name: str, done: int, of: int) -> None:
        if done == of or done % 10_000 == 0:
            note(f"{name}: {done:,} of {of:,}")

    found = copy(one, two, replace=replace, progress=progress)
    rows = [(c.table, f"{c.rows:,}", f"{c.new:,}", c.sha256[:16]) for c in found]
    emit(
        {"from": str(one), "to": str(two), "tables": [asdict(c) for c in found]},
        lambda: (
            f"{table(('table', 'rows', 'new', 'sha256'), rows)}\nCopied {one} to {two}; counts and checksums "
            "are equal"
        ),
        as_json=as_json,
    )
    return 0
