"""Screenshots of each page into docs/: `python -m scripts.screenshots`.

Serves the app on a free port, asks a sample question, and takes each page at 1440 and 900 px, light and dark.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, Page, sync_playwright

from core.settings import PROJECT

DOCS = PROJECT / "docs"
QUESTION = "Can I get a refund if my perishable item spoils after 48 hours?"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]


@contextmanager
def served() -> Iterator[str]:
    """The app on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    server = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL, env=os.environ.copy())
    address = f"http://localhost:{port}"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=1)
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(10)


def settle(page: Page) -> None:
    """Wait until the page has nothing to do."""
    page.wait_for_timeout(600)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    page.wait_for_timeout(400)


def ask(browser: Browser, address: str) -> str:
    """Run the question with every route; the path of its link."""
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.goto(f"{address}/?corpus=support&q={quote(QUESTION)}")
    page.wait_for_selector("textarea")
    settle(page)
    page.click("textarea")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("[data-testid=stTabs]", timeout=600_000)
    settle(page)
    path = page.url.removeprefix(address)
    page.close()
    return path


def shoot(browser: Browser, address: str, views: dict[str, str], folder: Path) -> None:
    """Each view at both widths and in both themes; Compare's other tabs once."""
    for width, scheme in ((1440, "light"), (1440, "dark"), (900, "light"), (900, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)
        for name, path in views.items():
            page = context.new_page()
            page.goto(address + path)
            page.wait_for_selector("[data-testid=stSidebarNav]")
            settle(page)
            page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
            tabs = page.locator("[data-testid=stTab]")
            for number in range(1, tabs.count() if (width, scheme) == (1440, "light") else 0):
                tabs.nth(number).click()
                settle(page)
                label = tabs.nth(number).inner_text().split()[0].lower()
                page.screenshot(path=folder / f"{name}-{label}-{width}-{scheme}.png", full_page=True)
            page.close()
        context.close()


def main() -> None:
    """Take all screenshots."""
    DOCS.mkdir(exist_ok=True)
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        with served() as address:
            views = {"start": "/", "compare": ask(browser, address), "sessions": "/sessions"}
            shoot(browser, address, views, DOCS)
        browser.close()


if __name__ == "__main__":
    main()
