"""What a worker trains on, decided without torch."""

import os
import subprocess
import sys

import pytest

from backend.settings import Settings
from worker import device
from worker.device import Devices, NoDevice, choose


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """Pretend to be on another machine."""

    def pretend(processors: int = 8, gpus: tuple[str, ...] = ()) -> None:
        monkeypatch.setattr(device, "processors", lambda: processors)
        monkeypatch.setattr(device, "find_gpus", lambda: gpus)

    return pretend


def test_without_a_gpu_one_process_uses_all_processors(machine) -> None:
    machine(processors=8)
    assert choose(Settings()) == Devices("cpu", (), threads=8, processes=1)
    assert choose(Settings()).queues == ("cpu",)


def test_several_processes_share_the_processors(machine) -> None:
    machine(processors=8)
    assert choose(Settings(), processes=3).threads == 2
    assert choose(Settings(), processes=30).threads == 1
    assert choose(Settings(threads=5), processes=3).threads == 5


def test_every_gpu_gets_a_process_that_also_does_other_work(machine) -> None:
    machine(processors=8, gpus=("0", "1"))
    found = choose(Settings())
    assert found == Devices("cuda", ("0", "1"), threads=4, processes=2)
    assert found.queues == ("gpu", "cpu")


def test_a_gpu_can_be_left_alone(machine) -> None:
    machine(gpus=("0",))
    assert choose(Settings(device="cpu")).kind == "cpu"


def test_a_gpu_that_is_asked_for_must_be_there(machine) -> None:
    machine()
    with pytest.raises(NoDevice, match="torch sees no GPU"):
        choose(Settings(device="cuda"))


def test_each_process_sees_only_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", *device.THREAD_VARIABLES):
        monkeypatch.setenv(name, "unset")
    two = Devices("cuda", ("GPU-a", "GPU-b"), threads=3, processes=2)
    seen = []
    for index in (0, 1, 2):
        device.pin(two, index)
        seen.append(os.environ["CUDA_VISIBLE_DEVICES"])
    assert seen == ["GPU-a", "GPU-b", "GPU-a"]
    assert os.environ["OMP_NUM_THREADS"] == "3"


@pytest.mark.parametrize(
    ("quota", "count"), [("150000 100000", 2), ("50000 100000", 1), ("max 100000", 64), ("", 64)]
)
def test_a_containers_share_counts(tmp_path, monkeypatch, quota, count) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    monkeypatch.setattr(device, "CPU_QUOTA", file)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    assert device.processors() == count


def test_gpus_are_counted_in_another_process(tmp_path, monkeypatch) -> None:
    driver = tmp_path / "nvidia-smi"
    driver.write_text("#!/bin/sh\n")
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(
        subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, stdout="2\n")
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 5,7")
    assert device.find_gpus() == ("3", "5")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert device.find_gpus() == ("0", "1")


def test_the_parent_stays_without_torch() -> None:
    """A torch operation before a fork would hang every training process."""
    code = "import sys, worker.main, worker.app; print('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert answer.stdout.strip() == "False"
