"""Train the lightweight retrieval evaluator: `python -m scripts.evaluator SET... [--check SET...] [--own]`.

A SET is a corpus with questions (support, pydocs) or a BEIR folder, indexed, quicker with token vectors
(`python -m core index SET --with tokens`). It is trained on dev questions, without any on those outside split
test, and on test questions only with `--test`; it is checked on test questions. Writes
data/evaluators/lightweight.json, with `--own` HOME/evaluators/CORPUS.json for each corpus trained on; with
`--dry` nothing. Prints what it is worth.
"""

from __future__ import annotations

import argparse
import json
import sys

from core.backends.evaluators import LIGHTWEIGHT, SHIPPED, trained
from core.backends.trained_files import write_trained
from core.corpus import catalogue
from core.domain import settings
from core.domain.errors import RouteScopeError
from core.domain.format import ProgressBar
from core.engine.engine import Engine
from core.evaluation import sets
from core.evaluation.calibration import of_dev
from scripts.evaluator_training import Pairs, measure, train, worth

SEED = 0


def pairs(engine: Engine, target: str, *, test: bool, count: int | None) -> tuple[str, Pairs]:
    """The corpus' name and the pairs of one set: of its split test, or of the questions to train on. Raises
    BadInput where it has none.
    """
    source = catalogue.source(target, settings=engine.settings)
    split = "test" if test else "all"
    found = sets.read(source.name, source.path, split=split)
    labelled, _ = sets.tie(found, engine.corpus(source.name))
    if not test:
        labelled = of_dev(labelled)
    if count:
        labelled = labelled.sample(count, SEED)
    bar = ProgressBar("q")
    measured = measure(engine, labelled, source.name, lambda done, of: bar(source.name, done, of))
    return source.name, measured


def main() -> None:
    """Print the figures of the folds and of each set to check on, as JSON."""
    parser = argparse.ArgumentParser(description="Train the lightweight retrieval evaluator.")
    parser.add_argument("sets", nargs="+", help="sets to train on")
    parser.add_argument("--check", nargs="*", default=[], help="sets to check on")
    parser.add_argument("--queries", type=int, help="a sample of this many questions of each set")
    parser.add_argument("--own", action="store_true", help="for the corpora trained on alone")
    parser.add_argument("--test", action="store_true", help="train on the test questions")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    given = parser.parse_args()
    engine = Engine(settings.load(route_timeout_s=3600))
    corpora, made = zip(
        *(pairs(engine, target, test=given.test, count=given.queries) for target in given.sets), strict=True
    )
    evaluator = train(made)
    told = {"trained": evaluator.made, "checked": {}}
    for target in given.check:
        name, checked = pairs(engine, target, test=True, count=given.queries)
        told["checked"][name] = worth(evaluator, checked)
    sys.stdout.write(json.dumps(told, indent=1) + "\n")
    home = engine.settings.home
    paths = [trained(home, name) for name in corpora] if given.own else [SHIPPED / f"{LIGHTWEIGHT}.json"]
    for path in () if given.dry else paths:
        write_trained(evaluator, path)
        sys.stderr.write(f"written: {path}\n")


if __name__ == "__main__":
    try:
        main()
    except RouteScopeError as error:
        raise SystemExit(str(error)) from None
