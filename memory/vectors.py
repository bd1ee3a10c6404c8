"""The vectors of texts that were embedded lately: nothing is embedded twice in a turn, and never inside a transaction."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.memory.embed import embedding_array, query_array

KEPT = 512


class Vectors:
    """An embedder, and the last vectors that it made (float32, unit length). Thread-safe."""

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeddings = embeddings
        self._kept: OrderedDict[tuple[str, str], np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    def make(self, texts: Sequence[str]) -> int:
        """Make sure that the vectors of `texts` are at hand for `of`; returns how many had to be made."""
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if (text, "record") not in self._kept]
        if missing:
            made = embedding_array(self.embeddings, missing)
            self._keep((((text, "record"), vector) for text, vector in zip(missing, made, strict=True)), len(texts))
        return len(missing)

    def of(self, text: str) -> np.ndarray:
        """Return the vector of a text as a record is embedded."""
        with self._lock:
            kept = self._kept.get((text, "record"))
        return kept if kept is not None else embedding_array(self.embeddings, [text])[0]

    def of_query(self, text: str) -> np.ndarray:
        """Return the vector of a question."""
        asked = (text, "query")
        with self._lock:
            kept = self._kept.get(asked)
        if kept is None:
            kept = query_array(self.embeddings, text)
            self._keep([(asked, kept)])
        return kept

    def forget(self) -> None:
        """Let go of all that are at hand."""
        with self._lock:
            self._kept.clear()

    def _keep(self, made: Iterable[tuple[tuple[str, str], np.ndarray]], more: int = 0) -> None:
        with self._lock:
            self._kept.update(made)
            while len(self._kept) > KEPT + more:
                self._kept.popitem(last=False)
