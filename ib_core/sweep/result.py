"""What training returns: outcomes are values, and divergence is one of them.

A result is found again by its trial's address, a hash of everything that decides it.
"""

import csv
import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import IO, Any

from ib_core.errors import said_where
from ib_core.methods import find_method
from ib_core.sweep.recording import Recording, recording_answer
from ib_core.sweep.spec import Options, TrialSpec
from ib_core.tasks import OWN_TASKS

#: Bumped by every change that moves a number. Only trials of one version may share a plot.
ENGINE_VERSION = "1"
#: How far below its lowest value a loss may be reckoned, relative: sums are rounded.
ROUNDING = 1e-6


def fingerprint(trial: TrialSpec, data_hash: str) -> str:
    """Return the trial's content address, 64 hexadecimal digits.

    Device and shard are left out: they move a result by rounding only, and are in its record.

    Args:
        trial: A trial in normal form (settings its method ignores are None).
        data_hash: `Dataset.sha256` of the data it is trained on.
    """
    content = {"engine": ENGINE_VERSION, "data": data_hash, "trial": trial.as_dict()}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


class Outcome(StrEnum):
    """How a trial ended; only `FAILED` is a fault."""

    COMPLETED = "completed"
    DIVERGED = "diverged"  # a finding: drawn on the plot, part of every mean
    FAILED = "failed"  # code or machine broke: shown as an error, kept out of means


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Whole-set losses in evaluation mode after `step` steps; may hold non-finite numbers.

    Accuracies are fractions in [0, 1], None where the task has no classes; what is measured on
    validation rows is None where none are held out.
    """

    step: int
    epoch: float
    train_loss: float
    test_loss: float
    train_accuracy: float | None = None
    test_accuracy: float | None = None
    validation_loss: float | None = None
    validation_accuracy: float | None = None

    def noted(self, way: Mapping[str, str]) -> Mapping[str, str]:
        """Return how a trial that began here was trained; a loss that no rate has broken is told.

        Args:
            way: As for its record.
        """
        if not way or math.isfinite(self.train_loss):
            return way
        lost = "the loss is not finite before the first step: look at the model and the data"
        return {**way, "why": f"{lost}; {way['why']}"}


def lost_point(last: CurvePoint, step: int, epoch: float) -> CurvePoint:
    """Return the point of a member that is no longer finite: NaN where there was a number."""
    lost: dict[str, Any] = {
        name: math.nan for name, value in asdict(last).items() if value is not None
    }
    return CurvePoint(**{**lost, "step": step, "epoch": epoch})


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
    """Everything there is to know about one finished trial.

    `restarts` counts how often it was put back to zero (App. C); `at_zero` tells that it ended
    there, which is no success although it `completed`. `recording` is there where its spec wished
    for one.
    """

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
    restarts: int = 0
    at_zero: bool = False
    validation_loss: float | None = None
    validation_accuracy: float | None = None
    recording: Recording | None = None


def failed_result(trial: TrialSpec, data_hash: str, error: BaseException | str) -> TrialResult:
    """Return the result of a trial whose code or machine broke, in the error's words."""
    nothing = math.nan
    if not isinstance(error, str):
        error = said_where(error, getattr(OWN_TASKS.get(trial.task), "model", None))
    return TrialResult(
        spec=trial,
        outcome=Outcome.FAILED,
        initial_loss=nothing,
        train_loss=nothing,
        test_loss=nothing,
        train_accuracy=None,
        test_accuracy=None,
        divergence=None,
        seconds=0.0,
        curve=(),
        fingerprint=fingerprint(trial, data_hash),
        record={"engine": ENGINE_VERSION, "data": data_hash},
        error=error,
    )


def below_lowest(trial: TrialSpec, loss: float) -> str | None:
    """Return what to say of a loss below f*, which the trial's method takes for the lowest.

    Polyak's step and its kin would stand still there, and look as if they had arrived.
    """
    method = find_method(trial.method)
    if "f_star" not in method.options:
        return None
    lowest = float(method.values.get("f_star", method.options["f_star"].default or 0.0))
    if not loss < lowest - ROUNDING * max(1.0, abs(lowest)):
        return None
    base = trial.method.partition("(")[0]
    return (
        f"{base} cuts its steps by how far the loss is above f* = {lowest:g}, its lowest value, "
        f"but the training loss is {loss:.6g}; say a bound that it never falls below, as in "
        f"{base}(f_star={math.floor(min(10 * loss, loss - 10)):g}), or use another method."
    )


class Observer:
    """Watches a shard train. Indices are positions in the list given to `run_trials`.

    Override what you need. Exceptions raised here end the run.
    """

    def points(self, points: Mapping[int, CurvePoint]) -> None:
        """Called after every evaluation with the new point of every member still training."""

    def finished(self, index: int, result: TrialResult) -> None:
        """Called as soon as a trial has ended, early for non-finite ones."""

    def progress(self, fraction: float) -> Collection[int]:
        """Called a few times a second between steps.

        Args:
            fraction: Share of the shard's work that is done.

        Returns:
            Indices that are no longer wanted; they are dropped and give no result.
        """
        del fraction
        return ()


SILENT = Observer()


COLUMNS = (
    "task",
    "profile",
    "method",
    "batch_rule",
    "activation",
    "lr",
    "seed",
    "clip",
    "mu",
    "epochs",
    "batch_size",
    "options",
    "outcome",
    "initial_loss",
    "train_loss",
    "test_loss",
    "train_accuracy",
    "test_accuracy",
    "validation_loss",
    "validation_accuracy",
    "diverged_at_step",
    "restarts",
    "seconds",
    "fingerprint",
)


def row_of(result: TrialResult) -> dict[str, Any]:
    """Return a result's row. A number that is not finite is None beside its outcome."""
    spec = result.spec
    row = {name: getattr(spec, name) for name in COLUMNS if hasattr(spec, name)}
    row["options"] = options_text(spec.options)
    row["outcome"] = result.outcome.value
    for name in COLUMNS[COLUMNS.index("initial_loss") : COLUMNS.index("diverged_at_step")]:
        row[name] = finite_or_none(getattr(result, name))
    row["diverged_at_step"] = result.divergence.step if result.divergence else None
    row["restarts"] = result.restarts
    row["seconds"] = round(result.seconds, 4)
    row["fingerprint"] = result.fingerprint
    return {name: row[name] for name in COLUMNS}


def options_text(options: Options) -> str:
    """Return the options that were set as JSON, empty if none was."""
    chosen = {
        name: value for name, value in options.as_dict().items() if value not in (None, False)
    }
    return json.dumps(chosen, sort_keys=True) if chosen else ""


def finite_or_none(value: float | None) -> float | None:
    """Return the number, or None where it is missing or not finite."""
    return value if value is not None and math.isfinite(value) else None


def write_csv(results: Iterable[TrialResult], file: IO[str]) -> None:
    """Write one line a trial; what is not defined is empty."""
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for result in results:
        writer.writerow(row_of(result))


def write_json(results: Iterable[TrialResult], file: IO[str]) -> None:
    """Write a list of trials with their curves and records."""
    found = [
        {
            **row_of(result),
            "record": result.record,
            "curve": [
                {name: finite_or_none(value) for name, value in asdict(point).items()}
                for point in result.curve
            ],
            **({"recording": recording_answer(result.recording)} if result.recording else {}),
        }
        for result in results
    ]
    json.dump({"trials": found}, file, indent=1, allow_nan=False)
    file.write("\n")
