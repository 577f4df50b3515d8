"""The figures of an evaluation as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

from core.analysis.metrics import KNOWN, UNJUDGED, titled
from core.cli.common import amount, table
from core.domain.format import between, number
from core.domain.text import one_line
from core.evaluation import text

ENDS = (text.IRRELEVANT, text.JUDGED)
ANSWER_COLUMNS = {one.name: one.short for one in KNOWN.values() if one.kind == "answer" and one.short}
KEY = "+/=/-: questions better, the same, worse; detect: smallest difference detectable with power 80%"


def figures_text(figures: Mapping[str, Any], out: Path | None) -> str:
    """Format the findings, the differences from the baseline, the figures by kind of question, and the
    errors. One of several routes with equal results represents them, except for times and calls.
    """
    distinct = {route: row for route, row in figures["routes"].items() if "same_as" not in row}
    drawn = figures["sample"]
    sample = f" (a sample of {drawn['of']}, seed {drawn['seed']})" if drawn else ""
    parts = [
        *text.generated(figures),
        f"{one_line(figures['dataset'])}: {figures['queries']} questions{sample}, {figures['labelled']} of "
        "them with a relevant passage",
        *text.found(figures),
        *text.counted(figures),
        "",
        _overall(distinct),
        "",
        _use(figures["routes"]),
    ]
    against = _against(distinct)
    if against:
        parts += ["", f"Against {figures['baseline']} (paired randomisation, Holm-adjusted)", KEY, against]
    if judge := figures.get("judge"):
        parts += ["", "Unjudged passages, judged by a language model", *_judged(judge)]
    if (told := figures.get("corrected")) and told["pairs"]:
        parts += ["", *_corrected(told, distinct, figures["baseline"])]
    if best := text.oracle(figures.get("oracle")):
        parts += ["", *best]
    if rounds := text.rounds(figures):
        parts += ["", "Stability over rounds", *rounds]
    if figures.get("answers"):
        parts += ["", "Answers", _answers(distinct), figures["answers"]["support"]]
        of_answers = _against({route: row.get("answers", {}) for route, row in distinct.items()})
        parts += ["", f"Answers against {figures['baseline']}", of_answers] if of_answers else []
    if any("extra" in row for row in figures["routes"].values()):
        parts += ["", _extra(figures["routes"])]
        parts += [figures["queries_judged_by"]] if "queries_judged_by" in figures else []
    for route, row in figures["routes"].items():
        if "routing" in row:
            parts += ["", _routing(route, row["routing"])]
    if figures["by_mode"]:
        rows = []
        for mode, by in figures["by_mode"].items():
            means = (amount(by[route]["ndcg@10"], 3) for route in distinct)
            rows.append((mode, next(iter(by.values()))["n"], *means))
        heads = ("kind", "n", *distinct)
        parts += ["", "nDCG@10 by kind of question", table(heads, rows)]
    errors = [f"{route}: {one_line(e)}" for route, row in figures["routes"].items() for e in row["errors"]]
    parts += ["", "Errors", *errors] if errors else []
    return "\n".join([*parts, "", f"Written to {out}/ (open report.html)"] if out else parts)


def _judged(judge: Mapping[str, Any]) -> list[str]:
    """Each metric's two ends, and whether the order of the routes holds."""
    metrics = list(judge["orders"])
    rows = [
        (route, *(" / ".join(amount(by[metric][end], 3) for end in ENDS) for metric in metrics))
        for route, by in judge["routes"].items()
    ]
    headers = ("route", *(KNOWN[name].short for name in metrics))
    return [
        text.judge_said(judge),
        "with unjudged passages as not relevant / as judged:",
        table(headers, rows),
        *text.orders_said(judge),
    ]


def _corrected(told: Mapping[str, Any], routes: Mapping[str, Any], baseline: str) -> list[str]:
    """Format each route's corrected mean and difference from `baseline`, and the labels that is worth."""
    rows = []
    for route, row in routes.items():
        if one := row.get("corrected"):
            against = one.get("vs_baseline")
            worth = "equivalent to {equal_to} labels; you gave {labels}".format(**(against or one))
            rows.append((route, *_with_ends(one), *_with_ends(against), worth))
    headers = ("route", KNOWN[told["metric"]].short, "95% interval", f"less {baseline}", "95% interval", "")
    return [
        f"Corrected: {told['labelled']} labelled and {told['unlabelled']} unlabelled questions",
        table(headers, rows),
    ]


