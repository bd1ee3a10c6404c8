"""The local encoder with low-rank changes to its layers (LoRA, Hu et al. 2021) and a linear head: what reads texts for one task.

The changes are a hundredth of the model, which the `[embedded]` packages bring; `memory.learning.low_rank` fits them.
"""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.memory.embed import Floats, LocalEmbeddings, check_digests, open_session, open_tokenizer, packaged_files

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

FITTED = Path(__file__).with_name("learning")
"""Where the weights lie."""


def fitted_to(embeddings: Embeddings) -> bool:
    """Whether an embedder is the one whose files the changes were fitted to: the local one with those of the packages."""
    return isinstance(embeddings, LocalEmbeddings) and embeddings.packaged


class Adapted:
    """The encoder, changed for one task. Thread-safe; its files are read at the first text."""

    def __init__(self, weights: Path, max_tokens: int) -> None:
        self._weights, self._max_tokens = weights, max_tokens
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Tokenizer, Floats, Floats] | None = None
        self.texts_read = 0
        self.cpu_seconds = 0.0
        """What reading took, as the whole process counts it: with other threads at work that is too much."""

    def tokens(self, *texts: str) -> "Encoding":
        """Return the tokens of a text, or of two that are read together, with their places in it.

        Raises:
            ConfigError: the files of the `[embedded]` packages are missing or damaged.
        """
        _, tokenizer, _, _ = self._open()
        (row,) = tokenizer.encode_batch([texts[0] if len(texts) == 1 else texts])
        return row

    def likely(self, row: "Encoding", *, pooled: bool) -> Floats:
        """Return the probability of each class for each token (n, classes), or for all of it (1, classes).

        Texts go one by one: filling them up to one length is slower.

        Raises:
            ConfigError: the files of the `[embedded]` packages are missing or damaged.
        """
        session, _, head, bias = self._open()
        started = time.process_time()
        ids, types = np.array([row.ids], np.int64), np.array([row.type_ids], np.int64)
        (states,) = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types})
        logits = (states.mean(axis=1) if pooled else states[0]) @ head.T + bias
        likely: Floats = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        with self._lock:
            self.texts_read += 1
            self.cpu_seconds += time.process_time() - started
        return likely

    def _open(self) -> "tuple[Any, Tokenizer, Floats, Floats]":
        with self._lock:
            if self._loaded is None:
                files = packaged_files()
                check_digests(files)
                tokenizer = open_tokenizer(files.tokenizer)
                tokenizer.enable_truncation(self._max_tokens)
                with np.load(self._weights) as weights:
                    session = open_session(changed(files.model.read_bytes(), weights))
                    self._loaded = session, tokenizer, weights["head"], weights["bias"]
            return self._loaded


def changed(model: bytes, weights: Any) -> bytes:
    """Return the packaged model with the changes to its matrices.

    Args:
        model: the file; each matrix stands in it as 8-bit integers (in, out), with a scale for each column.
        weights: `places` of matrices and scales in the file, in bytes, and for each the factors `b` (out, rank), `a` (rank, in).
    """
    file = bytearray(model)
    for number, (at, scales_at) in enumerate(weights["places"]):
        change = (weights[f"b{number}"].astype(np.float32) @ weights[f"a{number}"].astype(np.float32)).T
        matrix = np.frombuffer(file, np.int8, change.size, at).reshape(change.shape)
        scales = np.frombuffer(file, np.float32, change.shape[1], scales_at)
        new = matrix * scales + change
        new_scales = np.abs(new).max(axis=0) / 127
        file[at : at + change.size] = np.round(new / new_scales).astype(np.int8).tobytes()
        file[scales_at : scales_at + scales.nbytes] = new_scales.astype(np.float32).tobytes()
    return bytes(file)
