"""What an evaluation found, in sentences: the same on its page, in its report and in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.analysis.metrics import COMPARED, UNJUDGED, title
from core.domain.format import brief
from core.evaluation import effects, leading, naming, oracle, stability

Named = Callable[[str], str]  # a route's title by its name


def found(figures: Mapping[str, Any], named: Named = str) -> list[str]:
    """Sentences about an evaluation's figures, most important first: who leads and whether that is shown,
    what could have been seen, which routes differ from the baseline, and what was counted beside.

    Figures of an evaluation made before they held all of this tell what they have.
    """
    said = [
        _leader(figures, named),
        *_detectable(figures),
        _against(figures, named),
        _counts(figures, named),
        _unjudged(figures),
    ]
    return [sentence for sentence in said if sentence]


def chosen_by_question(figures: Mapping[str, Any], named: Named = str) -> str:
    """What the best route of each question would give; "" where the figures do not hold it."""
    told = figures.get("oracle")
    return oracle.in_words(told, named) if told else ""


def rounds(figures: Mapping[str, Any], named: Named = str) -> list[str]:
    """How stable each route is that was asked again, in the headline metric, or in what its answers are worth
    where no ranking was scored; nothing without further rounds.
    """
    told = figures.get("stability")
    if told is None:
        return []
    if not told["routes"]:
        return [f"Asked {told['rounds']} times, but no question was scored in every round."]
    baseline = named(told.get("baseline", figures["baseline"]))
    return [
        stability.in_words(by[metric], named(route), baseline, naming.named(metric))
        for route, by in told["routes"].items()
        for metric in list(by)[:1]
    ]


def _leader(figures: Mapping[str, Any], named: Named) -> str:
    if "leader" not in figures:
        return ""
    told = figures["leader"]
    row = figures["routes"][told["route"]] if told else {}
    one = row.get("vs_baseline", {}).get(told["metric"]) if told else None
    return leading.leader_in_words(told, figures["baseline"], one, named)


def _detectable(figures: Mapping[str, Any]) -> list[str]:
    known = figures.get("detectable") or {}
    metric = COMPARED[0]
    one = known.get(metric)
    return [effects.smallest_in_words(one, title(metric))] if one else []


def _against(figures: Mapping[str, Any], named: Named) -> str:
    """In each metric compared, the routes that are shown to be better or worse than the baseline."""
    baseline = figures["baseline"]
    rows = {route: row.get("vs_baseline", {}) for route, row in figures["routes"].items()}
    others = [route for route in rows if route != baseline]
    if not others:
        return ""
    shown, none = [], []
    for metric in COMPARED:
        kinds = []
        for kind in ("better", "worse"):
            some = [route for route in others if rows[route].get(metric, {}).get("verdict") == kind]
            if some:
                every = len(some) == len(others) > 1
                kinds.append(f"{kind} for {f'all {len(some)}' if every else ', '.join(map(named, some))}")
        if kinds:
            shown.append(f"{title(metric)} is {' and '.join(kinds)}")
        else:
            none.append(title(metric))
    if not shown:
        which = f"any of the other {len(others)} routes" if len(others) > 1 else named(others[0])
        return f"No difference from {named(baseline)} is shown for {which} in {_listed(none)}."
    rest = f" In {_listed(none)} no difference is shown." if none else ""
    return f"Against {named(baseline)} it is shown that {'; '.join(shown)}.{rest}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _counts(figures: Mapping[str, Any], named: Named) -> str:
    """What is not in the means."""
    asked, labelled = figures["queries"], figures["labelled"]
    said = f"{effects.counted(asked)} asked, {labelled} with a relevant passage"
    if asked > labelled:
        said += f"; the other {asked - labelled} have nothing to score and count for time only"
    failed = {route: row["failed"] for route, row in figures["routes"].items() if row["failed"]}
    if not failed:
        return f"{said}. No route failed on any."
    some = ", ".join(f"{named(route)} {count}" for route, count in failed.items())
    return f"{said}. Failed, and in no mean: {some}."


def _unjudged(figures: Mapping[str, Any]) -> str:
    """How much of what routes show first nobody has judged: a route that finds new passages pays for it."""
    shares = [
        share for row in figures["routes"].values() if (share := row.get(UNJUDGED[COMPARED[0]])) is not None
    ]
    if not shares or max(shares) <= 0:
        return ""
    low, high = brief(min(shares)), brief(max(shares))
    some = low if low == high else f"{low} to {high}, by route,"
    return f"Of the first 10 passages {some} have no judgement and count as not relevant."
