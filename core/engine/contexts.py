"""The steps of routes and what they may touch, built from the models and corpora of the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from core.backends import calibrations, evaluators, question_classifier
from core.backends.admission import Asker
from core.backends.base import LLM, WebSearch
from core.backends.cache_file import EmbeddingCache
from core.backends.llm.model import NoLLM
from core.corpus.corpus import Corpus
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.types import AnswerStyle, Query, Remembered
from core.engine import availability
from core.engine.request import Request
from core.engine.resources import Resources
from core.steps import Context, Memo, Steps
from core.steps.trace import Trace
from core.store import Store

SENTENCES = 20_000  # whose vectors are remembered: 30 MB of 384 numbers each


def window(llm: LLM, settings: Settings) -> int:
    """Return the context length in tokens: from the setting, else from the service, else the default."""
    told = getattr(llm, "context", None)
    return settings.llm_context if "llm_context" in settings.model_fields_set or told is None else told


class ContextFactory(Resources):
    """The resources of one process, and contexts for routes that use them."""

    def __init__(self, settings: Settings, store: Store | None = None) -> None:
        super().__init__(settings)
        self.store = store
        self._turn_vectors, self._sentence_vectors = EmbeddingCache(), EmbeddingCache(SENTENCES)

    def route_history(self, corpus: str) -> Mapping[str, float]:
        """Return each route's duration on a corpus in milliseconds, so that fast routes run first."""
        return self.store.route_history(corpus) if self.store is not None else {}

    def steps(
        self,
        corpus: Corpus,
        cancel: threading.Event | None = None,
        *,
        asker: Asker | None = None,
        trace: Trace | None = None,
        memo: Memo | None = None,
        web: WebSearch | None = None,
        request: Request | None = None,
        answering: AnswerStyle | None = None,
        memory: tuple[Remembered, ...] = (),
        model: str = "",
    ) -> Steps:
        """Return steps over a corpus; their deadline starts now, and `cancel` stops them. `request` is what
        they work for, `model` names the table [models.NAME] of their language model, "" for the default.
        """
        now, asked = self.settings, request or Request(Query(""), corpus.name)
        models, mode = asked.models, asked.mode
        trace, cancel = trace or Trace(), cancel or threading.Event()
        asker = asker or Asker(trace=trace, cancel=cancel)
        llm = (self.llm(mode, model) if model else self.llm(mode)) if models else NoLLM()
        context = Context(
            corpus=corpus,
            embedder=self.embedder_of(corpus),
            llm=llm,
            web=web,
            trace=trace,
            memo=memo or Memo(),
            cancel=cancel,
            deadline=time.perf_counter() + now.route_timeout_s,
            llm_timeout_s=now.llm_timeout_s,
            max_calls=now.route_max_calls,
            max_tokens=now.route_max_tokens,
            other_route=availability.other_routes(self, corpus.name, models=models, mode=mode),
            prepared=lambda need: self._prepared(corpus, need),
            rerankers=self.rerankers(),
            draw=asked.draw,
            forced=asked.forced,
            where=asked.where,
            answering=answering,
            evidence=answering.evidence if answering else now.answer_evidence,
            reflection=partial(self.reflection, mode) if models else NoLLM,
            memory=memory,
            turn_vectors=self._turn_vectors,
            sentence_vectors=self._sentence_vectors,
            llm_context=window(llm, now),
            fid=self.fid,
            evaluator=lambda name: evaluators.read(name, now.home, corpus.name),
            calibration=lambda about: calibrations.read(about, calibrations.subject(llm), now.home),
            classifier=lambda: question_classifier.read(now.home),
            external=lambda name: self.external(name, mode, asker.run),
            llm_name=model,
            asker=asker,
        )
        return Steps(context)

    def _prepared(self, corpus: Corpus, need: Need) -> Any:
        """Return the enrichment of a corpus that meets `need`; for fitted weights, a function that returns
        them by name. Raises Unavailable with instructions if it is missing.
        """
        if need is Need.WEIGHTS:
            return partial(self.weights, corpus.name)
        if need in (Need.TABLES, Need.CSV):
            return self.tables(corpus.name, need)
        return self.enrichment(corpus, need)
