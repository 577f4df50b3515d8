-- The store's file, version 1.
-- Text that UTF-8 cannot hold (lone surrogates) is stored as a BLOB; NaN in a REAL column as the text 'nan'.
CREATE TABLE texts (hash BLOB PRIMARY KEY, text TEXT NOT NULL);
-- `number` keeps the lists in `runs.passages` short; `hash` is of all the other columns
CREATE TABLE passages (
    number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, id TEXT NOT NULL, doc_id TEXT NOT NULL,
    title TEXT NOT NULL, text BLOB NOT NULL REFERENCES texts(hash), start INTEGER NOT NULL,
    end INTEGER NOT NULL);
-- routes: names in order; passages: numbers; history: [[role, hash of text], ...]; deleted: when the run
-- was taken off the list, in seconds since 1970; host, pid, born, saved, boot: the process that writes it
-- while it runs, NULL if it was imported; maker: who asked, '' at the machine itself; private: only the
-- maker sees it
CREATE TABLE runs (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, created TEXT NOT NULL, corpus TEXT NOT NULL,
    fingerprint TEXT NOT NULL, question BLOB NOT NULL REFERENCES texts(hash), history TEXT NOT NULL,
    settings TEXT NOT NULL, status TEXT NOT NULL, wall_ms REAL NOT NULL, routes TEXT NOT NULL,
    passages TEXT NOT NULL, tags TEXT NOT NULL DEFAULT '[]', note TEXT NOT NULL DEFAULT '',
    deleted INTEGER NOT NULL DEFAULT 0, host TEXT, pid INTEGER, born REAL, saved REAL, boot TEXT,
    maker TEXT NOT NULL DEFAULT '', private INTEGER NOT NULL DEFAULT 0);
CREATE INDEX runs_by_time ON runs(created, id) WHERE deleted = 0;
CREATE INDEX runs_by_corpus ON runs(corpus, created, id) WHERE deleted = 0;
CREATE INDEX runs_by_status ON runs(status, created, id) WHERE deleted = 0;
CREATE INDEX runs_tagged ON runs(created, id, tags) WHERE deleted = 0 AND tags <> '[]';
CREATE INDEX runs_deleted ON runs(deleted) WHERE deleted <> 0;
-- nth tells apart results of one route; measured_on is the corpus, NULL if timed on another machine,
-- hits: [[id, score], ...]; recorded: the rest of the result, see `core.store.codec`; spans last, because
-- it is long and lists of results do not read it
CREATE TABLE results (
    run INTEGER NOT NULL REFERENCES runs(number), route TEXT NOT NULL, nth INTEGER NOT NULL,
    measured_on TEXT, title TEXT NOT NULL, status TEXT NOT NULL, ms REAL NOT NULL,
    start_ms REAL NOT NULL, wall_ms REAL NOT NULL, hits TEXT NOT NULL, answer TEXT,
    citations TEXT NOT NULL, abstained TEXT NOT NULL, parameters TEXT NOT NULL, error TEXT,
    recorded TEXT NOT NULL, spans TEXT NOT NULL, PRIMARY KEY (run, route, nth));
CREATE INDEX results_by_route ON results(measured_on, route, run, ms) WHERE status = 'ok';
CREATE INDEX results_by_name ON results(route, run);
-- the lists that spans found, each once a run: routes share most of them
CREATE TABLE rankings (
    run INTEGER NOT NULL REFERENCES runs(number), n INTEGER NOT NULL, hits TEXT NOT NULL,
    PRIMARY KEY (run, n));
CREATE VIRTUAL TABLE search USING fts5(
    question, answers, routes, tags, note, tokenize = 'unicode61 remove_diacritics 2');
