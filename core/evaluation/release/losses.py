"""The losses of a measured evaluation, from each question's values or from its figures alone."""

from __future__ import annotations

from core.evaluation import pairs as of_values
from core.evaluation.pairs import EVERY, Loss
from core.evaluation.release.measured import Measured


def losses(measured: Measured, metric: str) -> tuple[Loss, ...] | None:
    """Compare every route with the baseline in every kind of question; None if neither the questions' values
    nor figures by kind are known.
    """
    values = measured.values(metric)
    if values is not None:
        return of_values.losses(values, kinds(measured), measured.baseline)
    found: list[Loss] = []
    for route in measured.routes:
        if route == measured.baseline:
            continue
        rows = {
            mode: (int(row.n), row.delta, row.sd)
            for mode in measured.figures.by_mode
            if (row := measured.against(route, metric, mode)) is not None
        }
        found += of_values.from_figures(rows, route, measured.baseline)
    return tuple(found) or None


def kinds(measured: Measured) -> dict[str, list[str]]:
    """Return the questions of each kind, by the kind's name; all together if none has a kind."""
    modes = measured.modes
    found: dict[str, list[str]] = {mode: [] for mode in sorted(set(modes.values()))}
    for question, mode in modes.items():
        found[mode].append(question)
    if not found and measured.evaluation is not None:
        return {EVERY: list(measured.evaluation.questions)}
    return found
