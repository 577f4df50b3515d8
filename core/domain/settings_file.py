"""Changes settings from a page: written to the settings file, checked first. Secrets go in and never out."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import SecretStr

from core.domain import people, reach
from core.domain.errors import BadInput, Unavailable
from core.domain.settings import ENV_PREFIX, TABLES, Settings, load

FILE = "routescope.toml"
ONLY_PUBLIC = "only_public"
# With these a page could run programs, admit anybody, or send work to another scheduler.
FIXED = tuple(
    name
    for name in Settings.model_fields
    if name in ("home", "models_dir", "database", ONLY_PUBLIC, *TABLES)
    or name.startswith(("oidc_", "cookie_", "public_", "proxy_", "scheduler"))
)
ADDRESSES = ("llm_base_url", "self_rag_base_url", "reranker", "web_search")  # what may hold one
# A key is for one address: whoever may change the address must not thereby be sent the key.
KEY_OF = {name: f"{name.removesuffix('_base_url')}_api_key" for name in ADDRESSES if name != "web_search"}
Source = Literal["default", "file", "environment"]


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting as a page may show it."""

    name: str
    help: str
    value: Any  # None for a secret, set or not
    given: bool  # True if the setting has a value
    source: Source
    secret: bool
    kind: type
    choices: tuple[str, ...] = ()
    optional: bool = False

    @property
    def editable(self) -> bool:
        """Return True if the file decides this setting; the environment takes precedence."""
        return self.source != "environment" and self.name not in FIXED


def listed(settings: Settings) -> list[ShownSetting]:
    """List every setting but the tables, in the order of definition."""
    in_file = _read(settings.home / FILE)
    found = []
    for name, field in Settings.model_fields.items():
        if name in TABLES:
            continue
        kind, choices, optional = _kind(field.annotation)
        source: Source = "file" if name in in_file else "default"
        if _from_environment(name):
            source = "environment"
        value = getattr(settings, name)
        if choices and value is not None:
            value = str(value)  # as the choices are told
        secret, given = kind is SecretStr, value not in (None, "")
        shown = None if secret else value
        help = field.description or ""
        found.append(ShownSetting(name, help, shown, given, source, secret, kind, choices, optional))
    return found


def write(changes: Mapping[str, Any], home: Path, *, exposed: bool = False) -> None:
    """Write `changes` to the settings file of `home`; None removes a setting. They apply once the file is
    loaded.

    `exposed`: the changes come from a page that others can reach. Addresses given there must be public, and
    stay marked as such, as a name may resolve elsewhere later.

    All changes apply or none. Raises NotAllowed if the person is not an owner, BadInput for an unknown or
    invalid setting or one the environment sets, Unavailable if the file cannot be written. The file is
    replaced atomically and readable by its owner only. A changed address loses its stored key, unless a key
    is given with it.
    """
    people.require("settings")
    for name in changes:
        if name not in Settings.model_fields or name in FIXED:
            known = ", ".join(field for field in Settings.model_fields if field not in FIXED)
            raise BadInput(f"setting {name} cannot be changed here; settings that can: {known}")
        if _from_environment(name):
            raise BadInput(
                f"setting {name}: the environment variable {ENV_PREFIX}{name.upper()} takes precedence; "
                f"change it there"
            )
    import tomlkit

    stored = _read(home / FILE)
    wanted = {**changes, **_dropped_keys(changes, stored), **_marked(changes, stored, exposed=exposed)}
    document = tomlkit.parse(_text(home / FILE))
    for name, value in wanted.items():
        if value is None:
            document.pop(name, None)
        else:
            document[name] = value
    _store(tomlkit.dumps(document), home)
    people.record("settings", ", ".join(sorted(changes)))


def write_role(who: str, role: people.Role | None, home: Path) -> None:
    """Assign a role to an account, "@domain" or "*", or remove it; it applies once the file is loaded.

    Raises NotAllowed if the person is not an owner, and BadInput for an invalid role or name, or if no owner
    would remain.
    """
    person = people.require("settings")
    name = " ".join(str(who).split()).lower()
    if not (name == "*" or (name.startswith("@") and len(name) > 1)):
        name = people.account(name)
    if role is not None and role not in people.ROLES:
        raise BadInput(f"role {role!r}; give {', '.join(people.ROLES)}")
    import tomlkit

    document = tomlkit.parse(_text(home / FILE))
    team = document.setdefault("team", tomlkit.table())
    roles = team.setdefault("roles", tomlkit.table())
    for known in [one for one in roles if one.strip().lower() == name]:
        del roles[known]
    if role is not None:
        roles[name] = role
    if person.account and people.role_of(person.account, dict(roles)) != "owner":
        raise BadInput(f"{person.account} would no longer be an owner; let another owner change that")
    _store(tomlkit.dumps(document), home)
    people.record("role", f"{name}: {role or 'none'}")


def _dropped_keys(changes: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, None]:
    """Return the keys that must not be sent to a changed address. Raises BadInput if such a key comes from
    the environment.
    """
    changed = (name for name in KEY_OF if name in changes and changes[name] != stored.get(name))
    gone = {name: KEY_OF[name] for name in changed if KEY_OF[name] not in changes}
    for address, key in gone.items():
        if _from_environment(key):
            raise BadInput(
                f"setting {address}: its key comes from the environment variable {ENV_PREFIX}{key.upper()}; "
                "set the address there too, to keep the key from being sent to another server"
            )
    return dict.fromkeys(gone.values())


def _marked(changes: Mapping[str, Any], stored: Mapping[str, Any], *, exposed: bool) -> dict[str, str | None]:
    """Return the setting that marks public-only addresses after `changes`, or {} if no address changes.
    Raises BadInput for an address that must not be called.
    """
    given = {name: str(changes[name] or "").strip() for name in ADDRESSES if name in changes}
    marked = set(str(stored.get(ONLY_PUBLIC, "")).split()) - given.keys()
    for name, value in given.items():
        with suppress(ValueError):  # an invalid address is reported by what is to call it
            if "://" in value and (why := reach.named(urlsplit(value).hostname or "", private=not exposed)):
                raise BadInput(f"setting {name}: {why}")
            marked |= {name} if exposed and "://" in value else set()
    return {ONLY_PUBLIC: " ".join(sorted(marked)) or None} if given else {}


def _kind(annotation: Any) -> tuple[type, tuple[str, ...], bool]:
    """Return the plain type of a field, its choices if it is a Literal, and whether it may be None."""
    if get_origin(annotation) is Literal:
        return str, tuple(map(str, get_args(annotation))), False
    parts = [part for part in get_args(annotation) if part is not type(None)]
    if parts and get_origin(annotation) is not None:
        kind, choices, _ = _kind(parts[0])
        return kind, choices, True
    return annotation, (), False


def _from_environment(name: str) -> bool:
    return any(f"{ENV_PREFIX}{name}".lower() == given.lower() for given in os.environ)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"cannot read {path}: {error}") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from None
    except RecursionError:
        raise BadInput(f"{path} is nested too deeply") from None


def _store(text: str, home: Path) -> None:
    """Check the new text of the settings file, then replace the file at once: a crash leaves the old one or
    the new one. Raises BadInput, Unavailable.
    """
    load(**{name: value for name, value in tomllib.loads(text).items() if not _from_environment(name)})
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=f".{FILE}.") as scratch:
            whole = Path(scratch) / FILE
            whole.touch(0o600)
            with whole.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            whole.replace(home / FILE)
    except OSError as error:
        raise Unavailable(f"cannot write {home / FILE}: {error}") from None
