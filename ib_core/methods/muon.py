"""Muon: every matrix moves by its momentum, made orthogonal (Jordan et al. 2024).

With `u = .95 u + g` and `n = g + .95 u` (Nesterov), a matrix of a rows and b columns steps by

    W' = (1 - lr w) W - lr .2 sqrt(max(a, b)) NS(n)

where `NS` brings all singular values near 1: `X = n/|n|`, then five times
`X' = 3.4445 X - 4.775 (X X^T) X + 2.0315 (X X^T)^2 X`. The factor of Liu et al. (arXiv 2502.16982)
gives steps of the size that Adam's have, so one rate serves all parameters: what is no matrix
(biases, norms) moves by AdamW. A convolution's filters are the rows of its matrix. All matrices
are treated alike, the first and the last layer's too; in the parameters' own precision.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.adam import B1, AdamW
from ib_core.methods.base import Member
from ib_core.methods.mover import Rows, Step

MOMENTUM, ITERATIONS = 0.95, 5
A, B, C = 3.4445, -4.7750, 2.0315


class Muon(AdamW):
    """Orthogonal steps for matrices, AdamW's for the rest."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        super().__init__(theta, members)
        self.velocity: dict[int, Tensor] = {}

    def move(self, step: Step) -> None:
        """Take one step."""
        self.steps += 1
        kept = 1 - step.lr * self.decay
        for i, (theta, grad) in enumerate(zip(step.theta, step.grad, strict=True)):
            theta.mul_(kept)
            if len(self.shapes[i]) < 2:
                mean, root = self.remember(i, grad)
                theta.sub_((mean / root).mul_(step.lr / (1 - B1**self.steps)))
                continue
            velocity = self.velocity.setdefault(i, torch.zeros_like(grad))
            velocity.mul_(MOMENTUM).add_(grad)
            ahead = grad.add(velocity, alpha=MOMENTUM)
            matrix = ahead.view(len(ahead), self.shapes[i][0], -1)
            size = 0.2 * max(matrix.shape[1:]) ** 0.5
            theta.sub_(orthogonal(matrix).flatten(1).mul_(step.lr * size))

    def keep(self, rows: Tensor) -> None:
        """Forget the momentum of all members but these."""
        super().keep(rows)
        self.velocity = {i: velocity[rows] for i, velocity in self.velocity.items()}


def orthogonal(matrix: Tensor) -> Tensor:
    """Return `NS(matrix)`, all singular values near 1, [..., rows, columns]."""
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = A * x + (B * gram + C * gram @ gram) @ x
    found: Tensor = x.mT if tall else x
    return found
