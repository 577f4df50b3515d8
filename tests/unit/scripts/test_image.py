"""The Dockerfile and compose.yaml: what the image promises. scripts/check_image.py runs the steps."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from core.domain.program import PROJECT
from core.domain.settings import ENV_PREFIX, Settings
from scripts.check_image import Stage, context, instructions

STEPS = instructions((PROJECT / "Dockerfile").read_text())
COMPOSE = yaml.safe_load((PROJECT / "compose.yaml").read_text())


def last(what):
    return [rest for name, rest in STEPS if name == what][-1]


def test_hadolint_finds_nothing():
    tool = Path(sys.executable).with_name("hadolint")
    if not tool.exists():
        pytest.skip("hadolint is not installed")
    done = subprocess.run([tool, PROJECT / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_nobody_in_particular_and_keeps_data_in_volumes():
    assert [name for name, _ in STEPS].count("FROM") == 2
    assert last("USER") == "10001:10001"
    assert json.loads(last("VOLUME")) == ["/data", "/models"]
    assert "ROUTESCOPE_HOME=/data" in last("ENV")
    assert "ROUTESCOPE_FIRST_START=off" in last("ENV")  # no download at the start unless told
    assert "/_stcore/health" in last("HEALTHCHECK")
    assert json.loads(last("ENTRYPOINT")) + json.loads(last("CMD")) == [
        "routescope",
        "serve",
        "--host",
        "0.0.0.0",
    ]


def test_nothing_but_the_program_is_in_the_image():
    names = {str(path) for path in context(PROJECT)}
    assert {"app.py", "core/cli/serve.py", "requirements-server.txt", ".streamlit/config.toml"} <= names
    tops = {name.split("/")[0] for name in names}
    assert not tops & {"tests", "bench", "docs", ".git", "var", "scripts", ".venv"}
    for what, rest in STEPS:
        if what == "COPY" and not rest.startswith("--from") and rest != ". .":
            assert set(rest.split()[:-1]) <= names


def test_paths_of_the_image_lie_below_a_folder(tmp_path):
    stage = Stage(tmp_path, {})
    assert stage.here("cp /src/a /opt/routescope/bin") == f"cp {tmp_path}/src/a {tmp_path}/opt/routescope/bin"
    assert stage.here("echo x/data https://h/src /database") == "echo x/data https://h/src /database"


def test_every_service_of_ours_reads_only_and_no_secret_has_a_default():
    services = COMPOSE["services"]
    for name in ("app", "scheduler", "worker"):
        one = services[name]
        assert one["read_only"]
        assert one["cap_drop"] == ["ALL"]
        assert one["security_opt"] == ["no-new-privileges:true"]
        assert one["volumes"] == ["data:/data", "models:/models"]
        assert "ports" not in one  # the proxy alone is reached from outside
    assert {name for name, one in services.items() if one.get("profiles") == ["dask"]} == {
        "scheduler",
        "worker",
    }
    assert services["proxy"]["ports"] == ["80:80", "443:443"]
    for one in services.values():
        for name, value in one.get("environment", {}).items():
            if any(word in name for word in ("SECRET", "PASSWORD", "DATABASE")):
                assert ":?" in value
    used = (
        {mount.split(":")[0] for one in services.values() for mount in one["volumes"]}
        if all("volumes" in one for one in services.values())
        else set()
    )
    assert used - {"./Caddyfile"} == set(COMPOSE["volumes"])


def test_compose_names_settings_that_there_are():
    known = {f"{ENV_PREFIX}{name}".upper() for name in Settings.model_fields} | {"ROUTESCOPE_DATABASE"}
    assert set(COMPOSE["services"]["app"]["environment"]) <= known
