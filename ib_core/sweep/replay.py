"""Why a trial broke, in words; and a trial trained again, alone and recorded, and checked.

It is trained twice: once to find the step at which its loss explodes, keeping every step's loss,
and once more with rows of every step around that one. Both change nothing about its numbers.

What counts: the loss explodes where `Recording.break_row` says so. The first layer to explode is
the one whose weights grow fivefold first, or else double, within `QUICK` rows near the break; where
none do, they grew slowly, and the layer that grew most is named. Sharpness is the last one measured
before the break, against 2/rate, above which plain gradient steps grow; of others it is not told.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ib_core.errors import MisuseError
from ib_core.methods import steps_plainly
from ib_core.sweep.recording import EXPLODED, Floats, Recording, Wish
from ib_core.sweep.result import SILENT, CurvePoint, Observer, Outcome, TrialResult
from ib_core.sweep.spec import TrialSpec

#: Rows within which weights that grow so much have exploded.
QUICK = 10
#: Rows before and behind the break in which the first layer to explode is looked for.
NEAR_BEFORE, NEAR_BEHIND = 40, 5
#: Growth that is worth a word.
GROWN = 2.0
#: Damping below this is worth a word.
DAMPED = 0.9


@dataclass(frozen=True, slots=True)
class Growth:
    """How a layer's weights grew.

    Attributes:
        layer: Its place, from 0.
        first: The step before it began.
        last: The step at which they were largest.
        fold: Their norm there over that at `first`; infinite where they stopped being finite.
        quick: Whether they exploded, or grew slowly.
    """

    layer: int
    first: int
    last: int
    fold: float
    quick: bool


@dataclass(frozen=True, slots=True)
class Story:
    """What happened to a trial.

    Attributes:
        sentences: In words.
        broke_at: The step whose loss exploded for good; None if none did.
        growth: The first layer to explode, or the one that grew most; None if none grew.
        sharpness: The last one before the break, or of all.
        edge: 2/rate there; None for a method whose steps are not the rate times a gradient.
    """

    sentences: tuple[str, ...]
    broke_at: int | None = None
    growth: Growth | None = None
    sharpness: float | None = None
    edge: float | None = None

    @property
    def text(self) -> str:
        """All sentences."""
        return " ".join(self.sentences)


def tell(recording: Recording, diverged_at: int | None = None, *, method: str = "eb") -> Story:
    """Return what happened to a trial, as its recording has it.

    Args:
        recording: Of the trial.
        diverged_at: The step at which an evaluation found that it had diverged.
        method: Of the trial; 2/rate means something only to those that step plainly.
    """
    if len(recording.rows) < 2:
        return Story(("Nothing was recorded of its steps.",))
    row = recording.break_row()
    growth = first_to_explode(recording, row)
    sharpness, edge, measured_at = _sharpness(recording, row)
    edge = edge if steps_plainly(method) else None
    broke_at = None if row is None else int(recording.steps[row])
    sentences = [
        _loss(recording, row, diverged_at),
        "" if not row else _around(recording, row),
        _weights(recording, growth, row),
        _curvature(sharpness, edge, measured_at, broken=row is not None),
        _damping(recording, row),
        f"{recording.note}." if recording.note else "",
    ]
    told = tuple(sentence for sentence in sentences if sentence)
    return Story(told, broke_at, growth, sharpness, edge)


def first_to_explode(recording: Recording, row: int | None) -> Growth | None:
    """Return the layer whose weights exploded first near the break, or grew most up to it.

    Args:
        recording: Of the trial.
        row: Where it broke; None if it did not, and then the whole way is looked at.
    """
    weights = recording.of_layers("weights")
    if not weights.size:
        return None
    end = len(weights) - 1 if row is None else min(len(weights) - 1, row + NEAR_BEHIND)
    begin = 1 if row is None else max(1, row - NEAR_BEFORE)
    for least in (EXPLODED, GROWN) if row is not None else ():
        for now in range(begin, end + 1):
            back = max(0, now - QUICK)
            fold = _folds(weights[back], weights[now])
            if np.nanmax(fold, initial=0.0) >= least:
                layer = int(np.nanargmax(fold))
                return _growth(recording, weights[:, layer], layer, back, now, end)
    fold = _folds(weights[0], weights[end])
    if np.nanmax(fold, initial=0.0) < GROWN:
        return None
    layer = int(np.nanargmax(fold))
    steps = recording.steps
    return Growth(layer, int(steps[0]), int(steps[end]), float(fold[layer]), quick=False)


def _folds(before: Floats, after: Floats) -> Floats:
    """Return how many times larger each layer's weights are; infinite if they are not finite."""
    with np.errstate(all="ignore"):
        fold = np.where(before > 0, after / before, np.nan)
    return np.where(np.isfinite(before) & ~np.isfinite(after), np.inf, fold)


