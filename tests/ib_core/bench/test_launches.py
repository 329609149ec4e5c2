"""A step on a GPU, without one: everything but the arithmetic runs on tensors without numbers."""

import math
from dataclasses import replace

import pytest
import torch

from ib_core.bench.gpu import (
    COUNTED,
    FEW,
    LAUNCH_BUDGET,
    MANY,
    TOLD_BY_A_GPU,
    _measured,
    count_launches,
    launches_of,
    missing_here,
)
from ib_core.bench.steps import StepCase, engine_steps, trials_of
from ib_core.kernels import torch_formulas
from ib_core.methods import METHODS
from ib_core.sweep import engine
from ib_core.sweep.engine import _StackRun
from ib_core.sweep.on_gpu import LOOK_EVERY, WARM
from ib_core.sweep.result import SILENT
from ib_core.sweep.spec import SweepSpec
from ib_core.tasks import TASKS, PaperTask
from ib_core.tasks.workloads import RowsWorkload
from ib_core.updates import SOLVABLE, alpha_rule

META = torch.device("meta")
#: One task of every shape of network and data; the others are the same programs on other tables.
SHAPES = ("bundled/wine", "digits_autoencoder", "digits_conv", "music/procedural", "toy/quadratic")
OWN = tuple(name for name, task in TASKS.items() if not isinstance(task, PaperTask))


def steps_on_meta(task, method, members, **settings):
    (trial,) = SweepSpec.create(
        task, methods=(method,), learning_rates=[0.01], seeds=[1], **settings
    ).expand()
    return engine_steps([replace(trial, seed=seed) for seed in range(members)], 1, device="meta")


def fits(task, method):
    one, there = METHODS[method], TASKS[task]
    solves_output = there.linear_output or not one.implicit_output
    return solves_output and (there.has_filters or not one.implicit_filters)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", SHAPES)
def test_a_step_waits_for_no_number_and_touches_no_tensor_of_the_processor(task, method):
    if not fits(task, method):
        return
    options = {"inner_steps": 2} if METHODS[method].exact else None
    for members in (1, 3):  # one model alone is stepped in another way
        found = count_launches(steps_on_meta(task, method, members, options=options))
        assert found.total > 0
        assert found.at_host == []


@pytest.mark.parametrize("task", OWN)
@pytest.mark.parametrize("method", [*METHODS, "torch.optim.AdamW"])
def test_models_of_anybody_step_there_as_well(task, method):
    if method in METHODS and not fits(task, method):
        return
    options = {"inner_steps": 2} if method == "isgd" else None
    found = count_launches(steps_on_meta(task, method, 2, options=options))
    assert found.total > 0
    # Torch's optimizers count their steps on the processor.
    assert method not in METHODS or found.at_host == []


@pytest.mark.parametrize(
    "settings",
    [
        {"clips": [1.0]},
        {"mu": 0.1},
        {"mu": 0.1, "options": {"restart": True}},
        {"methods": ("ib(schedule=cosine)",)},
        {"profile": "authors"},
    ],
)
def test_ridge_clipping_restarts_and_schedules_step_there_as_well(settings, monkeypatch):
    monkeypatch.setattr(RowsWorkload, "loss_at_zero", lambda self: 1.0)  # a number: not there
    settings = {"methods": ("ib",), "learning_rates": [0.01], "seeds": [1, 2], **settings}
    trials = SweepSpec.create("bundled/iris", **settings).expand()
    assert count_launches(engine_steps(trials, 1, device="meta")).at_host == []


@pytest.mark.parametrize("task", COUNTED)
def test_launches_stay_in_their_budget_and_do_not_grow_with_members(task):
    explicit = launches_of(task, "eb", MANY).total
    for method in (m for m in METHODS if fits(task, m) and not METHODS[m].exact):
        found = launches_of(task, method, MANY).total
        assert found == launches_of(task, method, FEW).total, method
        if method in LAUNCH_BUDGET:
            assert found <= LAUNCH_BUDGET[method] * explicit, method


