"""Which text came of which, and what each brought: a tree for every route that searched with several."""

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
    """The routes with a tree."""
    return [(one, found) for one in run.results if (found := tree(run, one, depth))]


def drawn(run: Run, grown: list[tuple[RouteResult, Branch]], gold: Mapping[str, int], depth: int) -> Markup:
    """All trees, one below the other."""
    lead = tag(
        "div",
        f"Each text with the first {TOP} passages of its own searches. A filled dot: the passage is in the"
        f" route's final top {depth}, at the rank behind it; an empty one: it is not.",
        css="dim",
    )
    trees = [_tree(run, result, root, gold, depth) for result, root in grown]
    return tag("div", lead, tag("div", *trees, css="rs-transform-trees"), css="rs")


def _tree(run: Run, result: RouteResult, root: Branch, gold: Mapping[str, int], depth: int) -> Markup:
    final = ranks(result.hits)
    count = sum(branch.found is not None for branch in root.all())
    head = tag("h4", result.title, tag("span", f"  searched with {count} texts", css="dim"))

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
        return f"{branch.step or 'the question'} · not searched with by itself"
    return branch.step or "the question"


def _extra(branch: Branch) -> Markup:
    said = []
    if branch.answer:
        said.append(tag("div", "answer copied from these: ", tag("b", cut(branch.answer, 160)), dir="auto"))
    if branch.note:
        said.append(tag("div", cut(branch.note, 240), css="dim", dir="auto"))
    return join(said)


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
        kept = rank is not None and rank <= depth
        where = "gone" if rank is None else f"rank {rank}"
        rows.append(
            tag(
                "div",
                tag("span", "● " if kept else "○ ", css="up" if kept else "dim"),
                passage(run, id, gold),
                tag("span", f" {where}", css="dim nowrap"),
                dir="auto",
            )
        )
    kept_of = sum(final.get(id, depth + 1) <= depth for id in branch.found)
    told = f"{kept_of} of its first {len(branch.found)} in the final top {depth}"
    return tag("div", *rows, tag("div", told, css="dim"))
