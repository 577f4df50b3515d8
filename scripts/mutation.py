"""How many small faults put into a module its own tests notice: `make test-mutation`.

`scripts/mutants.toml` names the tests of each module and the changes that change nothing. A sample of
changes, drawn by a seed, is made in a copy of the work tree, one at a time; the module's tests run on each.

Neither of the two common tools fits (looked at in November 2026). mutmut 3.8 leaves functions with a
decorator alone, which here are the traced steps, the properties and the context managers, and draws no
sample. cosmic-ray 8.7 drops no statement, wants a configuration for each list of tests, and spends more than
a quarter of its mutants on `X | None` in annotations, which nothing evaluates.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LEAST_S, TIMES = (
    30.0,
    6,
)  # a mutant may take so many times what the sound module takes, and never less than this
WORD = re.compile(r"[a-z][a-z0-9_]*\Z")  # a key or the name of a choice, not words for people
COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.MatMult: ast.Mult,
}
OTHER = {"min": "max", "max": "min", "any": "all", "all": "any"}
SKIPPED = ("annotation", "returns", "decorator_list", "bases", "ctx")
Change = tuple[str, ast.AST]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one change; `where` is the line it stands on, stripped."""

    line: int
    where: str
    what: str
    text: str


@dataclass(frozen=True, slots=True)
class Tally:
    """What came of a module's mutants; `seconds` is what one took."""

    module: str
    possible: int
    killed: int
    equivalent: int
    survived: tuple[Mutant, ...]
    seconds: float

    @property
    def share(self) -> float:
        """Killed of those that are no equivalents, 0 to 1."""
        counted = self.killed + len(self.survived)
        return self.killed / counted if counted else 1.0


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    tree = ast.parse(source)
    lines = source.splitlines()
    found = []
    for holder, name, nth, node, within in _nodes(tree, ()):
        for what, new in _changes(node, within):
            _put(holder, name, nth, ast.copy_location(new, node))
            ast.fix_missing_locations(tree)
            found.append(Mutant(node.lineno, lines[node.lineno - 1].strip(), what, ast.unparse(tree)))
            _put(holder, name, nth, node)
    found.sort(key=lambda one: (one.line, one.what))
    times: Counter[tuple[int, str]] = Counter()
    for nth, one in enumerate(found):
        times[one.line, one.what] += 1
        if times[one.line, one.what] > 1:  # told apart, so that each can be named
            found[nth] = replace(one, what=f"{one.what}, {times[one.line, one.what]}")
    return found


def _put(holder: ast.AST, name: str, nth: int | None, node: ast.AST) -> None:
    if nth is None:
        setattr(holder, name, node)
    else:
        getattr(holder, name)[nth] = node


def _nodes(node: ast.AST, within: tuple[ast.AST, ...]) -> Iterator[tuple[Any, str, int | None, Any, Any]]:
    """Each node that may be changed, with where it is held and what it stands in, outermost first."""
    inside = (*within, node)
    for name, value in ast.iter_fields(node):
        if name in SKIPPED:
            continue
        for nth, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not _left_alone(child):
                if hasattr(child, "lineno"):
                    yield node, name, nth, child, inside
                yield from _nodes(child, inside)


