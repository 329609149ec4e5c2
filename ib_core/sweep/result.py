"""What training returns: outcomes are values, and divergence is one of them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ib_core.sweep.spec import TrialSpec


class Outcome(StrEnum):
    """How a trial ended; only `FAILED` is a fault."""

    COMPLETED = "completed"
    DIVERGED = "diverged"  # a finding: drawn on the plot, part of every mean
    FAILED = "failed"  # code or machine broke: shown as an error, kept out of means


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Whole-set losses in evaluation mode after `step` steps; may hold non-finite numbers.

    Accuracies are fractions in [0, 1], None where the task has no classes.
    """

    step: int
    epoch: float
    train_loss: float
    test_loss: float
    train_accuracy: float | None = None
    test_accuracy: float | None = None


@dataclass(frozen=True, slots=True)
class Divergence:
    """When and where a trial first left the ground.

    Attributes:
        step: Steps taken when it was seen.
        where: `loss` (above 5 x its initial value, or non-finite), `weight` or `gradient`.
        layer: Name of the first layer concerned; None for a loss.
    """

    step: int
    where: str
    layer: str | None = None


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Everything there is to know about one finished trial."""

    spec: TrialSpec
    outcome: Outcome
    initial_loss: float
    train_loss: float
    test_loss: float
    train_accuracy: float | None
    test_accuracy: float | None
    divergence: Divergence | None
    seconds: float
    curve: tuple[CurvePoint, ...]
    fingerprint: str
    record: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
