"""The texts of one route as a tree: which was written from which, and what each brought. Knows no route."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from core.analysis.run_view import top
from core.analysis.searches import found_in, searches
from core.domain.outputs import Decision, Rewrite, ShortAnswer
from core.domain.types import RouteResult, Run, Span
from core.steps.transform import references

MAX_TREE_TEXTS = 60  # texts of a tree


@dataclass(slots=True)
class Branch:
    """One text of a query tree. `step` wrote it ("" for the question). `found` holds the passages in the top
    of its searches, None if it was not searched by itself. `answer` was looked for in them.
    """

    text: str
    step: str = ""
    found: tuple[str, ...] | None = None
    answer: str | None = None
    note: str = ""
    branches: list[Branch] = field(default_factory=list)

    def all(self) -> Iterator[Branch]:
        """Return this text and all below it, from the top down."""
        yield self
        for branch in self.branches:
            yield from branch.all()


def tree(run: Run, result: RouteResult, depth: int) -> Branch | None:
    """Return the question and the texts that came of it, or None if the route did not search with several.

    A text hangs below the one it was written from. A part that points at the answer of an earlier one ("#1")
    hangs below that, a sentence or an action of a loop below the text searched before it.
    """
    made_with = searches(result)
    found = {text: ids for text, ids in found_in(made_with, depth).items() if isinstance(text, str)}
    if len(found) < 2:
        return None
    root = Branch(run.query.text)
    nodes = {root.text: root}
    at = {one.span.id: one for one in made_with}
    latest = root
    for span in top(result):
        output = span.output
        if isinstance(output, Rewrite):
            parent = nodes.get(output.before, root)
            for text in output.texts:
                if text not in nodes and text.strip():
                    earlier = [n for n in references(text, root.text) if 1 <= n <= output.texts.index(text)]
                    one = output.texts[max(earlier) - 1] if earlier and not output.single else ""
                    _hang(nodes, nodes.get(one, parent), Branch(text, span.name))
        elif isinstance(output, Decision) and output.text and output.text not in nodes:
            _hang(nodes, latest, Branch(output.text, span.name))
        elif span.id in at:
            if (with_ := at[span.id].text) is not None:
                if with_ not in nodes:
                    _hang(nodes, root, Branch(with_, "searched with"))
                latest = nodes.get(with_, latest)
        elif isinstance(output, ShortAnswer) and (about := nodes.get(output.question)):
            about.answer = about.answer or output.text or None
        note, node = span.attributes.get("note"), nodes.get(_about(span))
        if isinstance(note, str) and node is not None:
            node.note = node.note or note
    for text in found:
        if text not in nodes:
            _hang(nodes, root, Branch(text, "searched with"))
    for text, node in nodes.items():
        node.found = found.get(text)
    _prune(root)
    return root if sum(branch.found is not None for branch in root.all()) > 1 else None


def _hang(nodes: dict[str, Branch], parent: Branch, branch: Branch) -> None:
    if len(nodes) < MAX_TREE_TEXTS:
        nodes[branch.text] = branch
        parent.branches.append(branch)


def _about(span: Span) -> str:
    """Return the text that a step was about."""
    if isinstance(span.output, Rewrite):
        return span.output.before
    if isinstance(span.output, ShortAnswer):
        return span.output.question
    given = (span.args.get(name) for name in ("text", "question"))
    return next((text for text in given if isinstance(text, str)), "")


def _prune(branch: Branch) -> None:
    """Without texts that nothing was searched with, nor with what came of them, as the choice to answer."""
    for one in branch.branches:
        _prune(one)
    branch.branches = [
        one for one in branch.branches if one.found is not None or one.branches or one.note or one.answer
    ]
