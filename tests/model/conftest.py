"""The smallest real model, by a server of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.backends.llm import catalogue, stop_server
from core.backends.llm.fetch import pull
from core.domain import settings as settings_module
from core.domain.settings import Settings


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Settings]]:
    """Settings of a server of this test's own, over the file that every checkout on this machine shares."""
    here: Path = tmp_path_factory.mktemp("llm")
    shared = pull(catalogue.TINY, settings=settings_module.load())
    (here / "models").mkdir()
    (here / "models" / shared.name).symlink_to(shared)
    places: dict[str, Any] = {"home": here, "models_dir": here / "models", "llm_base_url": None}
    made: list[Settings] = []

    def with_settings(**more: Any) -> Settings:
        made.append(settings_module.load(**places, llm=catalogue.TINY, llm_mode="live", **more))
        return made[-1]

    yield with_settings
    for one in made:
        stop_server(one)
