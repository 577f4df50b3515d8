"""Saved fusion weights: their figures, their values, using and deleting them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import streamlit as st
from markupsafe import Markup

from core.backends import fusion_weights as files
from core.backends.fusion_weights import FittedWeights
from core.corpus.catalogue import current_fingerprint
from core.domain.errors import RouteScopeError
from core.domain.format import between, number
from core.domain.needs import Need
from core.evaluation.finding import Finding, sentence
from core.evaluation.tuning import fusion_weights
from core.evaluation.tuning.learn import METRIC
from core.routes.registry import routes
from ui.app import next_run, outcome, say, state
from ui.app.choice import choice
from ui.app.markup import cut, show, table, tag
from ui.app.outcome import Outcome
from ui.app.plot import plot
from ui.charts.bars import weight_bars

WEIGHTS = "fit_weights"  # the name of those that are shown
PARTS = ("held out", "out of fold")  # of the figures, the ones that count more first


def draw(corpus: str) -> bool:
    """Draw the choice of saved weights, with their figures and actions; return whether there are any."""
    home = state.engine().settings.home
    names = files.names(home, corpus)
    outcome.draw(f"fit_deleted:{corpus}", "fit_undo_delete")
    if not names:
        return False
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = choice("weights", WEIGHTS, "Weights", names, width=300)
        with st.popover("Delete", key="fit_delete"):
            st.caption("The route then uses the newest remaining weights. Stored runs do not change.")
            place, work = f"fit_deleted:{corpus}", partial(_delete, home, corpus, name)
            outcome.button("Delete these weights", place, work, "fit_delete_now")
    try:
        found = files.read(home, corpus, name)
    except RouteScopeError as error:
        say.error(error)
        return True
    text = fusion_weights.weights(found)
    show(tag("div", tag("p", tag("b", text)), css="rs"))
    plot(weight_bars(found), f"fit_bars:{found.name}", text)
    if found.fingerprint != current_fingerprint(found.corpus, settings=state.engine().settings):
        st.warning("The corpus has been reindexed since these weights were fitted. Fit them again.")
    try:
        _worth(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        say.error(f"The figures of these weights cannot be read ({type(error).__name__}). Fit them again.")
    _use(found)
    return True


def _worth(found: FittedWeights) -> None:
    """Draw how the weights were fitted, and their figures on other questions against other fusions."""
    made = found.made
    counts = fusion_weights.labels(made["counts"]) if "counts" in made else ""
    say.caption(f"Fitted {str(made.get('date', ''))[:10]} on {made.get('of', '')}. {counts}")
    parts = [part for part in PARTS if made.get(part)]
    if not parts:
        st.caption("These weights contain no record of how they were fitted or measured.")
        return
    body: list[Markup] = []
    for part, line in zip(parts, fusion_weights.worth(found), strict=True):
        hand, measured = fusion_weights.rivals(found, part), fusion_weights.rivals(found, part, "measured")
        body.append(tag("p", tag("b", line), " ", " ".join(map(sentence, hand))))
        body.append(_table(hand, "The fitted weights minus"))
        if measured:
            more = tag("summary", f"The same against {len(measured)} routes of the evaluation")
            body.append(tag("details", more, _table(measured, "The fitted weights minus")))
    if left := fusion_weights.left_out(found):
        worth = tag("b", "Is each list worth its search?")
        body.append(tag("p", worth, " Refitted without it, out of fold:"))
        body.append(_table(left, "Without"))
    if folds := made.get("out of fold", {}).get("folds"):
        said = ", ".join(f"{one[METRIC]:.3f} ({one['questions']} questions)" for one in folds)
        body.append(tag("p", f"nDCG@10 of each fold: {said}.", css="dim"))
    body.append(tag("p", str(made.get("how", "")), css="dim"))
    show(tag("div", *body, css="rs rs-learning"))


def _use(found: FittedWeights) -> None:
    """Draw the button that uses the weights in the next run of Compare, with Undo."""
    route = next(one for one in routes().values() if Need.WEIGHTS in one.needs)
    parameter = next(parameter.name for parameter in route.parameters if parameter.type is str)
    args = (f"fit:{found.name}", route, {parameter: found.name}, found.corpus)
    st.button("Use in Compare", key="fit_use", on_click=next_run.use, args=args)
    outcome.draw(f"fit:{found.name}", "fit_undo_use")
    if count := len(found.made.get("questions", ())):
        st.caption(f"On the {count} questions that it was fitted on, the route looks better than it is.")


def _delete(home: Path, corpus: str, name: str) -> Outcome:
    found = files.remove(home, corpus, name)
    if found is None:
        return Outcome(f"Deleted {name}. The weights were damaged and cannot be restored.")
    return Outcome(f"Deleted {name}.", partial(_restore, home, found))


def _restore(home: Path, found: FittedWeights) -> None:
    files.write(home, found)
    st.session_state[WEIGHTS] = found.name


def _table(found: Sequence[Finding], first: str) -> Markup:
    rows = []
    for one in found:
        ends = "–" if one.interval is None else between(*one.interval, signed=True)
        figures = f"{one.before:.3f}", number(one.estimate, signed=True), ends, f"{one.p:.3f}"
        verdict = one.verdict, {"better": "up", "worse": "down"}.get(one.verdict, "dim")
        rows.append((cut(one.baseline or "", 60), *figures, verdict, str(one.n)))
    heads = (first, "nDCG@10", "difference", "95% interval", "p, corrected", "", "questions")
    drawn = table(heads, rows, numbers={1, 2, 3, 4, 6}, css="rs-learning-table")
    return tag("div", drawn, css="rs-wide")
