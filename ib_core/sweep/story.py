"""Why a trial broke, or did not, in a few plain sentences: a function of its recording alone.

What counts: the loss explodes where `Recording.break_row` says so. The first layer to explode is
the one whose weights grow fivefold first, or else double, within `QUICK` rows near the break; where
none do, they grew slowly, and the layer that grew most is named. Sharpness is the last one measured
before the break, against 2/rate, above which plain gradient steps grow.
"""

import math
import re
from dataclasses import dataclass

import numpy as np

from ib_core.sweep.recording import EXPLODED, Floats, Recording

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
        edge: 2/rate there.
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


def tell(recording: Recording, diverged_at: int | None = None) -> Story:
    """Return what happened to a trial, as its recording has it.

    Args:
        recording: Of the trial.
        diverged_at: The step at which an evaluation found that it had diverged.
    """
    if len(recording.rows) < 2:
        return Story(("Nothing was recorded of its steps.",))
    row = recording.break_row()
    growth = first_to_explode(recording, row)
    sharpness, edge, measured_at = _sharpness(recording, row)
    broke_at = None if row is None else int(recording.steps[row])
    sentences = [
        _loss(recording, row, diverged_at),
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
    side = "above" if sharpness > edge else "below"
    what = f"Sharpness {brief(sharpness)} was {side} 2/rate = {brief(edge)} at step {step}"
    if broken or sharpness <= edge:
        return f"{what}."
    return f"{what}, where plain gradient steps grow."


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
