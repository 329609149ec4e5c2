"""Refuses sweeps that could not be trained, each in one sentence: whatever remains is runnable."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from ib_core.errors import InvalidSpec, lookup
from ib_core.methods import METHODS, find_method
from ib_core.sweep import request
from ib_core.tasks import PaperTask, Task
from ib_core.updates import SOLVABLE

if TYPE_CHECKING:
    from ib_core.sweep.spec import SweepSpec

MOST_TRIALS = 20_000


def check_sweep(spec: "SweepSpec", task: Task) -> None:
    """Refuse a sweep that could not be trained.

    Raises:
        IBError: With one sentence that names the setting and what would work.
    """
    _check_methods(spec, task)
    for name in ("batch_rule", "epochs", "batch_size", "mu"):
        request.check(name, getattr(spec, name))
    if task.fixed_batch_size and spec.batch_size != task.fixed_batch_size:
        raise InvalidSpec(
            f"{task.name} trains {task.fixed_batch_size} piece at a time; "
            f"batch_size must be {task.fixed_batch_size}, got {spec.batch_size}.",
            field="batch_size",
        )
    if not spec.clips or len(set(spec.clips)) < len(spec.clips):
        raise InvalidSpec("Give each clip once: none, a norm, or both.", field="clip")
    request.check("clip", spec.clips)
    request.check("record", spec.record)
    if spec.activation is not None:
        if not task.activation:
            raise InvalidSpec(
                f"The layers of {task.name} have activations of their own; leave activation out.",
                field="activation",
            )
        lookup("activation", spec.activation, SOLVABLE)
    _check_options(spec, task)
    if spec.size > MOST_TRIALS:
        raise InvalidSpec(
            f"A sweep holds at most {MOST_TRIALS:,} trials; this one has {spec.size:,}.",
            field="learning_rates",
            hint="Split it into several sweeps of one study.",
        )


def _check_methods(spec: "SweepSpec", task: Task) -> None:
    if not spec.methods or len(set(spec.methods)) < len(spec.methods):
        raise InvalidSpec(
            f"Give each method once, at least one of: {', '.join(METHODS)}.", field="methods"
        )
    solving = any(find_method(method).implicit_output for method in spec.methods)
    if solving and not task.linear_output:
        ends = f"ends in {task.output}" if task.output else "has a loss it does not know"
        raise InvalidSpec(
            f"ib_plus solves a linear output layer, but {task.name} {ends}. "
            "Use ib here, or a task with a linear output such as digits_mlp.",
            field="methods",
        )


def _check_options(spec: "SweepSpec", task: Task) -> None:
    options = spec.options
    common = {name: None for name in options.__dataclass_fields__ if name != "own"}
    for name in common:
        of_task = name in task.options and not isinstance(task, PaperTask)
        if not of_task:
            value = getattr(options, name)
            request.check(f"options.{name}", asdict(value) if name == "decay" and value else value)
    codes = ("code", "method_code")
    for name, _ in options.own:
        if name not in task.options and name not in codes:
            lookup("option", name, {**common, **task.options}, field="options")
    for name in ("width", "depth"):
        if getattr(options, name) is not None and name not in task.options:
            raise InvalidSpec(
                f"{task.name} has a fixed {name}; leave options.{name} out.",
                field=f"options.{name}",
            )
    _check_together(spec)


def _check_together(spec: "SweepSpec") -> None:
    """Refuse options that another setting rules out."""
    if spec.options.validation is not None and spec.profile == "authors":
        raise InvalidSpec(
            "The authors trained on all rows; leave validation out, or the profile authors.",
            field="options.validation",
        )
    if spec.options.restart and spec.mu <= 0:
        raise InvalidSpec("Restarts need mu > 0 (App. C).", field="options.restart")
