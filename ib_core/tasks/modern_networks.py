"""The modules of `ib_core.tasks.modern`, ordinary torch; apart, because listing needs no torch."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """A transformer's block: causal attention, then two layers, each added to what came in."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.read, self.write = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

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

    def __init__(self, symbols: int, context: int, width: int, depth: int) -> None:
        super().__init__()
        self.symbol, self.place = nn.Embedding(symbols, width), nn.Embedding(context, width)
        nn.init.normal_(self.symbol.weight, std=0.02)
        nn.init.normal_(self.place.weight, std=0.02)
        heads = max(1, width // 8) if width % 8 == 0 else 1
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, symbols, bias=False)
        self.output.weight = self.symbol.weight

    def forward(self, x: Tensor) -> Tensor:
        """Map [rows, time] to scores [rows, time, symbols]."""
        places = torch.arange(x.shape[-1], device=x.device)
        scores: Tensor = self.output(self.norm(self.blocks(self.symbol(x) + self.place(places))))
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
