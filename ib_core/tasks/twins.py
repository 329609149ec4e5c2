"""Layers of torch's as they can be stacked: the same weights, other steps (`make_stackable`).

Under `vmap` torch's fused recurrent layers go through one member after another, or not at all.
Written as a loop over time, every step is a handful of products for all members at once. An LSTM's
loop has its backward pass written out as well (`LSTMSteps`): what does not depend on the next time
step is made for all of them at once, and the weights' gradients are one product each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ib_core.errors import MisuseError
from ib_core.kernels import compilable, of_stack, stack_loops
from ib_core.tasks.networks import ScaledLinear

#: h of one layer and direction, and c of an LSTM.
State = tuple[Tensor, ...]


class _Loop(nn.RNNBase):
    """`nn.LSTM`, `nn.GRU` or `nn.RNN` with the same parameters and arguments, unrolled in Python.

    It is never made, only put on: `module.__class__ = LoopLSTM`.
    """

    #: How many tensors a state has.
    parts = 1
    #: Whether somebody wants second derivatives (`ib_core.layers.twice_differentiable`).
    twice = False

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


class LSTMSteps(torch.autograd.Function):
    """An LSTM's layer for a stack, with its backward pass; `LoopLSTM.cell` is its slow twin.

    With `i, f, o` squashed by the sigmoid and `g` by tanh, all of `W x_t + U h_{t-1} + bias`:
    `c_t = f c_{t-1} + i g` and `h_t = o tanh(c_t)`.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return all h [members, time, batch, hidden] and the last c.

        Args:
            ctx: Kept for the backward pass.
            x: [members, time, batch, inputs].
            weight: W, [members, 4 hidden, inputs].
            recurrent: U, [members, 4 hidden, hidden].
            bias: [members, 4 hidden].
            h: The first, [members, batch, hidden].
            c: Likewise.
        """
        members, time, batch, _ = x.shape
        hidden = h.shape[-1]
        # Rows stay in the order in which they come: [time, batch], or turned around.
        ctx.turned = x.transpose(1, 2).is_contiguous()
        rows = _flat(x, ctx.turned)
        gates = torch.baddbmm(bias.unsqueeze(1), rows, weight.mT)
        gates = _unflat(gates, time, batch, ctx.turned)
        hs, cs, squashed = (
            _unflat(x.new_empty(members, steps * batch, hidden), steps, batch, ctx.turned)
            for steps in (time + 1, time + 1, time)
        )
        hs[:, 0], cs[:, 0] = h, c
        turned, before = recurrent.mT, x.new_empty(members, batch, 4 * hidden)
        each = zip(gates.unbind(1), squashed.unbind(1), strict=True)
        h_all, c_all = hs.unbind(1), cs.unbind(1)
        step = _step(gates, before, cs, squashed)
        for t, (now, tanh_c) in enumerate(each):
            torch.bmm(h_all[t], turned, out=before)
            step(now, before, c_all[t], c_all[t + 1], tanh_c, h_all[t + 1])
        ctx.save_for_backward(rows, weight, recurrent, gates, hs, cs, squashed)
        return hs[:, 1:].clone(), c_all[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh_all: Tensor, dc: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by x, both weights, the bias and the first state."""
        rows, weight, recurrent, gates, hs, cs, squashed = ctx.saved_tensors
        time, batch = squashed.shape[1:3]
        deltas = torch.empty_like(gates)
        dh, dc = torch.zeros_like(dc), dc.clone(memory_format=torch.contiguous_format)
        dh_all = dh_all if dh_all.stride(-1) == 1 else dh_all.contiguous()
        step = _step_back(gates, cs, squashed, dh, dh_all)
        # Step by step, so that all that is made of one step's gates is made while they are at hand.
        for t in range(time - 1, -1, -1):
            part = deltas[:, t]
            step(gates[:, t], cs[:, t], squashed[:, t], dh, dh_all[:, t], dc, part)
            torch.bmm(part, recurrent, out=dh)
        deltas, before = _flat(deltas, ctx.turned), _flat(hs[:, :-1], ctx.turned)
        dx = None
        if ctx.needs_input_grad[0]:
            dx = _unflat(torch.bmm(deltas, weight), time, batch, ctx.turned)
        by_weight, by_recurrent = torch.bmm(deltas.mT, rows), torch.bmm(deltas.mT, before)
        return dx, by_weight, by_recurrent, deltas.sum(1), dh, dc


#: Writes what one time step makes of others; every tensor is one step's.
Step = Callable[..., None]


