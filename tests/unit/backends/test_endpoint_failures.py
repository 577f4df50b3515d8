"""A service that did not answer its last test: told by every command and page until it answers again."""

import json

import pytest

from core.backends.llm import load_llm
from core.backends.llm.probe import last_failure, probe
from core.cli import main
from core.domain import settings as settings_module
from core.domain.settings import Settings
from core.engine.doctor import examine
from core.engine.endpoints import asking
from tests.services import Kind, service


@pytest.fixture
def listed(monkeypatch, capsys):
    """List the routes, as JSON by name or as text, with settings."""

    def call(settings, *options):
        monkeypatch.setattr(settings_module, "current", lambda: settings)
        assert main(["routes", *options]) == 0
        out = capsys.readouterr().out
        return {one["name"]: one for one in json.loads(out)["routes"]} if options else out

    return call


def test_routes_say_what_an_endpoint_was_found_to_do(tmp_path, listed):
    broken = [True]
    kind = Kind("odd", lambda _: (401, {"error": "no entry"}) if broken else None, reasons=False)
    with service(kind) as running:
        settings = Settings(home=tmp_path, llm_base_url=running.url, llm="m")
        assert {tuple(one["affected"]) for one in listed(settings, "--json").values()} == {()}

        assert probe(load_llm(settings), timeout=20).error
        assert last_failure(load_llm(settings))  # by another client, as another process would
        found = listed(settings, "--json")
        assert {name for name, one in found.items() if one["affected"]} == set(asking())
        assert "no entry" in found["hyde"]["affected"][0] or "401" in found["hyde"]["affected"][0]
        assert f"affects {len(asking())} routes" in listed(settings)
        states = {one.name: one.state for one in examine(settings, quick=True, note=lambda _: None)}
        assert states["model answers"] == "warning"

        broken.clear()
        assert probe(load_llm(settings), timeout=20).error is None
        assert last_failure(load_llm(settings)) == ""
        found = listed(settings, "--json")
        assert [one for one in found["setwise"]["affected"] if "probabilities" in one]
        assert found["bm25"]["affected"] == []
        states = {one.name: one.state for one in examine(settings, quick=True, note=lambda _: None)}
        assert "model answers" not in states
