"""Recurrent layers that can be stacked: torch's own, with their weights, as loops over time.

Under `vmap` torch's fused ones go through one member after another, or not at all. Written as a
loop, every time step is a handful of products for all members at once.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: h of one layer and direction, and c of an LSTM.
State = tuple[Tensor, ...]


class _Loop(nn.RNNBase):
    """`nn.LSTM`, `nn.GRU` or `nn.RNN` with the same parameters and arguments, unrolled in Python.

    It is never made, only put on: `module.__class__ = LoopLSTM`.
    """

    #: How many tensors a state has.
    parts = 1

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Any]:
        """Return all outputs of the last layer, and the last state of every layer."""
        batched = input.dim() == 3
        x = input if batched else input.unsqueeze(0 if self.batch_first else 1)
        if self.batch_first:
            x = x.transpose(0, 1)
        starts = None if hx is None else _states(hx, batched)
        ends: list[State] = []
        directions = 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            sides = []
            for side in range(directions):
                place = layer * directions + side
                zeros = (x.new_zeros(x.shape[1], self.hidden_size),) * self.parts
                start = zeros if starts is None else tuple(part[place] for part in starts)
                out, end = self._unrolled(x, start, f"l{layer}{'_reverse' if side else ''}")
                sides.append(out)
                ends.append(end)
            x = torch.cat(sides, dim=-1) if directions == 2 else sides[0]
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        last = [torch.stack([end[part] for end in ends]) for part in range(self.parts)]
        out = x.transpose(0, 1) if self.batch_first else x
        if not batched:
            out = out.squeeze(0 if self.batch_first else 1)
            last = [part.squeeze(1) for part in last]
        return out, tuple(last) if self.parts == 2 else last[0]

    def _unrolled(self, x: Tensor, state: State, place: str) -> tuple[Tensor, State]:
        """Return one layer's states in the order of time, and the last."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if self.bias else 2]
        weight, recurrent, *biases = (getattr(self, f"{name}_{place}") for name in names)
        inputs = F.linear(x, weight, biases[0] if biases else None)
        steps: list[Tensor] = []
        backwards = place.endswith("_reverse")
        for now in reversed(inputs.unbind(0)) if backwards else inputs.unbind(0):
            before = F.linear(state[0], recurrent, biases[1] if biases else None)
            state = self.cell(now, before, state)
            steps.append(state[0])
        return torch.stack(steps[::-1] if backwards else steps), state

    def cell(self, now: Tensor, before: Tensor, state: State) -> State:
        """Return the next state, given what the input and the state before add up to."""
        squash = torch.tanh if getattr(self, "nonlinearity", "tanh") == "tanh" else torch.relu
        return (squash(now + before),)


class LoopLSTM(_Loop):
    """`nn.LSTM`."""

    parts = 2

    def cell(self, now: Tensor, before: Tensor, state: State) -> State:
        """Return the next h and c."""
        i, f, g, o = (now + before).chunk(4, dim=-1)
        c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class LoopGRU(_Loop):
    """`nn.GRU`."""

    def cell(self, now: Tensor, before: Tensor, state: State) -> State:
        """Return the next h."""
        (r, z, n), (r_before, z_before, n_before) = now.chunk(3, -1), before.chunk(3, -1)
        keep = (z + z_before).sigmoid()
        new = torch.tanh(n + (r + r_before).sigmoid() * n_before)
        return ((1 - keep) * new + keep * state[0],)


class LoopRNN(_Loop):
    """`nn.RNN`."""


_LOOPS: dict[type[nn.Module], type[_Loop]] = {
    nn.LSTM: LoopLSTM,
    nn.GRU: LoopGRU,
    nn.RNN: LoopRNN,
}


def _states(hx: Any, batched: bool) -> State:
    """Return given states as [layers, batch, hidden] each."""
    parts = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
    return parts if batched else tuple(part.unsqueeze(1) for part in parts)


def make_stackable(model: nn.Module) -> None:
    """Put the loop on every recurrent layer of torch's that it could not stack well."""
    for module in model.modules():
        loop = _LOOPS.get(type(module))
        if loop is not None and not getattr(module, "proj_size", 0):
            module.__class__ = loop
