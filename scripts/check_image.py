"""Runs the steps of the Dockerfile without a container engine: `python -m scripts.check_image [FOLDER]`.

The lines are read from the Dockerfile itself. Its paths (/src, /opt/routescope, /data, /models) lie below
FOLDER, COPY copies what .dockerignore leaves, RUN runs as an unprivileged user where this is run by root.
Then all but /data, /models and /tmp is taken the right to write, which imitates a read-only root, and what
the image would start is started: without a login it has to refuse, with one its health check has to pass.
What needs root or the image's own base (apt-get, adding a user) is told and left out: this is no build of
the image.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.domain.settings import PROJECT

log = logging.getLogger("image")
NOBODY = 65534
PLACES = ("/opt/routescope", "/src", "/data", "/models", "/tmp")
ROOTS = ("apt-get", "groupadd", "useradd", "install --directory")  # what only root of the image can do
PORT = "8765"
START_S = 90.0
LOGIN = {
    "ROUTESCOPE_PROXY_HEADER": "X-Forwarded-Email",
    "ROUTESCOPE_PROXY_ADDRESSES": "127.0.0.1",
    "ROUTESCOPE_PUBLIC_URL": "https://routescope.example.org",
}


@dataclass
class Stage:
    """What was set so far while the steps run."""

    folder: Path
    arguments: dict[str, str]
    environment: dict[str, str] = field(default_factory=dict)
    work: str = "/"
    left_out: list[str] = field(default_factory=list)
    ran: int = 0

    def place(self, path: str) -> Path:
        """Where a path of the image lies here."""
        return self.folder / path.lstrip("/")

    def here(self, text: str) -> str:
        """A command with the image's places as they are here."""
        alone = rf"(?<![\w./-])({'|'.join(map(re.escape, PLACES))})(?=[/:\s\"']|$)"
        return re.sub(alone, lambda found: str(self.place(found[1])), text)


def instructions(text: str) -> list[tuple[str, str]]:
    """The Dockerfile's (instruction, rest) in order; comments are left out and continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [
        (line.split(None, 1)[0].upper(), line.split(None, 1)[1])
        for line in joined.splitlines()
        if line.strip()
    ]


def context(project: Path) -> list[Path]:
    """The files that .dockerignore leaves, as the engine reads it: the last pattern that fits decides."""
    patterns = [
        line
        for line in (project / ".dockerignore").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=project, capture_output=True, text=True, check=True
    )
    return [Path(name) for name in listed.stdout.split("\0") if name and not _ignored(name, patterns)]


def _ignored(name: str, patterns: list[str]) -> bool:
    ignored = False
    for pattern in patterns:
        plain = pattern.removeprefix("!").removeprefix("**/")
        parts = Path(name).parts
        heads = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
        if any(fnmatch.fnmatch(head, plain) for head in heads):
            ignored = not pattern.startswith("!")
    return ignored


def run(stage: Stage, command: str | list[str], environment: Mapping[str, str] | None = None) -> None:
    """One RUN, as an unprivileged user."""
    stage.ran += 1
    shell = command if isinstance(command, list) else ["/bin/bash", "-euo", "pipefail", "-c", command]
    subprocess.run(
        [*_as_nobody(), *shell],
        cwd=stage.place(stage.work),
        check=True,
        env={**_inherited(), **stage.environment, **(environment or {})},
    )


def _as_nobody() -> list[str]:
    if os.getuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]


def _inherited() -> dict[str, str]:
    """What reaching a package index needs, and where Python is; nothing of the caller's settings."""
    kept = ("PIP_", "SSL_", "REQUESTS_", "http_proxy", "https_proxy", "no_proxy", "HTTP", "NO_PROXY", "LANG")
    known = {name: value for name, value in os.environ.items() if name.startswith(kept)}
    return {**known, "PATH": f"{Path(sys.executable).resolve().parent}:/usr/local/bin:/usr/bin:/bin"}


