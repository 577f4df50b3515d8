"""Routers: what they took questions for, what their choices gained and lost, and their mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.analysis.metrics import HEADLINE, titled
from core.evaluation import oracle
from core.evaluation.finding import count, figures, mean
from ui.app import say
from ui.app.evaluated import open_run
from ui.app.help_mark import term
from ui.app.markup import cut, show
from ui.app.plot import plot
from ui.app.routes import title
from ui.charts.heatmaps import confusion
from ui.components import tables
from ui.evaluate.view import Look, sentences

LISTED = 100  # mistakes


def draw(look: Look) -> None:
    """Draw each route that chooses other routes."""
    found = {route: row["routing"] for route, row in look.figures["routes"].items() if row.get("routing")}
    if not found:
        st.caption("No route of this evaluation chooses another route. Evaluate one that does: adaptive.")
    for route, one in found.items():
        st.markdown(f"##### {title(route)}", help=term("router"))
        said = _in_words(route, one)
        show(sentences(said))
        if one["asked"]:
            figure = confusion(one["classes"], one["confusion"])
            plot(figure, f"evaluate_router:{route}", " ".join(said))
            st.caption("Rows: the class that the question's author gave. Columns: the class that was chosen.")
        _mistakes(look, route)


def _of(value: Mapping[str, Any], metric: str) -> str:
    return figures(mean("", titled(metric), value["mean"], value["ci95"], value["n"]))


def _in_words(route: str, one: Mapping[str, Any]) -> list[str]:
    """Describe how a router routed, and what it gained."""
    texts = [
        f"{title(route)} classified {one['accuracy']:.0%} of {count(one['asked'])} correctly; "
        f"{one['left_out']} are excluded, because their mode matches no class or the router chose none."
        if one["asked"]
        else f"{title(route)} classified questions, but none of them has a mode that matches a class."
    ]
    if lost := one.get("regret"):
        given = _of(lost, lost["metric"])
        texts.append(f"Its choices lost {given} against the best route run on each question.")
    if at := one.get("standing"):
        texts.append(
            f"Against Hybrid + rerank, its default, the difference is {_of(at['gain'], HEADLINE)}; against "
            f"{title(at['best'])}, the best single route here, the regret is {_of(at['regret'], HEADLINE)}."
        )
    if seen := one.get("trained_on"):
        said = "The classifier was trained on this set too, so the figures above flatter it."
        if seen["right"] is not None:
            said += f" With it held out it classified {seen['right']:.0%} of {count(seen['asked'])} correctly"
            if at := seen["standing"]:
                gain = mean("", "value", at["gain"]["mean"], at["gain"]["ci95"], at["gain"]["n"])
                said += f" and differed from its default by {figures(gain)}"
            said += "."
        texts.append(said)
    return texts


def _mistakes(look: Look, route: str) -> None:
    evaluation = look.evaluation
    asked = {id: by[route].said for id, by in evaluation.outcomes.items() if route in by}
    given = {id: said["route"] for id, said in asked.items() if "route" in said}
    values: dict[str, dict[str, float]] = {}
    for name, by in evaluation.values.items():
        for id, row in by.items():
            values.setdefault(id, {})[name] = row[HEADLINE]
    if not given:
        st.caption("This evaluation did not record the chosen route, so mistakes are unknown.")
        return
    found = oracle.mistakes(values, route, given)
    worse = sum((one.lost or 0) > 0 for one in found)
    st.markdown("##### Mistakes")
    told = f"On {len(found)} of {count(len(given))} another route was better; "
    told += f"on {worse} of them the default was."
    show(sentences([told, "The best route is known only afterwards: part of what it gained is chance."]))
    listed = found[:LISTED]
    if not listed:
        return
    picked = tables.pick(
        [
            {
                "Question": cut(evaluation.questions[one.question].query.text, 200),
                "Mode": evaluation.questions[one.question].mode or "",
                "Class": asked[one.question].get("class", ""),
                "Given to": title(one.route),
                "Lost to rerank": one.lost,
                "Lost to the best": one.regret,
                "Best": title(one.best),
                "Features that decided": asked[one.question].get("features", ""),
            }
            for one in listed
        ],
        listed,
        f"evaluate_mistakes:{evaluation.name}:{route}",
        "Questions that a router gave to a route that another one beat",
    )
    say.caption(f"{len(listed)} questions. Select a row to open its run.")
    if picked is not None:
        key, to = "evaluate_mistake_open", {"view": "Evaluators", "tab": "Decisions"}
        open_run(evaluation, picked.question, key, label="Open in Evaluators", page="steps.py", **to)
