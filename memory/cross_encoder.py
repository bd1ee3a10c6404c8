"""What a statement does to what is known, read from both texts at once: a cross-encoder.

It is the local encoder, adapted (`memory.adapted`), with its head over the mean of its token vectors (`python -m
sharpwave.benchmarks.pairs` fits both). Two texts that are embedded apart and compared are near to each other where they
speak of one thing; what the one does to the other shows only where each word can look at all words of both.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.memory.adapted import FITTED, Adapted, fitted_to
from sharpwave.memory.embed import Floats
from sharpwave.memory.extract.languages import is_english
from sharpwave.memory.phrases import of_oneself
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
_INSTRUCTS = re.compile(
    r"(?:never|always|do|don['’]t|apply|keep|remember|use|check|confirm|avoid|ensure|validate)\b", re.IGNORECASE
)
WEIGHTS = FITTED / "relations.npz"
"""What it was fitted to be."""


def reader_for(embeddings: Embeddings) -> "CrossEncoder | None":
    """Return what reads pairs beside this embedder; None unless it is the local one with the files that it was fitted to."""
    return _reader() if fitted_to(embeddings) else None


@cache
def _reader() -> "CrossEncoder":
    return CrossEncoder()


class CrossEncoder:
    """Reads pairs of English texts on the CPU. Thread-safe; its files are read at the first pair."""

    def __init__(self) -> None:
        self.encoder = Adapted(WEIGHTS, MAX_TOKENS)

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
        rows = [self.encoder.tokens(*map(_plain, pair)) for pair in pairs]
        return np.concatenate([self.encoder.likely(row, pooled=True) for row in rows])


def _personal(said: str, known: str) -> bool:
    """Whether two texts are of somebody's life: one speaks of oneself, or what is said is short and no instruction.

    Of logs, tickets and policies it knows nothing.
    """
    if of_oneself(said) or of_oneself(known):
        return True
    return len(said.split()) <= SHORT and ":" not in f"{said}{known}" and not _INSTRUCTS.match(said)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _cosine(hit: Recall) -> float:
    return hit.parts.cosine if hit.parts is not None else 0.0
