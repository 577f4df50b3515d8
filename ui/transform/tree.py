"""The tree of queries: which query came from which, and what each found."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from core.analysis.query_tree import Branch, tree
from core.domain.rank_changes import ranks
from core.domain.types import RouteResult, Run
from ui.app.markup import EMPTY, cut, join, tag
from ui.components.rewrites import passage

TOP = 3  # passages that a text is shown with


def trees(run: Run, depth: int) -> list[tuple[RouteResult, Branch]]:
    """Return the routes that have a tree of queries."""
    return [(one, found) for one in run.results if (found := tree(run, one, depth))]


def drawn(run: Run, grown: list[tuple[RouteResult, Branch]], gold: Mapping[str, int], depth: int) -> Markup:
    """Return all trees, one below the other."""
    lead = tag(
        "div",
        f"Each query with the first {TOP} passages it found. A filled dot means that the passage is in the"
        f" route's final top {depth}, an empty dot that it is not. The final rank follows the title.",
        css="dim",
    )
    trees = [_tree(run, result, root, gold, depth) for result, root in grown]
    return tag("div", lead, tag("div", *trees, css="rs-transform-trees"), css="rs")


def _tree(run: Run, result: RouteResult, root: Branch, gold: Mapping[str, int], depth: int) -> Markup:
    final = ranks(result.hits)
    count = sum(branch.found is not None for branch in root.all())
    head = tag("h4", result.title, tag("span", f"  {count} queries", css="dim"))

    def draw(branch: Branch) -> Markup:
        below = [draw(one) for one in branch.branches]
        return tag(
            "li",
            tag("div", branch.text, css="said", dir="auto"),
            tag("div", _facts(branch), css="dim"),
            _brought(run, branch, final, gold, depth),
            _extra(branch),
            tag("ul", *below) if below else EMPTY,
        )

    return tag("div", head, tag("ul", draw(root), css="rs-transform-tree"), css="rs-block")


def _facts(branch: Branch) -> str:
    if branch.found is None:
        return f"{branch.step or 'the question'} · not searched directly"
    return branch.step or "the question"


def _extra(branch: Branch) -> Markup:
    lines = []
    if branch.answer:
        lines.append(
            tag("div", "answer copied from these passages: ", tag("b", cut(branch.answer, 160)), dir="auto")
        )
    if branch.note:
        lines.append(tag("div", cut(branch.note, 240), css="dim", dir="auto"))
    return join(lines)


def _brought(
    run: Run, branch: Branch, final: Mapping[str, int], gold: Mapping[str, int], depth: int
) -> Markup:
    if branch.found is None:
        return EMPTY
    if not branch.found:
        return tag("div", "found nothing", css="dim")
    rows = []
    for id in branch.found[:TOP]:
        rank = final.get(id)
        in_top = rank is not None and rank <= depth
        where = "not ranked" if rank is None else f"rank {rank}"
        rows.append(
            tag(
                "div",
                tag("span", "● " if in_top else "○ ", css="up" if in_top else "dim"),
                passage(run, id, gold),
                tag("span", f" {where}", css="dim nowrap"),
                dir="auto",
            )
        )
    in_final = sum(final.get(id, depth + 1) <= depth for id in branch.found)
    summary = f"{in_final} of its first {len(branch.found)} in the final top {depth}"
    return tag("div", *rows, tag("div", summary, css="dim"))
