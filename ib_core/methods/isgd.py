"""Exact ISGD: the implicit step of the whole network by an inner optimisation, eq. (1)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.base import Member
from ib_core.methods.stack import Closure, StackOptimizer


class ExactISGD(StackOptimizer):
    """Minimises `2*lr*(loss + mu/2 |theta|^2) + |theta - theta_t|^2` by inner gradient steps.

    The inner learning rate is lr/10 (Sec. 5). Two forms of the inner gradient:

    * `text`: the objective divided by 2*lr, `grad loss + mu*theta + (theta - theta_t)/lr`. The
      inner iteration contracts while `lr * curvature < 19`; where the loss is steeper than that,
      lr/10 is too large, the inner iteration itself diverges, and the member is reported as
      diverged like any other. It needs more inner steps with a smaller rate there, not a fix.
    * `authors`: `theta -= lr/10 * (grad loss + theta - theta_t)`, whose pull has weight 1
      whatever lr is. It aims at the ISGD step of rate 1, so a flat curve says little. Clipping
      is never applied, as in the recorded runs.

    Clipping in the `text` form acts on `(theta_t - theta') / lr`, as for IB. All members of such
    a stack use exact ISGD with one number of inner steps.
    """

    def step(self, closure: Closure) -> Tensor:
        """Move every member by one batch and return the losses before the step, [members]."""
        first = closure()  # before anything else: members may leave the stack inside it
        lr = self.current_lr().unsqueeze(1)
        starts = [slot.theta.clone() for slot in self.slots]
        authors = self._authors
        pull = torch.where(authors, 1.0, 1.0 / lr)
        for inner in range(self.members[0].inner_steps):
            if inner > 0:
                closure()
            with torch.no_grad():
                self.collect(lr.squeeze(1))
                for slot, start in zip(self.slots, starts, strict=True):
                    slot.rows.addcmul_(slot.theta - start, pull)
                    slot.theta.addcmul_(slot.rows, lr, value=-0.1)
        with torch.no_grad():
            if self._clip is not None:
                self._clip_whole_step(starts, lr, authors)
            self.restart()
        self.steps += 1
        return first

    def _describe(self, members: Sequence[Member]) -> None:
        super()._describe(members)
        self._authors = self._tensor([[float(m.isgd_form == "authors")] for m in members]) > 0

    def _clip_whole_step(self, starts: list[Tensor], lr: Tensor, authors: Tensor) -> None:
        reached = [slot.theta.clone() for slot in self.slots]
        for slot, start in zip(self.slots, starts, strict=True):
            torch.sub(start, slot.theta, out=slot.rows).div_(lr)
        self.clip()
        for slot, start, end in zip(self.slots, starts, reached, strict=True):
            clipped = torch.addcmul(start, slot.rows, lr, value=-1.0)
            slot.theta.copy_(torch.where(authors, end, clipped))
