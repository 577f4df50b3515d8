"""`demo`: measure routes on the bundled questions, and let the gate catch a bad change."""

from __future__ import annotations

import html
import re

from core.api.evaluating import Evaluated, evaluate
from core.api.gating import gate
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
LISTED = 3  # questions of each list that the terminal shows
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
    emit(document, _text(measured, said, passes=decision.ok))


def _text(measured: Evaluated, said: str, *, passes: bool) -> str:
    rows = [
        (route, *(number(row[metric]) for metric in METRICS), milliseconds(row["p50_ms"]))
        for route, row in measured.to_frame().iterrows()
    ]
    about = len(rows), measured.figures["queries"], measured.findings, passes, _readable(said), COMMAND
    return say("commands.demo", table(("route", *METRICS, "p50"), rows), *about)


def _readable(markdown: str) -> str:
    """Return a comment without its escapes and tags, with the first LISTED items of its longer lists."""
    plain = re.sub(r"<!--.*?-->|</?(details|summary)[^>]*>", "", markdown)
    plain = re.sub(r"\\([^A-Za-z0-9\s])", r"\1", html.unescape(plain)).replace("\u200b", "")
    lines: list[str] = []
    for part in re.split(r"\n{2,}", plain.strip()):
        items = part.split("\n")
        if items[0].startswith("- `") and (cut := len(items) - LISTED) > 0:
            items = [*items[:LISTED], f"- and {cut} more (--json has all)"]
        lines += [*items, ""]
    return "\n".join(lines[:-1])
