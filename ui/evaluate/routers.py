"""Routers: what they took questions for, what their choices gained and lost, and their mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.analysis.metrics import HEADLINE, titled
from core.evaluation import routing
from core.evaluation.finding import count, figures, mean
from core.evaluation.routing import Mistake
from ui.app.evaluated import to_sessions
from ui.app.help_mark import term
from ui.app.markup import cut, md, show
from ui.app.plot import plot
from ui.app.routes import title
from ui.charts.confusion import confusion
from ui.components import tables
from ui.evaluate.view import Look, sentences

LISTED = 100  # mistakes


def routers(look: Look) -> dict[str, Mapping[str, Any]]:
    """Return the routing figures of each route that chooses other routes."""
    rows = look.figures["routes"]
    return {route: row["routing"] for route, row in rows.items() if row.get("routing")}


def draw(look: Look) -> None:
    """Draw it."""
    found = routers(look)
    if not found:
        st.caption(md("No route of this evaluation chooses another route. Evaluate one that does: adaptive."))
        return
    for route, one in found.items():
        st.markdown(f"##### {title(route)}", help=term("router"))
        said = describe_routing(route, one)
        show(sentences(said))
        if one["asked"]:
            plot(
                confusion(one["classes"], one["confusion"]),
                f"evaluate_router:{route}",
                " ".join(said),
            )
            st.caption("Rows: the class that the question's author gave. Columns: the class that was chosen.")
        _mistakes(look, route)


def describe_routing(route: str, one: Mapping[str, Any]) -> list[str]:
    """Describe how a router routed, and what it gained."""
    texts = [
        f"{title(route)} classified {one['accuracy']:.0%} of {count(one['asked'])} correctly; "
        f"{one['left_out']} are excluded, because their mode matches no class or the router chose none."
        if one["asked"]
        else f"{title(route)} classified questions, but none of them has a mode that matches a class."
    ]
    if lost := one.get("regret"):
        given = mean("", titled(lost["metric"]), lost["mean"], lost["ci95"], lost["n"])
        texts.append(f"Its choices lost {figures(given)} against the best route run on each question.")
    if at := one.get("standing"):
        gain, regret = (
            mean("", titled(HEADLINE), at[name]["mean"], at[name]["ci95"], at[name]["n"])
            for name in ("gain", "regret")
        )
        texts.append(f"Against Hybrid + rerank, its default, the difference is {figures(gain)}.")
        texts.append(
            f"Against {title(at['best'])}, the best single route here, the regret is {figures(regret)}."
        )
    if seen := one.get("trained_on"):
        texts.append(_held_out(seen))
    return texts


def _held_out(seen: Mapping[str, Any]) -> str:
    """Describe the figures on held-out questions if the classifier was trained on this set too."""
    said = "The classifier was trained on this set too, so the figures above flatter it."
    if seen["right"] is not None:
        said += f" With it held out it classified {seen['right']:.0%} of {count(seen['asked'])} correctly"
        if at := seen["standing"]:
            gain = mean("", "value", at["gain"]["mean"], at["gain"]["ci95"], at["gain"]["n"])
            said += f" and differed from its default by {figures(gain)}"
        said += "."
    return said


def _mistakes(look: Look, route: str) -> None:
    evaluation = look.evaluation
    asked = {id: by[route].said for id, by in evaluation.outcomes.items() if route in by}
    given = {id: said["route"] for id, said in asked.items() if "route" in said}
    values: dict[str, dict[str, float]] = {}
    for name, by in evaluation.values.items():
        for id, row in by.items():
            values.setdefault(id, {})[name] = row[HEADLINE]
    found = routing.mistakes(values, route, given)
    if not given:
        st.caption("This evaluation was made before the chosen route was recorded, so mistakes are unknown.")
        return
    worse = sum((one.lost or 0) > 0 for one in found)
    st.markdown("##### Mistakes")
    show(
        sentences(
            [
                f"On {len(found)} of {count(len(given))} another route was better; on {worse} of them "
                "the default, Hybrid + rerank, was.",
                "The features are those that spoke most for the class. The best route is known only "
                "afterwards: part of what it gained is chance.",
            ]
        )
    )
    if found:
        _table(look, route, found[:LISTED], asked)


def _table(look: Look, route: str, found: list[Mistake], asked: Mapping[str, Mapping[str, str]]) -> None:
    import pandas as pd

    evaluation = look.evaluation
    rows = [
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
        for one in found
    ]
    number = st.column_config.NumberColumn(format="%+.3f")
    event = tables.show(
        pd.DataFrame(rows),
        hide_index=True,
        width="stretch",
        height=min(420, 38 + 35 * len(rows)),
        on_select="rerun",
        selection_mode="single-row",
        key=f"evaluate_mistakes:{evaluation.name}:{route}",
        column_config={
            "Question": st.column_config.TextColumn(width=300),
            "Lost to rerank": number,
            "Lost to the best": number,
            "Features that decided": st.column_config.TextColumn(width=460),
        },
        alt="Questions that a router gave to a route that another one beat",
    )
    picked = [found[at].question for at in event["selection"]["rows"] if at < len(found)]
    st.caption(f"{len(rows)} questions. Select a row to open its run.")
    if not picked:
        return
    if not evaluation.run_id(picked[0]):
        st.caption("The evaluation saved no run of this question, so it cannot be opened.")
    elif st.button("Open in Evaluators", key="evaluate_mistake_open"):
        run = to_sessions(evaluation, picked[0])
        st.switch_page("steps.py", query_params={"run": run, "view": "Evaluators", "tab": "Decisions"})
