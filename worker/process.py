"""What a training process does when it begins and when it ends."""

import ctypes
import os
import platform
import signal
import socket
import sys
import threading
from importlib.metadata import PackageNotFoundError, version
from types import FrameType

from backend.services.workers import Worker, local_namespace
from backend.settings import Settings
from worker.device import Devices, describe, pin, warm_up
from worker.heartbeat import Heartbeat
from worker.stopping import StopFlag

PR_SET_PDEATHSIG = 1


class TrainingProcess:
    """The one training process that this is; made after the fork."""

    def __init__(
        self, settings: Settings, devices: Devices, *, index: int, stopping: StopFlag
    ) -> None:
        self.stopping = stopping
        self._devices = devices
        pin(devices, index)
        worker = Worker(
            name=f"{socket.gethostname()}-{os.getpid()}",
            host=socket.gethostname(),
            pid=os.getpid(),
            device=devices.kind,
            device_name=describe(devices),
            queues=devices.queues,
            threads=devices.threads,
            version=_version("etascope"),
            namespace=local_namespace(),
            versions={"python": platform.python_version(), "torch": _version("torch")},
        )
        self.heartbeat = Heartbeat(worker, settings, stopping=stopping)

    def start(self) -> None:
        """Begin to beat, and to import what training needs."""
        _end_with_parent()
        self.heartbeat.start()
        # Beside the main thread: the parent kills processes that are slow to report.
        threading.Thread(target=warm_up, args=(self._devices,), daemon=True).start()

    def run(self, shard_id: int) -> None:
        """Train a shard; a signal to end gives it back first.

        The pool's own handler, which ends the process at once, is the right one between shards.
        """
        from worker.training import train  # brings torch, which must not be in the parent

        before = signal.signal(signal.SIGTERM, self._on_terminate)
        try:
            train(shard_id, heartbeat=self.heartbeat, stopping=self.stopping)
        finally:
            signal.signal(signal.SIGTERM, before)
            self.stopping.clear_here()

    def _on_terminate(self, _signal: int, _frame: FrameType | None) -> None:
        self.stopping.set_here()


def _end_with_parent() -> None:
    """Have Linux tell this process when its parent is gone, so that no orphan trains on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
