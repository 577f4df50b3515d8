"""A second reader of GBNF, for tests: which texts a grammar allows, and texts drawn from it."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Chars:
    """One character of, or with `no` not of, these ranges."""

    ranges: tuple[tuple[str, str], ...]
    no: bool = False

    def takes(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges) is not self.no


class Grammar:
    """Rules as alternatives, each a list of rule names and Chars; repetitions are rules of their own."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, list[list]] = {}
        self._made = 0
        for line in text.splitlines():
            name, _, body = line.partition("::=")
            self._text, self._at = body, 0
            ways = self._ways()
            assert self._at == len(body), f"{name}: not read: {body[self._at : self._at + 40]!r}"
            self.rules[name.strip()] = ways
        missing = {
            part for ways in self.rules.values() for way in ways for part in way if isinstance(part, str)
        } - set(self.rules)
        assert not missing, missing
        self._costs = self._cheapest()

    def _skip(self) -> None:
        while self._text[self._at : self._at + 1] == " ":
            self._at += 1

    def _ways(self) -> list[list]:
        ways = [self._way()]
        while self._text[self._at : self._at + 1] == "|":
            self._at += 1
            ways.append(self._way())
        return ways

    def _way(self) -> list:
        parts: list = []
        while True:
            self._skip()
            char = self._text[self._at : self._at + 1]
            if char in ("", "|", ")"):
                return parts
            if char == '"':
                one = self._quoted()
            elif char == "[":
                one = [self._set()]
            elif char == "(":
                self._at += 1
                one = [self._new(self._ways())]
                assert self._text[self._at] == ")"
                self._at += 1
            else:
                name = re.compile(r"[a-zA-Z0-9-]+").match(self._text, self._at)
                assert name, self._text[self._at : self._at + 40]
                self._at = name.end()
                one = [name[0]]
            mark = self._text[self._at : self._at + 1]
            if mark and mark in "*+?":
                self._at += 1
                again = self._new([])
                self.rules[again] = [[], [*one, again]] if mark != "?" else [[], one]
                one = [*one, again] if mark == "+" else [again]
            parts += one

    def _new(self, ways: list[list]) -> str:
        self._made += 1
        self.rules[f"_{self._made}"] = ways
        return f"_{self._made}"

    def _quoted(self) -> list:
        found, self._at = [], self._at + 1
        while self._text[self._at] != '"':
            char = self._char()
            found.append(Chars(((char, char),)))
        self._at += 1
        return found

    def _set(self) -> Chars:
        self._at += 1
        no = self._text[self._at] == "^"
        self._at += no
        ranges = []
        while self._text[self._at] != "]":
            low = high = self._char()
            if self._text[self._at] == "-" and self._text[self._at + 1] != "]":
                self._at += 1
                high = self._char()
            ranges.append((low, high))
        self._at += 1
        return Chars(tuple(ranges), no)

    def _char(self) -> str:
        char = self._text[self._at]
        self._at += 1
        if char != "\\":
            return char
        kind = self._text[self._at]
        self._at += 1
        if kind == "x":
            self._at += 2
            return chr(int(self._text[self._at - 2 : self._at], 16))
        return {"n": "\n", "r": "\r", "t": "\t"}.get(kind, kind)

    def _cheapest(self) -> dict[str, int]:
        """The fewest expansions after which each rule ends."""
        costs: dict[str, int] = {}
        changed = True
        while changed:
            changed = False
            for name, ways in self.rules.items():
                known = [
                    1 + sum(costs[part] for part in way if isinstance(part, str))
                    for way in ways
                    if all(part in costs for part in way if isinstance(part, str))
                ]
                if known and min(known) < costs.get(name, 1 << 30):
                    costs[name], changed = min(known), True
        assert "root" in costs, "the grammar has no text that ends"
        return costs

    def draw(self, chance: random.Random, size: int = 60) -> str:
        """A text of the grammar; after `size` expansions it takes the shortest ways to an end."""
        written: list[str] = []
        left: list = ["root"]
        while left:
            part = left.pop()
            if isinstance(part, Chars):
                written.append(self._drawn(part, chance))
                continue
            ways = self.rules[part]
            size -= 1
            if size < 0:
                cost = {id(way): sum(self._costs[p] for p in way if isinstance(p, str)) for way in ways}
                least = min(cost.values())
                ways = [way for way in ways if cost[id(way)] == least]
            left += reversed(chance.choice(ways))
        return "".join(written)

    @staticmethod
    def _drawn(part: Chars, chance: random.Random) -> str:
        if part.no:
            return chance.choice([char for char in 'aZ%_é"\\[;0' if part.takes(char)])
        low, high = chance.choice(part.ranges)
        return chr(chance.randint(ord(low), ord(high)))

    def allows(self, text: str) -> bool:
        """Whether the whole text is of the grammar: all ways at once, character by character."""
        return "" in self.follow(text)

    def follow(self, text: str) -> set[str]:
        """What is left of `text` at the furthest: {""} where all of it is allowed and may end there."""
        stacks = self._open({("root", None)})
        for at, char in enumerate(text):
            nexts = {rest for part, rest in filter(None, stacks) if part.takes(char)}
            if not nexts:
                return {text[at:]}
            stacks = self._open(nexts)
        return {""} if None in stacks else {"(unfinished)"}

    def _open(self, stacks: set) -> set:
        """Stacks whose first part is a Chars; None is the end. A stack is (part, rest)."""
        done: set = set()
        seen = set(stacks)
        left = list(stacks)
        while left:
            stack = left.pop()
            if stack is None or isinstance(stack[0], Chars):
                done.add(stack)
                continue
            for way in self.rules[stack[0]]:
                grown = stack[1]
                for part in reversed(way):
                    grown = (part, grown)
                if grown not in seen:
                    seen.add(grown)
                    left.append(grown)
        return done
