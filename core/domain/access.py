"""Rules on which groups may see which documents: what `audit-access` tests retrieval with.

They are not a permission system: only that audit reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.domain.errors import BadInput
from core.domain.filters import Filter

OTHERS = "*"  # in place of a value: all other values of the field, and documents without it
Rules = Mapping[str, Mapping[str, tuple[str, ...]]]  # field -> value -> the groups that may see it
FORM = "write FIELD=VALUE:GROUP,GROUP, for example department=hr:hr,board"


def with_rules(rules: Rules, texts: Iterable[str]) -> Rules:
    """Return `rules` with those of a command line over them. Raises BadInput for one that cannot be read."""
    merged = {field: dict(values) for field, values in rules.items()}
    for text in texts:
        condition, colon, groups = text.rpartition(":")
        field, equals, value = (part.strip() for part in condition.partition("="))
        if not (colon and equals and field and value):
            raise BadInput(f"cannot read the access rule {text!r}; {FORM}")
        named = tuple(part.strip() for part in groups.split(",") if part.strip())
        merged.setdefault(field, {})[value] = named
    return merged


def conditions(rules: Rules, group: str) -> tuple[Filter, ...]:
    """Return the conditions that the documents a group may see meet. Raises BadInput if there are no rules,
    or if they let it see all documents or none.
    """
    if not rules:
        raise BadInput(f"there are no access rules: add a table [access.FIELD] to the settings, or {FORM}")
    found: list[Filter] = []
    for field, values in rules.items():
        if group in values.get(OTHERS, (group,)):
            found += [Filter(field, "!=", (value,)) for value in _forbidden(values, group)]
            continue
        seen = tuple(value for value, groups in values.items() if value != OTHERS and group in groups)
        if not seen:
            raise BadInput(f"by [access.{field}] group {group!r} may see no document: nothing can be tested")
        found.append(Filter(field, "in", seen))
    if not found:
        known = ", ".join(sorted({g for v in rules.values() for groups in v.values() for g in groups}))
        raise BadInput(f"group {group!r} may see every document, so nothing can leak; groups named: {known}")
    return tuple(found)


def forbidden_value(rules: Rules, group: str) -> tuple[str, str]:
    """Return a field and a value of it that keep a document from a group that `conditions` restrict."""
    for field, values in rules.items():
        if named := _forbidden(values, group):
            return field, named[0]
        if group not in values.get(OTHERS, (group,)):
            return field, "none of the values that rules name"
    raise BadInput(f"group {group!r} may see every document")


def _forbidden(values: Mapping[str, tuple[str, ...]], group: str) -> list[str]:
    return [value for value, groups in values.items() if value != OTHERS and group not in groups]
