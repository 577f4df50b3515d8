"""Write a new route and its test from the templates: `make route NAME=my_route`."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

import core.routes
from core.domain.settings import PROJECT

TEMPLATES = Path(__file__).parent / "templates"
ROUTES, TESTS = Path(core.routes.__path__[0]), PROJECT / "tests" / "unit" / "routes"
PLACEHOLDER = "new_route"  # what a route is called in the templates; its title is "New route"
LONGEST = 40


def create(name: str, routes: Path = ROUTES, tests: Path = TESTS) -> tuple[Path, Path]:
    """Write the route and its test; the two files. ValueError for a name that cannot be one, FileExistsError
    where either file is there already: then nothing is written.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name) or name == "all":
        raise ValueError(
            f"{name!r} is not a name for a route: use lower-case letters, digits and single underscores, "
            "such as my_route"
        )
    if len(name) > LONGEST:
        raise ValueError(f"{name!r} is too long for a route: use at most {LONGEST} characters")
    made = {
        routes / f"{name}.py": TEMPLATES / f"{PLACEHOLDER}.py",
        tests / f"test_{name}.py": TEMPLATES / f"test_{PLACEHOLDER}.py",
    }
    for path in made:
        if path.exists():
            raise FileExistsError(f"{path.parent.name}/{path.name} exists already: choose another name")
    for path, template in made.items():
        text = template.read_text(encoding="utf-8").replace(PLACEHOLDER, name)
        path.write_text(text.replace("New route", name.replace("_", " ").capitalize()), encoding="utf-8")
    route, test = made
    return route, test


def main(arguments: list[str]) -> int:
    """Exit codes as those of `python -m core`: 0, or 2 for what cannot be done."""
    try:
        route, test = create(arguments[0] if len(arguments) == 1 else "")
    except (ValueError, FileExistsError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(
        f"Wrote {route.relative_to(PROJECT)} and {test.relative_to(PROJECT)}.\n"
        f"Test it:          .venv/bin/python -m pytest {test.relative_to(PROJECT)}\n"
        "Ask it something: "
        f".venv/bin/python -m core ask 'How do I start a return?' --corpus support --routes {route.stem}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
