"""The network: a pointer over {ADD, NOOP, UPDATE_j, DELETE_j} for the memories near a candidate.

One small perceptron looks at each memory by itself and gives it three scores: it is replaced, it ends, it says this
already. Another looks at the candidate and at the strongest sign over all memories, and scores adding it and leaving it.
NOOP takes the best way to have nothing to do: there is nothing to keep, or one of the memories says it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sharpwave.memory.learning.features import CANDIDATE, PAIR, Floats

if TYPE_CHECKING:
    from torch import Tensor, nn

HIDDEN, SIGNS, MIXED = 48, 24, 32
"""Units of the pair perceptron's two layers, and of the other's one."""
ADD, NOOP, FIRST = 0, 1, 2
"""Places among the logits; from `FIRST` on the updates, then as many deletes."""

Weights = Mapping[str, Floats]
SHAPES = {
    "pair.0.weight": (HIDDEN, PAIR + CANDIDATE + 1),
    "pair.0.bias": (HIDDEN,),
    "pair.2.weight": (SIGNS, HIDDEN),
    "pair.2.bias": (SIGNS,),
    "heads.weight": (3, SIGNS),
    "heads.bias": (3,),
    "whole.0.weight": (MIXED, CANDIDATE + SIGNS + 1),
    "whole.0.bias": (MIXED,),
    "whole.2.weight": (2, MIXED),
    "whole.2.bias": (2,),
}


class Scores(NamedTuple):
    """What the network says of one candidate."""

    logits: Floats
    """(2 + 2n,): ADD, NOOP, n updates, n deletes."""
    known: Floats
    """(n,): how much each memory looks as if it said the candidate already."""
    new: float
    """The same for there being nothing to keep."""


def scores(weights: Weights, candidate: Floats, pairs: Floats) -> Scores:
    """Return the scores of one candidate (`CANDIDATE`,) with its n memories (n, `PAIR`)."""
    count = len(pairs)
    signs, heads = np.zeros((0, SIGNS), np.float32), np.zeros((0, 3), np.float32)
    if count:
        best = pairs[:, :1].max()
        seen = np.concatenate([pairs, np.broadcast_to(candidate, (count, CANDIDATE)), pairs[:, :1] - best], 1)
        hidden = np.maximum(seen @ weights["pair.0.weight"].T + weights["pair.0.bias"], 0)
        signs = np.maximum(hidden @ weights["pair.2.weight"].T + weights["pair.2.bias"], 0)
        heads = signs @ weights["heads.weight"].T + weights["heads.bias"]
    strongest = signs.max(0) if count else np.zeros(SIGNS, np.float32)
    whole = np.concatenate([candidate, strongest, np.array([count / 8], np.float32)])
    hidden = np.maximum(weights["whole.0.weight"] @ whole + weights["whole.0.bias"], 0)
    add, nothing = weights["whole.2.weight"] @ hidden + weights["whole.2.bias"]
    noop = np.logaddexp.reduce(np.append(heads[:, 2], nothing))
    return Scores(
        np.concatenate([[add, noop], heads[:, 0], heads[:, 1]]).astype(np.float32), heads[:, 2], float(nothing)
    )


def build(seed: int) -> "nn.ModuleDict":
    """Return the same network in torch, with fresh weights."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    pair = nn.Sequential(nn.Linear(PAIR + CANDIDATE + 1, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, SIGNS), nn.ReLU())
    whole = nn.Sequential(nn.Linear(CANDIDATE + SIGNS + 1, MIXED), nn.ReLU(), nn.Linear(MIXED, 2))
    return nn.ModuleDict({"pair": pair, "heads": nn.Linear(SIGNS, 3), "whole": whole})


def log_probabilities(network: "nn.ModuleDict", candidate: "Tensor", pairs: "Tensor", there: "Tensor") -> "Tensor":
    """Return log-probabilities (B, 2 + 2K) for candidates (B, C) with K memories (B, K, P), where `there` (B, K) is true."""
    import torch

    absent = ~there[..., None]  # (B, K, 1)
    best = pairs[..., :1].masked_fill(absent, -9.0).amax(1, keepdim=True)  # (B, 1, 1)
    beside = candidate[:, None].expand(-1, pairs.shape[1], -1)  # (B, K, C)
    signs = network["pair"](torch.cat([pairs, beside, pairs[..., :1] - best], -1)).masked_fill(absent, 0.0)  # (B, K, S)
    heads = network["heads"](signs).masked_fill(absent, -1e4)  # (B, K, 3)
    count = there.sum(1, keepdim=True) / 8  # (B, 1)
    whole = network["whole"](torch.cat([candidate, signs.amax(1), count], -1))  # (B, 2)
    noop = torch.logsumexp(torch.cat([heads[..., 2], whole[:, 1:]], 1), 1, keepdim=True)  # (B, 1)
    logits = torch.cat([whole[:, :1], noop, heads[..., 0], heads[..., 1]], 1)  # (B, 2 + 2K)
    return torch.log_softmax(logits, -1)
