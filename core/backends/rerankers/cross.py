"""Rerankers of question and passage as a pair: of sentence-transformers, in ONNX, by yes and no, or of a
service at `POST /rerank`, as Cohere, Jina, Voyage, vLLM, llama.cpp and TEI serve it.
"""

from __future__ import annotations

import json
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, cast

from core.backends.admission import ModelQueue
from core.backends.endpoint import Endpoint
from core.backends.llm.wire import EndpointWords, parsed
from core.backends.named_models import NamedModel, Packaged, packaged_folder, place
from core.backends.onnx_text import OnnxText
from core.backends.weights import clean, from_here_or_hub, in_batches, load
from core.domain.errors import BadInput, ModelFailed, Unavailable
from core.domain.reach import split
from core.domain.text import searchable
from core.domain.types import Passage


class BatchReranker(ABC):
    """Scores pairs of question and passage in batches, between which it looks at the clock and at Stop."""

    name: str
    share = 1.0  # its score's default weight in an order, 0 to 1; the first stage has the rest
    batch = 8  # pairs between two looks at the clock; a processor gains little from more
    at_once = 1.0  # threads: tokenizers of transformers are not safe to share between them

    def __init__(self) -> None:
        self._turns = ModelQueue()

    def rerank(
        self,
        text: str,
        passages: Sequence[Passage],
        *,
        timeout: float = 60.0,
        cancel: threading.Event | None = None,
    ) -> list[float]:
        """One score a passage, in their order; passages of like length share a batch.

        Raises Cancelled, ModelTimedOut after `timeout` seconds, and ModelFailed where a score is not finite.
        """
        with self._turns.slot(self.at_once, cancel):
            pairs = self._pairs(clean(text), [clean(searchable(one.title, one.text)) for one in passages])
            order = sorted(range(len(pairs)), key=lambda at: len(passages[at].title) + len(passages[at].text))
            scores = [0.0] * len(pairs)
            for some in in_batches(order, self.batch, self.name, timeout, cancel):
                for at, score in zip(some, self._scores([pairs[at] for at in some]), strict=True):
                    if not math.isfinite(score):
                        raise ModelFailed(f"{self.name} gave passage {passages[at].id!r} the score {score}")
                    scores[at] = score
        return scores

    def _pairs(self, text: str, passages: Sequence[str]) -> list[Any]:
        """Return what the model reads of the question and each passage."""
        return [(text, passage) for passage in passages]

    @abstractmethod
    def _scores(self, batch: Sequence[Any]) -> list[float]:
        """Return the score of each pair of a batch."""


class PackagedCrossEncoder(BatchReranker):
    """A cross-encoder in ONNX out of a package. Scores are logits, as those of `CrossEncoderReranker`."""

    batch = 1  # weights of 8 bits: a pair's score depends on the others in its batch, which gain no time
    at_once = float("inf")

    def __init__(self, model: NamedModel) -> None:
        """Load it; raises Unavailable if the package is not installed or its files are not the known ones."""
        super().__init__()
        packaged = cast("Packaged", model.packaged)
        folder = packaged_folder(packaged)
        self.name, self.share = model.name, model.share
        self._model = OnnxText(folder, folder / packaged.file, model.tokens)

    def _pairs(self, text: str, passages: Sequence[str]) -> list[Any]:
        return self._model.encode([(text, passage) for passage in passages])

    def _scores(self, batch: Sequence[Any]) -> list[float]:
        logits = self._model.run([one.ids for one in batch], [one.type_ids for one in batch])
        found: list[float] = logits[:, 0].tolist()
        return found


class CrossEncoderReranker(BatchReranker):
    """Scores are the model's logits: what an activation after them would add can make distinct ones equal."""

    def __init__(self, name: str) -> None:
        """Load the model; raises Unavailable when it cannot be loaded, or is no reranker."""
        super().__init__()
        self.name = name
        self._model = load("CrossEncoder", place(name, "reranker"))
        if (labels := self._model.num_labels) != 1:
            raise Unavailable(
                f"cross-encoder {name!r} sorts pairs into {labels} classes; a reranker gives one score"
            )

    def _scores(self, batch: Sequence[Any]) -> list[float]:
        from torch.nn import Identity

        found: list[float] = self._model.predict(
            batch, batch_size=self.batch, show_progress_bar=False, activation_fn=Identity()
        ).tolist()
        return found


BEFORE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the"
    ' Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
AFTER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


class YesReranker(BatchReranker):
    """Scores are log P(yes) - log P(no) of the next token, whose sigmoid is P(yes) among the two: odds keep
    apart what probabilities near 1 make equal.

    Source: Zhang et al. 2025, "Qwen3 Embedding", arXiv:2506.05176, section 2, and the model card's template.
    """

    batch = 4

    def __init__(self, setting: str, model: NamedModel) -> None:
        """Load the model; raises Unavailable when it cannot be loaded, or has no yes and no."""
        super().__init__()
        self.name = setting
        self._task = model.query
        advice = f"use {model.name}={{its folder}}"
        where = place(setting, "reranker")
        self._tokenizer, self._model = from_here_or_hub(where, _opened, "reranker", advice)
        ids = [self._tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no")]
        if None in ids or self._tokenizer.unk_token_id in ids or ids[0] == ids[1]:
            raise Unavailable(f"reranker {setting!r} has no tokens yes and no; {advice}")
        self._yes, self._no = ids
        self._before, self._after = (
            self._tokenizer.encode(part, add_special_tokens=False) for part in (BEFORE, AFTER)
        )
        most = getattr(self._model.config, "max_position_embeddings", model.tokens)
        self._room = min(model.tokens, most) - len(self._before) - len(self._after)

    def _pairs(self, text: str, passages: Sequence[str]) -> list[Any]:
        asked = f"<Instruct>: {self._task}\n<Query>: {text}\n<Document>: "
        ids = (self._tokenizer.encode(asked + passage, add_special_tokens=False) for passage in passages)
        return [[*self._before, *one[: max(1, self._room)], *self._after] for one in ids]

    def _scores(self, batch: Sequence[Any]) -> list[float]:
        import torch

        longest = max(map(len, batch))  # filled up on the left: the last place is each one's last token
        fill = self._tokenizer.pad_token_id or 0
        ids = torch.tensor([[fill] * (longest - len(one)) + one for one in batch])
        mask = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in batch])
        with torch.inference_mode():
            last = self._model(input_ids=ids, attention_mask=mask, logits_to_keep=1).logits[:, -1].float()
        found: list[float] = (last[:, self._yes] - last[:, self._no]).tolist()
        return found


