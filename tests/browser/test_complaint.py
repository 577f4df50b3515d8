"""From a wrong result to a test of the gate in a real browser: two clicks, undo, the queue that settles."""

from contextlib import closing

import pytest

from core.evaluation.labels import desk as desks
from core.store import Store
from tests.browser.acting import eventually, failures, settle, text

pytestmark = [pytest.mark.browser, pytest.mark.enable_socket]
NAME = "regressions handbook"


def sets(home):
    with closing(Store(home / "routescope.sqlite")) as store:
        return {one.name: desks.load(store, one.name) for one in desks.sets(store)}


@pytest.mark.parametrize(("path", "key"), [("/?run=good", "wrong_ranking"), ("/why?run=good", "wrong_here")])
def test_two_clicks_make_a_test_and_undo_takes_it_back(tab, home, path, key):
    page = tab(path)
    settle(page)
    page.locator(f".st-key-{key}_box button").first.click()
    page.locator(f".st-key-{key}_save button").click()
    settle(page)
    eventually(page, lambda: f"the question is a new test in {NAME}" in text(page))
    (question,) = sets(home)[NAME].questions
    assert question.complaints[0].run == "good"
    assert failures(page) == []
    page.keyboard.press("Escape")
    page.locator(f".st-key-{key}_undo button").click()
    settle(page)
    eventually(page, lambda: f"Taken back from {NAME}" in text(page))
    assert NAME not in sets(home)


def test_the_leaderboard_opens_the_queue_that_settles_it(tab, kept):
    """Release does, too, where the times of the machine do not decide first."""
    page = tab(f"/evaluate?evaluation={kept}")
    settle(page)
    page.locator(".st-key-evaluate_settle button").first.click()
    page.wait_for_url("**/label?*order=*")
    settle(page)
    assert "come first" in text(page)
    assert failures(page) == []
