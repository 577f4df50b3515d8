"""Which ways a step that decided could have gone: told by the shape of its output; knows no route."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from core.steps import (
    agent,
    classify,
    confide,
    correct,
    gate,
    generate,
    grade,
    imitate,
    iterate,
    redraft,
    reflect,
    self_rag,
    tables,
)

OUTCOMES: tuple[type, ...] = (
    agent.Choice, agent.Enough, agent.Guard, agent.Turn, classify.Classified, confide.Confidence, correct.Act,
    gate.Gate, generate.Evidence, grade.Verdict, imitate.LookUp, iterate.Round, iterate.Thought,
    redraft.Weighed, reflect.AnswerCheck, reflect.Reflection, self_rag.Wanted, tables.Sides,
)  # fmt: skip


def ways(output: Mapping[str, Any]) -> tuple[str, ...]:
    """All decisions that the step of this output can make, in the order they are declared; () where its
    fields and decision fit none of the known ones, or several.
    """
    decision = output.get("decision")
    fitting = {
        allowed
        for needed, all_of, allowed in _declared()
        if needed <= set(output) <= all_of and decision in allowed
    }
    return next(iter(fitting)) if len(fitting) == 1 else ()


@cache
def _declared() -> tuple[tuple[frozenset[str], frozenset[str], tuple[str, ...]], ...]:
    """Of every outcome the fields without a default, all fields, and the possible decisions."""
    return tuple(
        (
            frozenset(field.name for field in fields(one) if field.default is MISSING),
            frozenset(field.name for field in fields(one)),
            _words(get_type_hints(one)["decision"]),
        )
        for one in OUTCOMES
    )


def _words(hint: Any) -> tuple[str, ...]:
    if get_origin(hint) is Literal:
        return tuple(str(word) for word in get_args(hint))
    return tuple(word for part in get_args(hint) for word in _words(part))
