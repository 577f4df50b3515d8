"""Pipelines of the user's own as the settings file or the command line names them: what to ask, and how."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from core.domain import system
from core.domain.errors import BadInput

Door = Literal["function", "http", "file"]
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
NAMED = "small letters, digits and _, a letter first, at most 40 characters"
HOW = "NAME=FILE.py:FUNCTION or NAME=http://127.0.0.1:PORT/search"
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# What says how a request is framed or where it goes is not the user's to set.
KEPT_HEADERS = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "content-type", "accept-encoding")
)
K = 50  # passages asked for, unless told otherwise


def checked_headers(given: dict[str, str]) -> dict[str, str]:
    """Return the headers. Raises ValueError for one that cannot be sent, or that frames a request."""
    for name, value in given.items():
        if not _HEADER.fullmatch(name) or name.lower() in KEPT_HEADERS:
            raise ValueError(f"header {name!r} cannot be set")
        if not value.isprintable() or not value.isascii() or value != value.strip():
            raise ValueError(f"the value of header {name} contains characters that no header has")
    return given


Headers = Annotated[
    dict[str, str], AfterValidator(checked_headers)
]  # ${NAME} is the environment variable NAME


class PipelineSettings(BaseModel):
    """A table [external.NAME] of the settings file: a function or an address, and how it is asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    function: str | None = None  # FILE.py:FUNCTION; a relative path starts at the settings file's folder
    url: str | None = None  # http(s)://host:port/path that takes POST
    python: str = ""  # the interpreter of `function`, or its environment's folder
    title: str = Field("", max_length=60)  # what pages call it; empty: its name
    k: int = Field(K, ge=1, le=1_000)  # passages asked for
    timeout_s: float = Field(30.0, gt=0, le=3_600)  # deadline of one call
    start_timeout_s: float = Field(120.0, gt=0, le=3_600)  # deadline of loading the file
    memory_mb: int = Field(0, ge=0)  # for `function`, in MB; 0: half of the machine's memory
    env: tuple[str, ...] = ()  # names of environment variables that `function` is given
    headers: Headers = {}  # sent to `url`
    filters: dict[str, Any] = {}  # given with every question as it is


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One pipeline, checked: `target` is FILE.py:FUNCTION with an absolute path, or an address; `python` an
    absolute path, "" for an address. `headers` still have the names of variables in them, not the values.
    """

    name: str
    door: Door
    target: str
    python: str = ""
    title: str = ""
    k: int = K
    timeout_s: float = 30.0
    start_timeout_s: float = 120.0
    memory_mb: int = 0  # 0: half of the machine's
    env: tuple[str, ...] = ()  # names of variables that its process is given beyond the usual ones
    headers: tuple[tuple[str, str], ...] = ()
    filters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    given: Literal["settings", "command"] = "settings"

    @property
    def label(self) -> str:
        """Return the name shown on pages and in messages."""
        return self.title or self.name

    @property
    def owner(self) -> str:
        """Return the prefix of messages about this pipeline."""
        return f"pipeline {self.name}"

    @property
    def file(self) -> Path:
        """The file of a function, or of replies."""
        return Path(self.target if self.door == "file" else self.target.rpartition(":")[0])

    @property
    def function(self) -> str:
        """Return the function's name in `file`."""
        return self.target.rpartition(":")[2]


def from_settings(name: str, given: PipelineSettings, beside: Path) -> Pipeline:
    """Read a pipeline from a table of the settings file in the folder `beside`. Raises BadInput that names
    the table.
    """
    where = f"[external.{name}] of the settings file"
    if (given.function is None) == (given.url is None):
        raise BadInput(f'{where}: give either function = "FILE.py:FUNCTION" or url = "http://..."')
    if given.function is not None and given.headers:
        raise BadInput(f"{where}: headers go with url, not with function")
    for key in ("python", "memory_mb", "env"):
        if given.url is not None and getattr(given, key):
            raise BadInput(f"{where}: {key} goes with function, not with url")
    _check_variables(given.env, where)
    more = given.model_dump(exclude={"function", "url", "python", "headers"})
    more["headers"] = tuple(given.headers.items())
    return _pipeline(name, given.function or given.url or "", given.python, beside, where, **more)


