"""How often each route would be chosen, had other questions been asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.domain.format import brief
from core.evaluation.release.selection_stability import SelectionStability
from ui.charts.style import base, faint, ink, scale, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 30  # pixels
NONE = "none passes"


def ranked(found: SelectionStability) -> list[str]:
    """The routes that pass in some resample, the most often chosen first."""
    seen = [route for route in found.chosen if found.passes[route] > 0]
    return sorted(seen, key=lambda route: (-found.chosen[route], -found.passes[route], route))


def draws(found: SelectionStability, titles: Mapping[str, str], *, dark: bool = False) -> Figure:
    """A row each for the routes of `ranked` and one for none: filled, the share of resamples in which it is
    chosen; outlined behind it, the share in which it passes.
    """
    import plotly.graph_objects as go

    rows = ranked(found)
    names = [words(titles.get(route, route), 32) for route in rows] + [NONE]
    chosen = [found.chosen[route] for route in rows] + [found.none]
    passes = [found.passes[route] for route in rows] + [found.none]
    at = list(range(len(names)))
    figure = go.Figure()
    figure.add_bar(
        orientation="h", y=at, x=passes, name="passes", width=0.8, hoverinfo="skip",
        marker={"color": "rgba(0,0,0,0)", "line": {"color": ink(dark=dark), "width": 1}},
    )  # fmt: skip
    figure.add_bar(
        orientation="h", y=at, x=chosen, name="chosen", width=0.5,
        marker={"color": scale(dark=dark)[2][1]}, customdata=list(zip(names, passes, strict=True)),
        hovertemplate="%{customdata[0]}: chosen in %{x:.1%}, passes in %{customdata[1]:.1%}<extra></extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=passes, y=at, mode="text", cliponaxis=False, hoverinfo="skip", showlegend=False,
        textposition="middle right",
        text=[
            *(f" chosen {brief(found.chosen[one])}, passes {brief(found.passes[one])}" for one in rows),
            f" {brief(found.none)}",
        ],
         textfont={"color": ink(dark=dark)},
    )  # fmt: skip
    figure.update_layout(**base(dark=dark, height=ROW * len(at) + 80), barmode="overlay")
    figure.update_yaxes(
        tickvals=at, ticktext=names, autorange="reversed", showgrid=False, zeroline=False, automargin=True
    )
    figure.update_xaxes(
        range=[0, 1.4], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%", gridcolor=faint(dark=dark),
        zeroline=False, title="share of resamples", automargin=True,
    )  # fmt: skip
    return figure
