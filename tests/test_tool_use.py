"""What tools were called with, and what came of it: kept once, masked, by the agent's tool node or a callback handler."""

import asyncio
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes import HashEmbeddings, ScriptedModel
from langchain_core.messages import AIMessage
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from talking import say, user

from sharpwave.graphs import Context, ToolRecorder, build_agent, thread_config
from sharpwave.memory.erase import erase
from sharpwave.memory.errors import StoreError
from sharpwave.memory.portability import export, load
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.tool_use import LATEST, WHOLE, ToolUse, ToolUses, error_kind, plain_parameters
from sharpwave.memory.wilson import lower_bound

DAY = datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "home", embeddings=HashEmbeddings(), collections=2) as opened:
        yield opened


@pytest.fixture
def uses(store: MemoryStore) -> ToolUses:
    return ToolUses(store)


def use(at: int, error: str | None = None, owner: str = "ana", **fields: Any) -> ToolUse:
    given = {"tool": "weather", "call_id": f"c{at}", "at": DAY + timedelta(minutes=at), "success": error is None}
    return ToolUse(owner=owner, error=error, **{**given, **fields})


@pytest.mark.parametrize(
    ("successes", "failures", "bound"),
    [
        (0, 0, 0.0),
        (0, 10, 0.0),
        (1, 0, 0.2065),
        (2, 0, 0.3424),
        (3, 0, 0.4385),
        (4, 0, 0.5101),
        (7, 1, 0.5291),
        (8, 2, 0.4902),
        (81, 182, 0.2553),
    ],
)
def test_the_lower_bound_is_wilsons(successes: int, failures: int, bound: float) -> None:
    assert lower_bound(successes, failures) == pytest.approx(bound, abs=1e-4)


def test_a_call_is_kept_once(uses: ToolUses) -> None:
    assert uses.record("ana", use(1)) and not uses.record("ana", use(1, "ValueError: again"))
    assert uses.record("ana", use(1, thread="other")) and uses.record("ana", use(1, agent="coder"))
    assert [one.success for one in uses.find("ana", agent="agent")] == [True, True]
    assert len(uses.find("ana")) == 3 and uses.find("ben") == [] and uses.tools("ana", "nobody") == []


def test_guidance_tells_rates_times_errors_and_what_successes_share(uses: ToolUses) -> None:
    for at in range(8):
        uses.record(
            "ana", use(at, seconds=2.0, parameters={"city": f"c{at}", "units": "metric", "days": 3 if at else 5})
        )
    uses.record("ana", use(8, "HTTPError 503: /srv/a/1 is down", seconds=12.0, parameters={"units": "us"}))
    uses.record("ana", use(9, "HTTPError 502: /srv/b/2 is down"))
    uses.record("ana", use(10, "no answer within 30 s"))
    found = uses.guidance("ana", "weather")
    assert found is not None and (found.uses, found.failures) == (11, 3)
    assert found.success_rate == pytest.approx(8 / 11) and found.confidence == pytest.approx(0.4344, abs=1e-3)
    assert found.seconds == pytest.approx(28 / 9) and not found.warned
    assert [(error.kind, error.count) for error in found.errors] == [("HTTPError #", 2), ("no answer within # s", 1)]
    assert found.errors[0].example == "HTTPError 502: /srv/b/2 is down"
    assert {name: (p.value, p.share) for name, p in found.parameters.items()} == {
        "units": ("metric", 1.0),
        "days": (3, 7 / 8),
    }
    assert uses.guidance("ana", "other") is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("ValueError: no such city: Oslo", "ValueError"),
        ("https://a.example/x?id=1 gave 404: not found", "<url> gave #"),
        ("cannot open /srv/ana/notes 2.txt", "cannot open <path> #.txt"),
        ("cannot open C:\\notes\\a.txt: denied", "cannot open <path>"),
        ("job 0190a3c4-1111-7222-8333-444455556666 is gone", "job <id> is gone"),
        ("no row req_8f3a1c in 12.5 s", "no row <id> in # s"),
        ("OAuth2Error: bad", "OAuth2Error"),
        ("commit 8f3a1c9d0e is missing", "commit <id> is missing"),
        ("", "unknown"),
        (": odd", "unknown"),
    ],
)
def test_errors_are_told_without_what_differs_each_time(error: str, kind: str) -> None:
    assert error_kind(error) == kind


@pytest.mark.parametrize(
    ("failures", "successes", "warned"), [(2, 0, False), (3, 7, False), (3, 6, True), (4, 9, True)]
)
def test_a_tool_is_warned_of_past_two_failures_and_thirty_percent(
    failures: int, successes: int, warned: bool, uses: ToolUses
) -> None:
    uses.record_all("ana", [use(at, "TimeoutError: no answer") for at in range(failures)])
    uses.record_all("ana", [use(at) for at in range(100, 100 + successes)])
    assert [one.tool for one in uses.warnings("ana")] == ["weather"] * warned
    assert uses.warnings("ana", "coder") == [] and uses.warnings("ben") == []


