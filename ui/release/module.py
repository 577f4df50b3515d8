"""A measured route as a Python module, on the Release page."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.program import COMMAND
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import Measured
from core.evaluation.release.module import module
from ui.app import state
from ui.app.choice import choice
from ui.app.markup import md

FILE = "route.py"


def draw(measured: Measured, decision: Decision) -> None:
    """Choose a route, read its module, download it."""
    evaluation = measured.evaluation
    if evaluation is None:
        st.caption("Only the figures are available. Open the evaluation to export one of its routes.")
        return
    routes = list(measured.routes)
    chosen = decision.chosen or decision.nearest
    name = choice(
        "export",
        "export_route",
        "Route",
        routes,
        usual=chosen if chosen in routes else None,
        format_func=measured.title,
        width=420,
    )
    spec = evaluation.spec
    try:
        source = module(
            state.engine(),
            name,
            spec["corpus"],
            (spec.get("parameters") or {}).get(name, {}),
            evidence=spec.get("evidence"),
            purpose=f"as measured in evaluation {evaluation.name}",
            file=FILE,
        )
    except RouteScopeError as error:
        st.error(md(str(error)))
        return
    st.caption(
        "A module that imports `core` and runs the route in the same engine as these pages, with the "
        "parameters of this evaluation, so it returns the same hits. Put RouteScope's checkout on PYTHONPATH "
        "to import or run it."
    )
    st.download_button("Download", source, file_name=FILE, mime="text/x-python", on_click="ignore")
    st.code(source, language="python")
    st.caption("Command line equivalent; give parameters as ROUTE.NAME=VALUE:")
    st.code(f"{COMMAND} module {name} --corpus {spec['corpus']} --out {FILE}", language="bash")
