"""The texts that a route searched with instead of the question, and the hits of each. Knows no route."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from core.analysis.run_view import top, worked
from core.domain.outputs import Decision, Embedding, Rewrite, SampleSearches, Scored, Search, ShortAnswer
from core.domain.rank_changes import ranks
from core.domain.relevance import relevant
from core.domain.types import RouteResult, Run, Span
from core.steps.transform import references

Key = str | tuple[str, ...]  # a text, or the step and the texts of a vector of several


@dataclass(frozen=True, slots=True)
class RecordedSearch:
    """One list of search hits. `text` is None if the search used a vector of more than one text: `step`
    computed it, from `mean` and perhaps more. Without a step the route computed the vector itself.
    """

    text: str | None
    span: Span
    hits: Scored
    mean: tuple[str, ...] = ()
    step: str = ""

    @property
    def key(self) -> Key:
        """Return the key that identifies searches with one text or vector."""
        return self.text or (self.step, *self.mean)


@dataclass(frozen=True, slots=True)
class TextFinds:
    """The passages that one text of a route found, by id, in the order of their best rank. `text` is "" for a
    search with a vector that `step`, or without a step the route itself, computed from `mean`. `found`: in
    the top of a search with it. `only`: those of `found` that no other text of the route found. `kept`: those
    of `only` in the top of the route's final ranking. `elsewhere`: only other routes of the run searched with
    it, in a way that this route searches too.
    """

    text: str
    found: tuple[str, ...]
    only: tuple[str, ...]
    kept: tuple[str, ...]
    mean: tuple[str, ...] = ()
    step: str = ""
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The effect of rewriting on a run, routes by title. `finds`: (text, passage) for labelled passages that
    one rewrite of the run found and no other query did; a vector of several texts is named by its step and
    the first of them. `losses`: (route, passage) for passages that the question finds by the same search and
    the route does not find.
    """

    changed: tuple[str, ...]
    same: tuple[str, ...]
    silent: tuple[str, ...]  # made no search whose text is recorded
    finds: tuple[tuple[str, str], ...]
    losses: tuple[tuple[str, str], ...]


def searches(result: RouteResult) -> list[RecordedSearch]:
    """Return the route's searches in order; one with several texts at once is one for each."""
    found: list[RecordedSearch] = []
    known = asked(result)
    for span in top(result):
        one = known.get(span.id)
        if isinstance(span.output, SampleSearches):
            lists = zip(span.output.texts, span.output.lists, strict=False)
            found += [RecordedSearch(text, span, hits) for text, hits in lists]
        elif one is not None and span.hits is not None:
            maker = one.maker.name if one.maker is not None else ""
            mean = () if one.text else one.every
            found.append(RecordedSearch(one.text or None, span, span.hits, mean, "" if one.text else maker))
    return found


