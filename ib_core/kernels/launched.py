"""What a GPU computes in one launch each, as torch operators: on CUDA by triton, on meta by shape.

A tensor on the device `meta` has a shape and no numbers. A step that runs there asks for none, so
it waits for nothing and can be counted: every call is a launch. That is how a GPU's step is tested
where there is no GPU (`ib_core.bench.gpu`).
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from ib_core.kernels import CUBICS, Scalar, newton_steps

#: Rules in closed form; the others are piecewise cubics.
CLOSED = ("relu", "leaky_relu", "arctan", "hardtanh", "smoothstep")

_library = torch.library.Library("etascope", "DEF")
_library.define("travels(Tensor z, Tensor rate, float scale, bool bias) -> Tensor")
_library.define("solve(str rule, Tensor s, Tensor b, Tensor k, int[] lengths) -> Tensor")
_library.define(
    "solve_cross_entropy(Tensor s, Tensor b, Tensor rho, float divisor, int steps, "
    "Tensor? shrink=None) -> Tensor"
)


def has_rule(rule: str) -> bool:
    """Return whether a rule is solved in one launch."""
    return rule in CLOSED or rule in CUBICS


def travels(z: Tensor, rate: Tensor, scale: Scalar, bias: bool) -> Tensor:
    """Return `rate * scale * (|z|^2 + bias)`, [members, rows].

    Args:
        z: A layer's input, [members, rows, in].
        rate: One a member, [members].
        scale: One number for all, or one a member.
        bias: Whether the bias's 1 counts.
    """
    if isinstance(scale, Tensor):
        rate, scale = rate * scale.view(-1), 1.0
    found: Tensor = torch.ops.etascope.travels(z, rate, scale, bias)
    return found


def solve(rule: str, s: Tensor, b: Tensor, k: Tensor, lengths: tuple[int, int, int, int]) -> Tensor:
    """Return the alphas of all nodes.

    Args:
        rule: One that `has_rule`.
        s: Pre-activations, contiguous, [blocks, nodes, rows] in memory.
        b: Gradients, likewise.
        k: `lr * |z|^2`, contiguous, [blocks, rows or 1].
        lengths: blocks, nodes, rows, and the rows of k.
    """
    alphas: Tensor = torch.ops.etascope.solve(rule, s, b, k, lengths)
    return alphas


def solve_layer(
    rule: str,
    s: Tensor,
    b: Tensor,
    z: Tensor,
    rate: Tensor,
    scale: Scalar,
    bias: bool,
    shrink: Tensor | None = None,
) -> Tensor:
    """Return a layer's alphas straight from its input, in two launches, [members, rows, out].

    A ridge takes three more. With `h = 1 + lr*mu` and `a = a'/h`, eq. (8) is that of no ridge,

        b*sigma(s/h - a*lr|z|^2) + h*lr|z|^2*a^2/2 = b*sigma(c - a'*k) + k*a'^2/2,

    for `c = s/h` and `k = lr|z|^2/h`.

    Args:
        rule: One that `has_rule`.
        s: Pre-activations, [members, rows, out], in memory as they are or with the rows last.
        b: Gradients, likewise.
        z: The layer's input, [members, rows, in].
        rate: See `travels`.
        scale: See `travels`.
        bias: See `travels`.
        shrink: h, one a member; None without a ridge.
    """
    if shrink is not None:
        each = shrink.view(-1, 1, 1)
        return solve_layer(rule, s / each, b, z, rate / shrink, scale, bias).div_(each)
    (members, rows, nodes), k = s.shape, travels(z, rate, scale, bias)
    if s.mT.is_contiguous():
        return solve(rule, s.mT, b.mT.contiguous(), k, (members, nodes, rows, rows)).mT
    return solve(rule, s.contiguous(), b.contiguous(), k, (members * rows, 1, nodes, 1))


def solve_cross_entropy(
    s: Tensor,
    b: Tensor,
    z: Tensor,
    rate: Tensor,
    scale: Scalar,
    bias: bool,
    shrink: Tensor | None = None,
    *,
    divisor: int,
) -> Tensor:
    """Return `updates.output_layer.cross_entropy_output` of a stack, in two launches.

    A ridge takes two more, as in `solve_layer`.

    Args:
        s: Logits, [members, rows, classes].
        b: Gradients, likewise.
        z: The layer's input, [members, rows, in].
        rate: See `travels`.
        scale: See `travels`.
        bias: See `travels`.
        shrink: See `solve_layer`.
        divisor: What the loss divides every row's own loss by.
    """
    rate = rate if shrink is None else rate / shrink
    rho, steps = travels(z, rate, scale / divisor, bias), newton_steps(s.shape[-1], s.dtype)
    solve_rows = torch.ops.etascope.solve_cross_entropy
    alphas: Tensor = solve_rows(s, b, rho, float(divisor), steps, shrink)
    return alphas if shrink is None else alphas.div_(shrink.view(-1, 1, 1))


@cache
def _triton() -> Any:
    from ib_core.kernels import fused

    return fused


def _on_cuda(name: str) -> Any:
    """Return what launches triton's kernel, which is imported at its first use."""

    def launch(*arguments: Any) -> Tensor:
        found: Tensor = getattr(_triton(), name)(*arguments)
        return found

    return launch


def _like_s(*arguments: Any) -> Tensor:
    return torch.empty_like(next(part for part in arguments if isinstance(part, Tensor)))


for _name in ("travels", "solve", "solve_cross_entropy"):
    _library.impl(_name, _on_cuda(_name), "CUDA")
_library.impl("travels", lambda z, rate, scale, bias: z.new_empty(z.shape[:2]), "Meta")
_library.impl("solve", _like_s, "Meta")
_library.impl("solve_cross_entropy", _like_s, "Meta")
