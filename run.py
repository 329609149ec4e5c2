#!/usr/bin/env python3
"""The two commands of a fresh machine; Python >= 3.11 is all they need.

    python3 run.py up                             install, start everything, print the address
    python3 run.py test [--full] [pytest args]    install test tools, lint, type-check, test

Everything is installed into .venv beside this file. A stamp in there remembers what was installed,
so the next start installs nothing, and an interrupted installation is completed. `--full` adds the
long tests: chaos, load, reproduction. With pytest arguments, `test` runs pytest alone. Without, a
few failed tests are run once more when all others have ended, and named if they pass then.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "etascope-installed"
RUNNING = sys.version_info[:2]
TRIES = 3
#: What tests need: servers, tools, other trackers' libraries, which write what we import, and
#: triton, whose interpreter runs a GPU's kernels. The long run has others' trainers and optimizers.
TESTED, LONG_TESTED = "server,dev,importers,gpu", ",callbacks,optimizers"
UNSTEADY = 8  # more failures than this are no accident of a busy machine
ENOUGH = 40  # failures after which a run ends: a broken page keeps each of its tests waiting long


class Stop(Exception):
    """A sentence for the person at the terminal: what is wrong and what to do."""


def main(arguments: list[str]) -> int:
    """Run `up` or `test`; return the exit code."""
    command, rest = (arguments or ["no command"])[0], arguments[1:]
    try:
        check_machine(RUNNING, os.name)
        if command == "up":
            install("server")
            os.chdir(ROOT)
            os.execv(VENV / "bin" / "etascope", ["etascope", "up", *rest])
        if command == "test":
            install(TESTED + (LONG_TESTED if "--full" in rest else ""))
            return test(rest)
        print(__doc__.strip())
        return 0 if command in ("-h", "--help", "help") else 2
    except Stop as reason:
        print(f"\n{reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to go on.", file=sys.stderr)
        return 130


def check_machine(version: tuple[int, int], system: str) -> None:
    """Refuse what cannot work before anything is touched."""
    if system != "posix":
        raise Stop("Etascope runs on Linux and macOS. On Windows, use WSL or `docker compose up`.")
    if version < (3, 11):
        raise Stop(
            f"Etascope needs Python 3.11 or newer; this is {version[0]}.{version[1]}. "
            "Install a newer one and start with it, for example: python3.12 run.py up"
        )


def install(extras: str) -> None:
    """Bring .venv up to date with pyproject.toml and constraints.txt; do nothing if it is."""
    works = venv_works()
    if works and installed(extras):
        return
    if VENV.exists() and not works:
        say("The Python in .venv does not work (half made, or of another version); making it anew.")
    elif VENV.exists() and not STAMP.exists():
        say("The installation in .venv was not finished; completing it.")
    if not works:
        make_venv()
    STAMP.unlink(missing_ok=True)
    say("Installing what Etascope needs into .venv: more than 1 GB, one to a few minutes.")
    if not (pip_installs(extras) or (reads_folders() and pip_installs(extras, plainly=True))):
        raise Stop(
            "The installation failed; pip says why above (often: no network, or a full disk). "
            "Run the same command again to go on from here."
        )
    STAMP.write_text(f"{fingerprint()} {extras}\n")


def pip_installs(extras: str, plainly: bool = False) -> bool:
    """Install the project, `plainly` without pip's configuration files; return if it worked."""
    pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    environment = dict(os.environ, **({"PIP_CONFIG_FILE": os.devnull} if plainly else {}))
    wanted = ["-c", "constraints.txt", "-e", f".[{extras}]"]
    return subprocess.call([*pip, *wanted], cwd=ROOT, env=environment) == 0


def reads_folders() -> bool:
    """Return whether pip is configured to read an index from a folder, which may be incomplete."""
    asked = [str(PYTHON), "-m", "pip", "config", "list"]
    found = b"file://" in subprocess.run(asked, stdout=subprocess.PIPE).stdout
    if found:
        say("pip reads an index from a folder here; once more without pip's configuration files.")
    return found


def venv_works() -> bool:
    """Return whether .venv has a Python of the running version that starts and can install."""
    ask = f"import sys, pip; sys.exit(sys.version_info[:2] != {tuple(RUNNING)})"
    try:
        return subprocess.run([PYTHON, "-c", ask], capture_output=True).returncode == 0
    except OSError:
        return False


def installed(extras: str) -> bool:
    """Return whether the stamp covers these extras of today's project files."""
    stamp = STAMP.read_text().split() if STAMP.exists() else []
    return stamp[:1] == [fingerprint()] and set(extras.split(",")) <= set(stamp[1].split(","))