def test_what_was_mended_long_ago_is_not_held_against_a_tool(uses: ToolUses) -> None:
    uses.record_all("ana", [use(at, "TimeoutError: x") for at in range(300)])
    uses.record_all("ana", [use(at) for at in range(300, 300 + LATEST)])
    assert uses.warnings("ana") == []


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_any_parameters_can_be_kept(uses: ToolUses) -> None:
    around: dict[str, Any] = {"list": [1, 2]}
    around["self"] = around
    odd = {
        "object": object(),
        "broken": Unshowable(),
        "nan": float("nan"),
        "huge": 10**5000,
        "bytes": b"x" * 10**6,
        "set": {1},
        "half": "\ud83d",
        1: "key",
        "long": "y" * 10**6,
        "around": around,
    }
    uses.record("ana", use(1, parameters=odd))
    uses.record("ana", use(2, parameters="just text"))
    uses.record("ana", use(3, parameters={f"p{n}": ["z" * 150] * 20 for n in range(20)}))
    first, second, third = (one.parameters for one in uses.find("ana"))
    assert first["bytes"] == "<1000000 bytes>" and first["1"] == "key" and len(first["long"]) == 200
    assert "Unshowable" in first["broken"] and first["around"]["list"] == [1, 2]
    assert second == {"input": "just text"}
    assert all(len(json.dumps(kept)) < WHOLE for kept in (first, third)) and len(third) == 20
    assert plain_parameters(first) == first


def test_secrets_are_masked(uses: ToolUses) -> None:
    uses.record(
        "ana", use(1, "AuthError: my password is tr0ub4dor&3", parameters={"password": "tr0ub4dor&3", "city": "Oslo"})
    )
    (kept,) = uses.find("ana")
    assert "tr0ub4dor" not in repr(kept) and kept.parameters["city"] == "Oslo"


def test_uses_are_exported_and_imported(store: MemoryStore, uses: ToolUses) -> None:
    uses.record("ana", use(1, "LookupError: gone", seconds=2.5, parameters={"where": "the quay"}))
    lines = [json.dumps(line) for line in export(store, "ana")]
    assert load(store, "cleo", lines).tool_uses == 1
    assert (load(store, "cleo", lines).tool_uses, load(store, "cleo", lines).known) == (0, 1)
    assert uses.find("cleo") == [uses.find("ana")[0].model_copy(update={"owner": "cleo"})]


def test_erasing_searches_every_file_for_what_tools_were_given(
    store: MemoryStore, uses: ToolUses, tmp_path: Path
) -> None:
    uses.record("ben", use(1, owner="ben"))
    uses.record("ana", use(1, "LookupError: the mauve cellar is unknown", parameters={"where": ["the violet attic"]}))
    (tmp_path / "home" / "stray.txt").write_text("left behind: the violet attic")
    report = erase(store, "ana")
    assert report.rows["tool_uses"] == 1 and uses.find("ana") == [] and len(uses.find("ben")) == 1
    assert [(finding.file, finding.what) for finding in report.findings] == [("stray.txt", "text")]


# The agent's tool node


@tool
def weather(city: str) -> str:
    """Say what the weather is like."""
    if city == "Atlantis":
        raise LookupError(f"no such place: {city}")
    return f"Rain in {city}."


@tool
async def slow_weather(city: str) -> str:
    """Say it asynchronously."""
    await asyncio.sleep(0)
    return f"Rain in {city}."


@tool
def turns(direction: str) -> Command[Any]:
    """Answer with a command."""
    return Command(update={})


@tool
def asks_first(city: str) -> str:
    """Ask before doing it."""
    return f"{city}: {interrupt('May I?')}"


def calls(*made: tuple[str, dict[str, Any]]) -> AIMessage:
    return AIMessage(
        "", tool_calls=[{"name": name, "args": args, "id": f"call_{at}"} for at, (name, args) in enumerate(made)]
    )


def scripted(*steps: Any) -> ScriptedModel:
    return ScriptedModel(script=list(steps), calls=[], bound=[])


def told(uses: ToolUses, owner: str = "ana") -> list[tuple[str, bool, str | None]]:
    return sorted((one.tool, one.success, one.error) for one in uses.find(owner))


