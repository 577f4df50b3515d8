"""The place of work: this process, workers of this machine, or those of a Dask scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.domain.errors import BadInput, Unavailable
from core.domain.program import INSTALLED

if TYPE_CHECKING:
    from distributed.security import Security

    from core.domain.settings import Settings


MAX_WORKERS = 256  # worker processes of one machine
INSTALL = "pip install 'routescope[server]'" if INSTALLED else "pip install -r requirements-server.txt"


@dataclass(frozen=True, slots=True)
class WorkPlace:
    """`workers` processes on this machine, or those of the `scheduler` at a tcp:// or tls:// address."""

    workers: int = 0
    scheduler: str = ""

    @property
    def local(self) -> bool:
        """Return True if this process starts the workers."""
        return not self.scheduler

    def describe(self) -> str:
        """In words, for messages."""
        many = "worker" if self.workers == 1 else "workers"
        return f"{self.workers} {many} on this machine" if self.local else f"the workers of {self.scheduler}"


def installed() -> bool:
    """Return True if Dask is installed, without importing it."""
    return find_spec("distributed") is not None


def place(workers: int | None, scheduler: str | None) -> WorkPlace | None:
    """Parse `--workers` and `--scheduler`; None means this process. Raises BadInput for invalid values,
    Unavailable with the command that installs Dask.
    """
    if workers is None and scheduler is None:
        return None
    if workers is not None and scheduler is not None:
        raise BadInput("--workers and --scheduler cannot be combined; give one")
    if scheduler is not None:
        found = WorkPlace(scheduler=checked(scheduler))
    elif workers is not None and 1 <= workers <= MAX_WORKERS:
        found = WorkPlace(workers)
    else:
        raise BadInput(f"workers={workers!r}; give 1 to {MAX_WORKERS}")
    if not installed():
        raise Unavailable(f"{found.describe()}: Dask is not installed; run: {INSTALL}")
    return found


def checked(address: str) -> str:
    """Check the address of a scheduler and return it. Raises BadInput if it is invalid."""
    how = "give tcp://HOST:PORT or tls://HOST:PORT, such as tcp://10.0.0.5:8786"
    try:
        parts = urlsplit(address.strip())
        port = parts.port
    except ValueError:
        raise BadInput(f"scheduler {address!r} has no valid port; {how}") from None
    if parts.scheme not in ("tcp", "tls") or not parts.hostname or port is None:
        raise BadInput(f"scheduler {address!r} is not the address of a Dask scheduler; {how}")
    if parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise BadInput(f"scheduler {parts.scheme}://{parts.hostname}:{port}: {how}, and nothing else")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}"


def choices(settings: Settings, cores: int) -> dict[str, WorkPlace | None]:
    """Return the places a page offers by label, or {} without Dask."""
    if not installed():
        return {}
    found: dict[str, WorkPlace | None] = {"this process": None}
    count = 1
    while count <= cores:
        found[WorkPlace(count).describe()] = WorkPlace(count)
        count *= 2
    if settings.scheduler:
        found[f"the workers of {settings.scheduler}"] = WorkPlace(scheduler=checked(settings.scheduler))
    return found


FILES = ("scheduler_tls_ca", "scheduler_tls_cert", "scheduler_tls_key")


def security(address: str, settings: Settings) -> Security | None:
    """Return the certificates for `address`, or None for tcp://. Raises BadInput naming a missing setting."""
    from distributed.security import Security

    if not address.startswith("tls://"):
        return None
    given = {name: getattr(settings, name) for name in FILES}
    for name, path in given.items():
        if not path:
            raise BadInput(
                f"scheduler {address}: a tls:// address needs the settings {', '.join(FILES)}; "
                f"{name} is not set"
            )
        if not Path(path).expanduser().is_file():
            raise BadInput(f"setting {name}: there is no file {path}")
    ca, cert, key = (str(Path(path).expanduser()) for path in given.values())
    kinds = ("client", "scheduler", "worker")
    roles: dict[str, Any] = {f"tls_{kind}_cert": cert for kind in kinds}
    roles |= {f"tls_{kind}_key": key for kind in kinds}
    return Security(require_encryption=True, tls_ca_file=ca, **roles)
