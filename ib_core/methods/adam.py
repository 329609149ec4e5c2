"""Adam and its kin: every weight's step is sized by what its own gradients were.

With `m` the gradient's running mean and `v` that of its square,

    adam      theta' = theta - lr mhat/(sqrt(vhat) + eps),  mhat = m/(1 - b1^t), vhat = v/(1 - b2^t)
    adamw     adam from (1 - lr w) theta: the weights decay beside the step, not inside it
    nadam     adam whose mean looks one step ahead, with the momentum b1 (1 - .96^(.004 t)/2)
    rmsprop   theta' = theta - lr g/(sqrt(v) + eps),  v with weight .99 of what was
    lion      theta' = (1 - lr w) theta - lr sign(.9 m + .1 g),  then m = .99 m + .01 g

all with the defaults of torch (b1 = .9, b2 = .999, eps = 1e-8) or of the paper (Lion,
arXiv 2302.06675).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.base import Member
from ib_core.methods.mover import Mover, Rows, Step, said

B1, B2, EPS = 0.9, 0.999, 1e-8


class Adam(Mover):
    """Moves members by their gradient's running mean over the root of its running square."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        del members
        self.mean = [torch.zeros_like(rows) for rows in theta]
        self.square = [torch.zeros_like(rows) for rows in theta]
        self.steps = 0

    def move(self, step: Step) -> None:
        """Take one step."""
        self.steps += 1
        lr = step.lr / (1 - B1**self.steps)
        for i, (theta, grad) in enumerate(zip(step.theta, step.grad, strict=True)):
            mean, root = self.remember(i, grad)
            theta.sub_((mean / root).mul_(lr))

    def remember(self, i: int, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Take a parameter's gradient in; return m and `sqrt(vhat) + eps`."""
        mean, square = self.mean[i], self.square[i]
        mean.lerp_(grad, 1 - B1)
        square.mul_(B2).addcmul_(grad, grad, value=1 - B2)
        return mean, square.sqrt().div_((1 - B2**self.steps) ** 0.5).add_(EPS)

    def keep(self, rows: Tensor) -> None:
        """Forget the moments of all members but these."""
        self.mean = [mean[rows] for mean in self.mean]
        self.square = [square[rows] for square in self.square]


class AdamW(Adam):
    """Adam whose weights decay by `lr w` a step."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        super().__init__(theta, members)
        self.decay = said(theta, members, "weight_decay")

    def move(self, step: Step) -> None:
        """Take one step."""
        kept = 1 - step.lr * self.decay
        for theta in step.theta:
            theta.mul_(kept)
        super().move(step)

    def keep(self, rows: Tensor) -> None:
        """Forget all members but these."""
        super().keep(rows)
        self.decay = self.decay[rows]


class NAdam(Adam):
    """Adam with Nesterov's momentum, whose weight grows from half of b1 to b1."""

    product = 1.0

    def move(self, step: Step) -> None:
        """Take one step."""
        self.steps += 1
        now, ahead = (B1 * (1 - 0.5 * 0.96 ** (t * 0.004)) for t in (self.steps, self.steps + 1))
        self.product *= now
        of_grad = step.lr * ((1 - now) / (1 - self.product))
        of_mean = step.lr * (ahead / (1 - self.product * ahead))
        for i, (theta, grad) in enumerate(zip(step.theta, step.grad, strict=True)):
            mean, root = self.remember(i, grad)
            theta.sub_((grad * of_grad).addcmul_(mean, of_mean).div_(root))


class RMSprop(Mover):
    """Moves members by their gradient over the root of its running square."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        del members
        self.square = [torch.zeros_like(rows) for rows in theta]

    def move(self, step: Step) -> None:
        """Take one step."""
        for theta, grad, square in zip(step.theta, step.grad, self.square, strict=True):
            square.mul_(0.99).addcmul_(grad, grad, value=0.01)
            theta.sub_((grad * step.lr).div_(square.sqrt().add_(EPS)))

    def keep(self, rows: Tensor) -> None:
        """Forget the squares of all members but these."""
        self.square = [square[rows] for square in self.square]


class Lion(Mover):
    """Moves every weight by the rate, in the direction of a mean's sign."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        self.mean = [torch.zeros_like(rows) for rows in theta]
        self.decay = said(theta, members, "weight_decay")

    def move(self, step: Step) -> None:
        """Take one step."""
        kept = 1 - step.lr * self.decay
        for theta, grad, mean in zip(step.theta, step.grad, self.mean, strict=True):
            theta.mul_(kept).sub_(torch.lerp(mean, grad, 0.1).sign_().mul_(step.lr))
            mean.lerp_(grad, 0.01)

    def keep(self, rows: Tensor) -> None:
        """Forget the means of all members but these."""
        self.mean = [mean[rows] for mean in self.mean]
        self.decay = self.decay[rows]