def finds(run: Run, result: RouteResult, depth: int) -> list[TextFinds]:
    """Return the hits of each text of the route in its top `depth`, in the order of searching. Where the
    route did not search with the question, what other routes found with it in the same way goes first.
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
            rows.append(TextFinds(key, ids, only, kept, elsewhere=elsewhere and key == question))
        else:
            rows.append(TextFinds("", ids, only, kept, key[1:], key[0]))
    return rows


def found_in(made: Sequence[RecordedSearch], depth: int) -> dict[Key, tuple[str, ...]]:
    """Return the hits of searches in their top `depth`, by their keys."""
    places: dict[Key, dict[str, int]] = {}
    for search in made:
        best = places.setdefault(search.key, {})
        for rank, id in enumerate(_top(search, depth), 1):
            best[id] = min(rank, best.get(id, rank))
    return {key: tuple(sorted(best, key=best.__getitem__)) for key, best in places.items()}


def _plain(run: Run, own: Sequence[RecordedSearch]) -> list[RecordedSearch]:
    """Return the searches of all routes that ended with the question as it is, made by the same steps as
    those of `own` with another text.
    """
    names = {one.span.name for one in own if one.text != run.query.text}
    return [
        one
        for other in worked(run)
        for one in searches(other)
        if one.text == run.query.text and one.span.name in names
    ]


def rewrites(result: RouteResult) -> list[tuple[Span, Rewrite]]:
    """Return the steps that wrote texts to search with, in order."""
    return [(span, span.output) for span in top(result) if isinstance(span.output, Rewrite)]


def imagined(result: RouteResult) -> list[str]:
    """Return the passages that the route had written to search with."""
    passages = [one for _, one in rewrites(result) if one.role == "passages"]
    return list(dict.fromkeys(text for one in passages for text in one.texts if text != one.before))


def written(run: Run, result: RouteResult) -> list[str]:
    """Return every text other than the question that the route searched with or had written for it, in
    order.
    """
    question = run.query.text
    wrote = [text for _, one in rewrites(result) for text in one.texts]
    with_ = [text for one in searches(result) for text in (one.text, *one.mean) if text]
    return [text for text in dict.fromkeys((*wrote, *with_)) if text.strip() and text != question]


def changed(run: Run, result: RouteResult) -> bool:
    """Return whether the route searched with anything but the question."""
    return any(one.text != run.query.text for one in searches(result))


def standing_for(result: RouteResult, id: str) -> list[str]:
    """Return the texts an index holds instead of a passage and that found it."""
    keyed = (span.output.keys.get(id) for span in result.spans if isinstance(span.output, Search))
    return [key for key in keyed if key]


def outcome(run: Run, gold: Mapping[str, int], depth: int) -> SearchOutcome:
    """Return the effect of rewriting on the run, judged by the top `depth` of every search."""
    routes = worked(run)
    anew = [one for one in routes if changed(run, one)]
    silent = [one for one in routes if not searches(one)]
    same = [one for one in routes if one not in anew and one not in silent]
    wanted = relevant(gold)
    return SearchOutcome(
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
            by_text.setdefault(one.key, set()).update(_top(one, depth))
    for id in wanted:
        having = [text for text, ids in by_text.items() if id in ids]
        if len(having) == 1 and having[0] != run.query.text:
            yield having[0] if isinstance(having[0], str) else ": ".join(having[0][:2]), id


def _lost(run: Run, result: RouteResult, wanted: Sequence[str], depth: int) -> list[str]:
    own = searches(result)
    has = {id for one in own for id in _top(one, depth)}
    plain = {id for one in _plain(run, own) for id in _top(one, depth)}
    return [id for id in wanted if id in plain and id not in has]


def _top(one: RecordedSearch, depth: int) -> list[str]:
    return [id for id, _ in one.hits[:depth]]


VECTORS = ("vector", "asked")  # arguments that take a vector, or one for each token
MAX_QUOTED_CHARS = 70  # characters of a text that a sentence quotes


@dataclass(frozen=True, slots=True)
class SearchInput:
    """`texts`, or the vector that `maker` made of them; no text: the route made the vector itself."""

    texts: tuple[str, ...] = ()
    maker: Span | None = None

    @property
    def text(self) -> str | None:
        """The text, where it was one text and nothing else."""
        made = self._made
        return made.single if made is not None else self.texts[0] if len(self.texts) == 1 else None

    @property
    def every(self) -> tuple[str, ...]:
        """All texts that are in it, the question too where that was averaged in."""
        made = self._made
        own = (made.question,) if made is not None and made.question is not None else ()
        return tuple(dict.fromkeys((*self.texts, *own)))

    @property
    def words(self) -> str:
        """The same as a sentence says it."""
        made = self._made
        if not self.texts:
            return "a vector made by the route's own code"
        several = len(self.texts) > 1 or (made is not None and made.question is not None)
        question = " and the question" if made is not None and made.question is not None else ""
        turns = " and recalled turns" if made is not None and made.recalled else ""
        if made is not None and made.feedback:
            turns = f" moved towards the first {len(made.feedback)} passages"
        if several and made is not None:
            return f"the mean of {len(self.texts)} text{'s' * (len(self.texts) > 1)}{question}{turns}"
        if several:
            return f"{len(self.texts)} texts"
        line = " ".join(self.texts[0].split())
        if len(line) > MAX_QUOTED_CHARS:
            line = f"{line[: MAX_QUOTED_CHARS - 1].rstrip()}…"
        return f"“{line}”{turns}"

    @property
    def _made(self) -> Embedding | None:
        output = self.maker.output if self.maker is not None else None
        return output if isinstance(output, Embedding) else None


def asked(result: RouteResult) -> dict[int, SearchInput]:
    """Return the text of each search, by span."""
    known = {span.id: span for span in result.spans}
    found = {}
    for span in result.spans:
        if not isinstance(span.output, Search | SampleSearches):
            continue
        if span.output.texts:
            found[span.id] = SearchInput(span.output.texts)
        elif link := next((link for link in span.links if link.arg in VECTORS), None):
            maker = known.get(link.span) if link.span is not None else None
            made = maker.output if maker is not None else None
            found[span.id] = SearchInput(made.texts, maker) if isinstance(made, Embedding) else SearchInput()
    return found


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
