"""Every activation's rule by name, and what its alphas become: a batch's step, eq. (7), clipped.

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

from collections.abc import Sequence
from importlib import import_module

import torch
from torch import Tensor

from ib_core.errors import lookup
from ib_core.updates import SOLVABLE
from ib_core.updates.approximations import SMOOTH
from ib_core.updates.node import Activation, AlphaRule, Scalar

ACTIVATIONS: dict[str, Activation] = {
    name: SMOOTH[name] if bound else import_module(f"ib_core.updates.{name}").ACTIVATION
    for name, bound in SOLVABLE.items()
}
ALPHA_RULES: dict[str, AlphaRule] = {name: one.alpha for name, one in ACTIVATIONS.items()}


def alpha_rule(name: str) -> AlphaRule:
    """Return the rule of an activation, or raise `UnknownName` listing those that have one."""
    return lookup("activation", name, ALPHA_RULES)


#: Added to a norm before it is divided by, as torch's own clipping does.
ALMOST_NOTHING = 1e-6


def rows_scale(batch_rule: str, reduction: str, rows: int) -> float:
    """Return what b must be multiplied with before the solve (and alpha divided by after it)."""
    return float(rows) if batch_rule == "own" and reduction == "mean" else 1.0


def batch_alpha(
    rule: AlphaRule, s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar, *, scale: Scalar
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


def global_norm(norms: Sequence[Tensor]) -> Tensor:
    """Return the norm over all parameters together, given each one's: [] or [members]."""
    norm: Tensor = torch.linalg.vector_norm(torch.stack(list(norms)), dim=0)
    return norm


def clip_factor(norms: Sequence[Tensor], clip: Scalar) -> Tensor:
    """Return what a step is multiplied with so that its global norm is at most `clip`."""
    return (clip / (global_norm(norms) + ALMOST_NOTHING)).clamp(max=1.0)