def _left_alone(node: ast.AST) -> bool:
    """Imports, words for people, and what only a type checker or a log reads."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.Subscript):
        return ast.unparse(node.value) in ("Literal", "Callable")
    if isinstance(node, ast.Expr):
        call = node.value
        return isinstance(call, ast.Constant) or ast.unparse(call).startswith("log.")
    return False


def _changes(node: ast.AST, within: Sequence[ast.AST]) -> Iterator[Change]:
    top = not any(isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) for one in within)
    if any(isinstance(one, ast.Raise) for one in within):
        return  # the message: tests of messages quote a part
    if isinstance(node, ast.stmt):
        yield from _of_statement(node)
    elif isinstance(node, ast.Compare):
        for nth, one in enumerate(node.ops):
            yield _sign(one, COMPARED[type(one)]), _with(node, ops=_set(node.ops, nth, COMPARED[type(one)]()))
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
        text = any(isinstance(one, ast.JoinedStr) or _is_text(one) for one in (node.left, node.right))
        if not text and not (top and isinstance(node.op, ast.BitOr)):
            other = COMPUTED[type(node.op)]
            yield _sign(node.op, other), _with(node, op=other())
    elif isinstance(node, ast.BoolOp):
        yield "and <-> or", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for nth, one in enumerate(node.values):
            rest = _drop(node.values, nth)
            yield f"without `{_short(one)}`", rest[0] if len(rest) == 1 else _with(node, values=rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield f"without {'not' if isinstance(node.op, ast.Not) else '-'}", node.operand
    elif isinstance(node, ast.IfExp):
        yield "always the first", node.body
        yield "always the second", node.orelse
    elif isinstance(node, ast.Constant):
        yield from _of_constant(node, within, top=top)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for nth, one in enumerate(node.generators):
            if one.ifs:
                bare = _set(node.generators, nth, _with(one, ifs=[]))
                yield f"without `if {_short(one.ifs[0])}`", _with(node, generators=bare)
    elif isinstance(node, ast.Slice):
        for end in ("lower", "upper"):
            if getattr(node, end) is not None:
                yield f"slice without its {end} end", _with(node, **{end: None})
    elif isinstance(node, ast.Tuple):
        yield from _of_tuple(node, within[-1])
    elif isinstance(node, ast.Call) and not top:
        yield from _of_call(node)


def _of_statement(node: ast.stmt) -> Iterator[Change]:
    if isinstance(node, ast.If):
        yield "condition turned round", _with(node, test=ast.UnaryOp(ast.Not(), node.test))
        yield "never", _with(node, test=ast.Constant(False))
    elif isinstance(node, ast.While):
        yield "never", _with(node, test=ast.Constant(False))
    elif isinstance(node, ast.AugAssign) and type(node.op) in COMPUTED:
        other = COMPUTED[type(node.op)]
        yield _sign(node.op, other), _with(node, op=other())
    if _droppable(node):
        yield "dropped", ast.Pass()


def _droppable(node: ast.stmt) -> bool:
    """Statements without which the rest still runs."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await)
    if isinstance(node, ast.Assign):
        return any(isinstance(one, ast.Attribute | ast.Subscript) for one in node.targets)
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Delete | ast.Continue)


def _of_constant(node: ast.Constant, within: Sequence[ast.AST], *, top: bool) -> Iterator[Change]:
    holder, value = within[-1], node.value
    if isinstance(holder, ast.keyword) and holder.arg in ("strict", "slots", "frozen", "maxsize"):
        return
    if isinstance(value, bool):
        yield f"{value} -> {not value}", ast.Constant(not value)
    elif isinstance(value, int | float):
        # A bound at the top of a module is told apart by twice its value, an index by the next one.
        new = value + 1 if value == 0 or (isinstance(value, int) and not top) else value * 2
        yield f"{value} -> {new}", ast.Constant(new)
    elif isinstance(value, str) and WORD.match(value) and not top and not isinstance(holder, ast.Subscript):
        yield f"{value!r} -> {value + 'x'!r}", ast.Constant(f"{value}x")


def _of_tuple(node: ast.Tuple, holder: ast.AST) -> Iterator[Change]:
    """What is sorted or compared by: its parts left out, and their order."""
    call = isinstance(holder, ast.Call) and ast.unparse(holder.func).endswith("lexsort")
    key = call or isinstance(holder, ast.Lambda)
    if key and len(node.elts) > 1:
        for nth, one in enumerate(node.elts):
            yield f"without `{_short(one)}`", _with(node, elts=_drop(node.elts, nth))
    if key or isinstance(holder, ast.Return):
        for nth in range(len(node.elts) - 1):
            swapped = [*node.elts[:nth], node.elts[nth + 1], node.elts[nth], *node.elts[nth + 2 :]]
            yield f"`{_short(node.elts[nth])}` and the next change places", _with(node, elts=swapped)


def _of_call(node: ast.Call) -> Iterator[Change]:
    called = ast.unparse(node.func)
    if isinstance(node.func, ast.Name) and called in OTHER:
        yield f"{called} -> {OTHER[called]}", _with(node, func=ast.Name(OTHER[called], ast.Load()))
    if called.rsplit(".", 1)[-1][:1].islower():
        for nth, one in enumerate(node.keywords):
            if one.arg not in (None, "strict"):
                yield f"without {one.arg}=", _with(node, keywords=_drop(node.keywords, nth))


def _with(node: ast.AST, **fields: Any) -> Any:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _set(items: list[Any], nth: int, new: Any) -> list[Any]:
    return [*items[:nth], new, *items[nth + 1 :]]


def _drop(items: list[Any], nth: int) -> list[Any]:
    return [*items[:nth], *items[nth + 1 :]]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _sign(old: ast.AST, new: type[ast.AST]) -> str:
    return f"{type(old).__name__} -> {new.__name__}"


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 50 else f"{text[:47]}..."


