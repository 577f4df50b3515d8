"""What splitting source code at functions is worth for retrieval: `python -m bench.code`.

Modules of the standard library without their docstrings are indexed twice: as Python, split at functions and
classes, and as plain text, split at line breaks. A question is the first sentence of a function's docstring;
what has to be found is that function. Both are cut at 700 characters.
"""

from __future__ import annotations

import ast
import random
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from core.corpus import index
from core.domain.settings import current
from core.domain.types import Query
from core.engine.engine import Engine
from core.engine.request import Request
from core.evaluation.statistics import mean_interval

MODULES = 60
QUESTIONS = 200
SEED = 39
WORDS = 5  # of a question, at least
ROUTES = ("bm25", "dense", "hybrid_auto", "grep")
DEPTH = 10
Function = tuple[str, str, int, int]  # question, module, start and end in the text without docstrings


def stripped(source: str) -> tuple[str, list[tuple[str, int, int]]]:
    """Return a module without docstrings, and (docstring, start, end) of its documented functions."""
    lines = source.splitlines(keepends=True)
    gone: set[int] = set()
    spans = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if (text := ast.get_docstring(node)) is None or len(node.body) == 1:
                continue
            gone.update(range(node.body[0].lineno - 1, node.body[0].end_lineno or 0))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                spans.append((text, node.lineno - 1, node.end_lineno or 0))
    kept = [at for at in range(len(lines)) if at not in gone]
    begins, size = {}, 0
    for at in range(len(lines)):
        begins[at] = size
        size += len(lines[at]) if at not in gone else 0
    begins[len(lines)] = size
    return "".join(lines[at] for at in kept), [(text, begins[a], begins[b]) for text, a, b in spans]


def functions(folder: Path, ending: str) -> Iterator[Function]:
    """Write the modules to `folder` with `ending`, and yield what can be asked of them."""
    found = sorted(Path(sysconfig.get_path("stdlib")).glob("[a-z]*.py"))
    for path in random.Random(SEED).sample(found, MODULES):
        text, spans = stripped(path.read_text(encoding="utf-8"))
        (folder / f"{path.stem}{ending}").write_text(text, encoding="utf-8")
        for docstring, start, end in spans:
            first = " ".join(docstring.split("\n\n")[0].split()).partition(". ")[0]
            if len(first.split()) >= WORDS:
                yield first, path.stem, start, end


def main() -> None:
    """Print a row for each route: share of functions found, and of their text read, both ways."""
    engine, found = Engine(current()), {}
    with TemporaryDirectory() as scratch:
        for ending in (".py", ".txt"):
            folder = Path(scratch) / ending[1:]
            folder.mkdir()
            every = list(functions(folder, ending))
            asked = random.Random(SEED).sample(every, min(QUESTIONS, len(every)))
            name = f"code-{ending[1:]}"
            corpus = index.build(name, folder, settings=engine.settings)
            whole = sum(any(a <= s and e <= b for a, b in _spans(corpus, m, ending)) for _, m, s, e in asked)
            sys.stdout.write(f"{name}: {corpus.size} passages, {whole} of {len(asked)} functions whole\n")
            for question, module, start, end in asked:
                run = engine.ask(Request(Query(question), name, ROUTES, stored=False))
                for result in run.results:
                    read, hit = set[int](), 0.0
                    for place in result.hits[:DEPTH]:
                        one = place.passage
                        if one.doc_id != f"{module}{ending}":
                            continue
                        inside = range(max(start, one.start), min(end, one.end))
                        read.update(inside)
                        hit = max(hit, float(len(inside) >= 0.5 * min(end - start, one.end - one.start)))
                    kept = found.setdefault((result.route, ending), ([], []))
                    kept[0].append(hit)
                    kept[1].append(len(read) / (end - start))
    for route in ROUTES:
        for at, what in enumerate(("found", "read")):
            code, text = found[route, ".py"][at], found[route, ".txt"][at]
            gained = [a - b for a, b in zip(code, text, strict=True)]
            low, high = mean_interval(gained, -1.0, 1.0) or (0.0, 0.0)
            means = [sum(values) / len(values) for values in (text, code, gained)]
            shown = " ".join(f"{mean:.3f}" for mean in (*means, low, high))
            sys.stdout.write(f"{route} {what}: {shown}\n")


def _spans(corpus: index.Corpus, module: str, ending: str) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in corpus.document(f"{module}{ending}")[1]]


if __name__ == "__main__":
    main()
