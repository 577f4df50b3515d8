"""The decision audit of an evaluation: what each route's decisions were worth, and on which questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.domain.program import COMMAND
from core.evaluation import experiment_store, finding
from core.evaluation.audit import report
from core.evaluation.audit.cases import Case
from core.evaluation.audit.loops import own
from core.evaluation.experiment_store import Evaluation
from ui.app import state
from ui.app.choice import choice
from ui.app.evaluated import CHOSEN, others_of_corpus, to_sessions
from ui.app.help_mark import term
from ui.app.markup import cut, md, show
from ui.app.plot import plot
from ui.app.routes import title
from ui.charts.intervals import of_findings
from ui.components import tables
from ui.evaluate.view import Look, sentences

FIGURE, KIND, SIDE = "evaluate_audit_figure", "evaluate_audit_kind", "evaluate_audit_side"
OPEN = "evaluate_audit_open"
MAX_SENTENCES = 8  # gains that are told in words; the table has all
SIDES = {"all": "All", "better": "Firing is better", "worse": "Firing is worse", "tied": "No difference"}


def draw(look: Look) -> None:
    """Draw it."""
    evaluation = look.evaluation
    found = _read(str(evaluation.folder), _stamp(evaluation.folder))
    if found is None:
        _nothing(evaluation)
        return
    document, cases = found
    _routes(document)
    if not document["decisions"]:
        st.info("No decision that can be turned came up on these questions, so there is none to judge.")
        return
    st.subheader("Decisions", anchor=False, help=term("decision audit"))
    figures = list(dict.fromkeys(name for kind in document["decisions"] for name in kind["figures"]))
    if not figures:
        st.info("No figure could be measured both ways on these questions.")
        return
    metric = choice("figure", FIGURE, "Figure", figures, format_func=titled, width=230)
    _gains(document, metric)
    _decisions(document, metric)
    _questions(evaluation, document, cases, metric)


def _stamp(folder: Path) -> float:
    path = folder / report.AUDIT
    return path.stat().st_mtime if path.is_file() else 0.0


@st.cache_resource(max_entries=4, show_spinner="Opening the decision audit")
def _read(folder: str, stamp: float) -> tuple[dict[str, Any], list[Case]] | None:  # noqa: ARG001 - cache key
    document = report.read(Path(folder))
    return None if document is None else (document, report.read_cases(Path(folder)))


def _nothing(evaluation: Evaluation) -> None:
    """Draw how to start an audit if the evaluation has none."""
    spec = evaluation.spec
    st.info("This evaluation has no decision audit.")
    st.markdown(
        "A decision audit asks each question again with each decision of a route turned, and shows what the "
        "decision gained and cost. Start one in *New evaluation* with *Audit the decisions*, or run:"
    )
    routes = [name for name in evaluation.routes if own(name)]
    some = f" --routes {','.join(routes)}" if routes else ""
    st.code(f"{COMMAND} audit {spec['corpus']}{some} --queries 40 --seed {spec['seed']}", language="sh")
    settings = state.engine().settings
    made = [
        name
        for name in others_of_corpus(evaluation)
        if (experiment_store.place(settings, name) / report.AUDIT).is_file()
    ]
    if made:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            chosen = st.selectbox("Audits", made, key=OPEN, width=320)
            st.button("Open the audit", on_click=_open, args=(chosen,))


def _open(name: str) -> None:
    st.session_state[CHOSEN] = name


def _routes(document: Mapping[str, Any]) -> None:
    """Draw the routes' claims, in sentences and in a table."""
    base = title(document["baseline"])
    claims = {name: row for name, row in document["routes"].items() if "claim" in row}
    texts = [
        finding.sentence(finding.compared(row["planned"], title(name), base, titled(row["claim"])))
        for name, row in claims.items()
    ]
    stopped = ["The audit was stopped before its end; resume it for all questions."]
    show(sentences([*(stopped if document["interrupted"] else []), *(texts or ["No route was audited."])]))
    _route_table(document)
    baselines = ", ".join(map(title, document["baselines"]))
    st.caption(
        md(
            f"Baselines: {baselines}. Planned is the difference from {base} in the one figure that a route "
            "claims to improve; p is corrected for the number of routes. Seconds leave out questions with "
            "model calls from the cache; timed says how many count. Model: "
            f"{document['model']['name']}. {document['machine']}."
        )
    )
    for warning in document["warnings"]:
        st.caption(md(f"{warning}."))


