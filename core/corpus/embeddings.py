"""The vectors of an index: taken over where a text was embedded before, or comes with its vector; else made,
in steps that are kept.
"""

from __future__ import annotations

import hashlib
import math
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from core.backends import array_files
from core.backends.base import Embedder, Matrix
from core.backends.hosted_embedder import HostedEmbedder, about_tokens
from core.backends.onnx_text import in_bulk
from core.corpus.helpers import Helpers
from core.corpus.types import DenseWeight
from core.domain import system
from core.domain.errors import ModelFailed, NotConfirmed
from core.domain.program import PROJECT
from core.domain.settings import Settings

SHIPPED = PROJECT / "data" / "vectors"
SHIPPED_KEYS, SHIPPED_VECTORS, SHIPPED_WEIGHTS = "keys.npy", "vectors.npy", "dense_weights.json"
_WEIGHTS = TypeAdapter(dict[str, DenseWeight])  # by the fingerprint of the index


def shipped_vectors(identity: str, folder: Path = SHIPPED) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Content keys, shape (n, 16), and unit vectors made by the embedder `identity`, shape (n, dim); none of
    another embedder.
    """
    place = folder / identity
    if "/" in identity or not (place / SHIPPED_KEYS).is_file():
        return np.empty((0, 16), np.uint8), np.empty((0, 0), np.float32)
    stored = np.load(place / SHIPPED_KEYS, allow_pickle=False)
    vectors = np.load(place / SHIPPED_VECTORS, allow_pickle=False).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return stored, vectors


def shipped_weight(identity: str, fingerprint: str, folder: Path = SHIPPED) -> DenseWeight | None:
    """Return the weight measured for an index of documents that come with the program."""
    file = folder / identity / SHIPPED_WEIGHTS
    if "/" in identity or not file.is_file():
        return None
    found = _WEIGHTS.validate_json(file.read_bytes())
    return found.get(fingerprint)


LEAST_S = 0.2  # of a request with many texts
SLOWER = 2.0  # such a request than one with a word
UNPRICED = 1_000_000  # tokens above which a service without a price is asked about first


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of an embedding job."""

    embedder: str
    texts: int
    tokens: int
    cost: float | None  # None without a price
    seconds: float  # extrapolated from one request
    elsewhere: bool  # whether the service may ask money: it is not on this machine

    def __str__(self) -> str:
        """As one sentence."""
        cost = "price unknown" if self.cost is None else f"cost about {self.cost:.2f}"
        long = f"about {math.ceil(self.seconds / 60)} minutes"
        about = f"embedding {self.texts:,} texts (about {self.tokens:,} tokens) with {self.embedder}"
        return f"{about}: {cost}, {'less than a minute' if self.seconds < 60 else long}"

    def above(self, settings: Settings) -> str:
        """Return the limit of the settings that the estimate exceeds, or ""."""
        if self.cost is not None and self.cost > settings.embed_limit_cost:
            return f"above embed_limit_cost ({settings.embed_limit_cost:g})"
        if self.cost is None and self.elsewhere and self.tokens > UNPRICED:
            return f"more than {UNPRICED:,} tokens without a price ([embedders.{self.embedder}] price)"
        if self.seconds > 60 * settings.embed_limit_minutes:
            return f"above embed_limit_minutes ({settings.embed_limit_minutes:g})"
        return ""


Begin = Callable[[Estimate], None]


def estimate(embedder: HostedEmbedder, tokens: int, texts: int) -> Estimate:
    """Estimate the cost and duration of embedding `texts` texts with `tokens` tokens in all."""
    from urllib.parse import urlsplit

    spec = embedder.spec
    requests = max(math.ceil(texts / spec.texts_at_once), math.ceil(tokens / spec.tokens_at_once))
    one = max(LEAST_S, SLOWER * embedder.probe_ms / 1000)
    cost = None if spec.price is None else tokens * spec.price / 1e6
    here = urlsplit(spec.url).hostname in ("localhost", "127.0.0.1", "::1")
    return Estimate(embedder.name, texts, tokens, cost, one * requests / spec.requests_at_once, not here)


