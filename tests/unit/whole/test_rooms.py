"""The picture of the rooms, and the page about them, are what the import contracts say."""

import re
import xml.etree.ElementTree as ET

from core.domain.settings import PROJECT
from scripts import rooms

PAGE = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_picture_is_drawn_from_the_contracts():
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.picture(), "run: python -m scripts.rooms"
    drawn = "".join(ET.fromstring(rooms.picture()).itertext())
    for package, layers in rooms.layers().items():
        for room in (room for layer in layers for room in layer):
            assert room in drawn, f"{package}/{room}"


def test_every_package_of_core_and_ui_is_a_room():
    known = {
        f"{package}/{room}"
        for package, layers in rooms.layers().items()
        for layer in layers
        for room in layer
    }
    here = {
        f"{package}/{path.parent.name}"
        for package in ("core", "ui")
        for path in (PROJECT / package).glob("*/__init__.py")
    }
    assert known == here
    loose = {path.name for package in ("core", "ui") for path in (PROJECT / package).glob("*.py")}
    assert loose == {"__init__.py", "__main__.py"}


def test_every_room_says_in_five_lines_what_lives_there():
    for path in [*(PROJECT / "core").glob("**/__init__.py"), *(PROJECT / "ui").glob("**/__init__.py")]:
        text = path.read_text(encoding="utf-8").split('"""')[1]
        assert len(text.strip().splitlines()) <= 5, path
        assert re.search(r"[Ii]mport", text) or path.parent.parent.name not in ("core", "ui"), path


def test_every_file_that_the_page_names_is_there():
    named = set(re.findall(r"`((?:core|ui|pages|tests|scripts)/[\w/.]+\.(?:py|md))`", PAGE))
    assert len(named) > 20
    assert not {name for name in named if not (PROJECT / name).exists()} - {
        "core/routes/my_route.py",
        "tests/unit/routes/test_my_route.py",
        "pages/NAME.py",
        "tests/pages/test_NAME.py",
        "core/cli/NAME.py",
    }
