"""A class of core is named once: whoever reads a name knows which class it is."""

import re
from collections import Counter
from pathlib import Path

from core.domain.program import PROJECT

# Still used twice or more. A class that gets a name of its own leaves the list; none is added.
TWICE = """
    Added Agreement Asked Case Cost Counts Curve Decision Disagreement Drawn Estimate Evidence Found
    Generated Given Kept Known Line Listed Made Measured Node Page Part Place Plan Regression Searched
    Segment Snapshot Standing Subject Tokens Written _Asked _Kept _Text
"""


def test_a_class_name_is_used_once():
    names = Counter(
        name
        for file in Path(PROJECT, "core").rglob("*.py")
        for name in re.findall(r"^class (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert {name for name, count in names.items() if count > 1} <= set(TWICE.split())
