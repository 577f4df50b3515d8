"""Judgements that are given on the page: stored at one click, and taken back at the next."""

from __future__ import annotations

from collections.abc import Callable

from core.domain.types import Passage, Run
from core.evaluation.labels import run_labels
from core.evaluation.labels.run_labels import Kept, Report
from core.store import Store
from ui.app import account, outcome, state
from ui.components import complaint


def expected(run: Run, passage: Passage, key: str, label: str) -> None:
    """Draw the button that grades a passage as answering the run's question."""
    _button(run, label, key, lambda store: run_labels.mark(store, run, complaint.who(), passage=passage))


def right(run: Run, route: str, answer: str) -> None:
    """Draw the button that accepts an answer as right."""
    key = f"right:{route}"
    _button(run, "Right", key, lambda store: run_labels.mark(store, run, complaint.who(), answer=answer))


def wrong(run: Run, route: str) -> None:
    """Draw the button that reports an answer as wrong."""
    name, report = run_labels.complaint_set(run.corpus), Report(run, route, "wrong answer", complaint.who())
    _button(run, "Wrong", f"wrong:{route}", lambda store: run_labels.report(store, name, report))


def last(run: Run) -> None:
    """Draw what was stored last for this run, with its Undo."""
    outcome.draw(f"why:{run.id}", "why_undo")


def _button(run: Run, label: str, key: str, judge: Callable[[Store], Kept]) -> None:
    def work() -> outcome.Outcome:
        kept = judge(state.store())
        return complaint.saved(kept, f"Saved in label set {kept.set}.")

    outcome.button(label, f"why:{run.id}", work, f"why_{key}", **account.needs("label"))