def _with_ends(one: Mapping[str, Any] | None) -> tuple[str, str]:
    """Format a mean and its interval, or nothing."""
    if one is None:
        return "", ""
    return number(one["mean"]), between(*one["ci95"])


def _extra(routes: Mapping[str, Any]) -> str:
    """Measures that only some routes have, with their intervals."""
    rows = []
    for route, row in routes.items():
        more = row.get("extra", {"ci95": {}})
        for name, ends in more["ci95"].items():
            if ends is not None:
                rows.append((route, name, amount(more[name]), between(*ends), more["n"]))
    return table(("route", "measure", "mean", "95%", "questions"), rows)


def _routing(route: str, block: Mapping[str, Any]) -> str:
    """Format a router's classes against the kinds of question, and the loss of its choices."""
    rows = [(name, *row) for name, row in zip(block["classes"], block["confusion"], strict=True) if any(row)]
    headers = ("true / predicted", *block["classes"])
    parts = [
        f"{route}: accuracy {amount(block['accuracy'])} on {block['asked']} questions",
        table(headers, rows),
    ]
    if seen := block.get("trained_on"):
        right = f"{amount(seen['right'])} on {seen['asked']} questions"
        parts.append(f"the classifier was trained on this set too; with the set held out: accuracy {right}")
    if at := block.get("standing"):
        for said, one in (("gain over rerank", at["gain"]), (f"regret against {at['best']}", at["regret"])):
            parts.append(f"{said}: {amount(one['mean'])} [{', '.join(map(amount, one['ci95'] or ()))}]")
    if lost := block.get("regret"):
        best = ", ".join(f"{name} {count}" for name, count in sorted(lost["best"].items()))
        mean = f"{amount(lost['mean'])} ({lost['n']} questions; best was: {best})"
        parts.append(f"{lost['metric']} lost against the best route for each question: {mean}")
    return "\n".join(parts)


def _by_route(routes: Mapping[str, Any], shown: Mapping[str, Callable[[Any], object]]) -> str:
    """Format a row for each route and a column for each figure, by its title."""
    rows = [(route, *(figure(row) for figure in shown.values())) for route, row in routes.items()]
    return table(("route", *shown), rows)


def _means(names: Iterable[str]) -> dict[str, Callable[[Any], object]]:
    def shown(name: str) -> Callable[[Any], object]:
        return lambda row: amount(row[name], 3)

    return {KNOWN[name].short: shown(name) for name in names}


def _overall(routes: Mapping[str, Any]) -> str:
    """Format the means; the share of unjudged passages follows the metrics of the same depth."""
    deep: dict[str, list[str]] = {}
    for name, unjudged in UNJUDGED.items():
        deep.setdefault(unjudged, []).append(name)
    depths = sorted(deep, key=lambda metric: int(metric.rpartition("@")[2]))
    return _by_route(routes, _means(name for one in depths for name in (*deep[one], one)))


def _use(routes: Mapping[str, Any]) -> str:
    """Format the questions counted apart, times and model calls."""
    shown: dict[str, Callable[[Any], object]] = {
        **{name.replace("_", " "): itemgetter(name) for name in ("scored", "not_scored", "failed")},
        "p50 ms": lambda row: amount(row["p50_ms"], 1),
        "p95 ms": lambda row: amount(row["p95_ms"], 1),
        "calls": itemgetter("llm_calls"),
    }
    return _by_route(routes, shown)


def _answers(routes: Mapping[str, Any]) -> str:
    answered = {route: row["answers"] for route, row in routes.items() if "answers" in row}
    counts = {name: itemgetter(name) for name in ("n", "abstained")}
    return _by_route(answered, {**counts, **_means(ANSWER_COLUMNS)})


def _against(routes: Mapping[str, Any]) -> str:
    rows = []
    for route, row in routes.items():
        for name, one in row.get("vs_baseline", {}).items():
            ends = between(*one["ci95"], signed=True) if one["ci95"] else "-"
            counts = f"{one['wins']}/{one['ties']}/{one['losses']}"
            p, detect = f"{one['p_holm']:.3f}", amount(one["detectable_holm"], 3)
            delta = number(one["delta"], signed=True), ends, amount(one["d_z"], 2)
            rows.append((route, titled(name), *delta, counts, p, detect, one["verdict"]))
    headers = ("route", "metric", "delta", "95%", "d_z", "+/=/-", "p", "detect", "result")
    return table(headers, rows) if rows else ""
