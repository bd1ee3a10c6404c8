"""Stand-ins for tests: a chat model that follows a script, an embedder without files, a database that is busy."""

import hashlib
import json
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr


class ScriptedModel(BaseChatModel):
    """Answers from a script, in order; a step is a text, a message, or an exception to raise.

    `calls` keeps the messages of each call. `assert_done()` fails when steps are left; the `scripted` fixture calls it.
    """

    script: list[Any] = []
    calls: list[list[BaseMessage]] = []
    bound: list[dict[str, Any]] = []
    _at: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        self.bound.append({"tools": list(tools), **kwargs})
        return self

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        self.calls.append(list(messages))
        if self._at >= len(self.script):
            raise AssertionError(
                f"The scripted model was called {self._at + 1} times; its script has {len(self.script)} steps."
            )
        step = self.script[self._at]
        self._at += 1
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, AIMessage):
            return step
        if callable(step):
            return AIMessage(step(messages))
        return AIMessage(str(step))

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        message = self._next(messages)
        if message.tool_calls:
            chunk = AIMessageChunk(
                content=message.content,
                id=message.id,
                tool_call_chunks=[
                    {
                        "name": c["name"],
                        "args": json.dumps(c["args"]),
                        "id": c["id"],
                        "index": i,
                        "type": "tool_call_chunk",
                    }
                    for i, c in enumerate(message.tool_calls)
                ],
            )
            yield ChatGenerationChunk(message=chunk)
            return
        for word in re.findall(r"\S+\s*|\s+", str(message.content)) or [""]:
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word, id=message.id))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk

    def assert_done(self) -> None:
        left = self.script[self._at :]
        assert not left, f"{len(left)} scripted steps were never used: {left!r}"


class HashEmbeddings(Embeddings):
    """A deterministic embedder: hashed words and character trigrams, unit length. Equal texts get equal vectors."""

    def __init__(self, dimensions: int = 64, salt: str = "") -> None:
        self.dimensions, self.salt, self.texts = dimensions, salt, 0

    def _vector(self, text: str) -> list[float]:
        folded = f" {text.lower()} "
        parts = re.findall(r"\w+", folded) + [folded[i : i + 3] for i in range(len(folded) - 2)]
        vector = np.full(self.dimensions, 1e-3)
        for part in parts:
            digest = hashlib.blake2b((self.salt + part).encode(), digest_size=8).digest()
            vector[int.from_bytes(digest[:4], "big") % self.dimensions] += 1 if digest[4] & 1 else -1
        return (vector / np.linalg.norm(vector)).tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += len(texts)
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.texts += 1
        return self._vector(text)


Step = str | AIMessage | BaseException | Callable[[list[BaseMessage]], str]


@contextmanager
def being_made(path: Path) -> Iterator[None]:
    """Hold a new database as a process does that makes its tables, for the first moments of a block."""
    held = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    held.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.2, held.execute, ["COMMIT"])
    release.start()
    try:
        yield
    finally:
        release.join()
        held.close()
