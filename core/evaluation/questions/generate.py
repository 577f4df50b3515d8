"""Generates questions with labels: passages are drawn, spread evenly over documents and topics, a model
writes about each, and the question is checked, and kept or dropped with the reason.
"""

from __future__ import annotations

import hashlib
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from core.backends import calibrations
from core.backends.base import LLM, Completion, Embedder, LLMRequest
from core.backends.languages import foreign, language
from core.backends.llm.text import looks_refused
from core.backends.prompting import prompts
from core.backends.prompting.citations import sentences
from core.backends.prompting.replies import first_line, odds
from core.backends.prompting.untrusted import quoted
from core.corpus.corpus import Corpus
from core.domain.errors import BadInput, Cancelled, ModelFailed, ModelTimedOut, Unavailable
from core.domain.fusion import rrf
from core.domain.types import Hit, Passage, Ranking
from core.evaluation.questions import question_file
from core.evaluation.questions.question_file import Line

if TYPE_CHECKING:
    from core.engine.engine import Engine


FEWEST_WORDS, MOST_WORDS = 4, 40  # of a question
ALIKE = 0.8  # Jaccard of the terms of two questions from which they are the same question
COPIED = 0.8  # share of a question's words that stand in the passage in a row
SHARED = 0.34  # share of a question's terms that its passage has too, at most, for a vocabulary mismatch
_POINTS = re.compile(r"\b(?:the|this|these|that) (?:passage|document|text|article|excerpt|section)s?\b", re.I)
_WORDS = re.compile(r"\w+")


def form(question: str, passages: Sequence[str]) -> str:
    """Return the fault of a question's form, or "" if it has none."""
    count = len(_WORDS.findall(question))
    if not question.rstrip().endswith(("?", "？", "؟")):
        return "not a question"
    if not FEWEST_WORDS <= count <= MOST_WORDS and question.isascii():
        return f"not {FEWEST_WORDS} to {MOST_WORDS} words long"
    if _POINTS.search(question):
        return "points at the passage"
    if any(copied(question, passage) for passage in passages):
        return "copies its passage"
    if any(unlike(question, passage) for passage in passages):
        return "in another language than its passage"
    return ""


def copied(question: str, passage: str) -> bool:
    """Return whether most of a question's words occur consecutively in the passage."""
    asked, said = _WORDS.findall(question.casefold()), _WORDS.findall(passage.casefold())
    size = max(FEWEST_WORDS, round(COPIED * len(asked)))
    runs = {tuple(said[at : at + size]) for at in range(len(said) - size + 1)}
    return any(tuple(asked[at : at + size]) in runs for at in range(len(asked) - size + 1))


def unlike(question: str, passage: str) -> bool:
    """Return whether a question is in another script than its passage, or clearly in another language."""
    first, second = language(question), language(passage)
    return foreign(question) != foreign(passage) or (None not in (first, second) and first != second)


def terms(text: str, corpus: Corpus) -> set[str]:
    """Return the terms of a text as BM25 sees them."""
    return {term for term, _ in corpus.terms(text)}


