"""Which embedder made the vectors of a store, and whether the one at hand is the same.

Vectors of two models cannot be compared even when they have as many dimensions. So the store keeps the embedder's name and
its vector of one fixed sentence; the cosine to that vector tells whether it is still the same one. Other files of one model
(int8 for fp32) pass; another model does not.
"""

import base64
import json
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings
from sqlalchemy import Connection

from sharpwave.memory import ledger
from sharpwave.memory.embed import LocalEmbeddings, embedding_array
from sharpwave.memory.errors import StoreError

PROBE = "The quick brown fox moved from Oslo to Lisbon in 2019."
SAME_MODEL = 0.98
"""Least cosine between two vectors of the probe by one model (int8 and fp32 files of all-MiniLM-L6-v2: 0.999)."""


def name_of(embeddings: Embeddings) -> str:
    """Return what to call an embedder."""
    for attribute in ("name", "model", "model_name"):
        value = getattr(embeddings, attribute, None)
        if isinstance(value, str):
            return value
    return type(embeddings).__name__


def take(embeddings: Embeddings) -> str:
    """Return the fingerprint of an embedder, as it is kept."""
    probe = embedding_array(embeddings, [PROBE])[0]
    vector = base64.b64encode(probe.astype(np.float16).tobytes()).decode()
    return json.dumps({"name": name_of(embeddings), "dimensions": len(probe), "probe": vector})


def check(connection: Connection, embeddings: Embeddings, home: Path) -> None:
    """Compare `embeddings` with what the store was made with, or note it in a new store.

    Raises:
        StoreError: it is another one.
    """
    kept = ledger.get_meta(connection, "embedder")
    if kept is None:
        ledger.set_meta(connection, "embedder", take(embeddings))
        return
    if not same(kept, embeddings):
        made, here = json.loads(kept), json.loads(take(embeddings))
        raise StoreError(
            f"The store {home} was made with the embedder {made['name']!r} ({made['dimensions']} dimensions), but "
            f"{here['name']!r} ({here['dimensions']} dimensions) is configured. Configure the first one, or run "
            "`sharpwave reindex --embed` to embed everything anew with the second."
        )


def same(kept: str, embeddings: Embeddings) -> bool:
    """Return whether an embedder is the one that a kept fingerprint was taken of."""
    made = json.loads(kept)
    if isinstance(embeddings, LocalEmbeddings) and made["name"] == embeddings.name:
        return True  # it checks its own files when it reads them
    here = json.loads(take(embeddings))
    if made["dimensions"] != here["dimensions"]:
        return False
    vectors = [np.frombuffer(base64.b64decode(f["probe"]), np.float16).astype(np.float32) for f in (made, here)]
    return float(vectors[0] @ vectors[1]) >= SAME_MODEL
