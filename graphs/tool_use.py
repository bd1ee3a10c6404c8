"""Recording what tools were called with and what came of it: by the agent's tool node, or by a callback handler elsewhere."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from sharpwave.graphs.state import context_of, thread_of
from sharpwave.memory import times
from sharpwave.memory.errors import StoreError
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.tool_use import ToolUse, ToolUses

log = logging.getLogger(__name__)

TOOL_FAILED = "The tool failed: "
"""What a model is told of a tool that raised begins so."""

Result = ToolMessage | Command[Any]


def tool_failed(error: Exception) -> str:
    """Return what the model is told of a tool that failed: the turn goes on, and the model may try something else."""
    log.warning("A tool failed: %s: %s", type(error).__name__, error)
    return f"{TOOL_FAILED}{type(error).__name__}: {error}"


class NodeRecorder:
    """Wraps the calls of a `ToolNode`: `ToolNode(tools, wrap_tool_call=recorder.call, awrap_tool_call=recorder.acall)`.

    Records nothing in an incognito turn, nor where a tool was interrupted, nor calls of tools that do not exist. What
    cannot be recorded is logged, and the result of the tool stands.
    """

    def __init__(self, memory: MemoryStore) -> None:
        self._uses = ToolUses(memory)

    def call(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result:
        """Call the tool, record it, and return its result."""
        started = time.perf_counter()
        result = execute(request)
        self._record(request, result, time.perf_counter() - started)
        return result

    async def acall(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]) -> Result:
        """Call the tool, record it, and return its result."""
        started = time.perf_counter()
        result = await execute(request)
        await asyncio.to_thread(self._record, request, result, time.perf_counter() - started)
        return result

    def _record(self, request: ToolCallRequest, result: Result, seconds: float) -> None:
        context = context_of(request.runtime)
        if not context.remember or request.tool is None:
            return
        call, error = request.tool_call, _error(result)
        use = ToolUse(
            owner=context.user_id,
            agent=context.agent,
            thread=thread_of(context, request.runtime.config),
            # Some servers count calls from 0 in each answer; the id of the message tells them apart.
            call_id=f"{request.state['messages'][-1].id}/{call['id']}",
            tool=call["name"],
            parameters=call["args"],
            success=error is None,
            seconds=seconds,
            error=error,
            at=times.now(),
        )
        try:
            self._uses.record(context.user_id, use)
        except StoreError as problem:
            log.warning("A use of the tool %s was not recorded: %s", use.tool, problem)


def _error(output: Any) -> str | None:
    """Return what went wrong, from what came of a call; None where nothing did."""
    if isinstance(output, ToolMessage) and output.status == "error":
        return output.text.removeprefix(TOOL_FAILED) or "unknown error"
    return None


class ToolRecorder(BaseCallbackHandler):
    """Records the tools that run under it, for apps that run them without `build_agent`, whose tool node records them itself.

    `agent.invoke(..., config={"callbacks": [ToolRecorder(store, "ana", thread="monday")]})`. Each run of a tool is one use;
    an interrupted or cancelled one is none. Safe for calls side by side, sync and async.

    Args:
        memory: where to record.
        owner: for whom the tools run.
        thread: the conversation; by default the `thread_id` of the run.
        agent: which of the owner's agents uses them.
    """

    def __init__(self, memory: MemoryStore, owner: str, *, thread: str | None = None, agent: str = "agent") -> None:
        self._uses, self._owner, self._thread, self._agent = ToolUses(memory), owner, thread, agent
        self._running: dict[UUID, tuple[float, dict[str, Any]]] = {}

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Note when a tool starts, and with what."""
        fields = {
            "owner": self._owner,
            "agent": self._agent,
            "thread": self._thread or str((metadata or {}).get("thread_id", "default")),
            "call_id": str(run_id),
            "tool": (serialized or {}).get("name") or more.get("name") or "unknown",
            "parameters": input_str if inputs is None else inputs,
        }
        self._running[run_id] = time.perf_counter(), fields

    def on_tool_end(self, output: Any, *, run_id: UUID, **more: Any) -> None:
        """Record a tool that has returned, which may be with an error."""
        self._record(run_id, _error(output))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Record a tool that has raised."""
        if isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            self._record(run_id, f"{type(error).__name__}: {error}")
        else:
            self._running.pop(run_id, None)

    def _record(self, run_id: UUID, error: str | None) -> None:
        started = self._running.pop(run_id, None)
        if started is not None:
            taken = {"seconds": time.perf_counter() - started[0], "at": times.now()}
            use = ToolUse.model_validate({**started[1], **taken, "success": error is None, "error": error})
            self._uses.record(self._owner, use)
