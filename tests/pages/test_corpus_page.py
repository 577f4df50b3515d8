"""Corpus: state and costs, adding documents, how they are cut, their passages, what repeats itself."""

from dataclasses import replace

import pytest

from core.backends import embedder
from core.corpus import builds, catalogue, index, near_duplicates, served, uploads
from core.corpus.chunk import Chunking
from core.corpus.enrichments import store
from core.corpus.types import Reading
from core.domain.types import Passage
from core.routes.registry import pick
from tests.fakes import HashEmbedder
from tests.pages.reading import plain, shown
from tests.postgres_server import fresh
from tests.runs import HOSTILE
from ui.app import corpora
from ui.components import gold
from ui.corpus import access as corpus_access
from ui.corpus import near_duplicates as corpus_near
from ui.corpus import passages

TEXTS = {
    "returns.md": "# Returns\n\n## When\n\nSend it back within thirty days of the delivery, in its box.\n\n"
    "## Refund\n\nThe refund is paid five business days after the item was inspected by us.",
    "copy.md": "# Returns again\n\nThe refund is paid five business days after the item was inspected by us.",
    "late.txt": "The refund is paid six business days after the item was inspected by us.",
    "customs.txt": "Customs may hold a parcel until the commercial invoice has been supplied.",
    "evil.txt": " ".join(HOSTILE),
}


@pytest.fixture
def real(engine, tmp_path, monkeypatch):
    """The engine with a corpus, "shop", that is really indexed, from a folder."""
    source = tmp_path / "shop"
    source.mkdir()
    for name, text in TEXTS.items():
        (source / name).write_text(text)
    return indexed(engine, monkeypatch, source)


def indexed(engine, monkeypatch, source, name="shop"):
    monkeypatch.undo()
    from core.engine import engine as engine_module

    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
    monkeypatch.setattr(index, "load_embedder", lambda *_, **__: HashEmbedder())
    monkeypatch.setattr(index, "embedder_identity", lambda name, _settings: name)
    monkeypatch.setattr(catalogue, "embedder_identity", lambda name, _settings: name)
    monkeypatch.setattr(catalogue, "BUILT_IN", {})
    index.build(name, source, settings=engine.settings)
    monkeypatch.setattr(engine, "corpus", lambda name: index.open_corpus(name, settings=engine.settings))
    monkeypatch.setattr(engine, "embedder", lambda _: HashEmbedder())
    return engine


def html(app):
    return "\n".join(element.value for element in app.get("html") if element.value)


def test_the_state_tells_what_there_is_and_what_it_took(visit, real):
    app = visit("corpus.py", corpus="shop")
    info = index.open_corpus("shop", settings=real.settings).info
    assert "Corpus shop is indexed and up to date." in shown(app)
    assert f"{info.passages} passages of 5 documents" in shown(app)
    page = html(app)
    for value in (info.fingerprint, "flat: exact search", info.chunking.label(), str(info.documents)):
        assert value in page
    for stage in info.build_ms:
        assert f"<span>{stage}</span>" in page
    assert "not recorded" not in page


def test_a_changed_source_is_told_with_the_reason(visit, real, tmp_path):
    (tmp_path / "shop" / "new.txt").write_text("One more.")
    app = visit("corpus.py", corpus="shop")
    assert "outdated index: the source has changed since it was indexed" in shown(app)
    assert [button.key for button in app.sidebar.button if button.key == "rebuild"]


def test_a_corpus_that_is_not_built_says_so_on_every_tab(visit):
    for tab in ("State", "Passages"):
        app = visit("corpus.py", corpus="other", tab=tab)
        assert "Corpus other is not built" in shown(app), tab
        assert any(button.key == "build_corpus" for button in app.button), tab


def test_enrichments_are_offered_with_their_cost_and_told_once_they_are(visit, engine, real, monkeypatch):
    corpus = real.corpus("shop")
    made = store.build("children", corpus, settings=real.settings, embedder=HashEmbedder())
    begun = []
    monkeypatch.setattr(builds, "start_enrichment", lambda *given: begun.append(given[:3]))
    app = visit("corpus.py", corpus="shop")
    assert f"1 of {len(store.RECIPES)} are built" in shown(app)
    assert f'<td class="num">{made.entries:,}</td>' in html(app)
    assert "one language model call per passage" in shown(app)
    assert "make:shop:children" not in [button.key for button in app.button]
    app.button(key="make:shop:questions").click().run()
    assert begun == [("shop", "questions", real.settings)]


