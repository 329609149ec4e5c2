"""A linear layer with a named activation that can take the implicit step."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from ib_core.errors import InvalidSpec, MisuseError
from ib_core.layers.record import ImplicitLayer, Record


class ImplicitLinear(ImplicitLayer):
    """`sigma(weight z + bias)`: a drop-in for `nn.Linear` followed by its activation.

    Its state dict is that of `nn.Linear`. With `members=K` it is K such layers side by side,
    weight [K, out, in]; then the input is [K, ..., in], or [..., in] shared by all members
    through an explicit `expand`.

    Args:
        in_features: Size of the input z, without the bias's 1.
        out_features: Number of nodes.
        activation: A name in `ib_core.updates.ALPHA_RULES`; `"linear"` for none.
        bias: Whether the nodes have a bias.
        members: Number of stacked models, None for one plain layer.
        device: As in torch.
        dtype: As in torch.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        activation: str = "relu",
        bias: bool = True,
        *,
        members: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            activation,
            bias=bias,
            members=members,
            device=device,
            dtype=dtype,
        )

    def forward(self, z: Tensor) -> Tensor:
        """Return the nodes' outputs, [..., out]."""
        if z.shape[-1] != self.in_features:
            raise InvalidSpec(
                f"This layer reads {self.in_features} inputs; got a tensor of shape "
                f"{tuple(z.shape)}, whose last dimension is {z.shape[-1]}."
            )
        return self.through(z)

    def through(self, z: Tensor) -> Tensor:
        """Return the outputs for inputs of the right size."""
        if torch._C._are_functorch_transforms_active() and torch.is_grad_enabled():
            mapped: Tensor = _MappedLinear.apply(  # type: ignore[no-untyped-call]
                z, self.matrix, self.bias, self
            )
            return mapped
        alone = self.members in (None, 1)
        unheard = self.twice or (alone and not self.records_wanted)
        if unheard or not torch.is_grad_enabled():
            return self.activation.value(affine(z, self.matrix, self.bias))
        if alone:
            return self._recorded(z)
        out: Tensor = _LinearPass.apply(  # type: ignore[no-untyped-call]
            z, self.matrix, self.bias, self
        )
        return out

    def _recorded(self, z: Tensor) -> Tensor:
        """Return the outputs of a layer alone, listening for the gradient that comes to them.

        Torch's own functions do the rest, which is quicker than a pass written in Python.
        """
        s = affine(z, self.matrix.detach(), None if self.bias is None else self.bias.detach())
        if not s.requires_grad:
            s.requires_grad_()  # no layer below asks for a gradient, but the record does
        out = self.activation.value(s)
        # Detached: a hook that held its own tensor would keep it alive until the collector comes.
        record, seen = None, (z.detach(), s.detach())
        versions = [part._version for part in seen]

        def listen(b: Tensor) -> None:
            nonlocal record
            if [part._version for part in seen] != versions:
                raise MisuseError(
                    "The input or the pre-activation of an implicit layer was changed in place "
                    "before the backward pass, for example by ReLU(inplace=True)."
                )
            if record is None:
                record = Record(*(self._as_record(part) for part in (*seen, b)))
                self.records.append(record)
            else:
                record.add(self._as_record(b))

        out.register_hook(listen)
        return out

    def _as_record(self, part: Tensor) -> Tensor:
        """Return rows, [rows, n], in a stack of one [1, rows, n]."""
        lead = () if self.matrix.dim() == 2 else (1,)
        return part.reshape(*lead, -1, part.shape[-1])