def gate(settings: Settings, *, confirmed: bool, told: Begin = lambda _: None, always: bool = False) -> Begin:
    """Make the function that hears an estimate before anything is embedded: it raises NotConfirmed above a
    limit of the settings, or `always`, unless it was `confirmed`.
    """

    def begin(found: Estimate) -> None:
        told(found)
        above = found.above(settings)
        if above and not confirmed:
            raise NotConfirmed(f"{found}; this is {above}. Confirm it: --yes, or the button on the page")
        if always and not confirmed:
            raise NotConfirmed(str(found))

    return begin


VECTORS, KEYS = "vectors.npy", "keys.npy"
KEY_BYTES = 16
STEP = 64  # passages embedded between two looks at Stop and two writes to the checkpoint
BLOCK = 4_096  # vectors written at once
LOOK_S = 0.1  # between two looks at Stop while a service is asked

Keys = NDArray[np.uint8]  # shape (n, KEY_BYTES)
Rows = NDArray[np.intp]
Tick = Callable[[int, int], None]


class Searched(Protocol):
    """Texts to embed, in the order of rows."""

    def texts(self) -> Iterator[str]:
        """All of them."""

    def texts_at(self, rows: Sequence[int]) -> list[str]:
        """Those of `rows`."""


def keys(store: Searched, identity: str) -> Keys:
    """Return a content hash of each passage's text and the embedder, in the order of rows."""
    salt = identity.encode() + b"\0"
    hashes = (hashlib.blake2b(salt + text.encode(), digest_size=KEY_BYTES) for text in store.texts())
    digests = (one.digest() for one in hashes)
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, KEY_BYTES)


def mapped(file: Path) -> Matrix:
    """Return the vectors in a file, shape (n, dim), which stay there."""
    return system.mapped(file)


