"""A random order in which to label questions (see core.evaluation.labels.sampling).

Questions at which labels can move the routes' difference far come early more often, as in active statistical
inference (Zrnic & Candès 2024, arXiv 2403.03208).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from core.domain import people
from core.domain.errors import BadInput
from core.evaluation.dataset import UNDECIDED, Drawn, LabelledSet
from core.evaluation.labels import desk as desks
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.route_map import rankings
from core.evaluation.labels.sampling import chances, uniform
from core.evaluation.labels.settled import SHOWN, contest, given
from core.evaluation.statistics import Interval, centre_and_half
from core.store import Store
from core.store.labels import LabelStore

TOP = 10
DISCOUNTS = 1 / np.log2(np.arange(TOP) + 2)  # of DCG, by rank
# the least size of a question, so that means of routes that are alike on it can be weighted, too
FLOOR = 0.2
MORE = 10  # questions that people may grade next


@dataclass(frozen=True, slots=True)
class DrawnSample:
    """The questions that people labelled, as a random part of all."""

    # all questions that could have been labelled, the labelled ones first
    every: tuple[str, ...]
    labelled: tuple[str, ...]
    # of each question if it is labelled: one over its chance, scaled to a mean of about 1
    weights: Mapping[str, float]
    # whether the chances are known; if not, all are taken as equal
    drawn: bool


def draw(store: Store, name: str, routes: Collection[str] = (), seed: int = 1) -> tuple[str, ...]:
    """Draw the order in which the questions of a set are to be labelled and store it with them; return their
    ids in it. `routes`: those to be compared, by default all that filled the pool. Raises BadInput if the
    pool holds no two of them, or something is graded already.
    """
    people.require("edit")
    desk = desks.load(store, name)
    ranked = rankings(desk)
    found = {route for by in ranked.values() for route in by}
    chosen = [route for route in (routes or sorted(found)) if route in found]
    if len(chosen) < 2 or SHOWN in found:
        raise BadInput(f"{name} has a pool of {len(chosen)} routes to compare; it takes two, and no traffic")
    if any(one.source != "model" for one in desk.current):
        raise BadInput(f"passages of {name} are judged already: draw the questions of a set before that")
    fresh = []
    for question in desk.questions:
        if question.answerable is False or question.mode in UNDECIDED or question.id not in ranked:
            continue
        lists = [ranked[question.id].get(route, ()) for route in chosen]
        size = max(FLOOR, *(largest_difference(*both) for both in combinations(lists, 2)))
        fresh.append(replace(question, drawn=Drawn(size, size / uniform(str(seed), name, question.id))))

    def work(labels: LabelStore) -> None:
        for question in fresh:
            labels.keep_question(name, desks.document(question))

    store.change_labels(work)
    return desks.load(store, name).drawn


def ahead(desk: Desk, more: int = MORE) -> Interval | None:
    """Return half the width of the interval of the two leading routes' difference in nDCG@10 by the drawn
    questions graded so far, and about half that if the next `more` of them are graded, too. None if fewer
    than `more` are graded, or all.
    """
    grades, order = given(desk), desk.drawn
    places = [desk.asked[id].drawn or Drawn(0.0, 0.0) for id in order]
    sizes, keys = np.array([(place.size, place.key) for place in places]).reshape(-1, 2).T
    asked = {id for id, _ in grades}
    sampled, chance = chances(sizes, keys, np.array([id in asked for id in order], bool))
    n = int(sampled.sum())
    if not more <= n < len(order):
        return None
    found = contest(desk)
    ids = dict.fromkeys(id for id, _ in found.pairs)
    rows = dict(zip(ids, found.rows(found.grades(grades)), strict=True))
    scores = np.array([np.zeros(len(found.routes)) if (row := rows[id]) is None else row for id in order[:n]])
    weights = sampled.mean() / chance[:n]
    best, second = np.argsort(-(weights @ scores))[:2]
    values = weights * (scores[:, best] - scores[:, second])
    most = max(1.0, float((weights * sizes[:n]).max()))
    about = float(values.mean()), float(values.std(ddof=1)), -most, most
    half, later = (centre_and_half(m, *about)[1] for m in (n, min(n + more, len(order))))
    return half, later


def largest_difference(mine: Sequence[str], theirs: Sequence[str]) -> float:
    """Return the largest difference of two rankings in nDCG@10 that any labels could show, 0 to 1.

    If one passage set is relevant, it is the largest sum of differences of discounts over the best possible
    DCG of as many; labels in grades are sums of such sets, one within another.
    """
    one, other = (dict(zip(ids[:TOP], DISCOUNTS, strict=False)) for ids in (mine, theirs))
    apart = np.array([one.get(id, 0.0) - other.get(id, 0.0) for id in {**one, **other}] or [0.0])
    found = 0.0
    for signed in (apart, -apart):
        best = np.sort(signed)[::-1][:TOP].clip(min=0)
        found = max(found, float((best.cumsum() / DISCOUNTS[: len(best)].cumsum()).max()))
    return min(1.0, found)


def sample(labelled: LabelledSet, asked: Collection[str]) -> DrawnSample:
    """Return the labelled part of the questions that were `asked`. Of drawn questions only those before the
    first unlabelled one are in it.
    """
    known = [one for one in labelled.questions if one.id in asked and one.answerable is not False]
    drawn = [(one.drawn, one.id) for one in known if one.drawn]
    if not drawn:
        mine = [one.id for one in known if labelled.labelled(one.id)]
        every = (*mine, *(one.id for one in known if not labelled.touched(one.id)))
        return DrawnSample(every, tuple(mine), dict.fromkeys(every, 1.0), False)
    drawn.sort(key=lambda one: -one[0].key)
    sizes, keys = np.array([(place.size, place.key) for place, _ in drawn]).T
    sampled, chance = chances(sizes, keys, np.array([labelled.touched(id) for _, id in drawn]))
    scaled = sampled.mean() / chance
    weights = {id: float(weight) for (_, id), weight in zip(drawn, scaled, strict=True)}
    return DrawnSample(tuple(weights), tuple(weights)[: int(sampled.sum())], weights, True)
