"""A web search behind SearXNG's JSON: `GET /search?q=...&format=json`."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import unicodedata
from collections.abc import Sequence
from itertools import accumulate
from typing import Any
from urllib.parse import urlencode, urlsplit

from core.backends.endpoint import Endpoint
from core.backends.llm.wire import EndpointWords, parsed
from core.backends.weights import clean
from core.domain.errors import ModelFailed, ModelTimedOut, WebFailed, WebTimedOut
from core.domain.reach import split
from core.domain.types import Passage

MAX_CHARS = {"query": 500, "url": 2000, "title": 300, "content": 4000}  # characters
_COMMAND = re.compile(r"(?<!\S)[!:<?]+(?=\S)")  # what SearXNG reads as a command: bang, language, time limit
HINTS = {
    403: "refuses to answer in JSON (403): its settings.yml must list json under search: formats:",
    404: "knows no such address (404): give the address below which /search is",
    429: "is asked too often (429): its limiter must let this machine through",
}


class Searxng:
    """One instance, any number of threads; nothing is imported or opened before the first search."""

    def __init__(self, url: str, *, private: bool = True, secrets: Sequence[str] = ()) -> None:
        """`url` is the instance's address, with or without /search at its end; raises BadInput for others.

        `private`: whether it may be on this machine or its own network. `secrets` are taken out of what it
        says.
        """
        self.url = endpoint(url)
        words = EndpointWords(f"web search at {self.url}", tuple(secrets))
        self._endpoint = Endpoint(self.url, words, private=private, hints=HINTS)

    @property
    def label(self) -> str:
        """Return the label of the results."""
        return f"live web search by SearXNG at {self.url.removesuffix('/search')}"

    def search(
        self, text: str, k: int, *, timeout: float = 60.0, cancel: threading.Event | None = None
    ) -> list[tuple[Passage, float]]:
        """Up to `k` results in the instance's order; a failed call is never repeated.

        Raises WebFailed, WebTimedOut (after `timeout` seconds in all), or Cancelled.
        """
        asked = plain(text)
        if not asked:
            return []
        query = f"?{urlencode({'q': asked, 'format': 'json'})}"
        try:
            data = self._endpoint.once(timeout, cancel or threading.Event(), query=query)
            return read(data, self._endpoint.words)[:k]
        except ModelTimedOut as error:
            raise WebTimedOut(str(error)) from None
        except ModelFailed as error:
            raise WebFailed(str(error)) from None


def endpoint(url: str) -> str:
    """Return the URL to query, safe to show. Raises BadInput, which repeats no possibly secret part."""
    wrong = "a web search's address is http://host:port or https://host/path"
    origin, path = split(url, wrong, "user, password, query or fragment", fragment=False)
    return f"{origin}{path.removesuffix('/search')}/search"


def plain(text: str) -> str:
    """Convert a question to search words: on one line, truncated, and without commands of SearXNG.

    "!!g words" would make it redirect to another site, ":de" would change the language.
    """
    words = _COMMAND.sub("", clean(_line(text)))
    if len(words) > MAX_CHARS["query"]:
        words = words[: MAX_CHARS["query"]].rpartition(" ")[0] or words[: MAX_CHARS["query"]]
    return words.strip()


def read(data: bytes, words: EndpointWords) -> list[tuple[Passage, float]]:
    """Read the results in a response body, each address once, with scores that never rise.

    A result without an http(s) address or without text is dropped, as it is no evidence. An empty list means
    that nothing was found. Raises ModelFailed if no search engine answered.
    """
    right = "is the address right, and does its settings.yml list json under search: formats:?"
    answer = parsed(data, words, right)
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise words.failed("answered without a list of results", data)
    silent = answer.get("unresponsive_engines")
    if not results and isinstance(silent, list) and silent:
        raise words.failed("got no answer from its search engines", json.dumps(silent))
    found: dict[str, tuple[Passage, Any]] = {}
    for result in results:
        if isinstance(result, dict) and (passage := _passage(result, words)) is not None:
            found.setdefault(passage.doc_id, (passage, result.get("score")))
    scores = falling([score for _, score in found.values()])
    return [(passage, score) for (passage, _), score in zip(found.values(), scores, strict=True)]


def falling(given: Sequence[Any]) -> list[float]:
    """Make scores non-increasing; 1 / rank for all if one is not a finite number."""
    if not all(type(score) in (int, float) and math.isfinite(score) for score in given):
        return [1 / rank for rank in range(1, len(given) + 1)]
    return list(accumulate(map(float, given), min))


def _passage(result: dict[str, Any], words: EndpointWords) -> Passage | None:
    given = (result.get(name) for name in ("url", "content", "title"))
    url, content, title = (words.clean(value) if isinstance(value, str) else "" for value in given)
    if len(url) > MAX_CHARS["url"]:
        return None
    text = _line(content)[: MAX_CHARS["content"]]
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host or not text or _line(url).split() != [url]:
        return None
    host = re.sub(r"[^a-z0-9.-]", "", host) or "page"
    # The words belong to the id: a page's snippet is another for another query.
    content_hash = hashlib.sha256(f"{url}\0{text}".encode(errors="replace")).hexdigest()[:12]
    id = f"web/{host}/{content_hash}"
    return Passage(id, url, _line(title)[: MAX_CHARS["title"]], text, 0, len(text))


def _line(text: str) -> str:
    """`text` on one line, without control characters, direction marks and halves of a pair."""
    joined = " ".join(text.split())
    return "".join(char for char in joined if unicodedata.category(char)[0] != "C" or char in "\u200c\u200d")
