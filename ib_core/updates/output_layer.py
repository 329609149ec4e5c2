"""Exact implicit updates of a linear output layer, for method `ib_plus`.

The paper linearises the loss above every layer, so its last layer still takes explicit steps.
Under a linear output layer the loss itself can stay: with ``k = lr*|z|^2`` and ``h = 1 + lr*mu``
a row of outputs moves from s to the q that minimises ``k*loss(q) + h/2*|q - s/h|^2``, and
``alpha = loss'(q)/h``.

`OUTPUT_ALPHAS` solves whole batches under torch's losses, whose targets are recovered from the
gradient; the two `_alpha` functions solve rows whose targets are known.
"""

import math
from typing import Protocol

import torch
from torch import Tensor

from ib_core.errors import MisuseError
from ib_core.kernels import NEWTON_STEPS, newton_steps, solved_output
from ib_core.updates.node import Scalar


@torch.no_grad()
def squared_error_alpha(
    s: Tensor, y: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0, weight: Scalar = 1.0
) -> Tensor:
    """Return the alpha of the loss ``weight/2 * |y - q|^2``, in closed form.

    ``q = (s + k*w*y)/(h + k*w)``, so ``alpha = w*(q - y)/h = (s - h*y) * w/(h + k*w)/h``.

    Args:
        s: Outputs before the step, [..., batch, out].
        y: Targets, [..., batch, out].
        z_sq: Squared norm of the layer's input, bias included, [..., batch, 1].
        lr: Learning rate, a number or a tensor that broadcasts.
        mu: Ridge strength, a number or a tensor that broadcasts.
        weight: w, a number or a tensor that broadcasts; 2/out for torch's mean squared error.
    """
    shrink = 1 + lr * mu
    factor = weight / (shrink + lr * z_sq * weight) / shrink
    return torch.mul(s - shrink * y, factor).to(s.dtype)


@torch.no_grad()
def softmax_cross_entropy_alpha(
    s: Tensor, y: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0, weight: Scalar = 1.0
) -> Tensor:
    """Return the alpha of the loss ``weight`` times softmax cross-entropy.

    ``alpha = w*(softmax(q) - y)/h`` where q is the one solution of
    ``h*q = s - k*w*(softmax(q) - y)``.

    Args:
        s: Logits before the step, [..., batch, classes].
        y: Target probabilities, [..., batch, classes].
        z_sq: Squared norm of the layer's input, bias included, [..., batch, 1].
        lr: Learning rate, a number or a tensor that broadcasts to [..., batch, 1].
        mu: Ridge strength, likewise.
        weight: w >= 0, likewise.
    """
    dtype = s.dtype if s.dtype in NEWTON_STEPS else torch.float32
    shrink = 1 + lr * mu
    rho = torch.as_tensor(lr * z_sq * weight / shrink).to(dtype)
    c, targets, rho = torch.broadcast_tensors(s.to(dtype) / shrink, y.to(dtype), rho)
    classes = c.shape[-1]
    # Classes first: sums over classes and factors per row then run along whole vectors of rows.
    excess = _softmax_excess(
        c.reshape(-1, classes).to(dtype).T.contiguous(),
        targets.reshape(-1, classes).T.contiguous(),
        rho[..., 0].reshape(-1),
    )
    alpha = torch.mul(excess.T.reshape(c.shape), weight / shrink)
    return alpha.to(s.dtype).contiguous()


