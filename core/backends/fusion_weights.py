"""Weights of several lists that were fitted on labels of a corpus: numbers in JSON files, nothing pickled.

`HOME/learned/CORPUS/NAME.json`, made by `core.evaluation.tuning.learn`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from core.backends.trained_files import parse_trained, write_trained
from core.domain import people
from core.domain.errors import BadInput, Unavailable
from core.domain.needs import Need
from core.domain.program import COMMAND

FOLDER, VERSION = "learned", 1
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
# What is known of a passage from one list; all 0 where the list lacks it.
FEATURES = ("score", "listed", "1/rank")
LISTS: Mapping[str, str] = {  # what can be fused, by name: what it is called, in the order of an ablation
    "bm25": "BM25",
    "dense": "dense vectors",
    "maxsim": "MaxSim over tokens",
    "children": "nearest piece",
    "headings": "with headings",
    "contexts": "with written contexts",
    "questions": "written questions",
    "learned_sparse": "learned term weights",
}
Row = tuple[float, ...]  # a number for each of FEATURES


@dataclass(frozen=True, slots=True)
class FittedWeights:
    """A logistic regression over what lists say of a passage, as a weight for each list and feature.

    `weights` has a row for each of `lists`, in the features' own units: a passage's score is the sum of
    weight x feature, and the logistic function of `intercept` plus that the probability that it is relevant.
    `made` says how it was fitted and what it is worth. `fingerprint`: the state of the corpus it is of.
    """

    name: str
    corpus: str
    fingerprint: str
    lists: tuple[str, ...]
    weights: tuple[Row, ...]
    intercept: float
    made: Mapping[str, Any] = field(default_factory=dict)
    version: int = VERSION  # of the file
    features: tuple[str, ...] = FEATURES

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise ValueError(f"version {self.version}, not {VERSION}")
        if self.features != FEATURES:
            raise ValueError(f"its features are {self.features!r}; wanted: {', '.join(FEATURES)}")
        unknown = [name for name in self.lists if name not in LISTS]
        if unknown or not self.lists or len(set(self.lists)) < len(self.lists):
            raise ValueError(f"lists {list(self.lists)}; wanted some of {', '.join(LISTS)}, each once")
        if [len(row) for row in self.weights] != [len(FEATURES)] * len(self.lists):
            raise ValueError(f"weights of another shape than {len(self.lists)} lists x {len(FEATURES)}")
        if not all(map(math.isfinite, (self.intercept, *(one for row in self.weights for one in row)))):
            raise ValueError("a weight is not a finite number")

    def needs(self) -> list[Need]:
        """Return the needs for searching its lists."""
        return needs(self.lists)


def needs(lists: Iterable[str]) -> list[Need]:
    """Return the needs for searching a corpus for `lists`."""
    made = {need.enrichment: need for need in Need if need.enrichment}
    wanted = {**made, "maxsim": Need.TOKENS, "bm25": Need.BM25}
    return [wanted[name] for name in lists if name in wanted]


def folder(home: Path, corpus: str) -> Path:
    """Return the folder of the fitted weights of a corpus."""
    return home / FOLDER / corpus


def names(home: Path, corpus: str) -> list[str]:
    """Return the names of the fitted weights of a corpus, the newest first."""
    files = [path for path in folder(home, corpus).glob("*.json") if NAME.fullmatch(path.stem)]
    newest = sorted(files, key=lambda path: (-path.stat().st_mtime_ns, path.name))
    return [path.stem for path in newest]


def read(home: Path, corpus: str, name: str = "") -> FittedWeights:
    """Return the weights called `name`, or the newest of the corpus for "".

    Raises BadInput for an unknown name; Unavailable if there are no weights, or the file is damaged.
    """
    known = names(home, corpus)
    if not known:
        raise Unavailable(f"no weights are fitted for corpus {corpus}: {how(corpus)}")
    if name and name not in known:
        there = ", ".join(known)
        raise BadInput(f"there are no fitted weights {name[:80]!r} for {corpus}; there are: {there}")
    path = folder(home, corpus) / f"{name or known[0]}.json"
    try:
        stored = parse_trained(FittedWeights, path.read_bytes())
        if stored.corpus != corpus:
            raise ValueError(f"it was fitted for corpus {stored.corpus!r}")
        return replace(stored, name=path.stem)
    except (OSError, ValueError) as error:
        why = f"cannot be used ({str(error)[:200]}); fit them again: {how(corpus)}"
        raise Unavailable(f"the fitted weights {path.stem} of {corpus} {why}") from None


def write(home: Path, fitted: FittedWeights) -> Path:
    """Store weights under their name, atomically replacing earlier ones. Raises BadInput for an invalid
    name.
    """
    people.require("edit")
    path = folder(home, fitted.corpus) / f"{checked(fitted.name)}.json"
    write_trained(fitted, path)
    return path


def remove(home: Path, corpus: str, name: str) -> FittedWeights | None:
    """Delete weights and return them, or None if they were damaged. Raises BadInput if they do not exist."""
    people.require("edit")
    try:
        found = read(home, corpus, checked(name))
    except Unavailable:
        found = None
    (folder(home, corpus) / f"{name}.json").unlink(missing_ok=True)
    return found


def checked(name: str) -> str:
    """`name` if fitted weights may be called so; else BadInput."""
    if not NAME.fullmatch(name):
        allowed = "1 to 80 letters, digits, '.', '_' or '-', the first a letter or a digit"
        raise BadInput(f"fitted weights {name[:80]!r}: give a name of {allowed}")
    return name


def how(corpus: str) -> str:
    """Return instructions for fitting weights."""
    return f"run {COMMAND} fit {corpus}, or fit them on the Tune page"
