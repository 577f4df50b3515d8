"""By failure mode: on which kinds of question each route fails."""

from __future__ import annotations

import streamlit as st

from core.analysis.metrics import titled
from core.evaluation import leaderboard
from core.evaluation.finding import compared, sentence
from ui.app.markup import md, show
from ui.app.plot import plot
from ui.app.routes import title
from ui.charts.modes import mode_heatmap, scored
from ui.evaluate.view import Look, sentences

ENOUGH = 5  # questions of a mode from which on it is called the hardest or the easiest


def draw(look: Look) -> None:
    """Draw it."""
    by_mode = look.figures["by_mode"]
    modes = scored(by_mode)
    if not modes:
        st.info(
            "These questions have no failure modes, or none of them was scored. A mode is the reason why a "
            "question is hard."
        )
        st.caption("Give each question a “mode” in its file or on the Label page.")
        return
    known = [m for m in next(iter(next(iter(by_mode.values())).values())) if m in look.figures["measures"]]
    metric = look.metric if look.metric in known else known[0]
    if metric != look.metric:
        available = ", ".join(map(titled, known))
        st.caption(md(f"Figures by mode exist for {available}. Shown: {titled(metric)}."))
    texts = describe_modes(look, metric)
    show(sentences(texts))
    routes = leaderboard.distinct(look.figures, metric)
    names = {route: title(route) + (" (baseline)" if route == look.baseline else "") for route in routes}
    plot(mode_heatmap(by_mode, routes, names, metric), "evaluate_modes", " ".join(texts))
    left = [mode for mode in by_mode if mode not in modes]
    rest = f" Not shown, because none of their questions was scored: {', '.join(left)}." if left else ""
    st.caption(
        md(
            f"{titled(metric)}, with the number of scored questions after each mode. ▲ and ▼: better or "
            f"worse than {title(look.baseline)} after Holm's correction over all modes, routes and "
            f"metrics.{rest}"
        )
    )


def describe_modes(look: Look, metric: str) -> list[str]:
    """Describe which modes show differences, and the hardest and the easiest one for the leader."""
    by_mode, base = look.figures["by_mode"], title(look.baseline)
    modes = scored(by_mode)
    shown = [
        f"On {mode.replace('_', ' ')}: {sentence(compared(one, title(route), base, titled(metric)))}"
        for mode in modes
        for route, row in by_mode[mode].items()
        if (one := row.get("vs_baseline", {}).get(metric)) and one["verdict"] in ("better", "worse")
    ]
    leader = leaderboard.distinct(look.figures, metric)[0]
    best = {mode: v for mode in modes if (v := by_mode[mode][leader].get(metric)) is not None}
    texts = []
    enough = {mode: v for mode, v in best.items() if modes[mode] >= ENOUGH}
    best = enough if len(enough) > 1 else best
    if best:
        hard, easy = min(best, key=best.__getitem__), max(best, key=best.__getitem__)
        texts.append(
            f"{title(leader)}, which leads over all questions, is weakest on {hard.replace('_', ' ')} "
            f"({titled(metric)} {best[hard]:.3f} over {modes[hard]}) and strongest on "
            f"{easy.replace('_', ' ')} ({best[easy]:.3f} over {modes[easy]})."
        )
    none = f"No difference from {base} found on any single mode; each has few questions."
    return [*texts, *(shown[:6] or [none])]