def _opened(place: str, **local: Any) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(place, **local)
    model: Any = AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32, **local)
    return tokenizer, model.eval()


# What a request holds: Cohere's fields, which most servers take, Voyage's, or TEI's.
Dialect = Literal["top_n", "top_k", "texts"]
AT_ONCE: dict[Dialect, int] = {"top_n": 100, "top_k": 100, "texts": 32}  # TEI's usual limit
PATHS = ("/rerank", "/reranking")
VOYAGE = ("voyageai.com", "ai.mongodb.com")


class HttpReranker:
    """One endpoint, one model, any number of threads; nothing is imported or opened before the first call.

    Three dialects are spoken: {"model", "query", "documents", "top_n"} is answered by {"results": [{"index",
    "relevance_score"}]}; Voyage takes "top_k" and answers in "data"; a server that asks for "texts" (TEI)
    answers with a bare [{"index", "score"}]. Which one, the first refusal tells.
    """

    share = 1.0

    def __init__(
        self, url: str, *, model: str = "", key: str = "", private: bool = True, secrets: Sequence[str] = ()
    ) -> None:
        """`url` is the server's address, with or without /rerank at its end; raises BadInput for others.

        `private`: whether it may be on this machine or its own network. `secrets` are taken out of what it
        says, as `key` is.
        """
        self.url = endpoint(url)
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise BadInput("the reranker's key contains invalid characters; enter it as it was issued")
        self.name = f"{model or 'reranker'} at {self.url}"
        self._model = model
        self._words = EndpointWords(self.name, (key, *secrets))
        self._endpoint = Endpoint(self.url, self._words, key=key, private=private)
        self._dialect: Dialect = "top_k" if any(host in self.url for host in VOYAGE) else "top_n"

    def rerank(
        self,
        text: str,
        passages: Sequence[Passage],
        *,
        timeout: float = 60.0,
        cancel: threading.Event | None = None,
    ) -> list[float]:
        """One score a passage, in the order given; what is temporary is tried again within `timeout`."""
        texts = [clean(searchable(passage.title, passage.text)) for passage in passages]
        query, end = clean(text), time.monotonic() + timeout
        scores: list[float] = []
        while len(scores) < len(texts):
            dialect = self._dialect
            some = texts[len(scores) : len(scores) + AT_ONCE[dialect]]
            body: dict[str, Any] = {"query": query, "texts": some, "truncate": True}
            if dialect != "texts":  # without truncation TEI refuses a whole batch for one long passage
                model = {"model": self._model} if self._model else {}
                body = {**model, "query": query, "documents": some, dialect: len(some)}
            left = max(0.01, end - time.monotonic())
            reply = self._endpoint.post(body, timeout=left, cancel=cancel or threading.Event())
            if dialect == "top_n" and reply.status in (400, 422):
                if b"texts" in reply.data:
                    self._dialect = "texts"
                    continue
                if b"top_n" in reply.data or b"top_k" in reply.data:
                    self._dialect = "top_k"
                    continue
            if reply.status != 200:
                raise self._endpoint.refusal(reply)
            scores += read(reply.data, len(some), self._words)
        return scores


def endpoint(url: str) -> str:
    """Return the URL to post to, safe to show. Raises BadInput, which repeats no possibly secret part."""
    wrong = "a reranker's address is http://host:port/rerank or https://host/v1/rerank"
    origin, path = split(url, wrong, "user, password or query: set the key separately")
    return f"{origin}{path}" if path.endswith(PATHS) else f"{origin}{path}/rerank"


def read(data: bytes, count: int, words: EndpointWords) -> list[float]:
    """Return the scores of `count` passages in a response body. Raises ModelFailed unless each has exactly
    one.
    """
    answer = parsed(data, words, "is the address right?")
    results = answer.get("results", answer.get("data")) if isinstance(answer, dict) else answer
    if not isinstance(results, list):
        raise words.failed("answered without results", data)
    scores: dict[int, float] = {}
    for result in results:
        found: dict[str, Any] = result if isinstance(result, dict) else {}
        index: Any = found.get("index")
        score: Any = found.get("relevance_score", found.get("score"))
        if type(index) is not int or type(score) not in (int, float) or not math.isfinite(score):
            raise words.failed("gave a result without an index and a finite score", json.dumps(result))
        scores[index] = float(score)
    if sorted(scores) != list(range(count)) or len(results) != count:
        given = f"{len(results)} scores, of {len(scores)} passages"
        raise words.failed(f"gave {given}; wanted one of each of 0 to {count - 1}")
    return [scores[index] for index in range(count)]