def _step(*alike: Tensor) -> Step:
    """Return what takes a step forward, for tensors [..., batch, numbers] that lie like these."""
    return _compiled_step(0, *alike) or _torch_step


def _step_back(*alike: Tensor) -> Step:
    return _compiled_step(1, *alike) or _torch_step_back


def _compiled_step(way: int, *alike: Tensor) -> Step | None:
    """Return a kernel's step, of tensors that lie like these; None if it is not here."""
    whole = alike[0].shape[-1] % (4 * LANES) == 0
    loops = stack_loops("lstm") if whole and compilable(*alike) else None
    if loops is None:
        return None
    apart = [length for x in alike for length in (x.stride(0), x.stride(-2))]
    steps, (members, *_, batch, _) = (ctypes.c_int64 * len(apart))(*apart), alike[0].shape
    lengths = (members, batch, alike[0].shape[-1] // 4)

    def step(*parts: Tensor) -> None:
        loops[way](*(part.data_ptr() for part in parts), ctypes.addressof(steps), *lengths)

    return step


def _torch_step(
    now: Tensor, before: Tensor, c: Tensor, next_c: Tensor, tanh_c: Tensor, next_h: Tensor
) -> None:
    """Squash the gates, and write the next c, its tanh, and the next h."""
    hidden = c.shape[-1]
    # Added apart: `now` is cut out of a larger block, and into such a one torch multiplies member
    # by member.
    now.add_(before)
    now[..., : 2 * hidden].sigmoid_()
    _tanh(now[..., 2 * hidden : 3 * hidden], now[..., 2 * hidden : 3 * hidden])
    now[..., 3 * hidden :].sigmoid_()
    i, f, g, o = now.split(hidden, -1)
    torch.mul(f, c, out=next_c).addcmul_(i, g)
    _tanh(next_c, tanh_c)
    torch.mul(o, tanh_c, out=next_h)


def _torch_step_back(
    now: Tensor, c: Tensor, tanh_c: Tensor, dh: Tensor, more: Tensor, dc: Tensor, part: Tensor
) -> None:
    """Write the gradients by the gates before they were squashed; dc becomes the step before's."""
    hidden = c.shape[-1]
    i, f, g, o = now.split(hidden, -1)
    by_h = dh + more
    torch.addcmul(now, now, now, value=-1, out=part)  # sigmoids': s (1 - s)
    by_i, by_f, by_g, by_o = part.split(hidden, -1)
    torch.mul(g, g, out=by_g).neg_().add_(1.0)
    by_i.mul_(g)
    by_f.mul_(c)
    by_g.mul_(i)
    by_o.mul_(tanh_c).mul_(by_h)
    dc.addcmul_(by_h.mul_(o), 1 - tanh_c * tanh_c)
    part[..., : 3 * hidden].unflatten(-1, (3, hidden)).mul_(dc.unsqueeze(-2))
    dc.mul_(f)


def _flat(x: Tensor, turned: bool) -> Tensor:
    """Return [members, time, batch, ...] as [members, rows, ...]."""
    return (x.transpose(1, 2) if turned else x).flatten(1, 2)


def _unflat(rows: Tensor, time: int, batch: int, turned: bool) -> Tensor:
    """Return rows as [members, time, batch, ...]."""
    shape, side = (batch, time) if turned else (time, batch), rows.shape[-1]
    apart = rows.view(len(rows), *shape, side)
    return apart.transpose(1, 2) if turned else apart


def _tanh(x: Tensor, out: Tensor) -> None:
    """Write `tanh x = e / (e + 2)`, e = exp(2x) - 1: twice as fast as torch's, as right to 2e-7."""
    e = (x * 2).expm1_().clamp_(max=_LARGE)
    torch.div(e, e + 2, out=out)


#: Of an e larger than this tanh is 1; infinity over infinity would be nothing.
_LARGE = 1e30


class Mapped(torch.autograd.Function):
    """What a member of a stack asks for and all members get at once; only `vmap` calls it."""

    @staticmethod
    def forward(*_: Any) -> Any:
        """Refuse: outside of a stack torch's own is as good or better."""
        raise MisuseError("This is a step of a stack; one model alone takes torch's own.")

    @staticmethod
    def setup_context(*_: Any) -> None:
        """Keep nothing."""


class _OfOneMember(Mapped):
    """`LSTMSteps` as one member sees it, [time, batch, ...]."""

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *args: Tensor) -> Any:
        """Return the steps of all members."""
        stacked = [
            one.expand(info.batch_size, *one.shape) if dim is None else one.movedim(dim, 0)
            for one, dim in zip(args, dims, strict=True)
        ]
        return LSTMSteps.apply(*stacked), (0, 0)  # type: ignore[no-untyped-call]


