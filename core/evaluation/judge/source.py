"""The labels that a judge is compared with: a label set with its guidelines, or the labels of a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from core.domain.errors import BadInput
from core.domain.settings import PROJECT
from core.evaluation import sets
from core.evaluation.labels import desk
from core.evaluation.labels.final import labelled_set

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus
    from core.engine.engine import Engine
    from core.evaluation.dataset import LabelledSet

GUIDELINES = "guidelines.txt"  # next to a corpus' own labels: the instructions of their authors
LONGEST = 20_000  # characters of it that are read as such
GRADED = desk.DEFAULT
BINARY = (
    "Judge the passage on its text alone, not on what you know or where it appears.\n"
    "1: it answers the question or a part of it.\n0: it does not."
)
Of = Literal["label set", "own labels"]


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Labels of people over `corpus`, and the `policy` they followed. `name` is that of the label set or the
    corpus; `warnings` are about the labels.
    """

    of: Of
    name: str
    labelled: LabelledSet
    corpus: Corpus
    policy: str
    warnings: tuple[str, ...] = ()


def of_set(engine: Engine, name: str) -> Labels:
    """Return a label set. Raises BadInput if it does not exist, or nothing of it is graded."""
    if engine.store is None:
        raise BadInput(f"labels are not stored here, so the set {name!r} cannot be read")
    one = desk.load(engine.store, name).set
    corpus = engine.corpus(one.corpus)
    labelled, said = labelled_set(engine.store, name, corpus)
    return Labels("label set", one.name, labelled, corpus, one.guidelines, tuple(said))


def of_corpus(engine: Engine, name: str, folder: Path | None) -> Labels:
    """Return the labels that come with a corpus, of all splits. Raises BadInput if it has none."""
    found = sets.read(name, folder, split="all")
    corpus = engine.corpus(name)
    labelled, said = sets.tie(found, corpus)
    policy = own_policy(name, folder, labelled.relevant_from)
    return Labels("own labels", name, labelled, corpus, policy, tuple(said))


def label_sets(engine: Engine) -> tuple[str, ...]:
    """Return the label sets there are; none if nothing is stored."""
    return tuple(one.name for one in desk.sets(engine.store)) if engine.store is not None else ()


def own_policy(name: str, folder: Path | None, relevant_from: int) -> str:
    """Return guidelines.txt next to a corpus' own questions, or else the usual meaning of the grades."""
    beside = PROJECT / "data" / name if name in sets.BUILT_IN else folder
    if beside is not None and (beside / GUIDELINES).is_file():
        try:
            told = (beside / GUIDELINES).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{beside / GUIDELINES} cannot be read: {error}") from None
        if not 1 <= len(told) <= LONGEST:
            raise BadInput(f"{beside / GUIDELINES}: {len(told):,} characters; give 1 to {LONGEST:,}")
        return told
    return GRADED if relevant_from > 1 else BINARY
