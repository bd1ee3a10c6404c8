"""The whole of a training run, from a seed to a network with its figures, and the table that shows what it is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from langchain_core.embeddings import Embeddings

from sharpwave.memory.decide import Policy
from sharpwave.memory.errors import ConfigError
from sharpwave.memory.learning.dialogues import Split, dialogue
from sharpwave.memory.learning.environment import Environment
from sharpwave.memory.learning.features import Floats
from sharpwave.memory.learning.network import ADD, NOOP, build
from sharpwave.memory.learning.playing import UNTUNED, always, at_random, by, cues, nearest, oracle, play, tuned
from sharpwave.memory.learning.training import greedy

Method = Literal["grpo", "supervised", "both"]
DIALOGUES: Mapping[Split, int] = {"train": 400, "validation": 100, "test": 200}
"""Dialogues of a split."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained network."""

    weights: dict[str, Floats]
    about: dict[str, Any]
    """`method`, `seed`, `steps`, `dialogues`, `metrics` (on the validation split)."""
    curve: list[dict[str, float]]


def environment(split: Split, embeddings: Embeddings, *, count: int | None = None, strict: bool = False) -> Environment:
    """Return the dialogues of a split, ready to be played; `count` takes fewer or more than `DIALOGUES`."""
    return Environment([dialogue(split, n, strict=strict) for n in range(count or DIALOGUES[split])], embeddings)


def train(method: Method, seed: int, training: Environment, validation: Environment, *, steps: int) -> Trained:
    """Train a network.

    Args:
        method: `grpo` learns from rewards alone, and starts as a copy of an untuned rule; `supervised` learns right actions;
            `both` is the second, then the first.
        seed: of everything that is drawn.
        training: dialogues to learn from.
        validation: dialogues that the best weights are chosen by.
        steps: of each method.

    Raises:
        ConfigError: torch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise ConfigError('Training needs torch, which is not installed: pip install "sharpwave[train]".') from error
    from sharpwave.memory.learning import grpo, supervised

    torch.set_num_threads(1)  # more are slower on networks this small, and sums come out the same every time
    network, curve = build(seed), []
    if method == "grpo":
        supervised.clone(network, training, cues(*UNTUNED), seed=seed)
    else:
        curve += supervised.train(network, training, validation, steps=steps, seed=seed)
    if method != "supervised":
        rate = grpo.RATE if method == "grpo" else grpo.RATE / 4  # what has been learned is refined, not learned anew
        curve += grpo.train(network, training, validation, steps=steps, seed=seed, rate=rate)
    about = {
        "method": method,
        "seed": seed,
        "steps": steps,
        "dialogues": len(training.dialogues),
        "metrics": play(validation, greedy(network)).summary(),
    }
    return Trained({name: value.numpy() for name, value in network.state_dict().items()}, about, curve)


def table(
    test: Environment, training: Environment, policies: Mapping[str, Policy], seeds: Sequence[int] = (0, 1, 2, 3, 4)
) -> dict[str, dict[str, float]]:
    """Return what baselines and policies earn on the dialogues of `test`, by name; see `Played.summary`.

    Thresholds of the tuned rule are taken from `training`; the random policy is the mean over `seeds`.
    """
    actors = {
        "oracle": oracle,
        "always-noop": always(NOOP),
        "always-add": always(ADD),
        "cosine": nearest(0.85),
        "cues": cues(*UNTUNED),
        "cues-tuned": cues(*tuned(training)),
        **{name: by(policy) for name, policy in policies.items()},
    }
    found = {name: play(test, actor).summary() for name, actor in actors.items()}
    drawn = [play(test, at_random(seed)).summary() for seed in seeds]
    found["random"] = {key: round(float(np.mean([one[key] for one in drawn])), 4) for key in drawn[0]}
    return found
