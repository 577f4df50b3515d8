"""The real app, served as a user serves it, and a headless Chromium that notes what must not happen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from core.domain import settings
from core.domain.types import Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.store import Store
from core.store.labels import Judgement, Pooled
from scripts import serving
from tests.runs import HOSTILE, make_run
from ui.app.glossary import TERMS

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DOCUMENTS = {
    "returns": "# Returns\n\nTo send an item back, ask for a Return Merchandise Authorization in 30 days.",
    "refunds": "# Refunds\n\nA refund is paid five business days after the returned item was inspected.",
    "fragile": "# Fragile goods\n\nGlass is double boxed and takes one more day by standard shipping.",
    "express": "# Express\n\nExpress shipping delivers on the next business day in Germany and Belgium.",
    "customs": "# Customs\n\nCustoms may hold a parcel until the commercial invoice has been supplied.",
    "crushed": "# Damage\n\nIf the box arrived crushed, take photos of all six sides within 48 hours.",
    "keys": "# Idempotency\n\nIdempotency keys are stored for 24 hours with the first response.",
    "hostile": "# Shipping <img src=http://evil.example/a.png onerror=alert(1)>\n\n"
    "![pixel](http://evil.example/b.png) <script>alert(2)</script> shipping of items that came back",
}


ASKED = {
    "returns": "How do I send an item back?",
    "refunds": f"When is my refund paid? {HOSTILE[0]}",
    "fragile": "How is glass shipped?",
    "express": "How fast is express shipping?",
    "customs": "What does customs want?",
    "crushed": "What do I do with a crushed box?",
}
ROUTES = "bm25,dense,hybrid_rrf,hybrid_linear"


# Tells of every link to another origin that a page has at any moment; a download's address is the page's own,
# and the sources that the Glossary names are the program's.
LINKS = """addEventListener('DOMContentLoaded', () => {
  const told = new Set()
  const look = () => document.querySelectorAll('a[href], area[href], form[action]').forEach(one => {
    const to = new URL(one.href || one.action, document.baseURI)
    if (to.origin === location.origin || told.has(to.href)) return
    if (location.pathname === '/help' && SOURCES.includes(to.href)) return
    told.add(to.href)
    console.error(`link to another origin: ${one.outerHTML.slice(0, 200)}`)
  })
  new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true})
})"""


def chromium() -> str:
    """The browser's path; without one the tests are skipped with a message."""
    names = ("chromium", "chromium-browser", "google-chrome")  # those of scripts/ensure-chromium
    found = os.environ.get("ROUTESCOPE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no chromium here: install Debian's package `chromium`, or set ROUTESCOPE_CHROMIUM")
    return found


def core(home, command, *rest):
    """What a command prints over a home, without a language model."""
    env = {**os.environ, "ROUTESCOPE_HOME": str(home), "ROUTESCOPE_LLM_MODE": "replay"}
    line = [sys.executable, "-m", "core", *command.split(), *rest]
    return subprocess.run(line, cwd=ROOT, env=env, check=True, capture_output=True, timeout=170).stdout


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """Where the running app keeps everything."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def address(home):
    """The running app: a small searchable corpus "handbook", stored runs, and no language model."""
    chromium()
    folder = home / "handbook"
    folder.mkdir()
    for name, text in DOCUMENTS.items():
        (folder / f"{name}.md").write_text(text + "\n")
    core(home, "index --name handbook", str(folder))
    store = Store(home / "routescope.sqlite")
    for run in (
        make_run(mishaps=False, run_id="good", corpus="handbook"),
        make_run(run_id="bad", corpus="handbook"),
        make_run(hostile=True, run_id="evil", corpus="handbook"),
    ):
        store.save(run)
    assert store.flush()
    store.close()
    with served(home) as (there, _):
        yield there


@pytest.fixture(scope="session")
def labels(address, home):
    """A set labelled by a person: one document answers each question. The name of the set."""
    with closing(Store(home / "routescope.sqlite")) as store:
        questions = [
            Question(id, Query(asked), mode="plain" if id < "f" else "shipping")
            for id, asked in ASKED.items()
        ]
        desks.create(store, "decide", "handbook", questions)
        from core.corpus.index import open_corpus

        corpus = open_corpus("handbook", settings=settings.load(home=home))
        for id in ASKED:
            document, passages = corpus.document(f"{id}.md")
            assert document.text
            pooled = [Pooled(one, (("bm25", 1),)) for one in passages]
            desks.add_to_pool(store, "decide", {id: pooled})
            for one in passages:
                desks.judge(store, "decide", Judgement(id, one.id, "ann", "person", "grade", 3))
        lost = Passage("gone:0-9", "gone", "Gone", "not there any more", 0, 9)
        desks.add_to_pool(store, "decide", {"returns": [Pooled(lost, ())]})
    return "decide"


@pytest.fixture(scope="session")
def kept(labels, home):
    """The name of an evaluation made on the command line."""
    done = core(home, f"eval handbook --labels {labels} --split all --routes {ROUTES} --keep decided --json")
    assert json.loads(done)["labelled"] == len(ASKED)
    return "decided"


@contextmanager
def served(home, log="server.log"):
    """A server over a home: its address and its process, which a test may kill."""
    environment = {"ROUTESCOPE_HOME": str(home), "ROUTESCOPE_LLM_MODE": "replay"}
    with serving.served(home / log, environment) as found:
        yield found


@pytest.fixture(scope="session")
def browser(address):
    """One headless Chromium for all tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), headless=True, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def tab(browser, address):
    """Open a path in a fresh session: `tab("/?run=good", width=900, scheme="dark")`.

    Afterwards: no console error, no page error, no dialog, no request or link to another origin.
    """
    faults: list[str] = []
    contexts = []

    def visit(path="/", *, width=1440, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)
        contexts.append(context)
        context.add_init_script(LINKS.replace("SOURCES", json.dumps([term.url for term in TERMS.values()])))
        page = context.new_page()
        page.set_default_timeout(45_000)  # models of other tests may have the processors

        def console(message):
            probe = "/_stcore/" in (message.location or {}).get(
                "url", ""
            )  # Streamlit looks for its base path
            if message.type == "error" and not probe:
                faults.append(f"console: {message.text}")

        def request(sent):
            parts = urlsplit(sent.url)
            if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != urlsplit(address).netloc:
                faults.append(f"off-origin request: {sent.url}")

        def dialog(shown):
            faults.append(f"dialog: {shown.message}")
            shown.dismiss()

        page.on("console", console)
        page.on("request", request)
        page.on("dialog", dialog)
        page.on("pageerror", lambda error: faults.append(f"page error: {error}"))
        page.goto(address + path)
        page.wait_for_selector("[data-testid=stSidebarNav]", state="attached")  # a presentation hides it
        return page

    yield visit
    for context in contexts:
        context.close()
    assert faults == []
