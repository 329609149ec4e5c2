"""What a step asks of a GPU: its launches, counted on tensors without numbers, and their budget.

On the device `meta` a step does everything but the arithmetic, and raises where it would wait for a
number. Each call of torch that is no mere view is a launch on a GPU, which takes it some five
microseconds whatever its size; small networks are little else.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from ib_core.bench.steps import StepCase, engine_steps, trials_of
from ib_core.errors import InvalidSpec
from ib_core.kernels import Launches, torch_formulas

#: By method, how many times EB's launches a step may take. Tests hold every task to it.
LAUNCH_BUDGET = {"ib": 1.5, "ib_plus": 1.5, "sps": 1.5, "ngn": 1.5}
#: What is counted, and by how many members: launches must not grow with them.
COUNTED = ("digits_mlp", "digits_autoencoder", "digits_conv", "music/procedural")
FEW, MANY = 4, 40


def count_launches(step: Callable[[], object]) -> Launches:
    """Return the torch calls of a step, after one that is not counted: it fills what is kept."""
    step()
    found = Launches()
    with found:
        step()
    return found


def launches_of(task: str, method: str, members: int, *, fused: bool = True) -> Launches:
    """Return the torch calls of one step of a stack.

    Args:
        task: A task of the catalogue's.
        method: A method of the catalogue's.
        members: Of the stack.
        fused: Whether with kernels of our own, or with torch calls alone.
    """
    case = StepCase(task, task, (method,), members=members)
    with nullcontext() if fused else torch_formulas():
        return count_launches(engine_steps(trials_of(case, method), 1, device="meta"))


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """One line of the table: a step's launches, and those of torch calls alone."""

    task: str
    method: str
    few: int
    many: int
    in_torch: int
    over_eb: float


def count_steps(methods: Sequence[str], tell: Callable[[str], None]) -> Iterator[LaunchResult]:
    """Count the launches of a step of every counted task, by every method that fits it."""
    for task in COUNTED:
        tell(task)
        explicit = launches_of(task, "eb", MANY).total
        for method in methods:
            try:
                many = launches_of(task, method, MANY).total
            except InvalidSpec:  # ib_plus needs a linear output
                continue
            few = launches_of(task, method, FEW).total
            in_torch = launches_of(task, method, MANY, fused=False).total
            yield LaunchResult(task, method, few, many, in_torch, many / explicit)
