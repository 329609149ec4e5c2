"""This machine: how fast it is at the few things training is made of, its devices, its software.

Torch is imported in the functions that need it: whoever only plans with a kept speed need not
carry it.
"""

import ctypes
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from ib_core.errors import InvalidSpec
from ib_core.updates import SOLVABLE

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Speed:
    """Measured speeds of one device with its threads.

    Attributes:
        call_seconds: One small torch call, its share of autograd and Python included.
        small_products: Multiplications a second in batched products of small layers.
        large_products: The same for large layers.
        elements_per_second: Numbers a second in one element-wise pass.
        solves: Seconds a number of one implicit solve, by activation.
        loops: By family of tasks, `music`: weights a second through a recurrent layer's loop
            along time; `conv`: multiplications a second in small convolutions.
        start_seconds: Building the stack and loading the data.
    """

    call_seconds: float
    small_products: float
    large_products: float
    elements_per_second: float
    solves: dict[str, float]
    loops: dict[str, float]
    start_seconds: float = 0.05

    def products_per_second(self, size: float) -> float:
        """Return the rate for layers of `size` weights; small ones are all overhead."""
        share = min(1.0, max(0.0, (size - 500) / 20_000))
        return self.small_products + share * (self.large_products - self.small_products)

    def solve_seconds(self, activation: str) -> float:
        """Return the seconds one number's implicit solve takes."""
        known = TYPICAL.solves | self.solves
        return known.get(activation, max(known.values()))

    def loop_per_second(self, family: str) -> float:
        """Return the rate at which a family's loop is gone through."""
        return (TYPICAL.loops | self.loops)[family]


#: Measured on one core of a laptop-class processor; stands in until this machine is measured.
TYPICAL = Speed(
    call_seconds=2.5e-6,
    small_products=2.5e10,
    large_products=4e10,
    elements_per_second=4e8,
    solves={"linear": 6e-10, "relu": 1.3e-9, "arctan": 9e-9, "tanh": 6e-8},
    loops={"music": 1.4e10, "conv": 2.5e10},
)


def machine_speed(device: str = "cpu") -> Speed:
    """Return the speed of what trains on this machine, as last measured there."""
    return _kept(device) or TYPICAL


def calibrate(
    device: str = "cpu",
    *,
    activations: Collection[str] = tuple(SOLVABLE),
    families: Collection[str] = tuple(TYPICAL.loops),
    again: bool = False,
) -> Speed:
    """Measure this machine's speed and keep it for all who plan; what trains calls it at start.

    Each speed is measured once, unless `again`: how a sweep is cut into stacks follows from it, and
    the same sweep shall be cut in the same way, and give the same bits, tomorrow. A folder that
    cannot be written only means planning with the typical speed.

    Args:
        device: What trains.
        activations: Those whose solves are needed.
        families: Those of the tasks to train.
        again: Whether to measure what is known, too.
    """
    known = None if again else _kept(device)
    speed, file = measure_speed(activations, families, known), _cache_file()
    if speed == known:
        return speed
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{time.monotonic_ns()}")
        partial.write_text(json.dumps({**_read(file), _kind(device): asdict(speed)}))
        partial.replace(file)
    except OSError:
        pass
    return speed


def _kept(device: str) -> Speed | None:
    """Return what was measured, None if nothing was, or by a version that measured other things."""
    kept = _read(_cache_file()).get(_kind(device))
    try:
        return Speed(**kept) if kept else None
    except TypeError:
        return None


def _kind(device: str) -> str:
    return device.partition(":")[0]


def _cache_file() -> Path:
    return Path(platformdirs.user_cache_dir("etascope", appauthor=False)) / "speed.json"


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def measure_speed(
    activations: Collection[str] = tuple(SOLVABLE),
    families: Collection[str] = tuple(TYPICAL.loops),
    known: Speed | None = None,
) -> Speed:
    """Measure what is not known yet, all of it in about 1.5 s on a quiet core."""
    speed = known or _measure_basics()
    wanted = ({*activations} & {*SOLVABLE}) - {*speed.solves}  # a user's model names none
    solves = {name: _measure_solve(name) for name in sorted(wanted)}
    loops = {
        name: measure() for name, measure in LOOPS.items() if name in {*families} - {*speed.loops}
    }
    return replace(speed, solves=speed.solves | solves, loops=speed.loops | loops)


def _measure_basics() -> Speed:
    """Measure what every task is made of."""
    import torch

    one = torch.ones(1)
    small_w, small_z = _normal(64, 16, 16), _normal(64, 16, 100)
    large_w, large_z = _normal(500, 784), _normal(784, 100)
    table = _normal(64, 32, 100)
    with torch.no_grad():
        return Speed(
            call_seconds=2.0 * _seconds(lambda: one + one),
            small_products=64 * 16 * 16 * 100 / _seconds(lambda: small_w @ small_z),
            large_products=500 * 784 * 100 / _seconds(lambda: large_w @ large_z),
            elements_per_second=table.numel() / _seconds(lambda: table.atan()),
            solves={},
            loops={},
        )


