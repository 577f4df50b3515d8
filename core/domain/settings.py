"""One typed settings object: defaults < file (`routescope.toml` in home) < environment < request."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from platformdirs import user_cache_path, user_data_path
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)

from core.domain.errors import BadInput
from core.domain.models import EMBEDDER_NAME, EmbedderSettings, ModelSettings, find, variables
from core.domain.people import Role
from core.domain.pipelines import PipelineSettings
from core.domain.program import INSTALLED
from core.domain.program import PROJECT as PROJECT
from core.domain.types import EVIDENCE

ENV_PREFIX = "ROUTESCOPE_"
# Tables of the settings file alone: a variable is set more easily than a file is written.
TABLES = ("external", "team", "corpora", "models", "llm_headers", "embedders", "access")


def default_home() -> Path:
    """Return the folder of sessions, indexes and caches: ROUTESCOPE_HOME, else `var` in a checkout, or the
    user's data folder for an installed program, wherever it starts.
    """
    own = user_data_path("routescope") if INSTALLED else PROJECT / "var"
    return Path(os.environ.get(f"{ENV_PREFIX}HOME") or own).expanduser().resolve()


def settings_file() -> Path:
    """Return the path of the settings file, which may not exist."""
    return default_home() / "routescope.toml"


def _whole(given: Any) -> Any:
    """Convert a whole number from the environment, as a choice between numbers accepts no text."""
    return int(given) if isinstance(given, str) and given.isascii() and given.isdigit() else given


class Team(BaseModel):
    """The table [team] of the settings file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    roles: dict[str, Role] = {}  # by account, "@domain" or "*" for all others
    tokens: dict[str, str] = {}  # the accounts that agents act for, by the sha256 of their token


