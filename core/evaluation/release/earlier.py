"""The reference of a release comparison: the snapshot of an earlier release, or another evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.errors import BadInput
from core.evaluation import experiment_store
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import decide
from core.evaluation.release.measured import find_evaluation, of_evaluation
from core.evaluation.release.snapshot import Snapshot, read, snapshot

if TYPE_CHECKING:
    from core.domain.settings import Settings


def earlier(settings: Settings, given: str, criteria: Criteria, called: str = "--against") -> Snapshot:
    """Return the snapshot in a file, or what the same criteria choose in an evaluation by its folder or name.

    `called` is how messages name it. Raises BadInput if it is neither, or damaged.
    """
    path = Path(given)
    if path.is_dir() or (not path.exists() and given in experiment_store.names(settings)):
        return _of_evaluation(settings, given, criteria)
    try:
        return read(path.read_bytes(), given)
    except OSError as error:
        known = ", ".join(experiment_store.names(settings)) or "none"
        raise BadInput(
            f"{called} {given!r} cannot be read: {error.strerror or error}; give a snapshot of gate "
            f"--snapshot, or an evaluation by folder or name; saved are: {known}"
        ) from None


def _of_evaluation(settings: Settings, given: str, criteria: Criteria) -> Snapshot:
    measured = of_evaluation(find_evaluation(settings, given))
    return read(snapshot(measured, decide(measured, criteria)), given)
