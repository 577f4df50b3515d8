"""Checks of this machine, with a fix for each failure, for `doctor` and the health page."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from core.backends.postgres import Connection
from core.backends.web import HOW, SNAPSHOT
from core.corpus import catalogue, served, table
from core.corpus.converted import HOW as INSTALL
from core.corpus.converted import missing
from core.corpus.endings import CONVERTED
from core.corpus.served import dsn_of, server_of
from core.domain import full_set, sign_in
from core.domain.errors import RouteScopeError, Unavailable
from core.domain.format import size
from core.domain.program import COMMAND, INSTALLED, PROJECT, REPAIR
from core.domain.program import version as own_version
from core.domain.settings import Settings
from core.engine.endpoints import EndpointReport
from core.store.files import DAMAGED, free, open_to_write, rescue
from core.store.postgres import Dsn

OLDEST = (0, 8)  # pgvector with iterative scans
CLOCKS_S = 60.0  # seconds that two clocks may differ


LEAST_DISK = 2 * 1024**3
LEAST_FREE = 64 * 1024**2  # bytes of the sessions' file that are worth giving back
FILE = "routescope.sqlite"
FOLDERS = ("cache", "enrichments", "evaluations", "indexes", "learned", "traffic", "uploads")
REACH = "check ROUTESCOPE_LLM_BASE_URL, ROUTESCOPE_LLM and the key"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One finding. `failed`: nothing works without it; `warning`: a part does not work, the rest does."""

    name: str
    state: Literal["ok", "warning", "failed"]
    detail: str
    fix: str | None = None
    corpus: str = ""  # the corpus that has to be built, if that is the fix


Checks = Iterator[HealthCheck]


def _judged(
    name: str, good: bool, detail: str, fix: str | None, state: Literal["warning", "failed"] = "warning"
) -> HealthCheck:
    """Return a finding that is ok, or else in `state` with its fix."""
    return HealthCheck(name, "ok" if good else state, detail, None if good else fix)


def examine(settings: Settings, *, quick: bool, note: Callable[[str], None]) -> Checks:
    """Yield every finding but those of endpoints; without reading all stored runs if `quick`. `note` gets
    the name of each check.
    """
    checks: list[Callable[[Settings], Checks]] = [_python, _packages, _documents, _workers, _program, _disk]
    checks += [sessions, space, _corpora, _sign_in, *([] if quick else [sessions_whole])]
    for check in checks if INSTALLED else [*checks, _browser]:
        name = check.__name__.strip("_").replace("_", " ")
        note(name)
        try:
            yield from check(settings)
        except Exception as error:  # noqa: BLE001 - a doctor that dies of what it examines helps nobody
            why = f"{type(error).__name__}: {error}"
            yield HealthCheck(name, "failed", why, "run again with --debug, or report this")


def _python(_: Settings) -> Checks:
    yield HealthCheck("python", "ok", platform.python_version())


def _packages(_: Settings) -> Checks:
    found = full_set.differing(full_set.LIGHT)
    lacking = [name for name, have in found.items() if have is None]
    other = [f"{name} {have}" for name, have in found.items() if have is not None]
    if lacking:
        yield HealthCheck("packages", "failed", f"not installed: {', '.join(lacking)}", REPAIR)
    told = f"versions differ from the tested ones: {', '.join(other)}"
    if not lacking or other:
        same = f"all {len(full_set.pins(full_set.LIGHT))} are as tested"
        yield _judged("packages", not other, told if other else same, REPAIR)
    lack = f"only the default embedder can be loaded: sentence-transformers is not installed: {full_set.HOW}"
    told = "sentence-transformers is installed" if full_set.complete() else lack
    yield HealthCheck("models by name", "ok", told)


def _sign_in(settings: Settings) -> Checks:
    """Check the sign-in settings in the environment of this command."""
    name, roles = "sign-in", settings.team.roles
    if not settings.login:
        yield HealthCheck(name, "ok", "none: the dashboard listens on this machine alone")
        return
    try:
        sign_in.check(settings, {sign_in.FORWARDED: ""})
    except RouteScopeError as error:
        yield HealthCheck(name, "failed", str(error), "docs/start-team.md shows what a login needs")
        return
    if settings.login == "oidc" and find_spec("authlib") is None:
        fix = f"{sys.executable} -m pip install -r {PROJECT / 'requirements-server.txt'}"
        yield HealthCheck(name, "failed", "the package Authlib is not installed", fix)
        return
    owned = "owner" in roles.values()
    told = f"{settings.login}, {len(roles)} roles, tokens a day: {settings.daily_tokens or 'no limit'}"
    fix = f'add "you@example.org" = "owner" to [team.roles] in {settings.home / "routescope.toml"}'
    yield _judged(name, owned, told if owned else f"{told}; nobody is an owner", fix)


def _documents(_: Settings) -> Checks:
    """Check the libraries for optional document formats."""
    wanted = {"kreuzberg": ", ".join(CONVERTED), "openpyxl": ".xlsx"}
    lacking = [kinds for name, kinds in wanted.items() if missing(name)]
    found = f"{', '.join(lacking)} cannot be read" if lacking else f"{', '.join(wanted.values())} can be read"
    yield HealthCheck("documents", "ok", found + (f"; to read them: {INSTALL}" if lacking else ""))


