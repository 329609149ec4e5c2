"""The Celery application: one parent that listens, and training processes forked from it.

The parent never runs a torch operation, because a process forked afterwards would hang; torch is
imported in the training processes only. What it can be asked to do stands at the end.
"""

import ctypes
import logging
import os
import platform
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from types import FrameType
from typing import Any

from celery import Celery, signals
from celery.utils.log import current_process_index
from celery.worker.request import Request
from kombu.asynchronous import get_event_loop

from backend.queue import KEY_PREFIX, RUN_REPLAY, RUN_SHARD, RUN_TIMING, Reaper
from backend.services.shards import CPU
from backend.services.workers import Worker, local_namespace
from backend.settings import Settings, get_settings
from worker.device import Devices, choose, describe, limit_threads, pin, prepare_planning, warm_up
from worker.own_files import Manifest, anything_installed, load_probed, torch_methods
from worker.reporter import Heartbeat, StopFlag

log = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1
#: How long a shard waits for users' files to be loaded: they were tried before.
LOADING_SECONDS = 300.0
#: Above the longest shard. Nothing depends on it: a second delivery finds nothing to claim.
VISIBILITY_SECONDS = 24 * 3600
#: How long the parent waits on a broker that has gone without saying so.
SILENCE_SECONDS = 30.0

app = Celery("etascope", broker=get_settings().broker)
app.conf.update(
    task_acks_late=True,  # a message is done when its shard is
    task_reject_on_worker_lost=False,  # the database counts attempts and sends again
    task_ignore_result=True,  # the database has the results
    task_serializer="json",
    accept_content=["json"],
    task_default_queue=CPU,
    worker_prefetch_multiplier=1,  # what waits behind a long shard should go to another worker
    worker_cancel_long_running_tasks_on_connection_loss=False,  # training needs no broker
    worker_enable_remote_control=False,  # cancelling is a flag in the database
    worker_hijack_root_logger=False,
    worker_proc_alive_timeout=60.0,  # a busy machine takes its time to fork
    broker_connection_retry=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    visibility_timeout=VISIBILITY_SECONDS,
    broker_transport_options={
        "global_keyprefix": KEY_PREFIX,
        "visibility_timeout": VISIBILITY_SECONDS,
        "socket_timeout": SILENCE_SECONDS,
        "socket_connect_timeout": 5.0,
        "socket_keepalive": True,
        "health_check_interval": 10,
    },
)

stopping = StopFlag()


class TrainingProcess:
    """The one training process that this is; made after the fork."""

    def __init__(
        self,
        settings: Settings,
        devices: Devices,
        *,
        index: int,
        stopping: StopFlag,
        own: Sequence[str] = (),
        probed: Sequence[Manifest] = (),
    ) -> None:
        self.stopping = stopping
        self._devices = devices
        self._own, self._probed = own, probed
        self._loaded = threading.Event()
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
        threading.Thread(target=self._prepare, daemon=True).start()

    def _prepare(self) -> None:
        """Import what training needs, and what this worker brings along."""
        try:
            warm_up(self._devices)
            if self._devices.kind == "cpu" and (self._own or anything_installed()):
                from worker.training import keep_apart  # brings torch, too

                keep_apart(self._devices.threads)
            found, left_out = load_probed(self._own, self._probed)
            for sentence in left_out.values():
                log.error("%s", sentence)
            self.heartbeat.bring([*found, *torch_methods()], left_out)
        finally:
            self._loaded.set()
        prepare_planning()

    def run(self, shard_id: int) -> None:
        """Train a shard; a signal to end gives it back first.

        The pool's own handler, which ends the process at once, is the right one between shards.
        """
        from worker.training import train  # brings torch, which must not be in the parent

        # Users' code may draw from the generator that gives trials their weights.
        self._loaded.wait(LOADING_SECONDS)
        before = signal.signal(signal.SIGTERM, self._on_terminate)
        try:
            train(shard_id, heartbeat=self.heartbeat, stopping=self.stopping)
        finally:
            signal.signal(signal.SIGTERM, before)
            self.stopping.clear_here()

    def time_steps(self, timing_id: int) -> None:
        """Measure what steps cost; whoever stops it leaves the race to another worker."""
        from worker.training import measure  # brings torch, too

        self._loaded.wait(LOADING_SECONDS)
        worker = self.heartbeat.worker
        measure(timing_id, worker=worker, stopping=self.stopping, own=self._own)

    def replay(self, trial_id: int) -> None:
        """Train a trial again alone; a signal to end leaves it to another worker."""
        from worker.training import replay  # brings torch, too

        self._loaded.wait(LOADING_SECONDS)
        before = signal.signal(signal.SIGTERM, self._on_terminate)
        try:
            replay(trial_id, worker=self.heartbeat.worker, stopping=self.stopping)
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


