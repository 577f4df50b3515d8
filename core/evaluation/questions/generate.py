"""Generates questions with labels: passages are drawn, spread evenly over documents and topics, questions
written about them, checked, and kept.
"""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from core.backends import calibrations
from core.corpus.corpus import Corpus
from core.domain.errors import BadInput, Cancelled, ModelFailed, ModelTimedOut, Unavailable
from core.evaluation.questions import question_file
from core.evaluation.questions.question_file import Line
from core.evaluation.questions.write import KINDS, Drawn, Dropped, Kind, Writer, terms

if TYPE_CHECKING:
    from core.engine.engine import Engine


LEAST_WORDS = 15  # in a passage: with fewer there is nothing to ask
CLUSTERS = 24  # of documents, by what they are about
SAMPLE = 20_000  # documents that are clustered
# Letters with digits (LP-4098, E1203, v2.1), a number of five digits or more, or words joined by _ or ::.
_IDENTIFIER = re.compile(
    r"\b(?=[\w.-]*\d)(?=[\w.-]*[A-Z])[A-Z0-9][\w-]*(?:\.\w+)*\b|\b\d{5,}\b|\b\w+(?:_\w+)+\b|\b\w+(?:::\w+)+\b"
)


def passages(corpus: Corpus, seed: int) -> Iterator[Drawn]:
    """Yield the passages of a corpus in the order in which they are asked about: one of each cluster of
    documents in turn, of each document once before any comes twice; equal texts once.

    BadInput where no passage has LEAST_WORDS words.
    """
    draw = random.Random(seed)
    found = _documents(corpus)
    if not found:
        raise BadInput(f"corpus {corpus.name}: no passage has {LEAST_WORDS} words or more to ask about")
    names = sorted(found)
    draw.shuffle(names)
    for rows in found.values():
        draw.shuffle(rows)
    groups = _grouped(corpus, names, found, seed)
    while any(groups):
        for group in groups:
            if not group:
                continue
            name = group.pop(0)
            row = found[name].pop()
            if found[name]:
                group.append(name)
            passage = corpus.passages([row])[0]
            yield Drawn(row, passage, identifier(passage.text))


def identifier(text: str) -> str:
    """Return the longest of the identifiers in a text, the first of equally long ones, or "" if it does not
    exist.
    """
    return max((one[0] for one in _IDENTIFIER.finditer(text)), key=len, default="")


def _documents(corpus: Corpus) -> dict[str, list[int]]:
    """Return the rows of each document whose passages say enough, each text once."""
    seen: set[str] = set()
    found: dict[str, list[int]] = {}
    for row, passage, _ in corpus.everything():
        plain = " ".join(passage.text.split()).casefold()
        if plain.count(" ") + 1 < LEAST_WORDS or plain in seen:
            continue
        seen.add(plain)
        found.setdefault(passage.doc_id, []).append(row)
    return found


def _grouped(
    corpus: Corpus, names: Sequence[str], found: Mapping[str, Sequence[int]], seed: int
) -> list[list[str]]:
    """Return the documents in clusters by the vector of one passage of each, the order inside kept."""
    import faiss

    if len(names) <= CLUSTERS:
        return [[name] for name in names]
    vectors = np.stack([corpus.vectors([found[name][0]])[0] for name in names[:SAMPLE]])
    means = faiss.Kmeans(
        vectors.shape[1], CLUSTERS, niter=10, seed=seed, min_points_per_centroid=1, verbose=False
    )
    means.train(vectors)
    nearest = means.index.search(vectors, 1)[1][:, 0]
    groups: dict[int, list[str]] = {}
    for at, name in enumerate(names):
        groups.setdefault(int(nearest[at]) if at < len(nearest) else at % CLUSTERS, []).append(name)
    return [groups[at] for at in sorted(groups)]


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
        writer.before[line["id"]] = terms(line["text"], corpus)
    with question_file.changed(out) as lines:  # before the first minute is spent: can it be written?
        found.lines = list(lines)
    _fill(writer, found, out, count, passages(corpus, seed), kinds, progress)
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
