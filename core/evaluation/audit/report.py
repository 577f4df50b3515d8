"""The output of an audit: its figures, the figures of each question, and readable tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from core.analysis.metrics import ANSWERS, titled
from core.domain.errors import BadInput
from core.domain.format import between, number, p_value
from core.evaluation.audit.decisions import Case
from core.evaluation.comparison import ByRoute
from core.evaluation.report import whole_lines
from core.evaluation.templating import render

AUDIT, TABLES = "audit.json", "audit.md"
BY_ROUTE, BY_DECISION = "audit-routes.jsonl", "audit-decisions.jsonl"
FILES = (AUDIT, TABLES, BY_ROUTE, BY_DECISION)
TAKEN = (
    "dataset",
    "corpus",
    "fingerprint",
    "queries",
    "labelled",
    "baseline",
    "split",
    "sample",
    "timing",
    "machine",
    "interrupted",
    "statistics",
)
SHOWN = (
    "ndcg@10",
    "recall@10",
    "correct",
    "supported_accuracy",
    "abstention_precision",
    "abstention_recall",
    "citation_precision",
    "citation_recall",
)
PACKAGES = ("llama_cpp_python", "onnxruntime", "faiss-cpu", "bm25s", "numpy", "scipy", "ir_measures")
NOT_MEASURED = "not measured"
Cells = dict[str, str]  # by the name of a column


def versions() -> dict[str, str]:
    """Return the packages that rankings and figures depend on, those that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # an extra that nobody installed here
    return found


def write(folder: Path, document: Mapping[str, Any], values: ByRoute, found: Sequence[Case]) -> None:
    """Write audit.json, audit.md and the figures by question behind them: audit-routes.jsonl for each route,
    audit-decisions.jsonl for each decision both ways.
    """
    ids = list(dict.fromkeys(id for by in values.values() for id in by))
    rows = ({"question": id, "routes": {name: by.get(id) for name, by in values.items()}} for id in ids)
    whole_lines(folder / BY_ROUTE, (json.dumps(row) + "\n" for row in rows))
    whole_lines(folder / BY_DECISION, (json.dumps(asdict(case)) + "\n" for case in found))
    whole_lines(folder / AUDIT, [json.dumps(document, indent=1, allow_nan=False)])
    whole_lines(folder / TABLES, [markdown(document)])


def read(folder: Path) -> dict[str, Any] | None:
    """Return the content of audit.json, or None if it does not exist. Raises BadInput if it is damaged."""
    try:
        found = json.loads((folder / AUDIT).read_text(encoding="utf-8"))
        if {"routes", "decisions", "baseline", "queries"} - found.keys():
            raise ValueError("figures are missing")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError) as error:
        raise BadInput(f"the audit in {folder} is damaged: {error}") from None
    return dict(found)


def read_cases(folder: Path) -> list[Case]:
    """Return the decisions of audit-decisions.jsonl. Raises BadInput if it is damaged."""
    try:
        lines = (folder / BY_DECISION).read_text(encoding="utf-8").splitlines()
        return [Case(**{**given, "runs": tuple(given["runs"])}) for given in map(json.loads, lines)]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadInput(f"the audit in {folder} is damaged: {BY_DECISION}: {error}") from None


def markdown(document: Mapping[str, Any]) -> str:
    """Format the tables as Markdown."""
    return render("audit.md", document=document, tables=tables(document))


def tables(document: Mapping[str, Any]) -> list[tuple[str, list[Cells]]]:
    """Return the tables for people, with their titles."""
    kinds, routes = document["decisions"], document["routes"]
    claims = {route: row for route, row in routes.items() if "claim" in row}
    means = [name for name in SHOWN if any(name in row for row in routes.values())]
    more = {name for row in routes.values() for name in row["counts"] if "accuracy" in name}
    means += sorted(more - {*means})
    return [
        ("Routes", [{"route": route, **_route(row, means)} for route, row in routes.items()]),
        (
            f"What each route claims, against {document['baseline']}",
            [{"route": route, **_claim(row["claim"], row["planned"])} for route, row in claims.items()],
        ),
        *(
            (
                f"Differences from {name}",
                [
                    {"route": route, **_differences(row["against"][name])}
                    for route, row in routes.items()
                    if name in row["against"]
                ],
            )
            for name in document["baselines"]
        ),
        ("Decisions", [row for kind in kinds for row in _decision(kind)]),
        (
            "Price when fired",
            [{"route": one["route"], "decision": one["step"], **_price(one)} for one in kinds],
        ),
        (
            "Decisions that no pair names, which were not turned",
            [
                {
                    "route": row["route"],
                    "decision": row["step"],
                    "times": ", ".join(f"{n} {decision}" for decision, n in row["decisions"].items()),
                }
                for row in document["unpaired"]
            ],
        ),
    ]