class CorpusSettings(BaseModel):
    """A table [corpora.NAME] of the settings file: a corpus in PostgreSQL.

    With `table` it is that table as it stands, read-only: `id`, `text`, `title` and `vector` name its
    columns, `metadata` those that filters may use. Without, it is only the address, with its password, of a
    corpus that `index --in` built there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    dsn: SecretStr
    table: str = Field("", max_length=200)
    id: str = Field("id", min_length=1, max_length=63)
    text: str = Field("text", min_length=1, max_length=63)
    title: str = Field("", max_length=63)
    vector: str = Field("vector", min_length=1, max_length=63)
    metadata: tuple[str, ...] = ()
    embedder: str = ""  # that made the vectors; empty: the setting of that name
    language: str = "english"

    @field_validator("metadata", mode="before")
    @classmethod
    def _one(cls, given: Any) -> Any:
        """One column may be given as text, several with commas between them."""
        return (
            [part.strip() for part in given.split(",") if part.strip()] if isinstance(given, str) else given
        )


class Settings(BaseModel):
    """Every setting with its default; names are the field's, the environment's are upper case with
    ROUTESCOPE_. What is given stands before the environment, that before the file.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, use_attribute_docstrings=True
    )

    home: Path = Field(default_factory=default_home)
    """sessions, indexes, caches"""
    models_dir: Path = Field(default_factory=lambda: user_cache_path("routescope") / "models")
    """downloaded models, shared by every checkout on this machine"""
    database: SecretStr | None = None
    """PostgreSQL database that keeps runs and labels, postgresql://USER@HOST/NAME; empty: a file in `home`"""
    first_start: Literal["on", "off"] = "on"
    """on: a first start of the dashboard prepares the example documents, models and evaluation"""
    embedder: str = "all-MiniLM-L6-v2"
    """embedding model: a name that `models` lists, of sentence-transformers, a folder, or the NAME of a
    service, [embedders.NAME]; all-MiniLM-L6-v2-int8 is the default with weights of 8 bits, twice as fast"""
    embed_limit_cost: float = Field(1.0, ge=0, allow_inf_nan=False)
    """cost of embedding a corpus by a service above which indexing asks first, in its price's currency"""
    embed_limit_minutes: float = Field(30.0, ge=0, allow_inf_nan=False)
    """the same for the minutes that it takes"""
    llm: str = "qwen2.5-coder-1.5b"
    """model name in the catalogue, or at `llm_base_url`"""
    index_llm: str = ""
    """model that writes contexts and hypothetical questions for an index; empty: same as `llm`"""
    llm_base_url: str | None = None
    """OpenAI-compatible endpoint of the model; empty: the embedded server"""
    llm_api_key: SecretStr | None = None
    """API key of `llm_base_url`; never shown, logged or stored"""
    llm_mode: Literal["live", "record", "replay"] = "live"
    """live: use cached answers, call the model for the rest; record: call it always; replay: cached only"""
    llm_timeout_s: float = Field(120.0, gt=0)
    """deadline of one model call, in seconds, with the waits its service asks for"""
    llm_reasoning_tokens: int | None = Field(None, ge=0)
    """tokens that a model may reason with, besides those of its answer; empty: learned from its replies"""
    llm_reasoning_effort: Literal["", "none", "minimal", "low", "medium", "high", "xhigh"] = ""
    """how much a model is to reason (reasoning_effort); empty: its default"""
    llm_idle_minutes: float = Field(20.0, gt=0)
    """minutes without a call after which the embedded server stops"""
    llm_slots: int | None = Field(None, ge=1)
    """concurrent calls to `llm_base_url`; empty: no limit, but enrichments make 8, or 1 to this machine"""
    llm_cache_mb: int = Field(1024, ge=1)
    """size limit of the model answer cache, in megabytes; the least recently used are deleted first"""
    llm_context: int = Field(8192, ge=512)
    """context window in tokens; the embedded server starts with it"""
    llm_price_prompt: float | None = Field(None, ge=0, allow_inf_nan=False)
    """price per million prompt tokens; empty: no price shown"""
    llm_price_completion: float | None = Field(None, ge=0, allow_inf_nan=False)
    """price per million completion tokens, in the same currency"""
    late_model: str = Field("all-MiniLM-L6-v2", min_length=1)
    """model of the token vectors for late interaction: the embedded MiniLM, a ColBERT model or its folder"""
    late_bits: Annotated[Literal[2, 16], BeforeValidator(_whole)] = 16
    """bits of a component of these vectors on disk; 2 take an eighth of the room, may rank slightly worse"""
    sparse_model: str = "splade-tiny"
    """SPLADE model: a name that `models` lists, of the hub, or its folder; empty: none"""
    fid_model: str = ""
    """Fusion-in-Decoder model (T5): its name on the Hugging Face Hub or its folder; empty: none"""
    web_search: str = Field("snapshot", pattern=r"^(snapshot|none|https?://\S+)$")
    """snapshot: the stored pages of corpus `web`; none; or the http(s):// URL of a SearXNG instance"""
    reranker: str = Field("embedded", min_length=1)
    """embedded; llm; a cross-encoder, such as cross-encoder/ms-marco-MiniLM-L6-v2, or its folder; or a rerank
    server, http(s)://.../rerank"""
    reranker_model: str = ""
    """model to request from the rerank server; empty: its default"""
    reranker_api_key: SecretStr | None = None
    """API key of the rerank server; never shown, logged or stored"""
    self_rag_base_url: str | None = None
    """text-completion endpoint of a reflection-token model, for Self-RAG; empty: none"""
    self_rag_model: str = Field("selfrag/selfrag_llama2_7b", min_length=1)
    """model to request from `self_rag_base_url`"""
    self_rag_api_key: SecretStr | None = None
    """API key of `self_rag_base_url`; never shown, logged or stored"""
    route_timeout_s: float = Field(1200.0, gt=0)
    """deadline of one route, in seconds"""
    route_max_calls: int = Field(40, ge=1)
    """maximum model calls per route"""
    route_max_tokens: int = Field(40_000, ge=1)
    """maximum model tokens per route"""
    timing: Literal["shared", "isolated"] = "shared"
    """shared: routes reuse each other's equal steps; isolated: each route does all its steps itself"""
    answers: Literal["none", "selected", "all"] = "none"
    """which routes write an answer"""
    answer_by: Literal["model", "extract"] = "model"
    """model: written by the language model; extract: sentences copied from passages"""
    answer_order: Literal["best first", "best at both ends"] = "best first"
    """order of the passages in the answer prompt"""
    answer_evidence: float = Field(EVIDENCE, ge=0, le=1)
    """minimum P(Yes) that the passages contain the answer; below it no answer is written"""
    delete_undo_minutes: float = Field(10.0, ge=0, le=525_600)
    """minutes in which a deleted run can be restored; after that it is permanently deleted"""
    scheduler: str = Field("", pattern=r"^((tcp|tls)://\S+)?$")
    """Dask scheduler whose workers evaluations, sweeps and indexing may use: tcp://host:port or tls://..."""
    scheduler_tls_ca: str = ""
    """file of the certificate authority of a tls:// scheduler"""
    scheduler_tls_cert: str = ""
    """file of this machine's certificate for it"""
    scheduler_tls_key: str = ""
    """file of that certificate's private key"""
    only_public: str = ""
    """settings whose address must be public: those entered on a page that other machines can reach"""
    oidc_url: str = ""
    """OpenID Connect provider that people sign in with: the address of its metadata,
    https://.../.well-known/openid-configuration; empty: none"""
    oidc_client_id: str = ""
    """name of this server at the provider"""
    oidc_client_secret: SecretStr | None = None
    """secret of this server at the provider; never shown, logged or stored"""
    oidc_email: Literal["verified", "any"] = "verified"
    """verified: only email addresses that the provider verified; any: also where it does not say"""
    cookie_secret: SecretStr | None = None
    """signs the cookie of who signed in: 32 random characters or more; never shown"""
    public_url: str = ""
    """address that people open the dashboard by, such as https://routescope.example.org"""
    proxy_header: str = ""
    """header in which a proxy that people sign in to names their account; empty: none"""
    proxy_addresses: str = "127.0.0.1"
    """addresses or networks of that proxy, separated by spaces; no other may connect"""
    proxy_sign_out: str = Field("", pattern=r"^(/\S*|https://\S+)?$")
    """where that proxy signs people out, such as /oauth2/sign_out"""
    daily_tokens: int | None = Field(None, ge=0)
    """model tokens that a person may use a day (UTC); empty: no limit"""
    exact_below: int = Field(50_000, ge=0)
    """number of passages below which vector search is exact"""

    # Tables of the settings file, which neither the environment nor a page can set.
    team: Team = Team()  # [team.roles]
    external: dict[str, PipelineSettings] = {}  # pipelines of your own, [external.NAME]
    corpora: dict[str, CorpusSettings] = {}  # corpora in PostgreSQL, [corpora.NAME]
    models: dict[str, ModelSettings] = {}  # further chat models, [models.NAME]
    llm_headers: dict[str, str] = {}  # sent to `llm_base_url`; ${NAME} is the environment variable NAME
    embedders: dict[str, EmbedderSettings] = {}  # embedding services, [embedders.NAME]
    # groups that may see documents, for `audit-access`: [access.FIELD] with VALUE = [GROUP, ...]
    access: dict[str, dict[str, tuple[str, ...]]] = {}

    def secrets(self) -> tuple[str, ...]:
        """Return every secret that is set, for redaction."""
        values = (getattr(self, name) for name in type(self).model_fields)
        given = [one.get_secret_value() for one in values if isinstance(one, SecretStr)]
        given += [one.dsn.get_secret_value() for one in self.corpora.values()]
        given += [key.get_secret_value() for one in self.models.values() if (key := one.key())]
        headers = [self.llm_headers, *(one.headers for one in self.models.values())]
        given += [value for one in headers for value in variables(one)]
        given += [secret for one in self.embedders.values() for secret in one.secrets()]
        return tuple(one for value in given for one in (value, password(value)) if one)

    def with_model(self, name: str) -> Settings:
        """Return these settings with the model of a table [models.NAME] as the chat model; "" keeps the
        default.

        Raises BadInput if there is no such table.
        """
        return self.model_copy(update=find(self.models, name).as_settings()) if name else self

    @field_validator("embedders")
    @classmethod
    def _names(cls, given: dict[str, EmbedderSettings]) -> dict[str, EmbedderSettings]:
        for name in given:
            if not EMBEDDER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a name: use small letters, digits, dot, dash and _")
        return given

    def __init__(self, **given: Any) -> None:
        super().__init__(**{**_from_file(), **_from_environment(type(self).model_fields), **given})

    @property
    def login(self) -> Literal["", "oidc", "proxy"]:
        """Return the login method, or "" without a login."""
        return "oidc" if self.oidc_url else "proxy" if self.proxy_header else ""

    def private(self, name: str) -> bool:
        """Return True if the address in a setting may be on this machine or its own network."""
        return name not in self.only_public.split()