def test_deleting_asks_first_and_takes_the_enrichments_along(visit, real, tmp_path):
    store.build("children", real.corpus("shop"), settings=real.settings, embedder=HashEmbedder())
    app = visit("corpus.py", corpus="shop")
    assert app.button(key="delete_corpus").disabled
    app.checkbox(key="sure:shop").check().run()
    index.build("rest", tmp_path / "shop", settings=real.settings)  # a page needs some corpus
    app.button(key="delete_corpus").click().run()
    assert catalogue.names(real.settings) == ["rest"]
    assert not (real.settings.home / "enrichments" / "shop").exists()
    assert (tmp_path / "shop" / "returns.md").exists()


def test_a_document_is_drawn_as_it_was_cut(visit, real):
    app = visit("corpus.py", corpus="shop", tab="Documents and chunks", doc="returns.md", size="60")
    cut = html(app)
    assert app.session_state["corpus_chunk_size"] == 60
    assert "rs-corpus-doc" in cut
    assert "The index uses up to 700 characters" in shown(app)
    app.number_input(key="corpus_chunk_size").set_value(20).run()
    assert "chunk size 20 must be from 50 to 100000" in shown(app)
    app.button(key="as_indexed").click().run()
    assert "The index uses" not in shown(app)


@pytest.mark.trust
def test_a_hostile_document_is_only_text(visit, real):
    for tab in ("Documents and chunks", "Passages"):
        where = {"doc": "evil.txt", "in": "evil.txt", "passage": _passage(real, "evil.txt")}
        app = visit("corpus.py", corpus="shop", tab=tab, **where)
        assert not app.exception
        page = "\n".join(e.value for e in app.get("html") if e.value and 'class="rs' in e.value)
        assert "&lt;script&gt;" in page
        assert "<script>" not in page
        assert "<img" not in page


def _passage(engine, document):
    return engine.corpus("shop").document(document)[1][0].id


def test_a_preview_can_become_the_index(visit, real, monkeypatch):
    begun = []
    monkeypatch.setattr(builds, "start", lambda *given: begun.append(given[:3]))
    app = visit(
        "corpus.py", corpus="shop", tab="Documents and chunks", doc="returns.md", size="60", overlap="10"
    )
    app.button(key="index_like_this").click().run()
    ((again, source, _),) = begun
    assert (again, source.chunking) == ("shop", Chunking(60, 10))


def test_passages_are_looked_through_searched_and_read(visit, real):
    app = visit("corpus.py", corpus="shop", tab="Passages")
    corpus = real.corpus("shop")
    assert list(app.dataframe[0].value["Document"]) == [p.doc_id for p in corpus.passages(range(corpus.size))]
    app.text_input(key="corpus_words").set_value("refund inspected").run()
    found = [hit.passage.doc_id for hit in corpus.search_sparse("refund inspected", 50)]
    assert list(app.dataframe[0].value["Document"]) == found
    assert f"1 to {len(found)} of {len(found)} passages, best first" in shown(app)
    app.session_state["corpus_by"] = "meaning"
    app.run()
    dense = corpus.search_dense(HashEmbedder().embed_query("refund inspected"), 50)
    assert list(app.dataframe[0].value["Document"]) == [hit.passage.doc_id for hit in dense]
    assert app.query_params["by"] in ("meaning", ["meaning"])
    app.session_state["corpus_by"] = "words"
    app.text_input(key="corpus_words").set_value("zzz").run()
    assert "No passage contains these words" in shown(app)


def test_the_address_reopens_a_passage(visit, real):
    id = _passage(real, "customs.txt")
    app = visit("corpus.py", corpus="shop", tab="Passages", passage=id, find="parcel")
    assert app.text_input(key="corpus_words").value == "parcel"
    assert id in html(app)
    assert "The document starts here." in html(app)
    app = visit("corpus.py", corpus="shop", tab="Passages", passage="nothing of the kind")
    assert "has no passage 'nothing of the kind'" in shown(app)


