"""muP does what its tables say: steps at one rate move outputs as much at every width."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from ib_core.errors import InvalidSpec
from ib_core.sweep import run_sweep, specs_of
from ib_core.tasks import find_task
from ib_core.tasks.modern import BASE_WIDTH
from ib_core.tasks.networks import HIDDEN, INPUT, OUTPUT, SCALINGS, Scaling

Optimizer = Callable[..., torch.optim.Optimizer]
STEPS, SEEDS = 3, 2


def moved(task_name: str, scaling: str, optimizer: Optimizer, lr: float, width: int) -> float:
    """Return how far a few steps on one batch move the scores, on average."""
    task = find_task(task_name)
    x, y = (part[:16] for part in task.data().train)
    far = []
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        model: nn.Module = task.model(width=width, scaling=scaling)
        before: Tensor = model(x).detach()
        steps = optimizer(model.parameters(), lr=lr)
        for _ in range(STEPS):
            steps.zero_grad()
            task.loss(model(x), y).backward()
            steps.step()
        far.append(float((model(x).detach() - before).abs().mean()))
    return sum(far) / SEEDS


@pytest.mark.parametrize(
    ("task", "scaling", "optimizer", "lr"),
    [
        ("digits_wide", "mup", torch.optim.SGD, 0.02),
        ("digits_wide", "mup_adam", torch.optim.Adam, 0.0005),
        ("gpt_bytes", "mup", torch.optim.SGD, 0.01),
        ("gpt_bytes", "mup_adam", torch.optim.Adam, 0.0005),
    ],
)
def test_a_step_s_reach_grows_with_the_width_but_not_under_mup(task, scaling, optimizer, lr):
    """The coordinate check of App. D.1, on the scores."""
    widths = (64, 512) if task == "digits_wide" else (32, 128)
    usual, scaled = (
        [moved(task, one, optimizer, lr, width) for width in widths]
        for one in ("standard", scaling)
    )
    assert usual[1] > 2 * usual[0]
    assert 0.5 * scaled[0] < scaled[1] < 1.25 * scaled[0]


@pytest.mark.parametrize(
    ("scaling", "fitting", "optimizer", "lr"),
    [("mup", "mup_adam", torch.optim.Adam, 0.0005), ("mup_adam", "mup", torch.optim.SGD, 0.02)],
)
def test_the_scaling_for_other_steps_has_another_reach(scaling, fitting, optimizer, lr):
    """At the base width both are the standard network: their best rates part with the width."""

    def far(name: str) -> float:
        torch.manual_seed(1)
        task = find_task("digits_wide")
        x, y = (part[:16] for part in task.data().train)
        model: nn.Module = task.model(width=512, scaling=name)
        hidden = model.layers[1]
        before = hidden.used()[0].detach().clone()
        step = optimizer(model.parameters(), lr=lr)
        task.loss(model(x), y).backward()
        step.step()
        return float((hidden.used()[0].detach() - before).norm())

    wrong, right = map(far, (scaling, fitting))
    assert not 0.5 * right < wrong < 2 * right


@pytest.mark.parametrize(
    ("scaling", "method", "fitting"),
    [
        *(("mup", method, "mup_adam") for method in ("adam", "lion", "torch.optim.AdamW")),
        *(("mup_adam", method, "mup") for method in ("eb", "momentum", "torch.optim.SGD")),
    ],
)
def test_a_scaling_for_other_steps_is_refused_in_one_sentence(scaling, method, fitting):
    body = {"task": "digits_wide", "methods": ["ib", method], "vary": {"scaling": [scaling]}}
    with pytest.raises(
        InvalidSpec, match=f"scaling={scaling} is not for .*; {fitting} is."
    ) as told:
        specs_of(body)
    assert told.value.field == "vary.scaling"
    specs_of({**body, "vary": {"scaling": ["standard", fitting]}})


@pytest.mark.parametrize("task", ["digits_wide", "gpt_bytes"])
@pytest.mark.parametrize("scaling", ["mup", "mup_adam"])
def test_at_the_base_width_it_is_the_standard_network(task, scaling):
    both = []
    for name in ("standard", scaling):
        torch.manual_seed(1)
        model = find_task(task).model(width=BASE_WIDTH, scaling=name)
        both.append(model(find_task(task).data().train[0][:4]))
    assert torch.equal(*both)


def test_factors_and_starts_are_those_of_the_tables():
    """Start of W, and what a step of SGD or of Adam moves it by: Table 3, with m = 4."""
    sgd, adam = Scaling("mup", 4.0), Scaling("mup_adam", 4.0)
    for role, start, by_sgd, by_adam in [
        (INPUT, 1.0, 4.0, 1.0),
        (HIDDEN, 1.0, 1.0, 1 / 4),
        (OUTPUT, 1 / 2, 1 / 4, 1 / 4),
    ]:
        assert sgd.factor(role) * sgd.start(role) == start
        assert adam.factor(role) * adam.start(role) == start
        assert sgd.factor(role) ** 2 == by_sgd
        assert adam.factor(role) == by_adam
    assert SCALINGS == ("standard", "mup", "mup_adam")


def test_trials_from_before_the_option_keep_their_addresses():
    found = run_sweep(
        "digits_wide", ["eb"], learning_rates=[0.1], seeds=1, epochs=1, lanes=1,
        vary={"scaling": ["standard", "mup"], "width": [8]},
    )  # fmt: skip
    standard, mup = (dict(result.spec.options.own) for result in found)
    assert "scaling" not in standard
    assert mup["scaling"] == "mup"
    assert found[0].train_loss != found[1].train_loss
