"""The findings of an evaluation in sentences: the same on its page, in its report and in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.analysis.metrics import COMPARED, UNJUDGED, titled
from core.evaluation import comparison, costs, finding
from core.evaluation.leaderboard import difference, distinct
from core.evaluation.templating import say, sentences

IRRELEVANT, JUDGED = "unjudged_irrelevant", "as_judged"  # the ends of a range, by how they were had


def ends_of(judge: Mapping[str, Any] | None, route: str, metric: str) -> tuple[float, float] | None:
    """Return a route's metric with unjudged passages as not relevant, and as judged, or None if there is no
    range. The second may be the lower one: what a route did not find is missed once it is known to be
    relevant.
    """
    found = (judge or {}).get("routes", {}).get(route, {}).get(metric)
    return None if found is None else (found[IRRELEVANT], found[JUDGED])


def order_said(judge: Mapping[str, Any], metric: str, name: Callable[[str], str] = str) -> str:
    """Return a sentence on whether the order of the routes is the same at both ends."""
    return say("judge.order", judge, metric, name)


def orders_said(judge: Mapping[str, Any]) -> list[str]:
    """Return sentences on the order by every metric; metrics with a stable order share one line."""
    return sentences("judge.orders", judge)


def judge_said(judge: Mapping[str, Any]) -> str:
    """Return sentences on the judge, how much it judged, and how far to trust it."""
    return say("judge.said", judge)


def judge_lines(judge: Mapping[str, Any], metric: str, name: Callable[[str], str] = str) -> list[str]:
    """Return all sentences for one metric: the judge, each route's range, and whether the order changes."""
    return sentences("judge.ranges", judge, metric, name)


Figures = Mapping[str, Any]
Named = Callable[[str], str]  # a route's title by its name


def found(figures: Figures, named: Named = str, metrics: Sequence[str] = COMPARED) -> list[str]:
    """Return sentences about an evaluation's figures, most important first: the verdict, what differs from
    the baseline in all of `metrics`, and what could have been detected.
    """
    decision, rows = dict(figures["decision"]), figures["routes"]
    metric = titled(decision.pop("metric"))
    against: dict[str, dict[str, list[str]]] = {}
    for name in metrics if len(rows) > 2 or len(metrics) > 1 else ():
        kinds = against[name] = {kind: [] for kind in ("better", "worse", "same")}
        for route in distinct(figures, name):
            if (one := difference(rows[route], name)) is not None:
                kinds[one["verdict"] if one["verdict"] in kinds else "same"].append(named(route))
    known = {
        route: {metrics[0]: one}
        for route, row in rows.items()
        if "same_as" not in row and (one := difference(row, metrics[0])) is not None
    }
    least = comparison.smallest(known, metrics[0])
    detectable = least and {**least, "metric": titled(metrics[0])}
    equal = figures.get("equal", ())
    return sentences("findings.found", figures, named, decision, metric, equal, against, detectable)


def generated(figures: Figures) -> list[str]:
    """Return the sentence that stands first where a model wrote questions and labels."""
    made = figures.get("generated")
    return [made["note"]] if made else []


def counted(figures: Figures, named: Named = str, asked: int | None = None) -> list[str]:
    """Sentences about the questions that the means cover; `asked`: the number of questions planned."""
    name = UNJUDGED[COMPARED[0]]  # a route that finds new passages scores lower
    shares = [share for row in figures["routes"].values() if (share := row.get(name)) is not None]
    unjudged = (min(shares), max(shares)) if shares else None
    return sentences("findings.counted", figures, named, asked, unjudged, costs.machine_sentences(figures))


def oracle(block: Mapping[str, Any] | None, named: Named = str) -> list[str]:
    """Return the result of choosing the best route for each question, from core.evaluation.oracle.block."""
    if block is None:
        return []
    best = finding.mean("", titled(block["metric"]), block["mean"], block["ci95"], block["n"])
    return sentences("findings.oracle", block, named, finding.figures(best))


def rounds(figures: Figures, named: Named = str, metric: str | None = None) -> list[str]:
    """Return sentences on how stable each rerun route is in `metric`; by default in the headline metric, or
    in the first metric of its answers if no ranking was scored. Empty without further rounds.
    """
    return sentences("findings.rounds", figures, named, metric) if figures.get("stability") else []


def failing(figures: Figures, most: float) -> list[str]:
    """Return the routes that failed on more than the share `most` of the questions."""
    return [name for name, row in figures["routes"].items() if row["failed"] > most * figures["queries"]]


def failing_said(figures: Figures, most: float) -> str:
    """Return the sentence that comes before all figures if some route failed too often, else ""."""
    routes = failing(figures, most)
    return say("findings.failing", figures, str, routes, most) if routes else ""