def _softmax_excess(c: Tensor, y: Tensor, rho: Tensor) -> Tensor:
    """Return ``p - y`` for ``p = softmax(q)``, ``q = c - rho*(p - y)``; classes first.

    Given t = logsumexp(q), every class has an equation of its own,

        log p + rho*(p - y) = c - t,

    and t is where the p sum to one. That sum is convex and falls with t, so Newton's method climbs
    to the root from any t below it. Two lower bounds are at hand: ``logsumexp(c - rho*(1 - y))``,
    because p <= 1, and ``mean(q) + log(classes)``, by Jensen's inequality. Each class takes a
    Halley step of its own along with each step of t; its log p starts above its root and, t
    growing, stays there. So few steps do, whatever rho. Their number is fixed: if it depended on
    the data, a row's result would depend on the rows it is solved together with.

    No log p begins above 1. Where rho is so large that t is nothing but rounding, one may want to
    rise; it is held at 1, and alpha, which is `(c - t - log p)/rho` there, is none the worse.
    """
    limits = torch.finfo(c.dtype)
    rho = rho.clamp(min=limits.eps, max=limits.max / 1e4)
    log_rho = rho.log()
    c = c - c.amax(dim=0)
    rho_y = rho * y
    missing = (1 - y.sum(dim=0, dtype=torch.float64)).to(c.dtype)
    mean_q = c.mean(dim=0) - rho * missing / len(c)
    t = torch.logsumexp((c - rho).add_(rho_y), dim=0).maximum(mean_q + math.log(len(c)))
    log_w = (c + rho_y).add_(log_rho - t)
    log_p = torch.minimum(log_w, log_w.clamp(min=1).log_()).sub_(log_rho)
    one = c.new_ones(())
    steps = newton_steps(len(c), c.dtype)
    p, w, damping, pull, x = (torch.empty_like(c) for _ in range(5))
    for step in range(steps):
        torch.exp(log_p, out=p)
        torch.mul(p, rho, out=w)
        torch.add(w, 1, out=damping).reciprocal_()
        torch.sub(c, t, out=pull).sub_(log_p)
        torch.add(pull, rho_y, out=x).sub_(w).mul_(damping)
        # By how much the p would sum to more than one, in the form that does not cancel.
        surplus = torch.where(
            rho < 1,
            torch.addcmul(p, p, x, out=w).sum(dim=0) - 1,
            pull.sub_(x).sum(dim=0) / rho - missing,
        )
        t_step = surplus.div_(p.mul_(damping).sum(dim=0))
        if step < steps - 2:
            t_step.clamp_(min=0)
        x.addcmul_(t_step, damping, value=-1)
        halley = torch.add(one, x, alpha=0.5, out=w).addcmul_(x, damping, value=-0.5)
        log_p.add_(x.div_(halley.clamp_(min=0.3))).clamp_(max=1)
        t = t + t_step
    return _excess(c - t, y, rho, log_p)


def _excess(c: Tensor, y: Tensor, rho: Tensor, log_p: Tensor) -> Tensor:
    """Return p - y; where rho*p > 1 in its other form, (c - log p)/rho with c relative to t.

    There p - y is much smaller than p, and in float32 the difference would leave an error of a
    ten-millionth times rho in q.
    """
    p = log_p.exp()
    steep = torch.gt(rho * p, 1, out=torch.empty_like(p))
    difference = p.sub_(y)
    difference.addcmul_(steep, difference, value=-1)
    return difference.addcmul_(c.sub_(log_p), steep.div_(rho))


class OutputAlpha(Protocol):
    """The exact alpha of a linear output layer under one loss (docs/method.md, section 3)."""

    def __call__(
        self,
        s: Tensor,
        b: Tensor,
        z_sq: Tensor,
        lr: Scalar,
        mu: Scalar,
        *,
        divisor: int,
        scale: Scalar,
    ) -> Tensor:
        """Return alphas whose plain sum over rows is the batch's step.

        `divisor` is what the loss divides every row's own loss by: the rows for a mean, else 1.
        """
        ...


def cross_entropy_output(
    s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar, *, divisor: int, scale: Scalar
) -> Tensor:
    """Return the exact alphas of a linear layer under torch's softmax cross-entropy.

    The targets are recovered from the gradient: `y = softmax(s) - divisor * b`.
    """
    alpha = solved_output(s, b, z_sq, lr, mu, divisor=divisor, scale=scale)
    if alpha is not None:
        return alpha
    y = torch.softmax(s, dim=-1).sub_(b * divisor)
    return softmax_cross_entropy_alpha(s, y, z_sq, lr, mu, scale / divisor) / scale


def squared_output(w: float | None) -> OutputAlpha:
    """Return the exact alphas' function under `w/2 |y - s|^2` per row, `y = s - divisor*b/w`.

    `w = None` stands for 2/outputs, which is torch's `mse_loss`.
    """

    def alpha(
        s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar, *, divisor: int, scale: Scalar
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


def refuse_soft_targets(s: Tensor, b: Tensor, divisor: int, *, method: bool = False) -> None:
    """Raise if the loss above `s` is not a plain cross-entropy with whole-number classes.

    A weighted or smoothed loss would be recovered as a wrong target and solved silently.
    Rows that are not finite say nothing and pass. With `method` the words are those for a sweep's
    `ib_plus`.
    """
    y = torch.softmax(s, dim=-1) - b * divisor
    off = (y - y.round()).abs().nan_to_num(0.0, 0.0, 0.0)
    if bool((off > 0.01).any()) or bool((y.nan_to_num(0.0, 0.0, 0.0).abs() > 1.01).any()):
        who, instead = "output_loss='cross_entropy'", "output_loss=None"
        if method:
            who, instead = "ib_plus", "ib"
        raise MisuseError(
            f"{who} needs a plain F.cross_entropy with class targets; the "
            "gradient here is that of a weighted, smoothed, scaled or differently reduced loss.",
            hint=f"Use {instead}, or the plain loss with the matching reduction.",
        )
