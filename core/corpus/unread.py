"""The part of the texts that an embedder does not read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from core.backends import reading_limits

BLOCK = 256  # texts whose tokens are counted at a time
WORTH = 0.005  # of the text, from which unread text is warned of


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


def count_unread(texts: Iterable[str], model: str, tick: Callable[[int, int], None]) -> Unread | None:
    """Count what a model leaves unread of texts; None if its tokenizer is not on this machine."""
    limit = reading_limits.limit(model)
    if limit is None:
        return None
    total = unread = long = characters = number = 0
    left = iter(texts)
    while some := list(islice(left, BLOCK)):
        number += len(some)
        tick(number, 0)
        counts = limit.count(some)
        over = [one - limit.tokens for one in counts if one > limit.tokens]
        total, unread, long = total + sum(counts), unread + sum(over), long + len(over)
        characters += sum(map(len, some))
    return Unread(limit.tokens, total, unread, long, characters)


def unread_notes(found: Unread | None, model: str) -> list[str]:
    """Say how much of an enrichment's texts a model does not read; nothing if that is next to nothing."""
    if found is None or found.share < WORTH:
        return []
    return [
        f"{found.share:.1%} of the text is not read by {model}: {found.passages:,} texts are longer than its"
        f" {found.limit:,} tokens; smaller passages (--chunk-size) or a model that reads more change that"
    ]
