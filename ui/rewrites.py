"""What each route searched with in place of the question: word diffs, variants, imagined passages."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from markupsafe import Markup

from core.charts.look import milliseconds
from core.reading import Rewriting, asked_again, found_by_text, reuse, rewritings, worked
from core.types import RouteResult, Run
from ui.grid import marks
from ui.markup import EMPTY, cut, join, tag

_WORD = re.compile(r"\w+|[^\w\s]|\s+")
PROSE = 160  # characters from which a written text is shown as a passage, not as a query


def texts(run: Run, depth: int) -> Markup:
    """Every text-writing step of every route; says so if there is none."""
    blocks = [_block(run, r, rewriting, depth) for r in run.results for rewriting in rewritings(r)]
    if not blocks:
        return tag("div", "Every route of this run searched with the question as it is.", css="rs dim")
    return tag("div", *blocks, css="rs")


def _block(run: Run, result: RouteResult, rewriting: Rewriting, depth: int) -> Markup:
    span = rewriting.span
    facts = [milliseconds(span.ms), *([] if span.cached is None else [span.cached])]
    if span.shared_with:
        facts.append(f"shared with {span.shared_with.split('#', 1)[0]}")
    facts += [mark for mark in marks(reuse(run, result)) if not mark.endswith("other routes")]
    head = tag("h4", result.title, tag("span", f"  {span.name} · ", " · ".join(facts), css="dim"))
    if rewriting.single:
        body = word_diff(rewriting.before, rewriting.after[0])
        body = tag("div", body if rewriting.changed else f"{rewriting.before} (unchanged)", dir="auto")
    else:
        body = join([_text(result, text, depth) for text in rewriting.after])
    return tag("div", head, body, _notes(result, rewriting), css="rs-block")


def _text(result: RouteResult, text: str, depth: int) -> Markup:
    """One of several texts; a query also tells how many passages only it brought into a top."""
    if len(text) >= PROSE:
        return tag("div", text, css="rs-quote", dir="auto")
    found = found_by_text(result, depth)
    if text not in found:
        return tag("div", text, css="rs-quote", dir="auto")
    others: set[str] = set().union(*(ids for other, ids in found.items() if other != text))
    only = len(found[text] - others)
    told = tag(
        "span", f"  {only} found only by this" if only else "  nothing the others did not find", css="dim"
    )
    return tag("div", text, told, css="rs-quote", dir="auto")


def _notes(result: RouteResult, rewriting: Rewriting) -> Markup:
    said = [str(rewriting.span.inputs["note"])] if rewriting.span.inputs.get("note") else []
    first = asked_again(result, rewriting.span)
    if first is not None:
        said.append(f"The model was asked twice; its first reply could not be used: “{cut(first, 200)}”")
    return join([tag("div", note, css="dim") for note in said])


def word_diff(before: str, after: str) -> Markup:
    """What went from `before` struck out, what is new in `after` marked; changes with but a space between
    them are one.
    """
    old, new = _WORD.findall(before), _WORD.findall(after)
    parts: list[Markup] = []
    gone = come = ""
    for change, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left, right = "".join(old[a:b]), "".join(new[c:d])
        if change == "equal" and (right.strip() or not (gone or come)):
            parts += [_change(gone, come), tag("span", right)]
            gone = come = ""
        else:
            gone, come = gone + left, come + right
    return join([*parts, _change(gone, come)])


def _change(gone: str, come: str) -> Markup:
    space = " " if gone.strip() and come.strip() else ""
    return join(
        [
            tag("del", gone.strip()) if gone.strip() else EMPTY,
            space or come[: len(come) - len(come.lstrip())],
            tag("ins", come.strip()) if come.strip() else EMPTY,
            (come or gone)[len((come or gone).rstrip()) :],
        ]
    )


def searched_anew(run: Run) -> int:
    """Routes that searched with something else than the question."""
    return sum(any(one.changed for one in rewritings(result)) for result in worked(run))
