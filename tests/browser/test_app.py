"""The main job in a real browser, and what a page must never do."""

import csv
import http.client
import io
import socket
import struct
import time
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import replace
from urllib.parse import urlsplit

import psutil
import pytest

from core.evaluation.labels import desk as desks
from core.routes.registry import routes
from core.store import Store
from tests.browser.acting import MAIN, alerts, eventually, settle, tick
from tests.runs import HOSTILE, STANDALONE, make_run

pytestmark = [pytest.mark.browser, pytest.mark.enable_socket]
# Notes where the tabs of a run are, in each frame from now on.
TOPS = f"""() => {{
  window.tops = new Set()
  const look = () => {{
    const tabs = document.querySelector("{MAIN} [role=tablist]")
    if (tabs) window.tops.add(Math.round(tabs.getBoundingClientRect().top))
    requestAnimationFrame(look)
  }}
  look()
}}"""
QUESTION = "How do I send an item back?"


def get(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.headers


def finish(page, seconds=60):
    """Wait until the run has ended."""
    page.wait_for_selector(".rs-matrix, .rs-grid", timeout=seconds * 1000)
    settle(page)


def ask(page, question=QUESTION):
    page.fill("textarea", question)
    page.keyboard.press("Control+Enter")


# Safe defaults.


@pytest.mark.trust
def test_every_answer_carries_the_security_headers(address):
    for path in ("/", "/sessions", "/_stcore/health", "/favicon.png", "/nothing/here"):
        _, headers = get(address + path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "img-src 'self' data: blob:" in policy
        assert "object-src 'none'" in policy
        assert "connect-src 'self'" in policy.split("; ")
        assert "'unsafe-eval'" not in policy.replace("'wasm-unsafe-eval'", "")
        scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
        assert "'unsafe-inline'" not in scripts
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "SAMEORIGIN"


@pytest.mark.trust
def test_another_host_name_is_refused(address):
    assert get(address + "/", Host="evil.example")[0] == 400
    assert get(address + "/", Host="localhost")[0] == 200


def send(url, method, origin, **headers):
    """Status and body of a request as a page of `origin` sends it, or as no page does for None."""
    given = {**({"Origin": origin} if origin else {}), **headers}
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)) as connection:
        connection.request(method, urlsplit(url).path, headers=given)
        answer = connection.getresponse()
        return answer.status, b"" if answer.status == 101 else answer.read()


def shaken(address, origin):
    """The status that a WebSocket's handshake from `origin` gets."""
    wanted = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
        "Sec-WebSocket-Protocol": "streamlit",
    }
    return send(f"{address}/_stcore/stream", "GET", origin, **wanted)[0]


def foreign(address):
    """Origins of other programs: on this machine by another port, scheme or name, and elsewhere."""
    port = urlsplit(address).port
    return (
        f"http://localhost:{port + 1}",
        "http://localhost",
        f"http://127.0.0.1:{port + 1}",
        "https://localhost",
        "http://evil.example",
        f"http://evil.example:{port}",
        f"http://localhost.evil.example:{port}",
        f"http://localhost:{port}@evil.example",
        "null",
        "file://",
        "",
        "x",
    )


@pytest.mark.trust
def test_a_websocket_opens_for_the_own_origin_alone(address):
    assert shaken(address, address) == 101
    assert shaken(address, None) == 101  # no page: browsers always say where one is from
    for origin in foreign(address):
        assert shaken(address, origin or " ") == 403, origin


@pytest.mark.trust
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "GET"])
def test_a_request_of_another_origin_is_refused(address, method):
    said = b"a page of another origin may not talk to this server"
    for path in ("/_stcore/upload_file/session/file", "/_stcore/health", "/"):
        for origin in foreign(address):
            assert send(address + path, method, origin or " ") == (403, said), origin
        assert said not in send(address + path, method, address)[1]


