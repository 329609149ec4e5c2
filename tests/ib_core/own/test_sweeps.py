"""Sweeps of anybody's tasks: from a file, from Python, with code that misbehaves."""

import math
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ib_core import Data, Member, Method, Task, build_optimizer, run_sweep, whole
from ib_core.errors import IBError, InvalidSpec, MisuseError, UnknownName
from ib_core.methods import (
    METHODS,
    OWN_METHODS,
    find_method,
    method_of_class,
    torch_optimizers,
)
from ib_core.own import manifest, register_file, register_word
from ib_core.sweep import Guard, Observer, TrialResult, run_all, run_trials, specs_of
from ib_core.sweep.ways import probe
from ib_core.tasks import OWN_TASKS, build_workload, find_task, paper_task
from ib_core.tasks.randomness import tensor_hash
from tests.ib_core.own.models import rows

FILE = """
import os, sys, time
import torch, torch.nn.functional as F
from torch import nn
from ib_core import Data, Method, Task, choice, whole
class Net(nn.Module):
    def __init__(self, width=4, what="fine"):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, width), nn.Tanh(), nn.Linear(width, 3))
        self.what, self.passes = what, 0
    def forward(self, x):
        self.passes += 1
        if self.training and self.passes > 12:
            if self.what == "raise":
                raise ValueError("enough")
            if self.what == "exit":
                sys.exit(3)
            if self.what == "vanish":
                os._exit(4)
            if self.what == "hang":
                time.sleep(600)
            if self.what == "memory":
                torch.empty(10**15)
        if self.what == "item" and x.sum().item() > 1e9:
            return x
        if self.what == "nan":
            return self.layers(x) * float("nan")
        return self.layers(x[:, :2] if self.what == "shape" else x)
def data():
    x = torch.linspace(-1, 1, 48 * 16).view(48, 16).sin()
    return Data(train=(x, torch.arange(48) % 3))
WHAT = choice("fine", "raise", "exit", "vanish", "hang", "memory", "item", "nan", "shape")
task = Task(Net, data, loss=F.cross_entropy, batch_size=12, epochs=5,
            options={"width": whole(2, 64), "what": WHAT})
no_mean = Task(Net, data, loss=lambda out, y: F.cross_entropy(out, y, reduction="none"))
adamw = Method(torch.optim.AdamW)
"""


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (OWN_TASKS, OWN_METHODS):
        monkeypatch.setattr(
            f"ib_core.{'tasks' if registry is OWN_TASKS else 'methods.base'}."
            f"{'OWN_TASKS' if registry is OWN_TASKS else 'OWN_METHODS'}",
            registry,
        )
    monkeypatch.setattr("ib_core.own._files", {})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "mine.py"
    place.write_text(FILE)
    return place


def trials_of(**body: object) -> list:
    return [trial for spec in specs_of(body) for trial in spec.expand()]


def test_a_file_is_swept_by_its_name(file: Path) -> None:
    task = register_word(f"{file}:task", "task")
    method = register_word(f"{file}:adamw(schedule=cosine)", "method")
    assert (task, method) == ("mine.py:task", "mine.py:adamw(schedule=cosine)")
    trials = trials_of(
        task=task,
        methods=[method, "eb"],
        learning_rates=[0.01, 0.1],
        seeds=1,
        vary={"width": [4, 8]},
    )
    results = run_all(trials, lanes=1)
    assert [r.outcome.value for r in results if r] == ["completed"] * 8
    assert {dict(r.spec.options.as_dict())["width"] for r in results if r} == {4, 8}
    assert all(r.record["why"] for r in results if r)


def test_a_changed_file_makes_new_addresses_and_an_unchanged_one_none(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = register_file(file).code
    monkeypatch.setattr("ib_core.own._files", {})
    assert register_file(file).code == first
    monkeypatch.setattr("ib_core.own._files", {})
    file.write_text(FILE + "\n# another thought\n")
    assert register_file(file).code != first


def test_what_is_beside_a_file_belongs_to_its_code(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file.parent / "beside_mine.py").write_text("SIZE = 4\n")
    file.write_text("import beside_mine\n" + FILE)
    first = register_file(file).code
    monkeypatch.setattr("ib_core.own._files", {})
    (file.parent / "beside_mine.py").write_text("SIZE = 5\n")
    assert register_file(file).code != first


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("raise", "mine.py, line 15, in forward: ValueError: enough"),
        ("exit", "ended the process"),
        ("vanish", "exit code 4"),
        ("hang", "mine.py, line 21, in forward: It gave no sign of life"),
        ("memory", "mine.py"),
        ("shape", "cannot be multiplied"),
    ],
)
def test_code_that_misbehaves_fails_its_own_trials_only(file: Path, what: str, said: str) -> None:
    register_file(file)
    trials = trials_of(
        task="mine.py:task",
        methods=["eb"],
        learning_rates=[0.1],
        seeds=2,
        vary={"what": [what, "fine"]},
    )
    results = run_all(trials, lanes=1, stall=6.0)
    outcomes = [(r.outcome.value, r.error) for r in results if r]
    assert [outcome for outcome, _ in outcomes] == ["failed"] * 2 + ["completed"] * 2
    assert said in str(outcomes[0][1])
    assert str(outcomes[0][1]).count("mine.py") == 1


