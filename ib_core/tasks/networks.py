"""The paper's networks as stacks: every parameter has the members in front.

Initial weights come from one generator per seed, so members with one seed are twins.

muP: layers scaled so that the best learning rate does not move with the width.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core.datasets import Split
from ib_core.errors import lookup
from ib_core.layers import ImplicitConv2d, ImplicitLayer, ImplicitLinear, ImplicitRNN
from ib_core.tasks.paper import PaperTask


class StackedMLP(nn.Module):
    """Fully connected layers, [members, rows, in] -> [members, rows, out]."""

    def __init__(self, widths: Sequence[int], hidden: str, output: str, members: int) -> None:
        super().__init__()
        pairs = list(pairwise(widths))
        bias = widths != (1, 1)  # the quadratic of Fig. 1 has one weight and nothing else
        self.layers = nn.Sequential(
            *(
                ImplicitLinear(
                    n, m, output if i == len(pairs) - 1 else hidden, bias, members=members
                )
                for i, (n, m) in enumerate(pairs)
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of every member."""
        alone = self.layers[0].members == 1  # then with one dimension less: fewer calls
        out: Tensor = self.layers(x.squeeze(0)).unsqueeze(0) if alone else self.layers(x)
        return out


class StackedRNN(nn.Module):
    """A recurrent layer and an output layer over all time steps.

    Text: the output reads h_t. Authors: it reads [x_t, h_{t-1}] (docs/method.md, section 5).
    """

    def __init__(
        self, notes: int, hidden: int, activation: str, output: str, members: int, *, authors: bool
    ) -> None:
        super().__init__()
        self.authors = authors
        self.hidden = ImplicitRNN(notes, hidden, activation, members=members)
        read = notes + hidden if authors else hidden
        self.output = ImplicitLinear(read, notes, output, members=members)

    def forward(self, x: Tensor) -> Tensor:
        """Map [members, pieces, time, notes] to outputs of the same shape."""
        return self._read(x, self.hidden(x), None)

    @torch.no_grad()
    def carry_on(self, x: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the outputs of the pieces' next part and the state after it.

        Args:
            x: The part, [members, pieces, time, notes].
            before: The state after the part before, [members, pieces, hidden]; None is 0.
        """
        h = self.hidden.carry_on(x, before)
        return self._read(x, h, before), h[..., -1, :]

    def _read(self, x: Tensor, h: Tensor, before: Tensor | None) -> Tensor:
        if self.authors:
            earlier = F.pad(h, (0, 0, 1, 0))[..., :-1, :]
            if before is not None:
                earlier[..., 0, :] = before
            h = torch.cat([x, earlier], dim=-1)
        out: Tensor = self.output(h)
        return out


class StackedConv(nn.Module):
    """A convolution per member, one by one, halved by pooling the largest and cut by a relu.

    Measured on a CPU, a loop over members is 1.7 to 2.3 times faster than one grouped
    convolution and 2.4 times faster than unfolding into matrix products. With the channels last
    in memory the pooling, a quarter of a step otherwise, takes several of them at once. On a GPU
    launches are what costs, and one grouped convolution takes as many for all members as for one.
    """

    def __init__(self, channels: int, filters: int, size: int, members: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(members, filters, channels, size, size))
        self.bias = nn.Parameter(torch.empty(members, filters))

    def forward(self, x: Tensor) -> Tensor:
        """Map [members, rows, channels, height, width] to the filters' responses."""
        if not x.is_cpu:
            return self.at_once(x)
        each = [
            F.relu(F.max_pool2d(F.conv2d(_channels_last(part), _channels_last(weight), bias), 2))
            for part, weight, bias in zip(x, self.weight, self.bias, strict=True)
        ]
        return each[0].unsqueeze(0) if len(each) == 1 else torch.stack(each)

    def at_once(self, x: Tensor) -> Tensor:
        """Return the same by one convolution of as many groups as members."""
        members, rows = x.shape[:2]
        side_by_side = x.transpose(0, 1).flatten(1, 2)
        convolved = F.conv2d(
            side_by_side, self.weight.flatten(0, 1), self.bias.flatten(), groups=members
        )
        out = F.relu(F.max_pool2d(convolved, 2))
        return out.view(rows, members, -1, *out.shape[2:]).transpose(0, 1)


class ImplicitStackedConv(ImplicitConv2d):
    """The same convolution, relu and pooling with filters that can take the implicit step.

    A relu before pooling the largest is one after it; so the pass and its gradients are
    `StackedConv`'s, at about three times the price.
    """

    def __init__(self, channels: int, filters: int, size: int, members: int) -> None:
        super().__init__(channels, filters, size, "relu", members=members)

    def forward(self, x: Tensor) -> Tensor:
        """Map [members, rows, channels, height, width] to the filters' responses."""
        maps = super().forward(x)
        halved: Tensor = F.max_pool2d(maps.flatten(0, 1), 2).unflatten(0, maps.shape[:2])
        return halved


def _channels_last(images: Tensor) -> Tensor:
    """Return the images, or filters, with their channels side by side in memory."""
    return images.contiguous(memory_format=torch.channels_last)


class StackedConvNet(nn.Module):
    """Two convolutions with pooling and relu, then dense layers with dropout between them.

    Dropout masks are handed in, drawn per seed, so that methods and rates share them. The paper's
    convolutions are explicit; with `implicit` they have the implicit step that App. B speaks of.
    """

    def __init__(
        self,
        filters: Sequence[int],
        sizes: Sequence[int],
        widths: Sequence[int],
        hidden: str,
        output: str,
        members: int,
        *,
        implicit: bool = False,
    ) -> None:
        super().__init__()
        channels = (1, *filters[:-1])
        convolution = ImplicitStackedConv if implicit else StackedConv
        self.convolutions = nn.ModuleList(
            convolution(n, m, size, members)
            for n, m, size in zip(channels, filters, sizes, strict=True)
        )
        self.dense = ImplicitLinear(widths[0], widths[1], hidden, members=members)
        self.output = ImplicitLinear(widths[1], widths[2], output, members=members)

    def forward(
        self, x: Tensor, channel_mask: Tensor | None = None, unit_mask: Tensor | None = None
    ) -> Tensor:
        """Return class scores, [members, rows, classes]; masks are already divided by keep."""
        first, second = self.convolutions
        x = second(first(x))
        if channel_mask is not None:  # never negative, so it may as well follow pooling and relu
            x = x * channel_mask
        units = self.dense(x.flatten(2))
        if unit_mask is not None:
            units = units * unit_mask
        out: Tensor = self.output(units)
        return out


def draw_weights(model: nn.Module, generator: torch.Generator, *, authors: bool) -> list[Tensor]:
    """Return one member's initial weights, one tensor a parameter of the stack.

    Text: uniform +-sqrt(6/(n+m)), biases 0. Authors: implicit layers uniform(-.1, .1), biases
    too; convolutions and linear output layers as torch does by default. Draws happen in the
    order of the parameters, which is the order the authors' modules were made in.
    """
    drawn = []
    for module in model.modules():
        if not isinstance(module, ImplicitLayer | StackedConv):
            continue
        weight, bias = module.weight[0], module.bias
        fan_in = weight[0].numel()
        fan_out = weight.shape[0] * weight[0, 0].numel()
        bound = math.sqrt(6.0 / (fan_in + fan_out))
        if authors:
            default = (
                isinstance(module, StackedConv | ImplicitConv2d)
                or module.activation.name == "linear"
            )
            bound = 1 / math.sqrt(fan_in) if default else 0.1
        drawn.append(torch.empty(weight.shape).uniform_(-bound, bound, generator=generator))
        if bias is not None:
            drawn.append(torch.zeros(bias.shape[1:]))
            if authors:
                drawn[-1].uniform_(-bound, bound, generator=generator)
    return drawn


def fill_weights(model: nn.Module, by_seed: dict[int, list[Tensor]], seeds: Sequence[int]) -> None:
    """Give every member its seed's weights."""
    with torch.no_grad():
        for index, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.stack([by_seed[seed][index] for seed in seeds]))


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

    def used(self) -> tuple[Tensor, Tensor | None]:
        """Return `A w` and `A' b`."""
        bias = None if self.bias is None else _times(self.bias, self.bias_at)
        return _times(self.weight, self.at), bias

    def forward(self, input: Tensor) -> Tensor:
        """Return `(A w) x + A' b`."""
        return F.linear(input, *self.used())


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