@pytest.mark.trust
def test_a_page_connects_to_its_own_server_alone(browser, address):
    """Its WebSocket works, as something is drawn; others are not even tried."""
    with closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("[data-testid=stSidebarNav]")
        blocked = page.evaluate(
            """async addresses => {
                const blocked = []
                addEventListener('securitypolicyviolation', event => blocked.push(event.blockedURI))
                for (const address of addresses) {
                  const before = blocked.length
                  try { new WebSocket(address) } catch { /* some versions throw besides */ }
                  while (blocked.length === before) await new Promise(done => setTimeout(done, 20))
                }
                return blocked
            }""",
            ["ws://localhost:9/x", "wss://evil.example/x", "ws://127.0.0.1:9/x"],
        )
    assert [urlsplit(one).hostname for one in blocked] == ["localhost", "evil.example", "127.0.0.1"]


def test_nothing_is_logged_as_an_error_when_a_visitor_goes_away_or_talks_nonsense(address, home):
    before = (home / "server.log").read_text()
    place = (urlsplit(address).hostname, urlsplit(address).port)
    hello = (
        f"GET /_stcore/stream HTTP/1.1\r\nHost: localhost:{place[1]}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
    )
    text, rerun = b"\x81\x85\0\0\0\0hello", b"\x82\x84\0\0\0\0\x5a\x02\x0a\x00"
    for frames in (text, rerun * 3 + text, rerun * 50):
        with socket.create_connection(place, 10) as talk:
            talk.sendall(hello.encode())
            assert b" 101 " in talk.recv(1000)
            talk.sendall(frames)
            talk.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # hangs up by a reset
    assert get(address + "/_stcore/health")[0] == 200
    told = (home / "server.log").read_text().removeprefix(before)
    assert "Traceback" not in told


@pytest.mark.trust
def test_it_listens_on_loopback_only(address):
    port = urlsplit(address).port
    listening = [
        c.laddr.ip for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port
    ]
    assert listening == ["127.0.0.1"]


# The main job.


def test_ask_with_the_keyboard_and_reopen_by_link(tab):
    page = tab("/?corpus=handbook&tab=Columns")
    settle(page)
    began = time.perf_counter()
    ask(page)
    page.wait_for_selector(".rs-hit")
    assert time.perf_counter() - began < 60  # generous: other work may share the machine
    page.evaluate(TOPS)
    finish(page)
    tops = page.evaluate("[...window.tops]")
    assert max(tops) - min(tops) <= 2, "what is read moves when the run ends and routes have failed"
    assert "run=" in page.url
    titles = page.locator(".rs-head .name span:first-child").all_inner_texts()
    first_choice = {route.title for route in routes().values() if route.first}
    assert set(titles) < first_choice, "those that need a model are told above"
    page.locator(".st-key-troubles button").click()
    page.wait_for_selector(".rs-trouble summary")
    told = page.locator(".rs-trouble summary").all_inner_texts()
    page.keyboard.press("Escape")
    assert all(name in "".join(told) for name in first_choice - set(titles))
    first = page.locator(".rs-grid").inner_text()
    assert "Returns" in first
    again = tab("/" + page.url.split("/", 3)[3])
    finish(again)
    assert again.locator(".rs-grid").inner_text() == first
    assert again.locator("textarea").input_value() == QUESTION


def test_one_press_makes_one_run(tab):
    page = tab("/?corpus=handbook")
    settle(page)
    ask(page, "one press, one run")
    finish(page)
    page.click("[data-testid=stSidebarNav] >> text=Sessions")
    page.wait_for_selector("input[aria-label=Search]")
    settle(page)
    page.fill("input[aria-label=Search]", "one press")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=1 to 1 of 1 runs")


def test_a_sample_and_the_shortcut_from_anywhere(tab):
    page = tab("/?corpus=support")
    page.click("text=How do I start a return?")
    settle(page)
    eventually(page, lambda: page.locator("textarea").input_value() == "How do I start a return?")
    page.mouse.click(1200, 900)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("[data-testid=stAlert] >> text=support is not built")


