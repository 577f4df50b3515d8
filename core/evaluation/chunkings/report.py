"""The figures of several chunkings: routes x chunkings by coverage, each against the corpus as it is; and the
same in sentences.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from core.corpus.corpus import Corpus
from core.corpus.source import key_of, variant_label
from core.domain.errors import BadInput
from core.domain.text import tokens
from core.evaluation import comparison, finding
from core.evaluation.chunkings.coverage import BUDGETS, METRICS, Area, Areas
from core.evaluation.stored import figures_in, whole_lines

FIGURES, QUESTIONS = "chunkings.json", "chunkings-questions.jsonl"
MEAN = "mean of the routes"  # a row next to the routes: a chunking's effect for any route
IN_USE = "in use"
Values = dict[str, dict[str, dict[str, float]]]  # route -> question -> metric -> value
ByChunking = Mapping[str, Values]  # by the name of the corpus


def table(
    values: ByChunking,
    base: str,
    metric: str,
    measured: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
) -> dict[str, Any]:
    """Under "routes" for each route and chunking the means of METRICS with the interval of `metric`, and
    under "vs_base" what its difference from `base` shows in `metric`: one Holm family of all routes and
    chunkings. "mean" has the same of the mean over the routes, None with a single one: a family of its own.
    "best" is the chunking of the highest mean, and whether that was shown.
    """
    routes = list(dict.fromkeys(route for by in values.values() for route in by))
    keys = {
        (route, name): values[name][route] for route in routes for name in values if route in values[name]
    }
    for name, by in values.items() if len(routes) > 1 else ():
        common = [id for id in next(iter(by.values()), {}) if all(id in row for row in by.values())]
        keys[MEAN, name] = {
            id: {one: fmean(row[id][one] for row in by.values()) for one in METRICS} for id in common
        }
    tested: dict[tuple[str, str], dict[str, Any]] = {}
    for some in ([MEAN], routes):
        pairs = [key for key in keys if key[0] in some and key[1] != base and (key[0], base) in keys]
        tested |= comparison.family(
            {key: comparison.differences(keys, key, (key[0], base), metric) for key in pairs}
        )
    table: dict[str, dict[str, Any]] = {route: {} for route in routes}
    for (route, name), found in comparison.means_of(keys, METRICS, [metric]).items():
        row = {**found, "ci95": found["ci95"][metric], "vs_base": tested.get((route, name))}
        if measured is not None and route != MEAN:
            row |= {one: measured[name][route][one] for one in ("failed", "errors")}
        table.setdefault(route, {})[name] = row
    figures = {"metric": metric, "base": base, "mean": table.pop(MEAN, None), "routes": table}
    return {**figures, "best": {route: best(row, base, metric) for route, row in rows(figures).items()}}


def rows(figures: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the rows of the table routes x chunkings: the mean of the routes, then each route."""
    return {**({MEAN: figures["mean"]} if figures["mean"] else {}), **figures["routes"]}