class LoopLSTM(_Loop):
    """`nn.LSTM`."""

    parts = 2

    def _unrolled(self, x: Tensor, state: State, place: str) -> tuple[Tensor, State]:
        """Return one layer's states in the order of time, and the last."""
        weight, recurrent = (getattr(self, f"weight_{kind}_{place}") for kind in ("ih", "hh"))
        if self.twice or not torch._C._functorch.is_batchedtensor(recurrent):
            return super()._unrolled(x, state, place)
        bias = weight.new_zeros(weight.shape[0])
        if self.bias:
            bias = getattr(self, f"bias_ih_{place}") + getattr(self, f"bias_hh_{place}")
        backwards = place.endswith("_reverse")
        x = x.flip(0) if backwards else x
        out, c = of_stack(_OfOneMember, x, weight, recurrent, bias, *state)
        return out.flip(0) if backwards else out, (out[-1], c)

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


#: What a processor multiplies at once; other sides leave some of it idle, long ones next to none.
LANES = 16
#: Layers that want the rows first, and would turn everything around.
_ROWS_FIRST = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


class _OfRows(Mapped):
    """`x W^T + b` as one member sees it, one product a member.

    Torch would make the product and then another block of the same size for what the bias adds.
    """

    @staticmethod
    def vmap(info: Any, dims: tuple[int, ...], *args: Tensor) -> tuple[Tensor, int]:
        """Return the outputs of all members."""
        del info
        x, weight, bias = (one.movedim(dim, 0) for one, dim in zip(args, dims, strict=True))
        return torch.baddbmm(bias.unsqueeze(1), x, weight.mT), 0


class RowsLinear(nn.Linear):
    """`nn.Linear` as one product of all rows, however many dimensions stand before them.

    Never made, only put on. Under `vmap` torch repeats the weights for every leading index. Where
    features are few, the outputs lie in memory with the rows last, of which there are enough to
    keep a processor busy: 13 features of 100 rows take half the time.
    """

    rows_last = False

    def used(self) -> tuple[Tensor, Tensor | None]:
        """Return the weight and the bias that rows are multiplied by."""
        return self.weight, self.bias

    def forward(self, input: Tensor) -> Tensor:
        """Return the outputs, of the same shape but for the last side."""
        weight, bias = self.used()
        if input.dim() == 2 and self.rows_last and len(input) >= LANES:
            out = torch.matmul(weight, input.mT)
            return (out if bias is None else out.add_(bias.unsqueeze(1))).mT
        rows = input.flatten(0, -2) if input.dim() > 2 else input
        is_mapped = torch._C._functorch.is_batchedtensor
        if bias is not None and rows.dim() == 2 and all(map(is_mapped, (rows, weight, bias))):
            out = of_stack(_OfRows, rows, weight, bias)
        else:
            out = F.linear(rows, weight, bias)
        return out.unflatten(0, input.shape[:-1]) if input.dim() > 2 else out


class RowsScaledLinear(ScaledLinear, RowsLinear):
    """`ScaledLinear` likewise."""

    used = ScaledLinear.used
    forward = RowsLinear.forward


def _is_narrow(layer: nn.Linear) -> bool:
    sides = (layer.in_features, layer.out_features)
    return sides[1] > 1 and min(sides) < 2 * LANES and any(side % LANES for side in sides)


_TWINS: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: RowsLinear,
    ScaledLinear: RowsScaledLinear,
    nn.LSTM: LoopLSTM,
    nn.GRU: LoopGRU,
    nn.RNN: LoopRNN,
}


def _states(hx: Any, batched: bool) -> State:
    """Return given states as [layers, batch, hidden] each."""
    parts = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
    return parts if batched else tuple(part.unsqueeze(1) for part in parts)


def make_stackable(model: nn.Module, *, rows_last: bool = True) -> None:
    """Put a twin on every layer of torch's that it could not stack well."""
    rows_last &= not any(isinstance(module, _ROWS_FIRST) for module in model.modules())
    for module in model.modules():
        twin = _TWINS.get(type(module))
        if twin is not None and not getattr(module, "proj_size", 0):
            module.__class__ = twin
        if isinstance(module, RowsLinear):
            module.rows_last = rows_last and _is_narrow(module)
