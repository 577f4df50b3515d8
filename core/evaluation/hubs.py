"""Hubs, which are passages that a search returns for many questions, and passages that it never returns.

A sentence of each passage is asked. A hub is among the first 10 for more other passages' sentences than the
mean and two standard deviations (Radovanovic, Nanopoulos & Ivanovic 2010, "Hubs in Space", section 2.1).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.analysis.metrics import HEADLINE, by_question
from core.corpus.corpus import Corpus
from core.domain.ranked import Ranked
from core.domain.types import Ranking
from core.engine.engine import Engine
from core.evaluation.dataset import LabelledSet
from core.evaluation.gaps import EvidenceSigns, Progress, known_items
from core.evaluation.outcome import Outcome
from core.evaluation.statistics import difference_interval

DEPTH = 10  # the ranks that are counted
MOST = 2_000  # sentences that are asked
SHOWN = 20  # hubs, and passages never returned, that are listed
SEARCHES = ("words", "vectors")  # BM25 and the index of embeddings, as all routes use them


def find(
    engine: Engine,
    corpus: Corpus,
    labelled: LabelledSet | None = None,
    *,
    progress: Progress = lambda _what, _done, _of: None,
    cancel: threading.Event | None = None,
) -> dict[str, Any]:
    """Return each search's hubs, the passages it never returns, and the effect on `labelled`, as JSON values.

    The effect is that of taking the hubs, which no label chose, out of the rankings. Raises Cancelled.
    """
    asking = EvidenceSigns(engine, corpus, cancel or threading.Event())
    items = known_items(corpus, MOST)
    own = [passage.id for _, passage in items]
    rankings: dict[str, list[list[str]]] = {name: [] for name in SEARCHES}
    for done, (text, _) in enumerate(items):
        progress("ask sentences", done, len(items))
        for name, hits in _searched(asking, text).items():
            rankings[name].append([hit.passage.id for hit in hits][:DEPTH])
    asked = [one for one in labelled.questions if labelled.labelled(one.id)] if labelled is not None else []
    real: dict[str, dict[str, Ranked]] = {name: {} for name in SEARCHES}
    for done, question in enumerate(asked):
        progress("ask labelled questions", done, len(asked))
        for name, hits in _searched(asking, question.query.text).items():
            real[name][question.id] = [(hit.passage.id, hit.score) for hit in hits]
    return {
        "corpus": corpus.name,
        "sentences": len(items),
        "questions": len(asked),
        "depth": DEPTH,
        "searches": {
            name: _of_search(corpus, own, rankings[name], labelled, real[name]) for name in SEARCHES
        },
    }


def _searched(asking: EvidenceSigns, text: str) -> dict[str, Ranking]:
    do = asking.steps()
    return dict(zip(SEARCHES, (do.sparse(text), do.dense(text)), strict=True))


def _of_search(
    corpus: Corpus,
    own: Sequence[str],
    rankings: Sequence[Sequence[str]],
    labelled: LabelledSet | None,
    real: dict[str, Ranked],
) -> dict[str, Any]:
    """Return what one search does: `rankings` of the sentences of the passages `own`, `real` of questions."""
    counts = Counter(id for source, ids in zip(own, rankings, strict=True) for id in ids if id != source)
    degrees = np.zeros(corpus.size)
    degrees[: len(counts)] = list(counts.values())
    limit = float(degrees.mean() + 2 * degrees.std())
    hubs = [id for id, count in counts.most_common() if count > limit]
    returned = {id for ids in rankings for id in ids}
    returned.update(id for ranking in real.values() for id, _ in ranking[:DEPTH])
    never = [id for id in own if id not in returned]
    displaced = _displaced(labelled, real, set(hubs)) if labelled is not None else []
    blamed = Counter(hub for one in displaced for hub in one["by"])
    titles = {id: one.title for id, one in corpus.by_ids([*hubs[:SHOWN], *never[:SHOWN]]).items()}
    return {
        "mean": float(degrees.mean()),
        "limit": limit,
        "hub_count": len(hubs),
        "hubs": [
            {"passage": id, "title": titles[id], "returned": counts[id], "displaces": blamed[id]}
            for id in hubs[:SHOWN]
        ],
        "never_count": len(never),
        "never": [{"passage": id, "title": titles[id]} for id in never[:SHOWN]],
        "displaced": displaced,
        "effect": _effect(labelled, real, set(hubs)) if labelled is not None and real else None,
    }


def _displaced(labelled: LabelledSet, real: dict[str, Ranked], hubs: set[str]) -> list[dict[str, Any]]:
    """Return the relevant passages that would be among the first DEPTH without the hubs above them."""
    found = []
    for question, ranking in real.items():
        relevant = set(labelled.relevant(question))
        above: list[str] = []
        for rank, (id, _) in enumerate(ranking, 1):
            if id in relevant and rank > DEPTH >= rank - len(above):
                without = rank - len(above)
                found.append(
                    {"question": question, "passage": id, "rank": rank, "without": without, "by": [*above]}
                )
            if id in hubs and id not in relevant:
                above.append(id)
    return found


def _effect(labelled: LabelledSet, real: dict[str, Ranked], hubs: set[str]) -> dict[str, Any]:
    """Return the mean nDCG@10 with and without the hubs, and the difference with its 95% interval."""

    def values(without: set[str]) -> list[float]:
        rankings = {
            id: labelled.ranking(id, Outcome("ok", 0.0, [hit for hit in hits if hit[0] not in without]))
            for id, hits in real.items()
        }
        judged = {id: labelled.judged(id) for id in real}
        found = by_question(judged, rankings, relevant_from=labelled.relevant_from, metrics=(HEADLINE,))
        return [found[id][HEADLINE] for id in real]

    before, after = values(set()), values(hubs)
    differences = np.subtract(after, before).tolist()
    return {
        "metric": HEADLINE,
        "with_hubs": float(np.mean(before)),
        "without_hubs": float(np.mean(after)),
        "difference": float(np.mean(differences)),
        "ci95": difference_interval(differences),
    }