@pytest.mark.parametrize("settings", [{"mu": 0.1}, {"clips": [1.0]}, {"batch_rule": "share"}])
def test_a_ridge_a_clip_and_the_other_rule_stay_in_the_budget_as_well(settings):
    def count(method, members):
        return count_launches(steps_on_meta("digits_mlp", method, members, **settings)).total

    for method in LAUNCH_BUDGET:
        assert count(method, MANY) == count(method, FEW)
        assert count(method, MANY) <= LAUNCH_BUDGET[method] * count("eb", MANY), method


def test_an_implicit_layer_is_solved_in_one_launch_whatever_its_rule():
    for activation in set(SOLVABLE) - {"linear"}:
        step = steps_on_meta("bundled/wine", "ib_plus", 3, activation=activation)
        names = count_launches(step).names
        assert names["etascope.solve.default"] == 3
        assert names["etascope.solve_cross_entropy.default"] == 1
        assert names["etascope.travels.default"] == 4
        s, z_sq = torch.ones(3, 4, device=META), torch.ones(3, 1, device=META)
        alone = count_launches(lambda rule=activation, s=s, z=z_sq: alpha_rule(rule)(s, s, z, 1.0))
        assert alone.names == {"etascope.solve.default": 1, "aten.mul.Tensor": 1}


def test_without_kernels_a_device_solves_by_torch_calls():
    with torch_formulas():
        names = count_launches(steps_on_meta("bundled/wine", "ib_plus", 3)).names
    assert not any(name.startswith("etascope") for name in names)


def test_a_tensor_left_on_the_processor_would_be_noticed():
    there, here = torch.ones(2, 2, device="meta"), torch.ones(2, 2)
    assert count_launches(lambda: there @ here).at_host  # for which torch itself does not raise
    assert count_launches(lambda: there * here.to("meta")).at_host
    with pytest.raises(RuntimeError, match="meta"):
        there.sum().item()


def test_the_measuring_of_a_gpu_measures_what_it_is_given():
    line = _measured("bundled/wine", "ib", 2, "cpu")
    assert float(line["loss off by"]) == 0.0
    assert tuple(line) == TOLD_BY_A_GPU


def test_steps_are_raced_against_their_replay_by_a_graph():
    class Played:
        def __init__(self):
            self.made = []
            graphs.append(self)

        def record(self, work):
            self.made.append("recorded")
            self.losses = work()
            return self.losses

        def replay(self):
            self.made.append("replayed")

    graphs = []
    case = StepCase("", "digits_mlp", ("eb",), members=2)
    engine_steps(trials_of(case, "eb"), WARM + 3, graph=Played)()
    assert [one.made for one in graphs] == [["recorded", *["replayed"] * 3]]


@pytest.mark.parametrize(
    ("here", "words"),
    [
        ({"gpu": None, "cuda": None, "triton": "3"}, "No GPU here (this torch is built without"),
        ({"gpu": None, "cuda": "12.8", "triton": "3"}, "No GPU here (torch sees none)"),
        ({"gpu": "H100", "cuda": "12.8", "triton": None}, "Triton is not installed"),
        ({"gpu": "H100", "cuda": "12.8", "triton": "3"}, ""),
    ],
)
def test_what_a_machine_cannot_tell_is_said(here, words):
    assert missing_here(here).startswith(words)
    assert bool(missing_here(here)) is bool(words)


def test_the_engine_looks_at_losses_once_in_many_steps(monkeypatch):
    looks = []
    monkeypatch.setattr(engine, "tensor_hash", lambda *tensors: "")
    monkeypatch.setattr(engine, "all_finite", lambda losses: looks.append(len(losses)) or True)
    trials = SweepSpec.create(
        "digits_conv", methods=("eb", "ib"), learning_rates=[0.1], seeds=[1], batch_size=10
    ).expand()
    run = _StackRun(trials, META, SILENT)
    monkeypatch.setattr(run, "evaluate", lambda: None)
    run.train_epoch()
    per_epoch = run.workload.steps_per_epoch
    assert run.step == sum(looks) == per_epoch
    assert len(looks) == math.ceil(per_epoch / LOOK_EVERY)
    assert per_epoch > 2 * LOOK_EVERY
