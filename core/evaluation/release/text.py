"""A decision in words: which route, by which rule, how sure, and which criteria are missed if none passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from core.domain.format import milliseconds
from core.evaluation import equal_routes, more_labels
from core.evaluation.finding import Finding, count, listed, sentence
from core.evaluation.naming import named
from core.evaluation.release.call import Call
from core.evaluation.release.checks import LABEL_MORE, NO_LOSS, Check, number, share
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import Candidate, Decision
from core.evaluation.release.rule import SHOWN
from core.evaluation.release.selection_stability import SelectionStability
from core.routes.registry import routes

MOST: Mapping[str, Callable[[float], str]] = {  # criteria whose limit is an upper one, and their figures
    "p95": milliseconds,
    "cost of 1,000 questions": number,
    "tokens a question": number,
    "model calls a question": number,
    "failed": share,
    "unjudged of the first ten": share,
}


def headline(decision: Decision) -> str:
    """The first sentence: what to ship and how sure that is, or that no route can be shipped."""
    call = decision.call
    if decision.chosen is not None:
        title = decision.of(decision.chosen).title
        if call is None:
            return f"Ship {title}: it {_meets(decision)}; how sure this is cannot be determined."
        if call.clear:
            return (
                f"Ship {title}: it {_meets(decision)} and is chosen in {_percent(call.share)} of resamples."
            )
        return _too_close(decision, title, call)
    if decision.verdict == "not decidable":
        label_more = LABEL_MORE.rpartition(": ")[2]
        why = label_more if _unjudged(decision) else "see the criteria that cannot be determined"
        return f"Not decidable: {why}. No route is known to meet every criterion."
    return "Nothing passes: every route misses at least one criterion."


def every(decision: Decision) -> list[str]:
    """All that is said of a decision: what its questions are if a model wrote them, then the headline."""
    told = [decision.generated, headline(decision), labels(decision), *regressed(decision)]
    told += [*why(decision), *equal(decision), sure(decision)]
    return [one for one in told if one]


def too_close(decision: Decision) -> bool:
    """Whether the chosen route could well lose its place with other questions."""
    return decision.call is not None and not decision.call.clear


def standing(decision: Decision, one: Candidate) -> str:
    """The outcome for one route, in a word or two."""
    if one.route == decision.chosen:
        return "too close to call" if too_close(decision) else "ship"
    return "passes" if one.passes else "does not pass" if one.fails else SHOWN["cannot be told"]


def why(decision: Decision) -> list[str]:
    """The sentences after it: the rule that chose and the cost, or what the nearest route misses."""
    if decision.chosen is None:
        nearest = decision.of(decision.nearest or decision.baseline)
        texts = [f"The nearest route is {nearest.title}. It misses {lacking(nearest)}."]
        others = [text for one in decision.candidates if (text := _open(one)) and one != nearest]
        return texts + others[:3]
    chosen = decision.of(decision.chosen)
    texts = [f"{chosen.title} {_meets(decision)}."] if too_close(decision) else []
    texts.append(_rule(decision, chosen, decision.of(decision.best or decision.chosen)))
    texts.append(f"It costs {expense(chosen)}.")
    return texts


def lacking(one: Candidate) -> str:
    """Every criterion that a route does not meet, with its figure; "no criterion" where it passes."""
    missed = [check for check in one.checks if check.state != "passed"]
    return "; ".join(f"{check.name}: {missing(check)}" for check in missed) or "no criterion"


def missing(check: Check) -> str:
    """Why one criterion is not met."""
    if check.state == "cannot be told":
        return f"{SHOWN[check.state]}, {check.told}"
    if check.limit is None or check.name == NO_LOSS:
        return check.told
    return f"{check.told}, required {limit(check)}"


def limit(check: Check) -> str:
    """The limit of a criterion: "at most 1.0 s", "at least 0.39"; "" without one."""
    if check.limit is None or check.name == NO_LOSS:
        return ""
    return f"at {'most' if check.name in MOST else 'least'} {MOST.get(check.name, number)(check.limit)}"


def brief(check: Check) -> str:
    """The figure of a criterion, or what stands for it."""
    if check.name == NO_LOSS:
        if check.state == "failed":
            return f"{count(int(check.value or 0), 'kinds')} worse"
        return "none shown" if check.state == "passed" else "?"
    return "?" if check.value is None else MOST.get(check.name, "{:.4f}".format)(check.value)


def expense(one: Candidate) -> str:
    """Time and model use of a route."""
    p50, p95 = ("?" if value is None else milliseconds(value) for value in (one.p50_ms, one.p95_ms))
    latency = f"p50 {p50}, p95 {p95}"
    if not one.calls:
        return f"{latency}, and makes no model calls"
    tokens = "an unknown number of" if one.tokens is None else f"{number(one.tokens)}"
    usage = f"{latency}, {number(one.calls)} model calls and {tokens} tokens per question"
    return usage + (
        "; no prices are set" if one.cost is None else f"; {number(one.cost)} for 1,000 questions"
    )


def sure(decision: Decision) -> str:
    """How sure the choice is, in one or two sentences."""
    found: SelectionStability | None = decision.sureness
    if found is None:
        return (
            "How sure this is cannot be determined without the values of each question, which a finished"
            " evaluation saves in its folder."
        )
    titles = {one.route: one.title for one in decision.candidates}
    ranked = sorted(found.chosen.items(), key=lambda one: -one[1])
    shares = [f"{titles[route]} in {_percent(part)}" for route, part in ranked if part > 0]
    if found.none:
        shares.append(f"no route in {_percent(found.none)}")
    return f"When the questions are resampled, the gate chooses {', '.join(shares)} of resamples."


def labels(decision: Decision) -> str:
    """How many more labelled questions would settle it; "" where there is nothing to settle between routes,
    or it cannot be determined.
    """
    found = decision.labels
    return "" if found is None else more_labels.sentence(found, lambda route: decision.of(route).title)


def regressed(decision: Decision) -> list[str]:
    """How the questions do that people complained of: a headline, then a sentence for each that is broken."""
    found = decision.regressions
    if found is None:
        return []
    broken = [f"Broke again: {one.in_words()}." for one in found.broken]
    untold = [f"Cannot be determined: {one.in_words()}." for one in found.of("cannot be told")]
    return [found.headline(decision.of(found.route).title), *broken, *untold]


def equal(decision: Decision) -> list[str]:
    """The routes that are one, and those that alone were planned to be compared, a sentence each."""
    titles = {name: known.title for name, known in routes().items()}
    titles |= {one.route: one.title for one in decision.candidates}

    def named_(route: str) -> str:
        return titles.get(route, route)

    texts = [
        f"{equal_routes.sentence(one, named_)} {named_(one.route)} is the candidate, the simplest by "
        f"{equal_routes.RULE}."
        for one in decision.equal
    ]
    if decision.planned:
        texts.append(
            f"Planned comparison: {listed([*map(named_, decision.planned)])} with "
            f"{named_(decision.baseline)}. Other measured routes are not candidates and count in no "
            f"correction."
        )
    return texts


def asked(criteria: Criteria) -> list[str]:
    """The criteria, one phrase each."""
    phrases = [f"best by {named(criteria.metric)}"]
    if criteria.minimum is not None:
        phrases[0] = f"{named(criteria.metric)} of at least {criteria.minimum:g}"
    for value, name, in_words in (
        (criteria.max_p95_ms, "p95 of at most", milliseconds),
        (criteria.max_cost, "1,000 questions cost at most", number),
        (criteria.max_tokens, "tokens per question at most", number),
        (criteria.max_calls, "model calls per question at most", number),
        (criteria.max_failed, "failed at most", share),
        (criteria.max_unjudged, "unjudged of the first ten at most", share),
    ):
        if value is not None:
            phrases.append(f"{name} {in_words(value)}")
    if criteria.no_loss:
        phrases.append("not shown to be worse than the baseline on any kind of question")
    if criteria.unlike_machines:
        phrases.append("times of unlike machines allowed")
    return phrases


def _meets(decision: Decision) -> str:
    passing = sum(one.passes for one in decision.candidates)
    routes = count(len(decision.candidates), "routes")
    return f"meets every criterion ({passing} of {routes} {'does' if passing == 1 else 'do'})"


def _too_close(decision: Decision, title: str, call: Call) -> str:
    text = f"Too close to call: {title} is chosen in {_percent(call.share)} of resamples"
    if call.rival is None:
        return f"{text}, and in {_percent(call.rival_share)} no route passes."
    return f"{text}, {decision.of(call.rival).title} in {_percent(call.rival_share)}."


def _rule(decision: Decision, chosen: Candidate, best: Candidate) -> str:
    metric = named(decision.criteria.metric)
    if chosen.route == best.route:
        text = f"Of the routes that pass, it is the best by {metric} ({_mean(best)})"
        worse = sum(one.verdict == "worse" for one in decision.rivals)
        unknown = sum(one.verdict == "cannot be told" for one in decision.rivals)
        if worse:
            verb = "is" if worse == 1 else "are"
            text += f"; {count(worse, 'cheaper passing routes')} {verb} shown to be worse"
        if unknown:
            text += f"; metrics.json alone cannot compare it with {count(unknown, 'cheaper routes')}"
        return text + (
            "." if decision.rivals or not decision.criteria.cheaper else "; no cheaper route passes."
        )
    rival = next(one for one in decision.rivals if one.route == chosen.route)
    found = Finding(
        chosen.title, metric, rival.delta, p=rival.p_holm, n=rival.n or 0, detectable=rival.detectable,
        baseline=best.title, verdict=rival.verdict,
    )  # fmt: skip
    return (
        f"{best.title} is the best by {metric} ({_mean(best)}, {chosen.title} {_mean(chosen)}), and"
        f" {chosen.title} is the cheapest route not shown to be worse. {sentence(found)}"
    )


def _open(one: Candidate) -> str:
    """What cannot be determined of a route that fails no criterion."""
    if one.fails or one.passes:
        return ""
    return f"{one.title} fails no criterion, but {lacking(one)}."


def _unjudged(decision: Decision) -> bool:
    return any(
        check.state == "cannot be told" and LABEL_MORE in check.told
        for one in decision.candidates
        if not one.fails
        for check in one.checks
    )


def _percent(part: float) -> str:
    return "under 1%" if part < 0.005 else f"{part:.0%}"


def _mean(one: Candidate) -> str:
    return "?" if one.mean is None else f"{one.mean:.4f}"
