"""Writes `data/vectors/`: the vectors of small built-in corpora, so that a first start embeds none.

`python -m scripts.vectors` embeds them anew with the default embedder. Run it when documents of `data/`, or
how they are cut, have changed: `tests/unit/corpus/test_shipped_vectors.py` says so.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from core.backends import array_files
from core.backends.embedder import MINILM
from core.corpus import embeddings, index
from core.corpus.embeddings import KEYS, VECTORS
from core.corpus.enrichments import store
from core.domain.settings import Settings

MADE = {"support": ("headings", "children"), "web": ()}  # corpora, and which enrichments of each


def main() -> None:
    """Index into an empty home; keep each text's vector once, in half precision, and each corpus' weight."""
    target = embeddings.SHIPPED / MINILM[0]
    shutil.rmtree(target, ignore_errors=True)
    found: dict[bytes, np.ndarray[tuple[int], np.dtype[np.float16]]] = {}
    weights = {}
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings(home=Path(scratch), embedder=MINILM[0])
        for name, enrichments in MADE.items():
            corpus = index.build(name, name, settings=settings)
            weights[corpus.fingerprint] = asdict(corpus.info.dense_weight)
            folders = [settings.home / "indexes" / name / corpus.fingerprint]
            for one in enrichments:
                store.build(one, corpus, settings=settings)
                folders.append(settings.home / "enrichments" / name / one)
            for folder in folders:
                keys = np.load(folder / KEYS, allow_pickle=False)
                vectors = np.load(folder / VECTORS, allow_pickle=False).astype(np.float16)
                found |= {key.tobytes(): vector for key, vector in zip(keys, vectors, strict=True)}
    ordered = sorted(found)
    target.mkdir(parents=True)
    kept = np.frombuffer(b"".join(ordered), np.uint8).reshape(len(ordered), -1)
    array_files.save(target / embeddings.SHIPPED_KEYS, kept)
    array_files.save(target / embeddings.SHIPPED_VECTORS, np.stack([found[key] for key in ordered]))
    text = json.dumps(weights, indent=1) + "\n"
    (target / embeddings.SHIPPED_WEIGHTS).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
