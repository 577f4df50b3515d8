"""A warm hybrid question, and an evaluation of the hybrid route, next to a script of bare libraries.

The script (bm25s, FAISS, onnxruntime, tokenizers, ir_measures) finds the same passages; it records no step,
checks nothing and stores nothing. Both are measured by the processor's time, in turn.
"""

from __future__ import annotations

import json
import logging
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.engine import CORPUS
from bench.results import spread
from core import api
from core.backends.minilm import FOLDER, onnx_file
from core.backends.onnx_session import open_session
from core.backends.onnx_text import CORES
from core.domain import settings as settings_module
from core.domain.types import Passage, Query
from core.engine.engine import Engine
from core.engine.request import Request
from core.evaluation import sets

DEPTH, KEPT, CONSTANT = 100, 10, 60  # hits of each list, hits returned, RRF's constant
QUESTIONS, TIMES = 40, 5
MEASURES = ("nDCG@10", "R@5", "R@10", "RR@10", "AP")


class Script:
    """BM25 and MiniLM vectors of passages, fused by reciprocal rank."""

    def __init__(self, passages: Sequence[Passage], vectors: Any) -> None:
        import bm25s
        import faiss
        import Stemmer
        from tokenizers import Tokenizer

        self._bm25s, self._stemmer = bm25s, Stemmer.Stemmer("english")
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        self._words = bm25s.BM25()
        self._words.index(self._cut([f"{one.title} {one.text}" for one in passages]), show_progress=False)
        self._vectors = faiss.IndexFlatIP(vectors.shape[1])
        self._vectors.add(vectors)
        self._model = open_session(onnx_file(settings_module.load().models_dir), min(4, CORES))
        self._tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._passages = passages

    def _cut(self, texts: list[str]) -> Any:
        return self._bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)

    def ask(self, text: str, most: int = KEPT) -> list[Passage]:
        """Return the passages of a question, best first."""
        ids = np.array([self._tokenizer.encode(text).ids])
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        wanted = {one.name for one in self._model.get_inputs()}
        (vector, *_) = self._model.run(None, {name: given[name] for name in wanted})
        _, near = self._vectors.search(vector, DEPTH)
        words, _ = self._words.retrieve(self._cut([text]), k=DEPTH, show_progress=False)
        scores: dict[int, float] = defaultdict(float)
        for found in (near[0], words[0]):
            for rank, at in enumerate(found.tolist(), 1):
                scores[at] += 1 / (CONSTANT + rank)
        return [self._passages[at] for at in sorted(scores, key=lambda at: -scores[at])[:most]]


def _ms(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def measure() -> dict[str, Any]:
    """Measure both. A question is the median of its turns; an evaluation is that of all labelled ones."""
    engine = Engine(settings_module.load())
    corpus = engine.corpus(CORPUS)
    everything = range(corpus.size)
    script = Script(corpus.passages(everything), corpus.vectors(everything))
    labelled, _ = sets.tie(sets.read(CORPUS, None, split="all"), corpus)

    def ours(query: Query) -> Any:
        return engine.ask(Request(query, CORPUS, ("hybrid_rrf",), stored=False, models=False))

    found: dict[str, list[float]] = {"script_ms": [], "ours_ms": []}
    for question in labelled.questions[:QUESTIONS]:
        script.ask(question.query.text)
        ours(question.query)
        turns = [
            (_ms(lambda q=question: script.ask(q.query.text)), _ms(lambda q=question: ours(q.query)))
            for _ in range(TIMES)
        ]
        for name, values in zip(found, zip(*turns, strict=True), strict=True):
            found[name].append(statistics.median(values))

    def scripted() -> None:
        import ir_measures

        run = {
            question.id: {
                one.id: -float(rank) for rank, one in enumerate(script.ask(question.query.text, DEPTH))
            }
            for question in labelled.questions
        }
        grades = {id: dict(labelled.qrels[id]) for id in run if id in labelled.qrels}
        for one in map(ir_measures.parse_measure, MEASURES):
            json.dumps([metric.value for metric in ir_measures.iter_calc([one], grades, run)])

    def evaluated() -> None:
        api.evaluate(CORPUS, ["hybrid_rrf"], split="all", progress=False)

    evaluations = [(_ms(scripted), _ms(evaluated)) for _ in range(TIMES + 1)][1:]
    whole = {"script_evaluation_ms": [one for one, _ in evaluations]}
    whole["our_evaluation_ms"] = [one for _, one in evaluations]
    middle = {name: statistics.median(values) for name, values in (found | whole).items()}
    return {name: spread(values) for name, values in (found | whole).items()} | {
        "questions": len(labelled.questions),
        "ratios": {
            "a hybrid question / script": middle["ours_ms"] / middle["script_ms"],
            "an evaluation / script": middle["our_evaluation_ms"] / middle["script_evaluation_ms"],
        },
    }
