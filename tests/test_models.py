"""The chat model and the embedder that settings describe, against servers that answer over real HTTP."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from openai_stub import OpenAIStub, Reply

from sharpwave.memory.errors import ConfigError, ModelError
from sharpwave.models import chat_model, embeddings, provider_errors
from sharpwave.settings import Settings

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def no_settings_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOCAL_GGUF", raising=False)


@contextmanager
def server(status: int, body: str, kind: str = "application/json") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Answer every request alike; yields the address and the headers and bodies that came."""
    came: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            sent = json.loads(self.rfile.read(length)) if length else None
            came.append({"path": self.path, "key": self.headers["Authorization"], "body": sent})
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}/v1", came
        finally:
            http.shutdown()
            thread.join()


def listing(*names: str) -> str:
    return json.dumps({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


def test_without_settings_there_is_no_model() -> None:
    assert chat_model(Settings.load()) is None
    assert chat_model(Settings.load(model="none", openai_api_key="k")) is None


def test_a_key_alone_means_openai_whatever_other_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", NOWHERE)
    model: Any = chat_model(Settings.load(openai_api_key="k"))
    assert (model.model_name, model.openai_api_base) == ("gpt-4.1-mini", "https://api.openai.com/v1")
    assert (model.request_timeout, model.max_retries, model.stream_usage) == (60, 2, True)


def test_a_server_is_asked_once_for_its_first_chat_model() -> None:
    with server(200, listing("nomic-embed-text", "llama", "qwen")) as (address, came):
        model: Any = chat_model(Settings.load(openai_base_url=address + "/"))
    assert model.model_name == "llama"
    assert came == [{"path": "/v1/models", "key": "Bearer none", "body": None}]


def test_a_named_model_asks_nothing() -> None:
    model: Any = chat_model(Settings.load(openai_base_url=NOWHERE, model="llama", openai_api_key="k", model_timeout=5))
    assert (model.model_name, model.openai_api_base, model.request_timeout) == ("llama", NOWHERE, 5)
    assert model.openai_api_key.get_secret_value() == "k"


def test_the_model_answers_streams_and_counts() -> None:
    with OpenAIStub(["Good morning.", "Good night."]) as stub:
        model = chat_model(Settings.load(openai_base_url=stub.base_url))
        assert model is not None
        assert model.invoke("Hi").content == "Good morning."
        whole = AIMessageChunk(content="")
        for chunk in model.stream("Bye"):
            assert isinstance(chunk, AIMessageChunk)
            whole += chunk
    assert whole.content == "Good night."
    assert whole.usage_metadata is not None and whole.usage_metadata["input_tokens"] > 0
    assert [request["model"] for request in stub.requests] == ["stub", "stub"]


@pytest.mark.parametrize(
    ("status", "body", "error", "hint"),
    [
        (200, "<html>Welcome</html>", ConfigError, "OPENAI_BASE_URL"),
        (200, "[]", ConfigError, "SHARPWAVE_MODEL"),
        (200, '{"data": [1, {"id": null}]}', ConfigError, "SHARPWAVE_MODEL"),
        (200, listing("text-embedding"), ConfigError, "no chat model"),
        (401, "{}", ConfigError, "OPENAI_API_KEY"),
        (404, "not here", ConfigError, "/v1"),
        (400, '{"error": {"message": "no\\nsuch thing"}}', ModelError, "no such thing"),
    ],
)
def test_a_server_that_does_not_list_models_is_told_in_one_line(
    status: int, body: str, error: type[Exception], hint: str
) -> None:
    with server(status, body, "text/html") as (address, _), pytest.raises(error) as caught:
        chat_model(Settings.load(openai_base_url=address))
    assert hint in str(caught.value) and address in str(caught.value) and "\n" not in str(caught.value)


def test_a_server_that_is_not_there_is_told_with_its_address() -> None:
    with pytest.raises(ModelError, match=r"Cannot reach http://127\.0\.0\.1:9/v1: .*refused.*OPENAI_BASE_URL"):
        chat_model(Settings.load(openai_base_url=NOWHERE))


def test_a_password_in_the_address_is_not_shown() -> None:
    with pytest.raises(ModelError) as caught:
        chat_model(Settings.load(openai_base_url="http://ana:secret@127.0.0.1:9/v1"))
    assert "http://127.0.0.1:9/v1" in str(caught.value) and "secret" not in str(caught.value)


def test_errors_of_a_call_are_told_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.001)
    replies = [Reply(status=429)] * 3 + [Reply(status=400, message="too long"), Reply(status=404), Reply(status=401)]
    with OpenAIStub(replies) as stub:
        settings = Settings.load(openai_base_url=stub.base_url, model="stub")
        model = chat_model(settings)
        assert model is not None
        for error, hint in (
            (ModelError, "429"),
            (ModelError, "too long"),
            (ConfigError, "SHARPWAVE_MODEL"),
            (ConfigError, "OPENAI_API_KEY"),
        ):
            with pytest.raises(error, match=hint), provider_errors(settings):
                model.invoke("Hi")


def test_a_slow_answer_names_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    with OpenAIStub([Reply("late", delay=5)] * 3) as stub:
        settings = Settings.load(openai_base_url=stub.base_url, model="stub", model_timeout=0.2)
        model = chat_model(settings)
        assert model is not None
        with pytest.raises(ModelError, match=r"within 0\.2 s.*SHARPWAVE_MODEL_TIMEOUT"), provider_errors(settings):
            model.invoke("Hi")


@pytest.mark.parametrize("given", [{"model": "gpt-4.1-mini"}, {"openai_base_url": "https://api.openai.com/v1"}])
def test_openai_without_a_key_says_which_variable(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        chat_model(Settings.load(**given))


def test_the_local_embedder_reads_the_folder_that_is_given(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        embeddings(Settings.load(embedder_files=tmp_path / "missing")).embed_query("hello")


def test_embeddings_of_a_server_send_plain_texts() -> None:
    body = json.dumps({"object": "list", "data": [{"index": 0, "embedding": [0.6, 0.8]}], "model": "m"})
    with server(200, body) as (address, came):
        embedder = embeddings(Settings.load(openai_base_url=address, embeddings="openai:nomic:v1"))
        assert embedder.embed_documents(["Olá"]) == [[0.6, 0.8]]
    assert came[0]["path"] == "/v1/embeddings"
    assert (came[0]["body"]["input"], came[0]["body"]["model"]) == (["Olá"], "nomic:v1")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        embeddings(Settings.load(embeddings="openai:text-embedding-3-small"))


def test_a_gguf_file_needs_to_be_there_and_the_extra_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"no file .*nothing\.gguf"):
        chat_model(Settings.load(local_gguf=tmp_path / "nothing.gguf"))
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigError, match=r'pip install "sharpwave\[local\]"'):
        chat_model(Settings.load(local_gguf=gguf))


def test_one_server_in_the_process_serves_a_gguf_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []

    class Server:
        def __init__(self, params: Any) -> None:
            if Path(params.model.path).read_bytes() != b"GGUF":
                raise RuntimeError("Failed to init server, please check the input params.")
            started.append(params)
            self.listening_address = "http://127.0.0.1:1234"

    runtime = ModuleType("xllamacpp")
    vars(runtime)["Server"] = Server
    vars(runtime)["CommonParams"] = lambda: SimpleNamespace(
        model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
    )
    monkeypatch.setitem(sys.modules, "xllamacpp", runtime)
    (gguf := tmp_path / "small.gguf").write_bytes(b"GGUF")
    (broken := tmp_path / "broken.gguf").write_bytes(b"<html>")
    first: Any = chat_model(Settings.load(local_gguf=gguf))
    chat_model(Settings.load(local_gguf=gguf, model="named"))
    assert len(started) == 1 and started[0].swa_full is True
    assert (first.model_name, first.openai_api_base) == ("small", "http://127.0.0.1:1234/v1")
    assert [first.openai_api_key.get_secret_value()] == started[0].api_keys, "the loopback server has a key"
    with pytest.raises(ConfigError, match=r"cannot load .*broken\.gguf"):
        chat_model(Settings.load(local_gguf=broken))


def test_importing_settings_and_models_loads_no_client() -> None:
    code = (
        "import sys, sharpwave.models, sharpwave.conversations;"
        "print(sorted({'openai', 'langchain_openai', 'onnxruntime', 'chromadb', 'tiktoken'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
