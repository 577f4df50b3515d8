"""Compare the routes that ask no model over datasets: `python -m bench.families DIR SET...`.

A SET is what `eval` takes: the name of a corpus with questions, or a BEIR folder. DIR keeps its evaluation;
one that is there is read, not made again. Prepare each by `index SET --with all`. Writes data/families.toml:
each route's nDCG@10 on each set, its mean rank in its family, the sets on which it is better or worse than
REFERENCE (by a 95% interval of each, not adjusted), and the route recommended of each family.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import tomlkit

from core.analysis.rank_overlap import rbo
from core.api import evaluate
from core.evaluation import experiment_store
from core.evaluation.comparison import pair
from core.evaluation.experiment_store import Evaluation
from core.evaluation.labels.pool import CONTROLS
from core.routes.families import PATH, REFERENCE
from core.routes.registry import ours

METRIC = "ndcg@10"
DEPTH, PERSISTENCE = 10, 0.9  # of the overlap of two rankings
ABOUT = "Written by `python -m bench.families`. docs/figures.md explains it."


def evaluation(folder: Path, target: str) -> Evaluation:
    """Return the evaluation of a set, made now unless `folder` has it."""
    place = folder / Path(target).name
    if not (place / experiment_store.FIGURES).is_file():
        names = [one.name for one in ours().values() if not one.asks() and one.name not in CONTROLS]
        evaluate(target, names, split="all", baseline=REFERENCE, out=place)
    return experiment_store.opened(place)


def scores(one: Evaluation) -> dict[str, dict[str, float]]:
    """Return route -> question -> nDCG@10 of the routes that answered every labelled question."""
    found = {route: {id: row[METRIC] for id, row in rows.items()} for route, rows in one.values.items()}
    asked = len(found[REFERENCE])
    return {route: rows for route, rows in found.items() if len(rows) == asked and route in ours()}


def table(sets: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, Any]]:
    """Return a row for each measured route, by name; `sets` are `scores` by set."""
    rows: dict[str, dict[str, Any]] = {}
    for route in sorted({route for one in sets.values() for route in one}):
        means = {name: round(fmean(one[route].values()), 4) for name, one in sets.items() if route in one}
        rows[route] = {"family": ours()[route].family, "better": [], "worse": [], METRIC: means}
    for name, one in sets.items():
        for route, values in one.items():
            found = pair(route, REFERENCE, [values[id] - was for id, was in one[REFERENCE].items()])
            if found is not None and found.verdict in ("better", "worse"):
                rows[route][found.verdict].append(name)
    return ranked(rows)


def ranked(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Add to each row the mean over its sets of its value, and of its rank among the rows of its family that
    the set has.
    """
    found = {}
    for route, row in rows.items():
        relatives = [one[METRIC] for one in rows.values() if one["family"] == row["family"]]
        ranks = [
            rank(value, [one[name] for one in relatives if name in one])
            for name, value in row[METRIC].items()
        ]
        means = {"mean": round(fmean(row[METRIC].values()), 4), "mean_rank": round(fmean(ranks), 2)}
        found[route] = {**row, **means}
    return found


def rank(value: float, values: Sequence[float]) -> float:
    """Return the rank of `value` among `values`, the highest first; equal ones share the mean rank."""
    return 1 + sum(other > value for other in values) + (sum(other == value for other in values) - 1) / 2


def recommended(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return each family's route of the least mean rank; of equal ones that of the higher mean."""
    order = sorted(
        rows, key=lambda route: (rows[route]["mean_rank"], -rows[route]["mean"], route), reverse=True
    )
    return dict(sorted({rows[route]["family"]: route for route in order}.items()))


def overlaps(evaluations: Sequence[Evaluation], routes: Sequence[str]) -> dict[str, float]:
    """Return the mean rank-biased overlap of each two routes' first ten passages, over the questions of each
    set and then over the sets; the most alike first.
    """
    found: dict[str, float] = {}
    for pairs in combinations(routes, 2):
        means = []
        for one in evaluations:
            both = [[row[route] for route in pairs] for row in one.outcomes.values()]
            tops = [[[id for id, _ in outcome.hits[:DEPTH]] for outcome in two] for two in both]
            means.append(fmean(rbo(first, second, PERSISTENCE) for first, second in tops))
        found[" ".join(pairs)] = round(fmean(means), 3)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def main(folder: str, *targets: str) -> None:
    """Write and print the table."""
    evaluations = [evaluation(Path(folder), target) for target in targets]
    sets = {one.name: scores(one) for one in evaluations}
    rows = table(sets)
    defaults = [route for route in rows if ours()[route].first]
    document = {
        "date": datetime.now(UTC).date().isoformat(),
        "sets": {name: len(one[REFERENCE]) for name, one in sets.items()},
        "recommended": recommended(rows),
        "overlap": overlaps(evaluations, defaults),
        "routes": rows,
    }
    PATH.write_text(f"# {ABOUT}\n{tomlkit.dumps(document)}", encoding="utf-8")
    order = sorted(rows, key=lambda route: (rows[route]["family"], rows[route]["mean_rank"]))
    for route in order:
        row = rows[route]
        mark = "*" if route in document["recommended"].values() else " "
        values = " ".join(f"{row[METRIC][name]:.3f}" if name in row[METRIC] else "  -  " for name in sets)
        against = f"+{len(row['better'])} -{len(row['worse'])}"
        start = f"{row['family']:10} {mark}{route:20} {row['mean_rank']:5.2f} {row['mean']:.3f} {against}"
        sys.stdout.write(f"{start}  {values}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
