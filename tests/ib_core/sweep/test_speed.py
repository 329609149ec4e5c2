"""What is kept of a machine's speed between runs."""

import json
import time
from dataclasses import replace

import pytest
import torch

from ib_core.sweep import machine
from ib_core.sweep.cost import stack_seconds
from ib_core.sweep.engine import run_trials
from ib_core.sweep.machine import TYPICAL, calibrate, machine_speed
from ib_core.sweep.spec import SweepSpec
from ib_core.updates import SOLVABLE


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The file of speeds, not there yet; measuring finds double the typical call."""
    file = tmp_path / "cache" / "speed.json"
    monkeypatch.setattr(machine, "_cache_file", lambda: file)
    monkeypatch.setattr(
        machine,
        "_measure_basics",
        lambda: replace(TYPICAL, call_seconds=5e-6, solves={}, loops={}),
    )
    monkeypatch.setattr(machine, "_measure_solve", lambda activation: 1e-9)
    monkeypatch.setattr(machine, "LOOPS", {"music": lambda: 1e10, "conv": lambda: 2e10})
    return file


def test_a_machine_is_measured_once_and_then_remembered(kept, monkeypatch):
    assert machine_speed() == TYPICAL, "until it is measured"
    assert calibrate().call_seconds == 5e-6
    monkeypatch.setattr(machine, "_measure_basics", lambda: TYPICAL)
    assert calibrate().call_seconds == machine_speed().call_seconds == 5e-6
    assert calibrate(again=True).call_seconds == machine_speed().call_seconds
    assert machine_speed().call_seconds == TYPICAL.call_seconds


def test_what_one_sweep_needs_is_measured_for_it_and_the_rest_when_it_is_needed(kept, monkeypatch):
    first = calibrate(activations=["relu"], families=["rows"])
    assert (first.solves, first.loops) == ({"relu": 1e-9}, {})
    assert first.solve_seconds("tanh") == TYPICAL.solves["tanh"], "until it is measured"
    assert first.loop_per_second("music") == TYPICAL.loops["music"]
    monkeypatch.setattr(machine, "_measure_solve", lambda activation: 2e-9)
    every = calibrate()
    assert every == machine_speed()
    assert every.solves == dict.fromkeys(SOLVABLE, 2e-9) | {"relu": 1e-9}, "each is measured once"
    assert every.loops == {"music": 1e10, "conv": 2e10}


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"cpu": {"call_seconds": 1, "gone": 2}})])
def test_what_cannot_be_read_or_was_kept_by_another_version_is_measured_again(kept, text):
    kept.parent.mkdir()
    kept.write_text(text)
    assert machine_speed() == TYPICAL
    assert calibrate().call_seconds == machine_speed().call_seconds == 5e-6


def test_measuring_finds_every_speed():
    found = machine.measure_speed()
    numbers = [v for v in machine.asdict(found).values() if isinstance(v, float)]
    assert all(number > 0 for number in [*numbers, *found.solves.values(), *found.loops.values()])
    assert (set(found.solves), set(found.loops)) == (set(SOLVABLE), {"music", "conv"})


def test_waiting_for_a_processor_is_not_taken_for_work():
    def held_up() -> None:
        time.sleep(0.02)  # as if others had the processor
        sum(range(100_000))

    working = machine._seconds(lambda: sum(range(100_000)))
    assert working / 3 < machine._seconds(held_up) < 3 * working
    assert working < 0.01


@pytest.mark.parametrize("methods", [("eb", "ib", "ib_plus", "adam"), ("isgd",)])
def test_a_forecast_is_near_the_work_it_forecasts(methods):
    exact = {"inner_steps": 10} if methods == ("isgd",) else None
    spec = SweepSpec.create(
        "digits_mlp",
        methods=methods,
        learning_rates=[0.05, 0.5],
        seeds=[1, 2, 3],
        epochs=2,
        options=exact,
    )
    trials, threads = spec.expand(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        forecast = stack_seconds(trials, machine.measure_speed())
        run_trials(trials[:1])  # loads data and compiles what has to be compiled
        start = time.thread_time()
        run_trials(trials)
        worked = time.thread_time() - start
    finally:
        torch.set_num_threads(threads)
    assert worked / 2.5 < forecast < 2.5 * worked
