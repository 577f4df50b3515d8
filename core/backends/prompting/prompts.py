"""Prompts: `from core.backends.prompting.prompts import NAME` reads the table [NAME] of prompts.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from core.backends.base import Message
from core.backends.prompting.untrusted import GROUNDED, harmless
from core.domain.program import table

FIRMER = " Your last reply was rejected: {wrong}. Do exactly what is asked, in the form that is asked for."
_PART = re.compile("<<([a-z]+)>>")


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
    rows = table(__file__)
    parts = {**rows.pop("parts"), "grounded": GROUNDED}

    def whole(text: str) -> str:
        return _PART.sub(lambda found: parts[found[1]], text)

    return {
        name: Prompt(
            row["name"],
            whole(row["system"]),
            whole(row["user"]),
            tuple((whole(user), whole(reply)) for user, reply in row.get("examples", ())),
        )
        for name, row in rows.items()
    }


def __getattr__(name: str) -> Prompt:
    """Return the prompt in the table `name` of prompts.toml. Raises AttributeError if there is none."""
    try:
        return _prompts()[name]
    except KeyError:
        raise AttributeError(f"prompts.toml has no table {name}") from None