def _growth(
    recording: Recording, norms: Floats, layer: int, back: int, now: int, end: int
) -> Growth:
    """Return how one layer grew from before it exploded to where it was largest."""
    smallest = back + int(np.argmin(norms[back:now]))
    while smallest + 1 < now and norms[smallest + 1] <= 1.1 * norms[smallest]:
        smallest += 1
    later = norms[now : end + 1]
    lost = ~np.isfinite(later)
    if lost.any() and not np.isfinite(later).any():
        return Growth(
            layer, int(recording.steps[smallest]), int(recording.steps[now]), math.inf, quick=True
        )
    largest = now + int(np.nanargmax(np.where(lost, -np.inf, later)))
    fold = float(norms[largest] / norms[smallest])
    steps = recording.steps
    return Growth(layer, int(steps[smallest]), int(steps[largest]), fold, quick=True)


def _loss(recording: Recording, row: int | None, diverged_at: int | None) -> str:
    losses, steps = recording.losses, recording.steps
    if row is None and diverged_at is not None:
        return (
            f"It diverged: over the whole training set its loss was above {EXPLODED:g} times the "
            f"initial one at step {diverged_at}, though no batch's stayed there."
        )
    if row is None:
        return (
            f"It never broke: the loss went from {brief(losses[0])} to {brief(losses[-1])} "
            f"in {steps[-1]} steps."
        )
    if row == 0:
        return "Its loss was not a finite number before the first step."
    if not math.isfinite(losses[row]):
        return (
            f"Its loss stopped being a finite number at step {steps[row]}; "
            f"at step {steps[row - 1]} it was {brief(losses[row - 1])}."
        )
    return (
        f"Its loss went above {EXPLODED:g} times the initial {brief(losses[0])} at step "
        f"{steps[row]}: {brief(losses[row])}, after {brief(losses[row - 1])} at step "
        f"{steps[row - 1]}."
    )


def _around(recording: Recording, row: int) -> str:
    """Return whether a batch's loss was as high before it broke for good, and how it ended."""
    early, end = recording.high_before(row), recording.came_back(row)
    told = f"Single batches' had been as high, the first at step {early}." if early else ""
    back = f"It came back below the initial loss, to {brief(end)} in the end." if end else ""
    return f"{told} {back}".strip()


def _weights(recording: Recording, growth: Growth | None, row: int | None) -> str:
    if growth is None:
        near = " before it broke" if row is not None else ""
        return f"No layer's weights doubled{near}." if recording.layers else ""
    name = layer_title(growth.layer)
    between = f"between steps {growth.first} and {growth.last}"
    if math.isinf(growth.fold):
        return f"{name}'s weights stopped being finite {between}."
    slowly = "" if growth.quick else ", slowly"
    return f"{name}'s weights grew {_fold(growth.fold)} {between}{slowly}."


def layer_title(layer: int) -> str:
    """Return what a layer is called in sentences, counted from 1."""
    return f"Layer {layer + 1}"


def brief(value: float) -> str:
    """Return a number with three digits."""
    return re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.3g}")


def _fold(fold: float) -> str:
    return f"{fold:.1f}-fold" if fold < 10 else f"{brief(fold)}-fold"


def _sharpness(
    recording: Recording, row: int | None
) -> tuple[float | None, float | None, int | None]:
    """Return the last sharpness before the break, 2/rate there, and the step."""
    last = recording.steps[-1] if row is None else max(0, recording.steps[row] - 1)
    known = [(s, v) for s, v in recording.sharp.tolist() if s <= last and math.isfinite(v)]
    if not known:
        return None, None, None
    step, value = known[-1]
    place = min(int(np.searchsorted(recording.steps, step + 1)), len(recording.rows) - 1)
    return value, 2 / float(recording.rates[place]), int(step)


def _curvature(
    sharpness: float | None, edge: float | None, step: int | None, *, broken: bool
) -> str:
    if sharpness is None or edge is None:
        return ""
    side = "above" if (high := sharpness > edge) else "below"
    grow = ", where plain gradient steps grow" if high and not broken else ""
    return f"Sharpness {brief(sharpness)} was {side} 2/rate = {brief(edge)} at step {step}{grow}."


def _damping(recording: Recording, row: int | None) -> str:
    """Return how much smaller the implicit steps were, on average over layers and steps."""
    damping = recording.of_layers("damping")[1 : None if row is None else row + 1]
    if not np.isfinite(damping).any():
        return ""
    by_layer = [float(np.nanmean(c)) if np.isfinite(c).any() else math.nan for c in damping.T]
    if np.nanmin(by_layer) >= DAMPED:
        return ""
    layer = int(np.nanargmin(by_layer))
    return (
        f"The implicit steps of {layer_title(layer).lower()} were damped most: on average to "
        f"{brief(by_layer[layer])} of the explicit ones."
    )


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


def _run_here(trials: Sequence[TrialSpec], *, device: str, observer: Observer) -> object:
    # Whoever only tells why a trial broke need not carry torch.
    from ib_core.sweep.engine import run_trials

    return run_trials(trials, device=device, observer=observer)


def replay_trial(
    trial: TrialSpec,
    *,
    device: str = "cpu",
    observer: Observer = SILENT,
    run: Run = _run_here,
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
    story = tell(result.recording, diverged_at, method=trial.method)
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
