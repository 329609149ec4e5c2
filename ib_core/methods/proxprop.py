"""ProxProp: every hidden layer's weights solve a least-squares problem (arXiv 1706.04638).

A layer that reads z and answers s = W z is asked for the targets s - d, d the gradient at s of a
row's own loss (tau = 1), and pays for moving (tau' = lr):

    W' = argmin  mean over rows of |W z - (s - d)|^2 / 2  +  |W - W_t|^2 / (2 lr)
       = W_t - lr G (1 + lr A)^-1,   G = mean of d z^T,  A = mean of z z^T

the bias being the weight of a 1 in z. The last layer steps explicitly; as the rate goes to 0 all
do. Where IB solves the activation and linearises the rows, this solves the rows and linearises
the activation.
"""

import torch
from torch import Tensor

from ib_core.methods.mover import Mover, Step


class ProxProp(Mover):
    """Steps plainly: what is solved is in the gradients already (`solved_rows`)."""

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
        system = torch.baddbmm(_ones(inputs, z), z.mT * (rate / rows), z)
        return _solved(system, gradient.mT).mT
    system = torch.baddbmm(_ones(rows, z), z * (rate / rows), z.mT)
    inner = _solved(system, z @ gradient.mT)  # [members, rows, out]
    return gradient - rate / rows * (inner.mT @ z)


def _ones(size: int, like: Tensor) -> Tensor:
    return torch.eye(size, dtype=like.dtype, device=like.device)


def _solved(system: Tensor, right: Tensor) -> Tensor:
    """Solve positive definite systems; a member whose system is not even finite gets NaN."""
    factor, failed = torch.linalg.cholesky_ex(system)
    found = torch.cholesky_solve(right, factor)
    return torch.where((failed == 0).view(-1, 1, 1), found, float("nan"))
