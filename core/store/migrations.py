"""The store's schema as a list of steps, one a release: a released step is never changed, only followed.

Import this only to migrate: sqlite-utils takes 0.3 s to load, and a file that is up to date does not need it.
"""

from __future__ import annotations

import sqlite3

from sqlite_utils import Database, Migrations

from core.store.schema import APPLICATION, SCHEMA

steps = Migrations("routescope")


def migrate(connection: sqlite3.Connection, applied: Migrations = steps, version: int = SCHEMA) -> None:
    """Bring the file to `version`, all or nothing; safe when several processes open it at once."""
    connection.execute("BEGIN IMMEDIATE")  # sqlite-utils' own BEGIN is deferred, and two writers would clash
    try:
        applied.apply(Database(connection, execute_plugins=False))
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@steps()
def v1_runs(db: Database) -> None:
    """Runs, their results, rankings, passages and texts, and a full-text index over what people search for.

    Text that UTF-8 cannot hold (lone surrogates) is kept as a BLOB; NaN in a REAL column as the text 'nan'.
    """
    for statement in (
        "CREATE TABLE texts (hash BLOB PRIMARY KEY, text TEXT NOT NULL)",
        # `number` keeps the lists in `runs.passages` short; `hash` is of all the other columns
        """CREATE TABLE passages (
            number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, id TEXT NOT NULL, doc_id TEXT NOT NULL,
            title TEXT NOT NULL, text BLOB NOT NULL REFERENCES texts(hash), start INTEGER NOT NULL,
            end INTEGER NOT NULL)""",
        # routes: names in order; passages: numbers; history: [[role, hash of text], ...];
        # host, pid, born, saved: who writes it while it runs, NULL if it was imported
        """CREATE TABLE runs (
            number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, created TEXT NOT NULL, corpus TEXT NOT NULL,
            fingerprint TEXT NOT NULL, question BLOB NOT NULL REFERENCES texts(hash), history TEXT NOT NULL,
            settings TEXT NOT NULL, status TEXT NOT NULL, wall_ms REAL NOT NULL, routes TEXT NOT NULL,
            passages TEXT NOT NULL, tags TEXT NOT NULL DEFAULT '[]', note TEXT NOT NULL DEFAULT '',
            deleted INTEGER NOT NULL DEFAULT 0, host TEXT, pid INTEGER, born REAL, saved REAL)""",
        "CREATE INDEX runs_by_time ON runs(created, id) WHERE NOT deleted",
        "CREATE INDEX runs_by_corpus ON runs(corpus, created, id) WHERE NOT deleted",
        # nth tells apart results of one route; measured_on is the corpus, NULL if timed on another machine;
        # hits: [[id, score], ...]; spans last, because it is long and lists of results do not read it
        """CREATE TABLE results (
            run INTEGER NOT NULL REFERENCES runs(number), route TEXT NOT NULL, nth INTEGER NOT NULL,
            measured_on TEXT, title TEXT NOT NULL, status TEXT NOT NULL, ms REAL NOT NULL,
            start_ms REAL NOT NULL, wall_ms REAL NOT NULL, hits TEXT NOT NULL, answer TEXT,
            citations TEXT NOT NULL, knobs TEXT NOT NULL, error TEXT, spans TEXT NOT NULL,
            PRIMARY KEY (run, route, nth))""",
        "CREATE INDEX results_by_route ON results(measured_on, route, run, ms) WHERE status = 'ok'",
        # the lists that spans found, each once a run: routes share most of them
        """CREATE TABLE rankings (
            run INTEGER NOT NULL REFERENCES runs(number), n INTEGER NOT NULL, hits TEXT NOT NULL,
            PRIMARY KEY (run, n))""",
        """CREATE VIRTUAL TABLE search USING fts5(
            question, answers, routes, tags, note, tokenize = 'unicode61 remove_diacritics 2')""",
    ):
        db.execute(statement)


@steps()
def v2_memory(db: Database) -> None:
    """What is remembered of conversations; the texts are in these rows alone, so that a deletion is one."""
    for statement in (
        # last: the highest number ever given in the session, so that none is given twice
        "CREATE TABLE memories (session TEXT PRIMARY KEY, last INTEGER NOT NULL)",
        # run: the id of the run it was said in, '' if none
        """CREATE TABLE memory (
            session TEXT NOT NULL REFERENCES memories(session), number INTEGER NOT NULL, run TEXT NOT NULL,
            role TEXT NOT NULL, text TEXT NOT NULL, created TEXT NOT NULL,
            PRIMARY KEY (session, number)) WITHOUT ROWID""",
        "CREATE UNIQUE INDEX memory_of_run ON memory(session, run, role) WHERE run <> ''",
    ):
        db.execute(statement)


@steps()
def v3_abstained(db: Database) -> None:
    """Whether an answer says that there is none."""
    db.execute("ALTER TABLE results ADD COLUMN abstained TEXT NOT NULL DEFAULT 'false'")


