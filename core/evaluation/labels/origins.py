"""The sources of a label set's questions: the corpus' own, a file, or earlier queries."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from core.corpus import catalogue
from core.domain.errors import BadInput, shortened
from core.domain.types import Query
from core.evaluation import dataset, sets
from core.evaluation.dataset import Question, Written
from core.evaluation.question_formats import column_names
from core.evaluation.question_rows import ENDINGS, rows
from core.store.codec import dumps, to_bytes

if TYPE_CHECKING:
    from core.domain.settings import Settings
    from core.store import Store

NEWEST = 1000  # runs that are looked through for questions
CELL = 200  # characters of a cell in a preview


def of_corpus(corpus: str, settings: Settings) -> tuple[Question, ...]:
    """Return the questions that come with a corpus, of all splits. Raises BadInput if it has none.

    Their labels are not taken over: who judges is not to know them.
    """
    origin = catalogue.source(corpus, settings=settings, known_only=True)
    return sets.read(origin.name, origin.path, split="all").questions


def of_file(name: str, content: bytes, columns: Mapping[str, str] | None = None) -> Written:
    """Read the questions and labels of an uploaded file. Raises BadInput naming the line."""
    with _saved(name, content) as path:
        return dataset.written([path], name=name, columns=columns)


def first_rows(name: str, content: bytes, count: int) -> tuple[list[str], list[dict[str, str]]]:
    """Return the columns of an uploaded file and its first rows. Raises BadInput as `of_file`."""
    with _saved(name, content) as path:
        found = [*rows(path)]
    shown = [{key: shortened(str(cell), CELL) for key, cell in row.items()} for _, row in found[:count]]
    return column_names(found), shown


def keep(name: str, content: bytes, settings: Settings) -> Path:
    """Store an uploaded file of questions in the home folder, so that an evaluation can read it again."""
    digest = hashlib.sha256(content).hexdigest()[:12]
    path = settings.home / "questions" / digest / re.sub(r"[^\w.-]+", "-", Path(name).name)[-80:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@contextmanager
def _saved(name: str, content: bytes) -> Iterator[Path]:
    """Yield the content as a file; errors about it have the name it was uploaded by."""
    ending = Path(name).suffix.lower()
    if ending not in ENDINGS:
        raise BadInput(f"{name!r}: give a file ending in one of {', '.join(ENDINGS)}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"questions{ending}"
        path.write_bytes(content)
        try:
            yield path
        except BadInput as error:
            raise BadInput(str(error).replace(str(path), name)) from None


def of_lines(text: str) -> tuple[Question, ...]:
    """Read pasted questions, one a line; each once."""
    asked = dict.fromkeys(" ".join(line.split()) for line in text.splitlines())
    return tuple(Question(id_of(Query(one)), Query(one)) for one in asked if one)


def about(written: Written) -> list[str]:
    """Describe how a file was read, before its labels are matched to a corpus."""
    some = sum(bool(entries) for entries in written.evidence.values())
    read = f"Read as {written.format}: {len(written.questions):,} questions, {some:,} with labels"
    return [*([read] if written.format else []), *written.remarks]


def of_sessions(store: Store, corpus: str) -> tuple[Question, ...]:
    """Return the questions of a corpus' newest `NEWEST` runs, each with its conversation once, the newest
    first. The id is a hash of both, so it is the same wherever the question is asked again.
    """
    asked = store.asked(corpus, NEWEST)
    return tuple(Question(id_of(query), query) for query in asked if query.text.strip())


def id_of(query: Query) -> str:
    """Return the id of a question that was asked, made of its text and the turns before it."""
    whole = dumps([query.text, *([turn.role, turn.text] for turn in query.history)])
    return "asked-" + hashlib.sha256(to_bytes(whole)).hexdigest()[:12]
