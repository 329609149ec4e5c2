"""What this machine trains on, decided without touching torch in the parent process."""

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from backend.services.shards import CPU, GPU
from backend.settings import Settings
from ib_core.errors import IBError

CPU_INFO = Path("/proc/cpuinfo")
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
MEMORY_GROUP = Path("/sys/fs/cgroup")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PROBE_SECONDS = 120


class NoDevice(IBError):
    """The asked-for device is not here."""

    code = "no_device"


@dataclass(frozen=True, slots=True)
class Devices:
    """What the training processes of one worker use.

    Attributes:
        kind: `cpu` or `cuda`.
        gpus: One name a training process, as in CUDA_VISIBLE_DEVICES; empty on the processor.
        threads: Threads of one training process.
        processes: Number of training processes.
    """

    kind: str
    gpus: tuple[str, ...]
    threads: int
    processes: int

    @property
    def queues(self) -> tuple[str, ...]:
        """Queues to listen on; a GPU's worker also does work meant for processors."""
        return (GPU, CPU) if self.kind == "cuda" else (CPU,)


def choose(settings: Settings, *, processes: int | None = None) -> Devices:
    """Return what to train on here, as the settings ask."""
    gpus = () if settings.device == "cpu" else find_gpus()
    if settings.device == "cuda" and not gpus:
        raise NoDevice(
            "ETASCOPE_DEVICE is cuda, but torch sees no GPU here.",
            hint="Install a CUDA build of torch and the driver, or set ETASCOPE_DEVICE=auto.",
        )
    count = processes or max(len(gpus), 1)
    threads = settings.threads or max(1, processors() // count)
    return Devices("cuda" if gpus else "cpu", gpus, threads, count)


def find_gpus() -> tuple[str, ...]:
    """Return the GPUs torch can use, asked in another process.

    A CUDA call here would break every process forked afterwards. Where there is no driver,
    nobody is asked, because importing torch takes seconds.
    """
    if not (shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists()):
        return ()
    probe = [sys.executable, "-c", "import torch; print(torch.cuda.device_count())"]
    try:
        answer = subprocess.run(
            probe, capture_output=True, text=True, timeout=PROBE_SECONDS, check=True
        )
        count = int(answer.stdout)
    except (subprocess.SubprocessError, ValueError):
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(number) for number in range(count)]
    return tuple(name.strip() for name in names)[:count]


def processors() -> int:
    """Return how many processors this process may use, a container's share included."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = CPU_QUOTA.read_text().split()
        return max(1, min(count or 1, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no such file, or "max": no limit
        return count or 1


def shares(threads: int) -> int:
    """Return how many training processes of so many threads share this machine's memory."""
    return max(1, processors() // max(1, threads))


def limit_threads(threads: int) -> None:
    """Set the thread count for libraries that read it when they are first imported."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    # Threads that spin while they wait slow every other process on the machine, up to tenfold.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pin(devices: Devices, index: int) -> None:
    """Give training process number `index` its own GPU and threads, before it imports torch."""
    if devices.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = devices.gpus[index % len(devices.gpus)]
    limit_threads(devices.threads)


def warm_up(devices: Devices) -> None:
    """Import the engine, which takes seconds, before the first shard needs it."""
    import torch

    from ib_core.sweep import keep_pages

    torch.set_num_threads(devices.threads)
    keep_pages()
    import_module("worker.training")


def prepare_planning() -> None:
    """Leave for whoever plans sweeps how fast this process is and what bundled data looks like."""
    from ib_core.datasets import DATASETS, data_card
    from ib_core.sweep import calibrate

    calibrate()
    for name, info in DATASETS.items():
        if not info.downloads:
            data_card(name)


def describe(devices: Devices) -> str:
    """Return the device's name as a person knows it."""
    if devices.gpus:
        import torch

        return torch.cuda.get_device_name(0)
    try:
        found = re.search(r"^model name\s*: (.*)$", CPU_INFO.read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()
