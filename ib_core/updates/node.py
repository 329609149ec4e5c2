"""A node: its activation, what a rule reads off it to solve eq. (8), and a batch's step, eq. (7).

Rules are memory-bound: what they cost is the number of passes over ``[..., batch, out]``. So the
quantities that belong to a row are formed here on ``[..., batch, 1]``, where they are almost free,
and branches are written without ``torch.where``, which takes some 25 times as long as a product.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

Scalar = float | Tensor


class AlphaRule(Protocol):
    """Solves eq. (8) for every node of a layer and every row of a batch at once."""

    def __call__(self, s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0) -> Tensor:
        """Return alpha, of the dtype of ``s`` and the shape the arguments broadcast to.

        ``lr*|z|^2 = 0`` gives the explicit alpha, b = 0 gives 0, NaN in any argument gives NaN.

        Args:
            s: theta^T z before the step, [..., batch, out].
            b: Gradient of the loss at the node's output, [..., batch, out].
            z_sq: Squared norm of the layer's input, bias included, [..., batch, 1].
            lr: Learning rate, a number or a tensor that broadcasts, such as [members, 1, 1].
            mu: Ridge strength, likewise.
        """
        ...


@dataclass(frozen=True)
class Activation:
    """An element-wise function sigma, exactly as torch and its autograd have it.

    Attributes:
        name: Its name in `ACTIVATIONS`.
        value: sigma(s).
        gradient: (s, b) -> sigma'(s)*b, as autograd computes it, in a hinge too, without a graph.
        slope_range: The lowest and the highest slope on the whole line.
        alpha: The rule that solves eq. (8) for it.
    """

    name: str
    value: Callable[[Tensor], Tensor]
    gradient: Callable[[Tensor, Tensor], Tensor]
    slope_range: tuple[float, float]
    alpha: AlphaRule

    @property
    def monotone(self) -> bool:
        """Whether sigma never falls, so that alpha is 0 or has the sign of b."""
        return self.slope_range[0] >= 0

    def slope(self, s: Tensor) -> Tensor:
        """Return sigma'(s)."""
        return self.gradient(s, torch.ones_like(s))


class Node(NamedTuple):
    """The four quantities of eq. (8), broadcast against each other and of one dtype.

    Attributes:
        s: theta^T z before the step, in the full shape of the result.
        b: Gradient of the loss at the node's output, in the full shape of the result.
        k: lr*|z|^2, how far one unit of alpha moves the pre-activation; finite unless NaN.
        shrink: 1 + lr*mu, the ridge's shrinkage; the float 1.0 when there is no ridge.
    """

    s: Tensor
    b: Tensor
    k: Tensor
    shrink: Scalar


def read_node(s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar) -> Node:
    """Return the terms of eq. (8) for tensors that broadcast, in the dtype of ``s``."""
    k = (lr * z_sq).to(s.dtype).clamp(max=torch.finfo(s.dtype).max)
    shrink = _shrinkage(lr, mu, s)
    rows = (k, shrink) if isinstance(shrink, Tensor) else (k,)
    full_s, full_b, *_ = torch.broadcast_tensors(s, b.to(s.dtype), *rows)
    return Node(full_s, full_b, k, shrink)


def _shrinkage(lr: Scalar, mu: Scalar, s: Tensor) -> Scalar:
    if isinstance(mu, Tensor) or mu != 0:
        shrink = 1 + lr * mu
        return shrink.to(s.dtype) if isinstance(shrink, Tensor) else shrink
    return 1.0


def divided_(x: Tensor, shrink: Scalar) -> Tensor:
    """Divide ``x`` in place by the shrinkage; without a ridge nothing is touched."""
    return x if isinstance(shrink, float) and shrink == 1.0 else x.div_(shrink)


def reciprocal_travel(k: Tensor) -> Tensor:
    """Return 1/k with 1/0 made finite, so that 0 * (1/k) is 0 where the layer's input is zero."""
    return k.reciprocal().clamp_(max=torch.finfo(k.dtype).max)


def keep_where_positive_(x: Tensor, gate: Tensor) -> Tensor:
    """Set ``x`` to 0 where ``gate <= 0``, in place; a NaN gate keeps ``x``, so NaN survives."""
    kept: Tensor = torch.ops.aten.threshold_backward.grad_input(x, gate, 0.0, grad_input=x)
    return kept


# --- From the nodes of a batch to the step of a layer's weights, eq. (7), and its clipping
#
# The paper defines the step for one data point. Two rules extend it to many rows, and because
# alpha is not linear in b they differ:
#
# * **own**: every row solves its own problem and the rows' steps are averaged. With a mean loss
#   each b arrives divided by the number of rows, so it is multiplied back before the solve.
# * **share**: every row's alpha is solved from b as it comes, and the steps are summed.
#
# Both are `alpha(scale * b) / scale`, summed over the rows: `scale` is the number of rows for
# own under a mean loss, and 1 otherwise (a summed loss already hands every row its own b, and
# its steps add up as its gradients do). Along time in a recurrent layer the rows are batch x time.
#
# In eq. (8) only the product of b and |z|^2 decides where the step lands: with a = scale * a',
# scale * b * sigma(c - a k) + h k a^2 / 2 is scale times the same problem with b and scale * k. So
# rules are given b as it is and |z|^2 times the scale, which is a number a row instead of one a
# node.

#: Added to a norm before it is divided by, as torch's own clipping does.
ALMOST_NOTHING = 1e-6


def rows_scale(batch_rule: str, reduction: str, rows: int) -> float:
    """Return what b must be multiplied with before the solve (and alpha divided by after it)."""
    return float(rows) if batch_rule == "own" and reduction == "mean" else 1.0


def batch_alpha(
    rule: AlphaRule, s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar, *, scale: Scalar
) -> Tensor:
    """Return alphas whose plain sum over rows is the batch's step, [..., rows, out].

    Args:
        rule: The activation's rule.
        s: Pre-activation, [..., rows, out].
        b: Gradient of the loss at the output, as the backward pass gives it.
        z_sq: |z|^2, [..., rows, 1].
        lr: Learning rate, a number or [members, 1, 1].
        mu: Ridge, likewise.
        scale: `rows_scale`, a number or [members, 1, 1].
    """
    return rule(s, b, z_sq * scale, lr, mu)


def global_norm(norms: Sequence[Tensor]) -> Tensor:
    """Return the norm over all parameters together, given each one's: [] or [members]."""
    norm: Tensor = torch.linalg.vector_norm(torch.stack(list(norms)), dim=0)
    return norm


def clip_factor(norms: Sequence[Tensor], clip: Scalar) -> Tensor:
    """Return what a step is multiplied with so that its global norm is at most `clip`."""
    return (clip / (global_norm(norms) + ALMOST_NOTHING)).clamp(max=1.0)
