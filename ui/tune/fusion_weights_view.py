"""Saved fusion weights: their figures, their values, using and deleting them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st
from markupsafe import Markup

from core.backends import fusion_weights as files
from core.backends.fusion_weights import FittedWeights
from core.corpus.catalogue import current_fingerprint
from core.domain.errors import RouteScopeError
from core.domain.format import between, number
from core.domain.needs import Need
from core.domain.program import COMMAND
from core.evaluation.finding import Finding, sentence
from core.evaluation.tuning import learn_text
from core.evaluation.tuning.learn import METRIC
from core.routes.declare import Route
from core.routes.registry import routes
from ui.app import next_run, state
from ui.app.choice import choice
from ui.app.markup import cut, join, md, show, table_of, tag
from ui.app.plot import plot
from ui.app.routes import also
from ui.charts.fusion_weights import weight_bars

WEIGHTS = "fit_weights"  # the name of those that are shown
DELETED, USED = "fit_deleted", "fit_used"  # the weights that were deleted last; the name used last
PARTS = ("held out", "out of fold")  # of the figures, the ones that count more first


def draw(corpus: str) -> None:
    """Draw the choice of saved weights, with their figures and actions."""
    st.markdown("##### Fitted weights")
    home = state.engine().settings.home
    names = files.names(home, corpus)
    _deleted(home, corpus)
    if not names:
        st.caption(md(f"No weights fitted for {corpus} yet. Fit some above or run: {COMMAND} fit {corpus}"))
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = choice("weights", WEIGHTS, "Weights", names, width=300)
        with st.popover("Delete", key="fit_delete"):
            st.caption("The route then uses the newest remaining weights. Stored runs do not change.")
            st.button(
                "Delete these weights", key="fit_delete_now", on_click=_delete, args=(home, corpus, name)
            )
    try:
        found = files.read(home, corpus, name)
    except RouteScopeError as error:
        st.error(md(str(error)))
        return
    try:
        _state(found)
        _worth(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        st.error(md(f"The figures of these weights cannot be read ({type(error).__name__}). Fit them again."))
    _weights(found)
    _use(found)


def _state(found: FittedWeights) -> None:
    made = found.made
    st.caption(
        md(
            f"Fitted {str(made.get('date', ''))[:10]} on {made.get('of', '')}. "
            + (learn_text.labels(made["counts"]) if "counts" in made else "")
        )
    )
    if found.fingerprint != current_fingerprint(found.corpus, settings=state.engine().settings):
        st.warning(
            "The corpus has been reindexed since these weights were fitted. They still apply, but the lists'"
            " scores may have shifted, and the figures describe the earlier corpus. Fit them again."
        )


def _worth(found: FittedWeights) -> None:
    """Draw the figures on questions not used in the fit, compared with fusions without labels."""
    parts = [part for part in PARTS if found.made.get(part)]
    if not parts:
        st.caption("These weights contain no record of how they were fitted or measured.")
        return
    body: list[Markup] = []
    for part, line in zip(parts, learn_text.worth(found), strict=True):
        hand, measured = learn_text.rivals(found, part), learn_text.rivals(found, part, "measured")
        body.append(tag("p", tag("b", line), " ", " ".join(map(sentence, hand))))
        body.append(_table(hand, "The fitted weights minus"))
        if measured:
            more = f"The same against {len(measured)} routes of the evaluation"
            table = _table(measured, "The fitted weights minus")
            body.append(tag("details", tag("summary", more), table))
    if left := learn_text.left_out(found):
        body.append(
            tag("p", tag("b", "Is each list worth its search?"), " Refitted without it, out of fold:")
        )
        body.append(_table(left, "Without"))
    body.append(_folds(found))
    show(tag("div", *body, css="rs rs-learning"))


def _weights(found: FittedWeights) -> None:
    text = learn_text.weights(found)
    st.markdown("###### Weight of each list")
    st.markdown(md(text))
    plot(weight_bars(found), f"fit_bars:{found.name}", text)
    with st.expander("How they were fitted"):
        st.caption(md(str(found.made.get("how", "not recorded"))))
        st.caption(
            "Each list gives a passage three features: its score, scaled from the list's lowest (0) to its "
            "highest (1), whether the list contains it, and 1 divided by its rank. A passage's score is the "
            "weighted sum of these features over all lists. The intercept of the regression does not change "
            "the order and is left out."
        )


def _use(found: FittedWeights) -> None:
    """Use the weights in the next run of Compare, with Undo."""
    route = next(one for one in routes().values() if Need.WEIGHTS in one.needs)
    count = len(found.made.get("questions", ()))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button("Use in Compare", key="fit_use", on_click=use, args=(route, found))
        if st.session_state.get(USED) == found.name:
            st.success(md(f"{route.title} with {found.name} is set for the next run."))
            st.page_link("compare.py", label="Go to Compare, then press Ctrl+Enter (⌘ Enter) to run")
            st.button("Undo", key="fit_undo_use", on_click=unuse, type="tertiary")
    if count:
        st.caption(
            f"On the {count} questions that the weights were fitted on, the route looks better than it is. "
            "Measure it on other questions."
        )


def use(route: Route, found: FittedWeights) -> None:
    """Choose the route with these weights for the next run; the inputs before are remembered for Undo."""
    now = st.session_state
    now[next_run.BEFORE] = next_run.inputs()
    parameter = next(parameter.name for parameter in route.parameters if parameter.type is str)
    now[state.CORPUS] = found.corpus
    now[state.PARAMETERS] = {**now.get(state.PARAMETERS, {}), route.name: {parameter: found.name}}
    also(route.name)
    now[state.VERSION] = now.get(state.VERSION, 0) + 1  # the parameters' widgets are created again
    now[USED] = found.name


def unuse() -> None:
    """Restore the inputs from before `use`."""
    st.session_state.pop(USED, None)
    next_run.undo()


def _delete(home: Path, corpus: str, name: str) -> None:
    st.session_state[DELETED] = (corpus, name, files.remove(home, corpus, name))


def _deleted(home: Path, corpus: str) -> None:
    of, name, found = st.session_state.get(DELETED, ("", "", None))
    if of != corpus:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="fit_deleted_row"):
        st.caption(
            md(f"Deleted {name}." + ("" if found else " The weights were damaged and cannot be restored."))
        )
        if found is not None:
            st.button("Undo", key="fit_undo_delete", on_click=_restore, args=(home, found), type="tertiary")


def _restore(home: Path, found: FittedWeights) -> None:
    files.write(home, found)
    st.session_state.pop(DELETED, None)
    st.session_state[WEIGHTS] = found.name


def _table(found: Sequence[Finding], first: str) -> Markup:
    heads = (first, "nDCG@10", "difference", "95% interval", "p, corrected", "", "questions")
    numeric = (1, 2, 3, 4, 6)
    head = tag("tr", *(tag("th", one, css="num" if n in numeric else "") for n, one in enumerate(heads)))
    rows = []
    for one in found:
        ends = "–" if one.interval is None else between(*one.interval, signed=True)
        css = {"better": "up", "worse": "down"}.get(one.verdict, "dim")
        cells = (
            cut(one.baseline or "", 60),
            f"{one.before:.3f}",
            number(one.estimate, signed=True),
            ends,
            f"{one.p:.3f}",
            one.verdict,
            str(one.n),
        )
        rows.append(
            tag(
                "tr",
                *(
                    tag("td", cell, css="num" if n in numeric else css if n == 5 else "")
                    for n, cell in enumerate(cells)
                ),
            )
        )
    return tag(
        "div",
        table_of(head, rows, css="rs-learning-table"),
        css="rs-wide",
    )


def _folds(found: FittedWeights) -> Markup:
    folds = found.made.get("out of fold", {}).get("folds", [])
    said = ", ".join(f"{one[METRIC]:.3f} ({one['questions']} questions)" for one in folds)
    return tag("p", join(["nDCG@10 of each fold: ", said, "."]), css="dim") if folds else Markup("")
