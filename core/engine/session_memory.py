"""The conversation memory of a run: what it reads from its session and adds to it."""

from __future__ import annotations

from collections.abc import Sequence

from core.domain.types import Remembered, Run, Turn
from core.store import Store


def gather(stored: Sequence[Remembered], history: Sequence[Turn]) -> tuple[Remembered, ...]:
    """All that was said before a question, oldest first: what is remembered, then the turns given with it.

    A turn that is remembered and given too counts as given: it was said just before.
    """
    given = {(turn.role, turn.text) for turn in history}
    return (
        *(turn for turn in stored if (turn.role, turn.text) not in given),
        *(Remembered("", number, turn.role, turn.text) for number, turn in enumerate(history, 1)),
    )


def keep(store: Store, session: str, run: Run) -> None:
    """Remember of a finished run the question and the first answer, each once. Raises as Store.remember."""
    answer = next((r.answer for r in run.results if r.answer and r.answer.strip()), None)
    turns = [Turn("user", run.query.text)]
    store.remember(session, turns if answer is None else [*turns, Turn("assistant", answer)], run=run.id)


def keep_answer(store: Store, run: Run) -> None:
    """Remember an answer that was written after the run, unless the conversation has gone on since.

    Raises as Store.recall and Store.remember.
    """
    session = run.settings.get("session")
    if isinstance(session, str) and session:
        stored = store.recall(session)
        if stored and stored[-1].run == run.id:
            keep(store, session, run)