def test_near_duplicates_are_told_and_compared(visit, real):
    app = visit("corpus.py", corpus="shop", tab="Near-duplicates", alike="0.60")
    found = near_duplicates.find(real.corpus("shop"), "words")
    assert found.in_words(0.6) in shown(app)
    assert len(app.dataframe[0].value) == len(found.above(0.6))
    assert "<del>five</del>" in html(app) or "<ins>five</ins>" in html(app)


def test_a_large_corpus_is_compared_in_the_background(visit, real, monkeypatch):
    monkeypatch.setattr(corpus_near, "FOREGROUND_PASSAGES", 1)
    corpus_near._found.clear()
    app = visit("corpus.py", corpus="shop", tab="Near-duplicates")
    app.button(key="near_start").click().run()
    build = builds.get("shop near-duplicates by words")
    build.wait(10)
    app.run()
    assert build.error is None
    assert "share" in shown(app)


def test_files_are_uploaded_previewed_and_indexed_as_shown(visit, real):
    app = visit("corpus.py", corpus="shop", tab="Add")
    assert app.button(key="upload_add").disabled
    assert "up to 50 MB each" in shown(app)
    text = "A sentence that is cut somewhere. " * 12
    app.file_uploader[0].set_value(
        [("../up.md", text.encode(), "text/markdown"), ("b.txt", b"More.", "text/plain")]
    )
    app.run()
    app.number_input(key="corpus_chunk_size").set_value(100)
    app.toggle(key="upload_show").set_value(True).run()
    assert "rs-corpus-doc" in html(app)
    app.text_input(key="upload_name").set_value("New Files").run()
    app.button(key="upload_add").click().run()
    builds.get("new-files").wait(20)
    assert builds.get("new-files").error is None
    app.run()
    assert app.sidebar.selectbox[0].value == "new-files"
    made = index.open_corpus("new-files", settings=real.settings)
    assert made.info.chunking == Chunking(100, 0)
    assert [one.id for one in made.documents()] == ["b.txt", "up.md"]


FAQ = b"question,answer\nHow is it paid?,By card.\n<b>When</b>?,At once.\n"


def test_the_columns_of_an_upload_are_shown_and_chosen(visit, real):
    app = visit("corpus.py", corpus="shop", tab="Add")
    app.file_uploader[0].set_value([("faq.csv", FAQ, "text/csv")]).run()
    app.toggle(key="upload_show").set_value(True).run()
    assert "faq.csv (2 rows): each row is a document, text: answer; title: question" in html(app)
    assert "upload:html" not in [box.key for box in app.selectbox]  # there is no page
    app.radio(key="upload:rows").set_value("Chosen columns").run()
    app.multiselect(key="upload:columns").set_value(["question", "answer"]).run()
    assert "text: question, answer" in html(app)
    app.text_input(key="upload_name").set_value("faq").run()
    app.button(key="upload_add").click().run()
    builds.get("faq").wait(20)
    assert builds.get("faq").error is None
    made = index.open_corpus("faq", settings=real.settings)
    assert made.document("faq.csv#2")[0].text == "How is it paid?\n\nBy card."
    found = catalogue.current("faq", real.settings)
    assert found.source.reading == Reading(("question", "answer"), "main")


def test_a_folder_is_looked_at_before_it_is_indexed(visit, real, tmp_path):
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "faq.csv").write_bytes(FAQ)
    (folder / "page.html").write_text("<nav>Home</nav><p>Words.")
    (folder / "<b>.xyz").write_text("x")
    app = visit("corpus.py", corpus="shop", tab="Add")
    app.text_input(key="new_path").set_value(str(folder)).run()
    app.toggle(key="new_show").set_value(True).run()
    assert "2 files of kinds that are read: 1 .csv, 1 .html." in shown(app)
    assert "Would be left out: 1 file" in shown(app)
    assert '<td dir="auto">.xyz files are not read</td>' in html(app)
    assert "&lt;b&gt;.xyz" in html(app)
    assert "<b>.xyz" not in html(app)
    app.selectbox(key="new:html").set_value("all").run()
    app.radio(key="new:rows").set_value("No rows are documents").run()
    assert "faq.csv: a table (question, answer): one document describes it" in html(app)
    app.button(key="new_build").click().run()
    builds.get("more").wait(20)
    assert builds.get("more").error is None
    made = index.open_corpus("more", settings=real.settings)
    assert [one.id for one in made.documents()] == ["faq.csv/faq", "page.html"]
    assert "Home" in made.document("page.html")[0].text


