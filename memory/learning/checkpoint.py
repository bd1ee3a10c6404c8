"""A trained network on disk: an `.npz` of its weights, and a JSON file beside it that says what they are good for."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.memory import fingerprint
from sharpwave.memory.errors import ConfigError
from sharpwave.memory.learning.dialogues import SPLITS
from sharpwave.memory.learning.features import VERSION, Floats
from sharpwave.memory.learning.network import SHAPES, Weights

HERE = Path(__file__).parent
SHIPPED = HERE / "policy.npz"
"""The network that comes with the package."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A network and what is known of it."""

    weights: Weights
    about: Mapping[str, Any]
    """`features`, `cues`, `data`, `embedder`, `method`, `seed`, `steps`, `dialogues`, `metrics`."""


def digest(*names: str) -> str:
    """Return the SHA-256 of files of this package, one after the other, in hexadecimal."""
    return hashlib.sha256(b"".join((HERE / name).read_bytes() for name in names)).hexdigest()


def save(path: Path, weights: Mapping[str, Floats], embeddings: Embeddings, about: Mapping[str, Any]) -> None:
    """Write a network to `path` (`.npz`) and the JSON file beside it.

    Args:
        path: where to.
        weights: by the names in `network.SHAPES`.
        embeddings: what gave the cosines that it was trained on.
        about: `method`, `seed`, `steps`, `dialogues`, `metrics`.

    Raises:
        ConfigError: the files cannot be written.
    """
    facts = {
        "features": VERSION,
        "cues": digest("cues.toml"),
        "data": digest(*(f"{split}.toml" for split in SPLITS)),
        "embedder": json.loads(fingerprint.take(embeddings)),
        **about,
    }
    try:
        with path.open("wb") as file:
            stored: dict[str, Any] = {name: np.asarray(weights[name], np.float32) for name in SHAPES}
            np.savez(file, **stored)
        path.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise ConfigError(f"The network cannot be written to {path}: {error.strerror}.") from error


def load(path: Path | None = None, embeddings: Embeddings | None = None) -> Checkpoint:
    """Read a network.

    Args:
        path: its `.npz`; None is the one that comes with the package.
        embeddings: what will give the cosines; None checks nothing about them.

    Raises:
        ConfigError: there is none, it is damaged, or it was trained for other features or another embedder.
    """
    path = path or SHIPPED
    try:
        about = json.loads(path.with_suffix(".json").read_text("utf-8"))
        with np.load(path, allow_pickle=False) as stored:
            weights = {name: np.asarray(stored[name], np.float32) for name in SHAPES}
        made_for = (about["features"], about["cues"])
        embedder = json.dumps(about["embedder"])
    except OSError as error:
        raise ConfigError(
            f"The network {path} cannot be read: {error.strerror}. Train one with `sharpwave policy train`."
        ) from error
    except (ValueError, KeyError, TypeError, BadZipFile) as error:
        raise ConfigError(f"{path} or the .json file beside it is no trained network: {error}.") from error
    if made_for != (VERSION, digest("cues.toml")) or any(weights[n].shape != shape for n, shape in SHAPES.items()):
        raise ConfigError(
            f"The network {path} was trained for other features. Train it anew: `sharpwave policy train`."
        )
    if embeddings is not None and not fingerprint.same(embedder, embeddings):
        raise ConfigError(
            f"The network {path} was trained with the embedder {about['embedder']['name']!r}, and the one configured is "
            f"{fingerprint.name_of(embeddings)!r}. Train one with `sharpwave policy train`, or use the policy rules."
        )
    return Checkpoint(weights, about)
