"""What a stack will cost: counted work, divided by speeds measured on this machine.

Work is counted from the network's shape: torch calls, multiplications, element-wise passes,
implicit solves, parameters touched, and weights streamed through a recurrent loop. The speeds
come from seconds of measuring (`ib_core.sweep.machine`), kept between runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ib_core.datasets import data_card
from ib_core.methods import find_method
from ib_core.sweep.machine import Speed, machine_speed
from ib_core.sweep.recording import LOOKS
from ib_core.sweep.spec import TrialSpec
from ib_core.tasks import (
    CONV_FILTERS,
    EVALUATION_OUTPUTS,
    EVALUATION_ROWS,
    EVALUATION_STATES,
    PaperTask,
    Recipe,
    Task,
    find_task,
    paper_task,
    parameter_count,
)

__all__ = ["Speed", "machine_speed", "stack_memory", "stack_seconds"]

#: Element-wise passes over a layer's outputs in one explicit step (activation, slope, sums).
PASSES = 9
#: Passes of one evaluation.
FORWARD_PASSES = 3
#: Torch calls (and their share of autograd and Python) a layer: a step, one more solve, a forward.
CALLS_PER_LAYER, CALLS_PER_SOLVE, CALLS_PER_FORWARD = 26, 12, 6
#: What a step of anybody's small model takes besides its rows, and what stacking gains on it.
STEP_SECONDS, STACKED_GAIN = 4e-4, 3.0
#: Convolutions are done member by member.
CALLS_PER_CONVOLUTION = 30
#: Passes over a convolution's outputs: pooling, relu and their gradients.
CONVOLVED_PASSES = 4.5
#: Rows over which sharpness is taken, and Hessian-vector products of one, as a rule.
SAMPLE_ROWS, PRODUCTS = 250, 25
#: Passes over the parameters, in units of a pass that evaluates an activation.
PARAMETER_PASSES = 0.5


@dataclass(frozen=True, slots=True)
class Shape:
    """What the counting needs to know about a network and its data.

    Attributes:
        widths: Layer widths, input to output.
        rows: Training rows (frames of music).
        test_rows: Test rows (frames).
        steps: Steps an epoch.
        parameters: Weights and biases.
        longest: Longest piece's frames, 0 without music.
    """

    widths: tuple[int, ...]
    rows: int
    test_rows: int
    steps: int
    parameters: int
    longest: int = 0

    @property
    def batch(self) -> float:
        """Rows a step, on average."""
        return self.rows / self.steps

    @property
    def products(self) -> int:
        """Multiplications a row in one forward pass of the dense layers."""
        return sum(n * m for n, m in zip(self.widths, self.widths[1:], strict=False))

    @property
    def outputs(self) -> int:
        """Numbers a row that leave a layer."""
        return sum(self.widths[1:])


def stack_seconds(members: Sequence[TrialSpec], speed: Speed) -> float:
    """Return the forecast training time of these trials as one stack, in seconds."""
    first, count = members[0], len(members)
    task = find_task(first.task)
    if not isinstance(task, PaperTask):
        return speed.start_seconds + _model_seconds(task, first, count)
    shape = _shape_of(first)
    implicit = sum(find_method(m.method).implicit for m in members)
    steps = shape.steps * first.epochs
    inner = (first.options.inner_steps or 1) if find_method(first.method).exact else 1
    dense = _step_seconds(shape, first.activation, count, implicit, speed)
    extra = _loop_seconds(task, shape, count, speed)
    if first.of_task.get("convolutions") == "implicit":
        extra *= IMPLICIT_CONVOLUTIONS
    evaluations = first.epochs + 1 + len(task.evaluate_at)
    return (
        speed.start_seconds
        + steps * inner * (dense + extra)
        + evaluations * _evaluation_seconds(task, shape, count, speed)
        + _recording_steps(members, steps, evaluations, shape.batch) * (dense + extra)
    )


def _recording_steps(
    members: Sequence[TrialSpec], steps: int, evaluations: int, batch: float
) -> float:
    """Return how many steps' time a stack spends on what is recorded of its way.

    A row of norms repeats a step's gradient products and reads all weights twice, about half a
    step; a Hessian-vector product takes about three steps' time on the rows of the sample.
    """
    wishes = [member.wish for member in members if member.wish is not None]
    found = 0.0
    if any("norms" in wish.what for wish in wishes):
        found += 0.5 * max(len(wish.steps(steps)) for wish in wishes)
    if any("sharpness" in wish.what for wish in wishes):
        found += evaluations * PRODUCTS * 3 * SAMPLE_ROWS / batch
    if any("activations" in wish.what for wish in wishes):
        found += len(LOOKS) * SAMPLE_ROWS / batch / 3
    return found


#: What unfolding patches costs, against torch's convolutions.
IMPLICIT_CONVOLUTIONS = 3.0
#: Numbers that are alive at the peak of a step, per output of a layer and row: measured.
REMEMBERED, MOST_REMEMBERED = {"relu": 6.8}, 10.3
#: Likewise, copies of the hidden states while pieces of music are evaluated.
EVALUATION_COPIES = 6.0


def stack_memory(members: Sequence[TrialSpec]) -> int:
    """Return the forecast peak memory of these trials as one stack, in bytes, data apart.

    Weights, gradients and optimizer state; and what the layers remember of one batch with the
    temporaries of a solve, or one evaluation chunk, whichever is more.
    """
    first, count = members[0], len(members)
    copies = 2 * count + sum(find_method(member.method).copies for member in members)
    task = find_task(first.task)
    if not isinstance(task, PaperTask):
        found = task.footprint(first.of_task)
        return int(4 * (copies * found.parameters + count * first.batch_size * found.row_numbers))
    shape = _shape_of(first)
    rows = max(shape.batch, shape.longest)
    per_output = REMEMBERED.get(first.activation, MOST_REMEMBERED)
    remembered = count * rows * (shape.widths[0] + per_output * shape.outputs)
    if task.family == "conv":
        remembered += count * rows * 12_000
        if first.of_task.get("convolutions") == "implicit":
            patches, outputs = _convolutions(task)
            remembered += count * rows * (patches / min(CONV_FILTERS) + per_output * outputs)
    if shape.longest:
        numbers = min(EVALUATION_STATES, count * shape.rows * shape.widths[1])
        evaluated = EVALUATION_COPIES * numbers
    else:
        rows = min(EVALUATION_ROWS, count * shape.rows)
        evaluated = 4 * min(EVALUATION_OUTPUTS, rows * max(shape.widths))
    return int(4 * (copies * shape.parameters + max(remembered, evaluated)))


def _step_seconds(shape: Shape, activation: str, count: int, implicit: int, speed: Speed) -> float:
    layers = len(shape.widths) - 1
    calls = layers * (CALLS_PER_LAYER + (CALLS_PER_SOLVE if implicit else 0))
    outputs = shape.batch * shape.outputs
    multiplications = 3 * shape.batch * shape.products
    return (
        calls * speed.call_seconds
        + count * multiplications / speed.products_per_second(shape.products / layers)
        + count * PASSES * outputs / speed.elements_per_second
        + implicit * outputs * speed.solve_seconds(activation)
        + count * PARAMETER_PASSES * shape.parameters / speed.elements_per_second
    )


def _model_seconds(task: Task, first: TrialSpec, count: int) -> float:
    """Return the forecast of a user's model, from one step of it that was timed here."""
    found = task.footprint(first.of_task)
    method = find_method(first.method)
    inner = (first.options.inner_steps or 1) if method.exact else 1
    steps = -(-found.rows // first.batch_size) * first.epochs * inner
    rows = (first.epochs + 1) * (found.rows + found.test_rows)
    step = STEP_SECONDS + first.batch_size * found.row_seconds
    steps += round(_recording_steps([first], steps, first.epochs + 1, first.batch_size))
    return count * (steps * step + rows * found.row_seconds / 3) / STACKED_GAIN


def _loop_seconds(task: PaperTask, shape: Shape, count: int, speed: Speed) -> float:
    """Return what a step spends in loops: time steps of a recurrent layer, convolutions."""
    if task.family == "music":
        return 2 * count * shape.batch * shape.widths[1] ** 2 / speed.loop_per_second("music")
    if task.family == "conv":
        products, outputs = _convolutions(task)
        calls = CALLS_PER_CONVOLUTION * len(task.filter_sizes) * speed.call_seconds
        passes = CONVOLVED_PASSES * shape.batch * outputs / speed.elements_per_second
        convolved = 3 * shape.batch * products / speed.loop_per_second("conv")
        return count * (convolved + passes + calls)
    return 0.0


def _evaluation_seconds(task: PaperTask, shape: Shape, count: int, speed: Speed) -> float:
    rows = (shape.rows + shape.test_rows) * count
    seconds = rows * shape.products / speed.products_per_second(shape.products)
    seconds += rows * FORWARD_PASSES * shape.outputs / speed.elements_per_second
    seconds += CALLS_PER_FORWARD * len(shape.widths) * (rows / 20_000 + 2) * speed.call_seconds
    if task.family == "music":
        seconds += rows * shape.widths[1] ** 2 / speed.loop_per_second("music")
    if task.family == "conv":
        products, outputs = _convolutions(task)
        seconds += rows * products / speed.loop_per_second("conv")
        seconds += rows * outputs * CONVOLVED_PASSES / 3 / speed.elements_per_second
    return seconds


def _convolutions(task: PaperTask) -> tuple[int, int]:
    """Return the multiplications and the outputs a row of both convolutions."""
    maps, sizes = task.feature_maps(), task.filter_sizes
    channels = (1, *CONV_FILTERS)
    products = (n * c * size * size for n, c, size in zip(maps, channels, sizes, strict=False))
    return sum(products), sum(maps)


def _shape_of(trial: TrialSpec) -> Shape:
    return _shape(
        trial.task,
        trial.profile,
        trial.activation,
        trial.batch_size,
        trial.options.width,
        trial.options.depth,
    )


@lru_cache(maxsize=1024)
def _shape(
    name: str,
    profile: str,
    activation: str,
    batch_size: int,
    width: int | None,
    depth: int | None,
) -> Shape:
    task = paper_task(name)
    recipe = Recipe(profile, activation, batch_size, width, depth)
    card = data_card(task.dataset)
    return Shape(
        widths=task.widths(recipe),
        rows=card.rows,
        test_rows=card.test_rows,
        steps=card.pieces or -(-card.rows // batch_size),
        parameters=parameter_count(task, recipe),
        longest=card.longest,
    )
