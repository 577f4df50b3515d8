"""A corpus in PostgreSQL, built there or a table in place, beside the same corpus in files."""

import json
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.backends import fusion_weights, pgvector, postgres
from core.backends.pgvector import PgVectorIndex
from core.cli import main
from core.corpus import catalogue, index, manifest, served, table
from core.corpus.browse import browse
from core.domain import settings as settings_module
from core.domain.errors import BadInput, Cancelled, Unavailable
from core.domain.filters import Filter
from core.domain.needs import Need
from core.domain.postgres import Dsn
from core.domain.settings import CorpusSettings, Settings
from core.domain.types import Query
from core.engine import doctor
from core.engine import engine as engine_module
from core.engine.availability import missing, why_not
from core.engine.request import Request
from core.engine.resources import Resources
from core.routes.registry import routes
from tests.fakes import FakeEngine, HashEmbedder
from tests.postgres_server import fresh, server
from tests.unit.evaluation.test_store_postgres import Restarted
from tests.until import until

pytestmark = pytest.mark.postgres
WORDS = ["refund", "parcel", "customs", "label", "duty", "glass", "textile", "warehouse", "barcode", "return"]
QUESTIONS = ("refund of a parcel", "customs duty", "return the barcode label", "nothing known")


def documents(folder, count=120):
    """A file of rows with equal texts under several ids, so that scores are equal, and odd characters."""
    rng = np.random.default_rng(3)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "id": f"d{n % 97:03}-{n}",
            "title": f"Title {n % 5}",
            "text": " ".join(rng.choice(WORDS[: 3 + n % 7], 6)),
        }
        | {"year": str(1990 + n % 20), "part": "usual" if n % 20 else "rare"}
        for n in range(count)
    ]
    odd = {"id": "odd", "title": "Odd 'quotes' \\ and %s", "text": "a NUL \0 here; DROP TABLE x; -- refund"}
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, [*lines, odd])))
    return folder


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Changes are seen at once, and texts embedded by their words."""
    for module in (catalogue, table):
        monkeypatch.setattr(module, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(index, "load_embedder", lambda _name, *, settings: HashEmbedder())


def made(home, exact_below=50_000, **corpora):
    return Settings(home=home, embedder="hash", exact_below=exact_below, corpora=corpora)


def build(settings, folder, dsn, name="kept", **more):
    """As `index FOLDER --in DSN --name NAME`."""
    source = catalogue.source(str(folder), settings=settings, name=name)
    place = served.remember(dsn) if dsn else ""
    return index.build(None, replace(source, place=place), settings=settings, **more)


def as_table(dsn, corpus):
    """The passages and vectors of a corpus in a table of somebody's own."""
    columns = "key text PRIMARY KEY, headline text, body text, embedding vector(64), year int, info jsonb"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(f"CREATE TABLE articles ({columns})")
        for row, p, meta in corpus.everything():
            values = [p.id, p.title, p.text.replace("\0", " "), str(corpus.vectors([row])[0].tolist())]
            values += [meta.get("year", "1900"), json.dumps(dict(meta))]
            connection.execute("INSERT INTO articles VALUES (%s, %s, %s, %s, %s, %s)", values)
        connection.execute("SELECT pg_stat_force_next_flush()")


def spec(dsn, **changed):
    names = {"table": "articles", "id": "key", "title": "headline", "text": "body", "vector": "embedding"}
    return CorpusSettings(**{"dsn": dsn, **names, "metadata": ["year", "info"], **changed})


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """The same passages with the same vectors: in files, built in PostgreSQL, and a table in place."""
    base = tmp_path_factory.mktemp("kinds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "load_embedder", lambda _name, *, settings: HashEmbedder())
        patch.setattr(table, "LOOK_AGAIN_S", 0.0)
        dsn, folder = fresh(), documents(base / "beir")
        local = build(made(base / "home"), folder, None, "local")
        as_table(dsn, local)
        settings = made(base / "home", articles=spec(dsn))
        build(settings, folder, dsn)
        names = ("local", "kept", "articles")
        found = {name: index.open_corpus(name, settings=settings) for name in names}
    return SimpleNamespace(settings=settings, dsn=dsn, folder=folder, **found)


def plan(nearest, vector):
    """Return the server's query plan of a search by vector."""
    statement, values, settings = nearest._statement(vector, 10, False, 0, ())
    return str(nearest._fetched(pgvector.composed("EXPLAIN {}", statement), values, settings))


def ranked(hits):
    return [(hit.passage.id, hit.score) for hit in hits]


@hypothesis_settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(-3, 3), min_size=64, max_size=64), st.integers(1, 130))
def test_rankings_by_vectors_are_those_of_the_local_exact_search(kinds, numbers, k):
    """To the last bit of the scores, with many of them equal."""
    vector = np.array(numbers, np.float32)
    vector /= max(1e-9, float(np.linalg.norm(vector)))
    wanted = ranked(kinds.local.search_dense(vector, k, exact=True))
    assert ranked(kinds.kept.search_dense(vector, k)) == wanted
    assert ranked(kinds.kept.search_dense(vector, k, exact=True)) == wanted