class Copy:
    """A copy of the work tree in which modules are changed and their tests run."""

    def __init__(self, place: Path) -> None:
        self.place = place
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
        )
        for name in listed.stdout.decode().split("\0"):
            if name and not name.startswith("docs/") and (ROOT / name).is_file():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, place / name)

    def passes(self, tests: Sequence[str], within: float) -> bool | None:
        """Whether the tests pass; None where they do not end."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            *tests,
        ]
        process = subprocess.Popen(
            command,
            cwd=self.place,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
        )
        try:
            code = process.wait(within)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with what a test left behind
            process.wait()
        return code == 0

    def tried(self, module: str, mutant: Mutant, tests: Sequence[str], within: float) -> bool:
        """Whether the tests notice the mutant: they fail, or do not end."""
        path = self.place / module
        sound = path.read_text(encoding="utf-8")
        path.write_text(mutant.text, encoding="utf-8")
        try:
            return self.passes(tests, within) is not True
        finally:
            path.write_text(sound, encoding="utf-8")


def measure(module: str, told: dict[str, Any], copies: Sequence[Copy], sample: int, seed: int) -> Tally:
    """Try a sample of a module's mutants, side by side in as many copies as there are."""
    possible = mutants((ROOT / module).read_text(encoding="utf-8"))
    some = random.Random(f"{seed} {module}").sample(possible, min(sample, len(possible)))
    known = {(one["where"], one["what"]) for one in told.get("equivalent", ())}
    stale = known - {(one.where, one.what) for one in possible}
    if stale:
        raise SystemExit(f"{module}: named as equivalent in mutants.toml, but no mutant: {sorted(stale)}")
    counted = sorted((one for one in some if (one.where, one.what) not in known), key=lambda one: one.line)
    began = time.monotonic()
    if copies[0].passes(told["tests"], 600) is not True:
        raise SystemExit(f"{module}: its tests fail as it is: {' '.join(told['tests'])}")
    within = max(LEAST_S, TIMES * (time.monotonic() - began))
    free: SimpleQueue[Copy] = SimpleQueue()
    for one in copies:
        free.put(one)

    def noticed(mutant: Mutant) -> bool:
        place = free.get()
        try:
            return place.tried(module, mutant, told["tests"], within)
        finally:
            free.put(place)

    began = time.monotonic()
    with ThreadPoolExecutor(len(copies)) as pool:
        found = list(pool.map(noticed, counted))
    each = (time.monotonic() - began) / max(1, len(counted))
    alive = tuple(one for one, killed in zip(counted, found, strict=True) if not killed)
    return Tally(module, len(possible), sum(found), len(some) - len(counted), alive, each)


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)  # noqa: T201


def main() -> None:
    """Print a row of a Markdown table for each module, and what survived."""
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("modules", nargs="*", help="parts of their paths; without any, all of mutants.toml")
    asked.add_argument("--sample", type=int, default=15, help="mutants of each module")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--jobs", type=int, default=1)
    asked.add_argument("--list", action="store_true", help="print all mutants and try none")
    given = asked.parse_args()
    told = tomllib.loads((ROOT / "scripts" / "mutants.toml").read_text(encoding="utf-8"))["module"]
    wanted = [one for one in told if not given.modules or any(part in one for part in given.modules)]
    if given.list:
        for module in wanted:
            for one in mutants((ROOT / module).read_text(encoding="utf-8")):
                say(f"{module}:{one.line}: {one.what}: {one.where}")
        return
    os.nice(10)
    rows, killed, counted = [], 0, 0
    with TemporaryDirectory() as folder:
        copies = [Copy(Path(folder) / str(nth)) for nth in range(given.jobs)]
        for module in wanted:
            one = measure(module, told[module], copies, given.sample, given.seed)
            killed, counted = killed + one.killed, counted + one.killed + len(one.survived)
            rows.append(
                f"| `{module}` | {one.possible} | {one.killed + len(one.survived) + one.equivalent} "
                f"| {one.equivalent} | {one.killed} | {one.share:.0%} | {one.seconds:.1f} |"
            )
            say(rows[-1])
            for mutant in one.survived:
                say(f"  survived {module}:{mutant.line}: {mutant.what}: {mutant.where}")
    head = "| module | possible | tried | equivalent | killed | share | s each |"
    say("\n".join(["", head, "|---" * 7 + "|", *rows]))
    say(f"\n{killed} of {counted} killed: {killed / max(1, counted):.1%}")


if __name__ == "__main__":
    main()
