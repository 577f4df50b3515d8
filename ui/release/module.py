"""A measured route as a Python module, on the Release page."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import RouteScopeError
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import Measured
from core.evaluation.release.module import module
from ui.app import state
from ui.app.choice import choice
from ui.app.markup import md

FILE = "route.py"


def draw(measured: Measured, decision: Decision) -> None:
    """Choose a route, read its module, take it along."""
    evaluation = measured.evaluation
    if evaluation is None:
        st.caption("Only figures are known here: open the evaluation to export one of its routes.")
        return
    routes = list(measured.routes)
    chosen = decision.chosen or decision.nearest
    name = choice(
        "export", "export_route", "Route", routes, usual=chosen if chosen in routes else None,
        format_func=measured.title, width=420,
    )  # fmt: skip
    spec = evaluation.spec
    try:
        source = module(
            state.engine(), name, spec["corpus"], (spec.get("knobs") or {}).get(name, {}),
            evidence=spec.get("evidence"), purpose=f"as measured in evaluation {evaluation.name}", file=FILE,
        )  # fmt: skip
    except RouteScopeError as error:
        st.error(md(str(error)))
        return
    st.caption(
        "A module that imports `core` and asks the engine that these pages ask, with the parameters of this "
        "evaluation: it finds the same hits. Put RouteScope's checkout on PYTHONPATH; import it, or run it."
    )
    st.download_button("Download", source, file_name=FILE, mime="text/x-python", on_click="ignore")
    st.code(source, language="python")
    st.caption("The same on the command line, with parameters as ROUTE.NAME=VALUE:")
    st.code(f"python -m core module {name} --corpus {spec['corpus']} --out {FILE}", language="bash")
