"""The list of saved evaluations: the progress of each, and why it is not finished."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from core.domain.errors import RouteScopeError
from core.evaluation import background, experiment_store
from core.evaluation.journal import JOURNAL, busy

if TYPE_CHECKING:
    from core.analysis.latency_percentiles import Latency
    from core.engine.engine import Engine

State = Literal["finished", "stopped", "under way", "failed", "damaged"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One saved evaluation. `done` of `total` questions were asked, repeated rounds counted too; `failed` are
    results that did not end well. `why` says what ended the last try of this process, or what is damaged.
    """

    name: str
    corpus: str
    split: str
    routes: int
    done: int
    total: int
    state: State
    changed: str  # ISO 8601, UTC
    failed: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected duration of an evaluation: at most `seconds`, without the routes `unknown`, which were
    never measured here.
    """

    seconds: float
    unknown: tuple[str, ...]


def entry(folder: Path) -> Entry:
    """Return an evaluation's entry from its folder, whichever process runs it: finished, stopped or damaged.
    Reads no outcome.
    """
    changed = datetime.fromtimestamp(max(experiment_store.stamp(folder)), UTC).isoformat(timespec="seconds")
    try:
        document = _object(folder / experiment_store.LABELLED)
        spec, questions = document["spec"], len(document["set"]["questions"])
        path = folder / experiment_store.FIGURES
        figures = _object(path) if path.is_file() else {}
        first = _asked(folder)
        below = (*folder.glob("repeat-*"), *folder.glob("chunkings/*"), *folder.glob("chunkings/*/repeat-*"))
        done = first + sum(map(_asked, sorted(below)))
        whole = bool(figures) and not figures["interrupted"] and figures["queries"] == first
        total = questions * int(spec["repeats"]) * (1 + len(spec.get("chunkings") or ()))
        rows = figures.get("routes") or {}
        return Entry(
            folder.name,
            str(spec["corpus"]),
            str(spec["split"]),
            len(rows) or len(spec["routes"]),
            min(done, total),
            done if whole else total,
            "finished" if whole else "stopped",
            changed,
            sum(row["failed"] for row in rows.values()),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return Entry(
            folder.name, "", "", 0, 0, 0, "damaged", changed, why=f"{type(error).__name__}: {error}"[:300]
        )


def now(engine: Engine, found: Entry) -> Entry:
    """Return the entry with what this process knows of it: that it is under way here, or what ended it."""
    try:
        known = background.under_way(engine, found.name)
        folder = experiment_store.place(engine.settings, found.name)
    except RouteScopeError:
        return found
    if known is not None and not known.done:
        return replace(found, done=known.finished, total=known.total, state="under way")
    if found.state in ("stopped", "finished") and busy(folder):
        return replace(found, state="under way", why="another process is running it")
    if known is not None and known.error:
        return replace(found, state="finished" if found.state == "finished" else "failed", why=known.error)
    return found


def medians(found: Sequence[Latency], *, answered: bool) -> dict[str, float]:
    """Each route's median milliseconds over earlier runs in which it gave an answer, or gave none.

    Times measured now go before those of work from the cache or a recording.
    """
    rows = [one for one in found if one.answered == answered and one.at[50] is not None]
    rows.sort(key=lambda one: one.source == "now")
    return {one.key: float(one.at[50] or 0.0) for one in rows}


def estimate(history: Mapping[str, float], routes: Sequence[str], questions: int) -> Estimate:
    """By earlier runs: the sum of the routes' median milliseconds `history`, as if one ran after the other,
    over so many questions. Routes that run together share work, so that all take less.
    """
    known = [history[name] for name in routes if name in history]
    return Estimate(sum(known) * questions / 1000, tuple(name for name in routes if name not in history))


def free_name(wanted: str, taken: Sequence[str]) -> str:
    """Return `wanted` as an allowed name, followed by a number if it is taken."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in wanted)[:70]
    name = kept if experiment_store.NAME.fullmatch(kept) else f"evaluation{kept}"
    numbered = (f"{name}-{n}" if n > 1 else name for n in range(1, len(taken) + 2))
    return next(one for one in numbered if one not in taken)


def _object(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} holds no object")
    return found


def _asked(folder: Path) -> int:
    """Return the finished questions of a journal: its lines after the first, of which each ends in
    a break.
    """
    path = folder / JOURNAL
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        breaks = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    return max(0, breaks - 1)
