"""On how many machines of what kind the times of an evaluation were measured, and whether they compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from core.domain.machine import machine
from core.evaluation.finding import count
from core.evaluation.outcome import Outcome

UNKNOWN = "a machine that was not recorded"


@dataclass(frozen=True, slots=True)
class Kind:
    """Machines of one `kind`, in words: how many of them, and the questions asked there."""

    kind: str
    machines: int
    questions: int

    def describe(self) -> str:
        """Return the kind of machine with its numbers of questions and machines."""
        return f"{count(self.questions)} on {count(self.machines, 'machines')} ({self.kind})"


def kinds(outcomes: Iterable[Mapping[str, Outcome]]) -> tuple[Kind, ...]:
    """Return the kinds of machine, the one with most questions first; `outcomes` by route, of each
    question.
    """
    hosts: dict[str, set[str]] = {}
    asked: dict[str, int] = {}
    for by in outcomes:
        for kind, host in {(one.machine or UNKNOWN, one.host) for one in by.values()}:
            hosts.setdefault(kind, set()).add(host)
            asked[kind] = asked.get(kind, 0) + 1
    found = [Kind(kind, len(hosts[kind]), asked[kind]) for kind in hosts]
    return tuple(sorted(found, key=lambda one: (-one.questions, one.kind)))


def figures(outcomes: Iterable[Mapping[str, Outcome]]) -> dict[str, Any]:
    """Return the part of metrics.json: the `machine` in words, and the `machines` by kind."""
    found = kinds(outcomes)
    return {
        "machine": "; ".join(one.kind for one in found) or machine(),
        "machines": to_jsonable_python(found),
    }


def unlike(found: Sequence[Kind]) -> str:
    """Return why times of these machines do not compare, or "" if they do."""
    if len(found) < 2:
        return ""
    return f"its times are of unlike machines: {'; '.join(one.describe() for one in found)}"


def sentences(figures: Mapping[str, Any]) -> list[str]:
    """Return the sentences for more than one machine."""
    found = tuple(Kind(**one) for one in figures.get("machines", ()))
    if len(found) > 1:
        each = "; ".join(one.describe() for one in found)
        return [f"Times were measured on unlike machines and do not compare: {each}."]
    alike = (one for one in found if one.machines > 1)
    return [f"Times were measured on {count(k.machines, 'machines')} of one kind: {k.kind}." for k in alike]
