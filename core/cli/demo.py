"""`demo`: measure routes on the bundled questions, and let the gate catch a bad change."""

from __future__ import annotations

from core.api.evaluating import Evaluated, evaluate
from core.api.gating import GateDecision, gate
from core.cli.commands import command
from core.cli.common import emit, table
from core.domain.format import milliseconds, number
from core.domain.program import COMMAND
from core.evaluation.release.comment import comment
from core.evaluation.templating import say

CORPUS = "support"
ROUTES = ("prf_rm3", "bm25", "grep")  # they need no model, so nothing is downloaded
METRICS = ("ndcg@10", "recall@10", "mrr@10")
BEFORE, AFTER = "demo", "demo-changed"  # both evaluations, as the page Evaluate lists them
CHANGE = "prf_rm3"  # after BM25: searching by the words of its first hit alone
SHOWN = 9  # sentences of the gate that the terminal shows
CHANGED = {CHANGE: {"original": "0", "passages": "1"}}


@command("demo")
def demo_() -> None:
    """Measure routes on the bundled questions, and watch the gate stop a bad change.

    It needs no network and no model. Both evaluations are kept for the dashboard.
    """
    measured = evaluate(CORPUS, ROUTES, keep=BEFORE, fresh=True)
    changed = evaluate(CORPUS, [CHANGE], parameters=CHANGED, keep=AFTER, fresh=True)
    decision = gate(changed, against=BEFORE)
    said = comment(decision, decision.against)
    document = {"before": measured.figures, "after": changed.figures, "passes": decision.ok, "comment": said}
    emit(document, _text(measured, decision))


def _text(measured: Evaluated, decision: GateDecision) -> str:
    rows = [
        (route, *(number(row[metric]) for metric in METRICS), milliseconds(row["p50_ms"]))
        for route, row in measured.to_frame().iterrows()
    ]
    lines = str(decision).splitlines()
    reasons = [
        *lines[:SHOWN],
        *([f"and {len(lines) - SHOWN} more (--json has all)"] if lines[SHOWN:] else []),
    ]
    about = len(rows), measured.figures["queries"], measured.findings, decision.ok, reasons, COMMAND
    return say("commands.demo", table(("route", *METRICS, "p50"), rows), *about)
