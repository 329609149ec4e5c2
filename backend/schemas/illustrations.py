"""Numbers behind the toy pictures."""

from typing import Literal

from pydantic import Field

from backend.schemas.base import Number, Output

__all__ = [
    "Loss",
    "NodeStep",
    "PathRead",
    "QuadraticRead",
    "RaceLane",
    "RaceRate",
    "RaceRead",
    "RateSweep",
    "RuleCase",
    "Samples",
    "StepSweep",
    "UpdateRead",
]

Loss = Literal["quadratic", "absolute", "logistic", "arctan_well"]


class Samples(Output):
    """A function drawn as a line."""

    x: list[float]
    y: list[Number]


class PathRead(Output):
    """Iterates of one method; null after they left the finite numbers."""

    method: Literal["esgd", "isgd"]
    theta: list[Number]
    loss: list[Number]
    factor: Number = Field(
        None, description="theta_{t+1}/theta_t on the quadratic; null for other losses."
    )
    verdict: Literal["converges", "oscillates", "diverges", "cycles"]


class QuadraticRead(Output):
    """Explicit and implicit descent on a one-dimensional loss."""

    loss: Loss
    curvature: float
    start: float
    lr: float
    steps: int
    stability_limit: Number = Field(description="2/curvature; null where no rate is too large.")
    minimum: float
    function: Samples
    paths: list[PathRead]


class NodeStep(Output):
    """One node's step from s."""

    method: Literal["eb", "ib"]
    b: float
    s: float
    alpha: Number
    landing: Number = Field(description="theta'^T z, where the step lands.")
    value: Number = Field(description="The activation there.")
    loss: Number = Field(description="The linearised loss b * activation there.")
    origin: Number = Field(None, description="The activation at s, before the step.")
    change: Number = Field(None, description="Loss there minus loss at s.")
    case: str = Field("", description="Which line of the rule applies, in words.")


class StepSweep(Output):
    """Step length and outcome against s, for one method and sign of b."""

    method: Literal["eb", "ib"]
    b: float
    step: list[Number] = Field(description="s - landing.")
    landing: list[Number]
    loss: list[Number]


class RateSweep(Output):
    """How long the step from s is at every rate, for one method and sign of b."""

    method: Literal["eb", "ib"]
    b: float
    length: list[Number] = Field(description="|s - landing|.")


class RuleCase(Output):
    """One line of an activation's rule, as the paper's table has it."""

    b: float
    condition: str = Field(description="For which s it holds.")
    words: str = Field(description="What the implicit step does.")
    applies: bool


class UpdateRead(Output):
    """One node's explicit and implicit update."""

    activation: str
    lr: float
    z_sq: float
    mu: float
    function: Samples
    steps: list[NodeStep] = Field(description="From the asked s with b, and from -s with -b.")
    s: list[float] = Field(description="Where the sweeps below are sampled.")
    sweeps: list[StepSweep]
    rates: list[float] = Field(description="Where the sweeps below are sampled, evenly in log.")
    by_rate: list[RateSweep] = Field(description="From the asked s with b, and from -s with -b.")
    jump: Number = Field(None, description="s at which the implicit step jumps for b < 0 (relu).")
    approximation_error: float | None = Field(
        None, description="Largest error in value of the piecewise-cubic stand-in; null: exact."
    )
    slope_error: float | None = Field(None, description="The same of its slope.")
    stand_in: list[tuple[float, float, float, float]] | None = Field(
        None, description="Its knots: place, value, slope on the left and on the right."
    )
    cases: list[RuleCase] = Field(
        default_factory=list, description="The rule's table for both signs of b (relu)."
    )


class RaceLane(Output):
    """One method at one learning rate."""

    method: str
    losses: list[list[Number]] = Field(
        description="Training loss after each epoch, a list a seed; null: not finite."
    )
    median: list[Number] = Field(description="Of the seeds, epoch by epoch.")
    broken: int = Field(description="How many seeds diverged.")


class RaceRate(Output):
    """Every method at one learning rate, and what is to be seen there."""

    lr: float
    words: str = Field(description="How each method fares at this rate.")
    ahead: str = Field(description="What breaks next as the rate is turned up.")
    lanes: list[RaceLane]


class RaceRead(Output):
    """The start page's race: stored trials of three methods by learning rate."""

    task: str
    epochs: list[float]
    initial: float = Field(description="Median loss before training.")
    seeds: int
    trials: int
    engine: str = Field(description="Version of the engine that trained them.")
    rates: list[RaceRate]
