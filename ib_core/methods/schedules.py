"""Schedules: what a rate is multiplied by as training goes on; an option of every method.

| name | factor after the warm-up, `p` the share of steps that is done |
| --- | --- |
| `constant` | 1 |
| `linear` | 1 - p |
| `cosine` | (1 + cos(pi p)) / 2 |
| `decay` | 1 / (1 + t/tau)^power, the paper's (App. C) |

A warm-up of w steps rises to the full rate first: 1/w, 2/w, ... 1.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ib_core.options import Option, choice, number, whole

SCHEDULES = ("constant", "linear", "cosine", "decay")

#: Options that every method has.
OF_EVERY_METHOD: dict[str, Option] = {
    "schedule": choice(*SCHEDULES, default="constant", help="How the rate changes."),
    "warmup": whole(0, 1_000_000, 0, help="Steps in which the rate rises to its full size."),
    "tau": number(1e-6, 1e12, 100.0, help="Of the schedule decay, in steps."),
    "power": number(0.5, 1.0, 1.0, help="Of the schedule decay."),
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule's name and numbers."""

    schedule: str = "constant"
    warmup: int = 0
    tau: float = 100.0
    power: float = 1.0

    def factor(self, step: int, total: int) -> float:
        """Return what the rate is multiplied by at step `step` (from 0) of `total`."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, total - self.warmup)
        if self.schedule == "linear":
            return 1.0 - done
        if self.schedule == "cosine":
            return (1 + math.cos(math.pi * done)) / 2
        if self.schedule == "decay":
            return float((1 + (step - self.warmup) / self.tau) ** -self.power)
        return 1.0


CONSTANT = Schedule()


def split_schedule(values: Mapping[str, Any]) -> tuple[Schedule, dict[str, Any]]:
    """Return the schedule that some options say, and the other options."""
    of_schedule = {name: value for name, value in values.items() if name in OF_EVERY_METHOD}
    rest = {name: value for name, value in values.items() if name not in OF_EVERY_METHOD}
    return Schedule(**of_schedule), rest