def flat(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a record for each route and chunking, for tables."""
    found = []
    for route, by in rows(figures).items():
        for name, row in by.items():
            low, high = row["ci95"] or (None, None)
            against = row["vs_base"] or {}
            found.append(
                {
                    "route": route,
                    "corpus": name,
                    "chunking": figures["chunkings"][name]["chunking"],
                    "coverage": row[figures["metric"]],
                    "low": low,
                    "high": high,
                    "delta": against.get("delta"),
                    "p": against.get("p_holm"),
                    **{one: row[one] for one in ("area", "density", "documents", "passages")},
                    "questions": row["n"],
                }
            )
    return found


def best(row: Mapping[str, Mapping[str, Any]], base: str, metric: str) -> dict[str, Any] | None:
    """Return the chunking of the highest mean, and what its difference from the corpus as it is shows:
    "better", "no difference shown", or "in use" if it is that, or None if nothing was measured.
    """
    known = {name: found[metric] for name, found in row.items() if found[metric] is not None}
    if not known:
        return None
    name = max(known, key=lambda one: (known[one], one == base))
    if name == base:
        return {"chunking": name, "verdict": IN_USE}
    against = row[name]["vs_base"]
    return {"chunking": name, "verdict": against["verdict"] if against else "not compared"}


def of_corpus(corpus: Corpus) -> dict[str, Any]:
    """Return the properties and the cost of an index."""
    info = corpus.info
    lengths = [tokens(passage.text) for _, passage, _ in corpus.everything()]
    return {
        "chunking": key_of(corpus.name) or info.chunking.key,
        "label": variant_label(corpus.name, info),
        "passages": info.passages,
        "tokens": fmean(lengths) if lengths else 0.0,
        "bytes": info.bytes,
        "seconds": sum(info.build_ms.values()) / 1000,
        "reused": info.reused / info.passages if info.passages else 0.0,
        "fingerprint": info.fingerprint,
    }


def write(folder: Path, figures: Mapping[str, Any], values: ByChunking, placed: Mapping[str, Areas]) -> None:
    """Write chunkings.json, and each question's figures and labelled places: a line each.

    `placed` has the places in the source's own corpus, and in each that is another reading of it.
    """
    lines: dict[str, dict[str, Any]] = {}
    for name, by in values.items():
        for route, row in by.items():
            for id, known in row.items():
                line = lines.setdefault(
                    id, {"question": id, "areas": {}, "chunkings": {one: {} for one in values}}
                )
                line["chunkings"][name][route] = [round(known[metric], 6) for metric in METRICS]
    for id, line in lines.items():
        line["areas"] = {name: [asdict(area) for area in by.get(id, ())] for name, by in placed.items()}
    whole_lines(folder / QUESTIONS, (json.dumps(line) + "\n" for line in lines.values()))
    whole_lines(folder / FIGURES, [json.dumps(figures, indent=1, allow_nan=False) + "\n"])


def read(folder: Path) -> dict[str, Any] | None:
    """Return the content of chunkings.json, or None without such a file. Raises BadInput if it is damaged."""
    return figures_in(folder / FIGURES, {"routes", "chunkings", "best", "base", "metric"})


def read_questions(folder: Path) -> tuple[dict[str, Values], dict[str, dict[str, list[Area]]]]:
    """Return the figures by chunking, route and question, and the labelled places by corpus and question.

    Raises BadInput if a file is damaged.
    """
    values: dict[str, Values] = {}
    placed: dict[str, dict[str, list[Area]]] = {}
    try:
        for line in (folder / QUESTIONS).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            for name, found_places in row["areas"].items():
                placed.setdefault(name, {})[row["question"]] = [Area(**one) for one in found_places]
            for name, by in row["chunkings"].items():
                for route, given in by.items():
                    found = dict(zip(METRICS, given, strict=True))
                    values.setdefault(name, {}).setdefault(route, {})[row["question"]] = found
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadInput(f"the chunkings in {folder} are damaged: {QUESTIONS}: {error}") from None
    return values, placed


NAMES = {
    **{f"coverage@{n}": f"coverage by {n:,} tokens" for n in BUDGETS},
    "area": "area under coverage",
    "density": "coverage per token",
    "documents": "share of the labelled documents",
}


WHOLE = "Where a whole document is labelled, all of its text counts, so that long ones weigh more."


def findings(figures: Mapping[str, Any], title: Callable[[str], str] = str) -> list[str]:
    """Return a sentence for each route, the mean of the routes first: whether its best chunking was shown to
    be better than the corpus as it is.
    """
    return [_of_route(figures, route, title) for route in rows(figures) if figures["best"].get(route)]


def failures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of core.evaluation.text.failing: the failures of each route over each chunking."""
    return {
        "queries": figures["queries"],
        "routes": {
            f"{route} over {name}": row for route, by in figures["routes"].items() for name, row in by.items()
        },
    }


def _of_route(figures: Mapping[str, Any], route: str, title: Callable[[str], str]) -> str:
    top, base, metric = figures["best"][route], figures["base"], figures["metric"]
    name = "The mean of the routes" if route == MEAN else title(route)
    if top["verdict"] == IN_USE:
        return f"{name}: no chunking covers more than {base} as it is."
    row = rows(figures)[route][top["chunking"]]
    found = finding.compared(row["vs_base"], top["chunking"], base, NAMES[metric])
    if found.shown:
        return f"{name}: {finding.sentence(found)}"
    if found.estimate is None:
        return f"{name}: {top['chunking']} covers most; it was not compared with {base}."
    most = f"{name}: {top['chunking']} covers most, not shown to be better than {base}"
    return f"{most}: {finding.figures(found)}."
