"""The docstrings of installed Python packages: a corpus that every machine has without a download.

The packages are imported in a child process (`python -m core.corpus.pydocs`), so that the app neither carries
them nor suffers what their import does.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from core.corpus.types import Document
from core.domain.errors import Unavailable
from core.domain.settings import PROJECT

SHORTEST, LONGEST = 120, 1600  # characters: less explains nothing, more is examples that cost embedding time
LONGEST_TITLE = 200
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Plan:
    """The documented parts of a package."""

    modules: tuple[str, ...]  # names of modules
    classes: tuple[str, ...] | None = ()  # classes whose methods are included; None for every class
    leave_out: str = ""  # a pattern for names: generated families, and what works only while an app runs


_DATA = tomllib.loads((PROJECT / "data" / "pydocs" / "plans.toml").read_text(encoding="utf-8"))
STANDARD_LIBRARY: tuple[str, ...] = tuple(_DATA["standard_library"].split())
PLANS: Mapping[str, Plan] = {
    name: Plan(tuple(one["modules"].split()), tuple(one.get("classes", "").split()), one.get("leave_out", ""))
    for name, one in _DATA["packages"].items()
}
DEFAULT = (*PLANS, *STANDARD_LIBRARY)

logger = logging.getLogger(__name__)


def documents(packages: Sequence[str] = DEFAULT) -> Iterator[Document]:
    """Docstrings of `packages` (names of PLANS or modules) as this interpreter has them, in a fixed order.

    Raises Unavailable when the child process that imports them fails.
    """
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    quiet = {"MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8", "PYTHONWARNINGS": "ignore"}
    command, env = (
        [sys.executable, "-m", "core.corpus.pydocs", *packages],
        {**os.environ, "PYTHONPATH": path, **quiet},
    )
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, cwd=ROOT, env=env, stderr=errors, **pipes) as child,
    ):
        for line in child.stdout or ():
            yield Document(**json.loads(line))
        code = child.wait()
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace").strip()
    if code:
        raise Unavailable(f"reading docstrings failed with code {code}: {said[-300:]}")
    if said:
        logger.info("%s", said)


def extract(packages: Iterable[str]) -> list[Document]:
    """Return the documents by importing `packages` into this process; failed imports are counted."""
    found: dict[str, Document] = {}
    skipped: list[str] = []
    for package in packages:
        plan = PLANS.get(package) or Plan((package,), classes=None)
        found = {**_of_plan(package, plan, skipped), **found}
    if skipped:
        logger.warning("%d modules or classes could not be imported: %s", len(skipped), ", ".join(skipped))
    return [found[name] for name in sorted(found)]


def _of_plan(package: str, plan: Plan, skipped: list[str]) -> dict[str, Document]:
    """Documents of one package by name; an object or a text found under several names has the shortest."""
    objects: list[tuple[str, object]] = []
    leave_out = re.compile(plan.leave_out or r"(?!)")

    def add(name: str, thing: object) -> list[tuple[str, object]]:
        """Take a module or class, and return its members, which are taken, too."""
        members = list(_members(name, thing, package, leave_out))
        objects.extend([(name, thing), *members])
        return members

    for name in (*plan.modules, *(plan.classes or ())):
        if (thing := _load(name)) is None:
            skipped.append(name)
            continue
        for path, member in add(name, thing):
            if plan.classes is None and inspect.isclass(member):
                objects += _members(path, member, package, leave_out)
    seen: set[object] = set()
    named: dict[str, Document] = {}
    for name, thing in sorted(objects, key=_preference):
        text = _text(thing)
        if text is not None and id(thing) not in seen and text not in seen:
            seen |= {id(thing), text}
            kind = "function" if callable(thing) else "property"
            kind = "module" if isinstance(thing, ModuleType) else "class" if inspect.isclass(thing) else kind
            named[name] = Document(name, _title(name, thing), text, {"package": package, "kind": kind})
    return named


def _preference(pair: tuple[str, object]) -> tuple[object, ...]:
    """Fewest dots first, then where it was defined rather than inherited, then the shorter name."""
    name, thing = pair
    inherited = not name.endswith(str(getattr(thing, "__qualname__", "")))
    return name.count("."), inherited, len(name), name


def _load(name: str) -> Any:
    """Return the module, or the object below a module, called `name`, or None if it cannot be imported."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:cut]))
            return functools.reduce(getattr, parts[cut:], module)
        except Exception as error:  # noqa: BLE001 - importing runs foreign code, which can raise anything
            logger.debug("%s: %r", name, error)
    return None


def _members(
    name: str, owner: object, package: str, leave_out: re.Pattern[str]
) -> Iterator[tuple[str, object]]:
    """Public things of a module or class with a docstring of their own that do not come from elsewhere."""
    listed = getattr(owner, "__all__", None) if isinstance(owner, ModuleType) else None
    for member in sorted(listed if listed is not None else dir(owner)):
        if member.startswith("_") or leave_out.search(f"{name}.{member}"):
            continue
        try:
            thing = getattr(owner, member)
        except Exception as error:  # noqa: BLE001 - lazy attributes import optional packages
            logger.debug("%s.%s: %r", name, member, error)
            continue
        home = _home(thing)
        at_home = home == package.split(".")[0] or (listed is not None and home not in PLANS)
        if at_home and _documented(thing):
            yield f"{name}.{member}", thing


def _documented(thing: object) -> bool:
    """Return True for a function, class, property or callable object, not for a constant or a generated
    distribution.
    """
    if inspect.isroutine(thing) or inspect.isclass(thing) or inspect.isdatadescriptor(thing):
        return True
    own = getattr(thing, "__doc__", None) != type(thing).__doc__
    return callable(thing) and own and not type(thing).__name__.endswith(("_gen", "_frozen"))


def _home(thing: Any) -> str:
    """Return the package that defines `thing`, as imported names are documented elsewhere."""
    if isinstance(thing, property):
        thing = thing.fget
    maker = getattr(thing, "__objclass__", thing)
    bound_to = type(getattr(thing, "__self__", None))
    home = getattr(maker, "__module__", None) or getattr(bound_to, "__module__", "")
    return str(home).split(".")[0].lstrip("_")


def _text(thing: object) -> str | None:
    """Return the cleaned docstring, truncated at a paragraph if long; None if it is missing or too short."""
    doc = getattr(thing, "__doc__", None)
    if not isinstance(doc, str) or len(text := inspect.cleandoc(doc)) < SHORTEST:
        return None
    if len(text) <= LONGEST:
        return text
    end = text.rfind("\n\n", 0, LONGEST)
    return text[: end if end >= SHORTEST else LONGEST].rstrip()


def _title(name: str, thing: Any) -> str:
    """Return the name with its signature, unless the signature is missing or shows an address in memory."""
    if not callable(thing):
        return name
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError, NameError):
        return name
    return name if " at 0x" in signature else (name + signature)[:LONGEST_TITLE]


def main(arguments: Sequence[str]) -> None:
    """Write the documents as JSON lines to standard output; what imported packages print goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        found = extract(arguments or DEFAULT)
    for document in found:
        sys.stdout.write(json.dumps(asdict(document), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    main(sys.argv[1:])