-- a process that still has such a run does not write it again; at: seconds since 1970
CREATE TABLE purged (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at REAL NOT NULL);
-- last: the highest number ever given in the session, so that none is given twice
CREATE TABLE memories (session TEXT PRIMARY KEY, last INTEGER NOT NULL, maker TEXT NOT NULL DEFAULT '');
-- the texts are in these rows alone, so that a deletion is one; run: the id of its run, '' if none
CREATE TABLE memory (
    session TEXT NOT NULL REFERENCES memories(session), number INTEGER NOT NULL, run TEXT NOT NULL,
    role TEXT NOT NULL, text TEXT NOT NULL, created TEXT NOT NULL,
    PRIMARY KEY (session, number)) WITHOUT ROWID;
CREATE UNIQUE INDEX memory_of_run ON memory(session, run, role) WHERE run <> '';
-- entries: [{run, question, history: [[role, text], ...], corpus, routes, note}, ...] in their order
CREATE TABLE playlists (name TEXT PRIMARY KEY, entries TEXT NOT NULL, changed TEXT NOT NULL);
-- guidelines: what annotators are told; counts: the grade from which a passage is relevant
CREATE TABLE label_sets (
    name TEXT PRIMARY KEY, corpus TEXT NOT NULL, guidelines TEXT NOT NULL, counts INTEGER NOT NULL,
    created TEXT NOT NULL, deleted INTEGER NOT NULL DEFAULT 0);
-- question: {text, history, mode, split, answers, answerable, sql}; place: its order in the set
CREATE TABLE label_questions (
    label_set TEXT NOT NULL REFERENCES label_sets(name), id TEXT NOT NULL, place INTEGER NOT NULL,
    question TEXT NOT NULL, PRIMARY KEY (label_set, id)) WITHOUT ROWID;
-- the passage as it was when it was found, so that its labels can follow its words to other chunks,
-- found: [[route, rank], ...]
CREATE TABLE label_pool (
    label_set TEXT NOT NULL REFERENCES label_sets(name), question TEXT NOT NULL,
    passage TEXT NOT NULL, doc_id TEXT NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    title TEXT NOT NULL, text BLOB NOT NULL REFERENCES texts(hash), found TEXT NOT NULL,
    PRIMARY KEY (label_set, question, passage)) WITHOUT ROWID;
-- rows are only added: the newest one of an annotator on a passage holds,
-- source: person, model, import or adjudication; kind: grade, cannot, later or withdrawn;
-- left, right, tie or neither of two routes, whose names are then in passage as a JSON array
CREATE TABLE judgements (
    number INTEGER PRIMARY KEY AUTOINCREMENT, label_set TEXT NOT NULL REFERENCES label_sets(name),
    question TEXT NOT NULL, passage TEXT NOT NULL, annotator TEXT NOT NULL, source TEXT NOT NULL,
    kind TEXT NOT NULL, grade INTEGER, note TEXT NOT NULL, created TEXT NOT NULL);
CREATE INDEX judgements_of ON judgements(label_set, question, passage, annotator, number);
-- parameters: {route: {parameter: value}}
CREATE TABLE presets (
    name TEXT PRIMARY KEY, corpus TEXT NOT NULL, parameters TEXT NOT NULL, evidence REAL,
    note TEXT NOT NULL, changed TEXT NOT NULL);
-- about: the name or id of what it was done to; at: ISO 8601, UTC
CREATE TABLE deeds (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, who TEXT NOT NULL, deed TEXT NOT NULL,
    about TEXT NOT NULL);
CREATE INDEX deeds_by_kind ON deeds(deed, about, number);
-- model tokens that each person used by day (ISO 8601, UTC)
CREATE TABLE spent (
    day TEXT NOT NULL, who TEXT NOT NULL, tokens INTEGER NOT NULL, PRIMARY KEY (day, who))
    WITHOUT ROWID;
-- tokens that calls under way may still use, with the process that makes them; saved: seconds since 1970
CREATE TABLE reserved (
    id TEXT PRIMARY KEY, who TEXT NOT NULL, tokens INTEGER NOT NULL, host TEXT, pid INTEGER, born REAL,
    boot TEXT, saved REAL);
-- what was deleted and can be brought back; at: seconds since 1970; content: JSON
CREATE TABLE trash (
    number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL, at REAL NOT NULL,
    content TEXT NOT NULL);
