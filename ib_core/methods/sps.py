"""Polyak's step with a ceiling (SPSmax, Loizou et al. 2021).

It is the proximal step on the loss's tangent cut off at its lowest value f* = 0 (the truncated
model of Asi & Duchi 2019), at EB's price: `min(lr, (f - f*)/|g|^2)` in place of lr, f the batch's
loss. A file of its own, however short: one method, one file with its step.
"""

from ib_core.methods.mover import Mover, Step, at_most, squared_norm


class PolyakStep(Mover):
    """`theta' = theta - min(lr, f/|g|^2) g`."""

    def move(self, step: Step) -> None:
        """Take one step."""
        rate = at_most(step.lr, step.loss, squared_norm(step.grad))
        for theta, grad in zip(step.theta, step.grad, strict=True):
            theta.addcmul_(grad, rate, value=-1.0)
