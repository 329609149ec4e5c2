"""A simple recurrent layer whose time steps are solved together after the backward pass."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ib_core.errors import InvalidSpec, MisuseError
from ib_core.kernels import compilable, time_loops
from ib_core.layers.implicit_linear import members_in_front
from ib_core.layers.record import ImplicitLayer, Record
from ib_core.updates import Activation


class ImplicitRNN(ImplicitLayer):
    """`h_t = sigma(weight [x_t, h_{t-1}] + bias)`, h_0 = 0.

    Its weight is one matrix [hidden, input + hidden], because a node's implicit problem is about
    all of its weights: `|z_t|^2` holds x_t, h_{t-1} and the bias's 1. Weights are shared along
    time; every time step has its own z, s and b, and how their steps merge is the batch rule's
    business, with rows = batch x time (`updates/node.py`).

    Args:
        input_size: Features of x_t.
        hidden_size: Units of h_t.
        activation: A name in `ib_core.updates.ALPHA_RULES`.
        bias: Whether the units have a bias.
        members: Number of stacked models, None for one plain layer.
        device: As in torch.
        dtype: As in torch.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        activation: str = "arctan",
        bias: bool = True,
        *,
        members: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.input_size, self.hidden_size = input_size, hidden_size
        super().__init__(
            input_size + hidden_size,
            hidden_size,
            activation,
            bias=bias,
            members=members,
            device=device,
            dtype=dtype,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return all hidden states.

        Args:
            x: [time, input] or [batch, time, input]; in a stack with the members in front,
                [members, batch, time, input].

        Returns:
            h_1 ... h_T, shaped as x with `hidden` in place of `input`.
        """
        plain = self.members is None
        if x.shape[-1] != self.input_size or x.dim() not in ((2, 3) if plain else (4,)):
            wanted = "[(batch,) time, input]" if plain else "[members, batch, time, input]"
            raise InvalidSpec(
                f"This layer reads {wanted} with {self.input_size} inputs; "
                f"got a tensor of shape {tuple(x.shape)}."
            )
        if torch._C._are_functorch_transforms_active():
            mapped: Tensor = _MappedRecurrent.apply(  # type: ignore[no-untyped-call]
                x, self.weight, self.bias, self
            )
            return mapped
        full = x if not plain else x.reshape(1, -1, *x.shape[-2:])
        if self.twice:
            h = _plain_states(full, self.weight, self.bias, self)
        elif torch.is_grad_enabled():
            h = _RecurrentPass.apply(  # type: ignore[no-untyped-call]
                full, self.weight, self.bias, self
            )
        else:
            h = _run(full, self.weight, self.bias, self)[1]
        return h.permute(1, 2, 0, 3).reshape(*x.shape[:-1], self.hidden_size)

    @torch.no_grad()
    def carry_on(self, x: Tensor, before: Tensor | None) -> Tensor:
        """Return the hidden states of a stack that has read earlier parts of the same pieces.

        Args:
            x: The next part, [members, batch, time, input].
            before: The state after the part before, [members, batch, hidden]; None is 0.
        """
        return _run(x, self.weight, self.bias, self, before)[1].permute(1, 2, 0, 3)


def _as_stack(weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """View one plain layer as a stack of one."""
    if weight.dim() == 3:
        return weight, bias
    return weight.unsqueeze(0), None if bias is None else bias.unsqueeze(0)


def _run(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    layer: ImplicitRNN,
    before: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return s and h in time-major order, both [time, members, batch, hidden].

    Products with x are done for all time steps at once; only the recurrent half is a loop.
    """
    weight, bias = _as_stack(weight, bias)
    members, batch, time, _ = x.shape
    inputs = torch.bmm(x.reshape(members, batch * time, -1), weight[..., : layer.input_size].mT)
    if bias is not None:
        inputs += bias.unsqueeze(-2)
    s = inputs.view(members, batch, time, -1).permute(2, 0, 1, 3).contiguous()
    recurrent = weight[..., layer.input_size :]
    if before is not None:
        s[0].baddbmm_(before, recurrent.mT)
    h = states(s, recurrent, layer.activation)
    return s, h


def _plain_states(x: Tensor, weight: Tensor, bias: Tensor | None, layer: ImplicitRNN) -> Tensor:
    """Return h as `_run` does, step by step in torch's own functions."""
    weight, bias = _as_stack(weight, bias)
    h, found = x.new_zeros(*x.shape[:2], layer.hidden_size).expand(len(weight), -1, -1), []
    for x_t in x.unbind(2):
        z = torch.cat([x_t.expand(len(weight), -1, -1), h], dim=-1)
        s = z @ weight.mT if bias is None else torch.baddbmm(bias.unsqueeze(1), z, weight.mT)
        h = layer.activation.value(s)
        found.append(h)
    return torch.stack(found)


class _RecurrentPass(torch.autograd.Function):
    """The unrolled layer as one node of the graph; outputs are time-major."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, layer: ImplicitRNN
    ) -> Tensor:
        s, h = _run(x, weight, bias, layer)
        ctx.save_for_backward(x, weight, s, h)
        ctx.layer, ctx.record = layer, None
        return h

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_h: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        x, weight, s, h = ctx.saved_tensors
        layer: ImplicitRNN = ctx.layer
        full, _ = _as_stack(weight, None)
        b, delta = _through_time(grad_h, s, full[..., layer.input_size :], layer)
        rows = [part.permute(1, 0, 2, 3).flatten(1, 2) for part in (s, b, delta)]
        z = _inputs_seen(x, h)
        if weight.dim() == 2:
            z, *rows = (part.squeeze(0) for part in (z, *rows))
        below = None
        if ctx.needs_input_grad[0]:
            below = torch.matmul(delta, full[..., : layer.input_size]).permute(1, 2, 0, 3)
        weight_grad = bias_grad = None
        if not layer.records_wanted:
            weight_grad = rows[2].mT @ z if ctx.needs_input_grad[1] else None
            bias_grad = rows[2].sum(-2) if ctx.needs_input_grad[2] else None
        elif ctx.record is None:
            ctx.record = Record(z, *rows)
            layer.records.append(ctx.record)
        else:
            ctx.record.add(rows[1], rows[2])
        return below, weight_grad, bias_grad, None


class _MappedRecurrent(torch.autograd.Function):
    """The layer while `torch.func.vmap` maps it over members; see `_MappedLinear`."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, layer: ImplicitRNN) -> Tensor:
        del x, weight, bias, layer
        raise MisuseError("Implicit layers can be mapped over members by vmap, and not otherwise.")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep nothing: the mapped pass keeps what it needs."""

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        layer: ImplicitRNN,
    ) -> tuple[Tensor, int]:
        """Return the states of all members, [members, (batch,) time, hidden]."""
        x = members_in_front(x, in_dims[0], info.batch_size)
        weight = members_in_front(weight, in_dims[1], info.batch_size)
        if bias is not None:
            bias = members_in_front(bias, in_dims[2], info.batch_size)
        full = x.unsqueeze(1) if x.dim() == 3 else x
        if layer.twice:
            h = _plain_states(full, weight, bias, layer)
        elif torch.is_grad_enabled():
            h = _RecurrentPass.apply(  # type: ignore[no-untyped-call]
                full, weight, bias, layer
            )
        else:
            h = _run(full, weight, bias, layer)[1]
        return h.permute(1, 2, 0, 3).reshape(*x.shape[:-1], layer.hidden_size), 0


def _through_time(
    grad_h: Tensor, s: Tensor, recurrent: Tensor, layer: ImplicitRNN
) -> tuple[Tensor, Tensor]:
    """Return b_t (what later time steps send back included) and delta_t, time-major."""
    b = grad_h.clone(memory_format=torch.contiguous_format)
    return b, deltas(b, layer.activation.slope(s), recurrent)


def _inputs_seen(x: Tensor, h: Tensor) -> Tensor:
    """Return z_t = [x_t, h_{t-1}] of every time step, [members, time * batch, input + hidden]."""
    before = torch.cat([torch.zeros_like(h[:1]), h[:-1]]).permute(1, 0, 2, 3)
    z = torch.cat([x.transpose(1, 2).expand(before.shape[0], -1, -1, -1), before], dim=-1)
    return z.flatten(1, 2)


#: Activations that torch can write where the next time step reads them.
_WRITES: dict[str, Callable[..., Tensor]] = {
    "arctan": torch.atan,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
#: Up to so many pieces at once the compiled loops are faster: measured at 300 units.
MOST_PIECES = 2


def states(s: Tensor, recurrent: Tensor, activation: Activation) -> Tensor:
    """Return h and complete s, both [time, members, batch, hidden].

    Args:
        s: What the inputs add up to; what the states before add is added in place.
        recurrent: The weights that read the states before, [members, hidden, hidden].
        activation: Its value is the next state.
    """
    h, matrix = torch.empty_like(s), recurrent.mT
    loops = _loops(s, recurrent) if activation.name == "arctan" else None
    if loops is not None:
        matrix = matrix.contiguous()
        loops[0](s.data_ptr(), h.data_ptr(), matrix.data_ptr(), *s.shape)
        return h
    write, before = _WRITES.get(activation.name), None
    for s_t, h_t in zip(s.unbind(), h.unbind(), strict=True):
        if before is not None:
            s_t.baddbmm_(before, matrix)
        if write is None:
            h_t.copy_(activation.value(s_t))
        else:
            write(s_t, out=h_t)
        before = h_t
    return h


def deltas(b: Tensor, slope: Tensor, recurrent: Tensor) -> Tensor:
    """Return delta and complete b: what later time steps send back is added in place.

    Args:
        b: Gradient of the loss at the states, [time, members, batch, hidden].
        slope: The activation's slope, likewise.
        recurrent: As for `states`.
    """
    delta = torch.empty_like(b)
    loops = _loops(b, recurrent)
    if loops is not None:
        slope, matrix = slope.contiguous(), recurrent.contiguous()
        addresses = (part.data_ptr() for part in (b, slope, delta, matrix))
        loops[1](*addresses, *b.shape)
        return delta
    later = None
    steps = zip(b.unbind(), slope.unbind(), delta.unbind(), strict=True)
    for b_t, slope_t, delta_t in reversed(list(steps)):
        if later is not None:
            b_t.baddbmm_(later, recurrent)
        torch.mul(b_t, slope_t, out=delta_t)
        later = delta_t
    return delta


def _loops(s: Tensor, recurrent: Tensor) -> tuple[Callable[..., None], Callable[..., None]] | None:
    """Return the compiled loops if they are to go through these tensors."""
    fits = s.shape[2] <= MOST_PIECES and s.is_contiguous()
    return time_loops() if fits and compilable(s, recurrent) else None
