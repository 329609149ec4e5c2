"""One ordinary model, K of them inside one, or one in the clothes of a stack.

A model's size for planning, found by asking it; a user's code is asked in another process.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ib_core.errors import MisuseError
from ib_core.layers import ImplicitLayer
from ib_core.tasks.rows_of_data import Rows
from ib_core.tasks.task import Footprint

if TYPE_CHECKING:
    from ib_core.tasks.task import Task


def build_model(task: Task, seed: int, values: Mapping[str, Any]) -> nn.Module:
    """Return a new model with its seed's initial weights; torch's generators stay as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = task.model(**values)
    if not isinstance(model, nn.Module):
        raise MisuseError(
            f"The model function of {task.name} must return an nn.Module; "
            f"got {type(model).__name__}."
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise MisuseError(f"The model of {task.name} has no parameters to learn.")
    return model


def one_number(loss: Tensor, task: Task, members: int) -> Tensor:
    """Return a loss, or refuse one that is not a number a member."""
    if not isinstance(loss, Tensor) or loss.dim() != members:
        got = tuple(loss.shape[members:]) if isinstance(loss, Tensor) else type(loss).__name__
        raise MisuseError(
            f"The loss of {task.name} must return one number, the mean over rows; got {got}."
        )
    return loss


class Stack:
    """The parameters and buffers of K models inside one of them, [members, ...]."""

    def __init__(self, base: nn.Module) -> None:
        self.base = base
        self._before: dict[str, Tensor] = {}
        self._taken_at = -1

    def fill(self, models: Sequence[nn.Module], rows: Sequence[int]) -> None:
        """Replace every parameter and buffer by those of the members.

        Args:
            models: One a seed; the first is the base itself.
            rows: Which of them each member starts from.
        """
        new: dict[int, Any] = {}
        others = [dict(model.named_modules()) for model in models]
        for path, module in list(self.base.named_modules()):
            for kind in ("_parameters", "_buffers"):
                for name, old in list(getattr(module, kind).items()):
                    if old is None:
                        continue
                    if id(old) not in new:
                        each = [getattr(other[path], kind)[name].detach() for other in others]
                        stacked = torch.stack(each)[rows].contiguous()
                        new[id(old)] = (
                            nn.Parameter(stacked, requires_grad=old.requires_grad)
                            if kind == "_parameters"
                            else stacked
                        )
                        new[id(new[id(old)])] = new[id(old)]
        self._swap(new)

    def _swap(self, new: dict[int, Any]) -> None:
        for module in self.base.modules():
            for kind in ("_parameters", "_buffers"):
                for name, old in list(getattr(module, kind).items()):
                    if old is not None:
                        setattr(module, name, new[id(old)])

    def tensors(self) -> dict[str, Tensor]:
        """Return parameters and buffers by name, the members in front."""
        return {**dict(self.base.named_parameters()), **dict(self.base.named_buffers())}

    def remember_buffers(self, step: int) -> None:
        """Keep the buffers a step begins with; a second pass of it begins with them again."""
        buffers = dict(self.base.named_buffers())
        if self._taken_at == step:
            for name, buffer in buffers.items():
                buffer.copy_(self._before[name])
        else:
            self._before = {name: buffer.clone() for name, buffer in buffers.items()}
            self._taken_at = step

    def keep_buffers(self, kept: Tensor, step: int) -> None:
        """Keep only these members' buffers; the optimizer keeps the parameters."""
        del step
        for module in self.base.modules():
            for name, buffer in list(module._buffers.items()):
                if buffer is not None and len(buffer) != len(kept):
                    setattr(module, name, buffer[kept])
        self._before = {name: before[kept] for name, before in self._before.items()}


class Bridge(nn.Module):
    """One ordinary model whose parameters a stack's optimizer moves, as a stack of one.

    Every parameter has a twin [1, ...] in the same memory; a gradient is handed over as soon as it
    is there. Implicit layers know stacks of one themselves.
    """

    def __init__(self, base: nn.Module) -> None:
        super().__init__()
        self.base = base
        self.twins: dict[str, nn.Parameter] = {}
        for module in base.modules():
            if isinstance(module, ImplicitLayer):
                for name in ("weight", "bias"):
                    own = getattr(module, name)
                    if own is not None:
                        twin = nn.Parameter(own.data.unsqueeze(0), own.requires_grad)
                        setattr(module, name, twin)
        implicit = {
            id(p) for m in base.modules() if isinstance(m, ImplicitLayer) for p in m.parameters()
        }
        for name, parameter in base.named_parameters():
            self.twins[name] = parameter if id(parameter) in implicit else _twin(parameter)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Return the twins by their models' names."""
        return iter(self.twins.items())

    def modules(self) -> Iterator[nn.Module]:  # type: ignore[override]
        """Return the modules of the model."""
        return self.base.modules()


def _twin(parameter: nn.Parameter) -> nn.Parameter:
    twin = nn.Parameter(parameter.data.unsqueeze(0), parameter.requires_grad)

    def hand_over(filled: Tensor) -> None:
        assert filled.grad is not None
        twin.grad, filled.grad = filled.grad.unsqueeze(0), None

    if parameter.requires_grad:
        parameter.register_post_accumulate_grad_hook(hand_over)
    return twin


#: What is planned with where a model could not be measured, and how long measuring may take.
UNKNOWN, MEASURING_SECONDS = (100_000, 10_000, 1e-5), 30.0


def footprint_of(task: Task, values: Mapping[str, Any]) -> Footprint:
    """Return a model's size for planning; a user's code is asked in a process of its own."""
    data = task.data()
    rows = Rows.of(data.train, "train")
    tested = rows if data.test is None else Rows.of(data.test, "test")
    found = UNKNOWN
    if task.code is None or not sys.platform.startswith("linux"):
        with suppress(Exception):
            found = _measured_model(task, values, rows)
        return Footprint(len(rows), len(tested), *found)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def ask() -> None:
        with suppress(BaseException):
            torch.set_num_threads(1)
            there.send(_measured_model(task, values, rows))
        os._exit(0)

    child = context.Process(target=ask, daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # see `ib_core.sweep.runner`
        child.start()
    there.close()
    with suppress(EOFError, OSError):
        found = here.recv() if here.poll(MEASURING_SECONDS) else UNKNOWN
    child.kill()
    child.join()
    here.close()
    return Footprint(len(rows), len(tested), *found)


def _measured_model(task: Task, values: Mapping[str, Any], rows: Rows) -> tuple[int, int, float]:
    """Return parameters, numbers alive a row, and seconds a row, from two passes of one model."""
    model = build_model(task, 1, values)
    few = min(len(rows), task.text.batch_size, 200)
    x, y = rows.between(0, few)
    made: list[int] = []
    hooks = [
        module.register_forward_hook(lambda m, i, out: made.append(_numbers(out)))
        for module in model.modules()
    ]
    with torch.random.fork_rng(devices=[]):
        one_number(task.loss(model(*x), y), task, 0).backward()
        for hook in hooks:
            hook.remove()
        start = time.thread_time()  # work, not waiting for others
        task.loss(model(*x), y).backward()
        taken = time.thread_time() - start
    return (
        sum(parameter.numel() for parameter in model.parameters()),
        3 * sum(made) // few + sum(part[0].numel() for part in x),
        taken / few,
    )


def _numbers(output: Any) -> int:
    if isinstance(output, Tensor):
        return output.numel()
    return sum(map(_numbers, output)) if isinstance(output, tuple | list) else 0
