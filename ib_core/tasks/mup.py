"""muP: layers scaled so that the best learning rate does not move with the width.

The tables of arXiv 2203.03466 (Tables 3 and 8), with `m = width / base` and sizes that stay as they
are (inputs, classes, symbols) counted as constants:

| part | start (std) | rate, SGD | rate, Adam |
| --- | --- | --- | --- |
| from inputs to the width; vectors as long as the width | as usual | m | 1 |
| from the width to the width | as usual, 1/sqrt(fan in) | 1 | 1/m |
| from the width to outputs | as usual / sqrt(m), so 1/fan in | 1/m | 1/m |

A sweep has one rate for all layers. So the rates stand in the parametrisation: a layer keeps `w`
and uses `W = A w`. A step of SGD on `w` moves `W` by `A^2` times its gradient, one of Adam's kind,
whose steps do not know the gradient's size, by `A`:

    mup:       A = sqrt(rate of SGD)      for eb, momentum and torch.optim.SGD
    mup_adam:  A = rate of Adam           for adam and others whose steps have a size of their own

and `w` starts at the table's start / A. At the base width A = 1 everywhere, and both are the
standard network, number by number. A matrix that is input and output at once (the GPT's symbols)
counts as an input, and the output is divided by m (Table 8). Heads keep their size, so attention
needs no change. Nothing is claimed of methods that use the loss's or the gradient's size (sps, ngn,
momo, ib, clipping, ridge).
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core.errors import lookup

INPUT, HIDDEN, OUTPUT = "input", "hidden", "output"


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a network's layers are scaled.

    Attributes:
        name: `standard`, `mup` or `mup_adam`.
        m: Its width over the base width.
    """

    name: str
    m: float

    def __post_init__(self) -> None:
        lookup("scaling", self.name, dict.fromkeys(SCALINGS), field="vary.scaling")

    @property
    def output(self) -> float:
        """What a tied output is multiplied by."""
        return 1.0 if self.name == "standard" else 1 / self.m

    def factor(self, role: str) -> float:
        """Return A of a matrix with this role; a vector as long as the width has an input's."""
        rates = {
            "standard": {INPUT: 1.0, HIDDEN: 1.0, OUTPUT: 1.0},
            "mup": {INPUT: math.sqrt(self.m), HIDDEN: 1.0, OUTPUT: 1 / math.sqrt(self.m)},
            "mup_adam": {INPUT: 1.0, HIDDEN: 1 / self.m, OUTPUT: 1 / self.m},
        }
        return rates[self.name][role]

    def start(self, role: str) -> float:
        """Return by what the usual start of `w` is multiplied."""
        smaller = math.sqrt(self.m) if role == OUTPUT and self.name != "standard" else 1.0
        return 1 / (smaller * self.factor(role))


SCALINGS = ("standard", "mup", "mup_adam")


class ScaledLinear(nn.Linear):
    """A linear layer that keeps `w` and uses `A w`; its bias is a vector of its outputs."""

    def __init__(
        self, inputs: int, outputs: int, role: str, scaling: Scaling, *, bias: bool = True
    ) -> None:
        super().__init__(inputs, outputs, bias)
        self.at = scaling.factor(role)
        # Outputs that stay as many as they are need no larger steps.
        self.bias_at = 1.0 if role == OUTPUT else scaling.factor(INPUT)
        with torch.no_grad():
            self.weight.mul_(scaling.start(role))
            if bias:
                self.bias.div_(self.bias_at)

    def forward(self, x: Tensor) -> Tensor:
        """Return `(A w) x + A' b`."""
        bias = None if self.bias is None else _times(self.bias, self.bias_at)
        return F.linear(x, _times(self.weight, self.at), bias)


class ScaledLayerNorm(nn.LayerNorm):
    """A LayerNorm whose vectors are as long as the width."""

    def __init__(self, width: int, scaling: Scaling) -> None:
        super().__init__(width)
        self.at = scaling.factor(INPUT)
        with torch.no_grad():
            self.weight.div_(self.at)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normed rows, scaled and moved."""
        weight, bias = _times(self.weight, self.at), _times(self.bias, self.at)
        return F.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


def _times(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1.0 else x * factor
