"""The findings of an evaluation in sentences: the same on its page, in its report and in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.analysis.metrics import COMPARED, UNJUDGED, titled
from core.domain.format import brief, number
from core.evaluation import deciding, effects, equal_routes, machines, verdict_text
from core.evaluation.finding import count, ends, figures, listed, mean
from core.evaluation.leaderboard import difference, distinct

Figures = Mapping[str, Any]
Named = Callable[[str], str]  # a route's title by its name


def found(figures: Figures, named: Named = str, metrics: Sequence[str] = COMPARED) -> list[str]:
    """Return sentences about an evaluation's figures, most important first: the verdict, what differs from
    the baseline in all of `metrics`, and what could have been detected.
    """
    first = _verdict(figures, named)
    rest = _against(figures, metrics, named) if len(figures["routes"]) > 2 or len(metrics) > 1 else []
    equal = [equal_routes.sentence(one, named) for one in equal_routes.read(figures)]
    return [*first, *equal, *rest, *_detectable(figures, metrics[0])]


def generated(figures: Figures) -> list[str]:
    """Return the sentence that stands first where a model wrote questions and labels."""
    made = figures.get("generated")
    return [made["note"]] if made else []


def counted(figures: Figures, named: Named = str, asked: int | None = None) -> list[str]:
    """Sentences about the questions that the means cover; `asked`: the number of questions planned."""
    rows, n, labelled = figures["routes"], figures["queries"], figures["labelled"]
    total = f"{count(n)} asked, {labelled} with a relevant passage"
    if n > labelled:
        total += f"; the other {n - labelled} count only towards time and answers"
    failed = {route: row["failed"] for route, row in rows.items() if row["failed"]}
    which = ", ".join(f"{named(route)} {of}" for route, of in failed.items())
    sentences = [
        f"Stopped early: the figures cover {n} of {asked} questions." if asked and n < asked else "",
        f"{total}.",
        _by_document(figures),
        f"Failed and excluded from all means: {which}." if failed else "No route failed on any question.",
        "Routes failed on different questions, so their means cover different questions; differences cover "
        "the questions that both routes completed."
        if len({row["n"] for row in rows.values()}) > 1
        else "",
        _unjudged(figures),
        *machines.sentences(figures),
    ]
    return [one for one in sentences if one]


def oracle(block: Mapping[str, Any] | None, named: Named = str) -> list[str]:
    """Return the result of choosing the best route for each question, from core.evaluation.oracle.block."""
    if block is None:
        return []
    best = mean("", titled(block["metric"]), block["mean"], block["ci95"], block["n"])
    sentences = [
        f"Choosing the best route for each question would give {figures(best)}. This is an upper bound: it "
        "uses the labels, and chance raises it."
    ]
    if block["regret"]:
        route, least = next(iter(block["regret"].items()))
        sentences.append(
            f"{named(route)} comes closest: it falls short by {number(least['mean'])}"
            f"{_in_brackets(least['ci95'])}, and no route is better on {least['best']} of "
            f"{count(least['n'])}."
        )
    if block["pairs"] and block["pairs"][0]["gain"] > 0:
        pair = block["pairs"][0]
        sentences.append(
            f"{listed([*map(named, pair['routes'])])} complement each other most: the better of the two for "
            f"each question gives {number(pair['mean'])}, {number(pair['gain'])}{_in_brackets(pair['ci95'])} "
            f"more than {named(pair['better'])} alone."
        )
    return sentences


def rounds(figures: Figures, named: Named = str, metric: str | None = None) -> list[str]:
    """Return sentences on how stable each rerun route is in `metric`; by default in the headline metric, or
    in the first metric of its answers if no ranking was scored. Empty without further rounds.
    """
    block = figures.get("stability")
    if block is None:
        return []
    if not block["routes"]:
        return [f"No question was scored in every one of the {block['rounds']} rounds."]
    baseline = named(block.get("baseline", figures["baseline"]))
    return [
        _stable(by[one], named(route), baseline, titled(one))
        for route, by in block["routes"].items()
        for one in ([metric] if metric else list(by)[:1])
        if one in by
    ]


def _verdict(figures: Figures, named: Named) -> list[str]:
    """Return the verdict on the figures' own metric, without limits on time and cost."""
    block = dict(figures["decision"])
    metric = titled(block.pop("metric"))
    found = deciding.read(block)
    dataset, corpus = figures["dataset"], figures.get("corpus", "")
    of = dataset if corpus in ("", dataset) else f"{dataset} on {corpus}"
    failed = {named(name): row["failed"] for name, row in figures["routes"].items() if row["failed"]}
    left = f" {_failures(failed, figures['queries'])}." if failed else ""
    return [f"{verdict_text.headline(found, named, metric, of)}{left}", *verdict_text.details(found, named)]


