"""Generates questions with labels: passages are drawn, questions written about them, checked, and kept."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from core.backends import calibrations
from core.domain.errors import BadInput, Cancelled, ModelFailed, ModelTimedOut, Unavailable
from core.evaluation.questions import checks, draw, question_file
from core.evaluation.questions.draw import Drawn
from core.evaluation.questions.question_file import Line
from core.evaluation.questions.write import KINDS, Dropped, Kind, Writer

if TYPE_CHECKING:
    from core.engine.engine import Engine

MOST = 1_000  # questions at once
FUTILE = 15  # questions dropped one after the other: another passage will not change that
FAILURES = 3  # of the model, one after the other
UNCALIBRATED = 0.5
Progress = Callable[[int, int], None]  # questions kept, of how many


@dataclass(slots=True)
class Generated:
    """The result of generating questions: the file's lines, the numbers dropped by reason, the model's time
    for all of them (seconds, as its calls took when they were made), and the origin of the threshold.
    """

    lines: list[Line]
    dropped: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    calls: int = 0
    threshold: float = UNCALIBRATED
    notes: list[str] = field(default_factory=list)
    ended: str = ""  # why it ended early, "" if all were made

    @property
    def per_question(self) -> float | None:
        """Return the model's seconds per accepted question; the time for dropped questions is included."""
        return self.seconds / len(self.lines) if self.lines else None


def generate(
    engine: Engine,
    corpus_name: str,
    out: Path,
    count: int,
    *,
    seed: int = 0,
    kinds: Sequence[Kind] = KINDS,
    progress: Progress = lambda _done, _of: None,
    cancel: threading.Event | None = None,
) -> Generated:
    """Write `count` questions about a corpus to `out`, the kinds in turn. What is in the file stays, reviews
    too, and counts: the same command goes on where it was stopped, as the model's replies are cached.

    Raises BadInput (nothing to ask about, a file of other questions), Unavailable without a model, and
    ModelFailed or ModelTimedOut after FAILURES in a row. Stopped, it ends with what there is.
    """
    if not 1 <= count <= MOST:
        raise BadInput(f"count {count}; give 1 to {MOST:,}")
    if not kinds or (unknown := [kind for kind in kinds if kind not in KINDS]):
        raise BadInput(f"kind {unknown[0] if kinds else ''!r}; give any of {', '.join(KINDS)}")
    llm = engine.llm()
    if why := llm.status():
        raise Unavailable(f"questions are written by the language model: {why}")
    stop = cancel or threading.Event()
    corpus = engine.corpus(corpus_name)
    known = {line["id"]: line for line in question_file.read(out)} if out.exists() else {}
    calibrated = calibrations.read("evidence", calibrations.subject(llm), engine.settings.home)
    threshold = calibrated.threshold if calibrated else UNCALIBRATED
    writer = Writer(corpus, llm, engine.embedder_of(corpus), threshold, engine.settings.llm_timeout_s, stop)
    found = Generated(list(known.values()), threshold=threshold)
    if calibrated is None:
        found.notes.append(f"P(yes) of {llm.model} is not calibrated here; {threshold:.2f} was used")
    for line in known.values():
        writer.before[line["id"]] = checks.terms(line["text"], corpus)
    with question_file.changed(out) as lines:  # before the first minute is spent: can it be written?
        found.lines = list(lines)
    _fill(writer, found, out, count, draw.passages(corpus, seed), kinds, progress)
    progress(len(found.lines), count)
    return found


def _fill(
    writer: Writer,
    found: Generated,
    out: Path,
    count: int,
    passages: Iterator[Drawn],
    kinds: Sequence[Kind],
    progress: Progress,
) -> None:
    turn, futile, failed = cycle(kinds), 0, 0
    waiting: list[Kind] = []
    recent: Counter[str] = Counter()
    while len(found.lines) < count:
        progress(len(found.lines), count)
        drawn = next(passages, None)
        if drawn is None:
            found.ended = "every passage has been asked about"
            return
        kind = waiting.pop(0) if waiting else next(turn)
        if kind == "exact_identifier" and not drawn.identifier and len(kinds) > 1:
            waiting.append(kind)  # for the next passage
            kind = next(one for one in turn if one != kind)
        before = writer.ms, writer.calls
        try:
            written = writer.write(kind, drawn)
        except Cancelled:
            found.ended = "stopped by the user"
            return
        except Dropped as reason:
            found.dropped[str(reason)] += 1
            recent[str(reason)] += 1
            futile, failed = futile + 1, 0
        except (ModelFailed, ModelTimedOut) as error:
            found.dropped["the model failed"] += 1
            failed += 1
            if failed >= FAILURES:
                raise ModelFailed(f"{failed} calls in a row failed, the last with: {error}") from error
        else:
            futile, failed = 0, 0
            recent.clear()
            line = question_file.line_of(
                written, writer.llm.model, (writer.ms - before[0]) / 1000, writer.calls - before[1]
            )
            with question_file.changed(out) as lines:
                if all(one["id"] != line["id"] for one in lines):
                    lines.append(line)
                found.lines = list(lines)
        found.seconds, found.calls = writer.ms / 1000, writer.calls
        if futile >= FUTILE:
            reasons = ", ".join(f"{number} {why}" for why, number in recent.most_common(3))
            found.ended = (
                f"{futile} questions in a row were dropped ({reasons}): {writer.llm.model} may not be up to"
                f" these documents; try another model, other kinds, or write questions by hand"
            )
            return
