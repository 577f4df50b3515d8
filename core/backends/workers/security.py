"""Certificates of a scheduler at a tls:// address, as the settings name them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.domain.errors import BadInput

if TYPE_CHECKING:
    from distributed.security import Security

    from core.domain.settings import Settings

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