class Checkpoint:
    """Vectors embedded by a build that has not ended; a torn or damaged end is cut off when it is read."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder = folder
        self._prefix = f"embedded-{hashlib.sha256(identity.encode()).hexdigest()[:12]}-"

    def sound(self) -> Iterator[tuple[Keys, Matrix]]:
        """Yield the embedded part of each file, mapped: keys, shape (n, KEY_BYTES), and their vectors, shape
        (n, dim). A file is truncated at its first damaged record.
        """
        for path in sorted(self._folder.glob(f"{self._prefix}*.part")):
            kind = _record(int(path.stem.rsplit("-", 1)[1]))
            good = _whole(path, kind)
            with path.open("r+b") as file:
                file.truncate(good * kind.itemsize)
            if good:
                read = np.fromfile if system.WINDOWS else np.memmap  # a mapped file could not be deleted
                stored = read(path, kind).view(np.ndarray)
                yield stored["key"], stored["vector"]

    def add(self, new_keys: Keys, vectors: Matrix) -> None:
        """Append vectors, shape (n, dim), under `new_keys`."""
        dim = vectors.shape[1]
        records = np.zeros(len(vectors), _record(dim))
        records["key"], records["vector"] = new_keys, vectors
        records["crc"] = [_crc(key.tobytes(), vector) for key, vector in zip(new_keys, vectors, strict=True)]
        with (self._folder / f"{self._prefix}{dim}.part").open("ab") as file:
            file.write(records.tobytes())

    def clear(self) -> None:
        """Forget the vectors of this embedder: the index that has them stands."""
        for path in self._folder.glob(f"{self._prefix}*.part"):
            path.unlink()


@dataclass(frozen=True, slots=True)
class Vectors:
    """A source of vectors for all passages."""

    name: str
    identity: str  # identifies the embedder's weights
    load: Callable[[], Embedder]  # called only if a text has to be embedded
    former: Sequence[Path]  # indexes with sound vectors
    checkpoint: Checkpoint
    helpers: Helpers | None = None  # embed instead of this process
    elsewhere: Sequence[tuple[Keys, Any]] = ()  # for indexes outside files, their keys with their vectors
    begin: Begin = lambda _estimate: None  # receives the estimated cost before a service is called
    used: list[HostedEmbedder] = field(default_factory=list)  # the service that was asked

    def paid(self) -> dict[str, Any]:
        """Return the tokens reported by the service and their cost; {} if none was called."""
        if not self.used or not self.used[0].tokens:
            return {}
        tokens, price = self.used[0].tokens, self.used[0].spec.price
        return {"tokens": tokens, "cost": None if price is None else round(tokens * price / 1e6, 6)}

    def write(self, store: Searched, folder: Path, tick: Tick) -> tuple[int, int]:
        """Write the vectors of all passages and their keys. Return their dimension and the number of known
        ones.

        Equal texts are embedded once. Disk space is reserved before the first text is embedded. Raises
        OSError if there is no room, ModelFailed, Cancelled.
        """
        wanted = keys(store, self.identity)
        known = self._known()
        missing = np.flatnonzero(~known.has(wanted))
        # of equal texts the first
        waiting = missing[np.sort(np.unique(_sortable(wanted[missing]), return_index=True)[1])]
        dim = self.load().dim if len(waiting) else known.dim(wanted)
        array_files.save(folder / KEYS, wanted)
        with array_files.RowWriter(folder / VECTORS, np.float32, (dim,), len(wanted)) as out:
            for some, vectors in self._embedded(store, waiting, tick):
                self.checkpoint.add(wanted[some], vectors)
            tick(len(waiting), len(waiting))
            if len(waiting):
                known = self._known()
            for start in range(0, len(wanted), BLOCK):
                out.add(known.take(wanted[start : start + BLOCK], dim))
        return dim, len(wanted) - len(missing)

    def _embedded(self, store: Searched, waiting: Rows, tick: Tick) -> Iterator[tuple[Rows, Matrix]]:
        """Yield the rows `waiting`, step by step, with vectors, shape (n, dim); with helpers in any order."""
        if not len(waiting):
            return
        model = self.load()
        if isinstance(model, HostedEmbedder):
            self.used.append(model)
            yield from self._by_service(model, store, waiting, tick)
            return
        steps = [waiting[start : start + STEP] for start in range(0, len(waiting), STEP)]
        if self.helpers is None:
            with in_bulk(model, len(waiting)) as embedder:
                for at, some in enumerate(steps):
                    tick(at * STEP, len(waiting))
                    texts = store.texts_at(some.tolist())
                    yield some, _checked(embedder.embed(texts), texts, embedder)
            return
        batches = ((at, store.texts_at(some.tolist())) for at, some in enumerate(steps))
        done = 0
        tick(0, len(waiting))

        def looked() -> bool:
            """Progress, also while no step ends: raises Cancelled when Stop was pressed."""
            tick(done, len(waiting))
            return False

        for at, vectors in self.helpers.embed(self.name, self.identity, batches, looked):
            yield steps[at], _checked(vectors, steps[at], self.load())
            done += len(steps[at])

    def _by_service(
        self, model: HostedEmbedder, store: Searched, waiting: Rows, tick: Tick
    ) -> Iterator[tuple[Rows, Matrix]]:
        """Ask in requests, some at once; each is given as it comes, so what was paid for is kept."""
        sizes: list[int] = []
        for start in range(0, len(waiting), BLOCK):
            sizes += map(about_tokens, store.texts_at(waiting[start : start + BLOCK].tolist()))
        self.begin(estimate(model, sum(sizes), len(sizes)))
        left = iter([waiting[some] for some in model.batches(sizes)])
        stop, done = threading.Event(), 0
        running: dict[Future[Matrix], Rows] = {}
        problem: BaseException | None = None

        def ask(rows: Rows) -> None:
            texts = store.texts_at(rows.tolist())
            running[pool.submit(model.embed_within, texts, stop)] = rows

        with ThreadPoolExecutor(model.spec.requests_at_once) as pool:
            try:
                tick(0, len(waiting))
                for rows in islice(left, model.spec.requests_at_once):
                    ask(rows)
                while running:
                    for future in wait(running, LOOK_S, FIRST_COMPLETED).done:
                        rows = running.pop(future)
                        if (error := future.exception()) is not None:
                            problem = problem or error
                            continue
                        yield rows, _checked(future.result(), rows, model)
                        done += len(rows)
                        if problem is None:
                            for more in islice(left, 1):
                                ask(more)
                    tick(done, len(waiting))
            finally:
                stop.set()
        if problem is not None:
            raise problem

    def _known(self) -> Known:
        """Collect the known vectors: those shipped with the program, just computed, or in an index."""
        indexes = (_vectors_of(index) for index in self.former if (index / VECTORS).is_file())
        found = [shipped_vectors(self.identity), *self.checkpoint.sound(), *indexes, *self.elsewhere]
        return Known(found)


class Known:
    """Vectors by content key: the keys are held in memory, sorted; vectors stay where they are mapped."""

    def __init__(self, sources: Iterable[tuple[Keys, Matrix]]) -> None:
        """Store sources of keys, shape (n, KEY_BYTES), with their vectors, shape (n, dim)."""
        self._sources = []
        for found, vectors in sources:
            order = np.argsort(_sortable(found), kind="stable")
            self._sources.append((_sortable(found)[order], order, vectors))

    def has(self, wanted: Keys) -> NDArray[np.bool_]:
        """Return the mask of known keys among `wanted`, shape (n,)."""
        known = np.zeros(len(wanted), bool)
        for source in self._sources:
            known |= _rows(source, wanted) >= 0
        return known

    def dim(self, wanted: Keys) -> int:
        """Return the dimension of the vector of the first of `wanted`, or 0 if it is unknown."""
        first = wanted[:1]
        return next((s[2].shape[1] for s in self._sources if len(first) and _rows(s, first)[0] >= 0), 0)

    def take(self, wanted: Keys, dim: int) -> Matrix:
        """Return the vectors of `wanted`, all of which are known, shape (n, dim)."""
        taken = np.empty((len(wanted), dim), np.float32)
        left = np.ones(len(wanted), bool)
        for source in self._sources:
            if source[2].shape[1] != dim:
                continue  # of another model that had the same name
            rows = _rows(source, wanted)
            here = left & (rows >= 0)
            taken[here] = source[2][rows[here]]
            left &= ~here
        if left.any():
            raise ModelFailed(f"{int(left.sum())} vectors have another dimension than the embedder's {dim}")
        return taken


Source = tuple[NDArray[np.bytes_], NDArray[np.intp], Matrix]  # keys in order, their rows, vectors by row


def _rows(source: Source, wanted: Keys) -> NDArray[np.intp]:
    """Return the row of each of `wanted` in a source, -1 for an unknown one."""
    known, order, _ = source
    if not len(known):
        return np.full(len(wanted), -1)
    asked = _sortable(wanted)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.where(known[at] == asked, order[at], -1)


def _sortable(found: Keys) -> NDArray[np.bytes_]:
    """Keys as values that can be sorted, shape (n,). All are as long, so that a zero at the end is no end."""
    return np.ascontiguousarray(found).view(f"S{KEY_BYTES}").reshape(len(found))


def _vectors_of(index: Path) -> tuple[Keys, Matrix]:
    """Return the keys of an index and their vectors, which stay in their mapped file."""
    return np.load(index / KEYS, allow_pickle=False), mapped(index / VECTORS)


def _whole(path: Path, kind: np.dtype[Any]) -> int:
    """Count the undamaged records at the beginning of a file."""
    good, count = 0, path.stat().st_size // kind.itemsize
    with path.open("rb") as file:
        while good < count:
            for record in np.fromfile(file, kind, count=min(BLOCK, count - good)):
                if record["crc"] != _crc(record["key"].tobytes(), record["vector"]):
                    return good
                good += 1
    return good


def _checked(made: Matrix, texts: Sized, embedder: Embedder) -> Matrix:
    vectors = np.asarray(made, np.float32)
    if vectors.shape != (len(texts), embedder.dim) or not np.isfinite(vectors).all():
        raise ModelFailed(f"embedder {embedder.name} gave no usable vectors (shape {vectors.shape})")
    return vectors


def _record(dim: int) -> np.dtype[Any]:
    return np.dtype([("key", np.uint8, (KEY_BYTES,)), ("vector", np.float32, (dim,)), ("crc", np.uint32)])


def _crc(key: bytes, vector: NDArray[np.float32]) -> int:
    return zlib.crc32(vector.tobytes(), zlib.crc32(key))
