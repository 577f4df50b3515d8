"""What an evaluation found, in sentences: the same on its page, in its report and in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.analysis.metrics import COMPARED, UNJUDGED
from core.domain.format import brief
from core.evaluation import effects
from core.evaluation.finding import compared, count, ends, figures, listed, mean, number, sentence
from core.evaluation.leaderboard import difference, ranked
from core.evaluation.naming import named as metric_named
from core.evaluation.power import more_in_words

Figures = Mapping[str, Any]
Named = Callable[[str], str]  # a route's title by its name


def found(figures: Figures, named: Named = str, metrics: Sequence[str] = COMPARED) -> list[str]:
    """Sentences about an evaluation's figures, most important first: who leads in the first of `metrics`,
    what differs from the baseline in all of them, and what could have been detected.

    Figures of an evaluation made before they held all of this tell what they have.
    """
    first = _leader(figures["leader"], figures, named) if "leader" in figures else []
    rest = _against(figures, metrics, named) if len(figures["routes"]) > 2 or len(metrics) > 1 else []
    return [*first, *rest, *_detectable(figures, metrics[0])]


def counted(figures: Figures, named: Named = str, asked: int | None = None) -> list[str]:
    """Sentences about what is in the means and what is not; `asked`: the questions that were to be asked."""
    rows, n, labelled = figures["routes"], figures["queries"], figures["labelled"]
    said = f"{count(n)} asked, {labelled} with a relevant passage"
    if n > labelled:
        said += f"; the other {n - labelled} count for time and answers, not for rankings"
    failed = {route: row["failed"] for route, row in rows.items() if row["failed"]}
    which = ", ".join(f"{named(route)} {of}" for route, of in failed.items())
    told = [
        f"Stopped early: these are figures of {n} of {asked} questions." if asked and n < asked else "",
        f"{said}.",
        f"Failed, and in no mean: {which}." if failed else "No route failed on any question.",
        "Routes failed at different questions, so their means are over different questions; differences are "
        "over those that both routes ended well."
        if len({row["n"] for row in rows.values()}) > 1
        else "",
        _unjudged(figures),
    ]
    return [one for one in told if one]


def oracle(told: Mapping[str, Any] | None, named: Named = str) -> list[str]:
    """What choosing the best route for each question would give, as core.evaluation.oracle.block tells it."""
    if told is None:
        return []
    best = mean("", metric_named(told["metric"]), told["mean"], told["ci95"], told["n"])
    said = [
        f"Choosing the best route for each question would give {figures(best)}. That takes the labels: no "
        "router reaches it, and chance alone raises it."
    ]
    if told["regret"]:
        route, least = next(iter(told["regret"].items()))
        said.append(
            f"{named(route)} comes nearest: it lacks {number(least['mean'])}{_in_brackets(least['ci95'])}, "
            f"and no route is better on {least['best']} of {count(least['n'])}."
        )
    if told["pairs"] and told["pairs"][0]["gain"] > 0:
        pair = told["pairs"][0]
        said.append(
            f"{listed([*map(named, pair['routes'])])} complement each other most: the better of the two for "
            f"each question gives {number(pair['mean'])}, {number(pair['gain'])}{_in_brackets(pair['ci95'])} "
            f"more than {named(pair['better'])} alone."
        )
    return said


def rounds(figures: Figures, named: Named = str, metric: str | None = None) -> list[str]:
    """How stable each route is that was asked again, in `metric`; without one in the headline metric, or in
    what its answers are worth where no ranking was scored. Nothing without further rounds.
    """
    told = figures.get("stability")
    if told is None:
        return []
    if not told["routes"]:
        return [f"Asked {told['rounds']} times, but no question was scored in every round."]
    baseline = named(told.get("baseline", figures["baseline"]))
    return [
        _stable(by[one], named(route), baseline, metric_named(one))
        for route, by in told["routes"].items()
        for one in ([metric] if metric else list(by)[:1])
        if one in by
    ]


def _leader(told: Mapping[str, Any] | None, figures_: Figures, named: Named) -> list[str]:
    if told is None:
        return ["No route was scored, so none leads."]
    route, metric, others = named(told["route"]), metric_named(told["metric"]), len(told["others"])
    top = mean(route, metric, told["mean"], told["ci95"], told["n"])
    close = "Too close to call: " if told["level"] else ""
    said = [f"{close}{route} has the highest mean: {figures(top)}."]
    if not others:
        return [f"{said[0]} No other route was scored."]
    if told["route"] == figures_["baseline"]:
        said.append(f"{route} is the baseline.")
    else:
        row = difference(figures_["routes"][told["route"]], told["metric"])
        said.append(sentence(compared(row, route, f"the baseline, {named(figures_['baseline'])},", metric)))
    level, behind = [*map(named, told["level"])], len(told["behind"])
    if not level:
        every = "the other route" if others == 1 else f"each of the other {others} routes"
        return [*said, f"In {metric} alone it beats {every}, after Holm's correction."]
    some = f"it beats {behind} of the other {others} routes" if behind else "it beats none of the others"
    said.append(f"In {metric} alone {some}; no difference from {listed(level)} found.")
    nearest = told["others"].get(told["level"][0])
    if nearest and nearest.get("sd") is not None:
        between = f"it and {level[0]}"
        said.append(more_in_words(nearest["n"], nearest["delta"], nearest["sd"], between))
    return [one for one in said if one]


def _against(figures: Figures, metrics: Sequence[str], named: Named) -> list[str]:
    """For each metric the routes that are better or worse than the baseline."""
    base, said, none = named(figures["baseline"]), [], []
    for metric in metrics:
        kinds: dict[str, list[str]] = {}
        for route in ranked(figures, metric):
            if (one := difference(figures["routes"][route], metric)) is not None:
                kinds.setdefault(one["verdict"], []).append(named(route))
        parts = [f"{kind} for {listed(kinds[kind])}" for kind in ("better", "worse") if kind in kinds]
        same = sum(len(some) for kind, some in kinds.items() if kind not in ("better", "worse"))
        if parts:
            rest = f"; no difference found for {count(same, 'routes')}" if same else ""
            said.append(f"Against {base}, {metric_named(metric)} is {' and '.join(parts)}{rest}.")
        elif same:
            none.append(metric_named(metric))
    if none:
        said.append(f"No difference from {base} found in {listed(none)}.")
    return said


def _detectable(figures: Figures, metric: str) -> list[str]:
    known = {
        route: {metric: one}
        for route, row in figures["routes"].items()
        if (one := difference(row, metric)) is not None
    }
    found = effects.smallest(known, metric)
    if found is None:
        return []
    alone = f"{number(found['median'])} for a single comparison, power {found['power']:.0%}"
    if found["comparisons"] > 1:
        span = f"{number(found['least_holm'])} to {number(found['most_holm'])}"
        alone = f"median of {found['comparisons']} comparisons, {span}; {alone}"
    return [
        f"With {count(found['questions'])}, differences in {metric_named(metric)} below "
        f"{number(found['median_holm'])} could not have been detected reliably after Holm's correction "
        f"({alone})."
    ]


def _stable(one: Mapping[str, Any], route: str, baseline: str, metric: str) -> str:
    """One metric of one route over the rounds."""
    said = (
        f"{route}, asked {len(one['means'])} times: mean {metric} {number(min(one['means']))} to "
        f"{number(max(one['means']))} (standard deviation {number(one['sd'])}); the value changed on "
        f"{one['changed']:.0%} of {count(one['n'])}."
    )
    if not one["deltas"]:
        return said
    low, high = (number(of(one["deltas"]), signed=True) for of in (min, max))
    kind = "more" if one["larger"] else "no more"
    return f"{said} Its difference from {baseline} was {low} to {high}, {kind} than it varies by."


def _unjudged(figures: Figures) -> str:
    """How much of what routes show first nobody has judged: a route that finds new passages pays for it."""
    shares = [
        share for row in figures["routes"].values() if (share := row.get(UNJUDGED[COMPARED[0]])) is not None
    ]
    if not shares or max(shares) <= 0:
        return ""
    low, high = brief(min(shares)), brief(max(shares))
    some = low if low == high else f"{low} to {high}, by route,"
    return f"Of the first 10 passages {some} have no judgement and count as not relevant."


def _in_brackets(pair: Sequence[float] | None) -> str:
    return f" ({ends(pair)})" if pair else ""
