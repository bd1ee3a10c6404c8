"""Settings: read from the environment and from `.env` in the current directory, once, here and nowhere else.

Variables of the environment win over `.env`; what a caller passes to `Settings.load` wins over both.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

import platformdirs
from pydantic import AfterValidator, AliasChoices, Field, SecretStr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from sharpwave.memory.errors import ConfigError, InputError
from sharpwave.memory.times import time_zone

Mode = Literal["keyless", "openai", "local"]
Choice = Literal["auto", "rules", "llm"]
PolicyChoice = Literal["auto", "rules", "learned", "llm"]


def _home() -> Path:
    return platformdirs.user_data_path("sharpwave")


def _zone(name: str) -> str:
    try:
        time_zone(name)
    except InputError as error:
        raise ValueError(str(error)) from error
    return name


def _embeddings(name: str) -> str:
    provider, _, model = name.partition(":")
    if name != "local" and not (provider == "openai" and model.strip()):
        raise ValueError("Write 'local', or 'openai:' and a model as in 'openai:text-embedding-3-small'.")
    return name


def _address(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError("Write a whole address such as 'http://localhost:11434/v1'.")
    return url.rstrip("/")


def _name(text: str) -> str:
    if not text.strip():
        raise ValueError("A name of blanks is no name.")
    return text


Folder = Annotated[Path, AfterValidator(Path.expanduser)]


class Settings(BaseSettings):
    """Everything that can be set; frozen. `variable(field)` tells the variable of a field.

    A chat model is used when `local_gguf`, `openai_base_url`, `openai_api_key` or `model` is set (see `mode`);
    `model="none"` turns it off whatever else is set.
    """

    model_config = SettingsConfigDict(
        env_prefix="SHARPWAVE_",
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    home: Folder = Field(default_factory=_home)
    """Folder of the memories; by default the platform's folder for user data."""
    user: Annotated[str, AfterValidator(_name)] | None = None
    """Whose memories the command line works on when `--user` is not given."""
    timezone: Annotated[str, AfterValidator(_zone)] = "UTC"
    """IANA zone in which times without one are read and dates are told. The machine's own zone is never guessed."""
    model: str | None = None
    """Chat model; `none` means no model. By default gpt-4.1-mini at OpenAI, the first one listed at another server."""
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    """Key of OpenAI or of the server at `openai_base_url`."""
    openai_base_url: Annotated[str, AfterValidator(_address)] | None = Field(
        default=None, validation_alias="OPENAI_BASE_URL"
    )
    """Address of an OpenAI-compatible server, with its `/v1`."""
    local_gguf: Folder | None = Field(default=None, validation_alias=AliasChoices("SHARPWAVE_LOCAL_GGUF", "LOCAL_GGUF"))
    """GGUF file of a chat model to run inside this process; goes before any server or key."""
    model_timeout: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """Seconds that one model call may take."""
    embeddings: Annotated[str, AfterValidator(_embeddings)] = "local"
    """`local`, or `openai:<model>`."""
    embedder_files: Folder | None = None
    """Folder with model.onnx and tokenizer.json of the local embedder; by default those of the [embedded] extra."""
    documents: Folder | None = None
    """Folder that the served reader may read from; by default `documents` in the home folder."""
    extractor: Choice = "auto"
    """Who finds what is worth keeping; `auto` is `llm` where there is a chat model."""
    policy: PolicyChoice = "auto"
    """Who decides between ADD, UPDATE, DELETE and NOOP; `auto` is `llm` where there is a chat model, else
    `learned` with the local embedder and `rules` with another."""
    shadow: Literal["rules", "learned"] | None = None
    """A policy that is asked as well and changes nothing; where it differs is logged. See `sharpwave policy shadow`."""
    write: Literal["inline", "background"] = "inline"
    """When a turn is written to memory: before the reply counts as done, or after it."""
    confirm: bool = False
    """Whether the user is asked before a memory is deleted, or changed by a decision that is not sure."""
    context_tokens: int | None = Field(default=None, ge=1000)
    """Tokens of context of the chat model that are used, the answer included; by default what is known of the model, at
    most 32,000, else 8,000."""
    recall_budget: int = Field(default=300, ge=0)
    """Tokens of recalled memories a turn."""
    learn_recall: bool = False
    """Whether recall learns from what answers cite in which order to return what is found, for each user."""
    max_llm_calls_per_turn: int | None = Field(default=None, ge=1)
    """Model calls that a turn may take, the answer's included; past them memory is written by rules."""
    max_tokens_per_day: int | None = Field(default=None, ge=0)
    """Tokens a day (UTC) and user that model calls may take; past them memory is written by rules."""
    over_budget: Literal["rules", "wait"] = "rules"
    """What becomes of a turn past a budget: written by rules, or left in the queue."""
    keep_checkpoints: int = Field(default=20, ge=1)
    """Latest states of a conversation that are kept."""
    collections: int = Field(default=64, ge=1, le=4096)
    """Chroma collections that the owners are spread over. Fixed once the folder exists."""

    @model_validator(mode="after")
    def _llm_needs_a_model(self) -> Self:
        for field in ("extractor", "policy"):
            if getattr(self, field) == "llm" and self.mode == "keyless":
                raise ValueError(
                    f"{self.variable(field)}=llm needs a chat model. Set OPENAI_API_KEY, OPENAI_BASE_URL or "
                    f"SHARPWAVE_LOCAL_GGUF (and not SHARPWAVE_MODEL=none), or use rules."
                )
        return self

    @model_validator(mode="after")
    def _asking_needs_somebody(self) -> Self:
        if self.confirm and self.write == "background":
            raise ValueError("SHARPWAVE_CONFIRM asks before a turn ends: it needs SHARPWAVE_WRITE=inline.")
        return self

    @property
    def mode(self) -> Mode:
        """`local` with a GGUF file, `openai` with a key, an address or a model name, else `keyless`."""
        if (self.model or "").lower() == "none":
            return "keyless"
        if self.local_gguf:
            return "local"
        return "openai" if self.openai_base_url or self.openai_api_key or self.model else "keyless"

    @classmethod
    def variable(cls, field: str) -> str:
        """Name of the variable that sets `field`."""
        alias = cls.model_fields[field].validation_alias
        if isinstance(alias, AliasChoices):
            return str(alias.choices[0])
        return str(alias or f"SHARPWAVE_{field.upper()}")

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Read the settings; `overrides` are fields by name, and one that is None counts as not given.

        Raises:
            ConfigError: a value does not fit, or `.env` cannot be read. One line, which never shows a key.
        """
        given = {name: value for name, value in overrides.items() if value is not None}
        try:
            return cls(**given)
        except ValidationError as error:
            problems = error.errors(include_url=False)
            raise ConfigError(" ".join(_problem(cls, problem, given) for problem in problems)) from None
        except UnicodeDecodeError as error:
            raise ConfigError("The file .env in this folder is not UTF-8 text. Save it as UTF-8.") from error
        except OSError as error:
            raise ConfigError(f"The file .env in this folder cannot be read: {error.strerror}.") from error


def _problem(cls: type[Settings], problem: ErrorDetails, given: dict[str, Any]) -> str:
    """Say in one sentence which variable does not fit and why."""
    why = problem["msg"].removeprefix("Value error, ").rstrip(".") + "."
    if not problem["loc"]:
        return why
    place = str(problem["loc"][0])
    field = next((name for name in cls.model_fields if place in (name, cls.variable(name))), None)
    if field is None:
        return f"{place}: {why}"
    name = field if field in given else place if place.isupper() else cls.variable(field)
    shown = "" if field == "openai_api_key" else f"={str(problem['input'])[:80]!r}"
    return f"{name}{shown} does not fit. {why}"
