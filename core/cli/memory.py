"""`memory`: listing and deleting remembered conversations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from core.cli.common import emit, output_options
from core.cli.sessions import open_store
from core.cli.text import table
from core.domain.errors import BadInput


@click.command("memory")
@click.option("--session", metavar="NAME", help="List the turns of this session.")
@click.option("--forget", is_flag=True, help="Permanently delete the session; its runs stay.")
@click.option(
    "--turn", "turns", type=int, multiple=True, metavar="N", help="Delete only this turn; repeatable."
)
@output_options
def memory_(session: str | None, forget: bool, turns: Sequence[int], as_json: bool) -> int:
    """List the conversations that `ask --session NAME` remembers, or the turns of one."""
    if forget and session is None:
        raise BadInput("--forget needs --session NAME")
    if turns and not forget:
        raise BadInput("--turn N needs --forget")
    store = open_store()
    if session is None:
        rows = store.sessions_remembered()
        emit(
            {"sessions": [asdict(row) for row in rows]},
            lambda: (
                table(("session", "turns", "last (UTC)"), [(r.session, r.turns, r.last[:16]) for r in rows])
                if rows
                else "No conversation is remembered; use ask --session NAME"
            ),
            as_json=as_json,
        )
    elif forget:
        count = store.forget(session, turns or None)
        emit(
            {"session": session, "forgotten": count},
            lambda: f"Deleted {count} turns of session {session}",
            as_json=as_json,
        )
    else:
        said = store.recall(session)
        emit(
            {"session": session, "turns": [asdict(turn) for turn in said]},
            lambda: (
                table(
                    ("turn", "who", "time (UTC)", "text"),
                    [(t.number, t.role, t.created[:16], t.text) for t in said],
                    right=(0,),
                )
                if said
                else f"Session {session} has no remembered turns"
            ),
            as_json=as_json,
        )
    return 0
