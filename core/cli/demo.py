"""`demo`: measure routes on the bundled questions, and let the gate catch a bad change."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from core.cli.commands import command
from core.cli.common import emit
from core.cli.text import table
from core.domain.format import milliseconds, number
from core.domain.program import COMMAND
from core.domain.text import one_line

if TYPE_CHECKING:
    from core.api.evaluating import Evaluated

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
    from core.api.evaluating import evaluate
    from core.api.gating import gate
    from core.evaluation.release.comment import comment

    measured = evaluate(CORPUS, ROUTES, keep=BEFORE, fresh=True)
    changed = evaluate(CORPUS, [CHANGE], parameters=CHANGED, keep=AFTER, fresh=True)
    decision = gate(changed, against=BEFORE)
    said = comment(decision, decision.against)
    document = {"before": measured.figures, "after": changed.figures, "passes": decision.ok, "comment": said}
    emit(document, lambda: _text(measured, said, passes=decision.ok))


def _text(measured: Evaluated, said: str, *, passes: bool) -> str:
    rows = [
        (route, *(number(row[metric]) for metric in METRICS), milliseconds(row["p50_ms"]))
        for route, row in measured.to_frame().iterrows()
    ]
    questions = measured.figures["queries"]
    lines = [
        f"1. {len(rows)} routes on {questions} labelled questions about an online shop:",
        "",
        table(("route", *METRICS, "p50"), rows, right=(1, 2, 3, 4)),
        "",
        *map(one_line, measured.findings),
        "",
        "2. A bad change of BM25 + RM3: it searches only by the words of the first passage found.",
        f"   The gate {'passes' if passes else 'fails'}. Its comment for the pull request:",
        "",
        _readable(said),
        "",
        f"Open the dashboard: {COMMAND} serve",
    ]
    return "\n".join(lines)


def _readable(markdown: str) -> str:
    """Return a comment without its escapes and tags, with the first LISTED items of its longer lists."""
    plain = re.sub(r"<!--.*?-->|</?(details|summary)[^>]*>", "", markdown)
    plain = re.sub(r"\\([^A-Za-z0-9\s])", r"\1", html.unescape(plain)).replace("\u200b", "")
    lines: list[str] = []
    for part in re.split(r"\n{2,}", plain.strip()):
        items = part.split("\n")
        cut = len(items) - LISTED if items[0].startswith("- `") else 0
        lines += [
            *items[: LISTED if cut > 0 else None],
            *([f"- and {cut} more (--json has all)"] if cut > 0 else []),
            "",
        ]
    return "\n".join(lines[:-1])
