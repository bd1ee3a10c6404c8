"""One user's conversation with the agent: what is said is durable before it is answered."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from sharpwave.assembly import agent_graph, background, write_waiting
from sharpwave.checkpoints import prune
from sharpwave.graphs import Context, thread_config
from sharpwave.graphs.agent import Write
from sharpwave.graphs.respond import rendered
from sharpwave.graphs.state import milliseconds, turn_of
from sharpwave.graphs.write import Ask
from sharpwave.memory import times
from sharpwave.memory.errors import ModelError
from sharpwave.memory.records import Recall, Turn, new_id
from sharpwave.memory.sessions import Ended, Sessions
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.tokens import estimate
from sharpwave.memory.turn_queue import TurnQueue
from sharpwave.memory.usage import total
from sharpwave.models import chat_model
from sharpwave.settings import Settings
from sharpwave.tools import Tool

UNANSWERED = "(This message was not answered.)"
SHOWN = ("op", "memory_id", "version", "text", "quote", "reason", "policy", "before")


class Dialogue:
    """A thread of one user, on a store and a checkpointer.

    Args:
        settings: say which model answers and writes.
        store: the memory.
        saver: keeps the states of the conversation, the latest ones.
        user: whose memory and conversation.
        thread: name of the conversation among this user's.
        remember: False recalls and writes nothing to memory.
        tools: what a model may call while it answers.
    """

    def __init__(
        self,
        settings: Settings,
        store: MemoryStore,
        saver: BaseCheckpointSaver[str],
        *,
        user: str,
        thread: str,
        remember: bool = True,
        tools: Sequence[Tool] = (),
    ) -> None:
        self.settings, self.store, self.saver = settings, store, saver
        self.user, self.thread, self.remember = user, thread, remember
        self._writer = background(settings, store) if remember and settings.write == "background" else None
        write: Write = "background" if self._writer else "inline"
        self._agent = agent_graph(settings, store, write=write, tools=tools).compile(checkpointer=saver)
        self._thread_id = thread_config(user, thread)["configurable"]["thread_id"]
        self.kept = False
        """Whether the last message is in the queue or in memory, whatever became of its answer."""
        self._last = self._context(times.now())

    def say(
        self, text: str, token: Callable[[str], None] | None = None, *, now: datetime | None = None
    ) -> dict[str, Any]:
        """Answer a message, write it to memory, and return what came of it, as plain data (see `_result`).

        The message is queued before anything else, so whatever cuts this call off (an error, Ctrl-C, a kill) loses
        nothing: it is written with the next message, or by `resume`. Where the user is to be asked first, `approval` of
        the result says what about, and `answer` goes on.

        Args:
            text: what the user says.
            token: called with each piece of a model's reply as it comes.
            now: when it is said; by default the present.
        """
        self.kept = False
        self._settle()
        context = self._last = self._context(now or times.now())
        message = HumanMessage(text, id=new_id())
        turn = turn_of([message], context, self.thread)
        if self.remember:
            self._queue(turn)
            self.kept = True
        try:
            return self._run({"messages": [message]}, token)
        except (ModelError, KeyboardInterrupt) as error:
            if self.remember:  # noted as a failure, the turn is taken up before the next one, in order
                self.store.fail(turn, str(error) or "interrupted")
            if self._writer:
                self._writer.add(turn)
            raise

    def answer(self, answer: bool | list[int]) -> dict[str, Any]:
        """Go on with what the last message stopped for, and return what came of it, as `say` does.

        Args:
            answer: whether all of it may be done, or the numbers of what may.
        """
        return self._run(Command(resume=answer))

    def _run(self, given: Any, token: Callable[[str], None] | None = None) -> dict[str, Any]:
        started = time.perf_counter()
        state = self._agent.invoke(given, self._config(token), context=self._last, durability="exit")
        if isinstance(self.saver, SqliteSaver):
            prune(self.saver, self.settings.keep_checkpoints, self._thread_id)
        return self._result(state, self._last, milliseconds(started))

    def resume(self, ask: Ask | None = None) -> tuple[int, int]:
        """Write the user's messages that wait in the queue; returns how many were written and how many still wait.

        What is written in the background is not waited for. `ask` puts to the user what approval is needed for.
        """
        waiting = self.store.pending(self.user) if self.remember and not self._writer else []
        if not waiting:
            return 0, 0
        write_waiting(self.settings, self.store, self.user, ask)
        left = len(self.store.pending(self.user))
        return max(0, len(waiting) - left), left

    def end(self, ask: Ask | None = None) -> Ended | None:
        """End the session, if anything was said in it to be remembered, and return what became of it.

        What waits to be written is written before; `ask` puts to the user what approval is needed for.
        """
        if not self.kept:
            return None
        write = (lambda _: self._writer.flush(self._writer.drain)) if self._writer else lambda _: self.resume(ask)
        model = chat_model(self.settings)
        return Sessions(self.store).end_session(self.user, self.thread, model=model, write=write)

    def messages(self) -> list[AnyMessage]:
        """Return what was said in this conversation, as far as its latest state holds it."""
        found: list[AnyMessage] = self._agent.get_state(self._config()).values.get("messages", [])
        return found

    def _queue(self, turn: Turn) -> None:
        if self._writer:
            TurnQueue(self.store.ledger).put(turn)
        else:
            self.store.queue([turn])

    def _settle(self) -> None:
        """Close an exchange that was cut off, else the next message would be taken for a part of it."""
        said = self.messages()
        if said and isinstance(said[-1], HumanMessage):
            closing = AIMessage(UNANSWERED, id=new_id())
            self._agent.update_state(self._config(), {"messages": [closing]}, as_node="respond")

    def _context(self, now: datetime) -> Context:
        return Context(
            user_id=self.user,
            thread=self.thread,
            now=now,
            timezone=self.settings.timezone,
            remember=self.remember,
            recall_budget=self.settings.recall_budget,
            max_llm_calls_per_turn=self.settings.max_llm_calls_per_turn,
            max_tokens_per_day=self.settings.max_tokens_per_day,
            over_budget=self.settings.over_budget,
        )

    def _config(self, token: Callable[[str], None] | None = None) -> RunnableConfig:
        return {"configurable": {"thread_id": self._thread_id}, "callbacks": [_Tokens(token)] if token else []}

    def _result(self, state: dict[str, Any], context: Context, took: float) -> dict[str, Any]:
        """Return reply, what was recalled, cited, done to memory and went wrong, the cost and the times.

        `usage.extra` is what memory adds to a plain chat: every call but the answer, and what its prompt tells of memory.
        """
        usage = total(state.get("usage"))
        answering = usage["by_purpose"].get("respond", {})
        extra = {key: usage[key] - answering.get(key, 0) for key in ("llm_calls", "prompt_tokens", "completion_tokens")}
        if answering:
            shown = [Recall.model_validate(hit) for hit in (*state["recalled"], *state["profile"])]
            told = [rendered(shown, context), *state["procedural"], *state["experiences"], state["core"]]
            extra["prompt_tokens"] += estimate("\n".join(told))
        return {
            "reply": state["messages"][-1].text,
            "recalled": [{key: hit[key] for key in ("id", "text", "score")} for hit in state["recalled"]],
            "context": {part: state[part] for part in ("procedural", "experiences", "outweighed", "core")}
            | {"profile": [{"id": hit["id"], "text": hit["text"]} for hit in state["profile"]]},
            "citations": state["citations"],
            "operations": [{key: item[key] for key in SHOWN} for item in state["operations"]],
            "approval": next((stopped.value for stopped in state.get("__interrupt__", ())), None),
            "errors": state["errors"],
            "degraded": state["degraded"],
            "masked": state["masked"],
            "usage": {**usage, "extra": extra},
            "timings_ms": {**state["timings_ms"], "total": took},
        }


class _Tokens(BaseCallbackHandler):
    """Passes a model's tokens on as they come.

    By a callback, since a graph that streams messages runs its nodes in threads, where Ctrl-C would wait for the model.
    """

    def __init__(self, token: Callable[[str], None]) -> None:
        self._token = token

    def on_llm_new_token(self, token: str | list[str | dict[str, Any]], **more: Any) -> None:
        """Pass a token on."""
        if isinstance(token, str) and token:
            self._token(token)
