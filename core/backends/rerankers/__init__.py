"""Rerankers: they read the question and each passage together, and give each passage a score."""

from __future__ import annotations

from collections.abc import Callable

from core.backends.embedder import MINILM
from core.backends.late import TokenEmbedder, token_embedder
from core.backends.named_models import named
from core.backends.rerankers.blend import BlendReranker, TokenCache
from core.backends.rerankers.cross import (
    BatchReranker,
    CrossEncoderReranker,
    HttpReranker,
    PackagedCrossEncoder,
    YesReranker,
)
from core.domain.errors import Unavailable
from core.domain.once import Once
from core.domain.settings import Settings

EMBEDDED, LLM = "embedded", "llm"  # the names in the settings that mean no model of their own


# They score passages for a question: higher is better, and scores of different ones do not compare.
Reranker = BatchReranker | HttpReranker


def no_cross_encoder(configured: str) -> str | None:
    """Explain why the configured reranker is not a cross-encoder and how to get one; None if it may be
    one.
    """
    if configured not in (EMBEDDED, LLM) and "://" not in configured:
        return None
    return (
        f"no cross-encoder is configured (reranker: {configured!r}): set reranker (ROUTESCOPE_RERANKER) to"
        " the name or folder of one, such as cross-encoder/ms-marco-MiniLM-L6-v2"
    )


class Rerankers:
    """The rerankers of a process, each loaded when it is first used. Safe to call from any thread."""

    def __init__(self, settings: Settings, tokens: Callable[[], TokenEmbedder] | None = None) -> None:
        """`tokens` gives the token embedder of the embedded one; by default MiniLM's."""
        self._settings = settings
        self._tokens = tokens
        self._blends: Once[str, BlendReranker] = Once()
        self._pairs: Once[str, Reranker] = Once()

    @property
    def configured(self) -> str:
        """The name in the settings."""
        return self._settings.reranker.strip()

    def load(self, name: str) -> None:
        """Have the reranker called `name` ready, so that no question pays for that; raises Unavailable."""
        if name == EMBEDDED:
            self.blend()
        elif name != LLM:
            self.paired()

    def blend(self) -> BlendReranker:
        """Return the embedded reranker, which needs the corpus' data of the candidates. Raises
        Unavailable.
        """

        def load() -> BlendReranker:
            tokens = self._tokens() if self._tokens else token_embedder(MINILM[0], settings=self._settings)
            cache = self._settings.home / "cache" / "tokens.sqlite"
            return BlendReranker(tokens, TokenCache(cache, tokens.name))

        return self._blends.get(EMBEDDED, load)

    def paired(self) -> Reranker:
        """Return the configured reranker that reads question and passage as a pair: a server's, else a
        cross-encoder.

        Raises Unavailable with instructions, BadInput for an invalid address.
        """
        return self._pairs.get(self.configured, lambda: self._load(self.configured))

    def cross_encoder(self) -> Reranker:
        """Return the configured cross-encoder. Raises Unavailable if another kind of reranker is
        configured.
        """
        if lack := no_cross_encoder(self.configured):
            raise Unavailable(lack)
        return self.paired()

    def _load(self, name: str) -> Reranker:
        if "://" not in name:
            model = named(name, "reranker")
            if model is not None and model.pooling == "P(yes)":
                return YesReranker(name, model)
            if model is not None and model.packaged is not None and "=" not in name:
                return PackagedCrossEncoder(model)
            return CrossEncoderReranker(name)
        key = self._settings.reranker_api_key
        return HttpReranker(
            name,
            model=self._settings.reranker_model,
            key=key.get_secret_value() if key else "",
            private=self._settings.private("reranker"),
            secrets=self._settings.secrets(),
        )
