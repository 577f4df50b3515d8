"""What a route searched with in place of the question, and what each text found. Knows no route.

A stored run may come from anywhere: what is not as a step would have written it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.moves import ranks
from core.reading import rewritings, top, worked
from core.relevance import relevant
from core.types import RouteResult, Run, Span

Key = str | tuple[str, ...]  # a text, or the step and the texts of a vector of several
ALONE = {"text", "note", "instructions", "embedded"}  # inputs of a step that embeds a text by itself
PROSE = 160  # characters from which one of several written texts is a passage, not a query


@dataclass(frozen=True, slots=True)
class Search:
    """One list that was searched for; `text` is None where a vector of more than one text was searched with:
    `step` made it, of `mean` and perhaps of what no span tells.
    """

    text: str | None
    span: Span
    mean: tuple[str, ...] = ()
    step: str = ""

    @property
    def key(self) -> Key:
        """What tells searches with one text or vector from those with another."""
        return self.text or (self.step, *self.mean)


@dataclass(frozen=True, slots=True)
class Found:
    """What one text of a route found, passages by id in the order of their best rank.

    `text` is "" for a search with a vector that `step` made of `mean`. `found`: in the top of a
    search with it. `only`: of these what no other text of the route found. `kept`: of `only` what is in the
    top of the route's final ranking. `elsewhere`: not this route, but others of the run searched with it, in
    a way that this one searches too.
    """

    text: str
    found: tuple[str, ...]
    only: tuple[str, ...]
    kept: tuple[str, ...]
    mean: tuple[str, ...] = ()
    step: str = ""
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What rewriting did to a run, routes by title.

    `finds`: (text, passage) for labelled passages that one written text of the run found and no other text;
    a vector of several is told by its step and the first of them.
    `losses`: (route, passage) for those that the question finds by the same search, and the route by none.
    """

    changed: tuple[str, ...]
    same: tuple[str, ...]
    silent: tuple[str, ...]  # made no search that is told by its text
    finds: tuple[tuple[str, str], ...]
    losses: tuple[tuple[str, str], ...]


def searches(result: RouteResult) -> list[Search]:
    """The route's searches in order. A vector belongs to what was embedded last, one text or several; lists
    below a step that searched with several texts belong to these in their order.
    """
    found: list[Search] = []
    embedded: Span | None = None
    for span in top(result):
        several = texts_in(span.inputs.get("texts"))
        if span.kind == "EMBEDDING":
            embedded = span
        elif span.kind in ("RETRIEVER", "TOOL") and span.hits is not None:
            if text := _text(span, "text", "words", "question"):
                found.append(Search(text, span))
            elif "vector" in span.inputs and embedded is not None:
                found += _with_vector(span, embedded)
        elif span.kind == "RETRIEVER" and several:
            lists = [one for one in result.spans if one.parent == span.id and one.hits is not None]
            if len(lists) == len(several):
                found += [Search(text, one) for text, one in zip(several, lists, strict=True)]
    return found


def _with_vector(span: Span, embedded: Span) -> list[Search]:
    if text := _text(embedded, "text"):
        if ALONE.issuperset(embedded.inputs):
            return [Search(text, span)]
        return [Search(None, span, (text,), embedded.name)]
    asked = _text(embedded, "question")
    texts = dict.fromkeys((*texts_in(embedded.inputs.get("texts")), *((asked,) if asked else ())))
    return [Search(None, span, tuple(texts), embedded.name)] if texts else []


def texts_in(value: Any) -> tuple[str, ...]:
    """The texts of a list of texts; none of what is no such list."""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return tuple(item for item in value if item)
    return ()


def finds(run: Run, result: RouteResult, depth: int) -> list[Found]:
    """What each text of the route found in its top `depth`, in the order of searching. Where the route did
    not search with the question, what other routes found with it in the same way goes first.
    """
    question, own = run.query.text, searches(result)
    by_text: dict[Key, tuple[str, ...]] = found_in(own, depth)
    elsewhere = bool(own) and question not in by_text
    if elsewhere:
        by_text = {**found_in(_plain(run, own), depth), **by_text}
    final = {id for id, rank in ranks(result.hits).items() if rank <= depth}
    rows = []
    for key, ids in by_text.items():
        others = {id for other, theirs in by_text.items() if other != key for id in theirs}
        only = tuple(id for id in ids if id not in others)
        kept = tuple(id for id in only if id in final)
        if isinstance(key, str):
            rows.append(Found(key, ids, only, kept, elsewhere=elsewhere and key == question))
        else:
            rows.append(Found("", ids, only, kept, key[1:], key[0]))
    return rows


