"""Shards side by side in forked processes: the same numbers, and nothing left running."""

import multiprocessing
import os
import signal
import sys

import pytest
import torch

from ib_core.own import register_file
from ib_core.sweep import lanes, shard, specs_of
from ib_core.sweep.lanes import LaneDied
from ib_core.sweep.result import Observer
from ib_core.sweep.runner import Guard, lanes_here, run_all
from ib_core.sweep.spec import SweepSpec

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="lanes are forked")

SPEC = SweepSpec.create(
    "bundled/iris",
    methods=("eb", "ib"),
    learning_rates=[0.01, 1.0, 1e4],
    seeds=range(1, 5),
    epochs=3,
)


@pytest.fixture(autouse=True)
def _cut_short_sweeps_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "WORTH_A_PROCESS", 0.0)


class Watching(Observer):
    def __init__(self, unwanted=()):
        self.unwanted, self.ended, self.fractions, self.seen = unwanted, [], [], set()

    def points(self, points):
        self.seen |= set(points)

    def finished(self, index, result):
        self.ended.append(index)

    def progress(self, fraction):
        self.fractions.append(fraction)
        return self.unwanted


def test_processes_change_no_number():
    trials, watching = SPEC.expand(), Watching()
    alone = run_all(trials, lanes=1)
    beside = run_all(trials, lanes=2, observer=watching)
    for one, two in zip(alone, beside, strict=True):
        assert str(one.curve) == str(two.curve)  # NaN is not equal to itself
        assert (one.outcome, one.fingerprint) == (two.outcome, two.fingerprint)
    assert sorted(watching.ended) == list(range(len(trials)))
    assert watching.seen == set(range(len(trials)))


def test_no_process_is_left_behind():
    run_all(SPEC.expand(), lanes=2)
    assert not multiprocessing.active_children()


def test_progress_of_the_whole_never_exceeds_it():
    long = SweepSpec.create("bundled/iris", learning_rates=[0.1], seeds=range(1, 5), epochs=400)
    watching = Watching()
    run_all(long.expand(), lanes=2, observer=watching)
    assert watching.fractions
    assert max(watching.fractions) <= 1


def test_a_dropped_trial_stops_in_its_process():
    long = SweepSpec.create("bundled/iris", learning_rates=[0.1], seeds=range(1, 5), epochs=2000)
    results = run_all(long.expand(), lanes=2, observer=Watching(unwanted=range(8)))
    assert results == [None] * 8


def test_an_error_in_a_process_is_raised_here(monkeypatch):
    def broken(trials, **options):
        raise ValueError("no such thing")

    monkeypatch.setattr(lanes, "run_trials", broken)
    with pytest.raises(ValueError, match="no such thing"):
        run_all(SPEC.expand(), lanes=2)
    assert not multiprocessing.active_children()


def test_a_killed_process_is_told_from_a_finished_one(monkeypatch):
    def killed(trials, **options):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(lanes, "run_trials", killed)
    with pytest.raises(LaneDied, match="exit code -9"):
        run_all(SPEC.expand(), lanes=2)


def test_ctrl_c_leaves_nothing_running():
    class Impatient(Observer):
        def finished(self, index, result):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(SPEC.expand(), lanes=2, observer=Impatient())
    assert not multiprocessing.active_children()


def test_with_several_gpus_every_lane_has_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert lanes.gpus_for("cuda") == lanes.gpus_for("auto") == ["cuda:0", "cuda:1", "cuda:2"]
    assert lanes_here("cuda") == 3
    assert lanes.gpus_for("cpu") == lanes.gpus_for("cuda:1") == []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert lanes.gpus_for("cuda") == []  # a process that uses one cannot be forked


def test_lanes_take_their_places_in_turn(monkeypatch):

    monkeypatch.setattr(lanes, "gpus_for", lambda device: ["cuda:0", "cuda:1"])
    monkeypatch.setattr(lanes, "_work", lambda pipe, device, *rest: pipe.send(device))
    with lanes.Lanes(3, "cuda") as crew:
        given = [pipe.recv() for pipe in crew._processes]
    assert given == ["cuda:0", "cuda:1", "cuda:0"]


FORKING = """
import os
import torch
import torch.nn.functional as F
from torch import nn
from ib_core import Data, Task, choice

class Net(nn.Module):
    def __init__(self, what):
        super().__init__()
        self.what, self.layer = what, nn.Linear(2, 1)
    def forward(self, x):
        if self.training and self.what == "forks" and not forked:
            forked.append(os.fork())
        if self.training and self.what == "odd":
            raise Odd("no")
        return self.layer(x)

class Odd(BaseException):
    pass

def model(what="fine"):
    return Net(what)

forked = []
x = torch.linspace(-1, 1, 24).reshape(12, 2)
task = Task(model, Data(train=(x, x.sum(1, keepdim=True))), loss=F.mse_loss, batch_size=6,
            options={"what": choice("fine", "forks", "odd")})
"""


def test_a_copy_that_a_users_code_makes_of_a_lane_does_not_speak_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr("ib_core.own._files", {})
    file = tmp_path / "forking.py"
    file.write_text(FORKING)
    register_file(file)
    asked = {"task": "forking.py:task", "methods": ["eb"], "learning_rates": [0.1], "seeds": 3}
    (fine,) = specs_of(asked)
    expected = [result.train_loss for result in run_all(fine.expand(), lanes=1)]
    for what, outcome in (("forks", "completed"), ("odd", "failed")):
        (spec,) = specs_of({**asked, "vary": {"what": [what]}})
        watching = Watching()
        found = run_all(spec.expand(), lanes=1, observer=watching)
        assert sorted(watching.ended) == [0, 1, 2]  # each once
        assert [result.outcome.value for result in found] == [outcome] * 3, found[0].error
        if what == "forks":
            assert [result.train_loss for result in found] == pytest.approx(expected, rel=1e-6)
        else:
            assert "forking.py, line 16, in forward: Odd: no" in found[0].error


def test_a_fresh_lane_knows_the_catalogue_and_nothing_of_this_process():
    torch.set_default_dtype(torch.float64)  # as a user's file may
    guard, watching = Guard(fresh=True), Results()
    try:
        guard.run(SPEC.expand(), device="cpu", observer=watching)
    finally:
        guard.stop()
        torch.set_default_dtype(torch.float32)
    for one, two in zip(run_all(SPEC.expand(), lanes=1), watching.in_order(), strict=True):
        assert str(one.curve) == str(two.curve)


class Results(Observer):
    def __init__(self):
        self.found = {}

    def finished(self, index, result):
        self.found[index] = result

    def in_order(self):
        return [self.found[index] for index in sorted(self.found)]
