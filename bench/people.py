"""How long people wait who ask at once: `python -m bench.people [--people 10] [--questions 5]`.

All routes that ask no model, over the corpus support. In the engine: from asking to the finished run. On
Compare: from the click on Run to the finished page, as browsers see it that only wait; each person is a
websocket of their own to a real server. The processors also run the ten who wait, so it is at most too slow.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.run import CORPUS, OUT, machine
from core import settings as settings_module
from core.engine import Engine, Request
from core.evaluate import sets
from core.needs import missing, why_not
from core.route import routes
from core.settings import Settings
from core.store import Store
from core.types import Query

log = logging.getLogger("bench")
PATIENCE_S = 300.0
READY = "routes with a result"  # what Compare says of a run that has ended


def spread(seconds: list[float]) -> dict[str, float]:
    """The median, what 95 % stay below, and the longest."""
    ordered = sorted(seconds)
    return {
        "p50_s": statistics.median(ordered),
        "p95_s": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
        "max_s": ordered[-1],
        "n": len(ordered),
    }


def in_engine(settings: Settings, questions: list[str], people: int, each: int) -> dict[str, Any]:
    """Everybody asks `each` questions, one after the other, in threads of one process."""
    store = Store(settings.home / "routescope.sqlite")
    engine = Engine(settings, store)
    gaps = missing(engine, CORPUS)
    names = tuple(name for name, route in routes().items() if not route.asks() and not why_not(route, gaps))

    def ask(text: str) -> float:
        began = time.perf_counter()
        run = engine.start(Request(Query(text), CORPUS, names, models=False)).wait(PATIENCE_S)
        for result in run.results:
            if result.status != "ok":
                log.warning("%s: %s: %s", text[:40], result.route, result.error)
        return time.perf_counter() - began

    ask(questions[0])  # opens what is opened once
    alone = [ask(text) for text in questions[:each]]
    together: list[float] = []

    def person(number: int) -> None:
        for text in random.Random(number).sample(questions, each):
            together.append(ask(text))  # noqa: PERF401 - what was found before an error counts

    threads = [threading.Thread(target=person, args=(number,)) for number in range(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    return {"routes": list(names), "alone": spread(alone), "together": spread(together)}


class Person:
    """A browser session that only waits: it presses buttons and asks for what the page says is to be asked
    for again.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._ids: dict[str, str] = {}  # widgets by the beginning of their label
        self._again: dict[str, tuple[float, float]] = {}  # fragment -> seconds between, and when next
        self._ready = self._still = False
        self.reruns = 0

    async def ask(self, texts: list[str]) -> list[float]:
        """Seconds until the finished page of each question, asked one after the other."""
        import websockets

        url = f"{self.address.replace('http', 'ws', 1)}/_stcore/stream"
        took = []
        async with websockets.connect(
            url, origin=self.address, subprotocols=["streamlit"], max_size=None, ping_interval=None
        ) as self._socket:
            await self._rerun()
            await self._until(lambda: self._still and "Run" in self._ids)
            await self._rerun(press=self._named("Without a language model"))
            await self._until(lambda: self._still)
            for text in texts:
                began = time.perf_counter()
                await self._rerun(press=self._ids["Run"], text=text)
                await self._until(lambda: self._ready)
                took.append(time.perf_counter() - began)
        return took

    def _named(self, beginning: str) -> str:
        return next(id for label, id in self._ids.items() if label.startswith(beginning))

    async def _rerun(self, press: str = "", text: str = "", fragment: str = "") -> None:
        from streamlit.proto.BackMsg_pb2 import BackMsg

        message = BackMsg()
        message.rerun_script.query_string = f"corpus={CORPUS}&q={quote('Hi')}"
        message.rerun_script.fragment_id = fragment
        if press:
            message.rerun_script.widget_states.widgets.add(id=press, trigger_value=True)
            self._ready = self._still = False
        if text:
            message.rerun_script.widget_states.widgets.add(id=self._ids["Question"], string_value=text)
        self.reruns += 1
        await self._socket.send(message.SerializeToString())

    async def _until(self, holds: Any) -> None:
        end = time.perf_counter() + PATIENCE_S
        while not holds():
            due = min([at for _, at in self._again.values()], default=end)
            try:
                data = await asyncio.wait_for(self._socket.recv(), max(0.01, due - time.perf_counter()))
            except TimeoutError:
                if time.perf_counter() > end:
                    raise
                for fragment, (pause, at) in list(self._again.items()):
                    if at <= time.perf_counter():
                        self._again[fragment] = pause, time.perf_counter() + pause
                        await self._rerun(fragment=fragment)
            else:
                self._read(data)

    def _read(self, data: bytes) -> None:
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        message = ForwardMsg()
        message.ParseFromString(data)
        kind = message.WhichOneof("type")
        if kind == "new_session" and not message.metadata.run.fragment_ids:
            self._again.clear()  # the whole page is drawn again
        elif kind == "stop_auto_rerun":
            for fragment in message.stop_auto_rerun.fragment_ids:
                self._again.pop(fragment, None)
        elif kind == "auto_rerun":
            pause = message.auto_rerun.interval
            self._again[message.auto_rerun.fragment_id] = pause, time.perf_counter() + pause
        elif kind == "script_finished":
            self._still = True
        elif kind == "delta":
            element = message.delta.new_element
            if element.WhichOneof("type") in ("button", "text_area"):
                widget = element.button if element.HasField("button") else element.text_area
                self._ids[widget.label] = widget.id
            elif element.HasField("markdown") and READY in element.markdown.body:
                self._ready = True


async def on_pages(address: str, questions: list[str], people: int, each: int) -> dict[str, Any]:
    """The same through Compare."""
    first = Person(address)
    await first.ask(questions[:2])  # opens and imports what is opened and imported once
    alone = await Person(address).ask(questions[:each])
    those = [Person(address) for _ in range(people)]
    asked = [person.ask(random.Random(n).sample(questions, each)) for n, person in enumerate(those)]
    together = [seconds for found in await asyncio.gather(*asked) for seconds in found]
    reruns = sum(person.reruns for person in those)
    return {"alone": spread(alone), "together": spread(together), "reruns": reruns}


def main() -> None:
    """Measure on a store of its own, and add the figures to bench/results.json."""
    from scripts.screenshots import served

    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--questions", type=int, default=5, help="that each of them asks")
    parser.add_argument("--only", choices=("engine", "pages"), help="leave the other out")
    parser.add_argument("--dry", action="store_true", help="print the figures and keep none")
    options = parser.parse_args()
    here = settings_module.load()
    home = Path(tempfile.mkdtemp(prefix="routescope-people-"))
    for name in ("indexes", "enrichments"):
        (home / name).symlink_to(here.home / name)
    questions = [question.query.text for question in sets.read(CORPUS, None, split="test").questions]
    found: dict[str, Any] = {"machine": machine(), "people": options.people}
    if options.only != "pages":
        settings = here.model_copy(update={"home": home})
        found["engine"] = in_engine(settings, questions, options.people, options.questions)
        log.info("engine: %s", json.dumps(found["engine"]))
    if options.only != "engine":
        os.environ["ROUTESCOPE_HOME"] = str(home)
        with served() as address:
            asked = on_pages(address, questions, options.people, options.questions)
            found["pages"] = asyncio.run(asked)
        log.info("pages: %s", json.dumps(found["pages"]))
    if not options.dry:
        known = json.loads(OUT.read_text())
        known[f"{options.people} people at once, model-free routes"] = found
        OUT.write_text(json.dumps(known, indent=2) + "\n")


if __name__ == "__main__":
    main()
