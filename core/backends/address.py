"""Addresses of endpoints as people give them, made fit to be shown and compared."""

from __future__ import annotations

from urllib.parse import urlsplit

from core.domain import reach
from core.domain.errors import BadInput


def split(url: str, wrong: str, without: str, *, fragment: bool = True) -> tuple[str, str]:
    """(scheme://host:port, the path without a slash at its end) of `url`, spaces around it left out.

    Raises BadInput, which repeats no part that may be secret: `wrong` says what an address looks like,
    `without` what it must not hold. Without `fragment` a part after # is refused too, else it is dropped.
    A host that is never called is refused as well; what a name leads to is checked when it is called.
    """
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise BadInput(f"{wrong}; this is not a valid address") from None
    if parts.username is not None or parts.query or (parts.fragment and not fragment):
        raise BadInput(f"{wrong}; without {without}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"{wrong} (given: {url[:100]!r})")
    if why := reach.named(parts.hostname, private=True):
        raise BadInput(f"{wrong}; {why}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}", parts.path.rstrip("/")