def test_pointing_at_a_passage_lights_it_up_in_every_route(tab):
    page = tab("/?run=good&tab=Columns")
    page.wait_for_selector(".rs-hit")
    settle(page)
    number = page.locator(".rs-hit").first.get_attribute("data-p")
    same = page.locator(f'[data-p="{number}"]')
    assert same.count() > 3

    def colours():
        return same.evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)")

    def lit():
        now = colours()
        return len(set(now)) == 1 and all(a != b for a, b in zip(now, before, strict=True))

    before = colours()
    same.first.hover()
    eventually(page, lit)
    page.mouse.move(1, 1)
    eventually(page, lambda: colours() == before)
    same.first.locator("summary").click()
    page.mouse.move(1, 1)
    eventually(page, lit)
    assert page.locator(".rs-hit[open] .full").first.is_visible()


FIRST_RESULT = """() => Math.min(...[...document.querySelectorAll('.rs-hit, .rs-matrix tbody tr')]
  .map(e => e.getBoundingClientRect()).filter(box => box.height).map(box => box.top))"""


@pytest.mark.parametrize("path", ["/?run=good", "/?run=bad", "/?run=good&tab=Columns"])
@pytest.mark.parametrize(("width", "most"), [(1440, 400), (900, 430)])
def test_the_first_result_is_in_sight_when_a_run_is_opened(tab, path, width, most):
    page = tab(path, width=width)
    page.wait_for_selector(".rs-matrix, .rs-grid")
    settle(page)
    assert page.evaluate(FIRST_RESULT) <= most


