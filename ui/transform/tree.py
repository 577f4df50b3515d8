"""The tree of queries: which query came from which, and what each found."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from markupsafe import Markup

from core.analysis.query_tree import Branch, tree
from core.domain.rank_changes import ranks
from core.domain.types import RouteResult, Run
from ui.app.markup import fragment
from ui.app.names import title_of

TOP = 3  # passages that a text is shown with


def trees(run: Run, depth: int) -> list[tuple[RouteResult, Branch]]:
    """Return the routes that have a tree of queries."""
    return [(one, found) for one in run.results if (found := tree(run, one, depth))]


def drawn(run: Run, grown: list[tuple[RouteResult, Branch]], gold: Mapping[str, int], depth: int) -> Markup:
    """Return all trees, one below the other."""
    made = [
        (result, root, ranks(result.hits), sum(branch.found is not None for branch in root.all()))
        for result, root in grown
    ]
    return fragment("transform.trees", made, TOP, depth, partial(title_of, run), gold)
