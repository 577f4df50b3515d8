"""The language model: embedded llama.cpp or any OpenAI-compatible endpoint, behind cache and recordings.

Importing this is light: `openai`, `httpx2` and `xllamacpp` wait for the first call that needs the model.
"""

from __future__ import annotations

from pathlib import Path

from core.backends.llm.cache import CompletionCache
from core.backends.llm.launch import ServerState
from core.backends.llm.model import CachedLLM, EmbeddedLLM, RemoteLLM
from core.backends.llm.recordings import Recordings
from core.domain.errors import Unavailable
from core.domain.settings import PROJECT, Settings

RECORDINGS = PROJECT / "data" / "recordings"


def load_llm(settings: Settings, *, recordings: Path = RECORDINGS) -> CachedLLM:
    """Return the configured model's client; starts and fetches nothing. Raises BadInput for an invalid name
    or URL.
    """
    backend = RemoteLLM(settings) if settings.llm_base_url else EmbeddedLLM(settings)
    return _cached(backend, settings, recordings)


def load_reflection(settings: Settings) -> CachedLLM:
    """Return the configured reflection-token model's client; calls nobody. Raises Unavailable if none is
    configured.
    """
    if not settings.self_rag_base_url:
        raise Unavailable(
            "no reflection-token model is set up: serve one such as selfrag/selfrag_llama2_7b on a GPU "
            "(vllm serve selfrag/selfrag_llama2_7b), then set ROUTESCOPE_SELF_RAG_BASE_URL=http://host:8000/v1"
        )
    return _cached(RemoteLLM(settings, reflection=True), settings, RECORDINGS)


def _cached(backend: RemoteLLM | EmbeddedLLM, settings: Settings, recordings: Path) -> CachedLLM:
    return CachedLLM(
        backend,
        cache=CompletionCache(settings.home / "cache" / "answers.sqlite", settings.llm_cache_mb),
        recordings=Recordings(recordings),
        mode=settings.llm_mode,
        daily=settings.daily_tokens,
    )


def server_state(settings: Settings) -> ServerState | None:
    """Return the state of the embedded server, or None if another endpoint is set. Reads one small file."""
    return None if settings.llm_base_url else EmbeddedLLM(settings).server.state()


def start_server(settings: Settings) -> ServerState | None:
    """Start loading the model before it is needed, if its file is here; returns in well under a second."""
    if settings.llm_base_url:
        return None
    model = EmbeddedLLM(settings)
    return model.server.state() if model.status() else model.server.start()


def stop_server(settings: Settings) -> None:
    """End the embedded server of these settings, for every program that uses it."""
    if not settings.llm_base_url:
        EmbeddedLLM(settings).server.stop()


__all__ = ["CachedLLM", "load_llm", "load_reflection", "server_state", "start_server", "stop_server"]
