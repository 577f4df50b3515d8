"""A stress set for embeddings, modelled on LIMIT: every pair of some documents answers a question of its own.

Source: Weller et al. 2025, "On the Theoretical Limitations of Embedding-Based Retrieval" (arXiv:2508.21038):
vectors of few dimensions cannot rank every pair first, while the words of the questions can.
"""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path

from core.backends.minilm import FOLDER
from core.domain.errors import BadInput

LEAST, MOST = 3, 90  # documents whose pairs are asked; each likes one thing less than there are


def write(folder: Path, pairs_of: int = 46, others: int = 0, seed: int = 0) -> tuple[int, int]:
    """Write a BEIR folder, and return its numbers of documents and questions.

    A question, "Who likes X?", is answered by the two documents that name X. Of the `others`, none names
    anything that is asked. Raises BadInput for a folder that exists, and for numbers out of range.
    """
    if not LEAST <= pairs_of <= MOST:
        raise BadInput(f"{pairs_of} documents to pair: give {LEAST} to {MOST}")
    if folder.exists():
        raise BadInput(f"{folder} exists; give a folder that does not")
    draw = random.Random(seed)
    things = _words()
    draw.shuffle(things)
    pairs = list(combinations(range(pairs_of), 2))
    asked, rest = things[: len(pairs)], things[len(pairs) :]
    likes: list[list[str]] = [[] for _ in range(pairs_of)]
    for thing, pair in zip(asked, pairs, strict=True):
        for member in pair:
            likes[member].append(thing)
    likes += [draw.sample(rest, pairs_of - 1) for _ in range(others)]
    for one in likes:
        draw.shuffle(one)
    (folder / "qrels").mkdir(parents=True)
    _lines(
        folder / "corpus.jsonl",
        [
            {"_id": f"m{n}", "title": "", "text": f"Member {n} likes {', '.join(one)}."}
            for n, one in enumerate(likes)
        ],
    )
    _lines(folder / "queries.jsonl", [{"_id": thing, "text": f"Who likes {thing}?"} for thing in asked])
    judged = [f"{thing}\tm{member}\t1" for thing, pair in zip(asked, pairs, strict=True) for member in pair]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged, ""]))
    return len(likes), len(asked)


def _words() -> list[str]:
    """Return whole words of the vocabulary of the default embedding model, with five letters and more."""
    known = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return sorted(word for word in known if len(word) > 4 and word.isascii() and word.isalpha())


def _lines(file: Path, rows: list[dict[str, str]]) -> None:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
