"""A step's decision with all possible decisions, as its span records it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from core.domain.errors import BadInput
from core.domain.outputs import Decision
from core.steps.trace import plain

FORCED = "forced"  # the attribute of a span with what its step decided itself, where that was turned
_KNOWN: dict[type, tuple[str, ...]] = {}
ANY = "any other"  # in FIRES: each decision that no other pair names


@dataclass(frozen=True, slots=True)
class Decided:
    """Base of outcomes with a `decision`, which subclasses declare as a Literal, and a `why`.

    `SCORE` names the field with the score that is compared with `threshold`, `TEXT` the field with the next
    text to search. `FIRES` pairs each decision that intervenes (spends calls, discards, abstains) with the
    decision that changes nothing. An audit runs a question with both. For a pair with `ANY`, only an
    intervention can be reversed: the passive decision has no single opposite.
    """

    decision: str
    why: str

    SCORE: ClassVar[str] = ""
    TEXT: ClassVar[str] = ""
    FIRES: ClassVar[tuple[tuple[str, str], ...]] = ()

    @property
    def ways(self) -> tuple[str, ...]:
        """All that could have been decided. An outcome whose ways depend on what is there has them as a
        field.
        """
        return ways(type(self))

    def turned(self, decision: str) -> Self:
        """Return this outcome with `decision` instead, one of `ways`; measurements and `why` stay.

        The span records that it was forced, and the original decision: see `FORCED`. Raises BadInput if
        `decision` is not possible.
        """
        if decision not in self.ways:
            raise BadInput(f"{decision!r} is no decision; expected one of {', '.join(self.ways)}")
        return replace(self, decision=decision)

    def recorded(self) -> Decision:
        """Return the output stored on the span, with the subclass' own fields as details."""
        given: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        score = given.pop(self.SCORE, None)
        return Decision(
            given.pop("decision"),
            given.pop("ways", self.ways),
            given.pop("why"),
            None if score is None else float(score),
            given.pop("threshold", None),
            {str(name): float(share) for name, share in given.pop("scores", {}).items()},
            given.pop(self.TEXT, ""),
            plain(given),
        )


def ways(outcome: type) -> tuple[str, ...]:
    """All that a step with this outcome can decide, in the order declared."""
    if outcome not in _KNOWN:
        _KNOWN[outcome] = _words(get_type_hints(outcome)["decision"])
    return _KNOWN[outcome]


def _words(hint: Any) -> tuple[str, ...]:
    if get_origin(hint) is Literal:
        return tuple(str(word) for word in get_args(hint))
    return tuple(word for part in get_args(hint) for word in _words(part))
