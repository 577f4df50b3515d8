"""Named settings: parameters of routes that were chosen on labelled questions, for runs to use."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from reprlib import repr as short
from typing import Any

from core.domain import people
from core.domain.errors import BadInput
from core.store import Store
from core.store.codec import dumps
from core.store.files import reading
from core.store.rows import bind, parsed, text
from core.store.run_annotations import MAX_TAG, clean_note

MAX_PRESETS = 1000


@dataclass(frozen=True, slots=True)
class Preset:
    """`parameters` by route, those left out at their defaults; `evidence` stands in for the setting
    `answer_evidence` (None: it is left as it is). `note` says where they come from: the labelled set, what
    was chosen on which questions, and what held on others. `changed`: ISO 8601, UTC, set when it is saved.
    """

    name: str
    corpus: str
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    evidence: float | None = None
    note: str = ""
    changed: str = ""


def every(store: Store, corpus: str | None = None) -> tuple[Preset, ...]:
    """All presets, or those made for a corpus, by name."""
    with reading(store.path) as connection:
        rows = connection.execute(
            "SELECT name, corpus, parameters, evidence, note, changed FROM presets"
        ).fetchall()
    found = [
        Preset(text(name), text(of), parsed(parameters), evidence, text(note), changed)
        for name, of, parameters, evidence, note, changed in rows
    ]
    kept = [one for one in found if corpus is None or one.corpus == corpus]
    return tuple(sorted(kept, key=lambda one: (one.name.casefold(), one.name)))


def named(store: Store, name: str) -> Preset:
    """Return the preset called `name`. Raises BadInput, listing the known names, if there is none."""
    known = every(store)
    for one in known:
        if one.name == name:
            return one
    names = ", ".join(one.name for one in known)
    raise BadInput(f"there is no preset {short(name)}; known: {names or 'none'}")


def save(store: Store, preset: Preset) -> None:
    """Save a preset, replacing the one of that name; durable on return.

    Raises BadInput for an invalid name, note or parameters, NotAllowed for another person's preset.
    """
    people.require("edit")
    checked = clean(preset)
    if any(one.name == checked.name for one in every(store)):
        people.require_own(store.maker("preset saved", checked.name))
    store.write(lambda connection: _put(connection, checked), deed=("preset saved", checked.name))


def delete(store: Store, name: str) -> None:
    """Delete a preset; runs made with it stay. BadInput if there is none of that name."""
    named(store, name)
    store.discard("preset", name)


def clean(preset: Preset) -> Preset:
    """Trim a preset's name and check it. Raises BadInput for an invalid name, note or parameters."""
    from core.routes.registry import pick

    name = " ".join(preset.name.split())
    if not 1 <= len(name) <= MAX_TAG:
        raise BadInput(f"preset {short(preset.name)}: the name must have 1 to {MAX_TAG} characters")
    if preset.evidence is not None and not 0 <= preset.evidence <= 1:
        raise BadInput(f"evidence={preset.evidence!r} must be from 0 to 1")
    if not preset.parameters and preset.evidence is None:
        raise BadInput(f"preset {name!r} is empty; set at least one parameter")
    for route in pick(list(preset.parameters)) if preset.parameters else ():
        route.settle(preset.parameters[route.name])
    return replace(preset, name=name, note=clean_note(preset.note))


def _put(connection: sqlite3.Connection, preset: Preset) -> None:
    (others,) = connection.execute(
        "SELECT count(*) FROM presets WHERE name <> ?", (bind(preset.name),)
    ).fetchone()
    if others >= MAX_PRESETS:
        raise BadInput(f"there are {others} presets, which is the limit; delete some first")
    connection.execute("DELETE FROM presets WHERE name = ?", (bind(preset.name),))
    connection.execute(
        "INSERT INTO presets (name, corpus, parameters, evidence, note, changed) VALUES (?, ?, ?, ?, ?, ?)",
        (
            *map(bind, (preset.name, preset.corpus, dumps(preset.parameters), preset.evidence, preset.note)),
            datetime.now(UTC).isoformat(timespec="milliseconds"),
        ),
    )
