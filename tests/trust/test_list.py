"""The list of the thirty tests says what there is."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import tests.trust

pytestmark = pytest.mark.trust

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.findall(r"(tests/\S+\.py)::(\w+)", tests.trust.__doc__)


@cache
def marked(file):
    """The tests of a file that carry the marker: by themselves, or with all of the file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    whole = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == ["pytestmark"]
    ]
    if any("pytest.mark.trust" in ast.unparse(node.value) for node in whole):
        return {one.name for one in functions}
    return {
        one.name
        for one in functions
        if any(ast.unparse(mark).startswith("pytest.mark.trust") for mark in one.decorator_list)
    }


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_every_test_of_the_list_is_there_and_marked(file):
    assert {name for where, name in NAMED if where == file} - marked(file) == set()


def test_the_list_has_thirty_points():
    points = re.findall(r"^(\d+)\. \w", tests.trust.__doc__, re.MULTILINE)
    assert [int(point) for point in points] == list(range(1, 31))


def test_every_file_of_this_folder_is_in_the_list():
    here = {f"tests/trust/{path.name}" for path in Path(__file__).parent.glob("test_*.py")}
    assert here - {file for file, _ in NAMED} == {"tests/trust/test_list.py"}


def test_every_test_that_the_promises_name_is_there():
    """docs/security.md names a file, a test in it, or with `::` alone one more test of the file before."""
    promised = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").rpartition("## Promises")[2]
    file, count = "", 0
    for named in re.findall(r"`((?:tests/[\w/]+\.py)?(?:::\w+)?)`", promised):
        where, _, test = named.partition("::")
        file = where or file
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not test or f"\ndef {test}(" in text, named
        assert "pytest.mark.trust" in text or file.endswith("__init__.py"), file
        count += 1
    assert count > 20
