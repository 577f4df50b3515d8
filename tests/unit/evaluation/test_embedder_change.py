"""Changing the embedder as a paired decision, and limits on cosines moved along."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.domain.errors import BadInput
from core.domain.types import Query
from core.evaluation.embedder_change import block, in_words, moved, variants
from core.routes.registry import ours, pick
from tests.fakes import HashEmbedder, MemoryCorpus

NAMES = ("all-MiniLM-L6-v2", "bge-m3")


class Narrow(HashEmbedder):
    """The same vectors but for one direction that all share: every cosine is nearer to 1."""

    def _squeezed(self, made: Any) -> Any:
        wide = np.concatenate([made, np.full((len(made), 1), 2.0, np.float32)], axis=1)
        return wide / np.linalg.norm(wide, axis=1, keepdims=True)

    def embed_query(self, text: str) -> Any:
        return self._squeezed(super().embed_query(text)[None, :])[0]


class Engine:
    """Two embedders over one corpus; cosines of the second are (c + 4) / 5 of the first's."""

    def __init__(self) -> None:
        texts = {f"d{n}:0-9": f"word{n} word{n + 1} word{n + 2} parcel" for n in range(30)}
        self.wide, self.narrow = MemoryCorpus(texts), MemoryCorpus(texts)
        self.narrow.matrix = Narrow()._squeezed(self.narrow.matrix)

    def corpus(self, _name: str) -> Any:
        return self.wide

    def by_embedder(self, _corpus: Any, embedder: str) -> Any:
        return self.narrow if embedder == NAMES[1] else self.wide

    def embedder_of(self, corpus: Any) -> Any:
        return Narrow() if corpus is self.narrow else HashEmbedder()


def test_each_route_that_uses_vectors_is_measured_with_each_embedder() -> None:
    chosen = [ours()["dense"], ours()["bm25"]]
    assert variants(chosen, NAMES) == ["dense@all-MiniLM-L6-v2", "dense@bge-m3", "bm25"]
    for wrong in ([], ["a"], ["a", "a"]):
        with pytest.raises(BadInput):
            variants(chosen, wrong)
    with pytest.raises(BadInput):
        variants(pick("dense@bge-m3"), NAMES)


def test_a_limit_moves_as_the_cosines_do() -> None:
    routes = pick(variants([ours()["compress"], ours()["dense"]], NAMES))
    questions = [Query(f"word{n} parcel") for n in range(20)]
    found = {one.parameter: one for one in moved(Engine(), "tiny", routes, questions)}  # type: ignore[arg-type]
    assert set(found) == {one.name for one in ours()["compress"].parameters if one.cosine}
    for one in found.values():
        assert one.route == "compress@bge-m3"
        assert one.after == pytest.approx((one.before + 4) / 5, abs=1e-3)
    assert moved(Engine(), "tiny", routes, questions[:2]) == []  # type: ignore[arg-type]


def test_pairs_are_compared_on_the_same_questions_in_one_family_for_each_metric() -> None:
    first = {f"q{n}": {"ndcg@10": n / 80} for n in range(40)}
    better = {q: {"ndcg@10": row["ndcg@10"] + 0.2} for q, row in first.items()}
    rows = {"dense@a": first, "dense@b": better, "rerank@a": first, "rerank@b": dict(first), "bm25": first}
    found = block(rows, ["ndcg@10"])
    pairs = [(one["route"], one["from"], one["to"]) for one in found]
    assert pairs == [("dense", "a", "b"), ("rerank", "a", "b")]
    assert [one["metrics"]["ndcg@10"]["delta"] for one in found] == pytest.approx([0.2, 0.0])
    assert len(in_words(found, "ndcg@10")) == 2
    assert block({"bm25": first}, ["ndcg@10"]) == []