Kind = Literal["plain", "vocabulary_mismatch", "comparison", "exact_identifier", "no_answer"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PROMPTS: Mapping[Kind, prompts.Prompt] = {
    "plain": prompts.PLAIN,
    "vocabulary_mismatch": prompts.VOCABULARY,
    "comparison": prompts.COMPARISON,
    "exact_identifier": prompts.IDENTIFIER,
    "no_answer": prompts.UNANSWERABLE,
}
GRAMMAR = 'root ::= [^\\n?]{12,240} "?"'
SEARCHED = 50  # hits of each cheap route in which the passage has to be found
OTHERS = 2  # other passages that are asked whether they answer it, too
NEAR, FAR = 0.95, 0.3  # cosines between which a passage is compared with another document's
WRITTEN, ANSWER = 60, 40  # tokens of a question, and of its answer
NOT_STATED = "not stated"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A passage to ask about, its row in the corpus, and an identifier in it, "" if it has no identifier."""

    row: int
    passage: Passage
    identifier: str = ""


class Dropped(Exception):
    """A question is not kept, and why."""


@dataclass(slots=True)
class Writer:
    """The corpus and models that questions are written and checked with. `ms` adds up the model's calls, as
    they took when made.
    """

    corpus: Corpus
    llm: LLM
    embedder: Embedder
    threshold: float  # of P(Yes) that passages answer a question
    timeout: float
    cancel: threading.Event
    ms: float = 0.0
    calls: int = 0
    before: dict[str, set[str]] = field(default_factory=dict)  # terms of earlier questions by id

    def write(self, kind: Kind, drawn: Drawn) -> dict[str, Any]:
        """Return a question as a line of a questions file, without who made it. Raises Dropped, and what the
        model's client raises.
        """
        hits = self._about(kind, drawn)
        shown = quoted(hits)
        asked = self._ask(PROMPTS[kind], WRITTEN, GRAMMAR, passages=shown, identifier=drawn.identifier)
        text = first_line(asked.text)
        texts = [f"{hit.passage.title}\n{hit.passage.text}" for hit in hits]
        own, there = terms(text, self.corpus), set().union(*(terms(one, self.corpus) for one in texts))
        common = len(own & there) / len(own) if own else 1.0
        if wrong := form(text, texts):
            raise Dropped(wrong)
        if kind == "exact_identifier" and drawn.identifier.casefold() not in text.casefold():
            raise Dropped("does not name the identifier")
        if kind == "vocabulary_mismatch" and common > SHARED:
            raise Dropped("shares too many words with its passage")
        if any(len(own & other) >= ALIKE * len(own | other) > 0 for other in self.before.values()):
            raise Dropped("the same as an earlier question")
        words = self.corpus.search_sparse(text, SEARCHED)
        near = self.corpus.search_dense(np.asarray(self.embedder.embed_query(text)), SEARCHED)
        found = {"bm25": words, "dense": near, "hybrid": rrf((words, near))[:SEARCHED]}
        ids = [hit.passage.id for hit in hits]
        noted: dict[str, Any] = {"shared terms": round(common, 2)}
        if kind == "no_answer":
            sure = self._yes(text, found["hybrid"][:3]) if found["hybrid"] else 0.0
            if sure >= self.threshold:
                raise Dropped("the documents may answer it")
            noted["P(yes) of the top passages"] = round(sure, 3)
            labels: dict[str, Any] = {"relevant": [], "answerable": False}
        else:
            answer = first_line(
                self._ask(prompts.SHORT_ANSWER, ANSWER, "", passages=shown, question=text).text
            )
            if not answer or NOT_STATED in answer.casefold():
                raise Dropped("its passage does not answer it, says the model")
            sure = self._yes(text, hits)
            if sure < self.threshold:
                raise Dropped(f"P(yes) that its passage answers it is below {self.threshold:.2f}")
            ranks: dict[str, int | None] = {}
            for name, ranking in found.items():
                ranks[name] = next((at for at, hit in enumerate(ranking, 1) if hit.passage.id in ids), None)
            if all(rank is None for rank in ranks.values()):
                raise Dropped(f"no route finds its passage among the first {SEARCHED}")
            easy = all(rank == 1 for rank in ranks.values())
            noted |= {"P(yes)": round(sure, 3), "ranks": ranks, "easy": easy}
            others = [hit for hit in found["hybrid"] if hit.passage.id not in ids][:OTHERS]
            also = [hit.passage.id for hit in others if self._yes(text, (hit,)) >= self.threshold]
            if len(others) == OTHERS == len(also):
                raise Dropped("other passages answer it too")
            noted["other passages that answer it"] = also
            labels = {"answer": answer, "relevant": [_label(hit.passage, answer) for hit in hits]}
        digest = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:10]
        id = f"g-{kind.replace('_', '-')}-{digest}"
        self.before[id] = own
        line = {"id": id, "text": text, "mode": kind, **labels}
        return line | {"checks": noted, "passages": ids, "prompt": PROMPTS[kind].name}

    def _about(self, kind: Kind, drawn: Drawn) -> Ranking:
        if kind == "exact_identifier" and not drawn.identifier:
            raise Dropped("the passage has no identifier")
        first = Hit(drawn.passage, 1.0)
        if kind != "comparison":
            return (first,)
        for hit in self.corpus.search_dense(self.corpus.vectors([drawn.row])[0], 20):
            if hit.passage.doc_id != drawn.passage.doc_id and FAR <= hit.score < NEAR:
                return first, Hit(hit.passage, 1.0)
        raise Dropped("no passage of another document is about the like")

    def _yes(self, text: str, hits: Ranking) -> float:
        reply = self._ask(prompts.EVIDENCE, 1, "", top_logprobs=10, passages=quoted(hits), question=text)
        found = odds(reply, ("yes", "no"))
        if found is None:
            raise Dropped(f"neither Yes nor No but {reply.text[:40]!r}")
        return found.of["yes"]

    def _ask(
        self, prompt: prompts.Prompt, max_tokens: int, grammar: str, top_logprobs: int = 0, **values: str
    ) -> Completion:
        request = LLMRequest(
            prompt.name,
            prompt.fill(values),
            max_tokens,
            top_logprobs=top_logprobs,
            grammar=grammar,
            reuse_prefix=True,
        )
        reply = self.llm.complete(request, timeout=self.timeout, cancel=self.cancel)
        self.ms, self.calls = self.ms + reply.ms, self.calls + 1
        if not top_logprobs and looks_refused(reply.text):
            raise Dropped("the model refused")
        return reply


def _label(passage: Passage, answer: str) -> dict[str, Any]:
    """Return the place of the answer in the document: the sentence that has it word for word, else the
    passage.
    """
    wanted = " ".join(answer.casefold().split()).strip(" .\"'")
    said = [one for one in sentences(passage.text) if one in passage.text]
    holding = [one for one in said if wanted and wanted in " ".join(one.casefold().split())]
    return {"doc": passage.doc_id, "grade": 3, "quote": holding[0] if holding else passage.text}


LEAST_WORDS = 15  # in a passage: with fewer there is nothing to ask
CLUSTERS = 24  # of documents, by what they are about
SAMPLE = 20_000  # documents that are clustered
# Letters with digits (LP-4098, E1203, v2.1), a number of five digits or more, or words joined by _ or ::.
_IDENTIFIER = re.compile(
    r"\b(?=[\w.-]*\d)(?=[\w.-]*[A-Z])[A-Z0-9][\w-]*(?:\.\w+)*\b|\b\d{5,}\b|\b\w+(?:_\w+)+\b|\b\w+(?:::\w+)+\b"
)


def passages(corpus: Corpus, seed: int) -> Iterator[Drawn]:
    """Yield the passages of a corpus in the order in which they are asked about: one of each cluster of
    documents in turn, of each document once before any comes twice; equal texts once.

    BadInput where no passage has LEAST_WORDS words.
    """
    draw = random.Random(seed)
    found = _documents(corpus)
    if not found:
        raise BadInput(f"corpus {corpus.name}: no passage has {LEAST_WORDS} words or more to ask about")
    names = sorted(found)
    draw.shuffle(names)
    for rows in found.values():
        draw.shuffle(rows)
    groups = _grouped(corpus, names, found, seed)
    while any(groups):
        for group in groups:
            if not group:
                continue
            name = group.pop(0)
            row = found[name].pop()
            if found[name]:
                group.append(name)
            passage = corpus.passages([row])[0]
            yield Drawn(row, passage, identifier(passage.text))


def identifier(text: str) -> str:
    """Return the longest of the identifiers in a text, the first of equally long ones, or "" if it does not
    exist.
    """
    return max((one[0] for one in _IDENTIFIER.finditer(text)), key=len, default="")


def _documents(corpus: Corpus) -> dict[str, list[int]]:
    """Return the rows of each document whose passages say enough, each text once."""
    seen: set[str] = set()
    found: dict[str, list[int]] = {}
    for row, passage, _ in corpus.everything():
        plain = " ".join(passage.text.split()).casefold()
        if plain.count(" ") + 1 < LEAST_WORDS or plain in seen:
            continue
        seen.add(plain)
        found.setdefault(passage.doc_id, []).append(row)
    return found


def _grouped(
    corpus: Corpus, names: Sequence[str], found: Mapping[str, Sequence[int]], seed: int
) -> list[list[str]]:
    """Return the documents in clusters by the vector of one passage of each, the order inside kept."""
    import faiss

    if len(names) <= CLUSTERS:
        return [[name] for name in names]
    vectors = np.stack([corpus.vectors([found[name][0]])[0] for name in names[:SAMPLE]])
    means = faiss.Kmeans(
        vectors.shape[1], CLUSTERS, niter=10, seed=seed, min_points_per_centroid=1, verbose=False
    )
    means.train(vectors)
    nearest = means.index.search(vectors, 1)[1][:, 0]
    groups: dict[int, list[str]] = {}
    for at, name in enumerate(names):
        groups.setdefault(int(nearest[at]) if at < len(nearest) else at % CLUSTERS, []).append(name)
    return [groups[at] for at in sorted(groups)]


MOST = 1_000  # questions at once
FUTILE = 15  # questions dropped one after the other: another passage will not change that
FAILURES = 3  # of the model, one after the other
UNCALIBRATED = 0.5
Progress = Callable[[int, int], None]  # questions kept, of how many


@dataclass(slots=True)
class Generated:
    """The result of generating questions: the file's lines, the numbers dropped by reason, the model's time
    for all of them (seconds, as its calls took when they were made), and the origin of the threshold.
    """

    lines: list[Line]
    dropped: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    calls: int = 0
    threshold: float = UNCALIBRATED
    notes: list[str] = field(default_factory=list)
    ended: str = ""  # why it ended early, "" if all were made

    @property
    def per_question(self) -> float | None:
        """Return the model's seconds per accepted question; the time for dropped questions is included."""
        return self.seconds / len(self.lines) if self.lines else None


def generate(
    engine: Engine,
    corpus_name: str,
    out: Path,
    count: int,
    *,
    seed: int = 0,
    kinds: Sequence[Kind] = KINDS,
    progress: Progress = lambda _done, _of: None,
    cancel: threading.Event | None = None,
) -> Generated:
    """Write `count` questions about a corpus to `out`, the kinds in turn. What is in the file stays, reviews
    too, and counts: the same command goes on where it was stopped, as the model's replies are cached.

    Raises BadInput (nothing to ask about, a file of other questions), Unavailable without a model, and
    ModelFailed or ModelTimedOut after FAILURES in a row. Stopped, it ends with what there is.
    """
    if not 1 <= count <= MOST:
        raise BadInput(f"count {count}; give 1 to {MOST:,}")
    if not kinds or (unknown := [kind for kind in kinds if kind not in KINDS]):
        raise BadInput(f"kind {unknown[0] if kinds else ''!r}; give any of {', '.join(KINDS)}")
    llm = engine.llm()
    if why := llm.status():
        raise Unavailable(f"questions are written by the language model: {why}")
    stop = cancel or threading.Event()
    corpus = engine.corpus(corpus_name)
    known = {line["id"]: line for line in question_file.read(out)} if out.exists() else {}
    calibrated = calibrations.read("evidence", calibrations.subject(llm), engine.settings.home)
    threshold = calibrated.threshold if calibrated else UNCALIBRATED
    writer = Writer(corpus, llm, engine.embedder_of(corpus), threshold, engine.settings.llm_timeout_s, stop)
    found = Generated(list(known.values()), threshold=threshold)
    if calibrated is None:
        found.notes.append(f"P(yes) of {llm.model} is not calibrated here; {threshold:.2f} was used")
    for line in known.values():
        writer.before[line["id"]] = terms(line["text"], corpus)
    with question_file.changed(out) as lines:  # before the first minute is spent: can it be written?
        found.lines = list(lines)
    drawn_from = passages(corpus, seed)
    turn, futile, failed = cycle(kinds), 0, 0
    waiting: list[Kind] = []
    recent: Counter[str] = Counter()
    while len(found.lines) < count:
        progress(len(found.lines), count)
        drawn = next(drawn_from, None)
        if drawn is None:
            found.ended = "every passage has been asked about"
            break
        kind = waiting.pop(0) if waiting else next(turn)
        if kind == "exact_identifier" and not drawn.identifier and len(kinds) > 1:
            waiting.append(kind)  # for the next passage
            kind = next(one for one in turn if one != kind)
        before = writer.ms, writer.calls
        try:
            written = writer.write(kind, drawn)
        except Cancelled:
            found.ended = "stopped by the user"
            break
        except Dropped as reason:
            found.dropped[str(reason)] += 1
            recent[str(reason)] += 1
            futile, failed = futile + 1, 0
        except (ModelFailed, ModelTimedOut) as error:
            found.dropped["the model failed"] += 1
            failed += 1
            if failed >= FAILURES:
                raise ModelFailed(f"{failed} calls in a row failed, the last with: {error}") from error
        else:
            futile, failed = 0, 0
            recent.clear()
            line = question_file.line_of(
                written, writer.llm.model, (writer.ms - before[0]) / 1000, writer.calls - before[1]
            )
            with question_file.changed(out) as lines:
                if all(one["id"] != line["id"] for one in lines):
                    lines.append(line)
                found.lines = list(lines)
        found.seconds, found.calls = writer.ms / 1000, writer.calls
        if futile >= FUTILE:
            reasons = ", ".join(f"{number} {why}" for why, number in recent.most_common(3))
            found.ended = (
                f"{futile} questions in a row were dropped ({reasons}): {writer.llm.model} may not be up to"
                f" these documents; try another model, other kinds, or write questions by hand"
            )
            break
    progress(len(found.lines), count)
    return found