@pytest.mark.parametrize("kind", ["kept", "articles"])
def test_what_is_read_is_what_files_hold(kinds, kind):
    local, other = kinds.local, getattr(kinds, kind)
    rows = list(range(local.size))
    assert other.size == local.size
    theirs, ours = (
        [(row, p.id, p.title, p.text.replace("\0", " ")) for row, p, _ in one.everything()]
        for one in (other, local)
    )
    assert theirs == ours
    assert [p.id for p in other.passages(rows)] == [p.id for p in local.passages(rows)]
    assert [other.row(p.id) for p in local.passages(rows)] == rows
    assert np.allclose(other.vectors(rows), local.vectors(rows), atol=1e-6)
    first = local.passages([5])[0]
    assert other.by_ids([first.id, "unknown"]).keys() == {first.id}
    with pytest.raises(BadInput, match="no passage 'unknown'"):
        other.row("unknown")
    with pytest.raises(BadInput, match="no document 'unknown'"):
        other.document("unknown")
    assert other.lengths()[0] == local.lengths()[0]
    assert other.bm25("refund", rows[:9]).tolist() == local.bm25("refund", rows[:9]).tolist()
    assert other.explain("refund parcel", first.id) == local.explain("refund parcel", first.id)
    assert [id for near in other.neighbours([0, 3], 3) for id, _ in near]
    theirs, ours = (browse(one, start=100, limit=50).passages for one in (other, local))
    assert [p.id for p in theirs] == [p.id for p in ours]
    if kind == "articles":
        assert [one.passages for one in other.documents(holding="d00", limit=4)] == [1] * 4
        return
    assert other.documents(after="d050", limit=7) == local.documents(after="d050", limit=7)
    for one in local.documents(limit=1_000):
        assert other.document(one.id) == local.document(one.id)
    assert other.spanning("odd", 0, 5) == local.spanning("odd", 0, 5)


def test_every_model_free_route_runs_over_each_kind_and_ranks_alike(kinds, tmp_path):
    engine = FakeEngine(tmp_path, embedder="hash")
    for name in ("local", "kept", "articles"):
        engine.fakes[name] = getattr(kinds, name)
    names = ("bm25", "dense", "hybrid_rrf", "hybrid_linear", "mmr", "dedupe", "confidence")
    for text in QUESTIONS:
        found = {}
        for corpus in ("local", "kept", "articles"):
            run = engine.start(Request(Query(text), corpus, names)).wait(60)
            assert {one.route: one.status for one in run.results} == dict.fromkeys(names, "ok")
            found[corpus] = {one.route: [hit.passage.id for hit in one.hits] for one in run.results}
        assert found["kept"] == found["local"]
        assert found["articles"]["bm25"] == found["local"]["bm25"]


