"""Conditions on the metadata of passages: how they are written, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from core.domain.errors import BadInput
from core.domain.text import composed

Operator = Literal["=", "!=", "<", ">", "<=", ">=", "in", "~", "!~"]
FORM = "write FIELD=VALUE, with = or !=, ~ (contains) or !~, < or > (also with =), or FIELD in A|B"
_WRITTEN = re.compile(r"\s*([^=<>!~]+?)\s*(?:(!=|!~|<=|>=|=|<|>|~)|\s(in)\s)\s*(.*\S)\s*", re.DOTALL)
MAX_FILTERS = 20  # conditions at once
MAX_FILTER_CHARS = 500  # characters of one


@dataclass(frozen=True, slots=True)
class Filter:
    """Passages whose `field` compares so with `values`: one, or with "in" any of several. "~" is "contains".
    Several filters have to hold together. A passage without the field is found by "!=" and "!~" alone.
    """

    field: str
    operator: Operator
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        operator_of(self.operator)
        object.__setattr__(self, "field", composed(self.field))
        object.__setattr__(self, "values", tuple(map(composed, self.values)))
        if not self.values or (self.operator != "in" and len(self.values) != 1):
            raise BadInput(f"filter {self.field} {self.operator}: give one value, or with in at least one")

    def __str__(self) -> str:
        """As `read_filter` takes it."""
        between = " in " if self.operator == "in" else self.operator
        return f"{self.field}{between}{'|'.join(self.values)}"


def described(where: Iterable[Filter]) -> str:
    """Conditions in a sentence."""
    return " and ".join(map(str, where))


def operator_of(text: str) -> Operator:
    """One of the operators; BadInput for another."""
    known: dict[str, Operator] = {one: one for one in get_args(Operator)}
    if text not in known:
        raise BadInput(f"a filter compares by {', '.join(known)}, not by {text!r}")
    return known[text]


def read_filter(text: str) -> Filter:
    """Parse a condition such as `owner~Logistics`. Raises BadInput with the expected form."""
    if len(text) > MAX_FILTER_CHARS:
        raise BadInput(f"a filter has {len(text):,} characters; at most {MAX_FILTER_CHARS} are allowed")
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise BadInput(f"cannot read the filter {text!r}; {FORM}")
    field, operator, several, value = found.groups()
    if several is not None:
        values = tuple(part.strip() for part in value.split("|") if part.strip())
        return Filter(field, "in", values)
    return Filter(field, operator_of(operator), (value,))


def read_filters(texts: Iterable[str]) -> tuple[Filter, ...]:
    """Several conditions in their order, each once; BadInput for one that cannot be read, or for too many."""
    found = tuple(dict.fromkeys(read_filter(text) for text in texts if text.strip()))
    if len(found) > MAX_FILTERS:
        raise BadInput(f"{len(found)} filters; at most {MAX_FILTERS} are allowed")
    return found


OTHERS = "*"  # in place of a value: all other values of the field, and documents without it
Rules = Mapping[str, Mapping[str, tuple[str, ...]]]  # field -> value -> the groups that may see it
RULE_FORM = "write FIELD=VALUE:GROUP,GROUP, for example department=hr:hr,board"


def with_rules(rules: Rules, texts: Iterable[str]) -> Rules:
    """Return `rules` with those of a command line over them. Raises BadInput for one that cannot be read."""
    merged = {field: dict(values) for field, values in rules.items()}
    for text in texts:
        condition, colon, groups = text.rpartition(":")
        field, equals, value = (part.strip() for part in condition.partition("="))
        if not (colon and equals and field and value):
            raise BadInput(f"cannot read the access rule {text!r}; {RULE_FORM}")
        named = tuple(part.strip() for part in groups.split(",") if part.strip())
        merged.setdefault(field, {})[value] = named
    return merged


def conditions(rules: Rules, group: str) -> tuple[Filter, ...]:
    """Return the conditions that the documents a group may see meet. Raises BadInput if there are no rules,
    or if they let it see all documents or none.
    """
    if not rules:
        raise BadInput(
            f"there are no access rules: add a table [access.FIELD] to the settings, or {RULE_FORM}"
        )
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
