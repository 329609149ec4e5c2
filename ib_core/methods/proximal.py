"""Proximal steps beside IB's: on a model of the loss, layer by layer, or from a point ahead.

Polyak's and its kin (`sps`, `ngn`, `ngn_m`, `momo`) are proximal steps on a model of the batch's
loss f whose lowest value f* is known, at EB's price: only the rate changes. f* is 0 where nobody
says another bound (`sps(f_star=-3)`). `proxprop` solves every hidden layer, and `ib_momentum` takes
IB's step with momentum.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.base import Member
from ib_core.methods.mover import (
    Mover,
    Rows,
    Step,
    at_most,
    column,
    inner_product,
    said,
    squared_norm,
)


class _AboveLowest(Mover):
    """Knows its members' f*, the lowest value that their losses can have; None where all are 0."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        told = any(dict(member.options).get("f_star") for member in members)
        self.lowest = said(theta, members, "f_star") if told else None

    def height(self, loss: Tensor) -> Tensor:
        """Return `f - f*`, [rows, 1]."""
        return loss if self.lowest is None else loss - self.lowest

    def keep(self, rows: Tensor) -> None:
        """Forget all members but these."""
        self.lowest = None if self.lowest is None else self.lowest[rows]


class PolyakStep(_AboveLowest):
    """Polyak's step with a ceiling (SPSmax, Loizou et al. 2021).

    It is the proximal step on the loss's tangent cut off at its lowest value (the truncated model
    of Asi & Duchi 2019): `theta' = theta - min(lr, (f - f*)/|g|^2) g`.
    """

    def move(self, step: Step) -> None:
        """Take one step."""
        rate = at_most(step.lr, self.height(step.loss), squared_norm(step.grad))
        for theta, grad in zip(step.theta, step.grad, strict=True):
            theta.addcmul_(grad, rate, value=-1.0)


def ngn_rate(step: Step, height: Tensor) -> Tensor:
    """Return `lr/(1 + lr |g|^2/(2 (f - f*)))`, [rows, 1]; 0 where the height f - f* is."""
    bend = step.lr * squared_norm(step.grad) / (2 * height)
    return torch.where(height > 0, step.lr / (1 + bend), torch.zeros_like(step.lr))


class NGN(_AboveLowest):
    """NGN: a Gauss-Newton step on the root of the loss (Orvieto & Xiao, arXiv 2407.04358).

    With r = sqrt(f - f*) the proximal step on the square of r's tangent,
    `min over p: (r + <r', p>)^2 + |p|^2/(2 lr)` with r' = g/(2r), is

        p = -lr/(1 + lr |g|^2/(2 (f - f*))) g,   theta' = theta + p

    so steps shrink smoothly where EB's would overshoot. The paper has f* = 0.
    """

    def move(self, step: Step) -> None:
        """Take one step."""
        rate = ngn_rate(step, self.height(step.loss))
        for theta, grad in zip(step.theta, step.grad, strict=True):
            theta.addcmul_(grad, rate, value=-1.0)


