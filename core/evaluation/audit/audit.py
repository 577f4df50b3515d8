"""A whole audit: an evaluation of routes and baselines, with the decisions on each question also turned; and
its output: its figures, the figures of each question, and readable tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from core.analysis.metrics import ANSWERS, titled
from core.domain.errors import BadInput, Unavailable
from core.domain.format import between, number, p_value
from core.domain.needs import Need
from core.engine.availability import missing, why_not
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

if TYPE_CHECKING:
    from core.engine.engine import Engine


def prepare(engine: Engine, spec: Spec, found: Found | None = None, folder: Path | None = None) -> Prepared:
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
    ready = experiment.prepare(engine, whole, found, folder)
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
    """Return the tables for people, with their titles: a route's means with intervals and what a question
    took; its planned difference; its differences that nobody planned; each figure that turning a decision
    changed; and what firing took more than the other way.
    """
    kinds, routes = document["decisions"], document["routes"]
    means = [name for name in SHOWN if any(name in row for row in routes.values())]
    more = {name for row in routes.values() for name in row["counts"] if "accuracy" in name}
    means += sorted(more - {*means})
    measured, claims, decided, prices = [], [], [], []
    for route, row in routes.items():
        used = row["use"]
        measured.append(
            {
                "route": route,
                **{titled(name): _figure(row.get(name), row["ci95"].get(name)) for name in means},
                "calls": f"{used['calls']:.1f}",
                "tokens": f"{used['tokens']:.0f}",
                "seconds": _seconds(used["seconds_timed"], used["timed"], used["asked"] - used["failed"]),
                "failed": str(used["failed"]),
            }
        )
        if "claim" in row:
            found = row["planned"]
            shown = (
                {"difference": NOT_MEASURED}
                if found is None
                else {
                    "difference": _figure(found["delta"], found["ci95"], signed=True),
                    "p (Holm)": p_value(found["p_holm"]).removeprefix("p ").removeprefix("= "),
                    "verdict": found["verdict"],
                    "better / same / worse": " / ".join(
                        str(found[key]) for key in ("wins", "ties", "losses")
                    ),
                }
            )
            claims.append({"route": route, "figure": titled(row["claim"]), **shown})
    for kind in kinds:
        head = {"route": kind["route"], "decision": kind["step"]}
        counts = {name: str(kind[name]) for name in ("n", "fired")}
        touched = [cells(found, titled(name)) for name, found in kind["figures"].items() if found["touched"]]
        none = {"figure": "none changed on any question"}
        decided += [{**head, **counts, **row} for row in touched or [none]]
        price = kind["price"]
        prices.append(
            {
                **head,
                "fired": str(price["n"]),
                "calls": "" if price["calls"] is None else f"{price['calls']:+.1f}",
                "tokens": "" if price["tokens"] is None else f"{price['tokens']:+.0f}",
                "seconds": _seconds(price["seconds"], price["timed"], price["n"]),
                "left out": ", ".join(f"{n} {why}" for why, n in kind["left_out"].items()),
            }
        )
    others = []
    for name in document["baselines"]:
        rows = [
            {
                "route": route,
                **{
                    titled(figure): _figure(found["delta"], found["ci95"], signed=True)
                    for figure, found in row["against"][name].items()
                    if figure in SHOWN or figure not in ANSWERS
                },
            }
            for route, row in routes.items()
            if name in row["against"]
        ]
        others.append((f"Differences from {name}", rows))
    unpaired = []
    for row in document["unpaired"]:
        times = ", ".join(f"{n} {decision}" for decision, n in row["decisions"].items())
        unpaired.append({"route": row["route"], "decision": row["step"], "times": times})
    return [
        ("Routes", measured),
        (f"What each route claims, against {document['baseline']}", claims),
        *others,
        ("Decisions", decided),
        ("Price when fired", prices),
        ("Decisions that no pair names, which were not turned", unpaired),
    ]


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
