"""CI and the hooks run the checks of the Makefile, and documents tell what is there and was measured."""

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = {
    name
    for line in MAKEFILE.splitlines()
    if (found := re.match(r"([a-z][\w ./$()-]*):(?!=)", line))
    for name in found[1].split()
}
CI = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
STEPS = [step for job in CI["jobs"].values() for step in job["steps"]]


def called(text):
    """The targets that a text tells make to make: in a line of its own, or between backticks."""
    commands = [*re.findall(r"`make ([^`]+)`", text), *re.findall(r"^make ([^#\n]+)", text, re.MULTILINE)]
    return {
        word
        for command in commands
        for word in re.sub(r"[A-Z_]+=(\"[^\"]*\"|'[^']*'|\S*)", "", command).split()
    }


def test_ci_makes_the_parts_of_make_test_and_a_wheel_by_targets_that_exist():
    made = set()
    for run in (step["run"] for step in STEPS if "run" in step):
        assert run.startswith("make "), f"{run}: what CI does can be done at home"
        made |= called(run)
    assert made <= TARGETS
    assert made == {
        "lint",
        "test-unit",
        "test-browser",
        "test-models",
        "test-installed",
        "test-libraries",
        "wheel",
    }
    assert "$(MAKE) --keep-going test-unit test-slow" in MAKEFILE  # a failed part hides no other
    assert "test-slow: test-browser test-models" in MAKEFILE


@pytest.mark.parametrize("file", ["ci.yml", "release.yml", "systems.yml"])
def test_workflows_pin_their_actions_and_may_only_read(file):
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / file).read_text(encoding="utf-8"))
    used = [step["uses"] for job in flow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert used
    assert [one for one in used if not re.fullmatch(r"(actions|pypa)/[\w-]+@[0-9a-f]{40}", one)] == []
    assert flow["permissions"] == {"contents": "read"}
    writes = [job["permissions"] for job in flow["jobs"].values() if "permissions" in job]
    assert writes in ([], [{"id-token": "write"}])
    assert all("timeout-minutes" in job for job in flow["jobs"].values())


def test_hooks_run_what_make_lint_runs():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"], "the versions are those of requirements-dev.txt"
    lint = MAKEFILE.split("\nlint:")[1].split("\n\n")[0]
    for hook in hooks[0]["hooks"]:
        program = re.fullmatch(
            r"\.venv/bin/(python -m \w+(?: check| format)?|lint-imports --no-logo)( --force-exclude)?",
            hook["entry"],
        )
        assert program, hook["entry"]
        wanted = (
            program[1].replace("python", "$(PY)") if " -m " in program[1] else f"$(VENV)/bin/{program[1]}"
        )
        assert wanted in lint


@pytest.mark.parametrize("name", ["README.md", "docs/using.md", "docs/testing.md", "docs/figures.md"])
def test_what_a_document_tells_to_make_can_be_made(name):
    assert called((ROOT / name).read_text()) <= TARGETS


@pytest.mark.parametrize(
    "name",
    [
        *("README.md", "CONTRIBUTING.md"),
        *(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/*.md")),
        "bench/notebook/2026-11.md",
    ],
)
def test_what_a_document_links_to_is_there(name):
    path = ROOT / name
    for link in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", path.read_text()):
        assert (path.parent / link).exists(), link


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90


def test_the_figures_of_speed_are_those_that_were_measured():
    told = (ROOT / "docs" / "figures.md").read_text().split("\n## Speed\n")[1].split("\n## ")[0]
    found = json.loads((ROOT / "bench" / "results.json").read_text())
    cold, free, asking = (found[name] for name in ("cold", "sharing", "model"))

    def median(part, name):
        return part[name]["median"]

    together, alone, own = "wall_ms_of_all_in_one_run", "sum_of_wall_ms_alone", "engine_overhead_ms"
    for figure in (
        f"{median(cold, 'first_hybrid_result_s'):.2f} s ({median(cold, 'process_s'):.2f} s with",
        f"{median(free, 'ratio'):.2f} of the time ({median(free, together):.1f} ms against "
        f"{median(free, alone):.1f} ms, median of {free['questions']} questions)",
        f"{median(asking, 'ratio'):.2f} ({median(asking, together) / 1000:.1f} s against "
        f"{median(asking, alone) / 1000:.1f} s, {asking['questions']} questions)",
        f"{median(free, own):.1f} ms for {len(free['routes'])} routes, {median(asking, own):.1f} ms for "
        f"{len(asking['routes'])}",
        f"| {found['evaluation']['a_second']:.1f} |",
    ):
        assert figure in told
