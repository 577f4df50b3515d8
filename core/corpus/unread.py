"""How much of a corpus' text its embedder does not read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unread:
    """Counts of tokens as the embedder cuts them."""

    limit: int  # tokens of a passage that are read
    tokens: int  # of all passages
    unread: int  # of these tokens, those behind the limit of their passage
    passages: int  # that are longer than the limit
    characters: int  # of all passages

    @property
    def share(self) -> float:
        """The part of the tokens that is not read, 0 to 1."""
        return self.unread / self.tokens if self.tokens else 0.0
