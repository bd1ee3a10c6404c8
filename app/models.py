"""From settings to the models: the chat model, if there is one, and the embedder.

Nothing here calls a tokeniser: `ChatOpenAI.get_num_tokens` downloads its tables on first use.
"""

import functools
import importlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import BaseChatModel
from pydantic import SecretStr

from sharpwave.memory.errors import ConfigError, ModelError, SharpwaveError
from sharpwave.settings import Settings

if TYPE_CHECKING:
    import openai

OPENAI = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-4.1-mini"
LOCAL_CONTEXT = 8192
"""Tokens of context of the in-process model: room for a prompt with memories, within the memory of a laptop."""


def chat_model(settings: Settings) -> BaseChatModel | None:
    """Return the chat model that the settings describe, or None in the keyless mode.

    Without a model name, a server other than OpenAI's is asked once which models it has.

    Raises:
        ConfigError: a key, file or package is missing, or the server refuses the key or the address.
        ModelError: the server had to be asked and does not answer.
    """
    if settings.mode == "keyless":
        return None
    if settings.local_gguf and settings.mode == "local":
        address, key = _serve(settings.local_gguf)
        return _chat(settings, settings.model or settings.local_gguf.stem, address, key)
    address, key = _server(settings)
    model = settings.model or (OPENAI_MODEL if address == OPENAI else _first_model(settings))
    return _chat(settings, model, address, key)


def embeddings(settings: Settings) -> Embeddings:
    """Return the embedder that the settings describe; raises `ConfigError` when its files or its key are missing."""
    if settings.embeddings == "local":
        from sharpwave.memory.embed import LocalEmbeddings

        return LocalEmbeddings(settings.embedder_files)
    from langchain_openai import OpenAIEmbeddings

    address, key = _server(settings)
    return OpenAIEmbeddings(
        model=settings.embeddings.partition(":")[2],
        openai_api_base=address,
        openai_api_key=SecretStr(key),
        request_timeout=settings.model_timeout,
        max_retries=2,
        check_embedding_ctx_length=False,  # or it fetches a tokeniser
    )


@contextmanager
def provider_errors(settings: Settings) -> Iterator[None]:
    """Turn what the OpenAI client raises inside the block into a `ConfigError` or `ModelError` of one clear line."""
    if settings.mode == "keyless" and settings.embeddings == "local":
        yield
        return
    import openai

    try:
        yield
    except openai.OpenAIError as error:
        raise _explained(error, settings) from error


def _explained(error: "openai.OpenAIError", settings: Settings) -> SharpwaveError:
    import openai

    place = "the model in this process" if settings.mode == "local" else _shown(settings.openai_base_url or OPENAI)
    match error:
        case openai.APITimeoutError():
            return ModelError(
                f"No answer from {place} within {settings.model_timeout:g} s. Try again, or raise SHARPWAVE_MODEL_TIMEOUT."
            )
        case openai.APIConnectionError():
            return ModelError(f"Cannot reach {place}: {_cause(error)}. Check OPENAI_BASE_URL and that the server runs.")
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return ConfigError(f"{place} refuses the key ({error.status_code}). Check OPENAI_API_KEY.")
        case openai.NotFoundError():
            return ConfigError(
                f"{place} has no such address or model (404). OPENAI_BASE_URL usually ends in /v1; "
                f"SHARPWAVE_MODEL must name a model of that server."
            )
        case openai.RateLimitError():
            return ModelError(f"{place} takes no more requests now (429). Wait, or look at the quota of the key.")
        case openai.APIStatusError():
            return ModelError(f"{place} refuses the call: {_short(error.message)}. Try again, or see the server's log.")
        case _:
            return ModelError(f"The call to {place} failed: {_short(str(error))}. Try again.")


def _shown(address: str) -> str:
    """Leave out the password that an address may carry."""
    return re.sub(r"//[^/]*@", "//", address)


def _short(text: str) -> str:
    return " ".join(text.split())[:200].rstrip(".")


def _cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return _short(str(error))


def _chat(settings: Settings, model: str, address: str, key: str) -> BaseChatModel:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=model,
        base_url=address,
        api_key=SecretStr(key),
        timeout=settings.model_timeout,
        max_retries=2,
        stream_usage=True,
    )


def _server(settings: Settings) -> tuple[str, str]:
    """Return address and key. Both are always said, so that the client looks for no other variables of its own."""
    if settings.openai_api_key:
        return settings.openai_base_url or OPENAI, settings.openai_api_key.get_secret_value()
    if settings.openai_base_url in (None, OPENAI):
        raise ConfigError(
            "No key for OpenAI. Set OPENAI_API_KEY, or OPENAI_BASE_URL to a server that needs none; "
            "SHARPWAVE_MODEL=none and SHARPWAVE_EMBEDDINGS=local do without a server."
        )
    return settings.openai_base_url, "none"


def _first_model(settings: Settings) -> str:
    """Ask the server for its models and return the first that is not an embedder."""
    import openai

    address, key = _server(settings)
    with (
        provider_errors(settings),
        openai.OpenAI(
            base_url=address, api_key=key, timeout=min(settings.model_timeout, 10.0), max_retries=1
        ) as client,
    ):
        answer = client.models.with_raw_response.list().http_response.text
    name = next((name for name in _model_names(answer) if "embed" not in name.lower()), None)
    if name is None:
        raise ConfigError(
            f"{_shown(address)}/models lists no chat model. Set SHARPWAVE_MODEL, and check OPENAI_BASE_URL (usually it ends in /v1)."
        )
    return name


def _model_names(answer: str) -> list[str]:
    """Read `{"data": [{"id": …}, …]}`; anything else, such as the page of a web site, names no model."""
    try:
        document = json.loads(answer)
    except ValueError:
        return []
    rows = document.get("data") if isinstance(document, dict) else None
    ids = [row.get("id") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [name for name in ids if isinstance(name, str)]


def _serve(gguf: Path) -> tuple[str, str]:
    """Run the model of a GGUF file in this process and return the address of its server and the key to it."""
    if not gguf.is_file():
        raise ConfigError(f"There is no file {gguf}. Set SHARPWAVE_LOCAL_GGUF to the GGUF file of a chat model.")
    server, key = _local_server(gguf.resolve())
    return f"{server.listening_address}/v1", key


@functools.cache
def _local_server(gguf: Path) -> tuple[Any, str]:
    """Start llama.cpp's server on a free port of the loopback interface; it runs until the process ends.

    It has a key, since any page in a browser can reach the loopback interface. Half of the cores, at most four: more
    threads than idle cores spin and slow the model down.
    """
    try:
        xllamacpp: Any = importlib.import_module("xllamacpp")
    except ImportError as error:
        raise ConfigError(
            f'A GGUF file needs the [local] extra ({error}). Run: pip install "sharpwave[local]", with libgomp on the system.'
        ) from error
    key = secrets.token_urlsafe()
    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.api_keys = [key]
    params.n_ctx, params.n_parallel = LOCAL_CONTEXT, 1
    params.swa_full = True  # else models with a sliding window read the whole prompt again at each call
    params.ui, params.verbosity = False, 0
    threads = max(1, min(4, (os.cpu_count() or 2) // 2))
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    try:
        return xllamacpp.Server(params), key
    except RuntimeError as error:
        raise ConfigError(
            f"llama.cpp cannot load {gguf}. It must be a complete GGUF file of a chat model, and fit into memory."
        ) from error
