"""A process that must not outlive us: own log file, own group, killed when its parent dies."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ib_core.errors import IBError

if TYPE_CHECKING:  # and with it the database, which `--help` need not wait for
    from backend.settings import Settings

#: A process that ran for so long was healthy: an end after that is the first crash again.
STEADY_SECONDS = 60.0
MOST_CRASHES = 4
FIRST_PAUSE_SECONDS = 0.5
LARGEST_LOG = 10 * 1024 * 1024
PR_SET_PDEATHSIG = 1


class LaunchError(IBError):
    """A part of Etascope that could not be started or kept running."""

    code = "launch"


def _nothing() -> None:
    """Prepare nothing."""


class Child:
    """One supervised process.

    On Linux the kernel sends it `death_signal` if we die, however we die; so start children from
    the main thread, or from one that waits for its child: there the end of the *thread* that
    forked counts as our death.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        death_signal: signal.Signals = signal.SIGKILL,
        prepare: Callable[[], None] = _nothing,
    ) -> None:
        """Describe the process; `prepare` is called before every start."""
        self.name = name
        self.log = log
        self._command = list(command)
        self._environment = environment
        self._death_signal = death_signal
        self._prepare = prepare
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._crashes = 0
        self._due: float | None = None

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id, which is also the id of its group; 0 before the first start."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start the process; what it prints goes to the end of its log file."""
        self._prepare()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LARGEST_LOG:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=None if self._environment is None else dict(self._environment),
                process_group=0,  # a Ctrl-C in the terminal reaches us alone; we pass it on
                preexec_fn=die_with_parent(self._death_signal),
            )
        self._started, self._due = time.monotonic(), None

    def revive(self) -> str | None:
        """Start the process again if it ended, after a pause that doubles with every crash.

        Returns:
            What there is to tell about it, if anything happened.

        Raises:
            LaunchError: If it keeps crashing; with the last lines of its log.
        """
        if self.running:
            return None
        if self._due is None:
            return self._note_crash()
        if time.monotonic() >= self._due:
            self.start()
            return f"{self.name} is started again."
        return None

    def _note_crash(self) -> str:
        now, how = time.monotonic(), self.ending()
        self.kill()  # whatever the process itself had started
        self._crashes = 1 if now - self._started > STEADY_SECONDS else self._crashes + 1
        if self._crashes >= MOST_CRASHES:
            raise LaunchError(
                f"{self.name} ended {self._crashes} times in a row ({how}). "
                f"The end of {self.log}:\n{self.tail()}"
            )
        pause = FIRST_PAUSE_SECONDS * 2 ** (self._crashes - 1)
        self._due = now + pause
        return f"{self.name} ended ({how}); starting it again in {pause:g} s. See {self.log}."

    def ending(self) -> str:
        """Say how the process ended."""
        code = self._process.poll() if self._process else None
        if code is None:
            return "still running"
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exit code {code}"

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of the log."""
        if not self.log.exists():
            return "(nothing was logged)"
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - 64 * 1024))
            text = log.read().decode("utf-8", "replace")
        return "\n".join(text.splitlines()[-lines:]) or "(nothing was logged)"

    def wait(self) -> int:
        """Wait until the process has ended by itself, and return its exit code."""
        return self._process.wait() if self._process else 0

    def terminate(self) -> None:
        """Ask the process to end; it passes that on to its own children."""
        if self._process is not None and self.running:
            self._process.terminate()

    def kill(self) -> None:
        """End the process and everything in its group at once, and wait until it is gone."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def environment(settings: "Settings") -> dict[str, str]:
    """Return what children need to run this very code with these very settings."""
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "ETASCOPE_HOME": str(settings.home),
        "ETASCOPE_HOST": settings.host,
        "ETASCOPE_PORT": str(settings.port),
    }


def stop_all(
    children: Sequence[Child], *, grace: float, hurry: Callable[[], bool] = lambda: False
) -> list[str]:
    """Ask all to end, wait, then kill what is left.

    Args:
        children: Who should end.
        grace: How long to wait, in seconds.
        hurry: Asked again and again; True ends the waiting.

    Returns:
        The names of those that had to be killed.
    """
    for child in children:
        child.terminate()
    deadline = time.monotonic() + grace
    while any(child.running for child in children) and time.monotonic() < deadline and not hurry():
        time.sleep(0.05)
    late = [child.name for child in children if child.running]
    for child in children:
        child.kill()
    return late


def die_with_parent(death_signal: signal.Signals) -> Callable[[], None] | None:
    """Return what a child calls between fork and exec; everything it needs is looked up before."""
    if not sys.platform.startswith("linux"):
        return None
    prctl, parent = ctypes.CDLL(None, use_errno=True).prctl, os.getpid()

    def before_exec() -> None:
        prctl(PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:  # we died before the kernel was told
            os._exit(1)

    return before_exec
