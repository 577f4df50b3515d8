"""Which language texts are in, by their script and their stop words; none where that is not clear."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

AUTO = "auto"  # in place of a language: found when the corpus is indexed
FALLBACK = "english"
UNSPACED = ("chinese", "japanese", "korean", "thai")  # cut into n-grams of characters
BY_STOP_WORDS = (
    "danish", "dutch", "english", "french", "german", "italian", "norwegian", "portuguese", "russian",
    "spanish", "swedish", "turkish",
)  # fmt: skip
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f々〇"
KANA = "\u3041-\u309f\u30a0-\u30ff\uff66-\uff9f"
HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
_SCRIPTS = {
    "han": HAN, "kana": KANA, "hangul": HANGUL, "thai": THAI,
    "greek": "\u0370-\u03ff\u1f00-\u1fff", "armenian": "\u0530-\u058f", "tamil": "\u0b80-\u0bff",
    "hindi": "\u0900-\u097f", "arabic": "\u0600-\u06ff\u0750-\u077f",
}  # fmt: skip
_FINDS = {name: re.compile(f"[{letters}]") for name, letters in _SCRIPTS.items()}
_WORDS = re.compile(r"[^\W\d_]+")
OF_SCRIPT = 0.25  # of the letters, from which a script says the language: product names are often in Latin
SHARE, LEAST, LEAD = 0.12, 3, 1.15  # of a passage's words that are stop words, how many, and against the next
SAMPLE, READ = 400, 2000  # passages looked at, characters of each
PART = 0.05  # of the clear passages, from which a language is one of the corpus


@dataclass(frozen=True, slots=True)
class Languages:
    """The languages of a corpus, most passages first. `passages`: how many of the `sampled` are clearly in
    each language that was seen.
    """

    names: tuple[str, ...]
    passages: Mapping[str, int]
    sampled: int

    @property
    def name(self) -> str:
        """As an analyzer and an index are named: `german`, or `english+german`."""
        return "+".join(self.names)

    @property
    def clear(self) -> bool:
        """Whether any passage says; otherwise the language is FALLBACK."""
        return bool(self.passages)

    def describe(self) -> str:
        """What was found, in a sentence."""
        if not self.clear:
            return f"no language is clear from {self.sampled:,} passages: words are cut as {FALLBACK}"
        counted = ", ".join(f"{name} {count:,}" for name, count in self.passages.items())
        return f"words are cut as {self.name}: of {self.sampled:,} passages looked at, {counted}"


def of_corpus(texts: Iterable[str]) -> Languages:
    """The languages of the passages given: each that at least `PART` of the clear ones are in."""
    counted: Counter[str] = Counter()
    sampled = 0
    for text in texts:
        sampled += 1
        if (name := language(text)) is not None:
            counted[name] += 1
    ordered = dict(sorted(counted.items(), key=lambda one: (-one[1], one[0])))
    names = [name for name, count in ordered.items() if count >= PART * counted.total()]
    return Languages(tuple(names) or (FALLBACK,), ordered, sampled)


def language(text: str) -> str | None:
    """The language of a passage; None where neither script nor stop words are clear about it.

    A language of the Latin or Cyrillic script is told by `BY_STOP_WORDS`, no other one.
    """
    text = text[:READ]
    if (script := by_script(text)) is not None:
        return script
    words = _WORDS.findall(text.lower())
    (best, most), (_, second) = _counted(words, BY_STOP_WORDS)[:2]
    clear = most >= max(LEAST, SHARE * len(words)) and most >= LEAD * second and most > second + 1
    return best if clear else None


def among(text: str, known: Collection[str]) -> str | None:
    """Which of a few `known` languages a text is in, as short as a question, or the one of its script; None
    where it is not clear.
    """
    if (script := by_script(text[:READ])) is not None:
        return script
    told = [name for name in known if name in BY_STOP_WORDS]
    if not told:
        return None
    counted = _counted(_WORDS.findall(text[:READ].lower()), told)
    most, second = counted[0][1], counted[1][1] if len(counted) > 1 else 0
    return counted[0][0] if most > second and most >= LEAD * second else None


def by_script(text: str) -> str | None:
    """The language that a script stands for; None for Latin and Cyrillic, which are many languages'."""
    if text.isascii():
        return None
    found = {name: len(find.findall(text)) for name, find in _FINDS.items()}
    letters = sum(len(word) for word in _WORDS.findall(text)) or 1
    cjk = found.pop("han") + found["kana"]
    if cjk and cjk >= OF_SCRIPT * letters:
        return "japanese" if found["kana"] >= 0.1 * cjk else "chinese"
    found["korean"] = found.pop("hangul")
    found.pop("kana")
    name, most = max(found.items(), key=lambda one: one[1])
    return name if most and most >= OF_SCRIPT * letters else None


def stop_words(names: Iterable[str]) -> frozenset[str]:
    """The stop words of languages, as many as there are: more than an analyzer drops ("what", "our")."""
    return frozenset[str]().union(*(_stop_words().get(name, frozenset()) for name in names))


def _counted(words: list[str], names: Iterable[str]) -> list[tuple[str, int]]:
    """How many words are stop words of each language, most first."""
    stops = _stop_words()
    return sorted(
        ((name, sum(word in stops[name] for word in words)) for name in names), key=lambda one: -one[1]
    )


@cache
def _stop_words() -> Mapping[str, frozenset[str]]:
    """bm25s's lists, read without importing the package, which takes seconds that a question would wait."""
    package = find_spec("bm25s")
    folder = Path((package.submodule_search_locations or ("",))[0]) if package else Path()
    spec = spec_from_file_location("bm25s_stop_words", folder / "stopwords.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"bm25s's stop words are not at {folder}")
    lists = module_from_spec(spec)
    spec.loader.exec_module(lists)
    found = {name: frozenset(getattr(lists, f"STOPWORDS_{name.upper()}", ())) for name in BY_STOP_WORDS}
    return found | {"english": frozenset(lists.STOPWORDS_EN_PLUS)}