def _workers(settings: Settings) -> Checks:
    """Check whether Dask workers can be used, and whether the configured scheduler answers."""
    from core.backends.workers.place import INSTALL, checked, installed

    name, scheduler = "workers (Dask)", settings.scheduler
    if not installed():
        told = "not installed: evaluations, sweeps and indexing run in one process"
        yield HealthCheck(name, "warning" if scheduler else "ok", told, f"to use several, run: {INSTALL}")
        return
    found = f"Dask {version('distributed')}: evaluations, sweeps and indexing can use several workers"
    if not scheduler:
        yield HealthCheck(name, "ok", f"{found}; no scheduler is set")
        return
    from core.backends.workers.pool import reached

    try:
        count = reached(checked(scheduler), settings)
    except RouteScopeError as error:
        yield HealthCheck(name, "warning", str(error), "start it, or take the setting scheduler out")
    else:
        told = f"{found}; {scheduler} has {count} {'worker' if count == 1 else 'workers'}"
        yield _judged(name, count > 0, told, f"start some: {COMMAND} worker {scheduler}")


def _program(settings: Settings) -> Checks:
    """Report the program's version and location, and its data folder."""
    how = "installed in" if INSTALLED else "the checkout"
    yield HealthCheck("program", "ok", f"RouteScope {own_version()}, {how} {PROJECT}")
    by = "ROUTESCOPE_HOME" if os.environ.get("ROUTESCOPE_HOME") else "the default; ROUTESCOPE_HOME moves it"
    yield HealthCheck("home", "ok", f"{settings.home} ({by}): runs, indexes, evaluations, settings")


def _disk(settings: Settings) -> Checks:
    for name, folder in {"home": settings.home, "models": settings.models_dir}.items():
        there = next(parent for parent in (folder, *folder.parents) if parent.exists())
        free = shutil.disk_usage(there).free
        fix = "free some space, or set ROUTESCOPE_HOME or ROUTESCOPE_MODELS_DIR to another disk"
        yield _judged(f"disk for {name}", free >= LEAST_DISK, f"{size(free)} free at {folder}", fix)


def sessions(settings: Settings) -> Checks:
    """Check that runs can be stored."""
    if settings.database is not None:
        yield _served(settings.database.get_secret_value())
        return
    file, fix = settings.home / FILE, "make the folder writable, or set ROUTESCOPE_HOME to one that is"
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.home) as probe:
            probe.write(b"x")
        if file.exists():
            with sqlite3.connect(file, timeout=5) as database:
                database.execute("BEGIN IMMEDIATE")
                database.rollback()
    except (OSError, sqlite3.Error) as error:
        fix = rescue(file) if getattr(error, "sqlite_errorname", "").startswith(DAMAGED) else fix
        yield HealthCheck("sessions", "failed", f"{file} cannot be written: {error}", fix)
    else:
        yield HealthCheck("sessions", "ok", f"{file} can be written")


def _served(address: str) -> HealthCheck:
    """Check that runs can be stored in a database server."""
    fix = "correct ROUTESCOPE_DATABASE, or remove it to keep runs in a file"
    try:
        place = Dsn(address)
        with closing(open_to_write(place)) as connection:
            version = connection.execute("SHOW server_version").fetchone()[0]
            (read_only,) = connection.execute("SHOW default_transaction_read_only").fetchone()
    except (RouteScopeError, sqlite3.Error) as error:
        return HealthCheck("sessions", "failed", f"the database cannot be used: {error}", fix)
    if read_only == "on":
        return HealthCheck("sessions", "failed", f"{place} cannot be written: it is read-only", fix)
    return HealthCheck("sessions", "ok", f"{place} can be written (PostgreSQL {version})")


def sessions_whole(settings: Settings) -> Checks:
    """Check that all stored data can be read; takes a second per few hundred megabytes."""
    from core.store.rescue import damage

    if settings.database is not None:
        return  # a server keeps checksums of its own pages
    file = settings.home / FILE
    wrong = damage(file) if file.exists() else None
    detail = f"{file} is damaged: {wrong}" if wrong is not None else f"no damage found in {file}"
    yield _judged("sessions are whole", wrong is None, detail, rescue(file), "failed")


def space(settings: Settings) -> Checks:
    """Report the size of the home folder and how much of it can be freed."""
    used = {name: _bytes(settings.home / name) for name in FOLDERS}
    used["sessions"] = sum(_bytes(path) for path in settings.home.glob(f"{FILE}*"))
    sizes = ", ".join(f"{name} {size(count)}" for name, count in sorted(used.items()) if count)
    unused = free(settings.home / FILE)
    large = unused > LEAST_FREE
    detail = f"{sizes or 'nothing stored yet'} in {settings.home}"
    detail += f"; {size(unused)} of the sessions file is unused" if large else ""
    yield _judged("space", not large, detail, f"free it: {COMMAND} sessions vacuum")


