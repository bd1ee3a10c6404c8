"""The long reader: a document of any length is read piece by piece, with a memory of fixed size, and then answers.

After MemAgent (Yu et al. 2025, arXiv 2507.02259): each piece may overwrite the memory, and nothing else goes from one piece
to the next, so cost grows with the length and memory does not. The text stays in its file: the state holds where to go on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypedDict

from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import BaseChatModel
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from sharpwave.graphs.state import Context, context_of
from sharpwave.memory.errors import ConfigError, InputError
from sharpwave.memory.reading import Document, ExtractiveReader, ModelReader, Reader, describe, piece_at
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.usage import Meter, metering, total


class Reading(TypedDict, total=False):
    """The state of a reading: give it `path` and `question`; plain data."""

    path: str
    question: str
    document: dict[str, Any]
    """`Document`: size, digest and encoding of the file."""
    by: str
    """Who reads: `extractive/1` or `llm/1`."""
    offset: int
    """Bytes that are read."""
    line: int
    """Line that comes next, from 1 on."""
    pieces: int
    """How many pieces are read."""
    memory: dict[str, Any]
    """What the reader has in mind; of a bounded size."""
    answer: str
    known: bool
    """Whether the document says anything about the question."""
    passages: list[dict[str, Any]]
    """What the answer rests on."""
    usage: dict[str, Any]
    """Model calls and tokens."""


def build_reader(
    *,
    model: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
    memory: MemoryStore | None = None,
    root: Path | None = None,
    window: int | None = None,
    budget: int = 1_000,
) -> StateGraph[Reading, Context, Reading, Reading]:
    """Return the graph that reads a document and answers, uncompiled: `{"path": …, "question": …}` in, `answer` out.

    It takes a step for each piece of about 4,000 tokens. LangGraph stops a run after 10,007 of them unless its config says
    otherwise (`recursion_limit`); a run that was stopped or killed, or whose model failed, goes on from its checkpoint when
    it is invoked with None. A file that has changed since is refused. Each step writes `{"read", "size", "pieces"}` (bytes)
    to LangGraph's custom stream.

    Args:
        model: reads and answers; None keeps and quotes the passages that matter.
        embeddings: without a model, tell how near a passage is to the question; None goes by words alone.
        memory: books what the model costs on the user of the context, and holds it to `max_tokens_per_day`.
        root: only files in this folder are read: for a graph that others may call.
        window: tokens of the model's context; by default what is known of it.
        budget: tokens of what is kept from one piece to the next.

    Raises:
        InputError: at run time, the file is missing, empty, no text, outside of `root`, or has changed.
        ModelError: at run time, the model failed; the piece is read again when the run is resumed.
        BudgetExceeded: at run time, the tokens of the day are used up.
    """
    reader: Reader = ExtractiveReader(embeddings, budget=budget)
    if model is not None:
        reader = ModelReader(model, budget=budget, window=window)
    nodes = _Nodes(reader, _Files(root), memory)
    graph = StateGraph(Reading, context_schema=Context)
    graph.add_node("begin", nodes.begin)
    graph.add_node("read", nodes.read)
    graph.add_node("answer", nodes.answer)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "read")
    graph.add_conditional_edges("read", more)
    graph.add_edge("answer", END)
    return graph


def more(state: Reading) -> Literal["read", "answer"]:
    """Return the next step: the next piece while there is one."""
    return "read" if state["offset"] < state["document"]["size"] else "answer"


class _Nodes:
    """The steps of a reading."""

    def __init__(self, reader: Reader, files: "_Files", memory: MemoryStore | None) -> None:
        self._reader, self._files, self._memory = reader, files, memory

    def begin(self, state: Reading) -> dict[str, Any]:
        """Look at the file and start with an empty memory."""
        path, question = state.get("path"), state.get("question") or ""
        if not path or not question.strip():
            raise InputError("A reading needs a 'path' and a 'question'.")
        document = self._files.opened(path)
        self._reader.room(question)
        fresh = {"document": document.model_dump(mode="json"), "by": self._reader.name, "offset": document.start}
        fresh |= {"line": 1, "pieces": 0, "memory": {}, "usage": total()}
        return fresh | {"answer": "", "known": False, "passages": []}

    def read(self, state: Reading, runtime: Runtime[Context]) -> dict[str, Any]:
        """Read the next piece; its text is gone afterwards but for what the reader keeps."""
        reader, question = self._reader, state["question"]
        if state["by"] != reader.name:
            raise ConfigError(f"This reading was begun by {state['by']}, and {reader.name} cannot go on with it.")
        document = Document.model_validate(state["document"])
        self._files.check(document)
        part = piece_at(document, state["offset"], reader.room(question), reader.count)
        with _metered(self._memory, runtime) as meter:
            kept = reader.read(question, state["memory"], part, state["line"])
        done = {"offset": part.end, "pieces": state["pieces"] + 1}
        runtime.stream_writer({"read": part.end, "size": document.size, "pieces": done["pieces"]})
        line = state["line"] + part.text.count("\n")
        return {**done, "line": line, "memory": kept, "usage": total(state["usage"], meter.usage)}

    def answer(self, state: Reading, runtime: Runtime[Context]) -> dict[str, Any]:
        """Answer from what was kept."""
        with _metered(self._memory, runtime) as meter:
            found = self._reader.answer(state["question"], state["memory"])
        return found.model_dump(mode="json") | {"usage": total(state["usage"], meter.usage)}


class _Files:
    """The files that this process reads: each is compared with its digest once, and again when it was touched."""

    def __init__(self, root: Path | None) -> None:
        self._root = root.resolve() if root else None
        self._seen: dict[str, tuple[tuple[int, int, int] | None, str]] = {}

    def opened(self, path: str) -> Document:
        """Return what is known of a file, found from the current folder, or from the root if there is one."""
        absolute = ((self._root or Path.cwd()) / path).resolve()
        if self._root is not None and not absolute.is_relative_to(self._root):
            raise InputError(f"{path} lies outside of the folder that may be read. Name a file in {self._root}.")
        before = _signature(absolute)
        document = describe(absolute)
        self._seen[document.path] = before, document.digest
        return document

    def check(self, document: Document) -> None:
        """Raise `InputError` when a file is no longer what it was when its reading was begun."""
        before, digest = self._seen.get(document.path, (None, ""))
        if before != _signature(Path(document.path)):
            digest = self.opened(document.path).digest
        if digest != document.digest:
            raise InputError(
                f"{document.path} has changed since its reading was begun. Begin a new one in another thread (--thread)."
            )


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None  # `describe` says why
    return found.st_mtime_ns, found.st_size, found.st_ino


@contextmanager
def _metered(memory: MemoryStore | None, runtime: Runtime[Context]) -> Iterator[Meter]:
    """Count the model calls of the block, book them, and hold them to what the user may spend a day."""
    if memory is None:
        with metering() as meter:
            yield meter
        return
    context, tokens = context_of(runtime), None
    if context.max_tokens_per_day is not None:
        tokens = context.max_tokens_per_day - memory.tokens_today(context.user_id)
    with metering(tokens=tokens) as meter:
        try:
            yield meter
        finally:
            memory.spend(context.user_id, meter.usage)
