"""Differences between routes: from the baseline, by failure mode, and from round to round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.evaluation import finding, leaderboard, text
from ui.app import say
from ui.app.markup import show
from ui.app.plot import plot
from ui.app.routes import title
from ui.charts.heatmaps import mode_heatmap, scored
from ui.charts.intervals import of_findings
from ui.components import tables
from ui.evaluate.view import Look, sentences

ENOUGH = 5  # questions of a mode from which on it is called the hardest or the easiest
SIGNED = {"Difference": "%+.3f", "95% from": "%+.3f", "to": "%+.3f"}
HELPS = {
    "95% from": "confidence interval",
    "to": "confidence interval",
    "p": "permutation test",
    "p (Holm)": "Holm correction",
    "d_z": "effect size",
    "Superior": "superiority",
    "Detectable": "detectable difference",
}


def draw(look: Look) -> None:
    """Draw each route's difference from the baseline: in words, as a forest plot, as a table."""
    table, found = look.figures["routes"], {}
    for route in leaderboard.distinct(look.figures, look.metric):
        if (one := leaderboard.difference(table[route], look.metric)) is not None:
            found[route] = one
    if not found:
        st.info("This evaluation has only one route, so there is no other to compare it with.")
        return
    name, base = titled(look.metric), title(look.baseline)
    rows = [finding.compared(one, title(route), base, name) for route, one in found.items()]
    texts = [finding.sentence(one) for one in rows if one.shown]
    if none := [one.subject for one in rows if not one.shown]:
        texts.append(f"No difference from {base} found for {finding.listed(none)}; they may still differ.")
    show(sentences(texts))
    plot(of_findings(rows), "evaluate_forest", " ".join(texts), table=False)
    tables.table(
        [
            {
                "Route": title(route),
                "Verdict": one["verdict"],
                "Difference": one["delta"],
                "95% from": one["ci95"][0] if one["ci95"] else None,
                "to": one["ci95"][1] if one["ci95"] else None,
                "p": one["p"],
                "p (Holm)": one["p_holm"],
                "d_z": one["d_z"],
                "Wins": one["wins"],
                "Ties": one["ties"],
                "Losses": one["losses"],
                "Superior": one["superiority"],
                "Detectable": one["detectable_holm"],
                "Questions": one["n"],
            }
            for route, one in found.items()
        ],
        "evaluate_differences",
        "Differences from the baseline with intervals and p-values",
        formats=SIGNED,
        helps=HELPS,
        pinned="Route",
    )
    test = look.figures["statistics"]["test"]
    say.caption(f"Over the questions that both routes completed. Intervals are not corrected. Test: {test}.")


def by_mode(look: Look) -> None:
    """Draw on which kinds of question each route fails."""
    by_mode = look.figures["by_mode"]
    modes = scored(by_mode)
    if not modes:
        st.info("These questions have no failure modes, or none of them was scored.")
        st.caption("Give each question a “mode”, the reason why it is hard, in its file or on Label.")
        return
    known = [m for m in next(iter(next(iter(by_mode.values())).values())) if m in look.figures["measures"]]
    metric = look.metric if look.metric in known else known[0]
    if metric != look.metric:
        say.caption(f"Figures by mode exist for {', '.join(map(titled, known))}.")
    texts = _modes_in_words(look, metric, modes)
    show(sentences(texts))
    routes = leaderboard.distinct(look.figures, metric)
    names = {route: title(route) + (" (baseline)" if route == look.baseline else "") for route in routes}
    plot(mode_heatmap(by_mode, routes, names, metric), "evaluate_modes", " ".join(texts))
    left = [mode for mode in by_mode if mode not in modes]
    rest = f" Not shown, because none of their questions was scored: {', '.join(left)}." if left else ""
    say.caption(
        f"{titled(metric)}, with the number of scored questions after each mode. ▲ and ▼: better or "
        f"worse than {title(look.baseline)} after Holm's correction.{rest}"
    )


def _modes_in_words(look: Look, metric: str, modes: Mapping[str, int]) -> list[str]:
    """Describe the hardest and the easiest mode for the leader, and the modes that show differences."""
    by_mode, base = look.figures["by_mode"], title(look.baseline)
    shown = [
        f"On {mode.replace('_', ' ')}: "
        + finding.sentence(finding.compared(one, title(route), base, titled(metric)))
        for mode in modes
        for route, row in by_mode[mode].items()
        if (one := row.get("vs_baseline", {}).get(metric)) and one["verdict"] in ("better", "worse")
    ]
    leader = leaderboard.distinct(look.figures, metric)[0]
    best = {mode: v for mode in modes if (v := by_mode[mode][leader].get(metric)) is not None}
    enough = {mode: v for mode, v in best.items() if modes[mode] >= ENOUGH}
    best = enough if len(enough) > 1 else best
    texts = []
    if best:
        hard, easy = min(best, key=best.__getitem__), max(best, key=best.__getitem__)
        texts.append(
            f"{title(leader)}, which leads over all questions, is weakest on {hard.replace('_', ' ')} "
            f"({titled(metric)} {best[hard]:.3f} over {modes[hard]}) and strongest on "
            f"{easy.replace('_', ' ')} ({best[easy]:.3f} over {modes[easy]})."
        )
    none = f"No difference from {base} found on any single mode; each has few questions."
    return [*texts, *(shown[:6] or [none])]


def stability(look: Look) -> None:
    """Draw how much the figures of routes that call the model vary from round to round."""
    figures = look.evaluation.figures
    found: Mapping[str, Any] = figures.get("stability") or {}
    if not found.get("routes"):
        st.markdown("This evaluation has one round, so it cannot show how much figures vary.")
        st.caption("Choose more rounds under “New evaluation”: each calls the model with another seed.")
        return
    rows = {route: by[look.metric] for route, by in found["routes"].items() if look.metric in by}
    if not rows:
        say.info(f"No question was scored in {titled(look.metric)} in every round. Choose another metric.")
        return
    head = f"{found['rounds']} rounds; {len(rows)} of {len(look.evaluation.routes)} routes were rerun."
    show(sentences([head, *text.rounds(figures, title, look.metric)]))
    rounds = [f"Round {n}" for n in range(1, found["rounds"] + 1)]
    tables.table(
        [
            {
                "Route": title(route),
                **dict(zip(rounds, one["means"], strict=False)),
                "Standard deviation": one["sd"],
                "Changed": one["changed"],
                "Difference varies by": one["varies"],
                "Questions": one["n"],
            }
            for route, one in rows.items()
        ],
        "evaluate_stability",
        "Means of each round",
        formats={
            "Changed": "percent",
            **dict.fromkeys((*rounds, "Standard deviation", "Difference varies by"), "%.4f"),
        },
        helps={"Changed": "Share of the questions whose value differed between rounds"},
    )
    say.caption(f"Over the {finding.count(max(r['n'] for r in rows.values()))} scored in every round.")
