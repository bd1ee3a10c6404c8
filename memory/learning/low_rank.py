"""Fitting the local encoder to a task: low-rank changes to its layers (LoRA, Hu et al. 2021), and a head.

A matrix W (in, out) of the encoder is left as it is; beside it goes (B A)ᵀ with A (rank, in) and B (out, rank), which alone are
fitted, so that what comes out is a hundredth of the model. All of this runs on the CPU; torch and onnx come with the `[train]` extra.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sharpwave.memory.embed import check_digests, packaged_files
from sharpwave.memory.errors import ConfigError

if TYPE_CHECKING:
    import torch

RANK = 16
WIDTH, HEADS, LAYERS = 384, 12, 6
BATCH = 32
RATE, HEAD_RATE = 6e-4, 1e-3
WARM_UP = 0.06
DROPPED = 0.1
"""Share of the features dropped after each half of a layer; for all tokens of a pair alike, which is fast."""
SMOOTHING = 0.02

UNTOLD = -100
"""The class of a token that tells nothing."""

Row = tuple[list[int], list[int], list[int]]
"""Ids and types of the tokens of an example, and its class; or the class of each of its tokens."""

_PARTS = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
_MATRICES = (*_PARTS, "intermediate.dense", "output.dense")
_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")


def fit(
    rows: Sequence[Row],
    classes: int,
    *,
    epochs: int = 4,
    seed: int = 0,
    told: Callable[[str], object] = str,
) -> dict[str, np.ndarray]:
    """Fit the changes and the head to examples, and return them as `adapted.changed` reads them.

    Args:
        rows: examples; either all have one class, or all have one for each token.
        classes: how many there are.
        epochs: how often each example is seen.
        seed: of the order, of what is dropped and of the first values. Sums in another order make for other last digits.
        told: called with a line after each epoch.

    Raises:
        ConfigError: torch or onnx is not installed, or the packaged encoder is missing.
    """
    try:
        import onnx  # noqa: F401
        import torch
    except ImportError as error:
        raise ConfigError('Fitting needs torch and onnx. Run: pip install "sharpwave[train]"') from error
    torch.manual_seed(seed)
    drawn = random.Random(seed)
    reader = _reader(classes, pooled=all(len(row[2]) == 1 for row in rows))
    head = list(reader.head.parameters())
    low = [p for name, p in reader.named_parameters() if p.requires_grad and not name.startswith("head")]
    optimizer = torch.optim.AdamW([{"params": low, "lr": RATE}, {"params": head, "lr": HEAD_RATE}], weight_decay=0.01)
    steps = epochs * math.ceil(len(rows) / BATCH)
    slope = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / (WARM_UP * steps)) * max(0.0, 1 - step / steps)
    )
    for epoch in range(epochs):
        reader.train()
        losses = []
        for batch in _batches(rows, drawn):
            with torch.autocast("cpu", torch.bfloat16):
                logits = reader(*batch[:3])
            loss = _loss(logits.float(), batch[3])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*low, *head], 1.0)
            optimizer.step()
            slope.step()
            losses.append(loss.item())
        told(f"epoch {epoch + 1} of {epochs}: loss {np.mean(losses):.3f}")
    changes: dict[str, np.ndarray] = reader.changes()
    return changes


def _loss(logits: "torch.Tensor", classes: "torch.Tensor") -> "torch.Tensor":
    """Return the mean cross-entropy over examples, of each of which the tokens that tell something count alike.

    `logits` are (B, T, classes), `classes` (B, T), with T = 1 where an example has one class.
    """
    from torch.nn import functional as F

    apart = F.cross_entropy(
        logits.transpose(1, 2), classes, ignore_index=UNTOLD, reduction="none", label_smoothing=SMOOTHING
    )
    told = (classes != UNTOLD).float()
    loss: torch.Tensor = ((apart * told).sum(1) / told.sum(1).clamp(min=1)).mean()
    return loss


def _batches(rows: Sequence[Row], drawn: random.Random) -> Iterator[tuple["torch.Tensor", ...]]:
    """Yield ids, types and mask (B, T) and classes (B, T or 1) in random order, examples of like length together."""
    import torch

    order = drawn.sample(range(len(rows)), len(rows))
    for start in range(0, len(order), 16 * BATCH):
        near = sorted(order[start : start + 16 * BATCH], key=lambda at: len(rows[at][0]))
        chunks = [near[at : at + BATCH] for at in range(0, len(near), BATCH)]
        for chunk in drawn.sample(chunks, len(chunks)):
            longest = max(len(rows[at][0]) for at in chunk)
            ids, types, mask = torch.zeros((3, len(chunk), longest), dtype=torch.long)
            classes = torch.full((len(chunk), max(len(rows[at][2]) for at in chunk)), UNTOLD)
            for place, at in enumerate(chunk):
                row, kinds, told = rows[at]
                ids[place, : len(row)], types[place, : len(row)] = torch.tensor(row), torch.tensor(kinds)
                mask[place, : len(row)] = 1
                classes[place, : len(told)] = torch.tensor(told)
            yield ids, types, mask.bool(), classes


def _dropped(x: "torch.Tensor", training: bool) -> "torch.Tensor":
    import torch

    if not training:
        return x
    return x * ((torch.rand(x.shape[0], 1, x.shape[2]) > DROPPED).to(x.dtype) / (1 - DROPPED))


def _reader(classes: int, *, pooled: bool) -> Any:
    """Return the encoder (BERT, post-norm) with its low-rank changes and a head for each token, or for their mean, as a torch module."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    tensors, places = _packaged()

    def fixed(value: np.ndarray) -> "torch.Tensor":
        return torch.from_numpy(np.array(value, np.float32))

    class Changed(nn.Module):  # type: ignore[misc]
        """A fixed matrix with its change."""

        def __init__(self, weight: np.ndarray, bias: np.ndarray) -> None:
            super().__init__()
            self.register_buffer("weight", fixed(weight.T).bfloat16())
            self.register_buffer("bias", fixed(bias))
            self.a = nn.Parameter(torch.randn(RANK, weight.shape[0]) / RANK**0.5 * 0.1)
            self.b = nn.Parameter(torch.zeros(weight.shape[1], RANK))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.linear(x, self.weight, self.bias) + F.linear(F.linear(x, self.a), self.b)

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self, number: int) -> None:
            super().__init__()
            at = f"inner.encoder.layer.{number}."
            self.query, self.key, self.value, self.out, self.wide, self.narrow = (
                Changed(tensors[f"{number}.{part}"], tensors[f"{at}{part}.bias"]) for part in _MATRICES
            )
            for name, part in zip("nm", _NORMS, strict=True):
                self.register_buffer(f"{name}_weight", fixed(tensors[f"{at}{part}.weight"]))
                self.register_buffer(f"{name}_bias", fixed(tensors[f"{at}{part}.bias"]))

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            def split(y: torch.Tensor) -> torch.Tensor:
                return y.view(*y.shape[:2], HEADS, -1).transpose(1, 2)

            looked = F.scaled_dot_product_attention(
                split(self.query(x)), split(self.key(x)), split(self.value(x)), attn_mask=mask[:, None, None, :]
            )
            joined = self.out(looked.transpose(1, 2).flatten(2))
            x = F.layer_norm(x + _dropped(joined, self.training), (WIDTH,), self.n_weight, self.n_bias, 1e-12)
            wide = self.narrow(F.gelu(self.wide(x)))
            return F.layer_norm(x + _dropped(wide, self.training), (WIDTH,), self.m_weight, self.m_bias, 1e-12)

    class Reader(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            at = "inner.embeddings."
            for name in ("word", "position", "token_type"):
                self.register_buffer(name, fixed(tensors[f"{at}{name}_embeddings.weight"]))
            self.register_buffer("n_weight", fixed(tensors[f"{at}LayerNorm.weight"]))
            self.register_buffer("n_bias", fixed(tensors[f"{at}LayerNorm.bias"]))
            self.layers = nn.ModuleList(Layer(number) for number in range(LAYERS))
            self.head = nn.Linear(WIDTH, classes)

        def forward(self, ids: torch.Tensor, types: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            x = self.word[ids] + self.position[: ids.shape[1]] + self.token_type[types]
            x = F.layer_norm(x, (WIDTH,), self.n_weight, self.n_bias, 1e-12)
            for layer in self.layers:
                x = layer(x, mask)
            if pooled:
                weight = mask[..., None].float()
                x = (x * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True)
            logits: torch.Tensor = self.head(x)
            return logits

        def changes(self) -> dict[str, np.ndarray]:
            matrices = [m for m in self.modules() if isinstance(m, Changed)]
            low = {
                f"{name}{at}": getattr(matrix, name).detach().numpy().astype(np.float16)
                for at, matrix in enumerate(matrices)
                for name in "ab"
            }
            return {
                **low,
                "places": np.array(places, np.int64),
                "head": self.head.weight.detach().numpy(),
                "bias": self.head.bias.detach().numpy(),
            }

    return Reader()


def _packaged() -> tuple[dict[str, np.ndarray], list[tuple[int, int]]]:
    """Return the tensors of the packaged encoder, and where its matrices and their scales stand in the file, in bytes.

    The matrices bear numbers for names, in the order in which they are used; here they are called by layer and part.
    """
    import onnx
    from onnx import numpy_helper

    files = packaged_files()
    check_digests(files)
    file = files.model.read_bytes()
    stored = {tensor.name: tensor for tensor in onnx.load_from_string(file).graph.initializer}
    tensors = {name: numpy_helper.to_array(tensor) for name, tensor in stored.items()}
    scaled = [name.removesuffix("_q") for name in stored if name.endswith("_q")]
    for name in scaled:
        tensors[name] = tensors[f"{name}_q"] * tensors[f"{name}_scale"]
    numbered = sorted((name for name in scaled if name.startswith("val_")), key=lambda name: int(name[4:]))
    named = [f"{layer}.{part}" for layer in range(LAYERS) for part in _MATRICES]
    tensors |= {one: tensors[other] for one, other in zip(named, numbered, strict=True)}
    places = [(_place(file, stored[f"{name}_q"]), _place(file, stored[f"{name}_scale"])) for name in numbered]
    return tensors, places


def _place(file: bytes, tensor: Any) -> int:
    place = file.find(tensor.raw_data)
    if place < 0 or file.find(tensor.raw_data, place + 1) >= 0:
        raise ConfigError(f"The tensor {tensor.name} does not stand in the packaged encoder exactly once.")
    return place
