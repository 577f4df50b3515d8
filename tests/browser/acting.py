"""What the browser tests do on a page, and how they wait: for a quiet page, never for a time alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

MAIN = "[data-testid=stMain]"
QUIET_MS, LONGEST_MS = 400, 15_000
# The page is quiet when nothing in it has changed for a while; a page that never rests is left at the bound.
QUIET = """([quiet, longest]) => new Promise(done => {
  let timer
  const over = () => { observer.disconnect(); clearTimeout(timer); clearTimeout(last); done() }
  const begin = () => { clearTimeout(timer); timer = setTimeout(over, quiet) }
  const observer = new MutationObserver(begin)
  const last = setTimeout(over, longest)
  observer.observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true})
  begin()
})"""
NOT_RUNNING = "[data-testid=stApp][data-test-script-state=notRunning]"


def settle(page) -> None:
    """Wait until Streamlit has nothing to do, nothing is under way, and the page has stopped changing."""
    page.wait_for_timeout(200)  # what was just done has to reach the server first
    for _ in range(2):
        page.wait_for_selector(NOT_RUNNING)
        page.wait_for_selector(f"{MAIN} [data-testid=stProgress]", state="detached", timeout=60_000)
        page.evaluate(QUIET, [QUIET_MS, LONGEST_MS])
        if page.locator(NOT_RUNNING).count():
            return


def eventually(page, check: Callable[[], bool], seconds: float = 20) -> None:
    """Fail when a check has not held within some seconds."""
    for _ in range(int(seconds * 5)):
        if check():
            return
        page.wait_for_timeout(200)
    assert check()


def text(page) -> str:
    """What the page says."""
    return str(page.locator(MAIN).inner_text())


def still(page) -> str:
    """The text of the page when it has not changed for a second: parts are loaded when first drawn."""
    shown, since = text(page), 0
    for _ in range(100):
        page.wait_for_timeout(250)
        now = text(page)
        since = since + 1 if now == shown else 0
        shown = now
        if since == 4:
            break
    return shown


def views(page) -> Iterator[int]:
    """Open each tab of the page in turn, which has no exception, and yield its number."""
    tabs = page.locator(f"{MAIN} [data-testid=stTab]")
    for number in range(tabs.count()):
        tabs.nth(number).click()
        settle(page)
        assert page.locator("[data-testid=stException]").count() == 0
        yield number


def reopened_alike(page, tab) -> None:
    """Fail if the second view of the page, opened by its address alone, says anything else."""
    tabs = page.locator(f"{MAIN} [data-testid=stTab]")
    if tabs.count() > 1:
        tabs.nth(1).click()
        settle(page)
    shown = still(page)
    again = tab("/" + page.url.split("/", 3)[3])
    settle(again)
    assert still(again) == shown


def failures(page) -> list[str]:
    """Exceptions, and errors that a page shows; an answer that another test asked for in vain is none."""
    told = page.locator("[data-testid=stException], [data-testid=stAlertContentError]").all_inner_texts()
    return [one for one in told if "could not write an answer" not in one]


def alerts(page) -> list[str]:
    """The messages on the page itself."""
    return list(page.locator(f"{MAIN} [data-testid=stAlert]").all_inner_texts())


def choose(page, label: str, entry: str) -> None:
    """Choose an entry of a list by typing a part of it."""
    box = page.locator(f"{MAIN} input[aria-label*='{label}']").first
    box.click()
    page.keyboard.type(entry)
    page.locator("[role=option]", has_text=re.compile(re.escape(entry), re.IGNORECASE)).first.wait_for()
    page.keyboard.press("Enter")
    settle(page)


def tick(page) -> None:
    """Tick the first row of the table of runs; the table is a canvas, whose drawing no selector tells of."""
    page.wait_for_selector("[data-testid=stDataFrame] canvas")
    settle(page)
    told = page.locator("button:has-text('Delete 1')")
    for _ in range(5):
        box = page.locator("[data-testid=stDataFrame]").first.bounding_box()
        page.mouse.click(box["x"] + 16, box["y"] + 52)
        for _ in range(30):
            if told.count():
                settle(page)
                return
            page.wait_for_timeout(200)
    told.wait_for()