def from_command(given: str, python: str = "", env: Sequence[str] = ()) -> Pipeline:
    """Return the pipeline of `--route NAME=TARGET` with `--python` and `--env`. Raises BadInput."""
    name, target = _parted(given, "--route", HOW)
    if "://" in target:
        return _pipeline(name, target, "", Path.cwd(), f"--route {name}", given="command")
    _check_variables(env, f"--route {name}")
    return _pipeline(name, target, python, Path.cwd(), f"--route {name}", given="command", env=tuple(env))


def from_file(given: str) -> Pipeline:
    """Read the pipeline of `--run NAME=FILE`, whose replies are in a file. Raises BadInput if it is malformed
    or missing.
    """
    name, file = _parted(given, "--run", "NAME=FILE.run or NAME=FILE.jsonl")
    path = _file(name, file, Path.cwd(), f"--run {name}")
    title = f"{name} (replies from {path.name})"
    return Pipeline(name, "file", str(path), title=title, k=1_000, given="command")


def _parted(given: str, option: str, how: str) -> tuple[str, str]:
    name, _, target = given.partition("=")
    if not name or not target:
        raise BadInput(f"cannot read {option} {given!r}; write {how}")
    return name, target


def _file(name: str, file: str, beside: Path, where: str) -> Path:
    """Return the path of a file of pipeline `name`. Raises BadInput for an invalid name or no such file."""
    if not NAME.fullmatch(name):
        raise BadInput(f"{where}: {name[:60]!r} cannot be a route's name; use {NAMED}")
    path = _under(file, beside)
    if not path.is_file():
        raise BadInput(f"{where}: {path} does not exist")
    return path


def _pipeline(name: str, target: str, python: str, beside: Path, where: str, **more: Any) -> Pipeline:
    if not NAME.fullmatch(name):
        raise BadInput(f"{where}: {name[:60]!r} cannot be a route's name; use {NAMED}")
    if "://" in target:
        return Pipeline(name, "http", target.strip(), **more)
    file, colon, function = target.rpartition(":")
    if not colon or not file or not all(part.isidentifier() for part in function.split(".")):
        raise BadInput(f"{where}: cannot read {target[:200]!r}; write {HOW}")
    path = _file(name, file, beside, where)
    return Pipeline(name, "function", f"{path}:{function}", interpreter(python, beside, where), **more)


def _check_variables(names: Sequence[str], where: str) -> None:
    """Raise BadInput for the name of no variable, or of one of this program, which are for no pipeline."""
    for name in names:
        if not VARIABLE.fullmatch(f"${{{name}}}") or name.startswith("ROUTESCOPE_"):
            raise BadInput(
                f"{where}: env {name[:60]!r}: give the name of a variable that is not RouteScope's"
            )


def interpreter(given: str, beside: Path, where: str) -> str:
    """Return the path of an interpreter given as a file, an environment's folder, a command, or "" for this
    one. A link is not followed: an environment is identified by the link's location. Raises BadInput if there
    is none.
    """
    if not given:
        return sys.executable
    path = _under(given, beside)
    if path.is_dir():
        path = system.python_in(path)
    elif not path.exists() and os.sep not in given and (found := shutil.which(given)):
        path = Path(found)
    if not path.is_file() or not os.access(path, os.X_OK):
        raise BadInput(f"{where}: no Python interpreter at {path}; give its path or its environment's folder")
    return str(path)


def _under(path: str, folder: Path) -> Path:
    """As an absolute path, links left as they are."""
    return Path(os.path.abspath(folder / Path(path).expanduser()))
