"""Stacked bars: each list's contribution to each fused score, and the weights of a fitted fusion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from core.analysis.what_if.fusion import ReplayedFusion, ShareRow, given
from core.backends.fusion_weights import FEATURES, LISTS, FittedWeights
from ui.charts.style import KINDS, Figure, add_bar_ends, chart, ink, row_axis, words

TINTS = (0.0, 0.55, -0.4, 0.8)  # of lists from one kind of step: shares towards white, or black below 0
NAME_CHARACTERS = 42  # of a passage's name
HATCHES = ("", "/", "x", ".")  # after all tints are used
WEIGHTS = (  # of a list: what a feature is called, its colour and its hatching
    ("its score, at the list's highest", KINDS["RETRIEVER"][1], ""),
    ("being in the list", KINDS["EMBEDDING"][1], "/"),
    ("being first", KINDS["LLM"][1], "."),
)


class Layer(NamedTuple):
    """One colour of stacked bars, with a value and a hover for each row."""

    name: str
    colour: str
    hatch: str
    values: Sequence[float]
    hovers: Sequence[str]
    inside: Sequence[str] | None = None  # what is written inside each part


def stacked(labels: Sequence[str], layers: Sequence[Layer], ends: Sequence[str], **axis: Any) -> Figure:
    """Draw a bar for each of `labels`, the first on top, with a text at its end. `axis` is of the x axis."""
    rows = list(zip(*(layer.values for layer in layers), strict=True))
    tops = [sum(value for value in row if value > 0) for row in rows]
    least = min((sum(value for value in row if value < 0) for row in rows), default=0.0)
    room = [1.1 * least, 1.28 * (max(tops, default=1.0) or 1.0)]
    figure = chart(
        95 + 31 * max(1, len(labels)),
        x={"range": room, "zeroline": least < 0, "zerolinecolor": ink(), **axis},
        y=row_axis(labels),
        barmode="relative",
        bargap=0.3,
        uniformtext={"minsize": 10, "mode": "hide"},
    )
    for layer in layers:
        figure.add_bar(
            orientation="h",
            name=layer.name,
            y=list(range(len(labels))),
            x=layer.values,
            text=layer.inside,
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            constraintext="inside",
            marker={
                "color": layer.colour,
                "pattern": {"shape": layer.hatch, "solidity": 0.3, "size": 6},
                "line": {"width": 0.5, "color": ink()},
            },
            customdata=layer.hovers,
            hovertemplate="%{customdata}<extra></extra>",
        )
    add_bar_ends(figure, tops, ends)
    return figure


def weight_bars(fitted: FittedWeights) -> Figure:
    """Draw a bar for each list, largest first, split into the weights of its features."""
    rows = sorted(zip(fitted.lists, fitted.weights, strict=True), key=lambda one: -sum(one[1]))
    names = [words(LISTS[name], 40) for name, _ in rows]
    layers = []
    for n, (feature, colour, hatch) in zip(range(len(FEATURES)), WEIGHTS, strict=True):
        values = [weights[n] for _, weights in rows]
        hovers = [f"{name}: {feature} gives {value:+.3f}" for name, value in zip(names, values, strict=True)]
        layers.append(Layer(feature, colour, hatch, values, hovers))
    ends = [f" {sum(weights):+.2f}" for _, weights in rows]
    return stacked(names, layers, ends, title="score that a list adds to its first passage")


def share_bars(
    fusion: ReplayedFusion, rows: Sequence[ShareRow], names: Sequence[str], title: Callable[[str], str]
) -> Figure:
    """Draw a bar for each of `rows`, best first, split into the lists' contributions.

    `names` are those of the lists; `title` names a passage by its id. The label has the passage's rank after
    and before the change; a part has its rank in that list.
    """
    layers = []
    for n, (name, (colour, hatch)) in enumerate(zip(names, colours(fusion), strict=True)):
        values = [row.shares[n] if row.shares else 0.0 for row in rows]
        hovers, inside = [], []
        for row, value in zip(rows, values, strict=True):
            ranked = len(row.places) == len(row.shares)  # parts of MMR are not lists
            place = row.places[n] if ranked else None
            inside.append(str(place) if place is not None and value else "")
            where = f"rank {place} there<br>" if place is not None else "not in it<br>" if ranked else ""
            share = f", {value / row.score:.0%} of the score" if row.score > 0 and value >= 0 else ""
            hovers.append(f"{words(name, 90)}<br>{where}gives {value:.4f}{share}")
        layers.append(Layer(words(name, 48), colour, hatch, values, hovers, inside))
    ends = [f" {row.score:.4f}" if row.shares else " not chosen" for row in rows]
    return stacked([label(row, title(row.id)) for row in rows], layers, ends)


def colours(fusion: ReplayedFusion) -> list[tuple[str, str]]:
    """Return a colour and a hatching for each list: colour by kind of step, tints within a kind."""
    if fusion.method == "marginal":
        return [(KINDS["RERANKER"][1], ""), (KINDS["GUARDRAIL"][1], "/")]
    seen: dict[str, int] = {}
    found = []
    for source in fusion.sources:
        kind = source.span.kind if source.span is not None and source.span.kind in KINDS else "GUARDRAIL"
        n = seen[kind] = seen.get(kind, -1) + 1
        colour, by = KINDS[kind][1], TINTS[n % len(TINTS)]
        parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
        tint = "".join(f"{round(part + ((255 if by > 0 else 0) - part) * abs(by)):02x}" for part in parts)
        found.append((f"#{tint}", HATCHES[n // len(TINTS) % len(HATCHES)]))
    return found


def label(row: ShareRow, name: str) -> str:
    """Return a passage's rank, its earlier rank if it moved, and its name; bold and graded if labelled."""
    rank = str(row.after or "–")
    if row.before != row.after:
        rank += f" (was {row.before or 'not ranked'})"
    name = words(name, NAME_CHARACTERS)
    return f"{rank}  <b>{name} ◆{row.grade}</b>" if row.grade > 0 else f"{rank}  {name}"


def describe_shares(rows: Sequence[ShareRow], names: Sequence[str]) -> str:
    """Describe how much of the scores each list contributes."""
    parts = ", ".join(f"{part:.0%} from {name}".replace("-", "−", 1) for name, part in given(rows, names))
    if not parts:
        return "No passage has a score that is a sum of parts."
    return f"Composition of the scores of these {len(rows)} passages: {parts}."
