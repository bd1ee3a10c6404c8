"""Across sessions on the command line: what kept failing is warned of, what worked is told again, an allergy is heeded."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings
from openai_stub import OpenAIStub, Reply

from sharpwave import cli

Run = Callable[..., Any]
TOOLS = """
def deploy_v1(service: str) -> str:
    "Deploy a service by the old way."
    raise RuntimeError(f"410 Gone: the endpoint is deprecated ({service})")

def deploy_v2(service: str) -> str:
    "Deploy a service."
    return f"{service} is live"

TOOLS = [deploy_v1, deploy_v2]
"""
NOTHING = json.dumps({"facts": []})


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run `sharpwave … --json` in this process, each time as a new session, and return what it printed."""
    embeddings = HashEmbeddings()
    monkeypatch.setattr("sharpwave.models.embeddings", lambda settings: embeddings)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "shows_tools.py").write_text(TOOLS)

    def call(*arguments: str) -> Any:
        words = ["sharpwave", "--home", str(tmp_path / "home"), *arguments, "--user", "ana", "--json"]
        monkeypatch.setattr(sys, "argv", words)
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert not ended.value.code, printed.err
        return json.loads(printed.out)

    yield call
    sys.modules.pop("shows_tools", None)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIStub]:
    with OpenAIStub() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        yield running


def system_of(request: dict[str, Any]) -> str:
    return next(message["content"] for message in request["messages"] if message["role"] == "system")


def deploying(tool: str) -> Callable[[dict[str, Any]], str | Reply]:
    """Call a tool once for each request of the user, and say that it is done; nothing is a fact."""

    def answer(request: dict[str, Any]) -> str | Reply:
        if "tools" not in request:
            return NOTHING
        if request["messages"][-1]["role"] == "user":
            return Reply(tool_calls=[(tool, {"service": "billing"})])
        return "That is done."

    return answer


def test_what_failed_is_warned_of_and_what_worked_is_told_in_later_sessions(run: Run, stub: OpenAIStub) -> None:
    asked = "Please deploy the billing service."

    def session(tool: str, thread: str) -> str:
        """Have the model use a tool in a conversation of its own; returns the first prompt."""
        stub.replies, start = deploying(tool), len(stub.requests)
        run("chat", "--tools", "shows_tools:TOOLS", "--thread", thread, "--once", asked)
        return system_of(stub.requests[start])

    prompts = [session("deploy_v1", f"failing {n}") for n in range(3)]
    assert not any("deploy_v1" in prompt and "failed in" in prompt for prompt in prompts)
    prompts = [session("deploy_v2", f"working {n}") for n in range(4)]
    assert "Tool deploy_v1 failed in 3 of its last 3 uses, mostly" in prompts[0] and "410 Gone" in prompts[0]
    assert not any("Worked" in prompt for prompt in prompts)  # three successes may be luck: the bound is below 0.5

    listed = run("procedures", "list")["procedures"]
    assert [(one["actions"], one["successes"], one["status"]) for one in listed] == [(["deploy_v2"], 4, "active")]
    assert listed[0]["confidence"] == pytest.approx(0.51, abs=0.001)
    later = session("deploy_v2", "later")
    assert "Worked 4 of 4 times" in later and "deploy_v2" in later
    tools = {one["tool"]: one for one in run("procedures", "tools")["tools"]}
    assert tools["deploy_v1"]["warned"] and not tools["deploy_v2"]["warned"]


def test_an_allergy_of_another_session_is_heeded_without_a_model(run: Run) -> None:
    run("chat", "--thread", "monday", "--once", "I'm allergic to shellfish.")
    said = run("chat", "--thread", "friday", "--once", "Any ideas for dinner?")
    assert [one["text"] for one in said["context"]["profile"]] == ["I'm allergic to shellfish."]
    assert "shellfish" in said["reply"] and said["recalled"] == []


def test_an_allergy_of_another_session_is_shown_to_the_model(run: Run, stub: OpenAIStub) -> None:
    quote = "I'm allergic to shellfish"
    fact = {"text": "Is allergic to shellfish", "quote": quote, "attribute": "allergy", "value": "shellfish"}
    stub.replies = ["Noted.", json.dumps({"facts": [{**fact, "importance": 0.9, "op": "ADD"}]}), "Pasta [1]."]
    run("chat", "--thread", "monday", "--once", f"{quote}.")
    said = run("chat", "--thread", "friday", "--once", "Any ideas for dinner?")
    prompt = system_of(stub.requests[-1])
    assert "Is allergic to shellfish" in prompt and "whatever is asked" in prompt
    assert [one["text"] for one in said["context"]["profile"]] == ["Is allergic to shellfish"]
    assert said["citations"] == [said["context"]["profile"][0]["id"]]
