"""The output of an audit: its figures, the figures of each question, and readable tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from core.analysis.metrics import ANSWERS, titled
from core.domain.errors import BadInput
from core.domain.format import number, p_value
from core.evaluation.audit.cases import Case
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
SIDES = ("wins", "ties", "losses")
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
    whole_lines(folder / BY_ROUTE, _json(rows))
    whole_lines(folder / BY_DECISION, _json(map(asdict, found)))
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
    return [
        ("Routes", route_rows(document)),
        (f"What each route claims, against {document['baseline']}", claim_rows(document)),
        *((f"Differences from {name}", difference_rows(document, name)) for name in document["baselines"]),
        ("Decisions", decision_rows(document)),
        ("Price when fired", price_rows(document)),
        ("Decisions that no pair names, which were not turned", unpaired_rows(document)),
    ]


def route_rows(document: Mapping[str, Any]) -> list[Cells]:
    """Return a row a route: means with intervals, and what a question took."""
    rows = []
    figures = [name for name in SHOWN if any(name in row for row in document["routes"].values())]
    more = {name for row in document["routes"].values() for name in row["counts"] if "accuracy" in name}
    for route, row in document["routes"].items():
        took = row["use"]
        rows.append(
            {
                "route": route,
                **{titled(name): _mean(row, name) for name in (*figures, *sorted(more - set(figures)))},
                "calls": f"{took['calls']:.1f}",
                "tokens": f"{took['tokens']:.0f}",
                "seconds": _seconds(took["seconds_timed"], took["timed"], took["asked"] - took["failed"]),
                "failed": str(took["failed"]),
            }
        )
    return rows


def claim_rows(document: Mapping[str, Any]) -> list[Cells]:
    """Return a row a route: the planned difference from the baseline, and its verdict."""
    rows = []
    for route, row in document["routes"].items():
        if "claim" not in row:
            continue
        found = row["planned"]
        rows.append(
            {
                "route": route,
                "figure": titled(row["claim"]),
                "difference": _signed(found["delta"], found["ci95"]) if found else NOT_MEASURED,
                "p (Holm)": p_value(found["p_holm"]).removeprefix("p ").removeprefix("= ") if found else "",
                "verdict": found["verdict"] if found else "",
                "better / same / worse": " / ".join(str(found[key]) for key in SIDES) if found else "",
            }
        )
    return rows


def difference_rows(document: Mapping[str, Any], baseline: str) -> list[Cells]:
    """Return a row a route: its paired difference from a baseline in each figure, which nobody planned."""
    return [
        {
            "route": route,
            **{
                titled(name): _signed(found["delta"], found["ci95"])
                for name, found in row["against"][baseline].items()
                if name in SHOWN or name not in ANSWERS
            },
        }
        for route, row in document["routes"].items()
        if baseline in row["against"]
    ]


def decision_rows(document: Mapping[str, Any]) -> list[Cells]:
    """Return a row for each decision kind and figure that turning it changed; one row if it changed none."""
    rows = []
    for kind in document["decisions"]:
        touched = [name for name, found in kind["figures"].items() if found["touched"]]
        head = {
            "route": kind["route"],
            "decision": kind["step"],
            "n": str(kind["n"]),
            "fired": str(kind["fired"]),
        }
        rows += [{**head, **cells(kind["figures"][name], titled(name))} for name in touched]
        if not touched:
            rows.append({**head, "figure": "none changed on any question"})
    return rows


def cells(found: Mapping[str, Any], figure: str) -> Cells:
    """Format one figure of one decision kind."""
    gain = found["gain"]
    return {
        "figure": figure,
        "precision": _share(found["precision"], found["better"], found["fired"]),
        "tied": str(found["tied"]),
        "worse": str(found["worse"]),
        "recall": _share(found["recall"], found["better"], found["better"] + found["missed"]),
        "gain when fired": _signed(gain["delta"], gain["ci95"]) if gain else "",
        "gain had it fired": _signed(found["gain_had_it_fired"], found["gain_had_it_fired_ci95"]),
    }


def price_rows(document: Mapping[str, Any]) -> list[Cells]:
    """Return a row for each decision kind: what firing took more than the other way."""
    return [
        {
            "route": kind["route"],
            "decision": kind["step"],
            "fired": str(kind["price"]["n"]),
            "calls": _plain(kind["price"]["calls"], "+.1f"),
            "tokens": _plain(kind["price"]["tokens"], "+.0f"),
            "seconds": _seconds(kind["price"]["seconds"], kind["price"]["timed"], kind["price"]["n"]),
            "left out": ", ".join(f"{n} {why}" for why, n in kind["left_out"].items()),
        }
        for kind in document["decisions"]
    ]


def unpaired_rows(document: Mapping[str, Any]) -> list[Cells]:
    """Return how often steps made a decision that cannot be turned."""
    return [
        {
            "route": row["route"],
            "decision": row["step"],
            "times": ", ".join(f"{n} {decision}" for decision, n in row["decisions"].items()),
        }
        for row in document["unpaired"]
    ]


def _mean(row: Mapping[str, Any], name: str) -> str:
    if row.get(name) is None:
        return ""
    pair = row["ci95"].get(name)
    return number(row[name]) + (f" ({number(pair[0])} to {number(pair[1])})" if pair else "")


def _signed(value: float | None, pair: Sequence[float] | None) -> str:
    if value is None:
        return ""
    ends = f" ({number(pair[0], signed=True)} to {number(pair[1], signed=True)})" if pair else ""
    return number(value, signed=True) + ends


def _share(value: float | None, part: int, whole: int) -> str:
    return "" if value is None else f"{number(value)} ({part} of {whole})"


def _plain(value: float | None, form: str) -> str:
    return "" if value is None else f"{value:{form}}"


def _seconds(value: float | None, timed: int, of: int) -> str:
    """Measured seconds, with over how many they are where that is not all."""
    if value is None:
        return NOT_MEASURED if of else ""
    return f"{value:.2f}" + (f" ({timed} of {of})" if timed < of else "")


def _json(rows: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    return (json.dumps(row) + "\n" for row in rows)
