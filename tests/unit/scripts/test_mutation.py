"""The tool that puts small faults into modules: what it changes, and that its list names what is there."""

import ast
import tomllib

from scripts.mutation import ROOT, mutants

SOURCE = '''
from __future__ import annotations
LEAST = 5
Number = int | float

class Kept:
    """A docstring."""
    size: int | None = 3

    @property
    def key(self) -> tuple[int, str]:
        return self.size, "kind"

def first(rows: list[int] | None, *, k: int = 1) -> list[int]:
    """Another."""
    if rows is None or not rows:
        raise ValueError(f"rows={rows}; give 1 or more")
    log.warning("so many: %d", 3)
    found = sorted((row for row in rows if row > 0), key=lambda row: (-row, row))
    found.append(k)
    return found[:k] if k < 2 else max(found, default=0)
'''


def test_each_mutant_is_one_change_that_still_is_python():
    found = mutants(SOURCE)
    told = [(one.where.split(" ")[0], one.what) for one in found]
    assert len(set(told)) == len(told)
    sound = ast.unparse(ast.parse(SOURCE))
    for one in found:
        compile(one.text, "x", "exec")
        lines = zip(one.text.splitlines(), sound.splitlines(), strict=True)
        assert sum(new != old for new, old in lines) == 1, one.what
    assert {
        ("LEAST", "5 -> 10"),
        ("size:", "3 -> 6"),
        ("return", "`self.size` and the next change places"),
        ("if", "and <-> or"),
        ("if", "Is -> IsNot"),
        ("if", "without not"),
        ("if", "never"),
        ("raise", "dropped"),
        ("found", "without `if row > 0`"),
        ("found", "without `-row`"),
        ("found.append(k)", "dropped"),
        ("return", "always the second"),
        ("return", "max -> min"),
        ("return", "without default="),
        ("return", "slice without its upper end"),
        ("return", "Lt -> LtE"),
    } <= set(told)


def test_annotations_messages_and_the_log_are_left_alone():
    text = [one.text for one in mutants(SOURCE)]
    for kept in (
        "Number = int | float",
        "rows: list[int] | None",
        "'so many: %d', 3",
        "A docstring.",
        "size: int",
    ):
        assert all(kept in one for one in text), kept
    (without,) = (one for one in text if "give 1 or more" not in one)
    assert "raise" not in without


def test_the_list_names_modules_and_tests_that_are_there_and_says_why_a_change_changes_nothing():
    told = tomllib.loads((ROOT / "scripts" / "mutants.toml").read_text(encoding="utf-8"))["module"]
    for module, one in told.items():
        assert (ROOT / module).is_file()
        assert one["tests"]
        assert all((ROOT / test).is_file() for test in one["tests"])
        assert all(set(row) == {"where", "what", "why"} and row["why"] for row in one.get("equivalent", ()))