def fingerprint() -> str:
    """Hash what decides an installation: wanted versions, Python, and this folder's place."""
    digest = hashlib.sha256(repr((RUNNING, str(ROOT))).encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def make_venv() -> None:
    """Create .venv, replacing a broken one."""
    say(f"Creating .venv with Python {RUNNING[0]}.{RUNNING[1]}.")
    # Not sys.executable: started by .venv's own python, it would be deleted before it is used.
    base = getattr(sys, "_base_executable", sys.executable)
    make = [base, "-m", "venv", "--clear", VENV]
    if subprocess.call(make) == 0:
        return
    package = f"python{RUNNING[0]}.{RUNNING[1]}-venv"  # Debian ships Python without it
    if not (may_apt() and apt_install([package]) and subprocess.call(make) == 0):
        raise Stop(
            "Python could not create .venv. On Debian or Ubuntu install the missing part with "
            f"`apt install {package}`, then run the same command again."
        )


def test(arguments: list[str]) -> int:
    """Lint, type-check and test; return 0 only if all of it passed."""
    full = "--full" in arguments
    strict = may_apt()
    missing = missing_parts()
    for _ in range(TRIES if strict else 0):  # a program names one missing library at a time
        packages = [package for one in missing for package in one["packages"]]
        if not packages or not apt_install(packages):
            break
        missing = missing_parts()
    names = " and ".join(one["part"] for one in missing)
    if strict and missing:
        raise Stop(f"Tests need {names}, and apt-get could not install it.")
    for one in missing:
        say(f"{one['part']} is missing, its tests will be skipped. {one['advice']}")
    with tempfile.TemporaryDirectory(prefix="etascope-") as home:
        chosen = [argument for argument in arguments if argument != "--full"]
        failed = run_steps(steps(chosen, full), test_environment(home, full))
    if failed:
        raise Stop(f"Failed: {', '.join(failed)}.")
    say("All passed.")
    return 0


def missing_parts() -> list[dict[str, Any]]:
    """Return what the tests lack, asked of the functions by which they will look for it."""
    asked = subprocess.run(
        [PYTHON, "-m", "backend.operations.programs"], cwd=ROOT, stdout=subprocess.PIPE
    )
    if asked.returncode != 0:
        raise Stop("The installation in .venv is damaged. Delete .venv and run this again.")
    return list(json.loads(asked.stdout))


def steps(chosen: list[str], full: bool) -> dict[str, list[str]]:
    """Return the commands of a test run by name."""
    tool = [str(PYTHON), "-m"]
    # One more than there are processors: browsers and servers are often waited for.
    lanes = min((os.cpu_count() or 1) + 1, 4)
    pytest = [*tool, "pytest", "-rs", "-n", str(lanes), "--dist=loadfile", f"--maxfail={ENOUGH}"]
    if full:
        pytest += ["-m", "" if shutil.which("nvidia-smi") else "not gpu"]
    if chosen:
        return {"chosen tests": pytest + chosen}
    return {
        "ruff check": [*tool, "ruff", "check", "."],
        "ruff format": [*tool, "ruff", "format", "--check", "."],
        "mypy": [*tool, "mypy"],
        "pytest": pytest,
    }


def run_steps(commands: dict[str, list[str]], environment: dict[str, str]) -> list[str]:
    """Run every command, also after a failure; return the names of those that failed."""
    failed = []
    for name, command in commands.items():
        say(name)
        start = time.monotonic()
        if name == "pytest":
            code = run_tests(command, environment)
        else:
            code = subprocess.call(command, cwd=ROOT, env=environment)
        if code != 0:
            failed.append(name)
        say(f"{name} {'FAILED' if code else 'passed'} in {time.monotonic() - start:.0f} s")
    return failed


def run_tests(command: list[str], environment: dict[str, str]) -> int:
    """Run pytest; run a few failed tests again, alone; return 0 only if each test passed once."""
    remembered = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
    remembered.unlink(missing_ok=True)
    code = subprocess.call(command, cwd=ROOT, env=environment)
    names = list(json.loads(remembered.read_text())) if remembered.exists() else []
    # Code 1 means that every test was run; a file that could not be collected has no "::".
    if code != 1 or not 0 < len(names) <= UNSTEADY or not all("::" in name for name in names):
        return code
    say(f"{len(names)} failed, as shown above; once more, alone: {', '.join(names)}")
    code = subprocess.call([*command, "-n", "0", *names], cwd=ROOT, env=environment)
    if code == 0:
        say(f"Passed only at the second try: {', '.join(names)}")
    return code


def test_environment(home: str, full: bool) -> dict[str, str]:
    """Return an environment in which no test can touch this person's own installation."""
    kept = ("ETASCOPE_DATA_DIR", "ETASCOPE_TEST_")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("ETASCOPE_") or name.startswith(kept)
    }
    environment["ETASCOPE_HOME"] = home
    environment.setdefault("OMP_NUM_THREADS", "1")  # spinning threads starve the other tests
    if full:
        environment["ETASCOPE_TEST_FULL"] = "1"
    return environment


def may_apt() -> bool:
    """Return whether this is Debian and we are root."""
    release = Path("/etc/os-release")
    debian = release.exists() and "ID=debian" in release.read_text().splitlines()
    return debian and os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(packages: list[str]) -> bool:
    """Install Debian packages without asking; return whether that worked."""
    say(f"Installing with apt-get: {' '.join(packages)}")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    refresh = ["apt-get", "update", "-qq"]
    add = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    return all(subprocess.call(command, env=environment) == 0 for command in (refresh, add))


def say(sentence: str) -> None:
    """Print a line that stands out from the output of the tools."""
    print(f"[etascope] {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
