"""PostgreSQL addresses with hidden passwords, and escaping of text that PostgreSQL cannot hold; shared by the
store and corpora.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from core.domain.errors import BadInput
from core.domain.redact import MARK, redacted

SCHEMES = ("postgresql://", "postgres://")
INSTALL = "pip install -r requirements-server.txt"
# begins a character that PostgreSQL's text cannot hold: NUL, a lone surrogate, this one
ESCAPE = "\U0010ffff"
_UNFIT = re.compile(f"[\0\ud800-\udfff{ESCAPE}]")
_ESCAPED = re.compile(f"{ESCAPE}([0-9a-f]{{6}})")


class Dsn:
    """An address of a database, postgresql://user:password@host/name. Its password is never shown."""

    def __init__(self, text: str) -> None:
        """BadInput, without the password, for what is no such address."""
        try:
            parts = urlsplit(text.strip())
            query = parse_qs(parts.query)
            where = parts.hostname or query.get("host", ["localhost"])[0]
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            raise BadInput("the database's address cannot be read; use postgresql://USER@HOST/NAME") from None
        if f"{parts.scheme}://" not in SCHEMES:
            raise BadInput("a database's address begins with postgresql://")
        self._text = text.strip()
        passwords = (unquote(parts.password or ""), parts.password or "", *query.get("password", ()))
        self.secrets = tuple(dict.fromkeys(one for one in passwords if one))
        user = f"{parts.username}@" if parts.username else ""
        self.shown = f"postgresql://{user}{where}{port}{parts.path}"

    def __repr__(self) -> str:
        return self.shown

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dsn) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def plain(self) -> str:
        """Return the address without its password, for storage."""
        parts = urlsplit(self._text)
        user, at, where = parts.netloc.rpartition("@")
        given = [one for one in parts.query.split("&") if one and one.split("=")[0] != "password"]
        netloc = f"{user.split(':')[0]}{at}{where}"
        return urlunsplit((parts.scheme, netloc, parts.path, "&".join(given), ""))

    def conninfo(self) -> str:
        """Return the address with its password, for the client library only."""
        return self._text

    def clean(self, text: str) -> str:
        """Return a message on one line without the password."""
        for secret in self.secrets:
            text = text.replace(secret, MARK)
        return redacted(" ".join(text.split()), self.secrets)


def is_dsn(text: str) -> bool:
    """Return True if a text is the address of a PostgreSQL database, not a path."""
    return text.strip().lower().startswith(SCHEMES)


def escaped(text: str) -> str:
    """Escape the characters that PostgreSQL cannot hold."""
    if _UNFIT.search(text):
        return _UNFIT.sub(lambda found: f"{ESCAPE}{ord(found[0]):06x}", text)
    return text


def unescaped(text: str) -> str:
    """Invert `escaped`."""
    if ESCAPE in text:
        return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return text
