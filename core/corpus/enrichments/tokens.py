"""Token vectors of every passage: what late interaction matches a question's tokens with."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.backends import array_files, residuals
from core.backends.base import Matrix
from core.backends.embedder import identity
from core.backends.late import TokenEmbedder, maxsim_joined, token_embedder
from core.backends.onnx_text import in_bulk
from core.corpus.corpus import Corpus
from core.corpus.embeddings import KEYS, keys
from core.corpus.enrichments.keys import Listed
from core.corpus.enrichments.recipe import KeptSteps, Recipe, Tools
from core.corpus.helpers import check
from core.corpus.types import count_unread, unread_notes
from core.domain import system
from core.domain.errors import BadInput, ModelFailed, Unavailable
from core.domain.settings import Settings
from core.domain.text import searchable

VECTORS, IDS, STARTS, FACTS = "vectors.npy", "ids.npy", "starts.npy", "tokens.json"
NEAREST, RESIDUALS, CENTROIDS = "nearest.npy", "residuals.npy", "centroids.npy"  # instead of vectors
STEP = 64  # passages embedded between two looks at Stop; a finished step is kept
FULL = 16  # bits of a component that is kept in full
BLOCK = 16  # passages whose vectors are in memory as float32 at a time, some 3 MB: about a core's cache


def load(settings: Settings) -> TokenEmbedder:
    """Load the token embedder of the settings."""
    return token_embedder(settings.late_model, settings=settings)


class Tokens(Recipe):
    """The vectors of all tokens that count, as 16-bit floats: 2 * dim bytes a token. Or, with `late_bits` 2,
    as residuals: dim / 4 + 2 bytes, and the centroids; see core.backends.residuals.
    """

    name = "tokens"
    title = "token vectors of the passages"
    cost = "one token embedding per passage, about 80 per second, and about 100 kB on disk for each"

    def __init__(self, load: Callable[[Settings], TokenEmbedder] = load) -> None:
        self._load = load

    def model(self, settings: Settings) -> str:
        """Return the token embedder with, for a folder, the state of its files, and residuals if they are
        stored.
        """
        model = identity(settings.late_model)
        return model if settings.late_bits == FULL else f"{model}, {settings.late_bits}-bit residuals"

    def about_bytes(self, characters: int, _passages: int, dim: int, settings: Settings, /) -> int:
        """Four characters a token, as in English text."""
        tokens = characters // 4
        return tokens * 2 * dim if settings.late_bits == FULL else residuals.about_bytes(tokens, dim)

    def make(self, corpus: Corpus, folder: Path, tools: Tools) -> int:
        """Write the vectors and return the number of tokens.

        Passages of an earlier state of the corpus are copied. Each finished step of a stopped build is kept
        next to `folder`, and reused if the same passages are still wanted. Residuals belong to the centroids
        of one state of the corpus: after a change all are computed again. Until then the full vectors are
        kept.
        """
        with tools.stages.stage("load the token model"):
            embedder = self._load(tools.settings)
        texts = [searchable(passage.title, passage.text) for _, passage, _ in corpus.everything()]
        wanted = keys(Listed(texts), f"{embedder.name} {identity(tools.settings.late_model)}")
        with tools.stages.stage("count unread text"):
            unread = count_unread(texts, tools.settings.late_model, tools.stages.tick)
        tools.notes += unread_notes(unread, embedder.name)
        before = next(iter(tools.vectors().former), None)  # a sound index in full that was made before
        former = StoredTokens(before) if before else None
        stored = np.load(before / KEYS, allow_pickle=False) if before else ()
        known = {key.tobytes(): row for row, key in enumerate(stored)}
        missing = [row for row, key in enumerate(wanted) if key.tobytes() not in known]
        kept = KeptSteps(folder.parent / f".{self.name}-unfinished", _read_step)
        rows = [missing[start : start + STEP] for start in range(0, len(missing), STEP)]
        steps = [(wanted[some].tobytes(), [texts[row] for row in some]) for some in rows]
        with tools.stages.stage("embed tokens"):
            if tools.helpers is not None:
                kept.ahead(f"{__name__}:helped", tools.settings.late_model, steps, tools)
            with in_bulk(embedder, len(missing) if tools.helpers is None else 0) as many:
                for at, (content, some) in enumerate(steps):
                    tools.stages.tick(at * STEP, len(missing))
                    kept.made(content, partial(step, many, some))
            tools.stages.tick(len(missing), len(missing))

        def found() -> Iterator[Stored]:
            fresh = (
                one for content, some in steps for one in kept.made(content, partial(step, embedder, some))
            )
            for key in wanted:
                row = known.get(key.tobytes())
                if former is None or row is None:
                    yield next(fresh)
                else:
                    yield former.tokens(row), former.full(row)

        if tools.settings.late_bits == FULL:
            file, dim = folder / VECTORS, embedder.dim
            writing = tools.stages.stage("write token vectors")
            with writing, array_files.RowWriter(file, np.float16, (dim,)) as vectors:
                count = _write_tokens(found(), vectors.add, embedder, folder, {})
            array_files.save(folder / KEYS, wanted)  # a later build copies from here
        else:
            count = _write_residuals(found, embedder, folder, tools)
        shutil.rmtree(kept.folder)
        return count

    def open(self, _corpus: Corpus, folder: Path, settings: Settings, /) -> TokenIndex:
        """Match with them."""
        return TokenIndex(folder, self._load(settings))


class StoredTokens:
    """The stored vectors of all passages in sequence, which stay in their mapped file, and the token of
    each.
    """

    def __init__(self, folder: Path) -> None:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        self.model: str = facts["model"]
        self.dim: int = facts["dim"]
        self._words: list[str] = facts["tokens"]
        self._starts: NDArray[np.int64] = np.load(folder / STARTS, allow_pickle=False)
        self.size = len(self._starts) - 1
        self._ids: NDArray[np.int32] = np.load(folder / IDS, allow_pickle=False)
        self._codec: residuals.Codec | None = None
        if facts.get("bits", FULL) == FULL:
            self._vectors = system.mapped(folder / VECTORS)
        else:
            cutoffs, weights = (np.array(facts[name], np.float32) for name in ("cutoffs", "weights"))
            centroids = np.load(folder / CENTROIDS, allow_pickle=False)
            self._codec = residuals.Codec(centroids, cutoffs, weights)
            self._nearest = system.mapped(folder / NEAREST)
            self._residuals = system.mapped(folder / RESIDUALS)

    def _of(self, row: int) -> slice:
        return slice(self._starts[row], self._starts[row + 1])

    def read(self, row: int, out: Matrix) -> None:
        """Put the vectors of a passage into `out`, shape (tokens, dim)."""
        if self._codec is None:
            array_files.single(self.full(row), out)
        else:
            self._codec.decode(self._nearest[self._of(row)], self._residuals[self._of(row)], out)

    def full(self, row: int) -> NDArray[np.float16]:
        """Return the vectors of a passage, shape (tokens, dim), where they are stored in full."""
        return self._vectors[self._of(row)]

    def length(self, row: int) -> int:
        """Count the vectors of a passage."""
        return int(self._starts[row + 1] - self._starts[row])

    def tokens(self, row: int) -> tuple[str, ...]:
        """Return the tokens of a passage that the rows of its vectors represent."""
        return tuple(self._words[at] for at in self._ids[self._of(row)].tolist())


class TokenIndex(StoredTokens):
    """Exact MaxSim over the stored token vectors; safe in threads.

    A component stored in full is off by at most 2**-11 of itself, or 2**-25 where it is tiny. As vectors have
    length 1, a cosine is off by at most e = 2**-11 + sqrt(dim) * 2**-25, and a score by e for each token of
    the question. Of residuals MaxSim is exact over what they decompress to.
    """

    def __init__(self, folder: Path, embedder: TokenEmbedder) -> None:
        """Open what `Tokens` made in `folder`; Unavailable when `embedder` is of another kind."""
        super().__init__(folder)
        self.name, self.embed_query = embedder.name, embedder.embed_query
        self._rooms: list[Matrix] = []  # at most one
        if (embedder.name, embedder.dim) != (self.model, self.dim):
            raise Unavailable(
                f"the token vectors in {folder} are by {self.model} ({self.dim} dimensions),"
                f" not by {embedder.name} ({embedder.dim}); build them again,"
                " or set ROUTESCOPE_LATE_MODEL back"
            )

    def of(self, rows: Sequence[int]) -> list[Matrix]:
        """Return the vectors of the passages in `rows`, each (tokens, dim), float32."""
        found = [np.empty((self.length(row), self.dim), np.float32) for row in rows]
        for row, vectors in zip(rows, found, strict=True):
            self.read(row, vectors)
        return found

    def stored(self, rows: Sequence[int]) -> list[Matrix] | list[NDArray[np.float16]]:
        """Return the vectors of the passages in `rows`, each (tokens, dim): in half precision if stored that
        way, else as from `of`.
        """
        return self.of(rows) if self.compressed else [self.full(row) for row in rows]

    @property
    def compressed(self) -> str:
        """Describe the compression of the vectors; "" if they are stored in full."""
        codec = self._codec
        return f"{residuals.BITS}-bit residuals of {len(codec.centroids):,} centroids" if codec else ""

    def scores(
        self, query: Matrix, rows: Sequence[int] | None = None, check: Callable[[], object] = lambda: None
    ) -> NDArray[np.float32]:
        """MaxSim of a question's vectors (q, dim) with each of `rows`, or with the whole corpus, shape (n,).

        `check` is called every BLOCK passages and may raise.
        Source: Khattab & Zaharia 2020, "ColBERT", arXiv:2004.12832, section 3.3.
        """
        if query.shape[1] != self.dim:
            raise BadInput(f"token vectors of {query.shape[1]} dimensions; {self.name} has {self.dim}")
        wanted = range(self.size) if rows is None else rows
        scores = np.zeros(len(wanted), np.float32)
        blocks = [wanted[start : start + BLOCK] for start in range(0, len(wanted), BLOCK)]
        with self._room(max((sum(map(self.length, some)) for some in blocks), default=0)) as room:
            for at, some in enumerate(blocks):
                check()
                lengths, end = list(map(self.length, some)), 0
                for row, length in zip(some, lengths, strict=True):
                    begin, end = end, end + length
                    self.read(row, room[begin:end])
                scores[at * BLOCK : at * BLOCK + len(some)] = maxsim_joined(query, room[:end], lengths)
        return scores

    @contextmanager
    def _room(self, count: int) -> Iterator[Matrix]:
        """Memory for `count` vectors or more. It is kept for the next question: to ask the system for it
        takes a tenth of the time that the vectors take.
        """
        room = self._rooms.pop() if self._rooms else np.empty((0, self.dim), np.float32)
        if len(room) < count:
            room = np.empty((count, self.dim), np.float32)
        yield room
        self._rooms[:] = [room]


Stored = tuple[tuple[str, ...], NDArray[np.float16]]  # a passage's tokens and vectors


def _read_step(file: Path) -> list[Stored]:
    """Return the passages of a step in order, checked by the file's own checksums."""
    with np.load(file, allow_pickle=False) as stored:
        vectors, counts, tokens = stored["vectors"], stored["counts"], stored["tokens"]
    words = json.loads(tokens.tobytes())
    parts = np.split(vectors, np.cumsum(counts)[:-1])
    return [(tuple(some), part) for some, part in zip(words, parts, strict=True)]