def affine(z: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return `weight z + bias` for one layer or, member by member, for a stack.

    In a stack of several the result lies in memory as [members, out, rows]. With the small layers
    of a sweep, batched products and softmaxes over that layout are 4 to 15 times faster, and
    element-wise work keeps whatever layout it is given. A stack of one is an ordinary layer.
    """
    if weight.dim() == 2:
        return F.linear(z, weight, bias)
    if weight.shape[0] == 1:
        return F.linear(z, weight.squeeze(0), None if bias is None else bias.squeeze(0))
    rows = as_rows(z, stacked=True)
    if bias is None:
        s = torch.bmm(weight, rows.mT)
    else:
        s = torch.baddbmm(bias.unsqueeze(-1), weight, rows.mT)
    return s.mT if z.dim() == 3 else s.mT.reshape(*z.shape[:-1], weight.shape[-2])


def as_rows(tensor: Tensor, stacked: bool) -> Tensor:
    """Flatten everything between the member dimension and the last one, [members?, rows, n]."""
    if tensor.dim() == (3 if stacked else 2):
        return tensor
    return tensor.flatten(1, -2) if stacked else tensor.flatten(0, -2)


def _handed_down(delta: Tensor, weight: Tensor) -> Tensor:
    """Return the gradient at the layer's input, laid out as `affine` lays out its result."""
    if weight.dim() == 3 and weight.shape[0] > 1:
        return torch.bmm(weight.mT, delta.mT).mT
    return delta @ weight


class _LinearPass(torch.autograd.Function):
    """Forward and backward of a stack of layers as one node of the graph."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, weight: Tensor, bias: Tensor | None, layer: ImplicitLinear
    ) -> Tensor:
        s = affine(z, weight, bias)
        ctx.save_for_backward(z, weight, s)
        ctx.layer, ctx.record = layer, None
        return s if layer.activation.name == "linear" else layer.activation.value(s)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, b: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        z, weight, s = ctx.saved_tensors
        layer: ImplicitLinear = ctx.layer
        shape, stacked = z.shape, weight.dim() == 3
        z, s, b = (as_rows(part, stacked) for part in (z, s, b))
        delta = b if layer.activation.name == "linear" else layer.activation.gradient(s, b)
        below = None
        if ctx.needs_input_grad[0]:
            below = _handed_down(delta, weight).reshape(shape)
        weight_grad = bias_grad = None
        if not layer.records_wanted:
            weight_grad = delta.mT @ z if ctx.needs_input_grad[1] else None
            bias_grad = delta.sum(-2) if ctx.needs_input_grad[2] else None
        elif ctx.record is None:
            # Detached: a linear layer's s is its output, whose graph would hold this very record.
            ctx.record = Record(z.detach(), s.detach(), b, delta)
            layer.records.append(ctx.record)
        else:
            ctx.record.add(b, delta)
        return below, weight_grad, bias_grad, None


class _MappedLinear(torch.autograd.Function):
    """A layer of a user's model while `torch.func.vmap` maps it over the members of a stack.

    Hooks do not work there. But a function may say itself what it is over many members, and this
    layer has that: the pass of a stack.
    """

    @staticmethod
    def forward(z: Tensor, weight: Tensor, bias: Tensor | None, layer: ImplicitLinear) -> Tensor:
        del z, weight, bias, layer
        raise MisuseError("Implicit layers can be mapped over members by vmap, and not otherwise.")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep nothing: the mapped pass keeps what it needs."""

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        z: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        layer: ImplicitLinear,
    ) -> tuple[Tensor, int]:
        """Return the outputs of all members, [members, ..., out]."""
        z = members_in_front(z, in_dims[0], info.batch_size)
        weight = members_in_front(weight, in_dims[1], info.batch_size)
        if bias is not None:
            bias = members_in_front(bias, in_dims[2], info.batch_size)
        single = z.dim() == 2
        rows = z.unsqueeze(1) if single else z
        if layer.twice or not (layer.implicit and weight.requires_grad):
            out = layer.activation.value(_affine_of_stack(rows, weight, bias))
        else:
            out = _LinearPass.apply(  # type: ignore[no-untyped-call]
                rows, weight, bias, layer
            )
        return (out.squeeze(1) if single else out), 0


def _affine_of_stack(z: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    rows = as_rows(z, stacked=True)
    s = rows @ weight.mT if bias is None else torch.baddbmm(bias.unsqueeze(1), rows, weight.mT)
    return s.reshape(*z.shape[:-1], weight.shape[-2])


def members_in_front(tensor: Tensor, place: int | None, members: int) -> Tensor:
    """Return a tensor with the members in front; one that all share is looked at K times."""
    if place is None:
        return tensor.expand(members, *tensor.shape)
    return tensor.movedim(place, 0)