def build(stage: Stage, steps: list[tuple[str, str]]) -> tuple[list[str], list[str], list[str]]:
    """Do all steps; gives ENTRYPOINT, CMD and the health check."""
    entry, command, health = list[str](), list[str](), list[str]()
    for what, rest in steps:
        log.info("%s %s", what, rest[:110])
        if what == "ARG":
            name, _, usual = rest.partition("=")
            stage.environment[name] = stage.arguments.get(name, usual)
        elif what == "FROM":
            stage.environment = {name: value for name, value in stage.environment.items() if name == "PYTHON"}
        elif what == "ENV":
            for name, value in re.findall(r"(\w+)=(\S+)", rest):
                path = stage.environment.get("PATH", _inherited()["PATH"])
                stage.environment[name] = stage.here(value).replace("$PATH", path)
        elif what == "WORKDIR":
            stage.work = rest
            _own(stage.place(rest))
        elif what == "COPY":
            _copy(stage, rest)
        elif what == "RUN":
            if rest.startswith(ROOTS):
                stage.left_out.append(rest)
                for path in re.findall(r"(?<=\s)/(?:data|models)\b", rest):
                    _own(stage.place(path))
            else:
                run(stage, stage.here(rest))
        elif what == "ENTRYPOINT":
            entry = json.loads(rest)
        elif what == "CMD":
            command = json.loads(rest)
        elif what == "HEALTHCHECK":
            health = json.loads(rest[rest.index("CMD") + 3 :])
    return entry, command, health


def _own(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    if os.getuid() == 0:
        os.chown(path, NOBODY, NOBODY)


def _copy(stage: Stage, rest: str) -> None:
    if rest.startswith("--from="):
        source = rest.split()[1]
        if not stage.place(source).exists():
            raise SystemExit(f"COPY {rest}: the stage before made no {source}")
        return
    *sources, target = rest.split()
    target_path = stage.place(stage.work if target in (".", "./") else target)
    found = context(PROJECT)
    for name in found if sources == ["."] else [Path(one) for one in sources]:
        if name not in found:
            raise SystemExit(f"COPY {name}: .dockerignore leaves it out")
        (target_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, target_path / name)
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(target_path)], check=True)


def check(stage: Stage, entry: list[str], command: list[str], health: list[str]) -> None:
    """Start what the image would start, on a read-only root."""
    for path in ("opt", "src"):
        subprocess.run(["chmod", "-R", "a-w", str(stage.place(path))], check=True)
    _own(stage.place("/tmp"))
    stage.environment |= {"TMPDIR": str(stage.place("/tmp"))}
    stage.work = "/data"
    if os.getuid() == 0 or not os.access(stage.place("/opt/routescope"), os.W_OK):
        run(stage, "! touch " + str(stage.place("/opt/routescope/x")) + " 2>/dev/null")
    environment = {**_inherited(), **stage.environment}
    start = [*_as_nobody(), *entry, *command, "--port", PORT]
    refused = subprocess.run(start, cwd=stage.place("/data"), env=environment, capture_output=True, text=True)
    log.info(f"without a login: exit code {refused.returncode}: {refused.stderr.strip()}")
    if refused.returncode == 0 or "without a login" not in refused.stderr:
        raise SystemExit("it was to refuse to listen without a login")
    for some in (["index", "support"], ["ask", "How do I start a return?", "--routes", "hybrid_rrf"]):
        run(stage, [*entry, *some])
    probe = [part.replace(":8501/", f":{PORT}/") for part in health]
    with subprocess.Popen(start, cwd=stage.place("/data"), env={**environment, **LOGIN}) as server:
        try:
            end = time.monotonic() + START_S
            while subprocess.run(probe, env=environment, stderr=subprocess.DEVNULL).returncode:
                if server.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"the health check does not pass; exit code {server.poll()}")
                time.sleep(1)
            log.info("with a login: the health check passes")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
    log.info(f"ended with exit code {server.returncode}")
    new = sorted(path.name for path in stage.place("/models").iterdir())
    data = sorted(path.name for path in stage.place("/data").iterdir())
    log.info(f"in /data: {data}; in /models: {new or 'nothing'}")


def main() -> None:
    """Run the steps, then what they made."""
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folder", nargs="?", type=Path, help="an empty folder; else one that is removed again"
    )
    parser.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="routescope-image-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    _own(folder)
    arguments = dict(one.split("=", 1) for one in options.build_arg)
    stage = Stage(folder, arguments)
    for path in ("/opt", "/tmp"):
        _own(stage.place(path))
    try:
        check(stage, *build(stage, instructions((PROJECT / "Dockerfile").read_text())))
    finally:
        if options.folder is None:
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
            shutil.rmtree(folder, ignore_errors=True)
    log.info(f"{stage.ran} commands ran. Not run, as only root of the image can: {stage.left_out}")


if __name__ == "__main__":
    main()