def _route_table(document: Mapping[str, Any]) -> None:
    import pandas as pd

    shown = [name for name in report.SHOWN if any(row.get(name) is not None for row in _rows(document))]
    made = []
    for route, row in document["routes"].items():
        planned, took = row.get("planned") or {}, row["use"]
        ends = planned.get("ci95") or (None, None)
        made.append(
            {
                "Route": title(route),
                "Claim": titled(row["claim"]) if "claim" in row else "baseline",
                "Planned": planned.get("delta"),
                "95% from": ends[0],
                "to": ends[1],
                "p (Holm)": planned.get("p_holm"),
                "Verdict": planned.get("verdict", ""),
                **{titled(name): row.get(name) for name in shown},
                "calls": took["calls"],
                "tokens": took["tokens"],
                "seconds": took["seconds_timed"],
                "timed": took["timed"],
                "failed": took["failed"],
            }
        )
    signed = {"Planned": "baseline", "95% from": "confidence interval", "to": "confidence interval"}
    tables.show(
        pd.DataFrame(made),
        hide_index=True,
        width="stretch",
        key="evaluate_audit_routes",
        column_config={
            "Route": st.column_config.TextColumn(pinned=True),
            **{name: _number("%+.3f", key) for name, key in signed.items()},
            "p (Holm)": _number("%.3f", "Holm correction"),
            **{titled(name): _number("%.3f") for name in shown},
            "calls": _number("%.1f"),
            "tokens": _number("%.0f"),
            "seconds": _number("%.2f"),
        },
        alt="Routes with what they claim, their figures and their cost",
    )


