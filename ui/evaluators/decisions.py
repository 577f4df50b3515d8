"""The way each route took: every decision in order, its score and threshold, and the ways not taken."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from core.analysis.answers import decisions, forced, warned
from core.analysis.run_view import Recorded
from core.analysis.what_if.grading import Gate, gates
from core.domain.format import milliseconds
from core.domain.outputs import Decided, Decision, Selection
from core.domain.types import RouteResult, Run, Span
from ui.app.markup import EMPTY, cut, tag

Step = Recorded[Decided | Selection]
FEATURES = 8  # that are shown, those that count most
NO_DECISION = "No route of this run made a decision: none branches or loops."


def path(run: Run) -> Markup:
    """Return the decisions of every route in order, or a note if no route decided anything.

    Routes with a single decision come last, folded.
    """
    told = [(result, decisions(result), [_warning(*one) for one in warned(result)]) for result in run.results]
    told = [one for one in told if one[1] or one[2]]
    if not told:
        return tag("div", NO_DECISION, css="rs dim")
    several = [_block(*one) for one in told if len(one[1]) != 1 or one[2]]
    alone = [_alone(result, found) for result, found, noted in told if len(found) == 1 and not noted]
    head = tag("h3", "Routes with one decision", css="rs-part") if several and alone else EMPTY
    return tag("div", *several, head, *alone, css="rs")


def _alone(result: RouteResult, found: list[Step]) -> Markup:
    told = tag(
        "summary",
        tag("b", result.title),
        tag("span", f"  {found[0].span.name}: {cut(found[0].output.decision, 80)}", css="dim"),
        tag("span", "  forced", css="bad") if forced(found[0].span) else EMPTY,
    )
    return tag("details", told, _nodes(result, found), css="rs-trace")


def _block(result: RouteResult, found: list[Step], noted: list[Markup]) -> Markup:
    return tag("div", tag("h4", result.title), *noted, _nodes(result, found), css="rs-block")


def _nodes(result: RouteResult, found: list[Step]) -> Markup:
    scored = {gate.span.id: gate for gate in gates(result)}
    nodes = [_node(number, one, scored.get(one.span.id)) for number, one in enumerate(found, 1)]
    return tag("ol", *nodes, css="rs-evaluators-path")


def _warning(span: Span, by: Mapping[str, list[str]]) -> Markup:
    return tag(
        "div",
        *(
            tag("div", f"{span.name}: passage {number} reads like an instruction ({', '.join(what)})")
            for number, what in by.items()
        ),
        css="bad",
    )


def _node(number: int, one: Step, gate: Gate | None) -> Markup:
    head = tag(
        "div",
        tag("span", f"{number}  ", css="dim"),
        one.span.name,
        tag("span", f"  {milliseconds(one.span.ms)}", css="dim"),
    )
    decided = one.output
    ways = getattr(decided, "ways", ())
    other = [word for word in ways if word != decided.decision]
    went = tag(
        "div",
        tag("span", decided.decision, css="chip accent"),
        *(tag("span", word, css="chip rs-evaluators-not", title="not taken") for word in other),
    )
    meter = _meter(gate) if gate is not None else EMPTY
    turned = tag("div", cut(forced(one.span), 200), css="bad") if forced(one.span) else EMPTY
    why = tag("div", decided.why, css="dim", dir="auto") if decided.why else EMPTY
    weighed = _weighed(decided) if isinstance(decided, Decision) and decided.weighed else EMPTY
    return tag("li", head, went, turned, meter, why, weighed)


def _weighed(decided: Decision) -> Markup:
    """Return the class probabilities and the features that separated the two most likely classes."""
    shares = sorted(decided.scores.items(), key=lambda item: -item[1])
    one, other = decided.between or ("the likeliest", "the next")
    most = max((abs(feature.part) for feature in decided.weighed), default=0.0) or 1.0
    counted = [feature for feature in decided.weighed if feature.part][:FEATURES]
    return tag(
        "div",
        _bars("Probability", [(name, "", share, f"{share:.2f}") for name, share in shares]),
        _bars(
            f"Features: {one} against {other}",
            [
                (feature.feature, f"{feature.value:.3g}", feature.part / most, f"{feature.part:+.2f}")
                for feature in counted
            ],
            ("Feature", "Value", "Adds to the logit"),
        ),
        tag(
            "div",
            f"Positive parts speak for {one}, negative ones for {other}; with the difference of the "
            "intercepts (as a rule) all of them add up to the logit between the two.",
            css="dim",
        ),
        css="rs-evaluators-weighed",
    )


def _bars(
    caption: str, rows: list[tuple[str, str, float, str]], names: tuple[str, str, str] | None = None
) -> Markup:
    """Return a table with a bar in each row; negative values extend to the left of the middle."""
    head = tag("thead", tag("tr", *(tag("th", name) for name in names))) if names else EMPTY
    body = [
        tag(
            "tr",
            tag("td", name),
            tag("td", value, css="num") if names else EMPTY,
            tag("td", _bar(share, both=names is not None), tag("span", text, css="dim nowrap num")),
        )
        for name, value, share, text in rows
    ]
    return tag("table", tag("caption", caption), head, tag("tbody", *body))


def _bar(share: float, *, both: bool) -> Markup:
    size = min(1.0, abs(share)) * (50 if both else 100)
    left = (50 - size if share < 0 else 50) if both else 0
    return tag(
        "div",
        tag("i", style=f"inset-inline-start:{left:.1f}%;width:{size:.1f}%", css="less" if share < 0 else ""),
        css="rs-meter",
    )


def _meter(gate: Gate) -> Markup:
    """Return the score as a bar with a line at the threshold."""
    edge = min(1.0, max(0.0, gate.threshold))
    bar = tag(
        "div",
        tag("i", style=f"width:{100 * min(1.0, max(0.0, gate.score)):.1f}%"),
        tag("b", style=f"left:{100 * edge:.1f}%"),
        css="rs-meter",
        title=cut(f"score {gate.score:.3f}, threshold {gate.threshold:.3f}", 80),
    )
    told = f"{gate.score:.3f}, threshold {gate.threshold:.3g}"
    return tag("div", bar, tag("span", told, css="dim nowrap"), css="rs-evaluators-score")