def test_what_was_read_and_left_out_is_shown_and_can_be_changed(visit, real, tmp_path):
    (tmp_path / "shop" / "faq.csv").write_bytes(FAQ)
    (tmp_path / "shop" / "a.png").write_bytes(b"x")
    index.build("shop", "shop", settings=real.settings)
    app = visit("corpus.py", corpus="shop")
    assert "Notes on the documents" in shown(app)
    assert "faq.csv (2 rows): each row is a document" in html(app)
    assert "Left out: 1 file" in shown(app)
    assert html(app).count("pictures are not read") == 1
    app.toggle(key="read_show").set_value(True).run()
    assert app.button(key="read_again").disabled
    app.radio(key="state:shop:rows").set_value("Chosen columns").run()
    app.multiselect(key="state:shop:columns").set_value(["question"]).run()
    app.button(key="read_again").click().run()
    builds.get("shop").wait(20)
    assert builds.get("shop").error is None
    made = index.open_corpus("shop", settings=real.settings)
    assert made.document("faq.csv#2")[0].text == "How is it paid?"


def test_what_cannot_be_read_gets_one_clear_error_and_keeps_nothing(visit, real):
    app = visit("corpus.py", corpus="shop", tab="Add")
    app.text_input(key="new_path").set_value("/no/such/place").run()
    app.button(key="new_build").click().run()
    told = "unknown corpus '/no/such/place'; known: shop, or a path"
    assert [plain(error.value) for error in app.error] == [told]
    app.toggle(key="new_show").set_value(True).run()
    assert "no such file or folder" in plain(app.error[0].value)
    app.file_uploader[0].set_value([("scan.pdf", b"%PDF-1.4 nothing", "application/pdf")]).run()
    app.text_input(key="upload_name").set_value("scans").run()
    app.button(key="upload_add").click().run()
    assert "scan.pdf: " in shown(app)
    assert uploads.corpora(real.settings) == []


def test_files_of_an_uploaded_corpus_are_taken_out_and_brought_back(visit, real, monkeypatch):
    settings = real.settings
    uploads.add("mine", {"a.txt": b"The refund.", "b.txt": b"The customs."}, settings)
    index.build("mine", uploads.folder("mine", settings), settings=settings)
    app = visit("corpus.py", corpus="mine", tab="Add")
    app.selectbox(key="upload_file:2").set_value("b.txt").run()
    app.button(key="upload_remove").click().run()
    builds.get("mine").wait(20)
    assert [one.name for one in uploads.kept("mine", settings)] == ["a.txt"]
    app.run()
    app.button(key="upload_undo").click().run()
    builds.get("mine").wait(20)
    assert [one.name for one in uploads.kept("mine", settings)] == ["a.txt", "b.txt"]


def test_uploads_that_were_not_indexed_are_not_lost(visit, real):
    uploads.add("rest", {"a.txt": b"The refund."}, real.settings)
    app = visit("corpus.py", corpus="shop", tab="Add")
    assert "Uploaded, but not indexed: rest" in shown(app)
    app.button(key="discard:rest").click().run()
    assert uploads.corpora(real.settings) == []


def test_a_passage_in_full_tells_its_neighbours_and_its_questions():
    pieces = [Passage("0", "d", "T", "before", 0, 6), Passage("1", "d", "T", "middle", 4, 10)]
    page = str(passages.in_full(pieces[1], pieces, 1, [("q1", HOSTILE[0], 3), ("q2", "Why?", 2)]))
    for said in (
        "passage 2 of 2, characters 4 to 10",
        "Relevant for 2 labelled questions",
        "grade 3",
        ">before<",
    ):
        assert said in page
    assert "The first 2 characters are also in the previous passage." in page
    assert "The document ends here." in page
    assert "<script>" not in page


