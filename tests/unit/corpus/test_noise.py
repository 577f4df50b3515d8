"""A corpus with unrelated passages: its own stay as they are, and nothing known is embedded again."""

import json
from itertools import islice

import numpy as np
import pytest

from core.backends.embedder import NoVectors
from core.corpus import catalogue, index, noise
from core.corpus.chunk import Chunking
from core.domain.errors import BadInput
from core.domain.text import searchable
from core.domain.types import Query
from core.engine.engine import Engine
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.matrix import measure, planned


def test_own_passages_stay_and_only_generated_ones_are_embedded(tmp_path, settings, model, monkeypatch):
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir()
    for n in range(3):
        (own / f"{n}.md").write_text(f"# Part {n}\n\n" + f"The depot number {n} opens at six. " * 6)
    lines = [
        {"_id": f"d{n}", "title": f"t{n}", "text": f"Birds of kind {n} fly far. Fish swim."} for n in range(5)
    ]
    (other / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)))
    base = index.build(None, own, settings=settings, chunking=Chunking(80, 10))
    others = [index.build(None, other, settings=settings)]
    assert base.size > 5
    before, costs = len(model.embedded), []
    how = {"settings": settings, "embedder": model, "begin": costs.append}
    inside, made = noise.build(base, others, 2, **how)
    lacking = 2 * base.size - others[0].size
    assert (made.size, noise.lacking(base, others, 2), costs[0].texts) == (3 * base.size, lacking, lacking)
    for row, passage, _ in base.everything():
        assert made.by_ids([passage.id]) == {passage.id: passage}
        assert np.array_equal(made.vectors([made.row(passage.id)]), base.vectors([row]))
    texts = list(islice(noise.generated(others), lacking))
    assert all(text.count("Birds of kind") == noise.SENTENCES for text in texts), (
        "short sentences are left out"
    )
    embedded = set(model.embedded[before:])
    known = {searchable(one.title, one.text) for of in (base, *others) for _, one, _ in of.everything()}
    assert set(texts) <= embedded
    assert not known & embedded
    before = len(model.embedded)
    assert noise.build(base, others, 2, **how)[1].fingerprint == made.fingerprint
    assert (len(model.embedded), len(costs)) == (before, 1), "what is built is reused without a question"
    assert index.open_corpus(made.name, settings=inside).size == made.size
    with pytest.raises(BadInput):
        noise.build(base, [base], 2, **how)
    by_name = lambda name, *, settings: NoVectors() if name == NoVectors.name else model  # noqa: E731
    for module in ("core.backends.embedder", "core.corpus.index"):
        monkeypatch.setattr(f"{module}.load_embedder", by_name)
    engine, relevant = Engine(settings), next(base.everything())[1].id
    labelled = LabelledSet("set", (Question("q", Query("depot number 0")),), {"q": {relevant: 1}})
    cells = planned(engine, ["one_shot"], ["bm25", "grep"], scripted=True)
    rows = measure(engine, labelled, base.name, cells, noise=[2], others=[others[0].name])
    assert [(row["noise"], row["generated"], row["failed"]) for row in rows] == [(0, 0, 0)] * 2 + [
        (2, lacking, 0)
    ] * 2
    assert all(row["recall"]["mean"] == 1 for row in rows), "nothing else has these words"
    assert set(model.embedded[before:]) <= {"warm up"}, "neither of the two needs a vector"
    cells = planned(engine, ["one_shot"], ["bm25", "dense"], scripted=True)
    measure(engine, labelled, base.name, cells, noise=[3], others=[others[0].name], begin=costs.append)
    assert (len(costs), len(model.embedded) > before) == (2, True)
    assert len(catalogue.names(inside)) == 3
    index.remove(others[0].name, settings=settings)
    assert not catalogue.names(inside), "text of a deleted corpus is in none"
