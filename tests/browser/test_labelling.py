"""Labelling by keyboard alone in a real browser; what was said to be saved outlives the server's death."""

import os
import re
import signal
import statistics
import time
import uuid
from contextlib import closing

import pytest

from core.domain.types import Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.store import Store
from core.store.labels import Judgement, Pooled
from tests.browser.acting import eventually, settle
from tests.browser.conftest import served

pytestmark = [pytest.mark.browser, pytest.mark.enable_socket]
QUESTIONS, PASSAGES = 6, 20
LABELS = 100
KEYS = "asdf"
BOUND_S = 10  # generous: on a quiet machine it is a hundredth of that
PASSAGE, SAVED = ".rs-label-passage .title", ".rs-label-saved"


def made(store, name):
    """A set of questions with numbered passages in their pools, which are longer than a screen at times."""
    asked = tuple(Question(f"q{n}", Query(f"When is parcel {n} returned?")) for n in range(QUESTIONS))
    desks.create(store, name, "handbook", asked)
    found = {
        one.id: [
            Pooled(
                Passage(f"{one.id}-{n}", f"d{n}", f"Passage {n} of {one.id}", f"Parcel {n}. " * (9 + 9 * n)),
                (("bm25", n + 1),),
            )
            for n in range(PASSAGES)
        ]
        for one in asked
    }
    desks.add_to_pool(store, name, found)


def stored(home, name):
    with closing(Store(home / "routescope.sqlite")) as store:
        return desks.load(store, name)


NEXT = "([css, before]) => ![before, undefined].includes(document.querySelector(css)?.innerText)"


def press(page, key):
    """Press a key, and the seconds until the next passage is on the screen; then the keys work again."""
    before = page.locator(PASSAGE).inner_text()
    began = time.perf_counter()
    page.keyboard.press(key)
    page.wait_for_function(NEXT, arg=[PASSAGE, before], polling=10)
    took = time.perf_counter() - began
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    return took


def at(page):
    found = re.search(r"Passage (\d+) of (q\d+)", page.locator(PASSAGE).inner_text())
    return found[2], f"{found[2]}-{found[1]}"


def test_a_hundred_passages_are_labelled_by_keyboard_alone(tab, home):
    name = f"keys-{uuid.uuid4().hex[:6]}"
    with closing(Store(home / "routescope.sqlite")) as store:
        made(store, name)
    page = tab(f"/label?set={name}&annotator=anna")
    page.wait_for_selector(PASSAGE)
    settle(page)
    expected, took = {}, []
    for n in range(LABELS):
        here, key = at(page), KEYS[(7 * n + n // 5) % 4]
        assert here not in expected
        took.append(press(page, key))
        expected[here] = KEYS.index(key)
    settle(page)
    eventually(page, lambda: "100 graded" in page.locator(".rs-label-dots").inner_text())
    desk = stored(home, name)
    assert {pair: one.grade for pair, one in desk.by("anna").items()} == expected
    assert len(desk.judgements) == LABELS
    assert [one.kind for one in desk.judgements] == ["grade"] * LABELS
    assert statistics.median(took) < BOUND_S, f"slowest {max(took):.2f} s"
    # The other keys: put off, cannot tell, two back, and what was said last is taken back.
    put_off = at(page)
    press(page, "k")
    doubted = at(page)
    press(page, "j")
    press(page, "h")
    assert at(page) == doubted
    press(page, "l")
    press(page, "u")
    assert at(page) == doubted
    eventually(page, lambda: len(stored(home, name).by("anna")) == LABELS + 1)
    now = stored(home, name).by("anna")
    assert now[put_off].kind == "later"
    assert doubted not in now
    # Keys that are typed into a field are its text.
    note = page.locator("input[placeholder^='Note']")
    note.click()
    page.keyboard.type("asdf")
    page.keyboard.press("Tab")
    eventually(page, lambda: len(stored(home, name).by("anna")) == LABELS + 1)
    settle(page)
    press(page, "j")
    eventually(page, lambda: stored(home, name).by("anna")[doubted].note == "asdf")


@pytest.mark.parametrize("apart_ms", [150, 0], ids=["fast annotator", "several keys in a run"])
def test_every_key_is_saved_in_its_order(tab, home, apart_ms):
    name = f"fast-{uuid.uuid4().hex[:6]}"
    with closing(Store(home / "routescope.sqlite")) as store:
        made(store, name)
    page = tab(f"/label?set={name}&annotator=anna")
    page.wait_for_selector(PASSAGE)
    settle(page)
    pressed = [KEYS[(7 * n + n // 5) % 4] for n in range(60)]
    for key in pressed:
        page.keyboard.press(key)
        page.wait_for_timeout(apart_ms)  # the pace is what is tested
    eventually(page, lambda: "60 graded" in page.locator(".rs-label-dots").inner_text())
    said = stored(home, name).judgements
    assert [KEYS[one.grade] for one in said] == pressed
    assert len({one.pair for one in said}) == len(pressed)
    page.reload()  # the browser's presses are of a page that is gone
    page.wait_for_selector(PASSAGE)
    settle(page)
    press(page, "u")
    assert len(stored(home, name).by("anna")) == 59


def test_disagreements_are_settled_by_the_same_keys_and_the_labels_go_out(tab, home, tmp_path):
    with closing(Store(home / "routescope.sqlite")) as store:
        made(store, "two")
        for who, grades in (("anna", (3, 1, 0)), ("ben", (0, 2, 0))):
            said = [Judgement("q0", f"q0-{n}", who, "person", "grade", g) for n, g in enumerate(grades)]
            desks.judge_all(store, "two", said)
    page = tab("/label?set=two&annotator=carol&tab=Agreement", width=900, scheme="dark")
    page.wait_for_selector(PASSAGE)
    settle(page)
    assert at(page) == ("q0", "q0-0")  # three grades apart
    press(page, "f")
    assert at(page) == ("q0", "q0-1")
    page.get_by_test_id("stExpandSidebarButton").click()  # closed at this width
    page.get_by_text("Link to this view").click()
    page.wait_for_function(
        "() => [...document.querySelectorAll('code')].some(one => one.innerText.includes('q0-1'))"
    )
    page.keyboard.press("Escape")
    page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
    settle(page)
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    page.get_by_role("tab", name="Labels").click()
    settle(page)
    with page.expect_download() as given:
        page.get_by_role("button", name="TREC qrels").click()
    given.value.save_as(tmp_path / "two.qrels")
    desk = stored(home, "two")
    assert desk.adjudicated()["q0", "q0-0"].annotator == "carol"
    assert (tmp_path / "two.qrels").read_text().splitlines() == ["q0 0 q0-0 3", "q0 0 q0-1 1", "q0 0 q0-2 0"]


@pytest.mark.trust
def test_what_is_said_to_be_saved_is_in_the_file_though_the_server_is_killed(browser, home):
    with closing(Store(home / "routescope.sqlite")) as store:
        made(store, "killed")
    with served(home, "killed.log") as (address, server):
        page = browser.new_page()
        page.set_default_timeout(30_000)
        page.goto(f"{address}/label?set=killed&annotator=anna")
        page.wait_for_selector(PASSAGE)
        settle(page)
        here = at(page)
        page.keyboard.press("d")
        page.wait_for_function(
            "css => document.querySelector(css)?.innerText.startsWith('Saved')", arg=SAVED, polling=5
        )
        os.kill(server.pid, signal.SIGKILL)
        server.wait(10)
        page.close()
    (kept,) = stored(home, "killed").judgements
    assert (kept.pair, kept.grade, kept.annotator) == (here, 2, "anna")
