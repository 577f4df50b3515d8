"""The requirements of a login before a server may be reached from elsewhere, and the trusted proxies."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from core.domain import people
from core.domain.errors import BadInput
from core.domain.settings import ENV_PREFIX, Settings

COOKIE = 32  # characters of the cookie's secret, at least
CALLBACK = "oauth2callback"  # where a provider sends people back to; the path is Streamlit's
FORWARDED = "FORWARDED_ALLOW_IPS"  # whose X-Forwarded-For the web server takes for a visitor's address
NO_LOGIN = (
    "without a login RouteScope listens on this machine alone (127.0.0.1): whoever reaches it may read, "
    f"change and delete everything. Set up a login first ({ENV_PREFIX}OIDC_URL or {ENV_PREFIX}PROXY_HEADER); "
    "docs/start-team.md shows how"
)
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")


def check(settings: Settings, environment: Mapping[str, str] = os.environ) -> None:
    """Check the login settings. Raises BadInput if they are incomplete or could be bypassed."""
    if settings.oidc_url and settings.proxy_header:
        raise BadInput(
            "settings oidc_url and proxy_header: people sign in by one of them; take the other out"
        )
    if settings.login == "oidc":
        _check_oidc(settings)
    if settings.login == "proxy":
        if not _HEADER.fullmatch(settings.proxy_header):
            raise BadInput(f"setting proxy_header: {settings.proxy_header!r} is no name of a header")
        if not trusted(settings):
            raise BadInput("setting proxy_addresses: name the address of the proxy")
        if environment.get(FORWARDED) != "":
            raise BadInput(
                f"with proxy_header set, the environment variable {FORWARDED} must be set and empty, as "
                "`serve` sets it: else a request's header can change the address the proxy is known by"
            )


def trusted(settings: Settings) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks of the proxy. Raises BadInput for an invalid one."""
    found = []
    for text in settings.proxy_addresses.replace(",", " ").split():
        try:
            found.append(ip_network(text))
        except ValueError as error:
            raise BadInput(f"setting proxy_addresses: {error}") from None
    return tuple(found)


def is_trusted(peer: str | None, networks: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    """Return True if the peer of a connection is the proxy, False if its address is unknown."""
    try:
        address: IPv4Address | IPv6Address = ip_address(peer or "")
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in networks)


def new_token() -> tuple[str, str]:
    """Return a new token for an agent, and its hash for [team.tokens]."""
    token = secrets.token_urlsafe(32)
    return token, _hash(token)


def of_token(header: str, settings: Settings) -> str:
    """Return the account of the token in an Authorization header, or "" for an unknown one."""
    kind, _, token = header.partition(" ")
    found = settings.team.tokens.get(_hash(token.strip())) if kind.lower() == "bearer" else None
    return people.account(found) if found else ""


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def streamlit_secrets(settings: Settings) -> dict[str, dict[str, str]]:
    """Return the secrets of Streamlit's login, or {} without one."""
    if settings.login != "oidc" or settings.oidc_client_secret is None or settings.cookie_secret is None:
        return {}
    return {
        "auth": {
            "redirect_uri": f"{settings.public_url.rstrip('/')}/{CALLBACK}",
            "cookie_secret": settings.cookie_secret.get_secret_value(),
            "client_id": settings.oidc_client_id,
            "client_secret": settings.oidc_client_secret.get_secret_value(),
            "server_metadata_url": settings.oidc_url,
        }
    }


def host(settings: Settings) -> str:
    """Return the host name of `public_url`, or "" without one."""
    return urlsplit(settings.public_url).hostname or ""


def _check_oidc(settings: Settings) -> None:
    for name in ("oidc_client_id", "oidc_client_secret", "cookie_secret", "public_url"):
        if not getattr(settings, name):
            raise BadInput(f"setting {name}: a login by oidc_url needs it ({ENV_PREFIX}{name.upper()})")
    secret = settings.cookie_secret
    if secret is not None and len(secret.get_secret_value()) < COOKIE:
        raise BadInput(f"setting cookie_secret: give {COOKIE} random characters or more")
    for name in ("oidc_url", "public_url"):
        parts = urlsplit(getattr(settings, name))
        here = parts.hostname in ("localhost", "127.0.0.1")
        if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and here)):
            raise BadInput(f"setting {name}: give an https:// address (http:// for localhost alone)")
    if urlsplit(settings.public_url).path.strip("/"):
        raise BadInput("setting public_url: give scheme, host and port alone, without a path")