def test_a_daemon_as_a_workers_pool_has_them_may_guard_a_users_code(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(Observer):
        def finished(self, index: int, result: TrialResult) -> None:
            outcomes.append(result.outcome.value)

    register_file(file)
    outcomes: list[str] = []
    monkeypatch.setitem(multiprocessing.current_process().__dict__["_config"], "daemon", True)
    trials = trials_of(task="mine.py:task", methods=["eb"], learning_rates=[0.1], seeds=1)
    with Guard() as guard:
        guard.run(trials, device="cpu", observer=Ended())
    assert outcomes == ["completed"]
    assert multiprocessing.current_process().daemon


def test_a_loss_that_is_no_number_is_divergence_and_one_without_mean_a_sentence(
    file: Path,
) -> None:
    register_file(file)
    (nan,) = run_all(
        trials_of(
            task="mine.py:task",
            methods=["eb"],
            learning_rates=[0.1],
            seeds=1,
            vary={"what": ["nan"]},
        ),
        lanes=1,
    )
    assert nan is not None
    assert nan.outcome.value == "diverged"
    (vague,) = run_all(
        trials_of(task="mine.py:no_mean", methods=["eb"], learning_rates=[0.1], seeds=1), lanes=1
    )
    assert vague is not None
    assert "the mean over rows" in str(vague.error)


def test_what_torch_cannot_stack_trains_one_by_one_with_its_words(file: Path) -> None:
    register_file(file)
    trials = trials_of(
        task="mine.py:task",
        methods=["mine.py:adamw"],
        learning_rates=[0.01, 0.1],
        seeds=2,
        vary={"what": ["item"]},
    )
    results = run_trials(trials)
    assert {r.record["way"] for r in results if r} == {"one by one"}
    assert "item" in results[0].record["why"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text", ["def broken(:\n", "raise ValueError('no')\n", "import sys; sys.exit(1)\n"]
)
def test_a_file_that_cannot_be_run_says_the_line(tmp_path: Path, text: str) -> None:
    place = tmp_path / "broken.py"
    place.write_text(text)
    with pytest.raises(InvalidSpec, match=r"broken\.py, line 1"):
        register_file(place)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """A lane trains with one; a loop with more adds its products in another order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_a_full_batch_is_a_plain_loop_to_the_last_bit(name: str) -> None:
    def net(width: int = 8) -> nn.Module:
        # No bias before BatchNorm: its gradient is rounding, which Adam makes as large as any.
        first = nn.Linear(16, width, bias=False)
        return nn.Sequential(first, nn.BatchNorm1d(width), nn.Tanh(), nn.Linear(width, 3))

    task = Task(net, rows, loss=F.cross_entropy, options={"width": whole(2, 64)})

    def swept(rates: list[float]) -> list[TrialResult]:
        asked = {"learning_rates": rates, "seeds": [7], "batch_size": 48, "epochs": 5}
        return list(run_sweep(task, [f"torch.optim.{name}"], **asked, lanes=1))

    (found,) = swept([0.01])
    torch.manual_seed(7)
    model = net(8)
    assert found.record["initial_weights"] == tensor_hash(*model.parameters())
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
    x, y = rows().train
    losses = []
    for _ in range(5):  # so few that a stack of two is taken unmeasured
        optimizer.zero_grad()
        F.cross_entropy(model.train()(x), y).backward()
        optimizer.step()
        losses.append(F.cross_entropy(model.eval()(x), y).item())
    assert [point.train_loss for point in found.curve[1:]] == losses
    assert found.record["way"] == "one by one"
    stacked = swept([0.01, 0.02])[0]
    assert stacked.record["way"] == "stacked"
    assert [point.train_loss for point in stacked.curve[1:]] == pytest.approx(losses, rel=1e-5)


def test_an_optimizer_whose_default_is_infinite_is_a_method() -> None:
    class Endless(torch.optim.SGD):
        def __init__(self, params: object, lr: float = 1.0, growth: float = math.inf) -> None:
            super().__init__(params, lr=lr)  # type: ignore[arg-type]

    assert method_of_class(Endless, "mine.Endless").options == {}


def test_what_a_lane_was_training_is_looked_for_among_its_trials(file: Path) -> None:
    """One of three that train one by one ends the process; the others are trained all the same."""
    file.write_text(
        FILE.replace(
            "        return self.layers(x[:, :2]",
            "        bias = self.layers[0].bias.detach()\n"
            "        self.first = getattr(self, 'first', bias.clone())\n"
            "        moved = (bias - self.first).abs().max().item()\n"
            "        if self.passes > 12 and moved < 1e-6:\n"
            "            os._exit(5)\n"
            "        return self.layers(x[:, :2]",
        )
    )
    register_file(file)
    results = run_all(
        trials_of(
            task="mine.py:task",
            methods=["torch.optim.SGD"],
            learning_rates=[1e-12, 0.1, 0.2],
            seeds=1,
        ),
        lanes=1,
    )
    assert [r.outcome.value for r in results if r] == ["failed", "completed", "completed"]
    assert "exit code 5" in str(results[0].error)  # type: ignore[union-attr]


def test_a_loss_below_zero_that_falls_has_not_exploded() -> None:
    def likelihood(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(out, y) - 10.0

    task = Task(lambda: nn.Linear(16, 3), rows, loss=likelihood)
    for result in run_sweep(task, methods=["eb"], learning_rates=[0.1], seeds=2, epochs=3):
        assert result.train_loss < result.initial_loss < 0
        assert result.outcome == "completed"


def test_results_are_a_table() -> None:
    task = Task(lambda: nn.Linear(16, 3), rows, loss=F.cross_entropy)
    found = run_sweep(task, [Method(torch.optim.SGD), "eb"], learning_rates=[0.1], seeds=1, lanes=1)
    assert [row["outcome"] for row in found.rows] == ["completed", "completed"]
    assert "train_loss" in str(found)
    assert "<table>" in found._repr_html_()
    assert found[0].train_loss == pytest.approx(found[1].train_loss, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("SGD", "scaled"),
        ("AdamW", "scaled"),
        ("RAdam", "scaled"),
        ("ASGD", "member"),
        ("Adafactor", "member"),
        ("Rprop", "member"),
    ],
)
def test_probes_find_the_way_of_an_optimizer(name: str, way: str) -> None:
    factory = find_method(f"torch.optim.{name}").factory
    assert factory is not None
    assert probe(factory, {}, [(4, 3), (4,)], [1e-4, 1.0], name).way == way


def test_every_class_of_torch_is_a_method_or_says_why_not() -> None:
    for name in torch_optimizers():
        if name == "LBFGS":
            with pytest.raises(InvalidSpec, match="closure"):
                find_method("torch.optim.LBFGS")
        else:
            assert find_method(f"torch.optim.{name}").factory is not None
    with pytest.raises(UnknownName):
        find_method("torch.optim.AdamX")
    with pytest.raises(UnknownName):
        find_method("torch.optim.AdamW(weight=1)")
    with pytest.raises(InvalidSpec):
        find_method("torch.optim.AdamW(amsgrad=perhaps)")


def test_options_are_said_once_and_in_one_way() -> None:
    assert find_method("torch.optim.AdamW(weight_decay=0.01, beta1=.8)").name == (
        "torch.optim.AdamW(beta1=0.8)"
    )
    assert find_method("eb(schedule=constant)").name == "eb"


def test_the_three_silent_cases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    odd = replace(paper_task("bundled/iris"), family="odd")
    with pytest.raises(UnknownName, match="family"):
        build_workload(odd, None, odd.recipe(), [1], torch.device("cpu"))  # type: ignore[arg-type]
    monkeypatch.setitem(METHODS, "mine", Method(None, title="Mine"))
    stack = nn.Module()
    stack.weight = nn.Parameter(torch.zeros(2, 3))
    with pytest.raises(MisuseError, match="does not say how it steps"):
        build_optimizer(stack, [Member("mine", 0.1)] * 2)
    with pytest.raises(MisuseError, match="an ordinary Conv2d"):
        build_optimizer(nn.Conv2d(1, 4, 3, bias=False), [Member("eb", 0.1)] * 4)


def test_a_manifest_says_all_but_the_code(file: Path) -> None:
    register_file(file)
    found = manifest("mine.py:task")
    assert found["options"]["properties"]["width"] == {
        "type": "integer",
        "minimum": 2,
        "maximum": 64,
        "default": 4,
    }
    assert found["code"] == find_task("mine.py:task").code
    assert len(found["data"]) == 64
    assert "torch" in found["versions"]
    assert manifest("torch.optim.AdamW", "method")["options"]["properties"]["weight_decay"]


def test_wrong_contracts_are_refused_with_a_sentence() -> None:
    for wrong in (
        lambda: Task(3, rows, loss=F.cross_entropy),  # type: ignore[arg-type]
        lambda: Task(nn.Linear, 3, loss=F.cross_entropy),  # type: ignore[arg-type]
        lambda: Task(
            lambda: nn.Linear(1, 1), rows, loss=F.mse_loss, options={"width": whole(1, 2)}
        ),
        lambda: Method("adam"),  # type: ignore[arg-type]
        lambda: Data(train=(torch.zeros(3), torch.zeros(2))).sha256(),
    ):
        with pytest.raises(IBError):
            wrong()
