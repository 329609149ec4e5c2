"""What a user's model takes: memory that it may not exceed, and its size, measured for planning."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ib_core.tasks.losses import one_number
from ib_core.tasks.randomness import build_model
from ib_core.tasks.stacked_model import Rows
from ib_core.tasks.task import Footprint, Task

#: Share of the memory that is free which all processes with a user's code may take together.
MEMORY_SHARE = 0.8


def _free_memory() -> int:
    """Return the bytes that may still be taken, a container's limit included."""
    with open("/proc/meminfo") as file:
        free = next(int(line.split()[1]) * 1024 for line in file if "MemAvailable" in line)
    try:
        group = Path("/sys/fs/cgroup")
        most, taken = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        return min(free, int(most) - int(taken))
    except (OSError, ValueError):  # no container, or one without a limit
        return free


def limit_memory(lanes: int, *, for_good: bool = True) -> None:
    """Let this process, and those it forks, take their share of the free memory and no more.

    Args:
        lanes: So many share it.
        for_good: Whether nobody may raise the limit again.
    """
    with suppress(OSError, StopIteration, ValueError):  # else the system's own will have to do
        data = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        most = data + int(MEMORY_SHARE * _free_memory() / lanes)
        allowed = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most, most if for_good else allowed))


#: What is planned with where no model could be measured, and how long measuring may take.
UNKNOWN, MEASURING_SECONDS = (100_000, 10_000, 1e-5), 30.0


def footprint_of(task: Task, values: Mapping[str, Any]) -> Footprint:
    """Return a model's size for planning; a user's code is asked in a process of its own."""
    data = task.data()
    rows = data.rows("train")
    tested = rows if data.test is None else data.rows("test")
    found = UNKNOWN
    if task.code is None or not sys.platform.startswith("linux"):
        with suppress(Exception):
            found = _measured_model(task, values, rows)
        return Footprint(len(rows), len(tested), *found)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def ask() -> None:
        with suppress(BaseException):
            limit_memory(1)
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
    model, made = build_model(task, 1, values), list[int]()
    few = min(len(rows), task.text.batch_size, 200)
    x, y = rows.between(0, few)
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
