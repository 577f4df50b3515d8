"""The request features an endpoint accepts and the format of its replies, learned from replies and stored."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from core.backends import admission
from core.domain import system
from core.domain.errors import Cancelled

log = logging.getLogger(__name__)
FOLDER = "endpoints"  # in the home folder
LOOK_S = 0.02  # how often a thread that waits for another one's first request looks
FIRST_REASONING = 2048  # tokens that a model may think with before it is known whether it does
MOST_REASONING = 32_768
WORDS = 16  # tokens for a verdict in words, where the endpoint gives no probabilities


@dataclass(frozen=True, slots=True)
class Profile:
    """The known behaviour of one model at one endpoint."""

    endpoint: str = ""
    model: str = ""
    dropped: tuple[str, ...] = ()  # fields it rejects, by our name
    renamed: Mapping[str, str] = field(default_factory=dict)  # our name: the one it takes
    proven: tuple[str, ...] = ()  # what it has accepted, see `parts`
    said: Mapping[str, str] = field(default_factory=dict)  # by field: why it was rejected, in its words
    least_tokens: int = 1
    most_tokens: int | None = None
    most_alternatives: int | None = None
    without_keywords: tuple[str, ...] = ()  # of JSON schemas
    json: Literal["schema", "object", "none"] = "schema"
    probabilities: bool | None = None  # whether it gives any when asked; None: not known
    reasons: bool | None = None  # whether the model thinks before it answers; None: not known
    unopened: bool = False  # its reasoning has no opening tag
    reasoning_tokens: int = 0  # what it needs to think with
    served: str = ""  # the model that its replies name
    context: int | None = None  # tokens, as the service reports
    context_from: str = ""  # the field of its list of models that says so
    failed: str = ""  # why it did not answer when it was last tested, until it answers
    truncated: str = ""  # why a prompt seems to have been cut by the service

    def without(self, name: str, why: str = "") -> Profile:
        """Return this profile without sending the field `name`."""
        dropped = tuple(dict.fromkeys((*self.dropped, name)))
        return replace(self, dropped=dropped).noting(name, why)

    def noting(self, name: str, why: str) -> Profile:
        """Return this profile with the service's words about a field."""
        return replace(self, said={**self.said, name: why}) if why else self

    def allowance(self, wanted: int | None) -> int:
        """Tokens to think with; `wanted` is the setting, None to go by what was learned."""
        if wanted is not None:
            return wanted
        return FIRST_REASONING if self.reasons is None else self.reasoning_tokens if self.reasons else 0


TRUSTED = Profile(dropped=("tools",), probabilities=True, reasons=False)  # of a server that is ours
_READER = TypeAdapter(Profile)


class StoredProfile:
    """The profile of one model at one endpoint, shared by all that ask it, in this process and in others."""

    def __init__(self, home: Path, endpoint: str, model: str) -> None:
        name = hashlib.sha256(f"{endpoint}\n{model}".encode()).hexdigest()[:24]
        self.path = home / FOLDER / f"{name}.json"
        self._new = Profile(endpoint, model)  # with what was learned if no file can be written

    def get(self) -> Profile:
        """Return the current profile; an unreadable file counts as missing, with a warning."""
        return (read(self.path) if self.path.exists() else None) or self._new

    def change(self, how: Callable[[Profile], Profile]) -> Profile:
        """Store what `how` makes of the newest profile."""
        from filelock import FileLock

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.write"):
                before = self.get()
                if (after := how(before)) != before:
                    part = self.path.with_suffix(".part")  # alone: the lock is held
                    part.write_bytes(_READER.dump_json(after, indent=1))
                    system.replace(part, self.path)
                return after
        except OSError as error:
            log.warning("what %s accepts cannot be stored: %s", self._new.endpoint, error)
            self._new = how(self._new)
            return self._new

    @contextmanager
    def turn(
        self, parts: Callable[[Profile], set[str]], cancel: threading.Event, timeout: float
    ) -> Iterator[None]:
        """Hold the right to try what the endpoint has not accepted before: one request at a time, in all
        processes. At once if it has accepted all, and after `timeout` seconds anyway: calls must not wait
        for a service that hangs one after another. Raises Cancelled.
        """
        from filelock import FileLock, Timeout

        def proven() -> bool:
            now = self.get()
            return parts(now) <= set(now.proven)

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            free = proven()
        except OSError:
            free = True
        if free:
            yield
            return
        lock = FileLock(f"{self.path}.try", thread_local=False)

        def enough() -> bool:
            if cancel.is_set():
                raise Cancelled("stopped before the service was asked")
            return proven()

        with admission.aside(), suppress(Timeout):
            lock.acquire(timeout, LOOK_S, cancel_check=enough)
        try:
            if proven():
                lock.release()
            yield
        finally:
            lock.release()

    def reset(self) -> None:
        """Forget all."""
        self.path.unlink(missing_ok=True)


def read(path: Path) -> Profile | None:
    """Read the profile in a file, or return None with a warning."""
    try:
        return _READER.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        log.warning("%s is not used: %s", path, error)
        return None


def every(home: Path) -> list[Profile]:
    """All that is known, by endpoint and model."""
    found = [read(path) for path in sorted((home / FOLDER).glob("*.json"))]
    return sorted((one for one in found if one is not None), key=lambda one: (one.endpoint, one.model))


def parts(fields: Mapping[str, Any], profile: Profile) -> set[str]:
    """Name what of a request an endpoint may reject: its fields, and the values that some reject."""
    ours = {theirs: name for name, theirs in profile.renamed.items()}
    found = {ours.get(name, name) for name in fields if name not in ("model", "messages", "extra_body")}
    if limit(fields) < WORDS:
        found.add(f"max_tokens below {WORDS}")
    if "top_logprobs" in fields:
        found.add(f"{fields['top_logprobs']} alternatives")
    if fields["messages"][0]["role"] == "system":
        found.add("system")
    schema = (fields.get("response_format") or {}).get("json_schema")
    return found | {f"schema: {word}" for word in keywords(schema)}


def limit(fields: Mapping[str, Any]) -> int:
    """Return the token limit of a request, or a large number if it has none."""
    value = fields.get("max_tokens", fields.get("max_completion_tokens"))
    return value if isinstance(value, int) else 1_000_000


LITERAL, NAMED = ("enum", "const", "required", "default"), ("properties", "$defs")  # values without keywords


def keywords(schema: Any) -> set[str]:
    """Return the keywords of a JSON schema at any depth, without the names of properties."""
    found: set[str] = set()
    without_keywords(schema, (), found)
    return found


def without_keywords(schema: Any, gone: tuple[str, ...], found: set[str] | None = None) -> Any:
    """Remove keywords from a JSON schema, and put those that it has into `found`."""
    if isinstance(schema, list):
        return [without_keywords(one, gone, found) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if found is not None:
        found.update(schema)
    made = {name: value for name, value in schema.items() if name not in gone}
    for name in made.keys() - LITERAL:
        inner = made[name]
        named = (
            {key: without_keywords(one, gone, found) for key, one in inner.items()} if name in NAMED else {}
        )
        made[name] = named or without_keywords(inner, gone, found)
    return made
