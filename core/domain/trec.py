"""TREC run and qrels files that other tools read to the same figures as ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

import numpy as np

from core.domain.ranked import Ranked

_SEPARATING = re.compile(r"[\s%]")


def strict(scores: Sequence[float]) -> list[float]:
    """`scores` made strictly decreasing, each moved as little as a 4-byte float allows.

    trec_eval keeps scores in 4 bytes and breaks ties by passage id, backwards; without this a tie would be
    judged in another order than the one shown.
    """
    largest = np.finfo(np.float32).max / 2  # not an edge of the type, which would leave no room below it
    last, moved = np.float32(largest), np.nan_to_num(np.asarray(scores)).clip(-largest, largest)
    moved = moved.astype(np.float32)
    if not (np.diff(moved, prepend=last) < 0).all():
        for at, score in enumerate(moved):
            moved[at] = last = score if score < last else np.nextafter(last, np.float32(-np.inf))
    return list(map(float, map(str, moved)))


def run_lines(name: str, rankings: Mapping[str, Ranked]) -> Iterator[str]:
    """Lines of a run file: question Q0 passage rank score name; ranks from 1."""
    tag, words = _word(name), dict[str, str]()
    for question, hits in rankings.items():
        asked, scores = _word(question), strict([score for _, score in hits])
        for rank, ((passage, _), score) in enumerate(zip(hits, scores, strict=True), 1):
            word = words.get(passage) or words.setdefault(passage, _word(passage))
            yield f"{asked} Q0 {word} {rank} {score!r} {tag}\n"


def qrels_lines(qrels: Mapping[str, Mapping[str, int]], questions: Iterable[str]) -> Iterator[str]:
    """Lines of a qrels file for `questions`: question 0 passage grade."""
    for question in questions:
        for passage, grade in qrels.get(question, {}).items():
            yield f"{_word(question)} 0 {_word(passage)} {grade}\n"


def _word(text: str) -> str:
    """`text` with white space, which separates columns here, percent-encoded, and so the percent sign."""
    return _SEPARATING.sub(lambda found: quote(found.group()), text)