def test_full_text_is_its_own_route_and_not_bm25(kinds, tmp_path):
    hits = kinds.kept.search_full_text("refund parcel", 20)
    tables = served.IndexTables("kept", kinds.kept.fingerprint)
    with psycopg.connect(kinds.dsn) as connection:
        wanted = connection.execute(
            f"SELECT id, ts_rank_cd(words, 'refund | parcel')::float8 FROM {served.SCHEMA}.{tables.passages}"
            " WHERE words @@ 'refund | parcel' ORDER BY 2 DESC, row LIMIT 20"
        ).fetchall()
    assert ranked(hits) == wanted
    for nothing in ("the of", "it's \\ '' & | !"):
        assert kinds.kept.search_full_text(nothing, 5) == ()
    with pytest.raises(Unavailable, match=r"corpus local is in files.*index local --in postgresql://"):
        kinds.local.search_full_text("refund", 5)
    engine = FakeEngine(tmp_path)
    engine.fakes["kept"] = kinds.kept
    run = engine.start(Request(Query("refund parcel"), "kept", ("full_text",))).wait(60)
    assert [hit.passage.id for hit in run.results[0].hits][:20] == [hit.passage.id for hit in hits]


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        (Filter("year", "=", ("1995",)), lambda meta: meta.get("year") == "1995"),
        (Filter("year", "<", ("1993",)), lambda meta: "year" in meta and int(meta["year"]) < 1993),
        (Filter("year", ">=", ("2008",)), lambda meta: "year" in meta and int(meta["year"]) >= 2008),
        (Filter("part", "in", ("rare", "none")), lambda meta: meta.get("part") == "rare"),
        (Filter("part", "~", ("AR",)), lambda meta: "ar" in meta.get("part", "")),
        (Filter("part", "~", ("%",)), lambda _meta: False),
        (Filter("part", "!~", ("ar",)), lambda meta: "ar" not in meta.get("part", "")),
        (Filter("part", "!=", ("rare",)), lambda meta: meta.get("part") != "rare"),
        (Filter("part", ">", ("rare",)), lambda meta: meta.get("part", "") > "rare"),
    ],
)
@pytest.mark.parametrize("kind", ["kept", "articles"])
def test_a_filter_lets_through_what_it_says_and_all_of_it(kinds, kind, condition, meant):
    if kind == "articles" and condition.field == "year" and condition.operator == "<":
        condition = Filter("year", "<=", ("1992",))  # a typed column, where 1900 stands for none
    corpus = getattr(kinds, kind)
    wanted = {p.id for _, p, meta in kinds.local.everything() if meant(meta)}
    if kind == "articles" and condition.operator == "<=":
        wanted.add("odd:0-37")
    vector = HashEmbedder().embed_query("refund parcel")
    found = corpus.search_dense(vector, 500, where=[condition])
    assert {hit.passage.id for hit in found} == wanted
    words = {hit.passage.id for hit in corpus.search_full_text("refund parcel customs", 500, [condition])}
    assert words <= wanted
    assert {p.id for row, p, _ in corpus.everything() if corpus.allowed([condition])[row]} == wanted
    sparse = {hit.passage.id for hit in corpus.search_sparse("refund parcel customs", 500, where=[condition])}
    assert sparse == {h.passage.id for h in kinds.local.search_sparse("refund parcel customs", 500)} & wanted


def test_filters_that_cannot_be_met_are_said(kinds):
    vector = HashEmbedder().embed_query("refund")
    assert kinds.kept.search_dense(vector, 5, where=[Filter("no'such", "=", ("1",))]) == ()
    with pytest.raises(BadInput, match="cannot compare these values"):
        kinds.articles.search_dense(vector, 5, where=[Filter("year", "=", ("soon",))])
    with pytest.raises(BadInput, match="no metadata 'yaer'; known: part, year"):
        kinds.local.search_dense(vector, 5, where=[Filter("yaer", "=", ("1995",))])
    with pytest.raises(BadInput, match="not by 'LIKE'"):
        Filter("year", "LIKE", ("1",))


@pytest.mark.slow
def test_a_graph_has_its_recall_told_its_effort_turned_and_filters_kept(tmp_path):
    dsn = fresh()
    folder = documents(tmp_path / "beir", 1_200)
    settings = made(tmp_path / "home", exact_below=100)
    corpus = build(settings, folder, dsn)
    assert corpus.info.vector_index == "hnsw"
    assert 0.5 < corpus.info.recall <= 1.0
    nearest = corpus._nearest()
    assert isinstance(nearest, PgVectorIndex)
    vector = HashEmbedder().embed_query("refund parcel customs")
    assert "Index Scan" in plan(nearest, vector)
    low = nearest.recall(range(0, 1_200, 24), 50, effort=1)
    high = nearest.recall(range(0, 1_200, 24), 50, effort=1_000)
    assert high >= low
    assert high > 0.9
    rare = [Filter("part", "=", ("rare",))]
    assert len(corpus.search_dense(vector, 50, where=rare)) == 50  # one in twenty meets it
    known = catalogue.describe("kept", settings)
    assert (known.state, known.info.recall) == ("ready", corpus.info.recall)


def test_the_command_builds_it_and_no_password_is_kept_or_shown(tmp_path, monkeypatch, capsys):
    dsn = fresh().replace("postgres:@", "postgres:s3cret-w0rd@")  # the server trusts; the address has one
    settings = made(tmp_path / "home")
    monkeypatch.setattr(settings_module, "current", lambda: settings)
    engine = FakeEngine(tmp_path / "home", embedder="hash")
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
    shown = []

    def call(*args):
        code = main(list(args))
        shown.extend(capsys.readouterr())
        return code, shown[-2]

    code, out = call("index", str(documents(tmp_path / "beir")), "--in", dsn, "--name", "team", "--json")
    document = json.loads(out)
    assert (code, document["place"][:22]) == (0, "postgresql://postgres@")
    again = json.loads(call("index", "team", "--json")[1])  # refreshed where it is
    assert (again["place"], again["fingerprint"]) == (document["place"], document["fingerprint"])
    assert call("corpora")[0] == 0
    assert "pgvector" in call("doctor", "--quick")[1]
    kept = b"".join(file.read_bytes() for file in (tmp_path / "home").rglob("*") if file.is_file())
    assert not any("s3cret-w0rd" in text for text in (*shown, kept.decode("latin1")))
    assert not (tmp_path / "home" / "indexes" / "team" / document["fingerprint"] / manifest.PASSAGES).exists()
    assert call("index", "team", "--in", "files")[0] == 0
    assert manifest.read(catalogue.current("team", settings).folder)[0].place == ""
    with psycopg.connect(dsn) as connection:
        assert connection.execute(f"SELECT count(*) FROM {served.SCHEMA}.indexes").fetchone() == (0,)


