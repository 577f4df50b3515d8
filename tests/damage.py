"""Corpora that are damaged or foreign, in every way at once: each beside a sound one in one home folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.corpus import index, manifest
from core.domain.settings import Settings


def _record(home: Path, **changes: Any) -> None:
    record = json.loads((home / "current.json").read_text())
    (home / "current.json").write_text(json.dumps({**record, **changes}))


def _info(home: Path, **changes: Any) -> None:
    """Other facts under a hash that is right: as another version, or an enemy, writes them."""
    (folder,) = (path for path in home.iterdir() if path.is_dir())
    content = json.loads((folder / manifest.NAME).read_text())
    (folder / manifest.NAME).unlink()
    manifest.seal(folder, {**content["info"], **changes})


def _folder(home: Path) -> Path:
    (folder,) = (path for path in home.iterdir() if path.is_dir())
    return folder


DAMAGES: dict[str, Callable[[Path], object]] = {
    "binary-record": lambda home: (home / "current.json").write_bytes(bytes(range(256))),
    "empty-record": lambda home: (home / "current.json").write_text(""),
    "deep-record": lambda home: (home / "current.json").write_text("[" * 100_000),
    "bare-record": lambda home: (home / "current.json").write_text("{}"),
    "record-of-a-list": lambda home: (home / "current.json").write_text("[1]"),
    "record-elsewhere": lambda home: _record(home, fingerprint="../../.."),
    "record-of-numbers": lambda home: _record(home, source=dict.fromkeys(("name", "path", "chunking"), 5)),
    "no-folder": lambda home: shutil.rmtree(_folder(home)),
    "no-manifest": lambda home: (_folder(home) / manifest.NAME).unlink(),
    "binary-manifest": lambda home: (_folder(home) / manifest.NAME).write_bytes(bytes(range(256))),
    "deep-manifest": lambda home: (_folder(home) / manifest.NAME).write_text("[" * 100_000),
    "manifest-of-words": lambda home: _info(home, passages="many", bytes=None, name=7),
    "manifest-lacks": lambda home: _info(home, chunking={"size": 1}),
    "cut-short": lambda home: (_folder(home) / "vectors.npy").write_bytes(b"\x93NUMPY"),
    "missing-file": lambda home: (_folder(home) / "passages.sqlite").unlink(),
}
COPIED = "copied"  # the folder of another corpus under a new name


def damage_all(source: Path, settings: Settings) -> list[str]:
    """Index `source` once as "good" and damage copies of it; returns the names of what is damaged."""
    index.build("good", source, settings=settings)
    indexes = settings.home / "indexes"
    for name, damage in DAMAGES.items():
        shutil.copytree(indexes / "good", indexes / name)
        _record(indexes / name, source={**_source(indexes / "good"), "name": name})
        _info(indexes / name, name=name)
        damage(indexes / name)
    shutil.copytree(indexes / "good", indexes / COPIED)
    shutil.copytree(indexes / "good", indexes / "No Name Of Ours")
    shutil.copytree(indexes / "good", indexes / "___")
    (indexes / "stray.txt").write_text("x")
    (settings.home / "uploads" / "___").mkdir(parents=True)
    return sorted((*DAMAGES, COPIED))


def _source(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "current.json").read_text())["source"]
    return found
