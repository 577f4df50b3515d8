"""Which steps an earlier step's arguments came from: told by what was stored of both. What cannot be told is
left out: a link without a span, or no link.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from core.domain.types import Link, Scored
from core.store.upgrade.earlier import Earlier, How, ids, size_of
from core.store.upgrade.fitting import ANSWERS, STRIPS, Condition, condition_of
from core.store.upgrade.read import number, rows, table

MOST = 1000  # steps of a route: of what follows no links are told, as that takes time with the square of them
_VECTOR = re.compile(r"(\d+)(?:x\d+)? vector")
# Arguments that are what the last step of a name made.
LAST: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("answer from the whole corpus", "hits"): ("take the whole corpus",),
    ("check the answer", "hits"): ("keep the best round",),
    ("count what was found", "collected"): ("collect what is new",),
    ("do the passages answer the question", "collected"): ("collect what is new",),
    ("list the cited passages", "hits"): ("take the whole corpus",),
    ("look up words", "collected"): ("collect what is new",),
    ("mean with recalled turns", "recalled"): ("search the conversation",),
    ("put recalled turns before the question", "recalled"): ("search the conversation",),
    ("reason one sentence", "collected"): ("collect what is new",),
}
# Arguments that are the collection, where it fits: other lists may have the same passages.
COLLECTED = (("append the rest", "first"), ("collect what is new", "collected"))
# Arguments that are those of the last step of a name.
SAME: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("ask in another way", "found"): ("grade the round and decide",),
    ("criticise the draft and decide", "hits"): ("write answer",),
    ("refine the answer", "hits"): ("write answer",),
    ("write the excerpts", "hits"): ("drop passages far from the question",),
}
# Arguments that are what all steps of some names made.
ALL: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("choose the best segment", "segments"): ("answer from one passage and judge it",),
    ("criticise the draft and decide", "earlier"): ("criticise the draft and decide",),
    ("keep a draft", "drafts"): ("write answer", "refine the answer"),
    ("keep a draft", "weighed"): ("criticise the draft and decide",),
    ("keep the best round", "rounds"): ("grade the round and decide",),
    ("order by the segments written", "segments"): ("answer from one passage and judge it",),
}


class Links:
    """The links of a route's steps; `final` is where its ranking is from. `elsewhere` gives the rankings that
    another route's steps made: the first versions named the lists of a step that was taken over by the steps
    of the route that did it.
    """

    def __init__(self, final: Link | None, elsewhere: Callable[[Earlier], tuple[Scored | None, ...]]) -> None:
        self._final, self._elsewhere = final, elsewhere
        self._before: list[Earlier] = []
        self._lists: list[Earlier] = []
        self._links: dict[int, tuple[Link, ...]] = {}
        self._ids: dict[int, frozenset[str]] = {}  # the passages of each list

    def add(self, span: Earlier) -> tuple[Link, ...]:
        """The links of the next step, in the order of its parameters."""
        found: list[Link] = []
        try:
            for arg, how in span.linked if len(self._before) < MOST else ():
                if arg in span.inputs:
                    found += self._argument(span, arg, how, found)
        except (TypeError, ValueError, AttributeError, LookupError):
            found = []  # a bundle may hold anything
        self._links[span.id] = tuple(found)
        self._before.append(span)
        if span.ranks:
            self._lists.append(span)
            self._ids[span.id] = frozenset(ids(span.hits))
        return self._links[span.id]

    def _argument(self, span: Earlier, arg: str, how: How, found: list[Link]) -> list[Link]:
        value = span.inputs[arg]
        if how == "list":
            size = size_of(value)
            return [] if size is None else [self._list(span, arg, size, found)]
        if how == "lists":
            return self._named(span, arg, value) if isinstance(value, list) else []
        if how == "vector":
            return self._vector(span, arg, value)
        if how == "made":
            return self._made(span, arg, value)
        made_by = self._wrote(value) if arg in ("texts", "tables") else None
        return [] if made_by is None else [Link(arg, made_by.id, len(value))]

    # Rankings.

    def _named(self, span: Earlier, arg: str, value: list[Any]) -> list[Link]:
        """Lists named by their steps; those of rounds were told by their lengths."""
        if span.name == "keep the best round":
            sizes = [size_of(one) or 0 for one in value]
            return [self._round(f"{arg}[{at}]", at, size) for at, size in enumerate(sizes)]
        known = {one.id: one for one in self._lists}
        given = [known.get(one) if isinstance(one, int) else None for one in value]
        if span.shared_with and not self._can_be(span, value, given):
            theirs = self._elsewhere(span)
            same = [next((one for one in self._lists if hits and one.hits == hits), None) for hits in theirs]
            given = same if len(same) == len(value) else [None] * len(value)
        lacking = 0
        if None in given:  # what it cannot have of the lists that are known is of those that are not
            lacking = len(set(ids(span.hits)).difference(*self._passages(given)))
            given = given if lacking else self._with_empty(value, given)
        return [
            Link(f"{arg}[{at}]", one.id, len(one.hits or ())) if one else Link(f"{arg}[{at}]", None, lacking)
            for at, one in enumerate(given)
        ]

    def _with_empty(self, value: list[Any], given: Sequence[Earlier | None]) -> list[Earlier | None]:
        """Empty lists had no name: they are the ones that no other step was given, where as many are left."""
        used = {link.span for links in self._links.values() for link in links}
        empty = [one for one in self._lists if not one.hits and one.parent is None and one.id not in used]
        left = iter(empty if len(empty) == value.count(None) else ())
        return [next(left, None) if named is None else one for named, one in zip(value, given, strict=True)]

    def _can_be(self, span: Earlier, value: list[Any], given: Sequence[Earlier | None]) -> bool:
        """Whether the lists are all there, and what the step made is of them."""
        if any(one is None and named is not None for one, named in zip(given, value, strict=True)):
            return False
        return not set(ids(span.hits)).difference(*self._passages(given))

    def _passages(self, lists: Sequence[Earlier | None]) -> list[frozenset[str]]:
        return [self._ids[one.id] for one in lists if one is not None]

    def _list(self, span: Earlier, arg: str, size: int, found: list[Link]) -> Link:
        if size == 0:
            return Link(arg, None, 0)
        if arg == "hits" and rows(span.inputs.get("lists")):  # one list, named
            named = self._named(span, "lists", span.inputs["lists"])[0]
            if named.span is not None:
                return Link(arg, named.span, size)
        if arg == "others":
            return self._after(found, size)
        for link in self._likely(span, arg):
            if link is not None and link.size == size:
                return Link(arg, link.span, size, link.start)
        if (span.name, arg) in LAST:
            one = self._last(*LAST[span.name, arg])
            here = one is not None and len(one.hits or ()) == size
            return Link(arg, one.id if one is not None and here else None, size)
        if span.name in ("copy words from the passages", "look for a short answer"):
            return self._asked(arg, size, span.inputs.get("question"))
        test = condition_of(span, arg, size, found)
        first = self._last("collect what is new") if (span.name, arg) in COLLECTED else None
        first = self._last_list() if span.name in ANSWERS else first
        if test and first is not None and test((first.hits or ())[:size]):
            return Link(arg, first.id, size)
        return (self._fitting(arg, size, span, test) if test else self._only(arg, size)) or Link(
            arg, None, size
        )

    def _likely(self, span: Earlier, arg: str) -> Iterator[Link | None]:
        """What the step around this one was given by the name, and one that works with the same list."""
        if span.parent is not None:
            yield self._link(span.parent, arg)
        if (span.name, arg) in SAME and (one := self._last(*SAME[span.name, arg])) is not None:
            yield self._link(one.id, "hits")

    def _after(self, found: list[Link], size: int) -> Link:
        """What stands behind the passages graded, in the list that they are of."""
        hits = next((link for link in found if link.arg == "hits"), None)
        source = next((one for one in self._lists if hits and one.id == hits.span), None)
        if hits is None or source is None or len(source.hits or ()) < hits.start + hits.size + size:
            return Link("others", None, size)
        return Link("others", source.id, size, hits.start + hits.size)

    def _round(self, arg: str, at: int, size: int) -> Link:
        """The list of which a round graded the first."""
        graded = [one for one in self._before if one.name == "grade the round and decide"]
        link = self._link(graded[at].id, "hits") if at < len(graded) else None
        source = next((one for one in self._lists if link and one.id == link.span), None)
        if source is not None and len(source.hits or ()) == size:
            return Link(arg, source.id, size)
        return Link(arg, None, size)

    def _fitting(self, arg: str, size: int, span: Earlier, test: Condition) -> Link | None:
        """The latest list that fits, of the very size if there is one, or its first part, or its last."""
        near = [one for one in reversed(self._lists) if one.parent in (None, span.parent)]
        for one in near:
            if len(one.hits or ()) == size and test(one.hits or ()):
                return Link(arg, one.id, size)
        for one in near:
            hits = one.hits or ()
            for start in (0, len(hits) - size):
                if len(hits) > size and test(hits[start : start + size]):
                    return Link(arg, one.id, size, start)
        return None

    def _only(self, arg: str, size: int) -> Link | None:
        """The list made last, if it has the size."""
        top = [one for one in self._lists if one.parent is None]
        return Link(arg, top[-1].id, size) if top and len(top[-1].hits or ()) == size else None

    def _last_list(self) -> Earlier | None:
        """The list that was returned, if it is made already."""
        return next((one for one in self._lists if self._final and one.id == self._final.span), None)

    def _asked(self, arg: str, size: int, text: Any) -> Link:
        """The last list that was searched with a text, or made of one that was."""
        for one in reversed(self._lists):
            of = [one.id, *(link.span for link in self._links[one.id])]
            searched = [other.inputs.get("text") for other in self._before if other.id in of]
            if isinstance(text, str) and text in searched and len(one.hits or ()) >= size:
                return Link(arg, one.id, size)
        return Link(arg, None, size)

    # What is no ranking.

    def _vector(self, span: Earlier, arg: str, value: Any) -> list[Link]:
        """The text embedded last, or, for vectors of tokens, the tokens embedded last."""
        tokens = table(value)
        match = _VECTOR.fullmatch(value) if isinstance(value, str) else None
        if not tokens and match is None:
            return []
        made = [
            one
            for one in self._before
            if one.kind == "EMBEDDING"
            and one.parent in (None, span.parent)
            and (one.name == "embed tokens") == bool(tokens)
        ]
        return [Link(arg, made[-1].id if made else None, int(match[1]) if match else 1)]

    def _made(self, span: Earlier, arg: str, value: Any) -> list[Link]:
        if (span.name, arg) in ALL:
            return self._all(span, arg, value)
        if isinstance(value, str):
            return self._described(arg, value)
        if isinstance(value, Mapping):
            one = self._gave(value)
            return [] if one is None else [Link(arg, one.id, 1)]
        if arg == "links":
            one = self._last("look up values")
            return [] if one is None else [Link(arg, one.id, len(rows(value)))]
        given = [(at, self._gave(one)) for at, one in enumerate(rows(value)) if isinstance(one, Mapping)]
        return [Link(f"{arg}[{at}]", one.id, 1) for at, one in given if one is not None]

    def _all(self, span: Earlier, arg: str, value: Any) -> list[Link]:
        made = [one for one in self._before if one.name in ALL[span.name, arg] and one.error is None]
        made = [one for one in made if one.parent == span.parent]
        count = len(value) if isinstance(value, list) else number(value)
        if isinstance(value, str):
            count = int(match[1]) if (match := re.fullmatch(r"(\d+) segments", value)) else None
        exact = arg != "segments"  # of these one that the budget was spent before stands for None
        if count is None or (len(made) != count if exact else len(made) > count):
            return []
        return [Link(f"{arg}[{at}]", one.id, 1) for at, one in enumerate(made)]

    def _described(self, arg: str, value: str) -> list[Link]:
        """Of what was stored in words: the last step that made such a thing."""
        if arg == "verdict":
            graded = [one for one in self._before if table(one.output).get("decision") == value]
            graded = [one for one in graded if "grades" in table(one.output)]
            return [Link(arg, graded[-1].id, 1)] if graded else []
        if arg == "grown":
            since = [n for n, one in enumerate(self._before) if one.name == "keep the best paths"]
            new = self._before[since[-1] + 1 if since else 0 :]
            new = [one for one in new if one.name == "write a segment for each passage" and not one.error]
            return [Link(f"grown[{at}]", one.id, len(rows(one.output))) for at, one in enumerate(new)]
        by = {"tree": ("keep the best paths",), "strips": STRIPS}
        one = self._last(*by.get(arg, ()))
        return [] if one is None else [Link(arg, one.id, 1 if arg == "tree" else len(rows(one.output)))]

    def _gave(self, value: Mapping[str, Any]) -> Earlier | None:
        """The last step whose outcome is equal to an argument; the outermost of equal ones."""
        equal = [one for one in self._before if value and one.output == value]
        outer = {one.id for one in equal}
        return next((one for one in reversed(equal) if one.parent not in outer), None)

    def _wrote(self, value: Any) -> Earlier | None:
        """The last step that wrote these texts, or chose tables of these names."""
        if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
            return None
        for one in reversed(self._before):
            if one.output == value:
                return one
            names = [
                given.get("name") if isinstance(given, Mapping) else given
                for given in rows(table(one.output).get("tables"))
            ]
            if one.name == "choose tables" and set(value) <= set(names):
                return one
        return None

    def _last(self, *names: str) -> Earlier | None:
        return next((one for one in reversed(self._before) if one.name in names and not one.error), None)

    def _link(self, id: int, arg: str) -> Link | None:
        return next((one for one in self._links.get(id, ()) if one.arg == arg), None)
