"""The documents of each state of a corpus as hashes, which tell later what was new, changed or gone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from core.corpus.catalogue import home_of
from core.corpus.corpus import Corpus
from core.domain import system
from core.domain.settings import Settings

DocumentChange = Literal["new", "changed", "gone"]
MOST = 100_000  # documents that are hashed, some 5 MB; nothing is kept of a larger corpus
STATES = 10  # that are kept of a corpus, the latest
PREFIX = "documents-"  # of their files, which end in the state's fingerprint


def hashes(corpus: Corpus) -> dict[str, str]:
    """Return document id -> hash of its title and of the text and place of each passage."""
    found: dict[str, blake2b] = {}
    for _, passage, _ in corpus.everything():
        content = json.dumps([passage.title, passage.start, passage.end, passage.text])
        found.setdefault(passage.doc_id, blake2b(digest_size=8)).update(content.encode())
    return {id: one.hexdigest() for id, one in found.items()}


def keep(home: Path, corpus: Corpus) -> None:
    """Write the documents of `corpus` into its folder of indexes, `home`, unless it has more than MOST."""
    file = home / f"{PREFIX}{corpus.fingerprint}.json"
    if corpus.info.documents > MOST:
        return
    if file.exists():
        file.touch()
        return
    draft = file.with_suffix(".tmp")
    draft.write_text(json.dumps(hashes(corpus)), encoding="utf-8")
    system.replace(draft, file)
    states = sorted(home.glob(f"{PREFIX}*.json"), key=lambda one: one.stat().st_mtime_ns)
    for old in states[:-STATES]:
        old.unlink()


def kept(corpus: str, fingerprint: str, settings: Settings) -> dict[str, str] | None:
    """Return document id -> hash of a state of a corpus; None if it was not kept or the file is damaged."""
    file = home_of(corpus, settings) / f"{PREFIX}{Path(fingerprint).name}.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def changes(then: Mapping[str, str], now: Mapping[str, str]) -> dict[str, DocumentChange]:
    """Return the documents that differ between two states."""
    found: dict[str, DocumentChange] = dict.fromkeys(then.keys() - now.keys(), "gone")
    for id, digest in now.items():
        if then.get(id) != digest:
            found[id] = "changed" if id in then else "new"
    return found
