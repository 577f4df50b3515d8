"""The drafts of an answer: what changed between them, the claims found in each, and why writing ended."""

from __future__ import annotations

from markupsafe import Markup

from core.analysis.answers import writing
from core.domain.types import Run
from ui.app.markup import fragment, tag
from ui.components.rewrites import word_diff

WORDS = {"kept": "unchanged", "changed": "verdict changed", "added": "new"}


def drafts(run: Run) -> Markup:
    """Return every draft of routes that judged their drafts, or a note if none did."""
    routes = []
    for result in run.results:
        if found := writing(result):
            written = [one.output.draft for one in found.drafts]
            changes = [written[0], *map(word_diff, written, written[1:])]
            routes.append((result, found, list(zip(found.drafts, changes, strict=True))))
    if not routes:
        return tag("div", "No route of this run revised an answer or judged a draft.", css="rs dim")
    return fragment("evaluators.drafts", routes, WORDS)
