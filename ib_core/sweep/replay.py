"""A trial trained again, alone, with everything recorded around its break; and checked.

It is trained twice: once to find the step at which its loss explodes, keeping every step's loss,
and once more with rows of every step around that one. Both change nothing about its numbers.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from ib_core.errors import MisuseError
from ib_core.sweep.engine import run_trials
from ib_core.sweep.recording import Recording, Wish
from ib_core.sweep.result import SILENT, CurvePoint, Observer, Outcome, TrialResult
from ib_core.sweep.spec import TrialSpec
from ib_core.sweep.story import Story, brief, tell

#: Numbers that differ by less than this share are the same up to rounding: other neighbours in a
#: stack, or another machine, add up in another order.
ROUNDING = 1e-3
#: Trains trials and tells their results to an observer, as `run_trials` does.
Run = Callable[..., object]
#: What is compared.
COMPARED = ("train_loss", "test_loss")


@dataclass(frozen=True, slots=True)
class Replayed:
    """A trial, trained again.

    Attributes:
        result: Its result.
        recording: Its way.
        story: What happened, in words.
    """

    result: TrialResult
    recording: Recording
    story: Story


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether a replay gave the numbers that were known.

    Attributes:
        same: Whether it did, up to rounding.
        off: Largest difference as a share of the known number; None where an outcome differs.
        sentence: In words.
    """

    same: bool
    off: float | None
    sentence: str


class _Part(Observer):
    """Passes on one of two trainings of the same trial."""

    def __init__(self, outer: Observer, part: int) -> None:
        self.outer, self.part = outer, part
        self.result: TrialResult | None = None

    def finished(self, index: int, result: TrialResult) -> None:
        """Keep what came of it."""
        del index
        self.result = result

    def points(self, points: Mapping[int, CurvePoint]) -> None:
        """Pass on the second training's points."""
        if self.part == 1:
            self.outer.points(points)

    def progress(self, fraction: float) -> Collection[int]:
        """Pass on how far both are."""
        return self.outer.progress((self.part + fraction) / 2)


def replay_trial(
    trial: TrialSpec, *, device: str = "cpu", observer: Observer = SILENT, run: Run = run_trials
) -> Replayed | None:
    """Train a trial alone and record all of it; None if the observer no longer wants it.

    Args:
        trial: What to train.
        device: Where.
        observer: Told about points and progress; may call it off.
        run: Trains a list of trials and tells their results, where it is not to be done here.

    Raises:
        MisuseError: Its own code failed, in its words.
    """
    scout = _train(trial, Wish((), most=None), device, _Part(observer, 0), run)
    if scout is None:
        return None
    assert scout.recording is not None
    row = scout.recording.break_row()
    diverged_at = None if scout.divergence is None else scout.divergence.step
    around = diverged_at if row is None else max(1, int(scout.recording.steps[row]))
    result = _train(trial, Wish(around=around), device, _Part(observer, 1), run)
    if result is None:
        return None
    assert result.recording is not None
    story = tell(result.recording, diverged_at)
    return Replayed(replace(result, recording=None), result.recording, story)


def _train(trial: TrialSpec, wish: Wish, device: str, part: _Part, run: Run) -> TrialResult | None:
    run([replace(trial, wish=wish)], device=device, observer=part)
    result = part.result
    if result is not None and result.outcome is Outcome.FAILED:
        raise MisuseError(f"The trial fails: {result.error}")
    return result


def agreement(result: TrialResult, known: Mapping[str, float | str | None]) -> Agreement:
    """Return whether a replay gave the numbers that were known.

    Args:
        result: Of the replay.
        known: The stored `outcome`, `train_loss` and `test_loss`; None for a loss that is not
            finite, or not known.
    """
    if result.outcome.value != known["outcome"]:
        return Agreement(
            False, None, f"The replay {result.outcome.value}, the stored trial {known['outcome']}."
        )
    off = max((_off(getattr(result, name), known.get(name)) for name in COMPARED), default=0.0)
    if off == 0:
        return Agreement(True, 0.0, "The replay gave the stored numbers, digit by digit.")
    if off <= ROUNDING:
        return Agreement(
            True, off, f"The replay gave the stored numbers up to rounding: off by {brief(off)}."
        )
    return Agreement(
        False,
        None if math.isinf(off) else off,
        "The replay ended alike, with other numbers"
        + ("" if math.isinf(off) else f": off by {brief(100 * off)} %")
        + ". Alone it adds up in another order than in its stack, and a trial that breaks makes "
        "much of that.",
    )


def _off(found: float, known: float | str | None) -> float:
    finite = math.isfinite(found)
    if known is None or not isinstance(known, float | int):
        return math.inf if finite else 0.0
    if not finite:
        return math.inf
    return 0.0 if found == known else abs(found - known) / max(abs(known), 1e-300)
