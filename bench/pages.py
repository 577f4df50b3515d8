"""How long a click takes to be answered on the pages, in a real browser: `python -m bench.pages`.

A run of 25 routes with 50 hits each is opened on each page; each click is made several times, and its time is
from the click to the last change that it makes to the page. Beside it a page that has nothing but a control
and the text that it changes: what Streamlit and the browser take at least.
"""

from __future__ import annotations

import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from bench.results import keep, machine
from core.domain import settings as settings_module
from core.store import Store
from scripts.screenshots import FLAGS
from scripts.serving import served
from tests.large import large_run

log = logging.getLogger("bench")
TIMES = 5
QUIET_MS = 700  # without a change for so long: the click is answered
WATCH = """() => {
  window.clicked = 0; window.changed = 0;
  for (const kind of ["pointerdown", "keydown"])
    addEventListener(kind, event => { window.clicked = event.timeStamp; window.changed = 0; }, true);
  const seen = new MutationObserver(() => { if (window.clicked) window.changed = performance.now(); });
  for (const part of document.querySelectorAll("[data-testid=stMain], [data-testid=stEvent]"))
    seen.observe(part, {childList: true, characterData: true, subtree: true});  // the page, and its styles
}"""
READY = "[data-testid=stApp][data-test-script-state=notRunning]"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Open a browser."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=path, args=FLAGS) as browser,
    ):
        yield browser


def answered(page: Page) -> float:
    """Milliseconds from the last click or key to the last change it made."""
    for _ in range(300):
        page.wait_for_timeout(100)  # the page's policy lets nothing be evaluated in it again and again
        if page.evaluate(f"window.changed > 0 && performance.now() - window.changed > {QUIET_MS}"):
            page.wait_for_selector(READY)
            return float(page.evaluate("window.changed - window.clicked"))
    raise TimeoutError("a click was not answered within 30 s: nothing changed, or it goes on changing")


def tab(name: str) -> Callable[[Page, int], None]:
    """Open a tab, and the one before it the next time."""

    def act(page: Page, turn: int) -> None:
        tabs = page.locator("[data-testid=stMain] [data-testid=stTab]")
        (tabs.filter(has_text=name) if turn % 2 == 0 else tabs).first.click()

    return act


def segment(*names: str) -> Callable[[Page, int], None]:
    """Press the parts of a segmented control in turn."""

    def act(page: Page, turn: int) -> None:
        name = names[turn % len(names)]
        page.locator("[data-testid=stMain] [data-testid=stButtonGroup] button").filter(
            has=page.get_by_text(name, exact=True)
        ).first.click()

    return act


def pick(label: str) -> Callable[[Page, int], None]:
    """Choose the next entry of a list: from the key that chooses it."""

    def act(page: Page, turn: int) -> None:
        page.locator(f"[data-testid=stMain] input[aria-label^='{label}']").first.click()
        for _ in range(turn + 1):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")

    return act


def slide(label: str) -> Callable[[Page, int], None]:
    """Move a slider by one step."""

    def act(page: Page, turn: int) -> None:
        page.locator(f"[data-testid=stSlider] input[type=range][aria-label='{label}']").first.focus()
        page.keyboard.press("ArrowRight" if turn % 2 == 0 else "ArrowLeft")

    return act


def row(page: Page, turn: int) -> None:
    """Press the title of another row of the matrix."""
    page.locator(".rs-matrix button.title").nth(turn % 5 + 1).click()


def tick(label: str) -> Callable[[Page, int], None]:
    """Tick or clear a box."""
    return lambda page, _: page.locator("[data-testid=stCheckbox]").filter(has_text=label).first.click()


def grade(page: Page, turn: int) -> None:
    """Grade the passage shown, with a key."""
    page.keyboard.press("asdf"[turn % 4])