def count_embedded(monkeypatch):
    embedded, plain = [], HashEmbedder.embed
    count = lambda self, texts: embedded.extend(texts) or plain(self, texts)  # noqa: E731
    monkeypatch.setattr(HashEmbedder, "embed", count)
    return embedded


def test_a_changed_source_embeds_only_what_is_new_and_leaves_one_index(tmp_path, monkeypatch):
    dsn, folder = fresh(), documents(tmp_path / "beir")
    settings = made(tmp_path / "home")
    before = build(settings, folder, dsn)
    embedded = count_embedded(monkeypatch)
    second = build(made(tmp_path / "two"), folder, dsn)
    assert (second.fingerprint, embedded) == (before.fingerprint, []), "a second home takes it over"
    assert ranked(second.search_sparse("refund", 9)) == ranked(before.search_sparse("refund", 9))
    with (folder / "rows.jsonl").open("a") as file:
        file.write("\n" + json.dumps({"id": "zz", "title": "New", "text": "quite another text"}))
    after = index.build("kept", "kept", settings=settings)
    assert embedded == ["New quite another text"]
    assert (after.size, after.info.reused) == (before.size + 1, before.size)
    left = f"SELECT tablename FROM pg_tables WHERE schemaname = '{served.SCHEMA}'"
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert len(connection.execute(left).fetchall()) == 3
        index.remove("kept", settings=settings)
        assert connection.execute(left).fetchall() == [("indexes",)]


def nothing_left(dsn):
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT to_regclass(%s)", (f"{served.SCHEMA}.indexes",)).fetchone()[0]
        return found is None or connection.execute(f"SELECT count(*) FROM {found}").fetchone() == (0,)


