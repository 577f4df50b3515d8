"""Help names keys, pages and views that exist."""

import re
from pathlib import Path

import pytest

from ui.app import tour
from ui.app.data import table

ROOT = Path(__file__).resolve().parents[3]
PAGES = {page["path"]: page["title"] for page in table("pages")["page"]}
NAMED = {"→": "right", "←": "left", "page down": "pagedown", "page up": "pageup", "ctrl + enter": "mod+enter"}


def bound():
    """Every key that a widget is bound to, that moves a slide, or that a table of keys of Label has."""
    source = "\n".join(path.read_text() for path in (ROOT / "ui").rglob("*.py"))
    letters = re.findall(r'"([a-z])"', "\n".join(p.read_text() for p in (ROOT / "ui" / "label").glob("*.py")))
    slide = (ROOT / "ui" / "present" / "slide.py").read_text()
    moves = re.findall(r'button\("\w+", "\w+", at [+-] 1, "(\w+)"\)', slide)
    return {*re.findall(r'shortcut="([^"]+)"', source), *letters, *moves}


@pytest.mark.parametrize("row", table("shortcuts")["shortcut"], ids=lambda row: row["keys"])
def test_a_shortcut_is_bound_where_it_is_said_to_be(row):
    assert row["where"] in {*PAGES.values(), "every page"}
    if row["where"] in ("Label", "Present") or "Ctrl" in row["keys"]:
        keys = [key.strip().lower() for key in re.split(r",| or ", row["keys"]) if "⌘" not in key]
        assert {NAMED.get(key, key) for key in keys} <= bound()


def test_every_page_of_the_navigation_exists_and_answers_a_question():
    assert {path.name for path in (ROOT / "pages").glob("*.py")} == {*PAGES, "frame.py"}
    assert all(page["question"].endswith("?") for page in table("pages")["page"])


def test_the_tour_opens_pages_and_views_that_exist():
    steps = (ROOT / "pages" / "steps.py").read_text()
    for step in tour.STEPS:
        assert step.page in PAGES
        assert not step.view or f'"{step.view}": ' in steps
