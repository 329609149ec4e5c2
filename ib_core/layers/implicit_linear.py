"""Layers with a named activation that can take the implicit step: linear, and convolutions."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ib_core.errors import InvalidSpec, MisuseError, lookup
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


#: One row a member, as with batches of one, is handed down as a row times a matrix, which is ten
#: times quicker than the transposed product. Where a matrix's rows are whole vectors of the
#: processor both add up in the same order, to the same bits; elsewhere they would not.
ALIGNED = 4


def _handed_down(delta: Tensor, weight: Tensor) -> Tensor:
    """Return the gradient at the layer's input, laid out as `affine` lays out its result."""
    if weight.dim() == 3 and weight.shape[0] > 1:
        if delta.shape[-2] == 1 and weight.shape[-1] % ALIGNED == 0:
            return torch.bmm(delta, weight)
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


# --- A convolution is linear as well: every position is a row, its patch is z


Pair = tuple[int, int]
#: As torch names them, for layers and for `pad` alike.
PADDING_MODES = {mode: mode for mode in ("zeros", "reflect", "replicate", "circular")}


class ImplicitConv2d(ImplicitLinear):
    """`sigma(weight * x + bias)`: a drop-in for `nn.Conv2d` followed by its activation.

    A filter is a node whose input z is the patch under it, so a convolution is a dense layer
    whose rows are the positions of all images (App. B). The filter is shared by its positions as
    a recurrent layer's weights are by time steps, and how their steps merge is the batch rule's
    business, with rows = images x positions. Its state dict is that of `nn.Conv2d`. Pool the
    result, not the pre-activation; for a rising activation the two are the same.

    Args:
        in_channels: Of the images.
        out_channels: Number of filters.
        kernel_size: Height and width of a filter, or one number for both.
        activation: A name in `ib_core.updates.ALPHA_RULES`; `"linear"` for none.
        bias: Whether the filters have a bias.
        stride: As in torch.
        padding: As in torch, in numbers.
        dilation: As in torch.
        padding_mode: As in torch, what stands beyond the images' edges.
        groups: Only 1: a filter that sees some channels is a node of another layer.
        members: Number of stacked models, None for one plain layer.
        device: As in torch.
        dtype: As in torch.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Pair,
        activation: str = "relu",
        bias: bool = True,
        *,
        stride: int | Pair = 1,
        padding: int | Pair = 0,
        dilation: int | Pair = 1,
        padding_mode: str = "zeros",
        groups: int = 1,
        members: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if groups != 1:
            raise InvalidSpec(
                f"An implicit convolution takes groups=1; got {groups}. Use several layers side by "
                "side, or nn.Conv2d, which steps explicitly."
            )
        self.kernel_size = _pair("kernel_size", kernel_size, least=1)
        self.stride = _pair("stride", stride, least=1)
        self.padding = _pair("padding", padding, least=0)
        self.dilation = _pair("dilation", dilation, least=1)
        self.padding_mode = lookup("padding mode", padding_mode, PADDING_MODES)
        self.in_channels = in_channels
        patch = in_channels * self.kernel_size[0] * self.kernel_size[1]
        super().__init__(
            patch, out_channels, activation, bias, members=members, device=device, dtype=dtype
        )
        shape = (*self.weight.shape[:-1], in_channels, *self.kernel_size)
        self.weight = nn.Parameter(self.weight.detach().view(shape))

    @property
    def matrix(self) -> Tensor:
        """The filters as the matrix that multiplies patches, [..., out, in]."""
        return self.weight.flatten(-3)

    def forward(self, x: Tensor) -> Tensor:
        """Map [images, channels, height, width] to the filters' responses.

        In a stack the members stand in front, [members, images, channels, height, width].
        """
        wanted = 4 if self.members is None else 5
        if x.dim() != wanted or x.shape[-3] != self.in_channels:
            stack = "" if self.members is None else "members, "
            raise InvalidSpec(
                f"This layer reads [{stack}images, {self.in_channels}, height, width]; got a "
                f"tensor of shape {tuple(x.shape)}."
            )
        x, padding = self._padded(x)
        recorded = torch.is_grad_enabled() and self.records_wanted and not self.twice
        if self.members is None and not recorded:
            weight: Tensor = self.weight
            bias: Tensor | None = self.bias
            if weight.dim() == 5:  # a stack of one, made of a layer that knew of none
                weight, bias = weight[0], None if bias is None else bias[0]
            s = F.conv2d(x, weight, bias, self.stride, padding, self.dilation)
            return self.activation.value(s)
        lead, (height, width) = x.shape[:-3], self._positions(x, padding)
        # Patches know no weights: a stack's members are images like others.
        patches = F.unfold(
            x.reshape(-1, *x.shape[-3:]), self.kernel_size, self.dilation, padding, self.stride
        )
        z = patches.mT.reshape(*lead[:-1], lead[-1] * height * width, self.in_features)
        out = self.through(z)
        out = out.reshape(*lead, height * width, self.out_features).mT
        return out.reshape(*lead, self.out_features, height, width)

    def _padded(self, x: Tensor) -> tuple[Tensor, Pair]:
        """Return the images with what is not zero beyond their edges, and the zeros to come."""
        if self.padding_mode == "zeros" or self.padding == (0, 0):
            return x, self.padding
        (height, width), images = self.padding, x.reshape(-1, *x.shape[-3:])
        padded = F.pad(images, (width, width, height, height), self.padding_mode)
        return padded.reshape(*x.shape[:-2], *padded.shape[-2:]), (0, 0)

    def _positions(self, x: Tensor, padding: Pair) -> Pair:
        sides = zip(
            x.shape[-2:], self.kernel_size, self.dilation, self.stride, padding, strict=True
        )
        height, width = (
            (size + 2 * pad - gap * (side - 1) - 1) // by + 1 for size, side, gap, by, pad in sides
        )
        if height < 1 or width < 1:
            raise InvalidSpec(
                f"Filters of {self.kernel_size[0]} x {self.kernel_size[1]} do not fit into images "
                f"of {x.shape[-2]} x {x.shape[-1]}."
            )
        return height, width

    def extra_repr(self) -> str:
        """Show sizes and activation, as torch's layers do."""
        stack = "" if self.members is None else f", members={self.members}"
        return (
            f"{self.in_channels}, {self.out_features}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"padding_mode={self.padding_mode!r}, "
            f"activation={self.activation.name!r}, bias={self.bias is not None}{stack}"
        )


def _pair(name: str, value: int | Pair, *, least: int) -> Pair:
    """Return a size along both sides."""
    sides = (value, value) if isinstance(value, int) else tuple(value)
    if len(sides) != 2 or any(not isinstance(n, int) or n < least for n in sides):
        raise InvalidSpec(f"{name} must be one or two whole numbers from {least}; got {value!r}.")
    return sides[0], sides[1]