def step(embedder: TokenEmbedder, texts: Sequence[str]) -> bytes:
    """Return the token vectors of some passages, as a file for storage. Raises ModelFailed."""
    found = embedder.embed_passages(texts)
    vectors = np.concatenate([one.vectors for one in found])
    if len(found) != len(texts) or not np.isfinite(vectors).all():
        raise ModelFailed(f"{embedder.name} gave no usable token vectors (shape {vectors.shape})")
    file = io.BytesIO()
    np.savez(
        file,
        vectors=vectors.astype(np.float16),
        counts=[len(one.vectors) for one in found],
        tokens=np.frombuffer(json.dumps([one.tokens for one in found]).encode(), np.uint8),
    )
    return file.getvalue()


def helped(settings: Settings, payload: Mapping[str, Any]) -> bytes:
    """Compute `step` of some texts in a worker. Raises Unavailable if the worker has another model."""
    check(payload["name"], payload["identity"])
    return step(load(settings), payload["texts"])


def _write_residuals(
    found: Callable[[], Iterator[Stored]], embedder: TokenEmbedder, folder: Path, tools: Tools
) -> int:
    """Write residuals instead of vectors; `found` is iterated three times."""
    with tools.stages.stage("find centroids"):
        count = sum(len(vectors) for _, vectors in found())
        wanted = residuals.sample(count)
        chosen, begin = [np.empty((0, embedder.dim), np.float32)], 0
        for _, vectors in found():
            tools.stages.tick(begin, count)
            first, last = np.searchsorted(wanted, [begin, begin + len(vectors)])
            chosen.append(array_files.single(vectors)[wanted[first:last] - begin])
            begin += len(vectors)
        codec = residuals.Codec.train(np.concatenate(chosen), count)
    array_files.save(folder / CENTROIDS, codec.centroids)
    facts = {"bits": residuals.BITS, "cutoffs": codec.cutoffs.tolist(), "weights": codec.weights.tolist()}
    packed_bytes = -(-embedder.dim // residuals.IN_A_BYTE)
    done, waiting = 0, list[NDArray[np.float16]]()  # many at once: a product of a few rows is slow
    with (
        tools.stages.stage("write residuals"),
        array_files.RowWriter(folder / NEAREST, np.uint16) as nearest,
        array_files.RowWriter(folder / RESIDUALS, np.uint8, (packed_bytes,)) as left,
    ):

        def encode() -> None:
            nonlocal done
            tools.stages.tick(done, count)
            done += sum(map(len, waiting))
            numbers, packed = codec.encode(array_files.single(np.concatenate(waiting)))
            nearest.add(numbers)
            left.add(packed)
            waiting.clear()

        def add(vectors: NDArray[np.float16]) -> None:
            waiting.append(vectors)
            if sum(map(len, waiting)) >= residuals.ENCODED:
                encode()

        written = _write_tokens(found(), add, embedder, folder, facts)
        if waiting:
            encode()
        return written


def _write_tokens(
    found: Iterator[Stored],
    add: Callable[[NDArray[np.float16]], None],
    embedder: TokenEmbedder,
    folder: Path,
    facts: Mapping[str, Any],
) -> int:
    """Give the vectors of each passage to `add` and write the rest; returns the number of tokens."""
    numbers: dict[str, int] = {}
    starts = [0]
    with array_files.RowWriter(folder / IDS, np.int32) as ids:
        for tokens, rows in found:
            add(rows)
            ids.add(np.array([numbers.setdefault(token, len(numbers)) for token in tokens], np.int32))
            starts.append(starts[-1] + len(rows))
    array_files.save(folder / STARTS, np.array(starts, np.int64))
    told = {"model": embedder.name, "dim": embedder.dim, "tokens": list(numbers), **facts}
    (folder / FACTS).write_text(json.dumps(told), encoding="utf-8")
    return starts[-1]
