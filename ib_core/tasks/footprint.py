"""A model's size for planning, found by asking it; a user's code is asked in another process."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ib_core.tasks.rows_of_data import Rows
from ib_core.tasks.stacked_model import build_model, one_number
from ib_core.tasks.task import Footprint

if TYPE_CHECKING:
    from ib_core.tasks.task import Task

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
        warnings.simplefilter("ignore", DeprecationWarning)  # see `ib_core.sweep.processes`
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
