"""A whole audit: an evaluation of routes and baselines, with the decisions on each question also turned; and
its output: its figures, the figures of each question, and readable tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Unpack

from core.analysis.metrics import ANSWERS, titled
from core.domain.errors import BadInput, Unavailable
from core.domain.format import between, number
from core.domain.needs import Need
from core.engine.availability import missing, why_not
from core.engine.engine import Engine
from core.evaluation import experiment
from core.evaluation.audit import decisions
from core.evaluation.audit.decisions import BASELINE, BASELINES, Case, fires, loops, own, turned_in, turning
from core.evaluation.comparison import ByRoute
from core.evaluation.dataset import Found
from core.evaluation.experiment import Prepared
from core.evaluation.experiment_store import LABELLED, opened
from core.evaluation.outcome import Outcomes
from core.evaluation.runner import Course
from core.evaluation.spec import Spec
from core.evaluation.stored import figures_in, whole_lines
from core.evaluation.templating import render
from core.routes.registry import pick


def prepare(engine: Engine, spec: Spec, found: Found | None = None) -> Prepared:
    """Check `spec` and complete it: the baselines, its routes, and those it audits, which are all loops that
    can run here where it names none. Raises BadInput or Unavailable with what is wrong.
    """
    gaps = missing(engine, spec.corpus)

    def lacks(name: str) -> str:
        """Return why a route cannot run with its parameters, or ""."""
        route = pick([name])[0]
        return why_not(route, gaps, route.settle(spec.parameters.get(name, {}))) or ""

    said: list[str] = []
    names = [route.name for route in pick(list(spec.audit))] if spec.audit else []
    if not names:
        lacking = {route.name: lacks(route.name) for route in loops()}
        names = [name for name, why in lacking.items() if not why]
        said = [f"{name} is left out: {why}" for name, why in lacking.items() if why]
        if not names:
            raise Unavailable(f"no route that makes decisions can run here: {'; '.join(said)}")
    baseline = spec.baseline or BASELINE
    asked = list(dict.fromkeys((baseline, *BASELINES, *spec.routes, *names)))
    for name in asked:
        if why := lacks(name):
            raise Unavailable(f"{name} cannot be audited here: {why}; give --routes without it")
    if silent := [name for name in names if not own(name)]:
        said.append(f"{', '.join(silent)}: no decision of its own to turn")
    by_model = (spec.answer_by or engine.settings.answer_by) == "model"
    if spec.answers and by_model and Need.LLM in gaps:
        raise Unavailable(f"answers cannot be written by a model: {gaps[Need.LLM]}; give --answer-by extract")
    whole = replace(spec, routes=tuple(asked), baseline=baseline, audit=tuple(names))
    ready = experiment.prepare(engine, whole, found)
    drawn = ready.labelled
    if not any(drawn.labelled(q.id) or q.answers or q.answerable is False for q in drawn.questions):
        few = f"none of the {len(drawn.questions)} questions drawn"
        raise BadInput(f"{drawn.name}: {few} has a relevant passage or a gold answer")
    return replace(ready, warnings=(*said, *ready.warnings))


def perform(engine: Engine, ready: Prepared, out: Path, **course: Unpack[Course]) -> dict[str, Any]:
    """Ask every question both ways and write the figures into `out`; gives those of audit.json.

    What was asked in `out` before is not asked again. BadInput where it holds another audit or evaluation.
    Stopped between questions, or killed, it goes on where it was; stopped, the figures are of what was asked.
    """
    if not course.get("fresh") and (out / LABELLED).is_file():
        before, now = Spec.read(opened(out).spec).document(), ready.spec.document()
        other = [f"{key}: {before[key]!r} there, {now[key]!r} now" for key in now if before[key] != now[key]]
        if other:
            raise BadInput(f"{out} holds another audit or evaluation ({'; '.join(other)[:400]}); or --fresh")
    plan = ready.plan
    turned = {name: sorted(own(name)) for name in ready.spec.audit}
    pairs = {step: fires()[step] for step in sorted({step for some in turned.values() for step in some})}
    conditions = {**experiment.conditions_of(plan, engine), "turned": turned, "pairs": pairs}
    beside = turning(engine, ready.labelled, plan, turned, out, conditions, FILES, course)
    figures, labelled, outcomes = experiment.perform(engine, ready, out=out, beside=beside, **course)

    def measure(of: Outcomes, names: Sequence[str]) -> ByRoute:
        return decisions.measured(
            labelled, of, names, experiment.executed_of(labelled, of, names, engine, plan.corpus).values
        )

    values = measure(outcomes, plan.routes)
    found = decisions.cases(outcomes, turned_in(out), measure)
    llm = engine.llm()
    document = {
        **{key: figures[key] for key in TAKEN},
        "spec": ready.spec.document(),
        "baselines": [name for name in dict.fromkeys((ready.baseline, *BASELINES)) if name in plan.routes],
        "model": {"name": llm.model, "endpoint": llm.endpoint},
        "answering": asdict(plan.style) if plan.style else None,
        "versions": versions(),
        "pairs": pairs,
        "turned": {"asked_again": len(found), "left_out": sum(bool(case.left_out) for case in found)},
    }
    judged = [name for name in turned if name not in document["baselines"]]
    document["routes"] = decisions.route_table(outcomes, values, judged, document["baselines"])
    document |= {"decisions": decisions.table(found), "unpaired": decisions.unpaired(outcomes, turned)}
    write(out, document, values, found)
    return document


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
    "warnings",
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
KIND, PRICE = ("Route", "Decision"), ("More calls", "More tokens", "More seconds", "timed", "Left out")
FOUND = ("Precision", "Recall", "Better", "Tied", "Worse", "Missed")
Record = dict[str, Any]  # by the name of a column
Cells = dict[str, str]  # the same as text


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
    return figures_in(folder / AUDIT, {"routes", "decisions", "baseline", "queries"})


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
    """Return the tables for people as text, with their titles: the routes with intervals of their means;
    their differences that nobody planned; the decisions by each figure that turning one changed; and what
    firing took more than the other way.
    """
    rows, means = document["routes"], routes(document)
    for record, row in zip(means, rows.values(), strict=True):
        known = [name for name in SHOWN if row.get(name) is not None]
        record |= {titled(name): _figure(row[name], row["ci95"].get(name)) for name in known}
    made = [("Routes", means)]
    for base in document["baselines"]:
        others = []
        for route, against in ((route, row["against"].get(base)) for route, row in rows.items()):
            figures = {
                name: found for name, found in (against or {}).items() if name in SHOWN or name not in ANSWERS
            }
            cells = {
                titled(name): _figure(found["delta"], found["ci95"], signed=True)
                for name, found in figures.items()
            }
            others += [{"Route": route, **cells}] if against is not None else []
        made.append((f"Differences from {base}", others))
    every = (kind["figures"].items() for kind in document["decisions"])
    for metric in dict.fromkeys(name for some in every for name, found in some if found["touched"]):
        kinds = decisions_by(document, metric)
        made.append(
            (
                f"Decisions by {titled(metric)}",
                [{name: kind[name] for name in kind if name not in PRICE} for kind in kinds],
            )
        )
    prices = [{name: kind[name] for name in KIND + PRICE} for kind in decisions_by(document, "")]
    unpaired = [
        dict(zip((*KIND, "times"), (row["route"], row["step"], _counts(row["decisions"])), strict=True))
        for row in document["unpaired"]
    ]
    made += [("Price when fired", prices), ("Decisions that no pair names, which were not turned", unpaired)]
    return [(title, [{name: _cell(row[name]) for name in row} for row in some]) for title, some in made]


def routes(document: Mapping[str, Any]) -> list[Record]:
    """Return a record for each route: the difference that it claims, its means, and what a question took."""
    rows = document["routes"]
    shown = [name for name in SHOWN if any(row.get(name) is not None for row in rows.values())]
    more = {name for row in rows.values() for name in row["counts"] if "accuracy" in name} - {*shown}
    return [
        {
            "Route": route,
            "Claim": titled(row["claim"]) if "claim" in row else "baseline",
            **_difference("Planned", planned),
            "Verdict": planned.get("verdict", NOT_MEASURED if "claim" in row else ""),
            **{titled(name): row.get(name) for name in (*shown, *sorted(more))},
            "seconds": row["use"]["seconds_timed"],
            **{name: row["use"][name] for name in ("calls", "tokens", "timed", "failed")},
        }
        for route, row in rows.items()
        for planned in [row.get("planned") or {}]
    ]


def decisions_by(document: Mapping[str, Any], metric: str) -> list[Record]:
    """Return a record for each kind of decision: what firing gave in `metric`, and what it took more."""
    return [
        {
            "Route": kind["route"],
            "Decision": kind["step"],
            "Both ways": kind["n"],
            "Fired": kind["fired"],
            **{name: found.get(name.lower()) for name in FOUND},
            **_difference("Gain", found.get("gain") or {}),
            "Had it fired": found.get("gain_had_it_fired"),
            **{f"More {name}": kind["price"][name] for name in ("calls", "tokens", "seconds")},
            "timed": kind["price"]["timed"],
            "Left out": _counts(kind["left_out"]),
        }
        for kind in document["decisions"]
        for found in [kind["figures"].get(metric) or {}]
    ]


def _difference(name: str, found: Mapping[str, Any]) -> Record:
    low, high = found.get("ci95") or (None, None)
    return {name: found.get("delta"), "95% from": low, "to": high, "p (Holm)": found.get("p_holm")}


def _figure(value: float | None, pair: Sequence[float] | None, *, signed: bool = False) -> str:
    if value is None:
        return ""
    return number(value, signed=signed) + (f" ({between(*pair, signed=signed)})" if pair else "")


def _counts(of: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in of.items())


def _cell(value: Any) -> str:
    return "" if value is None else number(value) if isinstance(value, float) else str(value)