def password(address: str) -> str:
    """Return the password in an address as written, or ""."""
    try:
        return urlsplit(address).password or "" if "://" in address else ""
    except ValueError:
        return ""


def _from_file() -> dict[str, Any]:
    """Return the content of the settings file, or {} without one."""
    file = settings_file()
    return tomllib.loads(file.read_bytes().decode()) if file.is_file() else {}


def _from_environment(names: Iterable[str]) -> dict[str, str]:
    """Return the settings among `names` that the environment sets, in any case, except `TABLES`."""
    given = {name.lower(): value for name, value in os.environ.items()}
    known = {name: f"{ENV_PREFIX}{name}".lower() for name in names if name not in TABLES}
    return {name: given[variable] for name, variable in known.items() if variable in given}


def load(**request: Any) -> Settings:
    """Load the active settings, overridden by `request`. Raises BadInput naming the field, the value and what
    is allowed.
    """
    try:
        return Settings(**request)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "settings"
        secret = any(word in name for word in ("key", "database", "corpora", "headers"))
        given = "" if secret else f" (given: {first.get('input')!r})"
        raise BadInput(f"setting {name}: {first['msg']}{given}") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{settings_file()} is not valid TOML: {error}") from None
    except RecursionError:
        raise BadInput(f"{settings_file()} is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{settings_file()} is not UTF-8 text: {error}") from None
    except OSError as error:
        raise BadInput(f"cannot read {settings_file()}: {error.strerror or error}") from None


@cache
def current() -> Settings:
    """Return the settings of this process, read once."""
    return load()
