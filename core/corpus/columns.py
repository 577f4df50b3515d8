"""Which columns of a file of rows are text, which one is the title, and how that is said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TEXT_COLUMNS = ("text", "content", "body")
NONE = ("none",)  # chosen: no rows are documents
SAMPLED = 200  # rows that are looked at
WORDS, FEW = 8, 4  # a cell of prose has so many on average; fewer are enough under a name that means prose
QUESTIONS = frozenset(
    (
        *("question", "questions", "q", "query", "prompt", "instruction", "faq"),
        *("frage", "fragen", "pregunta", "domanda", "pergunta", "vraag", "fråga", "pytanie"),
    )
)
ANSWERS = frozenset(
    (
        *("answer", "answers", "a", "response", "reply", "completion", "output", "solution"),
        *(
            "antwort",
            "antworten",
            "réponse",
            "reponse",
            "respuesta",
            "risposta",
            "resposta",
            "antwoord",
            "svar",
        ),
        "odpowiedź",
    )
)
PROSE = ANSWERS | {
    *("abstract", "article", "chunk", "comment", "comments", "contents", "context", "description", "details"),
    *("document", "excerpt", "message", "note", "notes", "page_content", "paragraph", "passage", "review"),
    *("summary", "transcript"),
}
TITLES = ("title", "question", "questions", "q", "query", "subject", "headline", "heading", "topic", "name")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # scripts without spaces


@dataclass(frozen=True, slots=True)
class Plan:
    """What the columns of a file are. `text` is empty where its rows are data and no documents.

    `usual`: it has a column of TEXT_COLUMNS. Each row's first one of them counts, and only "title" is one.
    """

    columns: tuple[str, ...]
    text: tuple[str, ...]
    title: str | None = None
    usual: bool = False

    def in_words(self) -> str:
        """What was taken as what."""
        if not self.text:
            return (
                f"a table ({_listed(self.columns)}): one document describes it; with text columns chosen"
                " (--text-columns) its rows are documents"
            )
        rest = [name for name in self.columns if name not in (*self.text, self.title, "id", "_id")]
        said = f"each row is a document, text: {_listed(self.text)}"
        said += f"; title: {self.title}" if self.title in self.columns else ""
        return said + (f"; metadata: {_listed(rest)}" if rest else "")


def plan(columns: Sequence[str], sample: Sequence[Mapping[str, Any]], chosen: Sequence[str]) -> Plan:
    """What the columns of a file are, by those that were `chosen` (in small letters) if it has any of them,
    else by their names and by what some rows have in them.
    """
    names = tuple(dict.fromkeys(columns))
    small = {name.strip().lower(): name for name in reversed(names)}
    if picked := tuple(small[name] for name in chosen if name in small):
        return Plan(names, picked, _title(small, picked))
    if tuple(chosen) == NONE:
        return Plan(names, ())
    if usual := [name for name in TEXT_COLUMNS if name in names]:
        return Plan(names, (usual[0],), "title", usual=True)
    question = next((small[name] for name in small if name in QUESTIONS), None)
    answers = tuple(small[name] for name in small if name in ANSWERS)
    if question is not None and answers:
        return Plan(names, tuple(name for name in names if name in answers), question)
    prose = tuple(name for name in names if _is_prose(name, sample))
    title = _title(small, ())
    text = tuple(name for name in prose if name != title) or prose
    return Plan(names, text, _title(small, text) if text else None)


def _title(small: Mapping[str, str], text: Sequence[str]) -> str | None:
    return next((small[name] for name in TITLES if name in small and small[name] not in text), None)


def _is_prose(name: str, sample: Sequence[Mapping[str, Any]]) -> bool:
    cells = [cell for row in sample if isinstance(cell := row.get(name), str) and cell.strip()]
    if not cells:
        return False
    mean = sum(map(_words, cells)) / len(cells)
    return mean >= (FEW if name.strip().lower() in PROSE else WORDS)


def _words(cell: str) -> float:
    """How many words a cell has; two characters are about one where words are not set apart."""
    cell = cell[:5_000]
    return len(cell.split()) + len(_UNSPACED.findall(cell)) / 2


def _listed(names: Sequence[str]) -> str:
    shown = [name[:40] for name in names[:12]]
    return ", ".join(shown) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
