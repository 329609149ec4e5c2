"""Ordinary torch modules: the networks of `ib_core.tasks.modern`.

Apart from the tasks, because listing those needs no torch.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core.tasks.networks import (
    HIDDEN,
    INPUT,
    NORMS,
    OUTPUT,
    ScaledLayerNorm,
    ScaledLinear,
    Scaling,
)


class Block(nn.Module):
    """A transformer's block: causal attention, then two layers, each added to what came in."""

    def __init__(self, width: int, heads: int, scaling: Scaling) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = ScaledLayerNorm(width, scaling)
        self.before_layers = ScaledLayerNorm(width, scaling)
        self.read = ScaledLinear(width, 3 * width, HIDDEN, scaling)
        self.write = ScaledLinear(width, width, HIDDEN, scaling)
        self.up = ScaledLinear(width, 4 * width, HIDDEN, scaling)
        self.down = ScaledLinear(4 * width, width, HIDDEN, scaling)

    def forward(self, x: Tensor) -> Tensor:
        """Return [rows, time, width] of the same shape."""
        rows, time, width = x.shape
        parts = self.read(self.before_attention(x)).view(rows, time, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.write(seen.transpose(1, 2).reshape(rows, time, width))
        deeper: Tensor = x + self.down(F.gelu(self.up(self.before_layers(x))))
        return deeper


class GPT(nn.Module):
    """A small transformer that tells the next of some symbols; its ends share one matrix."""

    def __init__(
        self, symbols: int, context: int, width: int, depth: int, scaling: Scaling
    ) -> None:
        super().__init__()
        self.at, self.output_at = scaling.factor(INPUT), scaling.output
        self.symbol, self.place = nn.Embedding(symbols, width), nn.Embedding(context, width)
        nn.init.normal_(self.symbol.weight, std=0.02 / self.at)
        nn.init.normal_(self.place.weight, std=0.02 / self.at)
        heads = max(1, width // 8) if width % 8 == 0 else 1
        self.blocks = nn.Sequential(*(Block(width, heads, scaling) for _ in range(depth)))
        self.norm = ScaledLayerNorm(width, scaling)
        self.output = nn.Linear(width, symbols, bias=False)
        self.output.weight = self.symbol.weight

    def forward(self, x: Tensor) -> Tensor:
        """Map [rows, time] to scores [rows, time, symbols]."""
        places = torch.arange(x.shape[-1], device=x.device)
        told = self.symbol(x) + self.place(places)
        told = told if self.at == 1.0 else told * self.at
        scores: Tensor = self.output(self.norm(self.blocks(told)))
        factor = self.at * self.output_at
        return scores if factor == 1.0 else scores * factor


class MLP(nn.Module):
    """Layers of relus of one width, and a linear one that tells the class."""

    def __init__(
        self,
        inputs: int,
        classes: int,
        width: int,
        depth: int,
        scaling: Scaling,
        norm: str = "none",
    ) -> None:
        super().__init__()
        hidden = (ScaledLinear(width, width, HIDDEN, scaling) for _ in range(depth - 1))
        self.layers = nn.ModuleList([ScaledLinear(inputs, width, INPUT, scaling), *hidden])
        self.norms = nn.ModuleList(NORMS[norm](width, scaling) for _ in self.layers)
        self.output = ScaledLinear(width, classes, OUTPUT, scaling)

    def forward(self, x: Tensor) -> Tensor:
        """Map [rows, inputs] to scores [rows, classes]."""
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = F.relu(norm(layer(x)))
        scores: Tensor = self.output(x)
        return scores


class Residual(nn.Module):
    """Two convolutions with BatchNorm, added to what came in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = (
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))
            for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return maps of the same shape."""
        return F.relu(x + self.second(F.relu(self.first(x))))


class ResidualCNN(nn.Module):
    """A convolution, residual blocks, and the maps' means read by a linear layer."""

    def __init__(self, width: int, depth: int, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.blocks = nn.Sequential(*(Residual(width) for _ in range(depth)))
        self.output = nn.Linear(4 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Map [rows, 1, 8, 8] to scores [rows, classes]."""
        maps = self.blocks(F.max_pool2d(self.stem(x), 2))
        scores: Tensor = self.output(F.avg_pool2d(maps, 2).flatten(1))
        return scores


class NextChord(nn.Module):
    """An LSTM over frames, and a linear layer that tells the notes of the next."""

    def __init__(self, notes: int, width: int, depth: int) -> None:
        super().__init__()
        self.states = nn.LSTM(notes, width, depth, batch_first=True)
        self.output = nn.Linear(width, notes)

    def forward(self, x: Tensor) -> Tensor:
        """Map [pieces, time, notes] to scores of the same shape."""
        scores: Tensor = self.output(self.states(x)[0])
        return scores
