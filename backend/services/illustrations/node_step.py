"""One node's explicit and implicit update (Fig. 2), and IB's relu rule in words (Table 1)."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from backend.schemas import NodeStep, RateSweep, RuleCase, Samples, StepSweep, UpdateRead
from ib_core.errors import lookup
from ib_core.updates import ACTIVATIONS, ALPHA_RULES, APPROXIMATION_ERROR, APPROXIMATIONS

HALF_OF_THE_SAMPLES = 200
NARROWEST = 2.0
#: Rates of the picture of a step's limit: eight a decade, from 0.001 to 10 000.
RATES = tuple(10 ** (i / 8) for i in range(-24, 33))
#: Slopes that differ by less are the same to a reader.
ALIKE = 5e-4
Method = Literal["eb", "ib"]
#: By the sign of b: for which s, and what the step does. The last line of b < 0 is the paper's
#: one before it, set apart because there EB moves too.
RELU_LINES: dict[int, tuple[tuple[str, str], ...]] = {
    1: (
        ("s ≤ 0", "No step: the node is off."),
        ("0 < s ≤ η|z|²b", "The step stops at the hinge."),
        ("s > η|z|²b", "The full step, as EB."),
    ),
    -1: (
        ("s ≤ η|z|²b/2", "No step: the hinge is too far away."),
        ("η|z|²b/2 < s ≤ 0", "It looks past the hinge: the full step."),
        ("s > 0", "The full step, as EB."),
    ),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What stays the same while s and b vary."""

    activation: str
    lr: float
    z_sq: float
    mu: float

    def alpha(self, method: Method, s: Tensor, b: float) -> Tensor:
        """Return eq. (8)'s minimiser, or the explicit sigma'(s) * b."""
        if method == "eb":
            return ACTIVATIONS[self.activation].slope(s) * b
        rule = ALPHA_RULES[self.activation]
        return rule(s, torch.full_like(s, b), torch.full_like(s, self.z_sq), self.lr, self.mu)

    def landing(self, method: Method, s: Tensor, alpha: Tensor) -> Tensor:
        """Return theta'^T z: eq. (7), or the explicit step with mu as weight decay."""
        ridge = self.lr * self.mu
        kept = s * (1 - ridge) if method == "eb" else s / (1 + ridge)
        return kept - self.lr * alpha * self.z_sq

    def value(self, s: Tensor) -> Tensor:
        """Return the activation."""
        return ACTIVATIONS[self.activation].value(s)


def node_update(
    *,
    activation: str,
    b: float,
    s: float,
    lr: float,
    z_sq: float,
    mu: float,
    reach: float | None = None,
) -> UpdateRead:
    """Return both methods' steps from s under b and from -s under -b, and for a range of s.

    Args:
        activation: Of the node.
        b: Gradient at its output.
        s: Pre-activation before the step.
        lr: Learning rate.
        z_sq: Squared norm of the layer's input.
        mu: Ridge strength.
        reach: Sample from -reach to reach; None: far enough to see every case and the step whole.

    Raises:
        UnknownName: There is no such activation.
    """
    lookup("activation", activation, ALPHA_RULES)
    setting = Setting(activation, lr, z_sq, mu)
    if reach is None:
        reach = max(NARROWEST, 1.25 * abs(s), 1.5 * lr * z_sq * abs(b))
    half = HALF_OF_THE_SAMPLES  # one of the samples is exactly 0, where hinges are
    range_of_s = _column([reach * i / half for i in range(-half, half + 1)])
    methods: tuple[Method, ...] = ("eb", "ib")
    bound = APPROXIMATION_ERROR.get(activation)
    return UpdateRead(
        activation=activation,
        lr=lr,
        z_sq=z_sq,
        mu=mu,
        function=Samples(x=_plain(range_of_s), y=_plain(setting.value(range_of_s))),
        steps=[
            _step(setting, method, sign * s, sign * b) for sign in (1, -1) for method in methods
        ],
        s=_plain(range_of_s),
        sweeps=[
            _sweep(setting, method, range_of_s, sign * b) for sign in (1, -1) for method in methods
        ],
        rates=list(RATES),
        by_rate=[
            _over_rates(setting, method, sign * s, sign * b)
            for sign in (1, -1)
            for method in methods
        ],
        jump=-lr * z_sq * abs(b) / 2 if activation == "relu" else None,
        approximation_error=None if bound is None else bound.value,
        slope_error=None if bound is None else bound.slope,
        stand_in=None if bound is None else list(APPROXIMATIONS[activation].knots),
        cases=relu_cases(s, b, lr * z_sq) if activation == "relu" else [],
    )