class ScaledBatchNorm(nn.BatchNorm1d):
    """A BatchNorm whose vectors are as long as the width."""

    def __init__(self, width: int, scaling: Scaling) -> None:
        super().__init__(width)
        self.at = scaling.factor(INPUT)
        with torch.no_grad():
            self.weight.div_(self.at)

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows normed by the batch, or by what earlier batches had on average."""
        weight, bias = _times(self.weight, self.at), _times(self.bias, self.at)
        mean, var, share = self.running_mean, self.running_var, self.momentum or 0.0
        return F.batch_norm(x, mean, var, weight, bias, self.training, share, self.eps)


#: What may stand between a layer and its relus; a choice draws nothing, so the weights stay.
NORMS: dict[str, Callable[[int, Scaling], nn.Module]] = {
    "none": lambda width, scaling: nn.Identity(),
    "layer": ScaledLayerNorm,
    "batch": ScaledBatchNorm,
}


def _times(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1.0 else x * factor


# --- Rows as a network sees them


@dataclass(frozen=True, slots=True)
class Fed:
    """Rows as the network sees them."""

    x: Tensor
    y: Tensor

    def rows(self, chosen: Tensor) -> "Fed":
        """Return some of the rows."""
        there = chosen.to(self.x.device)
        return Fed(self.x[there], self.y[there])


def feed(split: Split, task: PaperTask, *, authors: bool, device: torch.device) -> Fed:
    """Return rows as the network sees them; an autoencoder's targets are its inputs."""
    x, y = split.x, split.y
    if x.dtype == torch.uint8:
        x = x.float()
        if task.family == "conv":
            x = x / 255 if not authors else (x / 255 - 0.1307) / 0.3081
        elif not authors:
            x = x / 255
    if task.family == "conv":
        side = math.isqrt(x[0].numel())
        x = x.view(-1, 1, side, side)
    else:
        x = x.flatten(1)
    y = x if task.targets == "input" else y
    return Fed(x.to(device), y.to(device))
