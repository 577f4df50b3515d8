"""Chat models and embedders that the settings file names; a route is run with a model by `hyde@NAME`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from core.domain.errors import BadInput
from core.domain.pipelines import VARIABLE, Headers

AT = "@"  # between a route's name and a model's
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
PARAMETER = "llm"  # of every route that asks a model


class ModelSettings(BaseModel):
    """A table [models.NAME] of the settings file: a chat model besides the one of the setting `llm`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1)  # model name at `base_url`, or in the catalogue
    base_url: str | None = None  # OpenAI-compatible endpoint; empty: the embedded server
    key_env: str = ""  # environment variable with its API key
    headers: dict[str, str] = {}  # sent with every call; ${NAME} is the environment variable NAME
    price_prompt: float | None = Field(None, ge=0, allow_inf_nan=False)  # per million tokens
    price_completion: float | None = Field(None, ge=0, allow_inf_nan=False)
    reasoning_tokens: int | None = Field(None, ge=0)  # as the setting `llm_reasoning_tokens`
    reasoning_effort: str = ""  # as `llm_reasoning_effort`
    slots: int | None = Field(None, ge=1)  # as `llm_slots`

    def key(self) -> SecretStr | None:
        """Return the API key, or None."""
        value = os.environ.get(self.key_env, "") if self.key_env else ""
        return SecretStr(value) if value else None

    def as_settings(self) -> dict[str, object]:
        """Return the settings that this model replaces."""
        own = self.model_dump(exclude={"model", "base_url", "key_env"})
        endpoint = {"llm": self.model, "llm_base_url": self.base_url, "llm_api_key": self.key()}
        return endpoint | {f"llm_{name}": value for name, value in own.items()}


def filled(headers: Mapping[str, str], where: str) -> dict[str, str]:
    """Headers with the environment's variables put in. Raises BadInput for one that is not set."""
    found = {}
    for name, value in headers.items():
        for variable in VARIABLE.findall(value):
            if variable not in os.environ:
                raise BadInput(
                    f"{where}: header {name} needs the environment variable {variable}, which is not set"
                )
        found[name] = VARIABLE.sub(lambda one: os.environ[one[1]], value)
    return found


def variables(headers: Mapping[str, str]) -> list[str]:
    """Return the values of environment variables used in headers, which are probably secrets."""
    names = [name for value in headers.values() for name in VARIABLE.findall(value)]
    return [os.environ[name] for name in names if os.environ.get(name)]


def find(models: Mapping[str, ModelSettings], name: str) -> ModelSettings:
    """Return the model called `name`. Raises BadInput, listing the known ones, if it does not exist."""
    if name in models:
        return models[name]
    known = ", ".join(models) or "none"
    raise BadInput(f"no model {name!r}: the settings file has no table [models.{name}]; it has: {known}")


ServiceKind = Literal["openai", "azure", "ollama", "tei", "vllm", "lmstudio", "cohere", "voyage"]
EMBEDDER_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
URLS: dict[str, str] = {
    "openai": "https://api.openai.com/v1",
    "cohere": "https://api.cohere.com/v2",
    "voyage": "https://api.voyageai.com/v1",
}
BATCHES: dict[str, int] = {"openai": 256, "azure": 256, "vllm": 64, "cohere": 96, "voyage": 128}
TOKENS: dict[str, int] = {"openai": 100_000, "azure": 100_000, "cohere": 100_000, "voyage": 100_000}
LOCAL_BATCH, LOCAL_TOKENS = 32, 16_000  # of servers that people run themselves


class EmbedderSettings(BaseModel):
    """A table [embedders.NAME] of the settings file: a service that turns texts into vectors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: ServiceKind = "openai"  # what the service speaks; openai: /v1/embeddings
    base_url: str = ""  # its address; empty: that of the vendor
    model: str = Field(min_length=1, max_length=200)  # model to request; Azure: the deployment
    key_env: str = Field("", pattern=r"^[A-Za-z0-9_]*$")  # environment variable with the API key
    headers: Headers = {}  # sent with every request
    api_version: str = Field("", pattern=r"^[A-Za-z0-9.-]*$")  # Azure's ?api-version
    dimensions: int | None = Field(None, ge=1, le=65_536)  # numbers in a vector; empty: the model's
    encoding: Literal["auto", "float", "base64"] = "auto"  # how vectors are sent
    query_prefix: str = ""  # put before each question
    document_prefix: str = ""  # put before each passage
    query_type: str = ""  # input_type of questions; empty: that of Cohere or Voyage
    document_type: str = ""  # input_type of passages
    query_fields: dict[str, Any] = {}  # more fields of a question's request
    document_fields: dict[str, Any] = {}  # of a request with passages
    batch: int | None = Field(None, ge=1, le=2048)  # texts in a request at most
    batch_tokens: int | None = Field(None, ge=1)  # tokens in a request at most, about
    at_once: int | None = Field(None, ge=1, le=64)  # requests at once while a corpus is indexed
    timeout_s: float = Field(60.0, gt=0, le=3_600)  # deadline of one request
    price: float | None = Field(None, ge=0, allow_inf_nan=False)  # per million tokens

    @model_validator(mode="after")
    def _address(self) -> EmbedderSettings:
        if not self.base_url and self.kind not in URLS:
            raise ValueError(f"kind {self.kind} needs base_url, the address of the service")
        return self

    @property
    def url(self) -> str:
        """The address as given, or the vendor's."""
        return self.base_url or URLS[self.kind]

    @property
    def texts_at_once(self) -> int:
        """Return the maximum number of texts per request."""
        return self.batch or BATCHES.get(self.kind, LOCAL_BATCH)

    @property
    def tokens_at_once(self) -> int:
        """About how many tokens a request holds at most."""
        return self.batch_tokens or TOKENS.get(self.kind, LOCAL_TOKENS)

    @property
    def requests_at_once(self) -> int:
        """Return the number of concurrent requests while a corpus is indexed."""
        return self.at_once or (4 if self.kind in URLS or self.kind == "azure" else 1)

    def key(self) -> str:
        """Return the API key from the environment, or ""."""
        return os.environ.get(self.key_env, "").strip() if self.key_env else ""

    def sent_headers(self) -> dict[str, str]:
        """Return the headers with environment variables replaced by their values."""
        return {
            name: VARIABLE.sub(lambda found: os.environ.get(found[1], ""), value)
            for name, value in self.headers.items()
        }

    def secrets(self) -> tuple[str, ...]:
        """Return the secrets to redact: the key, and the environment values in headers."""
        return tuple(filter(None, (self.key(), *variables(self.headers))))