NAME = "bench"  # of the evaluation, and of the label set
ROUTES = "bm25,grep,dense,hybrid_rrf,hybrid_linear,rerank,mmr,prf_rm3"
PAGES = ("why", "steps", "latency", "label", "evaluate", "tune", "release", "sessions", "present", "corpus")
FLOOR = """
import streamlit as st
st.write(st.segmented_control("Text", ["S", "L"], default="S"))
"""
CLICKS: tuple[tuple[str, str, Callable[[Page, int], None]], ...] = (
    ("/?depth=50&tab=Columns", "Compare: hits 50 and 20", segment("20", "50")),
    ("/?depth=50&tab=Columns", "Compare: text S and L", segment("L", "S")),
    ("/?depth=50&tab=Columns", "Compare: pick a passage", pick("Passage")),
    ("/", "Compare: press a row of the matrix", row),
    ("/", "Compare: columns", tab("Columns")),
    ("/", "Compare: overlap", tab("Overlap")),
    ("/why", "Why: pick a passage", pick("Passage")),
    ("/steps?view=Fusion&route=hybrid_rrf", "Fusion: move a weight", slide("weight of search BM25")),
    ("/latency", "Latency: where the time goes", tab("Where")),
    (f"/evaluate?evaluation={NAME}", "Evaluate: differences", tab("Differences")),
    (f"/evaluate?evaluation={NAME}", "Evaluate: against time", segment("Median latency (p50)", "Means")),
    (f"/evaluate?evaluation={NAME}", "Evaluate: questions", tab("Questions")),
    (f"/release?evaluation={NAME}", "Release: what it rests on", tab("What it rests on")),
    (f"/release?evaluation={NAME}", "Release: ship the best or the cheapest", tick("Ship the cheapest")),
    (f"/label?set={NAME}", "Label: grade a passage", grade),
    (f"/label?set={NAME}", "Label: pool", tab("Pool")),
)


def clicks(address: str, run_id: str, *, times: int = TIMES) -> dict[str, dict[str, float]]:
    """Milliseconds of each of `CLICKS` on the stored run: median and maximum."""
    found: dict[str, dict[str, float]] = {}
    with chromium() as browser:
        for path, name, act in CLICKS:
            page = browser.new_page(viewport={"width": 1440, "height": 1000})
            page.goto(f"{address}{path}{'&' if '?' in path else '?'}run={run_id}")
            page.wait_for_selector(READY)
            page.wait_for_timeout(3000)
            page.wait_for_selector("[data-testid=stProgress]", state="detached", timeout=120_000)
            page.evaluate(WATCH)
            act(page, 0)
            answered(page)  # the first one imports what the view needs
            took = []
            for turn in range(1, times + 1):
                act(page, turn)
                took.append(answered(page))
            found[name] = {"median_ms": statistics.median(took), "max_ms": max(took), "n": len(took)}
            log.info("%s: %.0f ms (max %.0f)", name, statistics.median(took), max(took))
            page.close()
    return found


def first_visits(address: str, run_id: str) -> dict[str, float]:
    """Return the milliseconds from a click in the navigation to a drawn page, for the first visit of each."""
    found: dict[str, float] = {}
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.goto(f"{address}/?run={run_id}")
        page.wait_for_selector(".rs-matrix")
        page.wait_for_selector(READY)
        page.wait_for_timeout(3000)
        for name in PAGES:
            page.evaluate(WATCH)
            page.locator(f"[data-testid=stSidebarNav] a[href$='/{name}']").click()
            found[name] = answered(page)
            log.info("first visit of %s: %.0f ms", name, found[name])
    return found


def floor(folder: Path, times: int = TIMES) -> float:
    """Milliseconds of a click on a page that has nothing else, the median."""
    app = folder / "floor.py"
    app.write_text(FLOOR, encoding="utf-8")
    with served(app=app) as (address, _), chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.goto(address)
        page.wait_for_selector(READY)
        page.wait_for_timeout(3000)
        page.evaluate(WATCH)
        act, took = segment("L", "S"), []
        for turn in range(times + 1):
            act(page, turn)
            took.append(answered(page))
    return statistics.median(took[1:])


def measure() -> dict[str, Any]:
    """Measure clicks on a run of 25 routes with 50 hits each, an evaluation and a label set."""
    here = settings_module.load().home
    home = Path(tempfile.mkdtemp(prefix="routescope-pages-"))
    (home / "indexes").symlink_to(here / "indexes")
    run = large_run(corpus="support")
    store = Store(home / "routescope.sqlite")
    store.save(run)
    store.close()
    os.environ["ROUTESCOPE_HOME"] = str(home)
    for command in (
        f"eval support --routes {ROUTES} --split all --keep {NAME}",
        f"labels create {NAME} --corpus support",
        f"labels pool {NAME} --evaluation {NAME}",
    ):
        subprocess.run(
            [sys.executable, "-m", "core", *command.split()], check=True, stdout=subprocess.DEVNULL
        )
    least = floor(home)
    with served() as (address, _):
        visits = first_visits(address, run.id)
        found = clicks(address, run.id)
    return {
        "clicks": found,
        "first_visits_ms": visits,
        "floor_ms": least,
        "ratios": {f"{name} / an empty page": one["median_ms"] / least for name, one in found.items()},
    }


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    keep("pages", {"machine": machine(), **measure()})