def _route(row: Mapping[str, Any], means: Sequence[str]) -> Cells:
    """Return a route's means with intervals, and what a question took."""
    used = row["use"]
    return {
        **{titled(name): _figure(row.get(name), row["ci95"].get(name)) for name in means},
        "calls": f"{used['calls']:.1f}",
        "tokens": f"{used['tokens']:.0f}",
        "seconds": _seconds(used["seconds_timed"], used["timed"], used["asked"] - used["failed"]),
        "failed": str(used["failed"]),
    }


def _claim(figure: str, found: Mapping[str, Any] | None) -> Cells:
    """Return a route's planned difference from the baseline, and its verdict."""
    if found is None:
        return {"figure": titled(figure), "difference": NOT_MEASURED}
    return {
        "figure": titled(figure),
        "difference": _figure(found["delta"], found["ci95"], signed=True),
        "p (Holm)": p_value(found["p_holm"]).removeprefix("p ").removeprefix("= "),
        "verdict": found["verdict"],
        "better / same / worse": " / ".join(str(found[key]) for key in ("wins", "ties", "losses")),
    }


def _differences(against: Mapping[str, Mapping[str, Any]]) -> Cells:
    """Return a route's paired difference from a baseline in each figure, which nobody planned."""
    return {
        titled(name): _figure(found["delta"], found["ci95"], signed=True)
        for name, found in against.items()
        if name in SHOWN or name not in ANSWERS
    }


def _decision(kind: Mapping[str, Any]) -> list[Cells]:
    """Return a row for each figure that turning a decision changed; one row if it changed none."""
    head = {
        "route": kind["route"],
        "decision": kind["step"],
        "n": str(kind["n"]),
        "fired": str(kind["fired"]),
    }
    touched = {name: found for name, found in kind["figures"].items() if found["touched"]}
    if not touched:
        return [{**head, "figure": "none changed on any question"}]
    return [{**head, **cells(found, titled(name))} for name, found in touched.items()]


def cells(found: Mapping[str, Any], figure: str) -> Cells:
    """Format one figure of one decision kind."""
    gain, better = found["gain"] or {}, found["better"]
    had_ends = found["gain_had_it_fired_ci95"]
    return {
        "figure": figure,
        "precision": _share(found["precision"], better, found["fired"]),
        "tied": str(found["tied"]),
        "worse": str(found["worse"]),
        "recall": _share(found["recall"], better, better + found["missed"]),
        "gain when fired": _figure(gain.get("delta"), gain.get("ci95"), signed=True),
        "gain had it fired": _figure(found["gain_had_it_fired"], had_ends, signed=True),
    }


def _price(kind: Mapping[str, Any]) -> Cells:
    """Return what firing took more than the other way."""
    price = kind["price"]
    return {
        "fired": str(price["n"]),
        "calls": "" if price["calls"] is None else f"{price['calls']:+.1f}",
        "tokens": "" if price["tokens"] is None else f"{price['tokens']:+.0f}",
        "seconds": _seconds(price["seconds"], price["timed"], price["n"]),
        "left out": ", ".join(f"{n} {why}" for why, n in kind["left_out"].items()),
    }


def _figure(value: float | None, pair: Sequence[float] | None, *, signed: bool = False) -> str:
    if value is None:
        return ""
    return number(value, signed=signed) + (f" ({between(*pair, signed=signed)})" if pair else "")


def _share(value: float | None, part: int, whole: int) -> str:
    return "" if value is None else f"{number(value)} ({part} of {whole})"


def _seconds(value: float | None, timed: int, of: int) -> str:
    """Measured seconds, with over how many they are where that is not all."""
    if value is None:
        return NOT_MEASURED if of else ""
    return f"{value:.2f}" + (f" ({timed} of {of})" if timed < of else "")