def _failures(failed: Mapping[str, int], of: int) -> str:
    return listed([f"{name} failed on {n} of {count(of)}" for name, n in failed.items()])


def failing(figures: Figures, most: float) -> list[str]:
    """Return the routes that failed on more than the share `most` of the questions."""
    return [name for name, row in figures["routes"].items() if row["failed"] > most * figures["queries"]]


def failing_said(figures: Figures, most: float) -> str:
    """Return the sentence that comes before all figures if some route failed too often, else ""."""
    failed = {name: figures["routes"][name]["failed"] for name in failing(figures, most)}
    if not failed:
        return ""
    errors = [error for name in failed for error in figures["routes"][name]["errors"][:1]]
    why = f" ({errors[0]})" if errors else ""
    return f"FAILED: {_failures(failed, figures['queries'])}, more than the {most:.0%} allowed{why}."


def _against(figures: Figures, metrics: Sequence[str], named: Named) -> list[str]:
    """For each metric the routes that are better or worse than the baseline."""
    base, sentences, none = named(figures["baseline"]), [], []
    for metric in metrics:
        kinds: dict[str, list[str]] = {}
        for route in distinct(figures, metric):
            if (one := difference(figures["routes"][route], metric)) is not None:
                kinds.setdefault(one["verdict"], []).append(named(route))
        parts = [f"{kind} for {listed(kinds[kind])}" for kind in ("better", "worse") if kind in kinds]
        same = sum(len(some) for kind, some in kinds.items() if kind not in ("better", "worse"))
        if parts:
            rest = f"; no difference found for {count(same, 'routes')}" if same else ""
            sentences.append(f"Compared with {base}, {titled(metric)} is {' and '.join(parts)}{rest}.")
        elif same:
            none.append(titled(metric))
    if none:
        sentences.append(f"No difference from {base} found in {listed(none)}.")
    return sentences


def _detectable(figures: Figures, metric: str) -> list[str]:
    known = {
        route: {metric: one}
        for route, row in figures["routes"].items()
        if "same_as" not in row and (one := difference(row, metric)) is not None
    }
    found = effects.smallest(known, metric)
    if found is None:
        return []
    alone = f"{number(found['median'])} for a single comparison, power {found['power']:.0%}"
    if found["comparisons"] > 1:
        span = f"{number(found['least_holm'])} to {number(found['most_holm'])}"
        alone = f"median of {found['comparisons']} comparisons, {span}; {alone}"
    return [
        f"With {count(found['questions'])}, differences in {titled(metric)} below "
        f"{number(found['median_holm'])} could not have been detected reliably after Holm's correction "
        f"({alone})."
    ]


def _stable(one: Mapping[str, Any], route: str, baseline: str, metric: str) -> str:
    """One metric of one route over the rounds."""
    text = (
        f"{route} over {len(one['means'])} rounds: mean {metric} {number(min(one['means']))} to "
        f"{number(max(one['means']))} (standard deviation {number(one['sd'])}); the value changed on "
        f"{one['changed']:.0%} of {count(one['n'])}."
    )
    if not one["deltas"]:
        return text
    low, high = (number(of(one["deltas"]), signed=True) for of in (min, max))
    kind = "larger" if one["larger"] else "no larger"
    return f"{text} Its difference from {baseline} was {low} to {high}, {kind} than its variation."


def _by_document(figures: Figures) -> str:
    """Return a sentence on how rankings are scored if whole documents are labelled, or ""."""
    n = figures.get("by_document", 0)
    if not n:
        return ""
    return (
        f"At {count(n)} whole documents are labelled: each document counts once, at its first passage, and "
        "ranks are those of documents."
    )


def _unjudged(figures: Figures) -> str:
    """Return the share of unjudged passages among the first ten: a route that finds new passages scores
    lower.
    """
    shares = [
        share for row in figures["routes"].values() if (share := row.get(UNJUDGED[COMPARED[0]])) is not None
    ]
    if not shares or max(shares) <= 0:
        return ""
    low, high = brief(min(shares)), brief(max(shares))
    some = low if low == high else f"{low} to {high}, by route,"
    return f"Of the first 10 passages, {some} are unjudged and count as not relevant."


def _in_brackets(pair: Sequence[float] | None) -> str:
    return f" ({ends(pair)})" if pair else ""
