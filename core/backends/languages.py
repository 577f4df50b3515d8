"""The language of texts, detected by script and stop words; none if they are not clear."""

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
BY_STOP_WORDS = tuple(
    "danish dutch english french german italian norwegian portuguese russian spanish swedish turkish".split()  # noqa: SIM905
)
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f々〇"
KANA = "\u3041-\u309f\u30a0-\u30ff\uff66-\uff9f"
HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
_SCRIPTS = {
    "han": HAN,
    "kana": KANA,
    "hangul": HANGUL,
    "thai": THAI,
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "armenian": "\u0530-\u058f",
    "tamil": "\u0b80-\u0bff",
    "hindi": "\u0900-\u097f",
    "arabic": "\u0600-\u06ff\u0750-\u077f",
}
_FINDS = {name: re.compile(f"[{letters}]") for name, letters in _SCRIPTS.items()}
_NOT_LATIN = re.compile("[^\u0000-\u024f\u1e00-\u1eff]")
_WORDS = re.compile(r"[^\W\d_]+")
OF_SCRIPT = 0.25  # of the letters, from which a script says the language: product names are often in Latin
SHARE, LEAST, LEAD = 0.12, 3, 1.15  # of a passage's words that are stop words, how many, and against the next
MAX_READ_CHARS = 2000  # characters of a passage that are looked at
EVIDENCE = 3  # passages that have to be clearly in a language before unclear ones are cut by it
PART, OF_UNCLEAR = 0.05, 0.2  # and their share of the commonest language's, and of the unclear ones' number


@dataclass(frozen=True, slots=True)
class Languages:
    """The languages of a corpus, and how its words are cut because of them."""

    passages: Mapping[str, int]  # how many are clearly in each language, most first
    unclear: int  # passages whose language is not clear
    foreign: int = 0  # of these, those mostly in letters that are not Latin

    @property
    def usual(self) -> tuple[str, ...]:
        """The languages that passages without a clear language are cut by.

        One more passage in a language that no other has changes nothing of it: a language needs `EVIDENCE`,
        and shares are of numbers that such a passage leaves as they are.
        """
        if not self.unclear:
            return tuple(self.passages) or (FALLBACK,)
        least = max(EVIDENCE, PART * max(self.passages.values(), default=0), OF_UNCLEAR * self.unclear)
        found = [name for name, count in self.passages.items() if count >= least]
        if sum(self.passages[name] for name in found) < self.unclear and FALLBACK not in found:
            found.append(FALLBACK)
        return tuple(found)

    @property
    def name(self) -> str:
        """As an analyzer and an index are named: `german`, `english+german`, or `english/italian` if unclear
        passages are cut as English and others as Italian.
        """
        others = "+".join(name for name in self.passages if name not in self.usual)
        return "+".join(self.usual) + (f"/{others}" if others else "")

    def describe(self) -> str:
        """Describe the languages found and how words are split."""
        counted = "".join(f"{name.title()} {count:,}, " for name, count in self.passages.items())
        usual = " and ".join(map(str.title, self.usual))
        return f"each passage is cut by its own language: {counted}{self.unclear:,} unclear ones as {usual}"


def of_corpus(texts: Iterable[str]) -> Languages:
    """Count the languages of all passages of a corpus."""
    counted: Counter[str] = Counter()
    unclear = others = 0
    for text in texts:
        if (name := language(text)) is not None:
            counted[name] += 1
        else:
            unclear += 1
            others += foreign(text)
    ordered = dict(sorted(counted.items(), key=lambda one: (-one[1], one[0])))
    return Languages(ordered, unclear, others)


def foreign(text: str) -> bool:
    """Return True if at least half of the letters of a text are not Latin."""
    if text.isascii():
        return False
    letters = "".join(_WORDS.findall(text[:MAX_READ_CHARS]))
    return len(_NOT_LATIN.findall(letters)) >= 0.5 * len(letters) > 0


def language(text: str) -> str | None:
    """Return the language of a passage, or None if neither script nor stop words are clear.

    Languages of the Latin and Cyrillic scripts are distinguished by `BY_STOP_WORDS`, others by their script.
    `LEAST` different stop words are required, because code repeats one ("val"); single letters do not count
    ("for a, i in e").
    """
    text = text[:MAX_READ_CHARS]
    if (script := by_script(text)) is not None:
        return script
    words = Counter(_WORDS.findall(text.lower()))
    counts, different = Counter[str](), Counter[str]()
    known = _languages_of()
    for word, times in words.items():
        for name in known.get(word, ()):
            counts[name] += times
            different[name] += len(word) > 1 or not word.isascii()
    (best, most), (_, second) = [*counts.most_common(2), ("", 0), ("", 0)][:2]
    enough = most >= SHARE * words.total() and different[best] >= LEAST
    return best if enough and most >= LEAD * second and most > second + 1 else None


def among(text: str, known: Collection[str]) -> str | None:
    """Return the one of a few `known` languages that a short text such as a question is in, or the one of its
    script; None if it is not clear.
    """
    if (script := by_script(text[:MAX_READ_CHARS])) is not None:
        return script
    words, stops = _WORDS.findall(text[:MAX_READ_CHARS].lower()), _stop_words()
    told = {name: sum(word in stops[name] for word in words) for name in known if name in BY_STOP_WORDS}
    (best, most), (_, second) = Counter({"": 0, " ": 0, **told}).most_common(2)
    return best if most > second and most >= LEAD * second else None


def by_script(text: str) -> str | None:
    """Return the language of a script; None for Latin and Cyrillic, which many languages share."""
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
    """Return the full stop word lists of languages, longer than those an analyzer drops ("what", "our")."""
    return frozenset[str]().union(*(_stop_words().get(name, frozenset()) for name in names))


@cache
def _languages_of() -> Mapping[str, tuple[str, ...]]:
    """Map each stop word to its languages in BY_STOP_WORDS."""
    found: dict[str, tuple[str, ...]] = {}
    for name in BY_STOP_WORDS:
        for word in _stop_words()[name]:
            found[word] = (*found.get(word, ()), name)
    return found


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