@pytest.mark.parametrize("way", ["sync", "async"])
def test_the_agent_records_its_tools_by_itself(way: str, store: MemoryStore, uses: ToolUses) -> None:
    made = calls(
        ("weather", {"city": "Oslo"}), ("weather", {"city": "Atlantis"}), ("weather", {"town": "x"}), ("none", {})
    )
    model = scripted(made, calls(("weather", {"city": "Lima"})), "Rain.")
    agent = build_agent(memory=store, model=model, tools=[weather]).compile(checkpointer=InMemorySaver())
    config = thread_config("ana", "t1")
    context = Context(user_id="ana", thread="t1", agent="guide")
    if way == "sync":
        agent.invoke(user("How is the weather?"), config, context=context)
    else:
        asyncio.run(agent.ainvoke(user("How is the weather?"), config, context=context))
    found = told(uses)
    assert [(name, well) for name, well, _ in found] == [("weather", False)] * 2 + [("weather", True)] * 2
    assert (found[0][2] or "").startswith("LookupError: no such place") and "town" not in (found[0][2] or "")
    assert error_kind(found[1][2] or "") == "ToolInvocationError"
    kept = uses.find("ana")
    assert {(one.agent, one.thread) for one in kept} == {("guide", "t1")}
    assert all(one.seconds is not None and 0 <= one.seconds < 5 for one in kept)
    assert {one.parameters.get("city") for one in kept} == {"Oslo", "Atlantis", "Lima", None}


def test_an_async_tool_and_one_that_answers_with_a_command_are_recorded(store: MemoryStore, uses: ToolUses) -> None:
    model = scripted(calls(("slow_weather", {"city": "Oslo"}), ("turns", {"direction": "left"})), "Done.")
    agent = build_agent(memory=store, model=model, tools=[slow_weather, turns]).compile()
    asyncio.run(agent.ainvoke(user("Go on?"), context=Context(user_id="ana")))
    assert ("slow_weather", True, None) in told(uses)


def test_nothing_is_recorded_incognito_or_where_nothing_is_written(store: MemoryStore, uses: ToolUses) -> None:
    for write, remember in (("inline", False), ("off", True)):
        model = scripted(calls(("weather", {"city": "Oslo"})), "Rain.")
        agent = build_agent(memory=store, model=model, tools=[weather], write=write).compile()  # type: ignore[arg-type]
        say(agent, "How is the weather?", remember=remember)
    assert uses.find("ana") == []


def test_an_interrupted_tool_is_recorded_when_it_has_run(store: MemoryStore, uses: ToolUses) -> None:
    model = scripted(calls(("asks_first", {"city": "Oslo"})), "Done.")
    agent = build_agent(memory=store, model=model, tools=[asks_first]).compile(checkpointer=InMemorySaver())
    config, context = thread_config("ana", "t1"), Context(user_id="ana")
    agent.invoke(user("Go?"), config, context=context)
    assert uses.find("ana") == []
    agent.invoke(Command(resume="yes"), config, context=context)
    assert told(uses) == [("asks_first", True, None)]


def test_a_use_that_cannot_be_recorded_leaves_the_result_of_the_tool(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def locked(*arguments: Any) -> bool:
        raise StoreError("The ledger is locked.")

    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(ToolUses, "record", locked)
    model = scripted(calls(("weather", {"city": "Oslo"})), "Rain.")
    state = say(build_agent(memory=store, model=model, tools=[weather]).compile(), "How is the weather?")
    assert [m.text for m in state["messages"] if m.type == "tool"] == ["Rain in Oslo."]
    assert "was not recorded: The ledger is locked." in caplog.text


# The callback handler


@tool
def handled(city: str) -> str:
    """Fail in a way that LangChain turns into an answer."""
    raise ToolException(f"closed in {city}")


def test_a_callback_handler_records_tools_of_other_apps(store: MemoryStore, uses: ToolUses) -> None:
    config: Any = {"callbacks": [ToolRecorder(store, "ana", thread="t9", agent="coder")]}
    handled.handle_tool_error = True
    call = {"name": "handled", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}
    assert weather.invoke({"city": "Oslo"}, config) == "Rain in Oslo."
    handled.invoke(call, config)
    with pytest.raises(LookupError):
        weather.invoke({"city": "Atlantis"}, config)

    async def side_by_side() -> None:
        await asyncio.gather(*(slow_weather.ainvoke({"city": city}, config) for city in ("Oslo", "Lima")))

    asyncio.run(side_by_side())
    assert told(uses) == [
        ("handled", False, "closed in Oslo"),
        ("slow_weather", True, None),
        ("slow_weather", True, None),
        ("weather", False, "LookupError: no such place: Atlantis"),
        ("weather", True, None),
    ]
    assert {(one.agent, one.thread) for one in uses.find("ana")} == {("coder", "t9")}
    assert {one.parameters.get("city") for one in uses.find("ana", tool="slow_weather")} == {"Oslo", "Lima"}