def _rows(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(document["routes"].values())


def _kind(row: Mapping[str, Any]) -> str:
    return f"{title(row['route'])}: {row['step']}"


def _gains(document: Mapping[str, Any], metric: str) -> None:
    """Draw each kind of decision's gain when fired, in sentences and as a chart."""
    rows = [
        finding.compared(found["gain"], _kind(row), "its other way", titled(metric))
        for row in document["decisions"]
        if (found := row["figures"].get(metric)) and found["gain"]
    ]
    if not rows:
        st.caption("No decision fired on a question where this figure is known both ways.")
        return
    texts = [f"{one.subject}: {finding.figures(one)} when fired." for one in rows]
    show(sentences(texts[:MAX_SENTENCES]))
    plot(of_findings(rows), "evaluate_audit_forest", " ".join(texts))


def _decisions(document: Mapping[str, Any], metric: str) -> None:
    import pandas as pd

    made = []
    for row in document["decisions"]:
        found, price = row["figures"].get(metric) or {}, row["price"]
        gain = found.get("gain") or {}
        ends = gain.get("ci95") or (None, None)
        made.append(
            {
                "Route": title(row["route"]),
                "Decision": row["step"],
                "n": row["n"],
                "Fired": row["fired"],
                "Precision": found.get("precision"),
                "Recall": found.get("recall"),
                "Better": found.get("better"),
                "Tied": found.get("tied"),
                "Worse": found.get("worse"),
                "Missed": found.get("missed"),
                "Gain": gain.get("delta"),
                "95% from": ends[0],
                "to": ends[1],
                "p (Holm)": gain.get("p_holm"),
                "Had it fired": found.get("gain_had_it_fired"),
                "More calls": price["calls"],
                "More tokens": price["tokens"],
                "More seconds": price["seconds"],
                "timed": price["timed"],
                "Left out": sum(row["left_out"].values()),
            }
        )
    tables.show(
        pd.DataFrame(made),
        hide_index=True,
        width="stretch",
        key=f"evaluate_audit_decisions:{metric}",
        column_config={
            "Route": st.column_config.TextColumn(pinned=True),
            "n": st.column_config.NumberColumn(help=term("decision audit", "Questions asked both ways.")),
            "Fired": st.column_config.NumberColumn(help=term("fired")),
            "Precision": _number("%.3f", "decision precision"),
            "Recall": _number("%.3f", "decision recall"),
            "Missed": st.column_config.NumberColumn(help="Did not fire, and firing would have been better"),
            "Gain": _number("%+.3f", "gain when fired"),
            "95% from": _number("%+.3f", "confidence interval"),
            "to": _number("%+.3f", "confidence interval"),
            "p (Holm)": _number("%.3f", "Holm correction"),
            "Had it fired": st.column_config.NumberColumn(
                format="%+.3f", help="Mean gain of firing on the questions where it did not fire"
            ),
            "More calls": _number("%+.1f", "price when fired"),
            "More tokens": _number("%+.0f", "price when fired"),
            "More seconds": _number("%+.2f", "price when fired"),
        },
        alt=f"Decisions by what firing gave in {titled(metric)}",
    )
    st.caption(
        f"In {titled(metric)}. n and Fired count all questions; the other columns those where the figure is "
        "known both ways. p is corrected for the number of kinds. Where More seconds is empty, the model "
        "calls came from the cache: not measured."
    )


def _questions(
    evaluation: Evaluation, document: Mapping[str, Any], cases: Sequence[Case], metric: str
) -> None:
    """Draw the questions of one kind of decision with both outcomes, and the chosen one's runs."""
    import pandas as pd

    kinds = {f"{row['route']}:{row['step']}": row for row in document["decisions"]}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = choice(
            "decision",
            KIND,
            "Questions of",
            list(kinds),
            width=420,
            format_func=lambda key: _kind(kinds[key]),
        )
        mine = [case for case in cases if f"{case.route}:{case.step}" == kind]
        counts = {side: sum(_is(case, side, metric) for case in mine) for side in SIDES}
        side = choice(
            "side",
            SIDE,
            "Which",
            list(SIDES),
            segmented=True,
            format_func=lambda name: f"{SIDES[name]} ({counts[name]})",
        )
    some = [case for case in mine if _is(case, side, metric)]
    rows = [
        {
            "Question": cut(evaluation.questions[case.question].query.text, 240),
            "Decided": case.decision,
            "Fired": "yes" if case.acted else "no",
            f"{titled(metric)} fired": case.fired.get(metric),
            "not fired": case.quiet.get(metric),
            "Gain of firing": case.gain(metric),
            "More calls": case.calls,
            "Left out": case.left_out,
        }
        for case in some
    ]
    event = tables.show(
        pd.DataFrame(rows, columns=list(rows[0]) if rows else ["Question"]),
        hide_index=True,
        width="stretch",
        on_select="rerun",
        selection_mode="single-row",
        height=min(420, 38 + 35 * max(1, len(rows))),
        key=f"evaluate_audit_questions:{evaluation.name}:{kind}:{side}:{metric}",
        column_config={
            "Question": st.column_config.TextColumn(width=330),
            f"{titled(metric)} fired": _number("%.3f"),
            "not fired": _number("%.3f"),
            "Gain of firing": _number("%+.3f"),
        },
        alt="Questions with what came of the decision both ways",
    )
    st.caption(f"{len(rows)} questions. Select a row to open its runs.")
    picked = [some[n] for n in event["selection"]["rows"] if n < len(some)]
    if picked:
        _runs(evaluation, picked[0])


def _is(case: Case, side: str, metric: str) -> bool:
    gain = case.gain(metric)
    return side == "all" or (gain is not None and side == _side(gain))


def _side(gain: float) -> str:
    return "tied" if abs(gain) < 1e-12 else "better" if gain > 0 else "worse"


def _runs(evaluation: Evaluation, case: Case) -> None:
    """Draw buttons to both runs of a question."""
    labels = (f"Run as it decided: {case.decision}", f"Run forced to: {case.turned_to}")
    with st.container(horizontal=True, vertical_alignment="center"):
        for nth, (label, id) in enumerate(zip(labels, case.runs, strict=True)):
            if st.button(md(label), key=f"evaluate_audit_run:{nth}", disabled=not id):
                run = to_sessions(evaluation, case.question, id)
                st.switch_page(
                    "steps.py", query_params={"run": run, "view": "Evaluators", "tab": "Decisions"}
                )
        st.caption("Copies the run into Sessions and opens it on Steps.")


def _number(form: str, key: str | None = None) -> Any:
    return st.column_config.NumberColumn(format=form, help=term(key) if key else None)
