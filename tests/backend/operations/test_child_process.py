"""Supervised processes, with small real ones."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from backend.operations import programs as module
from backend.operations.programs import Child, LaunchError, stop_all

ROOT = Path(__file__).resolve().parents[3]
SLEEP = "import time; time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); "


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    made: list[Child] = []

    def make_child(code: str, name: str = "The part") -> Child:
        made.append(Child(name, [sys.executable, "-c", code], log=tmp_path / "logs" / "part.log"))
        return made[-1]

    yield make_child
    for child in made:
        child.kill()


def until(reached: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:  # it may end while it is looked at
        return False


def test_crashed_process_is_started_again(make: Callable[..., Child]) -> None:
    child = make(SLEEP)
    child.start()
    first = child.pid
    os.kill(first, signal.SIGKILL)
    until(lambda: not child.running)

    news = child.revive()

    assert news is not None
    assert "killed by SIGKILL" in news
    until(lambda: child.revive() == "The part is started again.")
    assert child.running
    assert child.pid != first


def test_process_that_keeps_crashing_is_given_up_with_the_end_of_its_log(
    make: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.01)
    child = make("raise SystemExit('the disk is full')")
    child.start()

    def give_up() -> None:
        while True:
            child.revive()
            time.sleep(0.01)

    with pytest.raises(LaunchError, match=r"4 times in a row \(exit code 1\)") as error:
        give_up()
    assert "the disk is full" in error.value.message


def test_crashes_far_apart_do_not_add_up(
    make: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(module, "STEADY_SECONDS", 0.0)
    child = make("")
    for _ in range(2 * module.MOST_CRASHES):
        child.start()
        until(lambda: not child.running)
        assert child.revive() is not None


def test_stopping_gives_time_and_then_kills(make: Callable[..., Child]) -> None:
    polite, deaf = make(SLEEP, "polite"), make(STUBBORN + SLEEP, "deaf")
    polite.start()
    deaf.start()
    until(lambda: "deaf" in deaf.tail())

    late = stop_all([polite, deaf], grace=0.3)

    assert late == ["deaf"]
    assert polite.ending() == "killed by SIGTERM"
    assert deaf.ending() == "killed by SIGKILL"


def test_second_ctrl_c_ends_the_waiting(make: Callable[..., Child]) -> None:
    deaf = make(STUBBORN + SLEEP)
    deaf.start()
    until(lambda: "deaf" in deaf.tail())

    start = time.monotonic()
    stop_all([deaf], grace=30.0, hurry=lambda: True)

    assert time.monotonic() - start < 5
    assert not deaf.running


def test_grandchildren_end_too(make: Callable[..., Child]) -> None:
    spawn = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); "
    child = make(spawn + "print(p.pid, flush=True); p.wait()")
    child.start()
    until(lambda: child.tail().isdigit())
    grandchild = int(child.tail())

    stop_all([child], grace=0.2)

    until(lambda: not alive(grandchild))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has PDEATHSIG")
def test_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "part.log"
    parent = (
        "import sys, time; from pathlib import Path\n"
        "from backend.operations.programs import Child\n"
        f"child = Child('part', [sys.executable, '-c', {SLEEP!r}], log=Path({str(log)!r}))\n"
        "child.start(); print(child.pid, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", parent]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None
        pid = int(launcher.stdout.readline())
        assert alive(pid)
        launcher.kill()
    until(lambda: not alive(pid))


def test_large_log_is_put_aside_at_the_next_start(
    make: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST_LOG", 10)
    child = make("print('something new')")
    child.log.parent.mkdir()
    child.log.write_text("something old")

    child.start()
    until(lambda: not child.running)

    assert child.tail() == "something new"
    assert (child.log.parent / "part.log.1").read_text() == "something old"