def _bytes(path: Path) -> int:
    """Return the size of a file, or of all files in a folder; 0 if it does not exist."""
    files = [path]
    if path.is_dir():  # walked so that a folder that somebody deletes meanwhile counts nothing
        files = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    count = 0
    for file in files:
        with suppress(FileNotFoundError):
            found = file.lstat()
            count += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return count


def _corpora(settings: Settings) -> Checks:
    from core.corpus import cautions

    for known in catalogue.known(settings):
        name, ready = f"corpus {known.name}", known.state == "ready"
        if known.kind == "table" or (known.info is not None and known.info.place):
            try:
                yield _served_corpus(known, settings)
            except RouteScopeError as error:
                yield HealthCheck(name, "warning", "it cannot be read", str(error))
        else:
            check = _judged(name, ready, known.state, f"run: {COMMAND} index {known.name}")
            yield check if ready else replace(check, corpus=known.name)
        for caution in cautions.of_corpus(known.info) if known.info is not None else ():
            yield HealthCheck(f"{name}: {caution.id}", "warning", caution.text, caution.fix)


def _served_corpus(known: catalogue.Known, settings: Settings) -> HealthCheck:
    """Look at the server of a corpus. Raises Unavailable where it cannot be reached or the corpus is gone."""
    if known.info is None:
        raise Unavailable(known.reason)
    dsn = dsn_of(known.name, known.info.place, settings)
    in_place = known.kind == "table"
    needed = "SELECT" if in_place else "SELECT, INSERT, DELETE"
    named = table.Table(known.name, settings).look().oid if in_place else None
    tables = served.IndexTables(known.name, known.info.fingerprint)

    def read(connection: Connection) -> tuple[Any, ...]:
        built = f"{served.SCHEMA}.{tables.passages}"
        (oid,) = connection.execute(
            "SELECT coalesce(%s, to_regclass(%s)::oid::bigint)", (named, built)
        ).fetchone()
        if oid is None:
            raise Unavailable(f"the tables of corpus {known.name} are no longer in {dsn}; index it again")
        found: tuple[Any, ...] = connection.execute(
            "SELECT current_setting('server_version'), (SELECT extversion FROM pg_extension"
            " WHERE extname = 'vector'), current_user, extract(epoch FROM clock_timestamp())::float8,"
            " has_table_privilege(%s::oid, %s), (SELECT string_agg(DISTINCT am.amname, ', ') FROM pg_index i"
            " JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am am ON am.oid = c.relam"
            " WHERE i.indrelid = %s AND am.amname IN ('hnsw', 'ivfflat') AND i.indisvalid)",
            (oid, needed, oid),
        ).fetchone()
        return found

    version, pgvector, role, clock, may, kinds = server_of(dsn).read(read)
    behind = time.time() - clock
    how = f"by {kinds}" if kinds else "exactly, without an index"
    rights = f"role {role} may{'' if may else ' not'} {'read' if in_place else 'read and write'} it"
    about = f"PostgreSQL {version.split()[0]}, pgvector {pgvector or 'missing'}"
    fixes = []
    if pgvector and tuple(int(part) for part in pgvector.split(".")[:2]) < OLDEST:
        why = f"pgvector {pgvector} has no iterative scan, so filters lose hits"
        fixes.append(f"{why}: ALTER EXTENSION vector UPDATE")
    if not may:
        fixes.append(f"grant the role {role} {needed} on the table")
    if abs(behind) > CLOCKS_S:
        off = f"{abs(behind):.0f} s {'behind' if behind > 0 else 'ahead of'} this machine's"
        fixes.append(f"the server's clock is {off}; set one of them right")
    if in_place and not kinds:
        fixes.append("a table of many rows is searched quicker with an index: CREATE INDEX ... USING hnsw")
    detail = f"{known.state}; {dsn}: {about}; vectors searched {how}; {rights}"
    good = known.state == "ready" and not fixes
    return _judged(f"corpus {known.name}", good, detail, "; ".join(fixes) or known.reason or None)


def of_endpoint(one: EndpointReport, settings: Settings) -> HealthCheck:
    """Return what is known of an endpoint as a finding; without the default embedder nothing works."""
    told = one.error or ", ".join(f"{name} {said}" for name, said in one.facts) or one.state
    where = f"[embedders.{one.name}] in {settings.home / 'routescope.toml'}"
    fixes = {
        "chat model": REACH if one.address != "embedded" else "see the message; routes without a model work",
        "embedder": f"correct {where}" if one.name in settings.embedders else REPAIR,
        "web search": f"run: {COMMAND} index web" if one.address == SNAPSHOT else HOW,
    }
    state: Literal["warning", "failed"] = "failed" if one.name == settings.embedder else "warning"
    detail = f"{one.model} ({one.address}): {told.partition(f': run {COMMAND}')[0]}"
    found = _judged(one.title, one.state != "failed", detail, fixes.get(one.kind, "see the message"), state)
    return replace(found, corpus="web") if one.address == SNAPSHOT and found.fix else found


def _browser(_: Settings) -> Checks:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    detail = found or "no Chromium; only `make test` needs it"
    yield _judged("browser for tests", found is not None, detail, "sudo apt-get install chromium")
