"""Whose words are these? What a message says in the first person, and is yet not the user's own, read from the whole message.

Forms of quotation and of reported speech are found by `quoting`; most people use none: "our neighbour left a note, I've had enough of
your dog". It is the local encoder, adapted (`memory.adapted`), which gives each word of a message the probability that
somebody else says it, or that it is made up: a role, a draft, a line of a song (`python -m sharpwave.benchmarks.attribution` fits it).
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.memory.adapted import FITTED, Adapted, fitted_to

WEIGHTS = FITTED / "attribution.npz"
"""What it was fitted to be."""
MAX_TOKENS = 256
"""Tokens of a message that are read; what comes after is taken for the user's own."""
FOREIGN = 0.8
"""Probability from which words are taken for somebody else's. Of 567 own statements in long talks one reaches it."""

Span = tuple[int, int]
"""First character of some words in a message, and the one after the last."""


def attribution_for(embeddings: Embeddings) -> "Attribution | None":
    """Return what reads messages beside this embedder; None unless it is the local one with the files that it was fitted to."""
    return _attribution() if fitted_to(embeddings) else None


@cache
def _attribution() -> "Attribution":
    return Attribution()


class Attribution:
    """Reads English messages on the CPU. Thread-safe; its files are read at the first message."""

    def __init__(self) -> None:
        self.encoder = Adapted(WEIGHTS, MAX_TOKENS)

    def foreign(self, message: str, spans: Sequence[Span]) -> list[float]:
        """Return for each span of a message how likely its words are somebody else's, 0..1: the mean over its tokens.

        Raises:
            ConfigError: the files of the `[embedded]` packages are missing or damaged.
        """
        row = self.encoder.tokens(message)
        likely = self.encoder.likely(row, pooled=False)[:, 1]
        return [_mean(likely, tokens_in(row.offsets, span)) for span in spans]


def tokens_in(offsets: Sequence[Span], span: Span) -> list[int]:
    """Return the places of the tokens that lie in a span of the text."""
    return [at for at, (start, end) in enumerate(offsets) if end > start >= span[0] and end <= span[1]]


def _mean(likely: np.ndarray, places: list[int]) -> float:
    return float(likely[places].mean()) if places else 0.0