class _State:
    """What the signals below share: in the parent its plan, in a child the process it is."""

    devices: Devices | None = None
    own: Sequence[str] = ()
    probed: Sequence[Manifest] = ()
    process: TrainingProcess | None = None
    reaper: Reaper | None = None


def devices() -> Devices:
    """Return what this worker trains on, decided once, before any fork."""
    if _State.devices is None:
        _State.devices = choose(get_settings())
    return _State.devices


def use(chosen: Devices, own: Sequence[str] = (), probed: Sequence[Manifest] = ()) -> None:
    """Decide what this worker trains on, and which files it brings along."""
    _State.devices, _State.own, _State.probed = chosen, own, probed


def training_process() -> TrainingProcess:
    """Return the training process that this is."""
    if _State.process is None:
        index = current_process_index(base=0) or 0
        _State.process = TrainingProcess(
            get_settings(),
            devices(),
            index=index,
            stopping=stopping,
            own=_State.own,
            probed=_State.probed,
        )
        _State.process.start()
    return _State.process


def _prepare_parent(**_: Any) -> None:
    limit_threads(devices().threads)


def _start_reaper(**_: Any) -> None:
    reaper = _State.reaper = Reaper(get_settings())
    # A process forked in the middle of a pass would inherit locks that nobody opens any more.
    os.register_at_fork(
        before=reaper.pause, after_in_parent=reaper.go_on, after_in_child=reaper.go_on
    )
    reaper.start()


def _start_child(**_: Any) -> None:
    training_process()


def _end_child(**_: Any) -> None:
    if _State.process is not None:
        _State.process.heartbeat.stop()


def _stop(**_: Any) -> None:
    stopping.set()
    if _State.reaper is not None:
        _State.reaper.stop()


signals.worker_init.connect(_prepare_parent, weak=False)
signals.worker_ready.connect(_start_reaper, weak=False)
signals.worker_process_init.connect(_start_child, weak=False)
signals.worker_process_shutdown.connect(_end_child, weak=False)
signals.worker_shutting_down.connect(_stop, weak=False)


# --- What workers can be asked to do, and the messages that ask it


class ShardRequest(Request):  # type: ignore[misc]
    """A message whose acknowledgement may get lost, but not unnoticed.

    If the broker is away when a shard ends, Celery logs that it could not acknowledge and goes on:
    it counts the message as still being worked on, fetches no other, and so never finds out that
    its connection is dead. The worker would wait for ever. Here it connects anew instead.
    """

    def acknowledge(self) -> None:
        """Tell the broker that the message is dealt with."""
        super().acknowledge()
        loop = get_event_loop()
        if not self.message.acknowledged and loop is not None:
            loop.call_soon(_lose_connection)  # type: ignore[no-untyped-call]


def _lose_connection() -> None:
    raise ConnectionError("A finished shard's message could not be acknowledged.")


def run_shard(shard_id: int) -> None:
    """Train a shard's trials together; a second delivery finds nothing to claim and returns."""
    training_process().run(shard_id)


app.task(name=RUN_SHARD, Request="worker.app:ShardRequest")(run_shard)


def run_timing(timing_id: int) -> None:
    """Let methods take steps in turn on one network; a second delivery finds nothing to claim."""
    training_process().time_steps(timing_id)


app.task(name=RUN_TIMING, Request="worker.app:ShardRequest")(run_timing)


def run_replay(trial_id: int) -> None:
    """Train a trial again alone, and record it; a second delivery finds nothing to claim."""
    training_process().replay(trial_id)


app.task(name=RUN_REPLAY, Request="worker.app:ShardRequest")(run_replay)
