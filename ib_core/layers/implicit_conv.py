"""A convolution that can take the implicit step: every position is a row, its patch is z."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core.errors import InvalidSpec
from ib_core.layers.implicit_linear import ImplicitLinear

Pair = tuple[int, int]


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
        recorded = torch.is_grad_enabled() and self.records_wanted and not self.twice
        if self.members is None and not recorded:
            weight: Tensor = self.weight
            bias: Tensor | None = self.bias
            if weight.dim() == 5:  # a stack of one, made of a layer that knew of none
                weight, bias = weight[0], None if bias is None else bias[0]
            return self.activation.value(F.conv2d(x, weight, bias, self.stride, self.padding))
        lead, (height, width) = x.shape[:-3], self._positions(x)
        # Patches know no weights: a stack's members are images like others.
        patches = F.unfold(
            x.reshape(-1, *x.shape[-3:]), self.kernel_size, 1, self.padding, self.stride
        )
        z = patches.mT.reshape(*lead[:-1], lead[-1] * height * width, self.in_features)
        out = self.through(z)
        out = out.reshape(*lead, height * width, self.out_features).mT
        return out.reshape(*lead, self.out_features, height, width)

    def _positions(self, x: Tensor) -> Pair:
        sizes = zip(x.shape[-2:], self.kernel_size, self.stride, self.padding, strict=True)
        height, width = ((size + 2 * pad - side) // by + 1 for size, side, by, pad in sizes)
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
            f"stride={self.stride}, padding={self.padding}, "
            f"activation={self.activation.name!r}, bias={self.bias is not None}{stack}"
        )


def _pair(name: str, value: int | Pair, *, least: int) -> Pair:
    """Return a size along both sides."""
    sides = (value, value) if isinstance(value, int) else tuple(value)
    if len(sides) != 2 or any(not isinstance(n, int) or n < least for n in sides):
        raise InvalidSpec(f"{name} must be one or two whole numbers from {least}; got {value!r}.")
    return sides[0], sides[1]