class NGNMomentum(_AboveLowest):
    """NGN-M (arXiv 2508.15071): `v = m v + (1 - m) p`, `theta' = theta + v`, p as in `NGN`."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        super().__init__(theta, members)
        self.velocity = [torch.zeros_like(rows) for rows in theta]
        self.momentum = column(theta, [member.momentum for member in members])

    def move(self, step: Step) -> None:
        """Take one step."""
        rate = (1 - self.momentum) * ngn_rate(step, self.height(step.loss))
        for theta, grad, velocity in zip(step.theta, step.grad, self.velocity, strict=True):
            velocity.mul_(self.momentum).addcmul_(grad, rate, value=-1.0)
            theta.add_(velocity)

    def keep(self, rows: Tensor) -> None:
        """Forget the velocity of all members but these."""
        super().keep(rows)
        self.velocity = [velocity[rows] for velocity in self.velocity]
        self.momentum = self.momentum[rows]


class MoMo(_AboveLowest):
    """MoMo: Polyak's step on an averaged model of the loss (Schaipp et al., arXiv 2305.07583).

    Averages with weight m of what came before, begun at their first values:

        d = m d + (1 - m) g,  fbar = m fbar + (1 - m) f,  gbar = m gbar + (1 - m) <g, theta>
        h = fbar + <d, theta> - gbar,  theta' = theta - min(lr, max(h - f*, 0)/|d|^2) d
    """

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        super().__init__(theta, members)
        self.direction = [torch.zeros_like(rows) for rows in theta]
        self.loss = self.tangent = torch.zeros_like(theta[0][:, :1])
        self.momentum = column(theta, [member.momentum for member in members])
        self.begun = False

    def move(self, step: Step) -> None:
        """Take one step."""
        weight = 1 - self.momentum if self.begun else torch.ones_like(self.momentum)
        self.begun = True
        for direction, grad in zip(self.direction, step.grad, strict=True):
            direction.lerp_(grad, weight)
        tangent = inner_product(step.grad, step.theta)
        self.loss = torch.lerp(self.loss, step.loss, weight)
        self.tangent = torch.lerp(self.tangent, tangent, weight)
        height = self.loss + inner_product(self.direction, step.theta) - self.tangent
        rate = at_most(step.lr, self.height(height), squared_norm(self.direction))
        for theta, direction in zip(step.theta, self.direction, strict=True):
            theta.addcmul_(direction, rate, value=-1.0)

    def keep(self, rows: Tensor) -> None:
        """Forget the averages of all members but these."""
        super().keep(rows)
        self.direction = [direction[rows] for direction in self.direction]
        self.loss, self.tangent = self.loss[rows], self.tangent[rows]
        self.momentum = self.momentum[rows]


class ProxProp(Mover):
    """ProxProp: every hidden layer's weights solve a least-squares problem (arXiv 1706.04638).

    A layer that reads z and answers s = W z is asked for the targets s - d, d the gradient at s of
    a row's own loss (tau = 1), and pays for moving (tau' = lr):

        W' = argmin  mean over rows of |W z - (s - d)|^2 / 2  +  |W - W_t|^2 / (2 lr)
           = W_t - lr G (1 + lr A)^-1,   G = mean of d z^T,  A = mean of z z^T

    the bias being the weight of a 1 in z. The last layer steps explicitly; as the rate goes to 0
    all do. Where IB solves the activation and linearises the rows, this solves the rows and
    linearises the activation. Here it steps plainly: what is solved is in the gradients already
    (`solved_rows`).
    """

    def move(self, step: Step) -> None:
        """Take one step."""
        for theta, grad in zip(step.theta, step.grad, strict=True):
            theta.addcmul_(grad, step.lr, value=-1.0)


def solved_rows(gradient: Tensor, z: Tensor, lr: Tensor) -> Tensor:
    """Return `G (1 + lr A)^-1`, [members, out, in].

    The smaller of two systems is solved: with more inputs than rows n,
    `(1 + lr Z^T Z/n)^-1 = 1 - lr Z^T (n + lr Z Z^T)^-1 Z`.

    Args:
        gradient: G, [members, out, in].
        z: Inputs, [members, rows, in].
        lr: Rates, [members].
    """
    rows, inputs = z.shape[-2:]
    rate = lr.view(-1, 1, 1)
    if inputs <= rows:
        return _solved(_system(z.mT, rate / rows), gradient.mT).mT
    inner = _solved(_system(z, rate / rows), z @ gradient.mT)  # [members, rows, out]
    return gradient - rate / rows * (inner.mT @ z)


def _system(x: Tensor, rate: Tensor) -> Tensor:
    """Return `1 + rate x x^T`."""
    system = torch.bmm(x, x.mT).mul_(rate)
    system.diagonal(dim1=-2, dim2=-1).add_(1.0)
    return system


def _solved(system: Tensor, right: Tensor) -> Tensor:
    """Solve positive definite systems; a member whose system is not even finite gets NaN."""
    factor, failed = torch.linalg.cholesky_ex(system)
    found = torch.cholesky_solve(right, factor)
    return found.masked_fill_((failed != 0).view(-1, 1, 1), float("nan"))


class ImplicitMomentum(Mover):
    """IB with momentum: the implicit step is taken from a point ahead.

        y = theta + m (theta - theta_old),  theta' = IB's step from y

    which is the proximal point method with momentum (SPPAM) where the step is exact. Losses are
    evaluated at theta; only the training pass runs at y.
    """

    looks_ahead = True

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        self.old = [rows.clone() for rows in theta]
        self.momentum = column(theta, [member.momentum for member in members])

    def look_ahead(self, theta: Rows) -> None:
        """Move to y and remember theta."""
        for rows, old in zip(theta, self.old, strict=True):
            ahead = torch.lerp(old, rows, 1 + self.momentum)
            old.copy_(rows)
            rows.copy_(ahead)

    def came_from(self) -> Rows:
        """Return theta."""
        return self.old

    def move(self, step: Step) -> None:
        """Step from y."""
        for theta, grad in zip(step.theta, step.grad, strict=True):
            theta.addcmul_(grad, step.lr, value=-1.0)

    def keep(self, rows: Tensor) -> None:
        """Forget where all members but these were."""
        self.old = [old[rows] for old in self.old]
        self.momentum = self.momentum[rows]