def test_labelled_questions_are_listed_under_their_passages(real, monkeypatch):
    from core.domain.types import Query
    from core.evaluation.dataset import Evidence, Question, Written

    corpus = real.corpus("shop")
    asked = (Question("a", Query("When?")), Question("b", Query("Gone?")))
    evidence = {
        "a": (Evidence("returns.md", 3, "The refund is paid five business days"),),
        "b": (Evidence("deleted.md", 2),),  # of a document that is no more: left out, the others stay
    }
    monkeypatch.setattr(gold, "labelled_files", lambda _: ["questions.jsonl"])
    known = Written("shop", asked, evidence)
    monkeypatch.setattr("core.evaluation.dataset.written", lambda *_, **__: known)
    gold.questions_of.clear()
    (passage,) = [p for p in corpus.document("returns.md")[1] if "five business days" in p.text]
    assert gold.questions_of("shop", corpus.fingerprint) == {passage.id: [("a", "When?", 3)]}
    gold.questions_of.clear()


@pytest.mark.postgres
def test_a_corpus_in_postgresql_says_where_it_is_and_how_it_is_searched(visit, engine, monkeypatch, tmp_path):
    dsn, source = fresh(), tmp_path / "help"
    source.mkdir()
    for name, text in TEXTS.items():
        (source / name).write_text(text)
    indexed(engine, monkeypatch, source)
    place = served.remember(dsn.replace("postgres:@", "postgres:s3cret-w0rd@"))
    origin = replace(catalogue.source("shop", settings=engine.settings), place=place)
    graph = engine.settings.model_copy(update={"exact_below": 1})
    info = index.build(None, origin, settings=graph).info
    app = visit("corpus.py", corpus="shop")
    page = html(app)
    assert "Corpus shop is indexed and up to date." in shown(app)
    assert f"HNSW: approximate search, recall@10 of {info.recall:.1%}" in page
    assert "searched by pgvector" in page
    assert "send to PostgreSQL" in page
    assert "s3cret-w0rd" not in page
    assert not app.exception


def test_files_read_in_part_are_listed_worst_first_and_read_again(visit, real, tmp_path, monkeypatch):
    from tests.realistic import files

    folder = tmp_path / "partly"
    folder.mkdir()
    for file in files():
        if file.name in ("partly-scanned.pdf", "scan.pdf", "rules.txt"):
            (folder / file.name).write_bytes(file.content)
    index.build("partly", folder, settings=real.settings)
    app = visit("corpus.py", corpus="partly")
    page = html(app)
    assert page.index("scan.pdf</td>") < page.index("partly-scanned.pdf</td>")
    assert '<td class="num">67%</td>' in page
    assert "1 of 3 files were read as a whole" in shown(app)
    begun = []
    monkeypatch.setattr(corpora, "again", begun.append)
    app.button(key="index_again").click().run()
    assert begun == ["partly"]


def test_access_is_tested_in_the_background_and_told_by_route_and_step(visit, real, monkeypatch):
    assert "[access.department]" in shown(visit("corpus.py", corpus="shop", tab="Access")), "no rules yet"
    rules = {"department": {"hr": ("hr",), "sales": ("sales", "hr")}}
    monkeypatch.setattr(real, "settings", real.settings.model_copy(update={"access": rules}))
    monkeypatch.setattr(embedder, "load_embedder", lambda *_, **__: HashEmbedder())
    monkeypatch.setattr(embedder, "embedder_identity", lambda name, _settings: name)
    monkeypatch.setattr(corpus_access, "routes", lambda: {"bm25": pick("bm25")[0]})
    app = visit("corpus.py", corpus="shop", tab="Access")
    app.selectbox(key="access_group").select("sales").run()
    app.button(key="access_start").click().run()
    build = builds.get("shop access as sales")
    build.wait(60)
    assert build.error is None
    app.run()
    table = app.dataframe[0].value
    assert set(table["Route"]) == {"bm25"}
    assert table["Leaked unfiltered"].max() > 0
    assert table["Leaked filtered"].max() == 0


def test_hubs_are_found_in_the_background_and_told_by_search(visit, real, monkeypatch):
    monkeypatch.setattr(embedder, "load_embedder", lambda *_, **__: HashEmbedder())
    monkeypatch.setattr(embedder, "embedder_identity", lambda name, _settings: name)
    app = visit("corpus.py", corpus="shop", tab="Hubs")
    app.button(key="hubs_start").click().run()
    build = builds.get("shop hubs")
    build.wait(60)
    assert build.error is None
    app.run()
    never = build.result["searches"]["words"]["never_count"]
    assert f"{never} passages are never returned" in shown(app)
