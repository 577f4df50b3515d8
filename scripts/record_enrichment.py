"""Record what the default model wrote for an enrichment: `python -m scripts.record_enrichment CORPUS NAME`.

The answers go to data/recordings/CORPUS-NAME.jsonl, a line each without the request, whose passage stands in
the corpus: who makes the enrichment of the same passages asks no model. What is in the cache is not asked.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from core.backends.base import Completion, LLMRequest
from core.backends.llm import RECORDINGS, load_llm
from core.backends.llm.cache import key_of, to_plain
from core.backends.llm.model import CachedLLM
from core.corpus.enrichments import store
from core.domain import settings
from core.engine.engine import Engine


class Noted:
    """The model, and a line for each answer it gave."""

    def __init__(self, llm: CachedLLM) -> None:
        """Ask `llm`."""
        self._llm = llm
        self.model, self.endpoint, self.local = llm.model, llm.endpoint, llm.local
        self.lines: dict[str, dict[str, Any]] = {}

    def status(self) -> str | None:
        """See `LLM`."""
        return self._llm.status()

    def complete(
        self, request: LLMRequest, *, timeout: float, cancel: threading.Event, written: Any = None
    ) -> Completion:
        """See `LLM`."""
        made = self._llm.complete(request, timeout=timeout, cancel=cancel, written=written)
        name = self._llm.backend.identity
        key = key_of(request, endpoint=self.endpoint, model=name)
        self.lines[key] = {"key": key, "endpoint": self.endpoint, "model": name, "completion": to_plain(made)}
        return made


def main() -> None:
    """Make the enrichment anew in a folder of its own, and write down what the model said."""
    corpus, name = sys.argv[1:3]
    engine = Engine(settings.load())
    with tempfile.TemporaryDirectory() as home:
        llm = Noted(load_llm(engine.settings))
        kept = engine.settings.model_copy(update={"home": Path(home)})
        store.build(name, engine.corpus(corpus), settings=kept, llm=llm)
    lines = (json.dumps(llm.lines[key], sort_keys=True, ensure_ascii=False) for key in sorted(llm.lines))
    text = "".join(f"{line}\n" for line in lines)
    (RECORDINGS / f"{corpus}-{name}.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
