"""Which program this is: where it lies, by what it is called, and where it keeps its data."""

import tomllib

from platformdirs import user_data_path

from core.domain import program, settings


def test_a_checkout_is_told_from_an_installed_package():
    assert (program.INSTALLED, program.COMMAND) == (False, "python -m core")
    project = tomllib.loads((program.PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert program.version() == project["version"]


def test_a_checkout_keeps_its_data_in_var_and_an_installed_program_in_the_users_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("ROUTESCOPE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert settings.default_home() == program.PROJECT / "var"
    monkeypatch.setattr(settings, "INSTALLED", True)
    assert settings.default_home() == user_data_path("routescope").resolve()
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path / "mine"))
    assert settings.default_home() == tmp_path / "mine"
