"""Training by right answers: the simulator knows them, so this is the measure for training by reward alone.

The network plays, at first with the teacher's help, and learns the right action in each store that it comes into (DAgger,
Ross et al. 2011): what it gets wrong is what it has to see.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sharpwave.memory.learning.dialogues import TURNS
from sharpwave.memory.learning.environment import Actor, Environment, Ints, Seen, act
from sharpwave.memory.learning.network import log_probabilities
from sharpwave.memory.learning.reward import Bools
from sharpwave.memory.learning.training import Best, batch, chosen

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

DIALOGUES = 32
"""Dialogues a step."""
ROWS = 256
"""Decisions that a gradient is taken over."""
RATE = 3e-3
CHECK_EVERY = 10

Teacher = Callable[[Bools, Seen], Ints]
"""Tells the action (S,) to learn in stores (S, T)."""


def train(
    network: "nn.ModuleDict", environment: Environment, validation: Environment, *, steps: int, seed: int
) -> list[dict[str, float]]:
    """Train a network in place on the right actions; return the reward on `validation` every `CHECK_EVERY` steps and at the end.

    The weights that earned most there are kept. `seed` is that of the dialogues taken, the actions drawn and the order
    learned in.
    """
    import torch

    best, curve = Best(network, validation), []
    optimizer = torch.optim.Adam(network.parameters(), RATE)
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    for step in range(1, steps + 1):
        _step(network, environment, environment.right, max(0.0, 1 - 2 * step / steps), optimizer, rng)
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - 0.95 * step / steps)
        if step % CHECK_EVERY == 0 or step == steps:
            curve.append({"step": step, "validation": round(best.check(step), 4)})
    best.restore()
    return curve


def clone(network: "nn.ModuleDict", environment: Environment, actor: Actor, *, steps: int = 30, seed: int = 0) -> None:
    """Train a network in place to do what an actor does: a start for training by reward that needs no right answers."""
    import torch

    optimizer = torch.optim.Adam(network.parameters(), RATE)
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    for _ in range(steps):
        _step(network, environment, lambda kept, seen: actor(environment, seen), 0.5, optimizer, rng)


def _step(
    network: "nn.ModuleDict",
    environment: Environment,
    teacher: Teacher,
    helped: float,
    optimizer: "Optimizer",
    rng: np.random.Generator,
) -> None:
    """Play some dialogues, `helped` of the actions being the teacher's, and learn the teacher's action at every turn."""
    import torch
    from torch.nn.functional import nll_loss

    count = min(DIALOGUES, len(environment.dialogues))
    which = rng.choice(len(environment.dialogues), count, replace=False)
    kept = np.zeros((count, TURNS), bool)
    saw, taught = [], []
    for turn in range(TURNS):
        seen = environment.see(kept, which, turn)
        right = teacher(kept, seen)
        act(kept, seen, np.where(rng.random(count) < helped, right, chosen(network, seen, rng)[0]))
        saw.append(seen)
        taught.append(right)
    inputs, labels = batch(saw), torch.from_numpy(np.concatenate(taught))
    for rows in torch.randperm(len(labels)).split(ROWS):
        loss = nll_loss(log_probabilities(network, *(part[rows] for part in inputs)), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
