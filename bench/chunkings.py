"""Long documents and labelled places in them, of a BEIR set whose passages were cut from documents.jsonl.

    python bench/chunkings.py FOLDER OUT
    python -m core index OUT/documents --name contextual --chunkings 256,1024,headings,sentences
    python -m core eval contextual --questions OUT/questions.jsonl --chunkings all

Each document becomes a text file, and each judged passage a quote in its document, found by its words.
"""

from __future__ import annotations

import ast
import csv
import json
import sys
from pathlib import Path
from typing import Any


def main(folder: Path, out: Path) -> None:
    """Write OUT/documents/ID.txt and OUT/questions.jsonl."""
    texts = {row["_id"]: row["text"] for row in _rows(folder / "documents.jsonl")}
    passages = {row["_id"]: (_document(row), row["text"]) for row in _rows(folder / "corpus.jsonl")}
    (out / "documents").mkdir(parents=True, exist_ok=True)
    for id, text in texts.items():
        (out / "documents" / f"{id}.txt").write_text(text, encoding="utf-8")
    relevant: dict[str, list[dict[str, Any]]] = {}
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            document, text = passages[row["corpus-id"]]
            if text not in texts[document]:
                raise SystemExit(f"{row['corpus-id']} is not in the text of {document}")
            entry = {"doc": f"{document}.txt", "quote": text, "grade": 3}
            relevant.setdefault(row["query-id"], []).append(entry)
    with (out / "questions.jsonl").open("w", encoding="utf-8") as file:
        for row in _rows(folder / "queries.jsonl"):
            question = {"id": row["_id"], "text": row["text"], "relevant": relevant.get(row["_id"], [])}
            file.write(json.dumps(question) + "\n")
    sys.stdout.write(f"{len(texts)} documents, {len(relevant)} questions in {out}\n")


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _document(row: dict[str, Any]) -> str:
    """The document that a passage was cut from."""
    metadata = row["metadata"]
    found: str = (ast.literal_eval(metadata) if isinstance(metadata, str) else metadata)["doc_id"]
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
