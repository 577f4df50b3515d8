"""The network addresses this program may call: never those that serve cloud credentials, and private networks
only if allowed.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from core.domain import reach
from core.domain.errors import BadInput

Address = IPv4Address | IPv6Address

# Where clouds hand out keys and settings to whoever asks from the machine. Most are link-local:
# 169.254.0.0/16 and fe80::/10 are refused whole. Sources: the providers' pages on instance metadata.
METADATA = tuple(
    ip_network(one)
    for one in (
        "100.100.100.200",  # Alibaba Cloud
        "168.63.129.16",  # Azure
        "192.0.0.192",  # Oracle Cloud
        "fd00:ec2::/32",  # AWS
        "fd20:ce::254",  # Google Cloud
    )
)
METADATA_NAMES = ("metadata", "metadata.google.internal", "metadata.goog", "instance-data")
_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))


def refusal(address: Address, *, private: bool) -> str | None:
    """Explain why `address` must not be called, or return None. `private` allows addresses of private
    networks.
    """
    for one in (address, *_inside(address)):
        if one.is_link_local:
            return f"{one} is a link-local address, where clouds serve credentials; it is never called"
        if any(one in network for network in METADATA):
            return f"{one} serves cloud credentials; it is never called"
        if one.is_multicast or one == IPv4Address("255.255.255.255"):
            return f"{one} is a multicast or broadcast address; it is never called"
        if not private and not one.is_global:
            return (
                f"{one} is an address of this machine or its own network; one that was given on a page that "
                "others can reach must be public: name it in the environment or the settings file"
            )
    return None


def _inside(address: Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses embedded in an IPv6 address."""
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if any(address in network for network in _NAT64) or 1 < number < 1 << 32:
        yield IPv4Address(number & 0xFFFFFFFF)


def named(host: str, *, private: bool) -> str | None:
    """Why the host of a URL is not called, as far as its letters tell; None if it has to be looked up."""
    host = host.strip("[]").rstrip(".").lower()
    if host in METADATA_NAMES or host.endswith(tuple(f".{name}" for name in METADATA_NAMES)):
        return f"{host} serves cloud credentials; it is never called"
    address = literal(host)
    if address is None and not private and loopback(host):
        address = IPv4Address("127.0.0.1")
    return None if address is None else refusal(address, private=private)


def loopback(host: str) -> bool:
    """Return True if a host is this machine."""
    address = literal(host)
    return address.is_loopback if address else host == "localhost" or host.endswith(".localhost")


def literal(host: str) -> Address | None:
    """Return the address that `host` spells out, in decimal, octal or hexadecimal, or None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host)) if host[:1].isdigit() else None
    except (OSError, UnicodeError, ValueError):
        return None


def checked(host: str, found: Iterable[str], *, private: bool) -> list[str]:
    """Return the distinct addresses that a name resolves to. Raises Refused if any must not be called: a name
    that also resolves to such an address is not trusted for the others.
    """
    addresses = list(dict.fromkeys(found))
    for address in addresses:
        if why := refusal(ip_address(address), private=private):
            raise AddressRefused(why if address == host else f"{host} leads to {why}")
    return addresses


class AddressRefused(Exception):
    """An address that is not called; one line that says why."""


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
