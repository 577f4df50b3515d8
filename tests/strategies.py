"""Hypothesis strategies: any Run that the types allow, with every field drawn."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from core.domain.filters import Filter
from core.domain.outputs import OUTPUTS
from core.domain.types import AnswerBasis, Hit, Link, Passage, Query, RouteResult, Run, Span, Tokens, Turn

texts = st.text(st.characters(exclude_categories=[]), max_size=12)  # lone surrogates and NUL too
numbers = st.floats(allow_nan=False)  # infinite ones too
wholes = st.integers(-(2**63), 2**63 - 1)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(texts, values, max_size=3)
rankings = st.none() | st.lists(st.tuples(texts, numbers), max_size=4).map(tuple)


def maybe(strategy):
    return st.none() | strategy


def built(kind, /, **given):
    """Every field of `kind` drawn, so that a field added later is tested too."""
    return st.builds(kind, **{field.name: given.get(field.name, ...) for field in fields(kind)})


def of(hint):
    """Any value of a type, such as a field of `core.domain.outputs` has."""
    origin, given = get_origin(hint), get_args(hint)
    simple = {str: texts, int: wholes, float: numbers, bool: st.booleans(), Any: values, NoneType: st.none()}
    if hint in simple:
        return simple[hint]
    if hint is Filter:  # which refuses what compares with nothing
        one = st.builds(Filter, texts, st.sampled_from(["=", "!~", "<="]), texts.map(lambda text: (text,)))
        return one | st.builds(
            Filter, texts, st.just("in"), st.lists(texts, min_size=1, max_size=2).map(tuple)
        )
    if origin is Literal:
        return st.sampled_from(given)
    if origin in (Union, UnionType):
        return st.one_of(*map(of, given))
    if origin is tuple and given[1:] == (...,):
        return st.lists(of(given[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(of, given))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(of(given[0]), of(given[1]), max_size=2)
    assert is_dataclass(hint), hint
    hints = get_type_hints(hint)
    return built(hint, **{field.name: of(hints[field.name]) for field in fields(hint)})


outputs = st.one_of(*map(of, OUTPUTS.values()))
links = of(Link)
spans = built(
    Span,
    name=texts,
    start_ms=numbers,
    ms=numbers,
    args=objects,
    output=outputs,
    hits=rankings,
    links=st.lists(links, max_size=2).map(tuple),
    set_by=of(Mapping[str, str]),
    attributes=objects,
    tokens=maybe(built(Tokens, prompt=wholes, completion=wholes, cached=wholes, reasoning=wholes)),
    cost=maybe(numbers),
    shared_with=maybe(texts),
    error=maybe(texts),
    id=wholes,
    parent=maybe(wholes),
    calls=wholes,
)
passages = built(Passage, id=texts, doc_id=texts, title=texts, text=texts, start=wholes, end=wholes)


@st.composite
def some_runs(draw):
    """Any run the types allow."""
    known = {p.id: p for p in draw(st.lists(passages, max_size=5))}
    hits = st.just(())
    if known:
        hits = st.lists(st.builds(Hit, st.sampled_from(list(known.values())), numbers), max_size=4).map(tuple)
    result = built(
        RouteResult,
        route=texts,
        title=texts,
        ms=numbers,
        start_ms=numbers,
        wall_ms=numbers,
        hits=hits,
        answer=maybe(texts),
        citations=st.lists(texts, max_size=3).map(tuple),
        spans=st.lists(spans, max_size=3).map(tuple),
        parameters=objects,
        error=maybe(texts),
        origin=maybe(links),
        basis=maybe(of(AnswerBasis)),
        answer_error=maybe(texts),
        answer_span=maybe(wholes),
    )
    query = built(Query, text=texts, history=st.lists(built(Turn, text=texts), max_size=2).map(tuple))
    run = built(
        Run,
        id=texts,
        created=texts,
        query=query,
        corpus=texts,
        fingerprint=texts,
        settings=objects,
        results=st.lists(result, max_size=3).map(tuple),
        passages=st.just(known),
        wall_ms=numbers,
    )
    return draw(run)
