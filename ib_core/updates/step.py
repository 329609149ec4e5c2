"""From one layer's record to the step of its weights: eq. (7) for a batch.

The paper defines the step for one data point. Two rules extend it to many rows, and because
alpha is not linear in b they differ:

* **own**: every row solves its own problem and the rows' steps are averaged. With a mean loss
  each b arrives divided by the number of rows, so it is multiplied back before the solve.
* **share**: every row's alpha is solved from b as it comes, and the steps are summed.

Both are `alpha(scale * b) / scale`, summed over the rows: `scale` is the number of rows for
own under a mean loss, and 1 otherwise (a summed loss already hands every row its own b, and
its steps add up as its gradients do). Along time in a recurrent layer the rows are batch x time.

In eq. (8) only the product of b and |z|^2 decides where the step lands: with a = scale * a',
scale * b * sigma(c - a k) + h k a^2 / 2 is scale times the same problem with b and scale * k. So
rules are given b as it is and |z|^2 times the scale, which is a number a row instead of one a node.
"""

from typing import Protocol

import torch
from torch import Tensor

from ib_core.errors import MisuseError
from ib_core.updates.node import AlphaRule
from ib_core.updates.output_layer import softmax_cross_entropy_alpha, squared_error_alpha

Number = float | Tensor


class OutputAlpha(Protocol):
    """The exact alpha of a linear output layer under one loss (docs/method.md, section 3)."""

    def __call__(
        self,
        s: Tensor,
        b: Tensor,
        z_sq: Tensor,
        lr: Number,
        mu: Number,
        *,
        divisor: int,
        scale: Number,
    ) -> Tensor:
        """Return alphas whose plain sum over rows is the batch's step.

        `divisor` is what the loss divides every row's own loss by: the rows for a mean, else 1.
        """
        ...


def rows_scale(batch_rule: str, reduction: str, rows: int) -> float:
    """Return what b must be multiplied with before the solve (and alpha divided by after it)."""
    return float(rows) if batch_rule == "own" and reduction == "mean" else 1.0


def batch_alpha(
    rule: AlphaRule, s: Tensor, b: Tensor, z_sq: Tensor, lr: Number, mu: Number, *, scale: Number
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


def cross_entropy_output(
    s: Tensor, b: Tensor, z_sq: Tensor, lr: Number, mu: Number, *, divisor: int, scale: Number
) -> Tensor:
    """Return the exact alphas of a linear layer under torch's softmax cross-entropy.

    The targets are recovered from the gradient: `y = softmax(s) - divisor * b`.
    """
    y = torch.softmax(s, dim=-1).sub_(b * divisor)
    return softmax_cross_entropy_alpha(s, y, z_sq, lr, mu, scale / divisor) / scale


def squared_output(w: float | None) -> OutputAlpha:
    """Return the exact alphas' function under `w/2 |y - s|^2` per row, `y = s - divisor*b/w`.

    `w = None` stands for 2/outputs, which is torch's `mse_loss`.
    """

    def alpha(
        s: Tensor, b: Tensor, z_sq: Tensor, lr: Number, mu: Number, *, divisor: int, scale: Number
    ) -> Tensor:
        weight = 2.0 / s.shape[-1] if w is None else w
        y = s - b * (divisor / weight)
        return squared_error_alpha(s, y, z_sq, lr, mu, weight * scale / divisor) / scale

    return alpha


OUTPUT_ALPHAS: dict[str, OutputAlpha] = {
    "cross_entropy": cross_entropy_output,
    "squared_error": squared_output(None),
    "summed_squared_error": squared_output(2.0),
    "half_squared_error": squared_output(1.0),
}


def refuse_soft_targets(s: Tensor, b: Tensor, divisor: int) -> None:
    """Raise if the loss above `s` is not a plain cross-entropy with whole-number classes.

    A weighted or smoothed loss would be recovered as a wrong target and solved silently.
    Rows that are not finite say nothing and pass.
    """
    y = torch.softmax(s, dim=-1) - b * divisor
    off = (y - y.round()).abs().nan_to_num(0.0, 0.0, 0.0)
    if bool((off > 0.01).any()) or bool((y.nan_to_num(0.0, 0.0, 0.0).abs() > 1.01).any()):
        raise MisuseError(
            "output_loss='cross_entropy' needs a plain F.cross_entropy with class targets; the "
            "gradient here is that of a weighted, smoothed, scaled or differently reduced loss.",
            hint="Use output_loss=None, or the plain loss with the matching reduction.",
        )
