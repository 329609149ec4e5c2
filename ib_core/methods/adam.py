"""Adam and its kin: every weight's step is sized by what its own gradients were.

With `m` the gradient's running mean and `v` that of its square,

    adam      theta' = theta - lr mhat/(sqrt(vhat) + eps),  mhat = m/(1 - b1^t), vhat = v/(1 - b2^t)
    adamw     adam from (1 - lr w) theta: the weights decay beside the step, not inside it
    nadam     adam whose mean looks one step ahead, with the momentum b1 (1 - .96^(.004 t)/2)
    rmsprop   theta' = theta - lr g/(sqrt(v) + eps),  v with weight .99 of what was
    lion      theta' = (1 - lr w) theta - lr sign(.9 m + .1 g),  then m = .99 m + .01 g

all with the defaults of torch (b1 = .9, b2 = .999, eps = 1e-8) or of the paper (Lion,
arXiv 2302.06675). Three build on them: `Muon`, `Prodigy`, `ScheduleFree`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.kernels import made_orthogonal
from ib_core.methods.base import Member
from ib_core.methods.mover import Mover, Rows, Step, said

B1, B2, EPS = 0.9, 0.999, 1e-8


class Adam(Mover):
    """Moves members by their gradient's running mean over the root of its running square."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        del members
        self.mean = [torch.zeros_like(rows) for rows in theta]
        self.square = [torch.zeros_like(rows) for rows in theta]
        self.steps = [0] * len(theta)  # a parameter without a gradient is not counted

    def move(self, step: Step) -> None:
        """Take one step."""
        lr = self.count(step.lr)
        for i, (theta, grad) in enumerate(zip(step.theta, step.grad, strict=True)):
            mean, root = self.remember(i, grad)
            theta.sub_((mean / root).mul_(lr[self.steps[i]]))

    def count(self, lr: Tensor) -> dict[int, Tensor]:
        """Count a step; return `lr/(1 - b1^t)` for every t that a parameter is at."""
        self.steps = [t + 1 for t in self.steps]
        return {t: lr / (1 - B1**t) for t in set(self.steps)}

    def remember(self, i: int, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Take a parameter's gradient in; return m and `sqrt(vhat) + eps`."""
        mean, square = self.mean[i], self.square[i]
        mean.lerp_(grad, 1 - B1)
        square.mul_(B2).addcmul_(grad, grad, value=1 - B2)
        return mean, square.sqrt().div_((1 - B2 ** self.steps[i]) ** 0.5).add_(EPS)

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
    """Adam with Nesterov's momentum, whose weight grows from half of b1 to b1.

    With `w_t = b1 (1 - .96^(.004 t)/2)` and `W_t = w_1 w_2 ... w_t`,

        theta' = theta - lr ((1 - w_t)/(1 - W_t) g + w_{t+1}/(1 - W_{t+1}) m)/(sqrt(vhat) + eps)
    """

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        super().__init__(theta, members)
        self.product = [1.0] * len(theta)

    def move(self, step: Step) -> None:
        """Take one step."""
        self.steps = [t + 1 for t in self.steps]
        rates: dict[int, tuple[Tensor, Tensor]] = {}
        for i, (theta, grad) in enumerate(zip(step.theta, step.grad, strict=True)):
            t = self.steps[i]
            now, ahead = (B1 * (1 - 0.5 * 0.96 ** (s * 0.004)) for s in (t, t + 1))
            self.product[i] *= now
            product = self.product[i]  # the same for all that are at t
            if t not in rates:
                of_grad = step.lr * ((1 - now) / (1 - product))
                rates[t] = of_grad, step.lr * (ahead / (1 - product * ahead))
            of_grad, of_mean = rates[t]
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


#: Muon's momentum, and its polynomial that makes a matrix orthogonal.
MOMENTUM, ITERATIONS = 0.95, 5
A, B, C = 3.4445, -4.7750, 2.0315
LEAST_NORM = 1e-7


class Muon(AdamW):
    """Muon: every matrix moves by its momentum, made orthogonal (Jordan et al. 2024).

    With `u = .95 u + g` and `n = g + .95 u` (Nesterov), a matrix of a rows and b columns steps by

        W' = (1 - lr w) W - lr .2 sqrt(max(a, b)) NS(n)

    where `NS` brings all singular values near 1 (`orthogonal`). The factor of Liu et al. (arXiv
    2502.16982) gives steps of the size that Adam's have, so one rate serves all parameters: what
    is no matrix (biases, norms) moves by AdamW. A convolution's filters are the rows of its
    matrix. All matrices are treated alike, the first and the last layer's too; in the parameters'
    own precision.
    """

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        super().__init__([rows[:, :0] for rows in theta], members)  # a matrix has no moments
        self.velocity: list[Tensor | None] = [None] * len(theta)

    def remember(self, i: int, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Take the gradient of what is no matrix in; return m and `sqrt(vhat) + eps`."""
        if self.mean[i].shape != grad.shape:
            self.mean[i], self.square[i] = torch.zeros_like(grad), torch.zeros_like(grad)
        return super().remember(i, grad)

    def move(self, step: Step) -> None:
        """Take one step."""
        lr = self.count(step.lr)
        kept = 1 - step.lr * self.decay
        for i, (theta, grad) in enumerate(zip(step.theta, step.grad, strict=True)):
            theta.mul_(kept)
            if len(self.shapes[i]) < 2:
                mean, root = self.remember(i, grad)
                theta.sub_((mean / root).mul_(lr[self.steps[i]]))
                continue
            velocity = self.velocity[i]
            if velocity is None:
                velocity = self.velocity[i] = torch.zeros_like(grad)
            velocity.mul_(MOMENTUM).add_(grad)
            ahead = grad.add(velocity, alpha=MOMENTUM)
            matrix = ahead.view(len(ahead), self.shapes[i][0], -1)
            size = 0.2 * max(matrix.shape[1:]) ** 0.5
            theta.sub_(orthogonal(matrix).flatten(1).mul_(step.lr * size))

    def keep(self, rows: Tensor) -> None:
        """Forget the momentum of all members but these."""
        super().keep(rows)
        self.velocity = [None if moved is None else moved[rows] for moved in self.velocity]


def orthogonal(matrix: Tensor) -> Tensor:
    """Return `NS(matrix)`, all singular values near 1, [members, rows, columns].

    `X = matrix/|matrix|`, then five times `X' = A X + B (X X^T) X + C (X X^T)^2 X`.
    """
    compiled = made_orthogonal(matrix, ITERATIONS, LEAST_NORM, (A, B, C))
    if compiled is not None:
        return compiled
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + LEAST_NORM)
    for _ in range(ITERATIONS):
        gram = torch.bmm(x, x.mT)
        mixed = torch.baddbmm(gram, gram, gram, beta=B, alpha=C)
        x = torch.baddbmm(x, mixed, x, beta=A)
    found: Tensor = x.mT if tall else x
    return found


#: Prodigy's first distance, and how much of its sums stays.
START = 1e-6
Q = B2**0.5


class Prodigy(Mover):
    """Prodigy: Adam that finds its rate by itself (Mishchenko & Defazio, arXiv 2306.06101).

    d, the distance to the solution as far as it is known, begins at 1e-6 and only grows:

        m = .9 m + .1 d g,   v = .999 v + .001 d^2 g^2,   q = sqrt(.999)
        r = q r + (1 - q) lr d^2 <g, theta_0 - theta>,   s = q s + (1 - q) lr d^2 g
        theta' = theta - lr d m/(sqrt(v) + d 1e-8),   d' = max(d, r/|s|_1)

    The learning rate multiplies what it finds and is meant to be 1.
    """

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        del members
        self.start = [rows.clone() for rows in theta]
        self.mean, self.square, self.pull = (
            [torch.zeros_like(rows) for rows in theta] for _ in range(3)
        )
        self.distance = torch.full_like(theta[0][:, :1], START)
        self.gain = torch.zeros_like(self.distance)

    def move(self, step: Step) -> None:
        """Take one step; the distance found in it counts from the next."""
        d, weight = self.distance, (1 - Q) * step.lr * self.distance.square()
        gain, length = torch.zeros_like(d), torch.zeros_like(d)
        parts = zip(
            step.theta, step.grad, self.start, self.mean, self.square, self.pull, strict=True
        )
        for theta, grad, start, mean, square, pull in parts:
            gain = gain + torch.linalg.vecdot(grad, start - theta).unsqueeze(1)
            pull.mul_(Q).addcmul_(grad, weight)
            length = length + pull.abs().sum(1, keepdim=True)
            scaled = grad * d
            mean.lerp_(scaled, 1 - B1)
            square.mul_(B2).addcmul_(scaled, scaled, value=1 - B2)
            theta.sub_((mean / (square.sqrt() + d * EPS)).mul_(step.lr * d))
        self.gain = Q * self.gain + weight * gain
        found = torch.where(length > 0, self.gain / length, torch.zeros_like(d))
        self.distance = torch.maximum(d, found)

    def keep(self, rows: Tensor) -> None:
        """Forget all members but these."""
        for name in ("start", "mean", "square", "pull"):
            setattr(self, name, [part[rows] for part in getattr(self, name)])
        self.distance, self.gain = self.distance[rows], self.gain[rows]


#: How much of y is x.
TOWARDS_X = 0.9


class ScheduleFree(Mover):
    """Schedule-free AdamW: an average takes the place of a schedule (Defazio et al. 2405.15682).

        y = .1 z + .9 x,  g = gradient at y,  v = .999 v + .001 g^2
        z' = z - lr (g/(sqrt(v/(1 - .999^t)) + 1e-8) + w y),  x' = (1 - c) x + c z'

    with `c = lr_t^2 / sum of lr_i^2`, rates counted at the largest there has been: the plain mean
    where the rate is constant. x is what is evaluated and kept, so theta is x outside of a step;
    only the training pass runs at y.
    """

    looks_ahead = True

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        self.z = [rows.clone() for rows in theta]
        self.x = [rows.clone() for rows in theta]
        self.square = [torch.zeros_like(rows) for rows in theta]
        self.decay = said(theta, members, "weight_decay")
        self.largest = self.total = torch.zeros_like(theta[0][:, :1])
        self.steps = 0

    def look_ahead(self, theta: Rows) -> None:
        """Move to y and remember x."""
        for rows, x, z in zip(theta, self.x, self.z, strict=True):
            x.copy_(rows)
            torch.lerp(z, x, TOWARDS_X, out=rows)

    def came_from(self) -> Rows:
        """Return x."""
        return self.x

    def move(self, step: Step) -> None:
        """Step z, and take it into the average."""
        self.steps += 1
        self.largest = torch.maximum(self.largest, step.lr)
        weight = self.largest.square()
        self.total = self.total + weight
        share = torch.where(self.total > 0, weight / self.total, torch.zeros_like(weight))
        scale = (1 - B2**self.steps) ** 0.5
        parts = zip(step.theta, step.grad, self.z, self.x, self.square, strict=True)
        for theta, grad, z, x, square in parts:
            square.mul_(B2).addcmul_(grad, grad, value=1 - B2)
            moved = grad / square.sqrt().div_(scale).add_(EPS)
            z.sub_(moved.addcmul_(theta, self.decay).mul_(step.lr))
            torch.lerp(x, z, share, out=theta)

    def keep(self, rows: Tensor) -> None:
        """Forget all members but these."""
        self.z, self.x = [z[rows] for z in self.z], [x[rows] for x in self.x]
        self.square = [square[rows] for square in self.square]
        self.decay, self.largest = self.decay[rows], self.largest[rows]
        self.total = self.total[rows]
