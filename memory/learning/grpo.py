"""Training by reward alone: group-relative policy optimisation (GRPO, Shao et al. 2024), in the spirit of Memory-R1.

A group is `GROUP` roll-outs of one dialogue by the network as it is. An action is good as far as its roll-out did better than
the rest of its group, so no critic is needed. What departs from the paper, and why:

- *Credit by turn.* The store is worth something after every turn, so an action is credited with what the worth gains from
  there on, discounted by `DISCOUNT`, and is compared with the same turn of the other roll-outs. One sum for all 24 actions
  of a dialogue hides which of them earned it.
- *A floor under the deviation.* Advantages are divided by the group's deviation plus `FLOOR`. In a group where all did nearly
  alike the deviation is noise, and dividing by it would make a lesson of that; where all did exactly alike the advantage is 0.
- *Exact divergence.* There are at most 22 actions, so the KL divergence to the reference is summed over all of them; the paper
  estimates it from the one that was drawn.
- *Old probabilities.* They are those of the roll-outs, kept as they were drawn. Taken anew before each pass they would make
  every ratio 1, and the clipping would never act.
- *A price on writing.* Replacing an entry by its own paraphrase leaves a store that is worth as much as before, and throws away
  what was known since when. An action that writes costs `PRICE`, so that of two that come to the same the idle one is learned.
- *Early stopping* on other dialogues: the reward of the ones trained on keeps rising when that of others no longer does.
"""

import copy
from typing import TYPE_CHECKING

import numpy as np

from sharpwave.memory.learning.dialogues import TURNS
from sharpwave.memory.learning.environment import Environment, Ints, Seen, act
from sharpwave.memory.learning.features import Floats
from sharpwave.memory.learning.network import NOOP, log_probabilities
from sharpwave.memory.learning.training import Best, batch, chosen

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

DIALOGUES, GROUP = 8, 16
"""Dialogues a step, roll-outs of each."""
PASSES = 2
"""Gradient steps on the roll-outs of one step."""
RATE = 2e-3
"""Learning rate at the start; it falls to a twentieth."""
CLIP = 0.2
DIVERGENCE = 0.01
"""Weight of the KL divergence to the network that training started from."""
DISCOUNT = 0.9
FLOOR = 0.01
PRICE = 0.005
CHECK_EVERY = 10


def train(
    network: "nn.ModuleDict",
    environment: Environment,
    validation: Environment,
    *,
    steps: int,
    seed: int,
    rate: float = RATE,
) -> list[dict[str, float]]:
    """Train a network in place; return what each `CHECK_EVERY`th step showed.

    The weights that earned most on `validation` are kept. `seed` is that of the dialogues taken and the actions drawn; `rate` is
    the learning rate at the start.
    """
    import torch

    reference = copy.deepcopy(network)
    optimizer = torch.optim.Adam(network.parameters(), rate)
    rng = np.random.default_rng(seed)
    best, curve = Best(network, validation), [{"step": 0.0, "validation": 0.0}]
    curve[0]["validation"] = round(best.check(0), 4)
    for step in range(1, steps + 1):
        which = np.repeat(rng.choice(len(environment.dialogues), DIALOGUES), GROUP)  # (S,), S = DIALOGUES * GROUP
        saw, actions, old, worth = roll_out(network, environment, which, rng)
        advantages = credit(worth, PRICE * (actions != NOOP))
        divergence = _learn(network, reference, optimizer, saw, actions, old, advantages)
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - 0.95 * step / steps)
        if step % CHECK_EVERY == 0:
            dead = float((np.abs(advantages).max(2) == 0).mean())
            found = {
                "step": float(step),
                "train": round(float(worth[-1].mean()), 4),
                "validation": round(best.check(step), 4),
            }
            curve.append({**found, "divergence": round(divergence, 4), "groups_alike": round(dead, 4)})
    best.restore()
    return curve


def roll_out(
    network: "nn.ModuleDict", environment: Environment, which: Ints, rng: np.random.Generator
) -> tuple[list[Seen], Ints, Floats, Floats]:
    """Play dialogues `which` (S,) with actions drawn from the network.

    Returns what was seen at each turn; the actions (T, S); their log-probabilities when they were drawn (T, S); the worth of
    the stores after each turn (T, S).
    """
    kept = np.zeros((len(which), TURNS), bool)
    saw, actions, old, worth = [], [], [], []
    for turn in range(TURNS):
        seen = environment.see(kept, which, turn)
        action, log = chosen(network, seen, rng)
        act(kept, seen, action)
        saw.append(seen)
        actions.append(action)
        old.append(log)
        worth.append([environment.value(kept[s], int(d), turn) for s, d in enumerate(which)])
    return saw, np.array(actions), np.array(old), np.array(worth)


def credit(worth: Floats, price: Floats) -> Floats:
    """Return the advantage (T, groups, GROUP) of each action.

    Args:
        worth: of the stores after each turn (T, S); the groups lie one after the other in S.
        price: of each action (T, S).
    """
    gains = np.diff(worth, axis=0, prepend=0.0) - price  # (T, S)
    returns = np.zeros_like(gains)  # (T, S)
    later = np.zeros(gains.shape[1])  # (S,)
    for turn in reversed(range(len(gains))):
        later = gains[turn] + DISCOUNT * later
        returns[turn] = later
    grouped = returns.reshape(len(gains), -1, GROUP)  # (T, groups, GROUP)
    apart = grouped - grouped.mean(2, keepdims=True)
    apart[np.abs(apart) < 1e-12] = 0.0  # what rounding leaves of a group whose members did alike
    return np.asarray(apart / (grouped.std(2, keepdims=True) + FLOOR))


def _learn(
    network: "nn.ModuleDict",
    reference: "nn.ModuleDict",
    optimizer: "Optimizer",
    saw: list[Seen],
    actions: Ints,
    old: Floats,
    advantages: Floats,
) -> float:
    """Take `PASSES` gradient steps; return the mean KL divergence to the reference after them."""
    import torch

    inputs = batch(saw)  # B = T * S rows, turn by turn
    taken = torch.from_numpy(actions.reshape(-1, 1))  # (B, 1)
    before = torch.from_numpy(old.reshape(-1)).float()  # (B,)
    advantage = torch.from_numpy(advantages.reshape(-1)).float()  # (B,)
    with torch.no_grad():
        anchored = log_probabilities(reference, *inputs)  # (B, A)
    divergence = torch.zeros(())
    for _ in range(PASSES):
        logs = log_probabilities(network, *inputs)  # (B, A)
        ratio = (logs.gather(1, taken)[:, 0] - before).exp()  # (B,)
        gained = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
        there = anchored > -1e3  # (B, A): an action that names no neighbour is out of both
        divergence = (logs.exp() * (logs - anchored)).where(there, torch.zeros(())).sum(1).mean()
        loss = DIVERGENCE * divergence - gained
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return float(divergence.detach())
