"""Each list's contribution to each fused score: one bar for each passage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from core.analysis.what_if.fusion import ReplayedFusion, ShareRow, given
from ui.charts.style import KINDS, add_bar_ends, chart, ink, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 30  # pixels
TINTS = (0.0, 0.55, -0.4, 0.8)  # of lists from one kind of step: shares towards white, or black below 0
NAME_CHARACTERS = 42  # of a passage's name
HATCHES = ("", "/", "x", ".")  # after all tints are used


def colours(fusion: ReplayedFusion) -> list[tuple[str, str]]:
    """Return a colour and a hatching for each list: colour by kind of step, tints within a kind."""
    if fusion.method == "marginal":
        return [(KINDS["RERANKER"][1], ""), (KINDS["GUARDRAIL"][1], "/")]
    seen: dict[str, int] = {}
    found = []
    for source in fusion.sources:
        kind = source.span.kind if source.span is not None and source.span.kind in KINDS else "GUARDRAIL"
        n = seen[kind] = seen.get(kind, -1) + 1
        hatch = HATCHES[n // len(TINTS) % len(HATCHES)]
        found.append((tint(KINDS[kind][1], TINTS[n % len(TINTS)]), hatch))
    return found


def tint(colour: str, by: float) -> str:
    """Return `colour` (#rrggbb) moved towards white by a share, or towards black if `by` is negative."""
    goal = 255 if by > 0 else 0
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(part + (goal - part) * abs(by)):02x}" for part in parts)


def share_bars(
    fusion: ReplayedFusion,
    rows: Sequence[ShareRow],
    names: Sequence[str],
    title: Callable[[str], str],
) -> Figure:
    """Draw a bar for each of `rows`, best first, split into the lists' contributions.

    `names` are those of the lists; `title` names a passage by its id. The label has the passage's rank after
    and before the change; a part has its rank in that list.
    """
    ends = [sum(part for part in row.shares if part > 0) for row in rows]
    longest = max(ends, default=1.0) or 1.0
    least = min((sum(part for part in row.shares if part < 0) for row in rows), default=0.0)
    figure = chart(
        90 + ROW * max(1, len(rows)),
        x={
            "range": [1.05 * least, 1.28 * longest],
            "zeroline": least < 0,
            "zerolinecolor": ink(),
        },
        y=row_axis([label(row, title(row.id)) for row in rows]),
        barmode="relative",
        bargap=0.3,
        uniformtext={"minsize": 10, "mode": "hide"},
    )
    for n, (name, (colour, hatch)) in enumerate(zip(names, colours(fusion), strict=True)):
        parts = [row.shares[n] if row.shares else 0.0 for row in rows]
        figure.add_bar(
            orientation="h",
            name=words(name, 48),
            y=list(range(len(rows))),
            x=parts,
            text=[_inside(row, n) for row in rows],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            constraintext="inside",
            marker={
                "color": colour,
                "pattern": {"shape": hatch, "solidity": 0.3, "size": 6},
                "line": {"width": 0.5, "color": ink()},
            },
            customdata=[
                [words(name, 90), _place(row, n), f"{part:.4f}", _part(row, part)]
                for row, part in zip(rows, parts, strict=True)
            ],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}gives %{customdata[2]}%{customdata[3]}"
            "<extra></extra>",
        )
    add_bar_ends(
        figure,
        ends,
        [f" {row.score:.4f}" if row.shares else " not chosen" for row in rows],
    )
    return figure


def label(row: ShareRow, name: str) -> str:
    """Return a passage's rank, its earlier rank if it moved, and its name; bold and graded if labelled."""
    rank = str(row.after or "–")
    if row.before != row.after:
        rank += f" (was {row.before or 'not ranked'})"
    name = words(name, NAME_CHARACTERS)
    return f"{rank}  <b>{name} ◆{row.grade}</b>" if row.grade > 0 else f"{rank}  {name}"


def describe_shares(rows: Sequence[ShareRow], names: Sequence[str]) -> str:
    """Describe how much of the scores each list contributes."""
    parts = given(rows, names)
    if not parts:
        return "No passage has a score that is a sum of parts."
    shares = ", ".join(
        f"{part:.0%} from {name}" if part >= 0 else f"less {-part:.0%} for {name}" for name, part in parts
    )
    return f"Composition of the scores of these {len(rows)} passages: {shares}."


def _place(row: ShareRow, n: int) -> str:
    """Return the passage's rank in the list as text, or "" for parts of MMR, which are not lists."""
    if len(row.places) != len(row.shares):
        return ""
    place = row.places[n]
    return f"rank {place} there<br>" if place is not None else "not in it<br>"


def _inside(row: ShareRow, n: int) -> str:
    listed = len(row.places) == len(row.shares) and row.places[n] is not None and row.shares[n]
    return str(row.places[n]) if listed else ""


def _part(row: ShareRow, part: float) -> str:
    return f", {part / row.score:.0%} of the score" if row.score > 0 and part >= 0 else ""
