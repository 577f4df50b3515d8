"""What is called and what it can do: told from measured calls, never assumed."""

import threading

import pytest

from core.backends.base import Completion, TokenLogprob
from core.backends.llm.probe import probe
from core.domain.errors import Cancelled, ModelFailed
from core.engine import endpoints
from tests.fakes import FakeEngine


class Scripted:
    """An endpoint whose abilities the test sets."""

    model, endpoint, local = "scripted", "http://127.0.0.1:1/v1", True

    def __init__(self, *, logprobs=True, schema=True, pieces=5, broken=False):
        self.logprobs, self.schema, self.pieces, self.broken = logprobs, schema, pieces, broken

    def status(self):
        return None

    def complete(self, request, *, timeout, cancel, written=None):
        if cancel.is_set():
            raise Cancelled("stopped")
        if self.broken:
            raise ModelFailed("scripted model: refused the API key (401)")
        if request.schema is not None and not self.schema:
            raise ModelFailed("no schema here")
        for n in range(self.pieces if written else 0):
            written("x" * (n + 1))
        top = (("Yes", -0.1), ("No", -2.4)) if self.logprobs else ()
        tokens = (TokenLogprob("Yes", -0.1, top),) if request.top_logprobs else ()
        prompt = 600 if len(request.messages[0].content) > 500 else 20
        text = '{"wet": true}' if request.schema else "Yes"
        return Completion(text, self.model, "stop", 500.0, prompt, request.max_tokens, 0, tokens)


@pytest.mark.parametrize("able", [True, False])
def test_a_probe_tells_what_works(able):
    told = []
    report = lambda what, done, total: told.append((done, total))  # noqa: E731
    found = probe(Scripted(logprobs=able, schema=able, pieces=5 if able else 1), report=report)
    assert told == [(n, 5) for n in range(5)]
    assert {found[name] for name in ("probabilities", "schema", "streaming")} == {able}
    assert found["tokens read per second"] == pytest.approx(1200)  # 600 tokens in half a second
    assert found["tokens written per second"] == pytest.approx(128)
    assert len(probe(Scripted(), brief=True)) == 2


def test_a_probe_can_be_refused_and_stopped():
    with pytest.raises(ModelFailed, match="401"):
        probe(Scripted(broken=True))
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        probe(Scripted(), cancel=cancel)


def test_every_endpoint_is_listed_without_a_call_and_tried_on_demand(tmp_path, monkeypatch):
    engine = FakeEngine(tmp_path)

    def listed():
        return {one.kind: one for one in endpoints.endpoints(engine.settings)}

    def tried(kind):
        return endpoints.try_endpoint(engine, listed()[kind], lambda *_: None, threading.Event())

    assert set(listed()) == {"embedder", "chat model", "reranker", "web search"}
    assert not any(one.when for one in listed().values())
    monkeypatch.setattr(engine, "llm", lambda **_: Scripted())
    assert dict(tried("chat model").facts)["probabilities"] == "yes"
    assert (listed()["embedder"].state, dict(tried("embedder").facts)["dimensions"]) == ("not tested", "64")
    assert listed()["embedder"].state == "ok"
    monkeypatch.setattr(engine, "llm", lambda **_: Scripted(broken=True))
    assert "401" in tried("chat model").error
