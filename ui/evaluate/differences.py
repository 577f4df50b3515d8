"""Differences: from the baseline, by failure mode, from round to round, and from another evaluation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import streamlit as st

from core.analysis.metrics import QUALITY, titled
from core.evaluation import experiment_store, finding, leaderboard, text
from core.evaluation.diff import evaluations
from ui.app import evaluated, say
from ui.app.choice import choice
from ui.app.help_mark import term
from ui.app.markup import md, show
from ui.app.plot import plot
from ui.app.routes import title
from ui.charts.heatmaps import mode_heatmap, scored
from ui.charts.intervals import of_findings
from ui.components import question_diff, tables
from ui.evaluate.view import Look, sentences

OTHER, THEN, NOW = "evaluate_other", "evaluate_then", "evaluate_now"
FIGURES = {"p": "p", "p (Holm)": "p_holm", "d_z": "d_z", "Wins": "wins", "Ties": "ties", "Losses": "losses"}
FIGURES |= {"Superior": "superiority", "Detectable": "detectable_holm", "Questions": "n"}
VARIES = {"Standard deviation": "sd", "Changed": "changed", "Difference varies by": "varies"}
VARIES |= {"Questions": "n"}


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
                **tables.interval(one["ci95"]),
                **{name: one[key] for name, key in FIGURES.items()},
            }
            for route, one in found.items()
        ],
        "evaluate_differences",
        "Differences from the baseline with intervals and p-values",
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
    left = ", ".join(mode for mode in by_mode if mode not in modes)
    rest = f" Not scored: {left}." if left else ""
    say.caption(f"▲ and ▼: better or worse than {title(look.baseline)} after Holm's correction.{rest}")


def _modes_in_words(look: Look, metric: str, modes: Collection[str]) -> list[str]:
    """Describe the modes that show differences."""
    by_mode, base = look.figures["by_mode"], title(look.baseline)
    shown = []
    for mode in modes:
        for route, row in by_mode[mode].items():
            one = row.get("vs_baseline", {}).get(metric)
            if one and one["verdict"] in ("better", "worse"):
                said = finding.sentence(finding.compared(one, title(route), base, titled(metric)))
                shown.append(f"On {mode.replace('_', ' ')}: {said}")
    return shown[:6] or [f"No difference from {base} found on any single mode; each has few questions."]


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
                **{name: one[key] for name, key in VARIES.items()},
            }
            for route, one in rows.items()
        ],
        "evaluate_stability",
        "Means of each round",
        columns={name: {"format": "%.4f"} for name in rounds},
    )
    say.caption(f"Over the {finding.count(max(r['n'] for r in rows.values()))} scored in every round.")


def against(look: Look) -> None:
    """Draw the evaluation against another one: which questions broke and which were fixed."""
    evaluation = look.evaluation
    names = evaluated.others_of_corpus(evaluation)
    if not names:
        st.caption(
            "No other evaluation of this corpus is saved. After a change, evaluate the same questions."
        )
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        name = choice("other", OTHER, "Earlier evaluation", names, always=True, width=300)
        other = evaluated.reopened(name)
        if not other.routes:
            st.info("That evaluation has no finished question yet.")
            return
        routes, earlier = list(evaluation.routes), list(other.routes)
        now = choice("now", NOW, "Route now", routes, usual=look.baseline, width=230, format_func=title)
        usual = now if now in earlier else other.baseline
        then = choice("then", THEN, "Route then", earlier, usual=usual, width=230, format_func=title)
    metric = look.metric if look.metric in QUALITY else QUALITY[0]
    found = evaluated.once(
        evaluation,
        *("against", str(other.folder), experiment_store.stamp(other.folder), then, now, metric),
        compute=lambda: evaluations.evaluations_diff(other, evaluation, [(then, now)], metric),
    )
    (one,) = found.routes
    show(sentences([*evaluations.summary(found, one, title), *found.notes]))
    st.caption(md(evaluations.rule(found.depth)), help=term("mcnemar"))
    if metric != look.metric:
        say.caption(f"{titled(look.metric)} is of answers; rankings are compared by {titled(metric)}.")
    question_diff.draw(one.questions, "evaluate_against", {f"in {other.name}": other, "now": evaluation})
