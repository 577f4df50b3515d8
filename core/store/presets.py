"""Named settings: parameters of routes that were chosen on labelled questions, for runs to use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from reprlib import repr as short
from typing import Any

from core.domain.errors import BadInput
from core.store import Store
from core.store.codec import dumps
from core.store.named_rows import clean_name
from core.store.rows import parsed
from core.store.run_annotations import clean_note


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
    found = [Preset(**{**row, "parameters": parsed(row["parameters"])}) for row in store.named("preset")]
    return tuple(one for one in found if corpus is None or one.corpus == corpus)


def named(store: Store, name: str) -> Preset:
    """Return the preset called `name`. Raises BadInput, listing the known names, if there is none."""
    known = {one.name: one for one in every(store)}
    if name not in known:
        raise BadInput(f"there is no preset {short(name)}; known: {', '.join(known) or 'none'}")
    return known[name]


def save(store: Store, preset: Preset) -> None:
    """Save a preset, replacing the one of that name; durable on return.

    Raises BadInput for an invalid name, note or parameters, NotAllowed for another person's preset.
    """
    store.save_named("preset", asdict(clean(preset)) | {"parameters": dumps(preset.parameters)})


def delete(store: Store, name: str) -> None:
    """Delete a preset; runs made with it stay. BadInput if there is none of that name."""
    named(store, name)
    store.discard("preset", name)


def clean(preset: Preset) -> Preset:
    """Trim a preset's name and check it. Raises BadInput for an invalid name, note or parameters."""
    from core.routes.registry import pick

    name = clean_name("preset", preset.name)
    if preset.evidence is not None and not 0 <= preset.evidence <= 1:
        raise BadInput(f"evidence={preset.evidence!r} must be from 0 to 1")
    if not preset.parameters and preset.evidence is None:
        raise BadInput(f"preset {name!r} is empty; set at least one parameter")
    for route in pick(list(preset.parameters)) if preset.parameters else ():
        route.settle(preset.parameters[route.name])
    return replace(preset, name=name, note=clean_note(preset.note))
