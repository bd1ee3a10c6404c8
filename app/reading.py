"""Reading a document from the command line: begun, or gone on with where an earlier run of the same command was cut off."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver

from sharpwave.assembly import reader_graph
from sharpwave.checkpoints import open_checkpointer, prune
from sharpwave.console import opened, user_of
from sharpwave.graphs import Context, thread_config
from sharpwave.memory.errors import BudgetExceeded, InputError, ModelError
from sharpwave.settings import Settings

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

KEEP, PRUNE_EVERY = 2, 100
"""States of a reading that are kept, and pieces after which the others go."""
NOBODY = ""
"""Stands for no user in the names of threads; a user cannot be called so."""
Passed = Callable[[int, int], None]
"""Called after each piece with the bytes that are read, and those of the whole."""


@dataclass(frozen=True)
class Task:
    """What is to be read, and for what.

    One thread is one reading; without a name it is that of the file and the question.
    """

    file: Path
    question: str
    user: str | None = None
    thread: str | None = None

    @property
    def config(self) -> RunnableConfig:
        """The config of the run: as many steps as the document takes."""
        name = self.thread if self.thread is not None else f"{self.file.resolve()}\0{self.question}"
        return {**thread_config(self.user or NOBODY, f"read\0{name}"), "recursion_limit": 10**9}


def read(settings: Settings, task: Task, passed: Passed = lambda read, size: None) -> dict[str, Any]:
    """Read a document and return the last state of the reading; `resumed` is the bytes that earlier runs had read.

    Each piece is a checkpoint in the home folder. When the answer is there nothing of the reading is kept.

    Raises:
        InputError: the file cannot be read or has changed, or the thread is in the middle of something else.
        ModelError: the model failed. The same call goes on there.
        BudgetExceeded: the tokens of the day are used up. The same call goes on there tomorrow.
    """
    owner = task.user or settings.user
    if settings.mode != "keyless" and settings.max_tokens_per_day is not None:
        owner = user_of(settings, task.user)
    books = settings.mode != "keyless" and owner is not None
    with open_checkpointer(settings.home) as saver, opened(settings) if books else nullcontext() as store:
        graph = reader_graph(settings, store).compile(checkpointer=saver)
        context = Context(user_id=owner, max_tokens_per_day=settings.max_tokens_per_day) if books and owner else None
        begun = _begun(graph, task)
        try:
            _run(graph, saver, task, None if begun else _given(task), context, passed)
        except (ModelError, BudgetExceeded) as error:
            raise type(error)(f"{error} What is read so far is kept: the same command goes on from there.") from error
        state: dict[str, Any] = graph.get_state(task.config).values
        saver.delete_thread(task.config["configurable"]["thread_id"])
    return {**state, "resumed": begun}


def _given(task: Task) -> dict[str, str]:
    return {"path": str(task.file.resolve()), "question": task.question}


def _begun(graph: "CompiledStateGraph[Any, Any, Any, Any]", task: Task) -> int:
    """Return how many bytes an earlier run has read; 0 where there was none."""
    held = graph.get_state(task.config).values
    if not held.get("document"):
        return 0
    if {key: held[key] for key in ("path", "question")} != _given(task):
        raise InputError(
            f"The thread {task.thread!r} is in the middle of {held['path']} and the question {held['question']!r}. "
            "Finish that first, or choose another --thread."
        )
    return int(held["offset"])


def _run(
    graph: "CompiledStateGraph[Any, Any, Any, Any]",
    saver: SqliteSaver,
    task: Task,
    given: dict[str, str] | None,
    context: Context | None,
    passed: Passed,
) -> None:
    # Updates, not the custom stream: with that one nodes run in threads, where Ctrl-C would wait for them.
    size = task.file.stat().st_size if task.file.exists() else 0
    for update in graph.stream(given, task.config, context=context, stream_mode="updates"):
        if done := update.get("read"):
            passed(done["offset"], size)
            if done["pieces"] % PRUNE_EVERY == 0:
                prune(saver, KEEP, task.config["configurable"]["thread_id"])