def _step(setting: Setting, method: Method, s: float, b: float) -> NodeStep:
    at = _column([s])
    alpha = setting.alpha(method, at, b)
    landing = setting.landing(method, at, alpha)
    value, origin = setting.value(landing).item(), setting.value(at).item()
    return NodeStep(
        method=method,
        b=b,
        s=s,
        alpha=alpha.item(),
        landing=landing.item(),
        value=value,
        loss=b * value,
        origin=origin,
        change=b * (value - origin),
        case=_case(setting, method, s, b, alpha.item()),
    )


def _sweep(setting: Setting, method: Method, s: Tensor, b: float) -> StepSweep:
    landing = setting.landing(method, s, setting.alpha(method, s, b))
    return StepSweep(
        method=method,
        b=b,
        step=_plain(s - landing),
        landing=_plain(landing),
        loss=_plain(b * setting.value(landing)),
    )


def _over_rates(setting: Setting, method: Method, s: float, b: float) -> RateSweep:
    """Return how long the step is as the rate grows: EB's without limit, IB's often with one."""
    at, lengths = _column([s]), []
    for lr in RATES:
        here = replace(setting, lr=lr)
        lengths.append(abs(s - here.landing(method, at, here.alpha(method, at, b)).item()))
    return RateSweep(method=method, b=b, length=lengths)


def _case(setting: Setting, method: Method, s: float, b: float, alpha: float) -> str:
    """Return what kind of step it is, in words."""
    if method == "ib" and setting.activation == "relu":
        return relu_words(s, b, setting.lr * setting.z_sq)
    if method == "eb":
        return f"The slope at s is {alpha / b:.3g}." if alpha else "No step: the slope at s is 0."
    explicit = setting.alpha("eb", _column([s]), b).item()
    share = abs(alpha) * (1 + setting.lr * setting.mu)  # of b, as EB's alpha is
    if abs(share - abs(explicit)) <= ALIKE * abs(b):
        return "As EB." if explicit else "No step, as EB."
    if share < abs(explicit):
        return "A shorter step than EB: on the way the slope falls."
    return "A longer step than EB: on the way the slope rises."


def _column(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def _plain(column: Tensor) -> list[float]:
    found: list[float] = column.squeeze(1).tolist()
    return found


def relu_line(s: float, b: float, travel: float) -> int:
    """Return which line of its sign's table applies.

    Args:
        s: Pre-activation before the step.
        b: Gradient at the node's output, not 0.
        travel: lr * |z|^2, how far one unit of alpha moves s.
    """
    bounds = (0.0, travel * b) if b > 0 else (travel * b / 2, 0.0)
    return sum(s > bound for bound in bounds)


def relu_words(s: float, b: float, travel: float) -> str:
    """Return what IB's step does, in the table's words."""
    return (
        RELU_LINES[1 if b > 0 else -1][relu_line(s, b, travel)][1] if b else "No step: b is zero."
    )


def relu_cases(s: float, b: float, travel: float) -> list[RuleCase]:
    """Return every line for b from s and for -b from -s, and which of them apply."""
    return [
        RuleCase(
            b=push, condition=condition, words=words, applies=index == relu_line(at, push, travel)
        )
        for at, push in ((s, b), (-s, -b))
        if push
        for index, (condition, words) in enumerate(RELU_LINES[1 if push > 0 else -1])
    ]
