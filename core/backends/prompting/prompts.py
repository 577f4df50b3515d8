"""Prompts: `from core.backends.prompting.prompts import NAME` reads the table [NAME] of prompts.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from core.backends.base import Message
from core.backends.prompting.untrusted import GROUNDED, harmless
from core.domain.program import table

FIRMER = " Your last reply was rejected: {wrong}. Do exactly what is asked, in the form that is asked for."


@dataclass(frozen=True, slots=True)
class Prompt:
    """A named, versioned prompt; {words} in `user` are filled in by name. A new text is a new version."""

    name: str
    system: str
    user: str
    examples: tuple[tuple[str, str], ...] = ()  # (what the user says, the reply wanted)

    def fill(self, values: Mapping[str, str], firmer: str = "") -> tuple[Message, ...]:
        """Fill in `values` literally: braces in a document or question mean nothing, nor do sequences that a
        chat template would read as the end of a message.
        """
        text = self.user
        parts = []
        while text:
            before, brace, rest = text.partition("{")
            name, close, text = rest.partition("}") if brace else ("", "", "")
            parts.append(before + (harmless(values[name]) if close else brace + name))
        shown = [
            message
            for user, reply in self.examples
            for message in (Message("user", user), Message("assistant", reply))
        ]
        return Message("system", self.system + firmer), *shown, Message("user", "".join(parts))

    def with_instruction(self, instruction: str) -> Prompt:
        """Return this prompt with another instruction, marked as custom in its name; "" keeps it."""
        return replace(self, name=f"{self.name}/custom", system=instruction) if instruction else self


@cache
def _prompts() -> dict[str, Prompt]:
    return {
        name: Prompt(row["name"], row["system"], row["user"], tuple(map(tuple, row.get("examples", ()))))
        for name, row in table(__file__, grounded=GROUNDED).items()
    }


def __getattr__(name: str) -> Prompt:
    """Return the prompt in the table `name` of prompts.toml. Raises AttributeError for an unknown name."""
    try:
        return _prompts()[name]
    except KeyError:
        raise AttributeError(f"prompts.toml has no table {name}") from None
