"""Runs tests again and again, each time in a new fork of a process that has imported what is heavy.

Most of a short test's time is spent on importing torch, sqlalchemy and their like. None of our own
modules is imported here, so that every fork reads them as they are on the disk at that moment.

Reads a line of JSON for every run, `{"arguments", "output", "seconds"}`, and answers with a line of
its own: `{"code"}`, pytest's exit code, or null if the time was not enough.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import warnings

HEAVY = (
    *("torch", "numpy", "numba", "scipy.stats", "sklearn.utils", "pydantic_settings", "psutil"),
    *("sqlalchemy.orm", "alembic.command", "psycopg", "celery", "redis", "kombu", "httpx"),
    *("fastapi.testclient", "uvicorn", "schemathesis", "hypothesis", "_pytest.config", "pytest"),
    *("plotly.graph_objects", "dash", "dash_mantine_components", "dash_ag_grid", "typer.testing"),
)


def main() -> None:
    """Answer until there is nothing left to read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in HEAVY:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        code = _run(asked["arguments"], asked["output"], asked["seconds"])
        sys.stdout.write(json.dumps({"code": code}) + "\n")
        sys.stdout.flush()


def _run(arguments: list[str], output: str, seconds: float) -> int | None:
    child = os.fork()
    if child == 0:
        _test(arguments, output)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _test(arguments: list[str], output: str) -> None:
    """Become a run of pytest; never returns."""
    code = 3  # pytest's own for a fault of its own
    try:
        os.setpgid(0, 0)
        written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for stream in (1, 2):
            os.dup2(written, stream)
        code = int(sys.modules["pytest"].main(arguments))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
