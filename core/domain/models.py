"""Further chat models that the settings file names, and how a route is run with one of them: `hyde@NAME`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from core.domain.errors import BadInput
from core.domain.pipelines import VARIABLE

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
