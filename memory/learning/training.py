"""What both ways of training share: the network as an actor, batches of what was seen, the check against other dialogues."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sharpwave.memory.learning.environment import Actor, Environment, Ints, Seen
from sharpwave.memory.learning.features import Floats
from sharpwave.memory.learning.network import log_probabilities
from sharpwave.memory.learning.playing import play

if TYPE_CHECKING:
    from torch import Tensor, nn

Batch = tuple["Tensor", "Tensor", "Tensor"]
"""Candidates (B, C), pairs (B, K, P), and which pairs there are (B, K): what the network takes."""


def batch(seen: Sequence[Seen]) -> Batch:
    """Return what was seen over several turns as one batch, in its order."""
    import torch

    return (
        torch.from_numpy(np.concatenate([s.candidate for s in seen])),
        torch.from_numpy(np.concatenate([s.pairs for s in seen])),
        torch.from_numpy(np.concatenate([s.there for s in seen])),
    )


def chosen(network: "nn.ModuleDict", seen: Seen, rng: np.random.Generator | None) -> tuple[Ints, Floats]:
    """Return an action (S,) for each store and its log-probability (S,): drawn, or without `rng` the likeliest."""
    import torch

    with torch.no_grad():
        logs = log_probabilities(network, *batch([seen])).numpy()  # (S, A)
    noise = (
        rng.gumbel(size=logs.shape) if rng is not None else 0.0
    )  # the largest of log p + Gumbel noise is a draw from p
    actions = (logs + noise).argmax(1)
    return actions, logs[np.arange(len(actions)), actions]


def greedy(network: "nn.ModuleDict") -> Actor:
    """Return an actor that takes the network's likeliest action."""
    return lambda environment, seen: chosen(network, seen, None)[0]


class Best:
    """Keeps the weights that earned most on other dialogues: early stopping."""

    def __init__(self, network: "nn.ModuleDict", validation: Environment) -> None:
        self.network, self.validation = network, validation
        self.reward, self.step = -1.0, 0
        self.weights: dict[str, Tensor] = {}

    def check(self, step: int) -> float:
        """Measure the network as it is now, and keep it if it is the best so far; return its mean reward."""
        earned = float(play(self.validation, greedy(self.network)).rewards.mean())
        if earned > self.reward:
            self.reward, self.step = earned, step
            self.weights = {name: value.clone() for name, value in self.network.state_dict().items()}
        return earned

    def restore(self) -> None:
        """Give the network the best weights back."""
        self.network.load_state_dict(self.weights)
