"""The questions of a built-in corpus that a newcomer can click, with what each is meant to show."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from core.corpus.source import base_of
from core.domain.conversation import turns
from core.domain.errors import BadInput
from core.domain.jsonl import lines
from core.domain.settings import PROJECT
from core.domain.types import Query

_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample question; `shows` says what to look for in the result, `routes` names those it speaks of,
    and `answered` those whose answers.
    """

    id: str
    query: Query
    shows: str
    routes: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()


def question_files(corpus: str, data: Path = PROJECT / "data") -> list[Path]:
    """Return the question files of a built-in corpus and its chunkings; [] for other corpora."""
    corpus = base_of(corpus)
    if not _NAME.fullmatch(corpus):
        return []
    folder = data / corpus
    single = folder / "questions.jsonl"
    return sorted((folder / "questions").glob("*.jsonl")) or ([single] if single.is_file() else [])


def labelled_files(corpus: str, data: Path = PROJECT / "data") -> list[Path]:
    """Return the `question_files`, and further ones that evaluations request by name."""
    own = question_files(corpus, data)
    return [*own, *sorted((data / base_of(corpus)).glob("*_questions.jsonl"))] if own else []


@lru_cache(64)
def samples(corpus: str, data: Path = PROJECT / "data") -> tuple[Sample, ...]:
    """Return the questions marked `"sample": {"order", "shows", "routes", "answered"}`, in that order. Raises
    BadInput that names a broken line.
    """
    found: list[tuple[int, str, Sample]] = []
    for path in labelled_files(corpus, data):
        for number, row in lines(path):
            if not row.get("sample"):
                continue
            where, about = f"{path} line {number}", row["sample"]
            try:
                query = Query(str(row["text"]), turns(row.get("history") or [], where))
                named, answered = (tuple(map(str, about.get(key, ()))) for key in ("routes", "answered"))
                sample = Sample(str(row["id"]), query, str(about["shows"]), named, answered)
                found.append((int(about["order"]), sample.id, sample))
            except (KeyError, TypeError, ValueError) as error:
                how = "a sample needs id, text, sample.order and sample.shows"
                raise BadInput(f"{where}: {how}: {error}") from None
    return tuple(sample for _, _, sample in sorted(found, key=lambda item: item[:2]))