def found_in(made: Sequence[Search], depth: int) -> dict[Key, tuple[str, ...]]:
    """What searches found in their top `depth`, by their keys."""
    places: dict[Key, dict[str, int]] = {}
    for search in made:
        best = places.setdefault(search.key, {})
        for rank, id in enumerate(_top(search.span, depth), 1):
            best[id] = min(rank, best.get(id, rank))
    return {key: tuple(sorted(best, key=best.__getitem__)) for key, best in places.items()}


def _plain(run: Run, own: Sequence[Search]) -> list[Search]:
    """The searches of all routes that ended with the question as it is, made by the same steps as those of
    `own` with another text.
    """
    names = {one.span.name for one in own if one.text != run.query.text}
    return [
        one
        for other in worked(run)
        for one in searches(other)
        if one.text == run.query.text and one.span.name in names
    ]


def imagined(result: RouteResult) -> list[str]:
    """The passages that the route had written to search with: averaged into a vector, or long."""
    averaged = {
        text
        for span in top(result)
        if span.kind == "EMBEDDING"
        for text in texts_in(span.inputs.get("texts"))
    }
    return list(
        dict.fromkeys(
            text
            for one in rewritings(result)
            if not one.single
            for text in one.after
            if text != one.before and (text in averaged or len(text) >= PROSE)
        )
    )


def written(run: Run, result: RouteResult) -> list[str]:
    """Every text besides the question that the route searched with or had written for it, in order."""
    question = run.query.text
    wrote = [text for one in rewritings(result) for text in one.after]
    asked = [text for one in searches(result) for text in (one.text, *one.mean) if text]
    return [text for text in dict.fromkeys((*wrote, *asked)) if text.strip() and text != question]


def changed(run: Run, result: RouteResult) -> bool:
    """Whether the route searched with anything but the question."""
    return any(one.text != run.query.text for one in searches(result))


def standing_for(result: RouteResult, id: str) -> list[tuple[Span, str]]:
    """The texts an index holds in place of a passage and that found it, each with the step that searched."""
    pairs = []
    for span in result.spans:
        keys = span.inputs.get("found by")
        if isinstance(keys, Mapping) and isinstance(keys.get(id), str) and keys[id]:
            pairs.append((span, str(keys[id])))
    return pairs


def outcome(run: Run, gold: Mapping[str, int], depth: int) -> Outcome:
    """What rewriting did to the run, judged by the top `depth` of every search."""
    routes = worked(run)
    anew = [one for one in routes if changed(run, one)]
    silent = [one for one in routes if not searches(one)]
    same = [one for one in routes if one not in anew and one not in silent]
    wanted = relevant(gold)
    return Outcome(
        tuple(one.title for one in anew),
        tuple(one.title for one in same),
        tuple(one.title for one in silent),
        tuple(_single_finds(run, routes, wanted, depth)),
        tuple((one.title, id) for one in anew for id in _lost(run, one, wanted, depth)),
    )


def _single_finds(
    run: Run, routes: Sequence[RouteResult], wanted: Sequence[str], depth: int
) -> Iterator[tuple[str, str]]:
    by_text: dict[Key, set[str]] = {}
    for result in routes:
        for one in searches(result):
            by_text.setdefault(one.key, set()).update(_top(one.span, depth))
    for id in wanted:
        having = [text for text, ids in by_text.items() if id in ids]
        if len(having) == 1 and having[0] != run.query.text:
            yield having[0] if isinstance(having[0], str) else ": ".join(having[0][:2]), id


def _lost(run: Run, result: RouteResult, wanted: Sequence[str], depth: int) -> list[str]:
    own = searches(result)
    has = {id for one in own for id in _top(one.span, depth)}
    plain = {id for one in _plain(run, own) for id in _top(one.span, depth)}
    return [id for id in wanted if id in plain and id not in has]


def _top(span: Span, depth: int) -> list[str]:
    return [hit[0] for hit in (span.hits or ())[:depth]]


def _text(span: Span, *names: str) -> str | None:
    return next((value for name in names if isinstance(value := span.inputs.get(name), str) and value), None)