def _measure_solve(activation: str) -> float:
    import torch

    from ib_core.updates import ALPHA_RULES

    s, b, z_sq = _normal(16, 100, 32), _normal(16, 100, 32), _normal(16, 100, 1).square() + 1
    with torch.no_grad():
        return _seconds(partial(ALPHA_RULES[activation], s, b, z_sq, 1.0)) / s.numel()


def _measure_time_loop() -> float:
    import torch

    from ib_core.layers import states
    from ib_core.updates import ACTIVATIONS

    s, weights, atan = _normal(20, 2, 1, 300), _normal(2, 300, 300) / 300, ACTIVATIONS["arctan"]
    with torch.no_grad():
        return 20 * weights.numel() / _seconds(lambda: states(s, weights, atan))


def _measure_convolution() -> float:
    import torch
    import torch.nn.functional as F

    image, filters = _normal(100, 10, 12, 12), _normal(20, 10, 5, 5)
    with torch.no_grad():
        return 100 * 8 * 8 * 20 * 250 / _seconds(lambda: F.conv2d(image, filters))


LOOPS: dict[str, Callable[[], float]] = {
    "music": _measure_time_loop,
    "conv": _measure_convolution,
}


def _normal(*shape: int) -> "Tensor":
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def _seconds(work: Callable[[], object]) -> float:
    """Return what one call takes on a processor of one's own.

    By the clock, with all threads; or what one thread works for it, if that is less: a machine
    that is busy, as it is while everything starts, lets calls wait, and threads for each other.
    """
    import torch

    threads = torch.get_num_threads()
    by_the_clock = _best(work)
    torch.set_num_threads(1)
    try:
        return min(by_the_clock, _worked(work))
    finally:
        torch.set_num_threads(threads)


def _best(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the best time of one call: noise only ever adds."""
    work()
    best, spent = float("inf"), 0.0
    while repeats > 0 or spent < 0.01:
        start = time.perf_counter()
        work()
        took = time.perf_counter() - start
        best, spent, repeats = min(best, took), spent + took, repeats - 1
    return best


def _worked(work: Callable[[], object], seconds: float = 0.05) -> float:
    """Return the processor time of one call, over many: some machines count it in coarse steps."""
    calls, start = 0, time.thread_time()
    while time.thread_time() - start < seconds:
        work()
        calls += 1
    return (time.thread_time() - start) / calls


# --- What a result is made with: versions, device, threads and source revision


@cache
def source_revision() -> str | None:
    """Return the git commit of the source tree, `+` behind it if it has changes; None outside."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        commit, changed = (
            subprocess.run(
                ["git", "-C", str(root), *command],
                capture_output=True,
                text=True,
                timeout=5,
                check=True,
            ).stdout.strip()
            for command in (("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "-uno"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+" if changed else "")


def environment(device: "torch.device") -> dict[str, str | int | None]:
    """Return the part of a trial's record that describes the machine and the software."""
    import numpy as np
    import torch

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.system(),
        "device": str(device),
        "device_name": name,
        "threads": torch.get_num_threads(),
        "git": source_revision(),
    }


def choose_device(name: str = "auto") -> "torch.device":
    """Return the torch device for `auto`, `cpu`, `cuda`, `cuda:1` or `mps`.

    Raises:
        InvalidSpec: If this machine has no such device.
    """
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    present = {
        "cpu": 1,
        "cuda": torch.cuda.device_count(),
        "mps": int(torch.backends.mps.is_available()),
    }
    kind, _, index = name.partition(":")
    number = int(index) if index.isdigit() else 0
    if kind not in present or (index and not index.isdigit()) or number >= present[kind]:
        have = ", ".join(kind for kind, count in present.items() if count)
        raise InvalidSpec(
            f"This machine has no device {name!r}; it has {have}.",
            field="device",
            hint="Use auto to take the best one there is.",
        )
    return torch.device(name)


# --- Processes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, LARGE = -1, -3, 2**30


def can_fork(device: str) -> bool:
    """Return whether a process that trains on a device may be forked from this one."""
    import torch

    linux = sys.platform.startswith("linux")
    return linux and device in ("cpu", "auto") and not torch.cuda.is_available()


def keep_pages() -> None:
    """Let this process keep the memory it frees.

    Tensors of a stack come and go with every step; pages that the system takes back and gives
    again, zeroed, take as long as the arithmetic.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_TRIM_THRESHOLD, LARGE)