@steps()
def v4_playlists(db: Database) -> None:
    """Playlists, and indexes by which the list of runs is filtered and its choices are offered."""
    for statement in (
        # entries: [{run, question, history: [[role, text], ...], corpus, routes, note}, ...] in their order
        "CREATE TABLE playlists (name TEXT PRIMARY KEY, entries TEXT NOT NULL, changed TEXT NOT NULL)",
        "CREATE INDEX runs_by_status ON runs(status, created, id) WHERE NOT deleted",
        "CREATE INDEX runs_tagged ON runs(created, id, tags) WHERE NOT deleted AND tags <> '[]'",
        "CREATE INDEX results_by_name ON results(route, run)",
    ):
        db.execute(statement)


@steps()
def v5_labels(db: Database) -> None:
    """Sets that people label, every judgement ever made in them, and named settings of routes.

    Judgements are only ever added: the newest one of an annotator on a passage is the one that holds.
    """
    for statement in (
        # guidelines: what annotators are told; counts: the grade from which a passage is relevant
        """CREATE TABLE label_sets (
            name TEXT PRIMARY KEY, corpus TEXT NOT NULL, guidelines TEXT NOT NULL, counts INTEGER NOT NULL,
            created TEXT NOT NULL, deleted INTEGER NOT NULL DEFAULT 0)""",
        # question: {text, history, mode, split, answers, answerable, sql}; place: its order in the set
        """CREATE TABLE label_questions (
            label_set TEXT NOT NULL REFERENCES label_sets(name), id TEXT NOT NULL, place INTEGER NOT NULL,
            question TEXT NOT NULL, PRIMARY KEY (label_set, id)) WITHOUT ROWID""",
        # the passage as it was when it was found, so that its labels can follow its words to other chunks;
        # found: [[route, rank], ...]
        """CREATE TABLE label_pool (
            label_set TEXT NOT NULL REFERENCES label_sets(name), question TEXT NOT NULL,
            passage TEXT NOT NULL, doc_id TEXT NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
            title TEXT NOT NULL, text BLOB NOT NULL REFERENCES texts(hash), found TEXT NOT NULL,
            PRIMARY KEY (label_set, question, passage)) WITHOUT ROWID""",
        # source: person, model, import or adjudication; kind: grade, cannot, later or withdrawn
        """CREATE TABLE judgements (
            number INTEGER PRIMARY KEY AUTOINCREMENT, label_set TEXT NOT NULL REFERENCES label_sets(name),
            question TEXT NOT NULL, passage TEXT NOT NULL, annotator TEXT NOT NULL, source TEXT NOT NULL,
            kind TEXT NOT NULL, grade INTEGER, note TEXT NOT NULL, created TEXT NOT NULL)""",
        "CREATE INDEX judgements_of ON judgements(label_set, question, passage, annotator, number)",
        # parameters: {route: {parameter: value}}
        """CREATE TABLE presets (
            name TEXT PRIMARY KEY, corpus TEXT NOT NULL, knobs TEXT NOT NULL, evidence REAL,
            note TEXT NOT NULL, changed TEXT NOT NULL)""",
    ):
        db.execute(statement)


@steps()
def v6_recorded(db: Database) -> None:
    """What a result records besides the columns it had: {format, origin, basis, ...}, see `core.store.codec`.

    NULL: written before it, and brought up to date whenever it is read (`core.store.upgrade`).
    """
    db.execute("ALTER TABLE results ADD COLUMN recorded TEXT")


@steps()
def v7_purged(db: Database) -> None:
    """Runs that are deleted for good, and which start of the machine `born` counts from.

    From here on `deleted` is when a run was taken off the list, in seconds since 1970; 1 in earlier files.
    """
    for statement in (
        "CREATE INDEX runs_deleted ON runs(deleted) WHERE deleted",
        # a process that still has such a run does not write it again; at: seconds since 1970
        """CREATE TABLE purged (
            number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at REAL NOT NULL)""",
        "ALTER TABLE runs ADD COLUMN boot TEXT",
    ):
        db.execute(statement)


@steps()
def v8_people(db: Database) -> None:
    """Who asked a run and whether only they see it, whose a remembered session is, who did what, and how many
    model tokens each used by day. '' is whoever was at the machine itself.
    """
    for statement in (
        "ALTER TABLE runs ADD COLUMN maker TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE runs ADD COLUMN private INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE memories ADD COLUMN maker TEXT NOT NULL DEFAULT ''",
        # about: what it was done to, by its name or id; at: ISO 8601, UTC
        """CREATE TABLE deeds (
            number INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, who TEXT NOT NULL, deed TEXT NOT NULL,
            about TEXT NOT NULL)""",
        "CREATE INDEX deeds_by_kind ON deeds(deed, about, number)",
        # day: ISO 8601, UTC
        """CREATE TABLE spent (
            day TEXT NOT NULL, who TEXT NOT NULL, tokens INTEGER NOT NULL, PRIMARY KEY (day, who))
            WITHOUT ROWID""",
    ):
        db.execute(statement)