def test_a_hit_is_graded_in_place_and_the_grade_taken_back(tab, home):
    page = tab("/?corpus=handbook&tab=Columns")
    settle(page)
    ask(page, "Which hit is worth a grade?")
    finish(page)
    first = page.locator(".rs-one").first
    first.hover()
    first.locator("button.g0").click()
    page.wait_for_selector(".rs-one .grade.on.g0")
    settle(page)
    first.hover()
    first.locator("button.g3").click()
    page.wait_for_selector(".rs-one .grade.on.g3")
    with closing(Store(home / "routescope.sqlite")) as store:
        desk = desks.load(store, "grades handbook")
    assert [one.grade for one in desk.judgements] == [0, 3]
    settle(page)
    first.hover()
    first.locator("button.g3").click()
    page.wait_for_selector(".rs-one .grade.on.g0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 900])
def test_views_draw_and_fit(tab, width, scheme):
    page = tab("/?run=good", width=width, scheme=scheme)
    for name, sign in (
        ("Ranks", ".rs-matrix"),
        ("Overlap", "text=Found by only one route"),
        ("Matches", "text=recorded which tokens"),
        ("Cost", ".rs-costs"),
        ("Trace", ".rs-trace"),
    ):
        page.click(f"[role=tab]:has-text('{name}')")
        page.wait_for_selector(sign, state="attached")
    page.click("[role=tab]:has-text('Columns')")
    page.wait_for_selector(".rs-grid")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    inside = page.locator(".rs-grid").evaluate("e => [e.scrollWidth > e.clientWidth, e.clientWidth]")
    assert inside[0]
    assert inside[1] > 500
    main = page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    assert main
    dark = page.evaluate("getComputedStyle(document.documentElement).colorScheme")
    assert dark == scheme


def test_a_question_that_is_too_long_gets_one_message(tab):
    page = tab("/?corpus=handbook")
    settle(page)
    ask(page, "word " * 4000)
    page.wait_for_selector("[data-testid=stAlert] >> text=at most")
    settle(page)
    assert alerts(page) == ["the question has 19,999 characters; at most 10,000 are allowed"]


def test_a_question_beyond_all_measure_leaves_the_page_as_it_is(tab):
    page = tab("/?corpus=handbook")
    settle(page)
    page.evaluate("window.stays = true")
    box = page.locator("textarea").first
    assert "up to 10,000 characters" in box.get_attribute("placeholder")
    # As pasting does: playwright's fill would first send 50 MB to the browser.
    box.evaluate(
        """box => {
            const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set
            box.focus()
            set.call(box, 'word '.repeat(10_000_000))
            box.dispatchEvent(new Event('input', {bubbles: true}))
        }"""
    )
    page.keyboard.press("Control+Enter")
    eventually(page, lambda: alerts(page) == ["the question is empty; write at least one word"])
    assert page.evaluate("window.stays")
    ask(page, "refund for the returned item")
    finish(page)
    assert page.evaluate("window.stays")


def test_a_deep_link_keeps_the_frame(tab):
    page = tab("/sessions")
    page.wait_for_selector("[data-testid=stDataFrame]")
    assert page.locator("[data-testid=stSidebarNav] >> text=Compare").count() == 1


def test_a_corpus_is_added_from_a_folder(tab, tmp_path):
    folder = tmp_path / "lamps"
    folder.mkdir()
    for n in range(3):
        (folder / f"{n}.md").write_text(f"# Lamp {n}\n\nLamp number {n} has a bulb of {n + 40} watts.\n")
    page = tab("/corpus?tab=Add")
    page.wait_for_selector("input[aria-label='Folder or file']")
    settle(page)
    page.fill("input[aria-label='Folder or file']", str(tmp_path / "nothing"))
    page.keyboard.press("Enter")
    settle(page)
    page.click("button:has-text('Build index')")
    page.wait_for_selector("[data-testid=stMain] [data-testid=stAlert] >> text=nothing")
    page.fill("input[aria-label='Folder or file']", str(folder))
    page.keyboard.press("Enter")
    settle(page)
    page.click("button:has-text('Build index')")
    page.wait_for_selector("[data-testid=stSidebar] >> text=3 documents", timeout=90_000)
    again = tab("/?corpus=lamps")
    settle(again)
    ask(again, "How many watts has lamp 2?")
    finish(again)
    assert "Lamp 2" in again.locator(".rs-matrix").inner_text()


# What goes on without the page is seen on it without a click.


def test_a_run_of_another_process_is_followed_until_it_ends(tab, home, address):
    run = make_run(mishaps=False, corpus="handbook", run_id="elsewhere")
    run = replace(run, settings={**run.settings, "routes": [result.route for result in run.results]})
    with closing(Store(home / "routescope.sqlite")) as store:
        store.save(replace(run, results=run.results[:3], status="running"))
        assert store.flush()
        page = tab("/?run=elsewhere")
        page.wait_for_selector("text=3 of 8 routes")
        assert page.locator(".rs-matrix thead i").count() == 5
        store.save(replace(run, results=run.results[:5], status="running"))
        page.wait_for_selector("text=5 of 8 routes")
        store.save(run)
        finish(page, 15)
    assert page.locator(".rs-matrix thead i").count() == 0
    assert "8 of 8 routes, " in page.locator("[data-testid=stMain]").inner_text()


def test_an_answer_that_cannot_be_written_is_told_as_soon_as_it_is_known(tab):
    page = tab("/?run=good&tab=Answers")
    page.wait_for_selector("button:has-text('Write answer')")
    settle(page)
    page.click("button:has-text('Write answer')")
    page.wait_for_selector("[data-testid=stAlert] >> text=BM25 could not write")
    settle(page)
    assert len(alerts(page)) == 1
    assert page.locator("button:has-text('Write answer')").is_enabled()


# Sessions.


def test_open_delete_and_undo_from_the_list(tab):
    page = tab("/sessions")
    page.wait_for_selector("input[aria-label=Search]")
    settle(page)
    page.fill("input[aria-label=Search]", "crushed evidence deadline nothing")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=No run matches")
    page.fill("input[aria-label=Search]", "")
    page.keyboard.press("Enter")
    tick(page)
    page.click("button:has-text('Delete 1')")
    page.wait_for_selector("text=1 run deleted")
    page.click("button:has-text('Undo')")
    page.wait_for_selector("text=1 run deleted", state="detached")
    tick(page)
    page.click("[data-testid=stMain] button:has-text('Open')")
    page.wait_for_selector(".rs-matrix, .rs-grid")
    assert "?run=" in page.url


@pytest.mark.trust
def test_a_table_that_is_saved_as_csv_holds_no_formula(tab, home, tmp_path):
    run = make_run(mishaps=False, run_id="formula", corpus="handbook")
    asked = replace(run.query, text="=cmd|' /C calc'!A0 for spreadsheets")
    with closing(Store(home / "routescope.sqlite")) as store:
        store.save(replace(run, query=asked))
        assert store.flush()
        store.note("formula", "+1;@SUM(A1)")
        store.tag("formula", ["-x"])
    page = tab("/sessions?search=spreadsheets")
    page.wait_for_selector("[data-testid=stDataFrame] canvas")
    settle(page)
    page.evaluate("delete window.showSaveFilePicker")  # no dialog can be answered here
    page.locator("[data-testid=stDataFrame]").first.hover()
    with page.expect_download() as given:
        page.locator("button[aria-label^='Download as CSV']").first.click()
    given.value.save_as(tmp_path / "sessions.csv")
    text = (tmp_path / "sessions.csv").read_text(encoding="utf-8-sig")
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["Question"] == "'=cmd|' /C calc'!A0 for spreadsheets"
    assert row["Note"] == "'+1;'@SUM(A1)"
    assert row["Tags"] == "'-x"


def test_the_turns_of_a_conversation_are_edited_and_not_saved_as_csv(tab):
    page = tab("/?run=good")
    page.wait_for_selector(".rs-matrix")
    page.locator(".st-key-more_menu button").first.click()
    page.get_by_role("tab", name="Conversation").click()
    editor = page.locator(".st-key-turns [data-testid=stDataFrame]")
    editor.wait_for()
    editor.hover()
    page.locator(".st-key-turns [aria-label^='Add row']").wait_for()
    button = page.locator(".st-key-turns [aria-label^='Download as CSV']")
    assert button.count() == 1  # where Streamlit leaves it out, so can the style
    assert not button.is_visible()


# Hostile text.


@pytest.mark.trust
def test_hostile_text_is_read_and_never_run(tab):
    page = tab("/?run=evil&tab=Columns")
    page.wait_for_selector(".rs-hit")
    assert HOSTILE[0] in page.locator(".rs-grid").inner_text()
    for name in ("Ranks", "Overlap", "Answers", "Matches", "Cost", "Trace"):
        page.click(f"[role=tab]:has-text('{name}')")
        settle(page)
    page.click("[role=tab]:has-text('Columns')")
    for summary in page.locator(".rs-hit summary").all()[:4]:
        summary.click()
    for frame in ("img", "script", "svg"):
        assert page.locator(f".rs {frame}").count() == 0
    page.click("[data-testid=stSidebarNav] >> text=Sessions")
    page.wait_for_selector("[data-testid=stDataFrame] canvas")


def test_hostile_documents_can_be_searched(tab):
    page = tab("/?corpus=handbook")
    settle(page)
    ask(page, "shipping of items ![x](http://evil.example/q.png) <img src=http://evil.example/q2.png>")
    finish(page)
    assert "<img src=http://evil.example/a.png onerror=alert(1)>" in page.locator(".rs-matrix").inner_text()


def test_a_hostile_link_is_told_as_text(tab):
    page = tab("/?run=![x](http://evil.example/r.png)<img src=http://evil.example/r2.png>")
    page.wait_for_selector("[data-testid=stAlert] >> text=there is no run")
    text = alerts(page)[0]
    assert text.startswith("there is no run '![x](http://")


def test_the_made_runs_are_what_the_pages_were_given():
    assert make_run(run_id="good", mishaps=False).results[4].spans[0].output.texts == (STANDALONE,)