def full_disk(dsn):
    """Have the first statement CREATE INDEX of a build end with a real error of the server."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION broken() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN"
            " RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
        )
        when = "ON ddl_command_end WHEN TAG IN ('CREATE INDEX')"
        connection.execute(f"CREATE EVENT TRIGGER broken {when} EXECUTE FUNCTION broken()")


def lose_connections(dsn):
    with psycopg.connect(dsn, autocommit=True) as other:
        ours = "FROM pg_stat_activity WHERE application_name = 'routescope corpus'"
        other.execute(f"SELECT pg_terminate_backend(pid) {ours}")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("full disk", r"no room left on its disk.*Nothing was stored"),
        ("connection lost", r"connection to postgresql://postgres@.* was lost"),
        ("stopped", ""),
    ],
)
def test_what_ends_a_build_leaves_nothing_and_the_next_one_stands(tmp_path, monkeypatch, how, said):
    dsn, folder = fresh(), documents(tmp_path / "beir")
    settings, stop = made(tmp_path / "home"), threading.Event()
    if how == "full disk":
        full_disk(dsn)

    def progress(stage, _done, _total):
        if how == "stopped" and stage == "send to PostgreSQL":
            stop.set()
        elif how == "connection lost" and stage == "index words in PostgreSQL":
            lose_connections(dsn)

    with pytest.raises((Unavailable, Cancelled), match=said) as ended:
        build(settings, folder, dsn, progress=progress, cancel=stop)
    assert (isinstance(ended.value, Cancelled), "\n" in str(ended.value)) == (how == "stopped", False)
    assert nothing_left(dsn)
    assert catalogue.names(settings) == []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP EVENT TRIGGER IF EXISTS broken")
    embedded = count_embedded(monkeypatch)
    assert build(settings, folder, dsn).size == 121
    assert embedded == [], "what was embedded before is not embedded again"


def test_a_search_whose_connections_were_lost_is_done_again(kinds):
    vector = HashEmbedder().embed_query("refund")
    before = ranked(kinds.kept.search_dense(vector, 10))
    lose_connections(kinds.dsn)
    assert ranked(kinds.kept.search_dense(vector, 10)) == before


def test_stop_ends_a_statement_that_takes_long(tmp_path):
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    opened = postgres.PostgresServer(Dsn(fresh()))
    with pytest.raises(Cancelled), opened.writing(stop) as connection:
        connection.execute("SELECT pg_sleep(300)")


def test_tables_that_are_gone_are_told_with_the_way_out(tmp_path):
    dsn, folder = fresh(), documents(tmp_path / "beir")
    settings = made(tmp_path / "home")
    build(settings, folder, dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {served.SCHEMA} CASCADE")
    with pytest.raises(Unavailable, match=r"no longer in postgresql://.*index kept"):
        index.open_corpus("kept", settings=settings)
    assert index.build("kept", "kept", settings=settings).size == 121


# a table in place: what is wrong with it is one clear line


@pytest.fixture
def place(tmp_path):
    """A database with a small table, and what reads it."""
    dsn = fresh()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE TABLE articles (key text, headline text, body text, embedding vector(64))")
        for number, text in enumerate(("refund of a parcel", "customs duty", "glass")):
            vector = str(HashEmbedder().embed([text])[0].tolist())
            connection.execute("INSERT INTO articles VALUES (%s, '', %s, %s)", (f"a{number}", text, vector))
        connection.execute("SELECT pg_stat_force_next_flush()")

    def run(*statements, **changed):
        with psycopg.connect(dsn, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.execute("SELECT pg_stat_force_next_flush()")
        given = {"metadata": (), **changed}
        address = given.pop("dsn", dsn)
        return made(tmp_path / "home", articles=spec(address, **given))

    run.dsn = dsn
    return run


def test_a_table_without_an_index_is_searched_exactly_and_says_so(place):
    corpus = index.open_corpus("articles", settings=place())
    assert corpus.info.vector_index == "flat"
    assert any("has no index" in note and "USING hnsw" in note for note in corpus.info.notes)
    assert corpus.search_dense(HashEmbedder().embed_query("customs duty"), 1)[0].passage.id == "a1"
    facts = doctor._served_corpus(catalogue.describe("articles", place()), place())
    assert "exactly, without an index" in facts.detail
    assert "CREATE INDEX" in facts.fix


@pytest.mark.parametrize("operators", ["vector_cosine_ops", "vector_ip_ops", "vector_l2_ops"])
def test_an_index_of_the_tables_own_is_used_whatever_it_compares_by(place, operators):
    settings = place(f"CREATE INDEX ON articles USING hnsw (embedding {operators})")
    corpus = index.open_corpus("articles", settings=settings)
    assert corpus.info.vector_index == "hnsw"
    assert corpus.info.recall == 1.0
    vector = HashEmbedder().embed_query("customs duty")
    assert "Index Scan" in plan(corpus._nearest(), vector)
    assert corpus.search_dense(vector, 1)[0].passage.id == "a1"


def test_an_index_of_words_of_the_tables_own_is_used(place, monkeypatch):
    monkeypatch.setattr(table, "WORDS_UP_TO", 0)
    with pytest.raises(Unavailable, match="no index of words: CREATE INDEX ON articles USING gin"):
        index.open_corpus("articles", settings=place()).search_full_text("customs", 3)
    settings = place("CREATE INDEX ON articles USING gin (to_tsvector('english', body))")
    corpus = index.open_corpus("articles", settings=settings)
    assert [hit.passage.id for hit in corpus.search_full_text("custom", 3)] == ["a1"]


def test_over_a_large_table_what_needs_bm25_says_so_before_and_when_it_is_asked(place, monkeypatch, tmp_path):
    settings, names = place(), ("dense", "full_text", "bm25", "hybrid_rrf")
    monkeypatch.setattr(table, "BM25_UP_TO", 2)
    gaps = missing(Resources(settings), "articles")
    lack = [why_not(routes()[name], gaps) for name in names]
    assert lack == [None, None, gaps[Need.BM25], gaps[Need.BM25]]
    assert "a table of 3 passages, and BM25 is held in memory for 2" in lack[2]
    assert fusion_weights.needs(("bm25", "dense")) == [Need.BM25], "fitted weights are held back, too"
    engine = FakeEngine(tmp_path)
    corpus = engine.fakes["articles"] = index.open_corpus("articles", settings=settings)
    assert any("BM25" in note for note in corpus.info.notes)
    with pytest.raises(Unavailable, match=r"use the route full_text, or export.*--in postgresql://"):
        corpus.search_sparse("customs", 3)
    run = engine.start(Request(Query("customs duty"), "articles", names)).wait(60)
    assert [one.status for one in run.results] == ["ok", "ok", "unavailable", "unavailable"]


def test_a_server_that_is_gone_does_not_keep_a_corpus_from_being_deleted(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(postgres, "CONNECT_S", 2)
    dsn, folder = fresh(), documents(tmp_path / "beir", 20)
    settings = made(tmp_path / "home")
    build(settings, folder, dsn)
    served.server_of(served.dsn_of("kept", Dsn(dsn).plain(), settings)).close()
    with psycopg.connect(server().get_uri(), autocommit=True) as connection:
        name = psycopg.sql.Identifier(Dsn(dsn).plain().split("/")[3].split("?")[0])
        connection.execute(psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
    index.remove("kept", settings=settings)
    assert "were not deleted" in caplog.text
    assert catalogue.names(settings) == []


def test_the_settings_file_names_tables_and_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path))
    monkeypatch.setenv("ROUTESCOPE_CORPORA", '{"b": {"dsn": "postgresql://x/y"}}')
    file = tmp_path / "routescope.toml"
    file.write_text(
        '[corpora.a]\ndsn = "postgresql://ann:s3cret-w0rd@h/d"\ntable = "t"\nmetadata = "year, part"\n'
    )
    found = settings_module.load()
    assert list(found.corpora) == ["a"]
    assert found.corpora["a"].metadata == ("year", "part")
    assert "s3cret-w0rd" not in repr(found)
    file.write_text('[corpora.a]\ndsn = "postgresql://ann:s3cret-w0rd@h/d"\ntabel = "t"\n')
    with pytest.raises(BadInput, match=r"setting corpora\.a\.tabel") as refused:
        settings_module.load()
    assert "s3cret-w0rd" not in str(refused.value)


def test_a_table_that_changes_is_opened_again(place, tmp_path):
    settings = place()
    before = index.open_corpus("articles", settings=settings)
    vector = str(HashEmbedder().embed(["quite new"])[0].tolist())
    place(
        f"INSERT INTO articles VALUES ('a9', '', 'quite new', '{vector}')",
        "DELETE FROM articles WHERE key = 'a0'",
    )
    assert catalogue.current_fingerprint("articles", settings=settings) != before.fingerprint
    after = index.open_corpus("articles", settings=settings)
    assert [passage.id for _, passage, _ in after.everything()] == ["a1", "a2", "a9"]
    # one that is still open leaves out what it does not know, and what is gone
    found = before.search_dense(HashEmbedder().embed_query("quite new refund"), 3)
    assert {hit.passage.id for hit in found} <= {"a1", "a2"}
    assert not [file for file in (tmp_path / "home").rglob("*") if file.is_file()], "nothing of it is stored"
    with psycopg.connect(place.dsn) as connection:
        ours = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'routescope%'"
        assert connection.execute(ours).fetchall() == []


WRONG = {
    "no table": ((), {"table": "nothing"}, "no table 'nothing' in postgresql://"),
    "no column": ((), {"text": "boddy"}, "no column 'boddy'; it has: key, headline, body, embedding"),
    "other dimensions": (
        ("CREATE TABLE other AS SELECT key, headline, body, '[1,2,3]'::vector(3) embedding FROM articles",),
        {"table": "other"},
        r"a vector of 64 dimensions cannot search .*, whose vectors \(hash\) have 3",
    ),
    "several dimensions": (
        (
            "CREATE TABLE other (key text, headline text, body text, embedding vector)",
            "INSERT INTO other VALUES ('a', '', 'x', '[1,2]'), ('b', '', 'y', '[1,2,3]')",
        ),
        {"table": "other"},
        "vectors of 2 to 3 dimensions",
    ),
    "another type": (
        ("CREATE TABLE other AS SELECT key, headline, body, ARRAY[1.0]::real[] embedding FROM articles",),
        {"table": "other"},
        r"type real\[\]; a corpus needs vector or halfvec",
    ),
    "text of another type": (
        ("CREATE TABLE other AS SELECT key, headline, body::bytea AS body, embedding FROM articles",),
        {"table": "other"},
        "type bytea; a corpus needs text",
    ),
    "ids twice": (("INSERT INTO articles SELECT * FROM articles",), {}, "id 'a0' stands in several rows"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_table_that_is_no_corpus_is_one_clear_line(place, case):
    statements, changed, said = WRONG[case]
    settings = place(*statements, **changed)

    def search():
        corpus = index.open_corpus("articles", settings=settings)
        return corpus.search_dense(HashEmbedder().embed_query("customs"), 3)

    with pytest.raises((BadInput, Unavailable), match=said) as refused:
        search()
    assert "\n" not in str(refused.value)
    known = catalogue.describe("articles", settings)
    assert known.state == "not built" or case == "other dimensions"


def test_empty_columns_are_left_out_and_counted(place):
    settings = place(
        "INSERT INTO articles SELECT NULL, '', 'no id', embedding FROM articles LIMIT 1",
        "INSERT INTO articles SELECT 'b1', '', NULL, embedding FROM articles LIMIT 1",
        "INSERT INTO articles VALUES ('b2', NULL, 'no vector', NULL), ('b3', NULL, 'no vector', NULL)",
    )
    corpus = index.open_corpus("articles", settings=settings)
    assert corpus.size == 3
    for said in ("1 rows without an id", "1 rows without a text", "2 rows without a vector"):
        assert any(note.startswith(said) for note in corpus.info.notes)
    assert len(corpus.search_dense(HashEmbedder().embed_query("customs"), 50)) == 3


def test_a_text_of_50_megabytes_is_read_to_its_first_characters(place):
    vector = str(HashEmbedder().embed(["long"])[0].tolist())
    settings = place(
        f"INSERT INTO articles VALUES ('long', '', repeat('endless customs text ', 2500000), '{vector}')"
    )
    corpus = index.open_corpus("articles", settings=settings)
    assert any("1 texts are long" in note for note in corpus.info.notes)
    assert len(corpus.by_ids(["long"])["long"].text) == table.LONGEST
    assert corpus.search_full_text("endless", 3)[0].passage.id == "long"
    assert corpus.lengths()[2] == table.LONGEST


def test_names_that_are_sql_are_names(place):
    odd = '"; DROP TABLE articles; --'
    quoted = '"' + odd.replace('"', '""') + '"'
    settings = place(
        f'CREATE TABLE {quoted} AS SELECT key AS "select", body AS {quoted},'
        ' embedding AS "a%b", 7 AS "from" FROM articles',
        table=odd,
        id="select",
        text=odd,
        title="",
        vector="a%b",
        metadata=("from",),
    )
    corpus = index.open_corpus("articles", settings=settings)
    vector = HashEmbedder().embed_query("customs duty")
    assert corpus.search_dense(vector, 1, where=[Filter("from", "=", ("7",))])[0].passage.id == "a1"
    assert corpus.search_dense(vector, 1, where=[Filter("from", "in", ("8", "9"))]) == ()
    assert corpus.search_full_text("customs", 1)[0].passage.id == "a1"
    assert [p.id for _, p, meta in corpus.everything() if meta == {"from": "7"}] == ["a0", "a1", "a2"]
    with psycopg.connect(place.dsn) as connection:
        assert connection.execute("SELECT count(*) FROM articles").fetchone() == (3,)


def test_ids_that_are_numbers_and_a_table_in_a_schema(place):
    settings = place(
        "CREATE SCHEMA help",
        "CREATE TABLE help.pages (key int PRIMARY KEY, body text, embedding halfvec(64))",
        "INSERT INTO help.pages SELECT substr(key, 2)::int + 9, body, embedding FROM articles",
        "CREATE INDEX ON help.pages USING hnsw (embedding halfvec_cosine_ops)",
        table="help.pages",
        title="",
    )
    corpus = index.open_corpus("articles", settings=settings)
    assert [passage.id for _, passage, _ in corpus.everything()] == ["10", "11", "9"]
    assert corpus.search_dense(HashEmbedder().embed_query("customs duty"), 1)[0].passage.id == "10"
    assert corpus.by_ids(["x", "9"]).keys() == {"9"}
    assert corpus.document("11")[0].text == "glass"


def test_ids_with_decomposed_letters_meet_the_composed_ones_of_labels(place):
    rows = (("a0", "cafe\u0301"), ("a1", "re\u0301"), ("a2", "r\u00e9"))
    settings = place(*(f"UPDATE articles SET key = '{id}' WHERE key = '{old}'" for old, id in rows))
    corpus, shown = index.open_corpus("articles", settings=settings), "caf\u00e9"
    assert corpus.by_ids([shown])[shown].id == corpus.by_ids(["cafe\u0301"])["cafe\u0301"].id == shown
    assert corpus.document(shown)[0].id == corpus.spanning(shown, 0, 5)[0].doc_id == shown
    assert corpus.passages([corpus.row(shown)])[0].id == shown
    found = {one.passage.id for one in corpus.search_sparse(corpus.document(shown)[0].text, 200)}
    assert shown in found
    assert "cafe\u0301" not in found
    listed = [one.id for one in corpus.documents(limit=500)]
    assert [one.id for one in corpus.documents(after=shown, limit=500)] == listed[listed.index(shown) + 1 :]
    assert {"r\u00e9", "re\u0301"} <= set(listed), "two rows of one composed id keep their own"
    assert corpus.row("r\u00e9") != corpus.row("re\u0301")


def test_a_role_without_rights_is_one_clear_line(place, tmp_path):
    settings = place("DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN")
    settings = place(dsn=place.dsn.replace("postgres:@", "reader@"))
    with pytest.raises(
        Unavailable, match=r"role 'reader' may not read column 'key' of articles; .* GRANT SELECT"
    ):
        index.open_corpus("articles", settings=settings)
    place("GRANT SELECT ON articles TO reader")
    assert index.open_corpus("articles", settings=settings).size == 3
    with pytest.raises(Unavailable, match="has not the right: permission denied for database"):
        build(
            made(tmp_path / "home"), documents(tmp_path / "beir"), place.dsn.replace("postgres:@", "reader@")
        )


def test_pgvector_that_is_not_there_is_said(tmp_path, monkeypatch):
    dsn = fresh()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE articles (key text, headline text, body text, embedding real[])")
        connection.execute("DROP ROLE IF EXISTS builder")
        connection.execute("CREATE ROLE builder LOGIN")
        name = connection.execute("SELECT current_database()").fetchone()[0]
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO builder")
    with pytest.raises(Unavailable, match=r"pgvector is not switched on in .* CREATE EXTENSION vector"):
        index.open_corpus("articles", settings=made(tmp_path / "home", articles=spec(dsn)))
    with pytest.raises(
        Unavailable, match=r"pgvector is not switched on in .*its role may not.*CREATE EXTENSION"
    ):
        build(made(tmp_path / "home"), documents(tmp_path / "beir"), dsn.replace("postgres:@", "builder@"))


def test_a_wrong_password_is_told_without_it(tmp_path):
    running = Restarted(tmp_path / "pg")

    def loaded():
        with psycopg.connect(running.server.get_uri()) as connection:
            return connection.execute("SELECT pg_conf_load_time()").fetchone()[0]

    try:
        with psycopg.connect(running.server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE ROLE ann LOGIN PASSWORD 'the right one'")
        rules = "local all postgres trust\nlocal all all scram-sha-256\n"
        (tmp_path / "pg" / "pg_hba.conf").write_text(rules)
        before = loaded()
        running.ctl("reload")
        until(lambda: loaded() > before)  # the server reads its files when it gets to it
        dsn = f"postgresql://ann:wrong-secret@/postgres?host={tmp_path / 'pg'}"
        settings = made(tmp_path / "home", articles=spec(dsn))
        with pytest.raises(Unavailable, match=r"refused the sign-in: .*authentication failed") as refused:
            index.open_corpus("articles", settings=settings)
        with pytest.raises(Unavailable, match="refused the sign-in") as unbuilt:
            build(made(tmp_path / "home"), documents(tmp_path / "beir"), dsn)
        reason = catalogue.describe("articles", settings).reason
        told = [
            str(refused.value),
            str(unbuilt.value),
            repr(doctor._corpora(settings)),
            repr(settings),
            reason,
        ]
        assert not any("wrong-secret" in text for text in told)
        assert "\n" not in told[0]
    finally:
        running.server.cleanup()


def test_a_password_is_given_again_by_the_settings(tmp_path):
    place = "postgresql://ann@db.example/routescope?sslmode=require"
    address = "postgresql://ann:s3cret@db.example/routescope?sslmode=require"
    own = Settings(home=tmp_path, corpora={"kept": CorpusSettings(dsn=address)})
    assert served.dsn_of("kept", place, own).conninfo() == address
    assert served.dsn_of("kept", place, Settings(home=tmp_path, database=address)).conninfo() == address
    assert served.dsn_of("kept", place, Settings(home=tmp_path)).conninfo() == place
    elsewhere = Settings(
        home=tmp_path, corpora={"kept": CorpusSettings(dsn=address.replace("db.", "other."))}
    )
    assert served.dsn_of("kept", place, elsewhere).conninfo() == place  # no password for another server
    assert Dsn(address).plain() == place
    assert Dsn("postgresql://ann@h/d?password=s3cret&sslmode=x").plain() == "postgresql://ann@h/d?sslmode=x"
    assert "s3cret" in own.secrets()


def test_a_clock_that_differs_is_told_and_changes_nothing(kinds, monkeypatch):
    known = catalogue.describe("kept", kinds.settings)
    assert not doctor._served_corpus(known, kinds.settings).fix
    monkeypatch.setattr(doctor, "time", SimpleNamespace(time=lambda: time.time() + 3_600))
    assert "the server's clock is 3600 s behind" in doctor._served_corpus(known, kinds.settings).fix
    (check,) = [one for one in doctor._corpora(kinds.settings) if one.name == "corpus kept"]
    assert (check.state, "pgvector 0." in check.detail) == ("warning", True)
