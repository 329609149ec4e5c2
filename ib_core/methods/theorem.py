"""What the paper's theorem bounds (App. C), followed step by step.

For decaying rates and restarts inside the level set it bounds

    A_T = sum over t < T of lr_t |g_t|^2  /  sum over t < T of lr_t

where g_t is what the step multiplies by its rate: the batch's gradient with the ridge for explicit
methods, and `(theta - theta')/lr` for implicit ones.
"""

import torch
from torch import Tensor


class Averages:
    """The sums of every member so far.

    Args:
        like: Some parameter, for its device.
        members: How many.
    """

    def __init__(self, like: Tensor, members: int) -> None:
        # Sums over thousands of steps: in single precision small steps would be lost in them.
        self.weighted, self.rates, self.gradient = (
            torch.zeros(members, dtype=torch.float64, device=like.device) for _ in range(3)
        )

    def take(self, lr: Tensor, gradient: Tensor) -> None:
        """Take in one step: rates and norms of g, [members] each."""
        self.gradient = gradient.double()
        self.weighted += lr.double() * self.gradient.square()
        self.rates += lr.double()

    def keep(self, kept: Tensor) -> None:
        """Forget all members but these."""
        self.weighted, self.rates = self.weighted[kept], self.rates[kept]
        self.gradient = self.gradient[kept]

    def told(self, theta: Tensor, restarts: Tensor) -> list[dict[str, float]]:
        """Return what is known of every member now; nothing of steps before the first."""
        average = torch.where(self.rates > 0, self.weighted / self.rates, torch.nan)
        gradient = torch.where(self.rates > 0, self.gradient, torch.nan)
        columns = (average, gradient, theta, restarts)
        return [
            dict(zip(NAMES, row, strict=True))
            for row in zip(*(column.tolist() for column in columns), strict=True)
        ]


#: The columns of a trial's record, besides the step.
NAMES = ("average", "gradient", "theta", "restarts")
