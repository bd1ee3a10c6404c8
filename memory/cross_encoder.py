"""What a statement does to what is known, read from both texts at once: a cross-encoder.

It is the local encoder with low-rank changes to its layers (LoRA, Hu et al. 2021) and a linear head over the mean of its
token vectors (`python -m sharpwave.benchmarks.pairs` fits both). Two texts that are embedded apart and compared are near to each other where they
speak of one thing; what the one does to the other shows only where each word can look at all words of both.
"""

import re
import threading
import time
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.memory.embed import (
    Floats,
    LocalEmbeddings,
    check_digests,
    open_session,
    open_tokenizer,
    packaged_files,
)
from sharpwave.memory.extract.languages import is_english
from sharpwave.memory.records import Recall, Relation

RELATIONS = ("apart", "new", "over", "same", "more")
"""What it tells apart (see `records.Relation`), in the order of its head."""
MAX_TOKENS = 96
"""Tokens of a pair that are read, its three marks included."""
SHOWN = 1
"""Of the memories near to a statement, so many are read with it: those nearest in meaning. With three of them no more was found on our
labelled dialogues, at three times the cost."""
NEAR = 0.15
"""Least cosine of a memory that is read with a statement."""
SHORT = 8
"""Words of a statement that is read though nobody speaks of himself ("Tom got a job at the bakery")."""
_OF_ONESELF = re.compile(r"\b(?:i|im|ive|me|my|mine|myself|we|us|our|ours|(?:the )?user)\b", re.IGNORECASE)
_INSTRUCTS = re.compile(
    r"(?:never|always|do|don['’]t|apply|keep|remember|use|check|confirm|avoid|ensure|validate)\b", re.IGNORECASE
)
WEIGHTS = Path(__file__).with_name("learning") / "relations.npz"
"""What it was fitted to be."""


def reader_for(embeddings: Embeddings) -> "CrossEncoder | None":
    """Return what reads pairs beside this embedder; None unless it is the local one with the files that it was fitted to."""
    return _reader() if isinstance(embeddings, LocalEmbeddings) and embeddings.packaged else None


@cache
def _reader() -> "CrossEncoder":
    return CrossEncoder()


class CrossEncoder:
    """Reads pairs of English texts on the CPU. Thread-safe; its files are read at the first pair."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any, Floats, Floats] | None = None
        self.pairs_read = 0
        self.cpu_seconds = 0.0
        """What reading them took, as the whole process counts it: with other threads at work that is too much."""

    def related(self, said: str, near: Sequence[Recall]) -> list[Recall]:
        """Return what is near to a statement, with the relation of the statement to the nearest; not in other languages.

        Raises:
            ConfigError: the files of the `[embedded]` packages are missing or damaged.
        """
        hits = [hit for hit in near if hit.memory is not None and _cosine(hit) >= NEAR and _personal(said, hit.text)]
        shown = sorted(hits, key=_cosine, reverse=True)[:SHOWN] if is_english(said) else []
        likely = self.read([(hit.text, said) for hit in shown])
        read = {
            hit.id: Relation(said=said, **dict(zip(RELATIONS, row, strict=True)))
            for hit, row in zip(shown, likely.astype(float).tolist(), strict=True)
        }
        return [hit.model_copy(update={"relation": read.get(hit.id)}) for hit in near]

    def read(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return the probability of each relation, in the order of `RELATIONS`, for pairs (known, said): (n, 5).

        Raises:
            ConfigError: the files of the `[embedded]` packages are missing or damaged.
        """
        if not pairs:
            return np.empty((0, len(RELATIONS)), np.float32)
        session, tokenizer, head, bias = self._open()
        started = time.process_time()
        rows = [row for pair in pairs for row in tokenizer.encode_batch([tuple(map(_plain, pair))])]
        logits = np.concatenate([_mean(session, row) @ head.T + bias for row in rows])
        likely: Floats = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        self.pairs_read += len(pairs)
        self.cpu_seconds += time.process_time() - started
        return likely

    def _open(self) -> tuple[Any, Any, Floats, Floats]:
        with self._lock:
            if self._loaded is None:
                files = packaged_files()
                check_digests(files)
                tokenizer = open_tokenizer(files.tokenizer)
                tokenizer.enable_truncation(MAX_TOKENS)
                with np.load(WEIGHTS) as weights:
                    session = open_session(adapted(files.model.read_bytes(), weights))
                    self._loaded = session, tokenizer, weights["head"], weights["bias"]
            return self._loaded


def _personal(said: str, known: str) -> bool:
    """Whether two texts are of somebody's life: one speaks of oneself, or what is said is short and no instruction.

    Of logs, tickets and policies it knows nothing.
    """
    if _OF_ONESELF.search(said) or _OF_ONESELF.search(known):
        return True
    return len(said.split()) <= SHORT and ":" not in f"{said}{known}" and not _INSTRUCTS.match(said)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _mean(session: Any, row: Any) -> Floats:
    """Return the mean of the token vectors of a pair: (1, d). Pairs go one by one: filling them up to one length is slower."""
    ids, types = np.array([row.ids], np.int64), np.array([row.type_ids], np.int64)
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
    (states,) = session.run(None, feeds)
    mean: Floats = states.mean(axis=1)
    return mean


def _cosine(hit: Recall) -> float:
    return hit.parts.cosine if hit.parts is not None else 0.0


def adapted(model: bytes, weights: Any) -> bytes:
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
        changed = matrix * scales + change
        new_scales = np.abs(changed).max(axis=0) / 127
        new_matrix = np.round(changed / new_scales).astype(np.int8)
        file[at : at + change.size] = new_matrix.tobytes()
        file[scales_at : scales_at + scales.nbytes] = new_scales.astype(np.float32).tobytes()
    return bytes(file)
