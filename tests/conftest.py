"""Fixtures for all tests. Nothing here may reach the network: sockets to the outside are refused."""

import ipaddress
import os
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes import HashEmbeddings, ScriptedModel, Step

os.environ["COLUMNS"] = "160"  # before any console is made: what is printed must not depend on the terminal of the run

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FIELD_CASES = Path(__file__).resolve().parents[2] / "shared" / "field-cases.jsonl"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves this machine."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = address[0]  # type: ignore[index]
            if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
                raise AssertionError(f"A test tried to reach {address!r}.")
        return real(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees the machine's own settings or writes to the user's own folder."""
    for name in list(os.environ):
        if name.startswith(("SHARPWAVE_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SHARPWAVE_HOME", str(tmp_path_factory.mktemp("home") / "sharpwave"))


@pytest.fixture
def embeddings() -> HashEmbeddings:
    return HashEmbeddings()


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedModel]]:
    """Make scripted models; at the end each of them must have used its whole script."""
    made: list[ScriptedModel] = []

    def make(*steps: Step) -> ScriptedModel:
        made.append(ScriptedModel(script=list(steps), calls=[], bound=[]))
        return made[-1]

    yield make
    for model in made:
        model.assert_done()


@pytest.fixture
def march() -> datetime:
    """A fixed instant to count from."""
    return datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture
def data() -> Path:
    """The benchmark data, where it is at hand."""
    if not DATA.is_dir():
        pytest.skip("the benchmark data is not on this machine (../shared/data)")
    return DATA
